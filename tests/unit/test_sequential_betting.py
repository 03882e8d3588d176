"""Bets on scores: an e-value whatever the scores are, and the same in whatever pieces it is read."""

from itertools import product

import numpy as np
import pytest

from scorio.sequential.betting import BY_QUESTION, CONTROLLED, SIZES, ScoreBets, stakes
from scorio.sequential.cells import Cells
from scorio.sequential.control import StoredAnswers
from scorio.sequential.moments import Mark, unit_scores
from scorio.sequential.trial_sequence import RunSequence


def read_bets(
    outcomes,
    value,
    *,
    sizes,
    weights=(0.0, 1.0),
    shares=None,
    piece=10**6,
    early_repeats=True,
    copies=(),
    side=None,
    **options,
):
    """Return the bets of models with these categories along the trial sequence, and their log e-values.

    The first model's answers at the steps `copies`, counted within the first task, may be copies.
    """
    outcomes = np.atleast_2d(outcomes)
    run_sequence = RunSequence(sizes, seed=None, early_repeats=early_repeats)
    scales = weights if isinstance(weights, list) else [weights] * len(sizes)
    parts = zip(run_sequence.sequences, map(unit_scores, scales), strict=True)
    cells = [Cells(sequence, scale, len(outcomes)) for sequence, scale in parts]
    for step in copies:
        cells[0].doubt(0, step)
    shares = shares or [1.0 / len(sizes)] * len(sizes)
    models = np.arange(len(outcomes))
    reader = ScoreBets(cells, run_sequence, shares, models, np.full(len(outcomes), value), **options)
    found, steps = [], outcomes.shape[1]
    for start in range(0, steps, piece):
        stop = min(start + piece, steps)
        task = run_sequence.task(start, stop)
        for number, one in enumerate(cells):
            one.absorb(models, outcomes[:, start:stop][:, task == number])
        found.append(reader.read(models, start, stop, None if side is None else side[:, start:stop]))
    return reader, np.concatenate(found, axis=1)


def bets_on(outcomes, value, **options):
    """Return log e-values of models with these categories."""
    return read_bets(outcomes, value, **options)[1]


def by_task(values, sizes, passes):
    """Return the value of each step, given one for each question of some tasks, and the tasks' means."""
    run_sequence, own = RunSequence(sizes, seed=None), np.split(np.array(values), np.cumsum(sizes)[:-1])
    task = run_sequence.task(0, passes * sum(sizes))
    found = np.empty(task.size, dtype=own[0].dtype)
    for number, sequence in enumerate(run_sequence.sequences):
        here = task == number
        found[here] = own[number][sequence.question(0, int(here.sum()))]
    return found, np.array([part.mean() for part in own])


def stored_scores(*scores, trials=8):
    """Return stored answers of models with these scores of the questions."""
    total = np.round(trials * np.array(scores))
    return StoredAnswers(np.full(total.shape, float(trials)), total)


def any_stored(sizes, seed=0):
    """Return stored answers of three models that agree on which questions are easy."""
    rng = np.random.default_rng(seed)
    easy = rng.random(sum(sizes))
    return stored_scores(*(np.clip(easy + rng.normal(0.0, 0.1, easy.size), 0.0, 1.0) for _ in range(3)))


EVEN = [(0.5, 0.5, 0.5), (0.1, 0.5, 0.9), (0.0, 0.0, 0.06), (0.97, 0.97, 0.97), (0.03, 0.03, 0.06)]


