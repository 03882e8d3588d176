"""Unequal trial counts: what they mean, and in which forms they are taken."""

import math
from typing import Any

import numpy as np
import pytest

from scorio import eval as metrics

# Question 0: 1 of 2 right, question 1: 4 of 5, question 2: 3 of 3.
PADDED = np.array([[1, 0, -1, -1, -1], [1, 1, 0, 1, 1], [-1, 1, -1, 1, 1]])
COUNTS = np.array([[1, 1], [1, 4], [0, 3]])
CATEGORICAL = np.array([[3, 0, 1], [0, 0, 0], [2, 2, 5]])
W = np.array([2.0, -1.0, 0.5])

TWO_DRAWS: dict[str, dict[str, Any]] = {
    name: {"k": 2}
    for name in (
        *("pass_at_k", "pass_hat_k", "auc_at_k", "maj_at_k", "g_pass_at_k", "mg_pass_at_k", "geom_at_k"),
        *("geom_ds_at_k", "geo_spectrum_at_k", "geo_spectrum_star_at_k", "max_at_k"),
    )
}
TWO_DRAWS["g_pass_at_k_tau"] = {"k": 2, "tau": 0.7}
TWO_DRAWS["threshold_spectrum_at_k"] = {"k": 2, "weights": [0.25, 0.5]}
EVERY = {
    "bayes": {},
    "avg": {},
    "bayes_ci": {},
    "avg_ci": {},
    **TWO_DRAWS,
    **{f"{name}_ci": keywords for name, keywords in TWO_DRAWS.items()},
}


@pytest.mark.parametrize("name", EVERY)
def test_every_form_gives_the_same(name: str) -> None:
    function, keywords = getattr(metrics, name), EVERY[name]
    expected = function(None, counts=COUNTS, **keywords)
    assert function(PADDED, missing=-1, **keywords) == expected
    assert function(PADDED, missing=PADDED < 0, **keywords) == expected
    assert function(np.where(PADDED < 0, 77, PADDED), missing=(PADDED < 0).tolist(), **keywords) == expected
    assert function(np.where(PADDED < 0, np.nan, PADDED), missing=np.nan, **keywords) == expected
    assert function(np.where(PADDED < 0, 9, PADDED), missing=9, **keywords) == expected


@pytest.mark.parametrize("name", TWO_DRAWS)
def test_an_estimator_uses_each_question_s_own_trials(name: str) -> None:
    function, keywords = getattr(metrics, name), TWO_DRAWS[name]
    result = function(None, counts=COUNTS, **keywords)
    if name in ("geom_ds_at_k", "geo_spectrum_at_k", "geo_spectrum_star_at_k"):
        spectrum = "pass_hat_k" if name.startswith("geom") else "mg_pass_at_k"
        factors = [getattr(metrics, part)(None, 2, counts=COUNTS) for part in ("pass_at_k", spectrum)]
        assert result == pytest.approx(math.sqrt(math.prod(factors)), abs=1e-15)
    else:
        alone = [function(None, counts=row, **keywords) for row in COUNTS]
        assert result == pytest.approx(np.mean(alone), abs=1e-15)


def test_a_latent_budget_is_limited_by_the_largest_question() -> None:
    assert metrics.pass_at_k_ci(None, 5, counts=COUNTS)[0] > 0.9
    assert metrics.geom_at_k_ci(None, 6, counts=COUNTS)[0] > 0.0


def test_bayes_is_the_statistic_of_each_question_s_dirichlet() -> None:
    prior = np.array([[0, 1, 0], [2, 0, 2], [0, 0, 0]])
    weights = np.array([0.5, 0.2, 0.3])
    mu, variance = 0.0, 0.0
    for omega, n, before in zip(weights, CATEGORICAL, prior, strict=True):
        nu = 1 + n + before
        a, b = nu @ W / nu.sum(), nu @ W**2 / nu.sum()
        mu += omega * a
        variance += omega**2 * (b - a * a) / (nu.sum() + 1)
    result = metrics.bayes(None, W, counts=CATEGORICAL, prior_counts=prior, question_weights=weights)
    assert result == pytest.approx((mu, math.sqrt(variance)), abs=1e-15)


@pytest.mark.parametrize("name", EVERY)
def test_question_weights_make_a_macro_average(name: str) -> None:
    function, keywords = getattr(metrics, name), EVERY[name]
    one = function(None, counts=COUNTS, **keywords)
    even = function(None, counts=COUNTS, question_weights=np.full(3, 1 / 3), **keywords)
    assert even == pytest.approx(one, abs=1e-15)
    # A question of weight 0 does not matter; one of weight 1 is all that matters.
    alone = function(None, counts=COUNTS[1:2], **keywords)
    assert function(None, counts=COUNTS, question_weights=[0, 1, 0], **keywords) == pytest.approx(
        alone, abs=1e-15
    )
    if name in ("avg", "bayes"):
        task_a, task_b = (function(None, counts=part) for part in (COUNTS[:1], COUNTS[1:]))
        macro = function(None, counts=COUNTS, question_weights=[1 / 2, 1 / 4, 1 / 4])
        assert macro[0] == pytest.approx((task_a[0] + task_b[0]) / 2, abs=1e-15)
        assert macro[1] == pytest.approx(math.hypot(task_a[1], task_b[1]) / 2, abs=1e-15)
