"""Contrasts with a finished reference: against a plain recomputation, and against ordinary pairs."""

import numpy as np
import pytest

from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import joined
from scorio.sequential.evidence import log_evidence
from scorio.sequential.moments import Mark, unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.reference import Overlap, ReferenceReader, with_extra_questions
from scorio.sequential.trial_sequence import TrialSequence

FIELDS = ("difference", "variance", "guarded", "avg_variance", "questions")
M = 120


def overlap(**changes):
    values = {"questions": 100, "extra": 400, "square": 30, "covariance": -0.12, "spread": 0.16, "lead": 0.05}
    return Overlap(**{name: np.float64(value) for name, value in (values | changes).items()})


def counts_of(rng, p, trials):
    """Category counts of a model that answers each question `trials` times."""
    right = rng.binomial(trials, p)
    return np.stack([trials - right, right], axis=1)


def board(rng, *, models=1, reference=None, trials=8, steps=300, sequence=None, missing=0.0):
    """Cells with `models` live models that have walked `steps`, and a reference as the last row."""
    sequence = sequence if sequence is not None else TrialSequence(rng.permutation(M))
    cells = Cells(sequence, unit_scores([0, 1]), models + 1)
    p = rng.beta(2, 2, (models + 1, sequence.questions))
    counts = counts_of(rng, p[-1], trials) if reference is None else reference
    cells.load(models, counts)
    outcomes = (rng.random((models, steps)) < p[:-1][:, sequence.question(0, steps)]).astype(np.int64)
    outcomes[rng.random(outcomes.shape) < missing] = Mark.MISSING
    return cells, outcomes


def read(cells, outcomes, *, block=10**6, sign=1, **options):
    """Absorb and read in blocks; return the estimates at every step, one row a live model."""
    models = np.arange(outcomes.shape[0])
    reader = ReferenceReader(
        cells, models, np.full(models.size, models.size), np.full(models.size, sign), **options
    )
    path = None
    for start in range(0, outcomes.shape[1], block):
        piece = outcomes[:, start : start + block]
        cells.absorb(models, piece)
        new = reader.read(models, start + piece.shape[1])
        path = new if path is None else joined([path, new], axis=1)
    return path


def test_matches_the_formula():
    difference, variance = with_extra_questions(0.02, 0.003, overlap())
    assert difference == pytest.approx(0.02 + -0.5 * 0.05)
    assert variance == pytest.approx(0.003 + 0.25 * 0.002 - 2 * 0.5 * 0.0012 + 4 * 0.8 / 100**2)
    _, least = with_extra_questions(0.02, 0.0003, overlap())
    assert least == pytest.approx(0.3 * 0.0003), "however much the questions explain"


@pytest.mark.parametrize("change", [{"questions": 29}, {"square": 9.9}, {"extra": 0}, {"spread": 0.0}])
def test_changes_nothing_where_too_little_is_known(change):
    assert with_extra_questions(0.02, 0.003, overlap(**change)) == (0.02, 0.003)


