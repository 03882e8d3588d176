"""Parts of a decision: control of errors over many pairs, conditions of goals, and shown intervals."""

from dataclasses import replace
from itertools import combinations
from math import log

import numpy as np
import pytest
from session_scripts import drive, make_spec

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.goals import AllDecided, AllOf, BestK, ContrastStates, make_goal, rank_ranges
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, TaskSpec
from adaptive_eval.trial import TrialOutcome
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.courses import Intervals
from scorio.sequential.evidence import MEASURED, confidence_radius, log_evidence_above, measured_radius
from scorio.sequential.families import family
from scorio.sequential.fold import Course, Fold, Levels, Piece, VerdictCode, moments, running_peak

# Error control over many pairs, against plain definitions; and where a session hands it evidence.


def test_a_peak_keeps_the_sign_it_had():
    """Where Holm's threshold falls, a pair may win by an earlier peak although its difference has turned."""
    rng = np.random.default_rng(0)
    statistic, signs = rng.normal(size=(40, 12)), rng.choice([-1, 1], (40, 12)).astype(np.int8)
    peak, sign = rng.normal(size=40), rng.choice([-1, 1], 40).astype(np.int8)
    highest, signs_there = running_peak(peak, sign, statistic, signs)
    for row in range(40):
        best, at_best = peak[row], sign[row]
        for step in range(12):
            if statistic[row, step] > best:
                best, at_best = statistic[row, step], signs[row, step]
            assert (highest[row, step], signs_there[row, step]) == (best, at_best)


@pytest.mark.parametrize(("name", "won", "level"), [("holm", 0, 0.01), ("holm", 3, 0.025), ("pair", 3, 0.05)])
def test_a_level_of_5_percent_is_shared_as_the_family_says(name, won, level):
    assert family(name).threshold(won, 5, 0.05) == pytest.approx(log(1.0 / level))


@pytest.mark.parametrize("name", ["holm", "pair"])
def test_a_call_needs_no_third_model(name):
    session = Session(make_spec(3, 50, family=name))
    for _ in range(40):
        requests = session.ask({"m0": 1, "m1": 1})
        session.tell([TrialOutcome(one.key, int(one.key.model == "m0")) for one in requests])
    assert session.comparison.reached == 0
    session.results()
    assert session.comparison.fold.verdict.tolist() == [
        VerdictCode.BETTER,
        VerdictCode.OPEN,
        VerdictCode.OPEN,
    ]


@pytest.mark.parametrize(
    ("right", "parts"),
    [
        ((1, 0), {}),
        ((1, 1), {"equivalence": 0.9}),
        ((1, 1), {"goal": "width", "width": 0.99}),
        ((1, 1), {"goal": "threshold", "value": 0.2}),
        ((1, 1), {"goal": "not-worse", "model": "m0", "margin": 0.9}),
        ((1, 0), {"goal": "not-worse", "model": "m0", "margin": 0.1}),
        ((1, 1, 1), {"goal": "top-k", "k": 1, "equivalence": 0.9}),
    ],
)
def test_nothing_is_called_before_ten_trials(right, parts):
    """At this confidence fewer would do."""
    spec = make_spec(len(right), 60, confidence=0.51, family="pair", **parts)
    session = drive(Session(spec), lambda request: right[int(request.key.model[1:])], slots=2)
    assert {pair.decided_at for pair in session.results().pairs} - {None} == {10}
    assert set(session.comparison.fold.enough_at.flat) == ({-1, 10} if "k" in parts else {-1})


def test_a_level_that_falls_calls_a_pair_at_its_present_step():
    """The second pair has had enough for the last level all along, and is called when that comes."""
    statistic = np.array([[0.0, 0.0, 0.0, 0.0, 4.0, 4.0], [3.2] * 6])
    assert log(20) < 3.2 < log(40) < 4.0
    levels = Levels(family("holm"), family("pair"), 2, 0.05, 0.05)
    fold = Fold(np.zeros(2, dtype=bool), levels, lambda fold: (fold.verdict == VerdictCode.OPEN) & ~fold.lost)
    values = np.zeros_like(statistic)
    whole = np.ones(statistic.shape, dtype=np.int64)
    estimate = values, values, values, values, whole, values, values
    course = Course(statistic, whole.astype(np.int8), values - np.inf, *estimate)
    moment = moments(np.tile(np.arange(1, 7), (2, 1)), 0)
    events = fold.read([Piece(np.arange(2), moment, course)])
    assert [(event.contrast, event.step) for event in events] == [(0, 5), (1, 5)]


