"""The boundary of practical ties, and the variance that a difference has at the margin."""

import numpy as np
import pytest

from scorio.sequential.cells import Cells
from scorio.sequential.evidence import (
    TIE_FACTOR,
    log_tie_evidence,
    margin_variance,
    tie_boundary,
    tie_variance,
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


@pytest.mark.parametrize("scores", [(0.0, 1.0), (0.0, 0.5, 1.0)])
@pytest.mark.parametrize("target", ["benchmark", "population"])
def test_every_tie_takes_the_variance_of_the_score_test_times_one_factor(scores, target):
    rng, size, steps = np.random.default_rng(2), 100, 250
    sequence = TrialSequence(rng.permutation(size))
    cells = Cells(sequence, np.array(scores), 2)
    cells.absorb(np.arange(2), rng.integers(len(scores), size=(2, steps)))
    block = PairReader(cells, [0], [1], target, equivalence=0.2).read(np.arange(1), steps)
    n = np.arange(1, steps + 1) if target == "benchmark" else block.questions[0]
    first = np.flatnonzero(sequence.repeats(0, steps) == 0)
    asked = sequence.question(0, steps)[first]
    said = cells.scores[cells.categories[:, :steps]]
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


def test_a_tie_without_any_difference_counts_the_chance_that_none_is_seen():
    cells = Cells(TrialSequence(np.arange(400)), np.array([0.0, 1.0]), 2)
    cells.absorb(np.arange(2), np.ones((2, 60), dtype=np.int64))
    block = PairReader(cells, [0], [1], "population", equivalence=0.02).read(np.arange(1), 60)
    evidence = 0.02**2 / (2 * block.margin[0] / TIE_FACTOR)
    c = block.questions[0]
    chance = np.minimum(-c * np.log(1 - 0.02), 0.02**2 / (2 * block.guarded[0]))
    assert evidence == pytest.approx(chance)


def test_equal_answers_weigh_as_differences_that_were_not_seen():
    # Where no difference was seen, V at the margin is that of a share of questions that would go unseen.
    unseen = 0.05**2 / (-2.0 * 100 * np.log1p(-0.05))
    assert tie_variance([0.0], [0.0], [0.0], 100, 0.05) == pytest.approx(TIE_FACTOR * unseen)
