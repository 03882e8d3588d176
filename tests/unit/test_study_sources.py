"""Coins have the stated means, bootstraps resample what they say, and a seed means the same replicates."""

from __future__ import annotations

import numpy as np
import pytest

from scorio.study import (
    PAPER_MEANS,
    Bootstrap,
    Coins,
    biased_coins,
    replicate_trials,
)
from scorio.study.sources import Resampling


@pytest.mark.parametrize("concentration", [0.3, 2.0, 8.0, 500.0])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
def test_coins_have_exactly_the_stated_means(concentration: float, correlation: float) -> None:
    means = (0.0, 0.003, *PAPER_MEANS, 0.999, 1.0)
    coins = biased_coins(means, 30, seed=4, concentration=concentration, correlation=correlation)
    np.testing.assert_allclose(coins.p.mean(axis=1), means, rtol=0, atol=1e-14)
    assert coins.p.min() >= 0
    assert coins.p.max() <= 1
    assert tuple(coins.means) == means


def test_sampling_follows_the_probabilities() -> None:
    coins = Coins([[0.0, 1.0, 0.3]])
    outcomes = coins.sample(20_000, seed=1)
    assert outcomes.shape == (1, 3, 20_000)
    assert outcomes[0, 0].sum() == 0
    assert outcomes[0, 1].sum() == 20_000
    assert abs(outcomes[0, 2].mean() - 0.3) < 6 * np.sqrt(0.21 / 20_000)


def labelled_outcomes() -> np.ndarray:
    """Every (model, question, trial) has a code of its own, so that a draw can be traced."""
    return np.arange(2 * 3 * 5).reshape(2, 3, 5)


def traced(resampling: Resampling, trials: int = 40) -> np.ndarray:
    outcomes = labelled_outcomes()
    source = Bootstrap(outcomes, resampling, trials=trials, weights=np.arange(30.0))
    return np.asarray(replicate_trials(source, 0, seed=1))


def test_column_bootstrap_draws_whole_trials_with_replacement() -> None:
    drawn = traced("columns")
    trial = drawn % 5
    assert drawn.shape == (2, 3, 40)
    assert np.array_equal(drawn // 5, np.broadcast_to(labelled_outcomes()[:, :, :1] // 5, drawn.shape))
    assert np.all(trial == trial[0, 0])
    assert set(trial[0, 0]) == set(range(5))


def test_columns_per_model_draws_whole_trials_of_each_model() -> None:
    trial = traced("columns-per-model") % 5
    assert np.all(trial == trial[:, :1])
    assert not np.array_equal(trial[0], trial[1])


def test_row_bootstrap_draws_every_question_by_itself() -> None:
    drawn = traced("rows")
    assert np.array_equal(drawn // 5, np.broadcast_to(labelled_outcomes()[:, :, :1] // 5, drawn.shape))
    rows = (drawn % 5).reshape(6, 40)
    assert len({tuple(row) for row in rows}) == 6
    assert all(set(row) == set(range(5)) for row in rows)


def test_more_than_255_recorded_trials_and_drawn_ones() -> None:
    outcomes = np.zeros((1, 1, 300), dtype=int)
    outcomes[0, 0, :299] = 1
    for resampling in ("columns", "rows"):
        source = Bootstrap(outcomes, resampling, trials=400)
        drawn = np.asarray(replicate_trials(source, 0, seed=1))
        assert drawn.sum() > 380
        total = sum(int(step.sum()) for step in source.totals(np.random.default_rng(1), 1))
        assert total > 380


def test_weights_mean_the_decimal_numbers_they_are_written_as() -> None:
    # 0.1 + 0.2 and 0.3 + 0 are equal scores, though not as floats.
    outcomes = np.array([[[1, 2]], [[3, 0]]])
    assert Bootstrap(outcomes, weights=[0.0, 0.1, 0.2, 0.3]).gold().tolist() == [1, 1]


def test_permuted_columns_hold_every_recorded_trial_once() -> None:
    outcomes = (np.random.default_rng(2).random((3, 4, 6)) < 0.5).astype(int)
    source = Bootstrap(outcomes, "permuted-columns")
    found = replicate_trials(source, 3, seed=1)
    columns = sorted(map(bytes, np.ascontiguousarray(found.transpose(2, 0, 1), dtype=np.uint8)))
    assert columns == sorted(map(bytes, np.ascontiguousarray(outcomes.transpose(2, 0, 1), dtype=np.uint8)))
    assert not np.array_equal(found, outcomes)
    assert Bootstrap(outcomes, "permuted-columns", trials=2).trials == 2
    with pytest.raises(ValueError, match="trials must be at most the 6 recorded ones"):
        Bootstrap(outcomes, "permuted-columns", trials=7)