@pytest.mark.parametrize("slack", [0.0, 0.06])
def test_claims_that_models_are_good_enough_share_the_level_and_bound_what_is_lost(slack):
    difference = np.linspace(0.0, 0.5, 501)[None]
    empty, trials = np.zeros(difference.shape), np.full(difference.shape, 20.0)
    noise = np.full(difference.shape, 0.01)
    course = Course(
        empty,
        empty.astype(np.int8),
        empty,
        difference,
        noise,
        noise,
        noise,
        trials.astype(int),
        trials,
        empty + slack,
    )
    log_e = log_evidence_above(difference - slack, noise, 0.1)
    for claims in (1, 5):
        levels = Levels(family("holm"), family("pair"), 6, 0.05, 0.05, claims=claims, margin=0.1)
        first, _ = levels.good_enough(course)
        assert np.array_equal(first, log_e >= log(claims / 0.05))
        assert 0 < first.sum() < first.size


@pytest.mark.parametrize(
    ("verdict", "ranks"),
    [
        ([VerdictCode.TIE, VerdictCode.TIE, VerdictCode.TIE], [(1, 3), (1, 3), (1, 3)]),
        ([VerdictCode.TIE, VerdictCode.WORSE, VerdictCode.OPEN], [(2, 3), (1, 3), (1, 2)]),
        ([VerdictCode.BETTER, VerdictCode.TIE, VerdictCode.WORSE], [(1, 2), (3, 3), (1, 2)]),
        ([VerdictCode.BETTER, VerdictCode.BETTER, VerdictCode.TIE], [(1, 1), (2, 3), (2, 3)]),
    ],
)
def test_only_winners_narrow_the_ranks(verdict, ranks):
    assert rank_ranges(make_goal(make_spec(3)), np.array(verdict), 3) == ranks


# When a goal is reached and what it still needs, against plain definitions.


NOTHING_LOST = np.zeros(6, dtype=bool)
NOT_ENOUGH = np.zeros((2, 6), dtype=bool)
PAIRS = list(combinations(range(4), 2))
FIRST, SECOND = np.array(PAIRS).T


def best(k):
    return BestK(np.arange(6), FIRST, SECOND, k, 4, f"best {k}")


def beaten_by(verdict):
    """Return the pairs (winner, loser) that follow from the calls, chains included."""
    said = {
        (a, b) if call == 1 else (b, a)
        for (a, b), call in zip(PAIRS, verdict, strict=True)
        if call in (1, -1)
    }
    for _ in range(4):
        said |= {(a, d) for a, b in said for c, d in said if b == c and a != d}
    return said


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("seed", range(15))
def test_the_best_k_need_the_pairs_across_the_cut_that_no_chain_settles(k, seed):
    rng = np.random.default_rng(seed)
    strength, score = rng.permutation(4), rng.random(4)
    verdict = np.array(
        [(0, 2, np.sign(strength[a] - strength[b]))[rng.integers(0, 3)] for a, b in PAIRS], dtype=np.int64
    )
    won = beaten_by(verdict)
    losses = [sum(loser == model for _, loser in won) for model in range(4)]
    top = set(sorted(range(4), key=lambda model: (losses[model] >= k, -score[model], model))[:k])
    expected = [
        call == 0 and (a in top) != (b in top) and not {(a, b), (b, a)} & won
        for (a, b), call in zip(PAIRS, verdict, strict=True)
    ]
    known = ContrastStates(verdict, NOTHING_LOST, score, NOT_ENOUGH)
    assert best(k).needed(known).tolist() == expected
    assert best(k).met(known) == (() if any(expected) else (f"best {k}",))
    assert not best(k).needed(replace(known, lost=~NOTHING_LOST)).any()
    # A claim settles an open pair when it is about the model of the top set.
    enough = rng.random((2, 6)) < 0.5
    known = replace(known, enough=enough)
    settled = [enough[0 if a in top else 1, row] for row, (a, b) in enumerate(PAIRS)]
    left = [needed and not claim for needed, claim in zip(expected, settled, strict=True)]
    assert best(k).needed(known).tolist() == left
    assert best(k).met(known) == (() if any(left) else (f"best {k}",))
    assert best(k).good_enough(known) == (sorted(top) if any(expected) else [])


