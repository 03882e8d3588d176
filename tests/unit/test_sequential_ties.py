"""The boundary of practical ties, and the variance that a difference has at the margin."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import make_spec

from adaptive_eval.core.session import Session
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import later_growth, later_margin, pooled_noise
from scorio.sequential.evidence import (
    likelihood_variance,
    log_tie_evidence,
    margin_variance,
    tie_boundary,
)
from scorio.sequential.pairs import PairReader
from scorio.sequential.trial_sequence import TrialSequence

VARIANCES = np.geomspace(1e-6, 1e-2, 9)


@pytest.mark.parametrize("equivalence", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("alpha", [0.05, 1e-4])
def test_evidence_reaches_its_level_at_the_boundary(equivalence, alpha):
    bound = tie_boundary(VARIANCES, equivalence, alpha)
    possible = np.isfinite(bound)
    assert np.array_equal(possible, equivalence**2 / (2 * VARIANCES) >= np.log(1 / alpha))
    evidence = log_tie_evidence(bound[possible], VARIANCES[possible], equivalence)
    assert evidence == pytest.approx(np.log(1 / alpha), rel=1e-6)
    wider = log_tie_evidence(bound[possible] * 1.01 + 1e-9, VARIANCES[possible], equivalence)
    assert (wider < np.log(1 / alpha)).all()


def test_calls_ties_no_later_than_the_first_boundary_at_one_variance():
    """ln cosh x ≤ x: what the first boundary allowed is allowed."""
    for equivalence in (0.02, 0.1):
        first = 0.5 * equivalence - VARIANCES * np.log(20.0) / equivalence
        bound = tie_boundary(VARIANCES, equivalence, 0.05)
        assert (bound[first >= 0.0] >= first[first >= 0.0]).all()


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


@pytest.mark.parametrize("q", [0.02, 0.1, 0.3])
def test_evidence_of_a_tie_in_a_first_pass_is_that_of_the_answers_themselves(q):
    """At D = 0: the most likely multinomial without a difference to the one with the margin, by search."""
    margin, share = 0.08, np.linspace(0.0800001, 0.999999, 400_001)
    at_margin = q / 2 * np.log((share**2 - margin**2) / 4) + (1 - q) * np.log(1 - share)
    ratio = q * np.log(q / 2) + (1 - q) * np.log(1 - q) - at_margin.max()
    variance = float(likelihood_variance(q, margin))
    assert margin**2 / (2 * variance) == pytest.approx(ratio, rel=1e-4)
    assert q < variance < float(margin_variance(0.0, q, 1, margin))
    # Scores of any scale: differences of a half are right-or-wrong ones at half the margin.
    assert float(likelihood_variance(q / 4, margin / 2, 0.25)) == pytest.approx(variance / 4)


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.0, 0.5, 1.0)])
def test_a_tie_in_a_first_pass_takes_the_noise_of_the_repeats(scores):
    rng, size, steps = np.random.default_rng(2), 800, 700
    sequence = TrialSequence(rng.permutation(size))
    asked = sequence.question(0, steps)
    answers = rng.integers(len(scores), size=(2, size))[:, asked]
    differ = (rng.random((2, steps)) < 0.05) & (sequence.repeats(0, steps) > 0)
    answers = np.where(differ, rng.integers(len(scores), size=(2, steps)), answers)
    cells = Cells(sequence, np.array(scores), 2)
    cells.absorb(np.arange(2), answers)
    block = PairReader(cells, [0], [1], equivalence=0.05).read(np.arange(1), steps)
    whole = PairReader(cells, [0], [1], equivalence=0.05, tie_noise="own").read(np.arange(1), steps)
    for name in ("difference", "variance", "guarded", "questions"):
        assert np.array_equal(getattr(block, name), getattr(whole, name))
    values = [[cells.scores[row[asked == q]] for q in np.unique(asked)] for row in answers]
    c, repeats = len(values[0]), steps - len(values[0])
    noise = sum(np.var(one, ddof=1) for row in values for one in row if one.size > 1) / repeats
    gap = np.array([one.mean() - other.mean() for one, other in zip(*values, strict=True)])
    single = np.array([one[0] - other[0] for one, other in zip(*values, strict=True)])
    step = ((single**4).sum() + 2) / ((single**2).sum() + 2)
    q = (gap**2).sum()
    extra = 1 + min(abs(gap.sum()) * np.sqrt(step) / q, 1)
    between = (q + extra) / c**2
    within = (noise + step * 0.25 * (1 + 8 / repeats) / repeats) * (1 - 0.5 * repeats / c) / c
    seen, share = (q + extra) / (c + extra), 1 - 4 * repeats / c
    grown = float(likelihood_variance(seen, 0.05, step)) / seen
    expected = (between + (within - between) * c / size) * grown * (1.0 if len(scores) == 2 else 1.02)
    later = whole.margin[0, -1] + (float(later_growth(repeats, c)) - 1) * whole.guarded[0, -1]
    assert block.margin[0, -1] == pytest.approx(share * expected + (1 - share) * later, rel=1e-9)
    # At small levels a likelihood ratio of spreads that are estimated would err more often.
    reader = PairReader(cells, [0], [1], equivalence=0.05, tie_level=0.0025)
    assert reader.read(np.arange(1), steps).margin[0, -1] == pytest.approx(later, rel=1e-9)


@pytest.mark.parametrize(("target", "exact"), [("benchmark", True), ("population", False)])
def test_questions_that_are_a_sample_keep_their_spread_at_the_margin(target, exact):
    """Of models without noise until all are known; of a population for ever."""
    rng, size = np.random.default_rng(3), 120
    cells = Cells(TrialSequence(np.arange(size)), np.array([0.0, 1.0]), 2)
    if exact:
        cells.exact[:] = True
    cells.absorb(np.arange(2), rng.integers(2, size=(2, 14)))
    block = PairReader(cells, [0], [1], target, equivalence=0.2).read(np.arange(1), 14)
    d, q = block.difference[0, -1] * 14, block.variance[0, -1] * 14**2
    extra = 1 + min(abs(d) / q, 1)
    expected = (14 + extra) / 14**2 * float(likelihood_variance((q + extra) / (14 + extra), 0.2))
    assert block.margin[0, -1] == pytest.approx(expected)
    if exact:
        cells.absorb(np.arange(2), rng.integers(2, size=(2, 2 * size - 14)))
        ways = (
            PairReader(cells, [0], [1], equivalence=0.2, tie_noise=way).read(np.arange(1), 2 * size)
            for way in ("repeats", "own")
        )
        assert len({float(block.margin[0, -1]) for block in ways}) == 1


def test_what_repeats_say_of_the_noise_makes_no_population_narrower():
    rng, size, steps = np.random.default_rng(3), 400, 412
    sequence = TrialSequence(np.arange(size))
    cells = Cells(sequence, np.array([0.0, 1.0]), 2)
    cells.absorb(np.arange(2), rng.integers(2, size=(2, size))[:, sequence.question(0, steps)])
    block, later = (
        PairReader(cells, [0], [1], "population", equivalence=0.1, tie_noise=way).read(np.arange(1), steps)
        for way in ("repeats", "own")
    )
    c = int(block.questions[0, -1])
    q, share = block.guarded[0, -1] * c**2 - 2, 1 - 4 * (steps - c) / c
    extra = 1 + abs(block.difference[0, -1]) * c / q
    expected = (c + extra) / c**2 * float(likelihood_variance((q + extra) / (c + extra), 0.1)) * share
    expected += (1 - share) * later.margin[0, -1]
    expected += (1 - share) * (float(later_growth(steps - c, c)) - 1) * block.guarded[0, -1]
    assert block.margin[0, -1] == pytest.approx(expected)


def test_answers_in_a_row_show_the_noise_of_their_own_question_only():
    rng, steps = np.random.default_rng(4), 90
    sequence = TrialSequence(rng.permutation(40), samples_per_prompt=4)
    answers, asked = rng.integers(2, size=(1, steps)), sequence.question(0, steps)
    cells = Cells(sequence, np.array([0.0, 1.0]), 1)
    cells.absorb(np.arange(1), answers)
    by_hand = sum(row.size * row.var() for row in (answers[0, asked == q] for q in range(40)))
    assert cells.latest().repeats[0, 0] == pytest.approx(by_hand)
    for edition, weight in ((6, 1.0), (7, 0.25)):
        spec = make_spec(2, 40, edition=edition)
        spec = replace(spec, allocation=replace(spec.allocation, samples_per_prompt=4))
        (cells,) = Session(spec).board.cells
        assert (cells.repeat_weight, cells.second_only) == (weight, edition == 6)


def test_near_the_ends_of_the_scale_a_later_tie_takes_no_more_variance_than_its_likelihood_ratio():
    one, q, margin = np.ones(1), np.array([0.03, 0.1, 0.6]), 0.08
    at_margin = later_margin(0 * one, q / 50, 50 * one, margin, one, 0.0) * 50
    assert at_margin == pytest.approx(margin_variance(0.0, q / 50, 50, margin) * 50)
    likely = 1.03 * likelihood_variance(q, margin)
    expected = np.minimum(at_margin, np.maximum(likely, 1.25 * q))
    assert (at_margin > expected).tolist() == [True, True, False]
    found = later_margin(0 * one, q / 50, 50 * one, margin, one, 1.0) * 50
    assert found == pytest.approx(expected)
    half = later_margin(0 * one, q / 50, 50 * one, margin, one, 0.5) * 50
    assert half == pytest.approx((found + at_margin) / 2), "at smaller levels it goes over to the margin's"


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.0, 0.5, 1.0)])
def test_repeats_of_both_models_make_ties_no_later_and_change_nothing_else(scores):
    rng, size, steps = np.random.default_rng(2), 800, 1200
    sequence = TrialSequence(rng.permutation(size))
    typical = rng.integers(len(scores), size=(2, size))
    asked = sequence.question(0, steps)
    answers = np.where(
        rng.random((2, steps)) < 0.9, typical[:, asked], rng.integers(len(scores), size=(2, steps))
    )
    cells = Cells(sequence, np.array(scores), 2)
    cells.absorb(np.arange(2), answers)
    now, before = (
        PairReader(cells, [0], [1], equivalence=0.05, tie_noise=way).read(np.arange(1), steps)
        for way in ("pooled", "own")
    )
    for name in ("difference", "variance", "guarded", "questions"):
        assert np.array_equal(getattr(now, name), getattr(before, name))
    assert (now.margin <= before.margin * (1 + 1e-12)).all()
    assert (now.margin < 0.95 * before.margin).any()
    # V with one more repeat for the pair instead of one for each model, and as many repeats as both have.
    a, b = (cells.path(np.array([model]), 730, 731) for model in (0, 1))
    seen = asked[:731]
    means = [[cells.scores[row[:731][seen == q]].mean() for q in np.unique(seen)] for row in answers]
    spread = np.var(means, axis=1)
    w, _, _, r = pooled_noise(a, b, (a.w + b.w, a.u + b.u, a.g, a.r))
    repeats, share = float(a.r[0, 0]), 1.0 - 4.0 * float(a.r[0, 0]) / len(np.unique(seen))
    share *= repeats / 40.0
    assert 30 < repeats < 40
    assert float(w[0, 0]) == pytest.approx(float((a.w + b.w)[0, 0]) - share * spread.mean() / (repeats + 1.0))
    assert float(r[0, 0]) == pytest.approx(repeats * (1.0 + share))
    assert np.array_equal(now.margin[0, 1100:], before.margin[0, 1100:])
