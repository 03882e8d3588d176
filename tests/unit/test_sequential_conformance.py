"""Decisions about pairs against the vectors, an independent implementation and the definitions."""

import json
from math import exp, log
from pathlib import Path

import numpy as np
import pytest

from scorio.sequential import Board
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import ContrastBlock, no_bets
from scorio.sequential.evidence import (
    TIE_FACTOR,
    confidence_radius,
    log_evidence,
    log_tie_evidence,
    margin_variance,
    tie_boundary,
    tie_variance,
)
from scorio.sequential.fold import Course
from scorio.sequential.moments import Mark, unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime, Exact, ExactReader, log_exact_evidence
from scorio.sequential.trial_sequence import TrialSequence

# The decision statistic against worked examples: c, D, V, log E and the verdict at several steps.


DATA = Path(__file__).parents[1] / "data"
VECTORS = json.loads((DATA / "decision_vectors.json").read_text())
DEFINED = json.loads((DATA / "decision_reference.json").read_text())


def read_course(vector, block):
    """Read the vector's two models in blocks of `block` steps; return the course of every step."""
    sequence = TrialSequence(np.arange(vector["M"]))
    size = vector["cluster_size"]
    board = Board.of_pairs(
        sequence,
        2,
        Anytime(vector.get("alpha", 0.05), vector["epsilon"]),
        scores=unit_scores(vector["weights"]),
        target=vector["target"],
        clusters=None if size is None else np.arange(vector["M"]) // size,
    )
    outcomes = np.array([vector["A"], vector["B"]])
    parts = []
    for start in range(0, outcomes.shape[1], block):
        stop = min(start + block, outcomes.shape[1])
        board.answers.extend(outcomes[:, start:stop])
        board.answers.absorb()
        parts.append(board.courses.read(np.array([0]), start, stop))
    return Course._make(np.concatenate(values, axis=1)[0] for values in zip(*parts, strict=True))


@pytest.mark.parametrize(
    "case", [*VECTORS, *DEFINED], ids=lambda case: f"M{case['M']}-{len(case['weights'])}-{case['target']}"
)
@pytest.mark.parametrize("block", [1, 13, 10**6])
def test_every_number_is_that_of_the_vectors_and_of_the_definition(case, block):
    """The independent implementation has missing answers, clusters, grades and bets, and knows slack."""
    course = read_course(case, block)
    exactly = {"rel": 1e-9} if case in DEFINED else {"abs": 1e-9}
    for row in case["rows"]:
        at = row["t"] - 1
        assert course.questions[at] == row["c"]
        assert course.difference[at] == pytest.approx(row["D"], abs=1e-9)
        assert course.variance[at] == pytest.approx(row["V"], **exactly)
        assert course.slack[at] == pytest.approx(row.get("slack", 0.0), abs=1e-9)
        expected = -np.inf if row["log_E"] is None else pytest.approx(row["log_E"], abs=1e-9)
        assert course.statistic[at] == expected
    assert any(row["log_E"] is not None for row in case["rows"])
    assert case in VECTORS or any(-1 in case[name] for name in "AB")


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"M{vector['M']}-{vector['target']}")
def test_reaches_the_verdict_at_its_step(vector):
    course, level = read_course(vector, block=50), np.log(1 / vector["alpha"])
    won, tied = course.statistic >= level, course.tie >= level
    if vector["decision"] is None:
        assert not (won | tied).any()
        return
    step, verdict = vector["decision"]
    found = int(np.argmax(won | tied)) + 1
    if verdict == "tie":  # listed for another variance at the margin: the step moves a little
        assert not won.any()
        assert course.tie.max() > 0.85 * level
        assert not tied[: int(0.95 * step)].any()
    else:
        assert found == step
        assert won[step - 1]
        assert (course.difference[step - 1] > 0) == (verdict == "A>B")


def test_no_evidence_before_ten_trials_nor_more_than_a_likelihood_ratio_can_give():
    cells = Cells(TrialSequence(np.arange(50)), unit_scores([0, 1]), models=2)
    cells.absorb(np.array([0, 1]), np.array([[1] * 15, [0] * 15]))
    path = PairReader(cells, [0], [1]).read(np.array([0]), 15)
    statistic = Anytime(0.05).statistic(path, np.zeros(15, dtype=bool))[0]
    assert np.isfinite(statistic).tolist() == [False] * 9 + [True] * 6
    within = path._replace(difference=np.sqrt(2.0 * np.log(20) * path.variance))
    assert (Anytime(0.05, 0.1).statistic(within, np.zeros(15, dtype=bool)) < np.log(20)).all()


# The radius of a confidence sequence is where the evidence reaches its threshold, at any variance.


VARIANCES = np.logspace(-13, 2, 200)