@pytest.mark.parametrize(
    ("verdict", "every"),
    [
        ([0, 0, 0, 0, 0, 0], ()),
        ([1, 2, 0, 0, 0, 0], ()),
        ([0, 0, 0, 1, -1, 2], ()),
        ([1, 2, 0, 1, -1, 2], ("left", "right")),
    ],
)
def test_all_parts(verdict, every):
    left, right = AllDecided(np.array([0, 1]), "left"), AllDecided(np.array([3, 4, 5]), "right")
    verdict, score = np.array(verdict), np.zeros(4)
    whole, known = AllOf((left, right), "both"), ContrastStates(verdict, NOTHING_LOST, score, NOT_ENOUGH)
    assert whole.met(known) == every
    opened = (verdict == 0) & [True, True, False, True, True, True]
    assert whole.needed(known).tolist() == opened.tolist()


# The interval that is shown: its variance, its cuts at a verdict, and what tasks weigh in it.


ALPHA, MARGIN = 0.05, 0.1


def interval(verdict, difference, variance=0.001, guarded=0.004, slack=0.0):
    """Return the interval of one pair with these estimates."""
    spec = make_spec(2, 30, equivalence=MARGIN)
    intervals = Intervals(make_goal(spec), np.zeros(1, dtype=bool), ALPHA, MARGIN)
    latest = Course.unread(1)
    latest.difference[:], latest.variance[:] = difference, variance
    latest.guarded[:], latest.slack[:] = guarded, slack
    low, high = intervals.ends([0], np.array([verdict]), latest)
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("slack", [0.0, 0.05])
def test_its_width_comes_from_the_careful_variance_and_from_what_is_lost(slack):
    low, high = interval(VerdictCode.OPEN, 0.05, slack=slack)
    assert high - low == pytest.approx(2 * (float(confidence_radius(0.004, ALPHA, MARGIN)) + slack))
    assert low + high == pytest.approx(0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_beside_a_winner_it_ends_at_zero(sign):
    called = interval(VerdictCode.BETTER if sign > 0 else VerdictCode.WORSE, sign * 0.14)
    low, high = sorted(sign * end for end in called)
    open_low, open_high = interval(VerdictCode.OPEN, 0.14)
    assert open_low < 0.0 == low
    assert high == open_high


def test_beside_a_tie_it_ends_at_the_margin():
    assert interval(VerdictCode.TIE, 0.02) == (-MARGIN, MARGIN)


@pytest.mark.parametrize("widths", [(0.2,), (0.2, 0.12)])
def test_widths_share_the_error_of_the_looks_that_end_them_and_other_looks_have_the_rest(widths):
    goals = tuple(GoalSpec("width", width=width) for width in widths)
    session = Session(make_spec(1, 400, goal="all", goals=goals, max_passes=2))
    drive(session, lambda request: request.key.index % 2)
    board, rest = session.comparison, ALPHA * (1.0 - MEASURED)
    assert (board.fold.verdict == VerdictCode.TIE).all()
    for row, width in enumerate(widths):
        low, high = board.interval([row])
        radius = float(measured_radius(board.latest.variance[row], ALPHA / len(widths)))
        assert high - low == pytest.approx(2.0 * radius)
        assert 0.97 * width < 2.0 * radius <= width
        open_ = board.intervals.ends([row], np.full(2, VerdictCode.OPEN), board.latest)
        assert open_[1] - open_[0] == pytest.approx(2.0 * confidence_radius(board.latest.variance[row], rest))
    low, high = interval(VerdictCode.OPEN, 0.02)
    assert low < -MARGIN
    assert high > MARGIN


def test_tasks_count_with_the_squares_of_their_weights_in_a_variance():
    names = tuple(f"q{number}" for number in range(30))
    tasks = (TaskSpec("a", names, weight=3.0), TaskSpec("b", names, weight=1.0))
    board = SessionAnswers(replace(make_spec(2, 1), tasks=tasks))
    block = ContrastBlock(*np.reshape((0.2, 0.01, 0.02, 0.03, 0.04, 12, 14, 0.1, np.nan, 0), (-1, 1, 1)))
    other = ContrastBlock(*np.reshape((0.4, 0.05, 0.06, 0.07, 0.08, 10, 11, 0.3, np.nan, 0), (-1, 1, 1)))
    found = board.combine([block, other])
    values = [getattr(found, name).item() for name in ContrastBlock._fields[:-2]]
    square = 0.75**2, 0.25**2
    expected = [
        square[0] * one + square[1] * two
        for one, two in zip((0.01, 0.02, 0.03, 0.04), (0.05, 0.06, 0.07, 0.08), strict=True)
    ]
    assert values == pytest.approx([0.25, *expected, 10, 25, 0.15])