@pytest.mark.parametrize("chances", [*EVEN, (0.5, 0.8, 0.95)])
@pytest.mark.parametrize(("sizes", "shares"), [([3], [1.0]), ([2, 1], [0.2, 0.8]), ([1, 2], [0.9, 0.1])])
@pytest.mark.parametrize(("passes", "dropped"), [(1, []), (2, []), (3, []), (2, [4])])
def test_has_expectation_one_at_most_at_the_end_of_each_pass(chances, sizes, shares, passes, dropped):
    """Every outcome of some passes over three questions whose mean is the number, with its probability.

    So has every single bet on questions, the first two passes together.
    """
    outcomes = np.array(list(product((0, 1), repeat=3 * passes)))
    p, means = by_task(chances, sizes, passes)
    probability = np.prod(np.where(outcomes == 1, p, 1.0 - p), axis=1)
    outcomes[:, dropped] = Mark.DROPPED
    reader, log_e = read_bets(outcomes, means @ shares, sizes=sizes, shares=shares)
    assert len(sizes) > 1 or probability @ np.exp(log_e[:, -1]) <= 1.0 + 1e-9
    expected = probability @ np.exp(reader._careful)
    assert expected.max() <= 1.0 + 1e-9
    assert dropped or expected.max() > 0.9  # else this would say little


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("repeat", [0, 1, 2])
def test_an_answer_wins_and_a_lost_one_loses_as_its_task_weighs(target, lost, repeat):
    """Small bets win in proportion: on answers of a task, four times as much as on another's, or about so."""
    run_sequence, sizes = RunSequence([20, 20], seed=None), [20, 20]
    base, _ = by_task(np.arange(40) % 2 * 2, sizes, 3)
    task = run_sequence.task(0, base.size)
    base[task == 0] //= 2
    outcomes = np.tile(base, (3, 1))
    for number, sequence in enumerate(run_sequence.sequences):
        steps = np.flatnonzero(task == number)
        may = (sequence.repeats(0, steps.size) == repeat) & ((base[steps] > 0) == lost)
        outcomes[number + 1, steps[may][0]] = Mark.MISSING if lost else number + 1
    weights = [(0.0, 1.0), (0.0, 0.5, 1.0)]
    reader, _ = read_bets(outcomes, 0.5, sizes=sizes, shares=[0.8, 0.2], weights=weights, target=target)
    by_question = target == "benchmark" and repeat == 2 and not lost
    for bets in (reader._plain, reader._careful) if by_question else (reader._plain,):
        one, other = np.abs(bets[1:, SIZES] - bets[0, SIZES])
        assert one == pytest.approx(4.0 * other, rel=0.2)
        assert other > 1e-4


STORED = [[(0.5, 0.6, 0.9), (0.4, 0.8, 1.0)], [(0.9, 0.5, 0.1), (1.0, 0.8, 0.2)], [(0.0, 0.9, 1.0)]]


@pytest.mark.slow
@pytest.mark.parametrize("scores", STORED)
@pytest.mark.parametrize("chances", [*EVEN, (0.5, 0.8, 0.95)])
@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("side", [None, -1.0, 1.0])
def test_so_has_each_bet_with_stored_answers(scores, chances, passes, side):
    """Whatever they predict: right, wrong or all from one model."""
    outcomes = np.array(list(product((0, 1), repeat=3 * passes)))
    p, means = by_task(chances, [3], passes)
    probability = np.prod(np.where(outcomes == 1, p, 1.0 - p), axis=1)
    sides = None if side is None else np.full(outcomes.shape, side)
    stored = stored_scores(*scores)
    reader, log_e = read_bets(outcomes, means[0], sizes=[3], stored=stored, side=sides)
    expected = probability @ np.exp(reader._on_trials[1].won)
    assert expected.max() <= 1.0 + 1e-9
    assert expected.max() > 0.8
    assert probability @ np.exp(log_e[:, -1]) <= 1.0 + 1e-9


def test_with_stored_answers_bets_count_on_the_side_of_the_score():
    right, options = np.ones((1, 20), dtype=int), {"sizes": [20], "stored": any_stored([20])}
    found = [np.exp(bets_on(right, 0.5, side=np.full(right.shape, side), **options)) for side in (-1, 0, 1)]
    below, neither, above = found
    assert (above[:, 5:] > below[:, 5:]).all()
    assert above + below == pytest.approx(neither + np.exp(bets_on(right, 0.5, **options)))
    plain = np.exp(bets_on(right, 0.5, sizes=[20])) - BY_QUESTION  # all of it stays 1 in the first pass
    assert neither == pytest.approx(BY_QUESTION + (1.0 - CONTROLLED) * plain)


def test_a_right_answer_wins_more_on_a_question_that_others_find_hard():
    first = RunSequence([20], seed=None).sequences[0].question(0, 1)[0]
    won = []
    for score in (0.9, 0.5, 0.1):
        scores = np.full(20, 0.5)
        scores[first], scores[first - 1] = score, 1.0 - score
        stored = stored_scores(scores, trials=10**6)
        reader, _ = read_bets([1], 0.5, sizes=[20], stored=stored)
        won.append(reader._on_trials[1].won[0, SIZES:])
    easy, middle, hard = won
    assert (easy < middle).all()
    assert (middle < hard).all()
    variance = 0.25 - ((0.5 * 0.4) ** 2) * 2 / 20
    bet = stakes(0.5)[0][SIZES] / variance
    assert hard[0] == pytest.approx(np.log1p(bet * (0.5 + 0.5 * 0.4)), rel=1e-4)


