"""What must hold for every outcome tensor, metric and seed."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from scorio.study import (
    NEVER,
    Bootstrap,
    Convergence,
    Metric,
    convergence,
    rank_trajectory,
    replicate_trials,
)
from scorio.study.sources import shift_to_means

METRICS = [
    Metric("avg"), Metric("pass_at_k", k=2), Metric("pass_hat_k", k=2), Metric("naive_pass_at_k", k=3),
    Metric("mg_pass_at_k", k=3), Metric("auc_at_k", k=3), Metric("geom_at_k", k=2),
    Metric("geom_ds_at_k", k=2), Metric("geo_spectrum_at_k", k=3),
]  # fmt: skip

tensors = st.tuples(st.integers(2, 4), st.integers(1, 4), st.integers(3, 9)).flatmap(
    lambda shape: arrays(np.uint8, shape, elements=st.integers(0, 1))
)
metrics = st.sampled_from(METRICS)
seeds = st.integers(0, 2**32)
few = settings(max_examples=60, deadline=None)


def study(outcomes: np.ndarray, metric: Metric, seed: int, **options: object) -> Convergence:
    return convergence(Bootstrap(outcomes), metric, replicates=20, seed=seed, **options)


@given(tensors, metrics, seeds)
@few
def test_a_replicate_converges_where_its_own_trajectory_does(outcomes, metric, seed):
    source = Bootstrap(outcomes)
    result = study(outcomes, metric, seed)
    for index in (0, 7, 19):
        trajectory = rank_trajectory(replicate_trials(source, index, seed=seed), metric)
        expected = trajectory.convergence(result.gold)
        assert result.at[index] == (NEVER if expected is None else expected)


@given(tensors, metrics, seeds, st.randoms(), st.sampled_from([0, 1]))
@few
def test_the_order_of_models_and_questions_does_not_matter(outcomes, metric, seed, shuffler, axis):
    order = list(range(outcomes.shape[axis]))
    shuffler.shuffle(order)
    moved = outcomes.take(order, axis)
    assert np.array_equal(study(outcomes, metric, seed).at, study(moved, metric, seed).at)


@given(tensors, seeds)
@few
def test_weights_of_zero_and_one_are_the_binary_case(outcomes, seed):
    weighted = Bootstrap(outcomes, weights=[-2.5, 4.0])
    assert np.array_equal(
        study(outcomes, Metric("avg"), seed).at,
        convergence(weighted, Metric("avg"), replicates=20, seed=seed).at,
    )


@given(
    arrays(np.float64, (3, 6), elements=st.floats(0, 1)), arrays(np.float64, (3,), elements=st.floats(0, 1))
)
@few
def test_shifting_reaches_every_mean_and_keeps_the_order_of_questions(p, means):
    shifted = shift_to_means(p, means)
    np.testing.assert_allclose(shifted.mean(axis=1), means, atol=1e-14)
    assert shifted.min() >= 0
    assert shifted.max() <= 1
    for before, after in zip(p, shifted, strict=True):
        assert np.all(np.diff(after[np.argsort(before, kind="stable")]) >= 0)
