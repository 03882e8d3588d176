"""Bets on scores: an e-value whatever the scores are, and the same in whatever pieces it is read."""

from itertools import product

import numpy as np
import pytest

from scorio.sequential.betting import ScoreBets, stakes
from scorio.sequential.cells import MISSING, Cells, unit_scores
from scorio.sequential.trial_sequence import RunSequence


def bets_on(outcomes, value, *, sizes, weights=(0.0, 1.0), shares=None, piece=10**6, **options):
    """Return log e-values of models with these categories along the trial sequence, read in pieces."""
    outcomes = np.atleast_2d(outcomes)
    run_sequence = RunSequence(sizes, seed=None)
    cells = [Cells(sequence, unit_scores(weights), len(outcomes)) for sequence in run_sequence.sequences]
    shares = shares or [1.0 / len(sizes)] * len(sizes)
    models = np.arange(len(outcomes))
    reader = ScoreBets(cells, run_sequence, shares, models, np.full(len(outcomes), value), **options)
    found, steps = [], outcomes.shape[1]
    for start in range(0, steps, piece):
        stop = min(start + piece, steps)
        task = run_sequence.task(start, stop)
        for number, one in enumerate(cells):
            one.absorb(models, outcomes[:, start:stop][:, task == number])
        found.append(reader.read(models, start, stop))
    return np.concatenate(found, axis=1)


@pytest.mark.parametrize("chances", [(0.5, 0.5, 0.5), (0.1, 0.5, 0.9), (0.0, 0.0, 0.06)])
def test_has_expectation_one_at_most_at_the_end_of_each_pass(chances):
    """Every outcome of three passes over three questions whose mean is the number, with its probability."""
    outcomes = np.array(list(product((0, 1), repeat=9)))
    p = np.tile(chances, 3)
    probability = np.prod(np.where(outcomes == 1, p, 1.0 - p), axis=1)
    log_e = bets_on(outcomes, np.mean(chances), sizes=[3])
    for end in (3, 6, 9):
        assert probability @ np.exp(log_e[:, end - 1]) <= 1.0 + 1e-9


@pytest.mark.parametrize("chances", [(0.97, 0.97, 0.97), (0.03, 0.03, 0.06), (0.5, 0.8, 0.95)])
def test_so_has_every_single_bet_on_the_first_two_passes_together(chances):
    outcomes = np.array(list(product((0, 1), repeat=6)))
    p = np.tile(chances, 2)
    probability = np.prod(np.where(outcomes == 1, p, 1.0 - p), axis=1)
    run_sequence = RunSequence([3], seed=None)
    models = np.arange(len(outcomes))
    cells = Cells(run_sequence.sequences[0], unit_scores([0.0, 1.0]), models.size)
    cells.absorb(models, outcomes)
    reader = ScoreBets([cells], run_sequence, [1.0], models, np.full(models.size, np.mean(chances)))
    reader.read(models, 0, 6)
    expected = probability @ np.exp(reader._careful)
    assert expected.max() <= 1.0 + 1e-9
    assert expected.max() > 0.9  # else this would say little


def test_so_it_has_for_graded_scores_and_several_tasks():
    """Two tasks of unequal sizes that count alike: their means are .3 and .7, the number .5."""
    outcomes = np.array(list(product((0, 1, 2), repeat=6)))
    chances = {0: (0.6, 0.2, 0.2), 1: (0.2, 0.2, 0.6)}
    task = RunSequence([2, 1], seed=None).task(0, 6)
    probability = np.prod(
        [[chances[t][k] for t, k in zip(task, row, strict=True)] for row in outcomes], axis=1
    )
    log_e = bets_on(outcomes, 0.5, sizes=[2, 1], weights=(0.0, 0.5, 1.0))
    for end in (3, 6):
        assert probability @ np.exp(log_e[:, end - 1]) <= 1.0 + 1e-9


@pytest.mark.parametrize("sizes", [[20], [20, 7]])
@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.0, 0.3, 1.0)])
def test_how_it_is_read_changes_no_bit(sizes, target, weights):
    rng = np.random.default_rng(1)
    outcomes = rng.integers(MISSING, len(weights), (3, 130))
    whole = bets_on(outcomes, 0.4, sizes=sizes, target=target, weights=weights)
    for piece in (1, 7):
        pieces = bets_on(outcomes, 0.4, sizes=sizes, target=target, weights=weights, piece=piece)
        assert np.array_equal(whole, pieces)
    alone = bets_on(outcomes[1], 0.4, sizes=sizes, target=target, weights=weights, piece=9)
    assert np.array_equal(whole[1:2], alone)


@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_a_lost_answer_is_worth_no_more_than_any_that_it_could_have_been(target):
    rng = np.random.default_rng(2)
    outcomes = (rng.random((1, 40)) < 0.8).astype(int)
    holes = outcomes.copy()
    holes[0, [3, 15, 22, 37]] = MISSING
    found = bets_on(holes, 0.5, sizes=[10], target=target)[0]
    for filled in product((0, 1), repeat=4):
        outcomes[0, [3, 15, 22, 37]] = filled
        assert (found <= bets_on(outcomes, 0.5, sizes=[10], target=target)[0] + 0.02).all()


def test_copies_of_questions_in_one_cluster_are_one_bet():
    """Questions in clusters of ten with equal answers: as much evidence as a tenth of them gives."""
    answers = np.repeat(np.random.default_rng(3).random(30) < 0.8, 10).astype(int)
    clusters = [np.repeat(np.arange(30), 10)]
    options = {"sizes": [300], "target": "population"}
    apart = bets_on(answers, 0.5, **options)[0, -1]
    together = bets_on(answers, 0.5, clusters=clusters, **options)[0, -1]
    assert 0.0 < together < 0.2 * apart


@pytest.mark.parametrize("value", [0.005, 0.5, 0.995])
def test_stakes_lie_within_the_scores_and_are_spent_whole(value):
    differences, shares = stakes(value)
    assert (differences > -value).all()
    assert (differences < 1.0 - value).all()
    assert np.exp(shares).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("sizes", [[30], [20, 10]])
def test_no_bet_has_seen_the_outcome_that_it_is_on(sizes):
    """What an outcome of one half brings lies in the middle between those of nothing and of all."""
    at, rng = 17, np.random.default_rng(4)
    past = rng.integers(0, 3, at + 1)
    outcomes = np.array([[*past[:at], category] for category in range(3)])
    nothing, half, whole = np.exp(bets_on(outcomes, 0.4, sizes=sizes, weights=(0.0, 0.5, 1.0))[:, at])
    assert half == pytest.approx((nothing + whole) / 2, rel=1e-12)
    assert abs(whole - nothing) > 1e-4


def test_an_early_repeat_counts_only_once_its_pass_has_begun():
    """The first pass asks a few questions twice; what they answer then decides nothing before it ends."""
    sequence = RunSequence([20], seed=None).sequences[0]
    early = int(np.flatnonzero(sequence.repeats(0, 21) == 1)[0])
    outcomes = np.random.default_rng(2).integers(0, 2, (2, 42))
    outcomes[1] = outcomes[0]
    outcomes[1, early] = 1 - outcomes[0, early]
    first, second = bets_on(outcomes, 0.5, sizes=[20])
    assert first[:20].tolist() == second[:20].tolist()
    assert first[-1] != second[-1]