def test_with_a_population_stored_answers_change_no_bit():
    outcomes = np.random.default_rng(9).integers(0, 2, (2, 40))
    options = {"sizes": [20], "target": "population"}
    with_stored = bets_on(outcomes, 0.4, stored=any_stored([20]), **options)
    assert np.array_equal(with_stored, bets_on(outcomes, 0.4, **options))


def test_so_it_has_for_graded_scores_and_several_tasks():
    """Two tasks of unequal sizes that count alike: their means are .3 and .7, the number .5."""
    outcomes = np.array(list(product((0, 1, 2), repeat=6)))
    chances = {0: (0.6, 0.2, 0.2), 1: (0.2, 0.2, 0.6)}
    task = RunSequence([2, 1], seed=None).task(0, 6)
    probability = np.prod(
        [[chances[t][k] for t, k in zip(task, row, strict=True)] for row in outcomes], axis=1
    )
    for stored in (None, *(stored_scores(*scores) for scores in STORED)):
        log_e = bets_on(outcomes, 0.5, sizes=[2, 1], weights=(0.0, 0.5, 1.0), stored=stored)
        for end in (3, 6):
            assert probability @ np.exp(log_e[:, end - 1]) <= 1.0 + 1e-9


@pytest.mark.parametrize("sizes", [[20], [20, 7]])
@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.0, 0.3, 1.0)])
@pytest.mark.parametrize("is_stored", [False, True])
def test_how_it_is_read_changes_no_bit(sizes, target, weights, is_stored):
    rng = np.random.default_rng(1)
    outcomes = rng.integers(Mark.MISSING, len(weights), (3, 130))
    options = {"sizes": sizes, "target": target, "weights": weights}
    side = np.ones(outcomes.shape)
    if is_stored:
        options["stored"] = any_stored(sizes)
        side = rng.integers(-1, 2, outcomes.shape)
    whole = bets_on(outcomes, 0.4, side=side, **options)
    for piece in (1, 7):
        assert np.array_equal(whole, bets_on(outcomes, 0.4, piece=piece, side=side, **options))
    alone = bets_on(outcomes[1], 0.4, piece=9, side=side[1:2], **options)
    assert np.array_equal(whole[1:2], alone)


@pytest.mark.parametrize("target", ["benchmark", "population"])
@pytest.mark.parametrize(("sizes", "shares", "by"), [([10], [1.0], 0.02), ([6, 4], [0.9, 0.1], 0.05)])
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_lost_answer_is_worth_no_more_than_any_that_it_could_have_been(
    target, sizes, shares, by, is_stored
):
    """It is so but for a little: what later trials win depends on what is learned of the variance."""
    rng = np.random.default_rng(2)
    outcomes = (rng.random((1, 40)) < 0.8).astype(int)
    holes = outcomes.copy()
    holes[0, [3, 15, 22, 37]] = Mark.MISSING
    options = {"sizes": sizes, "shares": shares, "target": target}
    options["stored"] = any_stored(sizes) if is_stored else None
    found = bets_on(holes, 0.5, **options)[0]
    for filled in product((0, 1), repeat=4):
        outcomes[0, [3, 15, 22, 37]] = filled
        assert (found <= bets_on(outcomes, 0.5, **options)[0] + by).all()


@pytest.mark.parametrize("piece", [1, 50])
@pytest.mark.parametrize("stored", [None, any_stored([10])])
def test_on_single_answers_one_that_may_be_a_copy_wins_what_a_lost_one_does(piece, stored):
    outcomes = (np.random.default_rng(3).random((1, 50)) < 0.8).astype(int)
    copies = [12, 24, 31, 44]  # within passes, and where a pass begins
    options = {"sizes": [10], "piece": piece, "stored": stored}
    found = bets_on(outcomes, 0.5, copies=copies, **options)
    assert not np.allclose(found, bets_on(outcomes, 0.5, **options))
    outcomes[0, copies] = Mark.MISSING
    assert found == pytest.approx(bets_on(outcomes, 0.5, **options))