@pytest.mark.parametrize("equivalence", [None, 0.001, 0.02, 0.3])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 0.001, 1e-6])
def test_the_evidence_is_at_its_threshold_there_and_below_before(alpha, equivalence):
    with np.errstate(all="raise", under="ignore"):
        radius = confidence_radius(VARIANCES, alpha, equivalence)
        assert log_evidence(radius, VARIANCES, equivalence) == pytest.approx(-np.log(alpha), abs=1e-10)
        assert (log_evidence(radius * (1 - 1e-6), VARIANCES, equivalence) < -np.log(alpha)).all()


def test_it_rises_with_the_variance_and_does_not_depend_on_its_neighbours():
    radius = confidence_radius(VARIANCES, 0.05)
    assert (np.diff(radius) > 0).all()
    alone = [float(confidence_radius(one, 0.05)) for one in VARIANCES]
    assert radius.tolist() == alone


# The boundary of practical ties, and the variance that a difference has at the margin.


TIE_VARIANCES = np.geomspace(1e-6, 1e-2, 9)


@pytest.mark.parametrize("equivalence", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("alpha", [0.05, 1e-4])
def test_evidence_reaches_its_level_at_the_boundary(equivalence, alpha):
    bound = tie_boundary(TIE_VARIANCES, equivalence, alpha)
    possible = np.isfinite(bound)
    assert np.array_equal(possible, equivalence**2 / (2 * TIE_VARIANCES) >= np.log(1 / alpha))
    evidence = log_tie_evidence(bound[possible], TIE_VARIANCES[possible], equivalence)
    assert evidence == pytest.approx(np.log(1 / alpha), rel=1e-6)
    wider = log_tie_evidence(bound[possible] * 1.01 + 1e-9, TIE_VARIANCES[possible], equivalence)
    assert (wider < np.log(1 / alpha)).all()


@pytest.mark.parametrize(("better", "worse", "trials"), [(12, 9, 100), (0, 0, 50), (3, 3, 400), (40, 5, 60)])
def test_margin_variance_is_that_of_the_most_likely_multinomial_with_that_mean(better, worse, trials):
    """Found by search over all multinomials of differences −1, 0, 1 whose mean is the margin."""
    margin, q = 0.08, (better + worse) / trials
    share = np.linspace(margin, 1.0, 200_001)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [
            np.where(count > 0, count * np.log(chance), 0.0)
            for count, chance in (
                (better, (share + margin) / 2),
                (worse, (share - margin) / 2),
                (trials - better - worse, 1 - share),
            )
        ]
    most_likely = share[np.argmax(sum(terms))]
    found = margin_variance((better - worse) / trials, q / trials, trials, margin)
    assert float(found) * trials == pytest.approx(most_likely, abs=1e-4)


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.0, 0.5, 1.0)])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_every_tie_takes_the_variance_of_the_score_test_times_one_factor(scores, target):
    rng, size, steps = np.random.default_rng(2), 100, 250
    sequence = TrialSequence(rng.permutation(size))
    cells = Cells(sequence, np.array(scores), 2)
    cells.absorb(np.arange(2), rng.integers(len(scores), size=(2, steps)))
    block = PairReader(cells, [0], [1], target=target, equivalence=0.2).read(np.arange(1), steps)
    n = np.arange(1, steps + 1) if target == "benchmark" else block.questions[0]
    first = np.flatnonzero(sequence.repeats(0, steps) == 0)
    asked = sequence.question(0, steps)[first]
    said = cells.scale.scores[cells.categories[:, :steps]]
    assert len(set(asked.tolist())) == size
    single = np.zeros(steps)
    single[first] = said[0, first] - said[1, first]
    fourth, second = (np.log(20) + (single**power).cumsum() for power in (4, 2))
    step = fourth / second
    most = np.full(steps, np.inf)
    if target == "benchmark":
        path = cells.path(np.arange(2), 0, steps)
        most = (block.difference[0] ** 2 + (path.mean * (1 - path.mean)).sum(axis=0)) / n
    expected = margin_variance(block.difference[0], np.minimum(block.variance[0], most), n, 0.2, step)
    expected = TIE_FACTOR * np.maximum(expected, block.guarded[0])
    assert block.margin[0, 9:] == pytest.approx(expected[9:])


@pytest.mark.parametrize(
    ("score", "value", "at_margin"),
    [(0.95, 0.9, 0.8), (0.05, 0.1, 0.2), (0.5, 0.55, 0.5), (0.95, 0.05, 0.15), (1.0, 0.95, 0.85)],
)
def test_a_score_near_its_end_varies_more_at_the_margin(score, value, at_margin):
    """The margin is 0.1; with the score at 1 the variance here stands for p(1 - p)."""
    one = np.full((1, 1), 0.01)
    block = ContrastBlock(
        0.0 * one + score, *[one] * 4, np.ones((1, 1), int), one, 0.0 * one, *no_bets((1, 1))
    )
    found = block.less(0.0 * one + value, 0.1)
    here, there = max(score * (1 - score), 0.01), at_margin * (1 - at_margin)
    assert found.margin == pytest.approx(0.01 * max(there / here, 1.0))
    assert found.difference == pytest.approx(score - value)