class TestReader:
    @pytest.mark.parametrize("own", [None, 5])
    def test_the_slack_is_what_lost_answers_of_both_could_make_of_it(self, own):
        rng = np.random.default_rng(5)
        sequence = TrialSequence(rng.permutation(M), own=own)
        cells, outcomes = board(rng, sequence=sequence, missing=0.0 if own else 0.1, steps=2 * M)
        if own:  # and some steps of its own round
            outcomes = np.concatenate([outcomes, rng.integers(2, size=(1, 9))], axis=1)
        lost = rng.integers(0, 3, M)
        cells.counts[1, :7], lost[:7] = 0, 2
        cells.counts[1, 7:19], lost[7:19] = 0, 0  # these it was not asked: they say nothing of either
        cells.load(1, cells.counts[1].copy(), lost)
        slack = read(cells, outcomes).slack[0, -1]
        n, right = cells.counts[1].sum(axis=1), cells.counts[1, :, 1]
        common = n > 0
        rise = ((right + lost) / np.maximum(n + lost, 1) - right / np.maximum(n, 1))[common].sum()
        fall = (right / np.maximum(n, 1) - right / np.maximum(n + lost, 1))[common].sum()
        live = cells.latest()
        own_fall, own_lost = float(live.lost_score[0, 0]), float(live.lost[0, 0])
        unseen = M - float(live.seen[0, 0])
        expected = max(own_fall + rise, own_lost - own_fall + fall) + unseen + 7
        assert slack == pytest.approx(expected / common.sum())

    def test_matches_a_plain_recomputation_at_every_step_of_the_first_pass(self):
        rng = np.random.default_rng(3)
        cells, outcomes = board(rng, steps=M)
        reference = cells.counts[1].copy()
        path = read(cells, outcomes)
        asked = cells.sequence.question(0, M)
        for t in (1, 9, 31, 70, M):
            d, c, _ = plain_difference(asked[:t], outcomes[0, :t], reference)
            assert path.questions[0, t - 1] == c
            assert path.difference[0, t - 1] == pytest.approx(d, abs=1e-12)

    @pytest.mark.parametrize("block", [1, 7, 64])
    def test_how_steps_are_grouped_changes_no_bit(self, block):
        rng = np.random.default_rng(4)
        cells, outcomes = board(rng, models=3, missing=0.1)
        whole = read(cells, outcomes)
        cells, outcomes = board(np.random.default_rng(4), models=3, missing=0.1)
        pieces = read(cells, outcomes, block=block)
        for name in FIELDS:
            assert np.array_equal(getattr(whole, name), getattr(pieces, name))

    def test_after_whole_passes_with_equal_trials_it_is_an_ordinary_pair(self):
        rng = np.random.default_rng(5)
        sequence = TrialSequence(rng.permutation(M))
        p = rng.beta(2, 2, (2, M))
        outcomes = (rng.random((2, 2 * M)) < p[:, sequence.question(0, 2 * M)]).astype(np.int64)
        pair = Cells(sequence, unit_scores([0, 1]), 2)
        pair.absorb(np.arange(2), outcomes)
        expected = PairReader(pair, [0], [1], equivalence=0.2).read(np.array([0]), 2 * M)
        cells, _ = board(rng, reference=pair.counts[1].copy(), sequence=sequence)
        found = read(cells, outcomes[:1], equivalence=0.2)
        for name in (*FIELDS, "margin"):
            last = getattr(expected, name)[0, -1]
            assert getattr(found, name)[0, -1] == pytest.approx(last, rel=1e-9)

    @pytest.mark.parametrize("sure", [False, True])
    @pytest.mark.parametrize("passes", [(4, 2), (2, 6)])
    def test_it_does_not_matter_which_of_the_two_is_the_reference(self, passes, sure):
        """Also where the answers of one are too alike for its noise to be trusted."""
        rng = np.random.default_rng(12)
        sequence, p = TrialSequence(rng.permutation(M)), rng.beta(2, 2, (2, M))
        if sure:
            p[1] = 1.0
        told = [
            (rng.random((1, n * M)) < p[row, sequence.question(0, n * M)]).astype(np.int64)
            for row, n in enumerate(passes)
        ]
        counts = []
        for outcomes in told:
            cells = Cells(sequence, unit_scores([0, 1]), 1)
            cells.absorb(np.arange(1), outcomes)
            counts.append(cells.counts[0].copy())
        one, other = (
            read(*(board(rng, reference=counts[1 - row], sequence=sequence)[0], told[row])) for row in (0, 1)
        )
        assert one.difference[0, -1] == pytest.approx(-other.difference[0, -1], rel=1e-9)
        for name in FIELDS[1:]:
            assert getattr(one, name)[0, -1] == pytest.approx(getattr(other, name)[0, -1], rel=1e-9)

    def test_further_questions_say_nothing_of_a_reference_that_has_lost_answers(self):
        rng = np.random.default_rng(13)
        cells, outcomes = board(rng, steps=M // 2)
        reference, asked = cells.counts[1].copy(), cells.sequence.question(0, M // 2)
        seen = np.unique(asked)
        live = np.bincount(asked, outcomes[0])[seen] / np.bincount(asked)[seen]
        expected = (live - reference[seen, 1] / reference[seen].sum(axis=1)).mean()
        assert read(cells, outcomes).difference[0, -1] != pytest.approx(expected, abs=1e-6)
        cells = Cells(cells.sequence, unit_scores([0, 1]), 2)
        cells.load(1, reference, np.eye(M, dtype=np.int64)[0])
        assert read(cells, outcomes).difference[0, -1] == pytest.approx(expected)

    def test_the_variance_does_not_jump_where_rounds_of_its_own_questions_begin(self):
        rng = np.random.default_rng(14)
        sequence, counts = TrialSequence(rng.permutation(M), own=5), counts_of(rng, rng.beta(2, 2, M), 4)
        counts[::2] = 0  # questions that the reference lacks
        path = read(*board(rng, reference=counts, sequence=sequence, steps=sequence.shared + 1))
        before, after = path.variance[0, -2:]
        assert 0.7 < after / before < 1.4

    @pytest.mark.parametrize("wrong", [False, True])
    def test_at_the_level_of_a_family_no_evidence_exceeds_the_chance_of_what_was_seen(self, wrong):
        """A model whose chance is 5 % on every question, as the reference's, is never right by bad luck."""
        counts = np.tile([19, 1][:: -1 if wrong else 1], (400, 1))
        chance = 0.95 ** np.arange(1, 601)

        def most_likely_call(level, guarded_for):
            sequence = TrialSequence(np.arange(400))
            cells, _ = board(np.random.default_rng(6), reference=counts, sequence=sequence)
            path = read(cells, np.full((1, 600), int(wrong)), guard=np.log(1.0 / guarded_for))
            called = log_evidence(path.difference, path.variance)[0] >= np.log(1.0 / level)
            return chance[called].max()

        assert all(most_likely_call(level, level) <= level for level in (0.05, 0.0025, 0.0001))
        assert most_likely_call(0.0001, 1.0) > 0.0001  # else this would say nothing

    def test_missing_trials_count_for_nothing(self):
        cells, outcomes = board(np.random.default_rng(7), missing=1.0)
        path = read(cells, outcomes)
        assert not path.questions.any()
        assert not path.difference.any()
        assert np.isfinite(path.variance).all()

    def test_extra_questions_narrow_the_variance_where_difficulty_is_shared(self):
        rng = np.random.default_rng(9)
        p = np.where(np.arange(M) % 2, 0.95, 0.05)
        sequence = TrialSequence(rng.permutation(M))
        cells = Cells(sequence, unit_scores([0, 1]), 2)
        cells.load(1, counts_of(rng, np.full(M, 0.5) + 0.4 * (p - 0.5), 50))
        outcomes = (rng.random((1, 60)) < p[sequence.question(0, 60)]).astype(np.int64)
        reader = ReferenceReader(cells, [0], [1], [1])
        cells.absorb(np.array([0]), outcomes)
        path = reader.read(np.array([0]), 60)
        plain = plain_difference(sequence.question(0, 60), outcomes[0], cells.counts[1], adjust=False)[2]
        assert path.variance[0, -1] < 0.96 * plain

    def test_clusters_of_one_question_widen_nothing_and_correct_nothing(self):
        found = read(*board(np.random.default_rng(11), steps=60), target="population", clusters=np.arange(M))
        plain = board(np.random.default_rng(11), steps=60)
        d, _, square = plain_difference(
            plain[0].sequence.question(0, 60), plain[1][0], plain[0].counts[1], adjust=False
        )
        assert found.difference[0, -1] == pytest.approx(d)
        assert found.variance[0, -1] == pytest.approx(square)


def plain_difference(asked, outcomes, reference, *, adjust=True):
    """Return D, c and (Q + ln 20)/c² of single trials against a reference, computed without running sums."""
    y = reference[:, 1] / reference.sum(axis=1)
    total = {}
    for question, outcome in zip(asked.tolist(), outcomes.tolist(), strict=True):
        total.setdefault(question, []).append(outcome)
    common = np.array(sorted(total))
    d = np.array([np.mean(total[question]) for question in common]) - y[common]
    c, e = common.size, y.size - common.size
    square = (d @ d + np.log(20.0)) / c**2
    if not adjust or c < 30 or d @ d < 10 or e == 0:
        return d.mean(), c, square
    gain = np.cov(d, y[common])[0, 1] / c
    spread = y.var(ddof=1) * (1 / c + 1 / e)
    slope = gain / spread * c / (c + 20)
    others = np.setdiff1d(np.arange(y.size), common)
    return d.mean() + slope * (y[others].mean() - y[common].mean()), c, square