def test_copies_of_questions_in_one_cluster_are_one_bet():
    """Questions in clusters of ten with equal answers: as much evidence as a tenth of them gives."""
    single = (np.random.default_rng(3).random(30) < 0.8).astype(int)
    clusters = [np.repeat(np.arange(30), 10)]
    answers = {size: by_task(np.repeat(single, size // 30), [size], 2)[0] for size in (30, 300)}
    alone = bets_on(answers[30], 0.5, sizes=[30], target="population")
    together = bets_on(answers[300], 0.5, sizes=[300], target="population", clusters=clusters)
    assert together[0, -1] == pytest.approx(alone[0, -1])
    assert alone[0, -1] > 0.0


@pytest.mark.parametrize("mark", [Mark.DROPPED, Mark.FILLED_IN])
def test_a_repeat_without_an_answer_of_its_own_costs_a_bet_on_questions_nothing(mark):
    outcomes = np.random.default_rng(7).integers(0, 2, (1, 20))
    outcomes[0, 12] = mark
    log_e = bets_on(outcomes, 0.5, sizes=[10], target="population")[0]
    assert log_e[12] == log_e[11]


def test_a_task_that_is_cut_in_two_is_one_bet_on_its_questions():
    right = np.random.default_rng(8).random(20) < 0.7
    ends = []
    for sizes in ([20], [10, 10]):
        outcomes = by_task(right.astype(int), sizes, 1)[0]
        log_e = bets_on(outcomes, 0.4, sizes=sizes, target="population", early_repeats=False)
        ends.append(log_e[0, -1])
    assert ends[0] == pytest.approx(ends[1])


@pytest.mark.parametrize("value", [0.1, 0.5, 0.8])
def test_in_a_first_pass_a_bet_on_questions_is_one_on_trials(value):
    outcomes = np.random.default_rng(6).integers(0, 2, (2, 10))
    trials, questions = (
        read_bets(outcomes, value, sizes=[10], target=target)[0]._plain
        for target in ("benchmark", "population")
    )
    assert questions == pytest.approx(trials)


@pytest.mark.parametrize("value", [0.005, 0.5, 0.995])
def test_stakes_lie_within_the_scores_and_are_spent_whole(value):
    differences, shares = stakes(value)
    assert (differences > -value).all()
    assert (differences < 1.0 - value).all()
    assert np.exp(shares).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("sizes", [[30], [20, 10]])
@pytest.mark.parametrize("is_stored", [False, True])
def test_no_bet_has_seen_the_outcome_that_it_is_on(sizes, is_stored):
    """What an outcome of one half brings lies in the middle between those of nothing and of all."""
    at, rng = 17, np.random.default_rng(4)
    past = rng.integers(0, 3, at + 1)
    outcomes = np.array([[*past[:at], category] for category in range(3)])
    stored = any_stored(sizes) if is_stored else None
    log_e = bets_on(outcomes, 0.4, sizes=sizes, weights=(0.0, 0.5, 1.0), stored=stored)
    nothing, half, whole = np.exp(log_e[:, at])
    assert half == pytest.approx((nothing + whole) / 2, rel=1e-12)
    assert abs(whole - nothing) > 1e-4


@pytest.mark.parametrize("weights", [(0.0, 1.0), (0.0, 0.5, 1.0)])
def test_an_early_repeat_counts_only_once_its_pass_has_begun(weights):
    """The first pass asks a few questions twice; what they answer then decides nothing before it ends."""
    sequence, rng = RunSequence([20], seed=None).sequences[0], np.random.default_rng(2)
    early = int(np.flatnonzero(sequence.repeats(0, 21) == 1)[0])
    outcomes = np.tile(rng.integers(0, len(weights), 42), (3, 1))
    outcomes[:, early] = 0, 1, Mark.MISSING
    first, second, lost = bets_on(outcomes, 0.5, sizes=[20], weights=weights)
    assert first[:20].tolist() == second[:20].tolist() == lost[:20].tolist()
    assert len({first[-1], second[-1], lost[-1]}) == 3
    without = np.delete(outcomes[0], early)[:19]
    plain = bets_on(without, 0.5, sizes=[20], weights=weights, early_repeats=False)[0]
    assert first[:20] == pytest.approx(np.insert(plain, early, plain[early - 1]))