def test_a_tie_without_any_difference_counts_the_chance_that_none_is_seen():
    cells = Cells(TrialSequence(np.arange(400)), np.array([0.0, 1.0]), 2)
    cells.absorb(np.arange(2), np.ones((2, 60), dtype=np.int64))
    block = PairReader(cells, [0], [1], target="population", equivalence=0.02).read(np.arange(1), 60)
    evidence = 0.02**2 / (2 * block.margin[0] / TIE_FACTOR)
    c = block.questions[0]
    chance = np.minimum(-c * np.log(1 - 0.02), 0.02**2 / (2 * block.guarded[0]))
    assert evidence == pytest.approx(chance)


def test_equal_answers_weigh_as_differences_that_were_not_seen():
    # Where no difference was seen, V at the margin is that of a share of questions that would go unseen.
    unseen = 0.05**2 / (-2.0 * 100 * np.log1p(-0.05))
    assert tie_variance([0.0], [0.0], [0.0], 100, 0.05) == pytest.approx(TIE_FACTOR * unseen)


# The rule ``exact`` against its definition, summed pass by pass with plain Python numbers.


RATES = [0.6 * 1.5**-j for j in range(14)]


def evidence(total, spread):
    """Return the log e-value as it is written in the module."""
    terms = [
        exp(sign * rate * total - (-log(1 - rate) - rate) * spread) for rate in RATES for sign in (1, -1)
    ]
    return log(sum(terms) / len(terms))


@pytest.mark.parametrize("total", [0.0, 3.0, -5.0, 5.0, 20.0, -60.0])
@pytest.mark.parametrize("spread", [0.0, 5.0, 30.0])
def test_the_evidence_is_the_mean_over_rates_and_signs(total, spread):
    assert float(log_exact_evidence(total, spread)) == pytest.approx(evidence(total, spread), abs=1e-12)


@pytest.mark.parametrize("weights", [[0, 1], [0, 0.25, 1]])
@pytest.mark.parametrize("missing", [(), ((0, 12), (1, 33)), ((1, 0), (1, 30))])
@pytest.mark.parametrize("mark", [Mark.MISSING, Mark.FILLED_IN, Mark.DROPPED])
def test_passes_are_summed_as_defined(weights, missing, mark):
    rng, questions, passes = np.random.default_rng(7), 10, 6
    sequence = TrialSequence(np.arange(questions))
    steps = int(np.flatnonzero(sequence.complete(0, 200))[passes - 1]) + 1
    said = rng.integers(0, len(weights), (2, steps))
    for model, step in missing:
        said[model, step] = mark
    cells = Cells(sequence, unit_scores(weights), 2)
    cells.absorb(np.array([0, 1]), said)
    reader = ExactReader(cells, [0], [1])
    found = np.concatenate(
        [reader.read(np.array([0]), at, min(at + 17, steps))[0][0] for at in range(0, steps, 17)]
    )

    asked, repeat = sequence.question(0, steps).tolist(), sequence.repeats(0, steps).tolist()
    total = spread = 0.0
    past: dict[int, list[float]] = {question: [] for question in range(questions)}
    for number in range(passes):
        at = [step for step in range(steps) if repeat[step] == number]
        whole = all(said[model, step] >= 0 for step in at for model in (0, 1))
        for step in at:
            before = past[asked[step]]
            expected = sum(before) / len(before) if before else 0.0
            half = 0.5 * (weights[max(said[0, step], 0)] - weights[max(said[1, step], 0)])
            if whole:
                total, spread = total + half, spread + (half - expected) ** 2
            before.append(half if whole else expected)
        end = max(at)
        assert found[end] == pytest.approx(evidence(total, spread), abs=1e-12)
    assert np.isfinite(found).sum() == passes


def test_the_winner_is_that_of_the_whole_passes():
    """Who is better by the mean of all answers is not asked."""
    questions, lost = 10, 6
    said = np.repeat([[0, 1], [1, 0]], [lost * questions, 20 * questions], axis=0).T
    said[0, : lost * questions : questions] = Mark.MISSING
    told = Board.of_pairs(TrialSequence(range(questions), early_repeats=False), 2, Exact(0.05))
    told.tell_all(said, np.array([said.shape[1]] * 2))
    assert told.fold.verdict.tolist() == [1]
