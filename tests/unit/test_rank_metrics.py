"""Every metric as a ranking: scores of scorio.eval, options, unequal trials, bad input."""

import numpy as np
import pytest

from scorio import eval as metrics
from scorio import rank

RNG = np.random.default_rng(20)
R = (RNG.random((6, 5, 12)) < RNG.random((6, 5, 1))).astype(int)
CATEGORIES = RNG.integers(0, 3, (6, 5, 12))
W = [0.2, -1.0, 1.0]

# Name, arguments after R, tensor.
METRICS = [
    ("pass_at_k", (4,), R), ("pass_hat_k", (4,), R), ("unanimous_at_k", (4,), R), ("auc_at_k", (4,), R),
    ("maj_at_k", (5,), R), ("g_pass_at_k", (4,), R), ("g_pass_at_k_tau", (4, 0.6), R),
    ("mg_pass_at_k", (4,), R), ("geom_at_k", (4, 0.3, 0.7), R), ("geom_ds_at_k", (4, 0.3, 0.7), R),
    ("geo_spectrum_at_k", (4, 0.3), R), ("geo_spectrum_at_k", (4, 0.3, [0.1, 0.2, 0.3, 0.1]), R),
    ("geo_spectrum_star_at_k", (4,), R), ("threshold_spectrum_at_k", (4, [0.4, 0.3, 0.2, 0.1]), R),
    ("max_at_k", (4,), R), ("max_at_k", (4, W), CATEGORIES),
]  # fmt: skip
IDS = [f"{name}{args}" for name, args, _ in METRICS]


@pytest.mark.parametrize(("name", "args", "tensor"), METRICS, ids=IDS)
def test_unequal_trials_by_padding_mask_and_counts(name, args, tensor):
    absent = np.random.default_rng(1).random(tensor.shape) < 0.3
    absent[..., :5] = False
    padded = np.where(absent, -1, tensor)
    ranks, scores = getattr(rank, name)(padded, *args, missing=-1, return_scores=True)
    expected = [getattr(metrics, name)(model, *args, missing=-1) for model in padded]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)
    assert ranks.tolist() == rank.rank_scores(expected).tolist()
    size = 3 if tensor is CATEGORIES else 2
    counts = np.stack([(padded == category).sum(-1) for category in range(size)], axis=-1)
    for same in (
        getattr(rank, name)(tensor, *args, missing=absent, return_scores=True),
        getattr(rank, name)(np.where(absent, np.nan, tensor), *args, missing=np.nan, return_scores=True),
        getattr(rank, name)(None, *args, counts=counts, return_scores=True),
    ):
        assert same[0].tolist() == ranks.tolist()
        assert same[1].tolist() == scores.tolist()


@pytest.mark.parametrize(("name", "args", "tensor"), METRICS, ids=IDS)
def test_question_weights(name, args, tensor):
    weights = [0.4, 0.1, 0.0, 0.2, 0.3]
    options = {"question_weights": weights, "method": "dense"}
    ranks, scores = getattr(rank, name)(tensor, *args, **options, return_scores=True)
    expected = [getattr(metrics, name)(model, *args, question_weights=weights) for model in tensor]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)
    assert ranks.tolist() == rank.rank_scores(expected, "dense").tolist()


def test_avg_and_bayes_are_those_of_eval():
    for w, tensor in ((None, R), (W, CATEGORIES)):
        _, scores = rank.avg(tensor, w=w, return_scores=True)
        np.testing.assert_allclose(scores, [metrics.avg(model, w)[0] for model in tensor], rtol=0, atol=1e-13)
        _, scores = rank.bayes(tensor, w, return_scores=True)
        np.testing.assert_allclose(
            scores, [metrics.bayes(model, w)[0] for model in tensor], rtol=0, atol=1e-13
        )


def test_bayes_with_a_shared_and_a_models_own_prior():
    shared, own = RNG.integers(0, 3, (5, 4)), RNG.integers(0, 3, (6, 5, 4))
    for R0, of_model in ((shared, [shared] * 6), (own, own)):
        _, scores = rank.bayes(CATEGORIES, W, R0, return_scores=True)
        expected = [
            metrics.bayes(model, W, prior)[0] for model, prior in zip(CATEGORIES, of_model, strict=True)
        ]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-13)
        table = np.stack([(category == R0).sum(-1) for category in range(3)], axis=-1)
        _, same = rank.bayes(CATEGORIES, W, prior_counts=table, return_scores=True)
        assert same.tolist() == scores.tolist()
    _, empty = rank.bayes(CATEGORIES, W, np.empty((5, 0), int), return_scores=True)
    assert empty.tolist() == rank.bayes(CATEGORIES, W, return_scores=True)[1].tolist()


def test_bayes_by_quantile():
    moments = np.array([metrics.bayes(model) for model in R])
    for quantile, z in ((0.05, -1.6448536269514722), (0.5, 0.0), (0.9, 1.2815515655446004)):
        _, scores = rank.bayes(R, quantile=quantile, return_scores=True)
        np.testing.assert_allclose(scores, moments[:, 0] + z * moments[:, 1], rtol=0, atol=1e-12)


def test_a_low_quantile_puts_the_better_known_model_first():
    # Both have a posterior mean of 1/2; the second has twenty times the trials.
    counts = [[[1, 1]], [[20, 20]]]
    assert rank.bayes(None, counts=counts).tolist() == [1, 1]
    assert rank.bayes(None, counts=counts, quantile=0.05).tolist() == [2, 1]
    assert rank.bayes(None, counts=counts, quantile=0.95).tolist() == [1, 2]
