"""convergence@n is what its definition says, replicate by replicate."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from study_reference import convergence_at, ranking

from scorio.study import (
    NEVER,
    Bootstrap,
    Convergence,
    Metric,
    biased_coins,
    convergence,
    convergence_growth,
    rank_trajectory,
    replicate_trials,
)

AVG = Metric("avg")


def recorded(models: int = 4, questions: int = 5, trials: int = 12, seed: int = 1) -> np.ndarray:
    return biased_coins(np.linspace(0.2, 0.9, models), questions, seed=seed).sample(trials, seed=seed + 1)


def gold_ranks(outcomes: np.ndarray) -> list[int]:
    return ranking(outcomes, "avg", 1)


@pytest.mark.parametrize("resampling", ["columns", "columns-per-model", "rows"])
@pytest.mark.parametrize("metric", [AVG, Metric("bayes"), Metric("pass_at_k", k=2), Metric("pass_at_k", k=4)])
@pytest.mark.parametrize("confirm", [0, 1, 3])
def test_every_replicate_agrees_with_the_definition(resampling: str, metric: Metric, confirm: int) -> None:
    outcomes = recorded()
    source = Bootstrap(outcomes, resampling)
    result = convergence(source, metric, replicates=60, seed=9, confirm=confirm)
    gold = gold_ranks(outcomes)
    for index, at in enumerate(result.at):
        drawn = np.asarray(replicate_trials(source, index, seed=9))
        expected = convergence_at(drawn, gold, metric.name, metric.k, confirm)
        assert (None if at == NEVER else at) == expected
    assert len({int(at) for at in result.at}) > 3, "the case must not be trivial"


def test_ties_in_the_gold_standard_must_be_matched() -> None:
    outcomes = recorded(models=3, questions=2, trials=6, seed=5)
    outcomes[1] = outcomes[2]
    source = Bootstrap(outcomes, "columns-per-model")
    result = convergence(source, AVG, replicates=200, seed=2)
    assert result.gold.tolist() == [3, 1, 1]
    gold = gold_ranks(outcomes)
    for index, at in enumerate(result.at):
        drawn = np.asarray(replicate_trials(source, index, seed=2))
        assert (None if at == NEVER else at) == convergence_at(drawn, gold, "avg", 1, 1)
    assert 0 < result.never < 1


def test_workers_do_not_change_the_result() -> None:
    source, metric = Bootstrap(recorded()), Metric("pass_at_k", k=3)
    alone = convergence(source, metric, replicates=3000, seed=3)
    for executor in (ThreadPoolExecutor(3), ProcessPoolExecutor(2)):
        with executor:
            shared = convergence(source, metric, replicates=3000, seed=3, executor=executor)
        assert np.array_equal(alone.at, shared.at)


def example(at: list[int]) -> Convergence:
    return Convergence(AVG, np.array([1, 2]), 5, np.array(at, dtype=np.int32), np.random.SeedSequence(1))


def test_summaries_keep_the_replicates_that_never_converge_apart() -> None:
    result = example([1, 3, 3, NEVER])
    assert result.pmf().tolist() == [0.25, 0, 0.5, 0, 0]
    assert result.cdf().tolist() == [0.25, 0.25, 0.75, 0.75, 0.75]
    assert result.never == 0.25
    assert result.converged.tolist() == [True, True, True, False]
    assert result.mean == pytest.approx(7 / 3)
    assert result.mean_at_least == 3.0
    assert (result.quantile(0.25), result.quantile(0.5), result.quantile(0.76)) == (1, 3, float("inf"))
    assert result.worst == 3
    assert example([2, 4, 4]).worst == 1


@pytest.mark.parametrize("metric", [AVG, Metric("pass_at_k", k=3)])
def test_rank_trajectory_follows_the_recorded_order(metric: Metric) -> None:
    outcomes = recorded(seed=6)
    trajectory = rank_trajectory(outcomes, metric)
    assert trajectory.trials.tolist() == list(range(metric.first, 13))
    expected = [ranking(outcomes[:, :, :n], metric.name, metric.k) for n in trajectory.trials]
    assert trajectory.ranks.tolist() == expected
    gold = rank_trajectory(outcomes, AVG).ranks[-1]
    for confirm in (0, 1, 4):
        settled = convergence_at(outcomes, gold_ranks(outcomes), metric.name, metric.k, confirm)
        assert trajectory.convergence(gold, confirm=confirm) == settled


@pytest.mark.parametrize("metric", [AVG, Metric("pass_at_k", k=2)])
def test_growth_is_convergence_of_each_subset(metric: Metric) -> None:
    outcomes = recorded(models=5, seed=12)
    outcomes[3] = outcomes[1]
    source = Bootstrap(outcomes)
    subsets = [(0, 4), (4, 0, 2), (1, 3), (3, 2, 1, 0), (0, 1, 2, 3, 4)]
    growth = convergence_growth(source, subsets, metric, replicates=100, seed=5)
    assert list(growth) == subsets
    for subset, result in growth.items():
        # Rankings of a subset from the pool's replicates: the same columns, fewer models.
        gold = gold_ranks(outcomes[list(subset)])
        assert result.gold.tolist() == gold
        for index, at in enumerate(result.at):
            drawn = np.asarray(replicate_trials(source, index, seed=5))[list(subset)]
            assert (None if at == NEVER else at) == convergence_at(drawn, gold, metric.name, metric.k, 1)
