"""evaluate: outcome matrix, Bayes@N, weights, priors, unequal trials."""

import numpy as np
import pytest

from scorio import eval as metrics
from scorio.categorical import (
    Signals,
    Thresholds,
    evaluate,
    get_schema,
    schema_names,
)

RNG = np.random.default_rng(11)
SHAPE = (4, 6, 9)


def random_signals(shape, **more):
    rng = np.random.default_rng(3)
    verifier = rng.dirichlet([4.0, 2.0, 0.5], shape)
    return Signals(
        has_box=rng.integers(0, 2, shape),
        is_correct=rng.integers(0, 2, shape),
        token_ratio=rng.beta(2, 5, shape),
        repeated_pattern=rng.random(shape) < 0.1,
        prompt_bpt=rng.gamma(3, 1, shape),
        completion_bpt=rng.gamma(2, 0.5, shape),
        verifier_a=verifier[..., 0],
        verifier_b=verifier[..., 1],
        verifier_c=verifier[..., 2],
        **more,
    )


@pytest.mark.parametrize("name", schema_names())
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_models_are_judged_by_common_thresholds_and_by_the_attempts_that_were_made(name, share):
    observed = RNG.random(SHAPE) < share
    signals = random_signals(SHAPE, observed=observed)
    results, schema = evaluate(signals, name), get_schema(name)
    assert results.schema is schema
    assert results.weights.tolist() == list(schema.weights)
    assert results.thresholds == Thresholds.observed(signals, schema)
    assert np.array_equal(results.outcomes, schema.assign(signals, results.thresholds))
    assert np.array_equal(results.outcomes >= 0, observed)
    categories = np.arange(len(schema.categories))
    assert np.array_equal(results.counts, (results.outcomes[..., None] == categories).sum(axis=2))
    for model, found in enumerate(zip(results.mu, results.sigma, strict=True)):
        expected = metrics.bayes(results.outcomes[model], results.weights, missing=-1)
        assert found == pytest.approx(expected, abs=1e-13)


def test_prior_attempts():
    signals = random_signals(SHAPE)
    shared, own = RNG.integers(0, 3, (6, 2)), RNG.integers(0, 3, (4, 6, 2))
    for R0, of_model in ((shared, [shared] * 4), (own, own)):
        results = evaluate(signals, "exact-match", R0=R0)
        for model in range(4):
            mu, _ = metrics.bayes(results.outcomes[model], results.weights, of_model[model])
            assert results.mu[model] == pytest.approx(mu, abs=1e-13)
    one = evaluate(random_signals(SHAPE[1:]), "exact-match", R0=shared)
    assert one.mu == pytest.approx(metrics.bayes(one.outcomes, one.weights, shared)[0], abs=1e-13)
    without = evaluate(random_signals(SHAPE[1:]), "exact-match", R0=np.empty((6, 0), int))
    assert without.mu == evaluate(random_signals(SHAPE[1:]), "exact-match").mu
