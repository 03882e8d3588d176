"""The courses of contrasts, from answers to evidence, step by step, and their confidence sequences."""

from dataclasses import dataclass
from math import log, log1p

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.answer_bets import AnswerBets
from scorio.sequential.answers import Answers
from scorio.sequential.betting import ScoreBets
from scorio.sequential.contrasts import ContrastBlock, Contrasts, joined, no_bets
from scorio.sequential.control import usual_control
from scorio.sequential.evidence import (
    FLOOR,
    MEASURED,
    MIN_TRIALS,
    ROUNDING,
    confidence_radius,
    log_evidence,
    log_evidence_of_claim,
    measured_radius,
)
from scorio.sequential.fold import Course, Levels, VerdictCode
from scorio.sequential.pairs import PairReader, Reader, ReaderOptions, ScoreReader
from scorio.sequential.reference import ReferenceReader
from scorio.sequential.rules import ExactReader, Rule

EXACT = 2.0 * FLOOR
"""Variance of a difference of scores that are known: all questions answered by models without noise."""

CERTAIN = log(np.finfo(np.float64).max)
"""Logarithm of the evidence where a difference is known: the largest number."""

Rows = slice | list[int]


class Readers:
    """Reads the contrasts of a board on one task, each kind with its reader."""

    def __init__(
        self, answers: Answers, task: int, contrasts: Contrasts, margin: float | None, levels: Levels
    ) -> None:
        cells = answers.cells[task]
        options = ReaderOptions(target=answers.target, clusters=answers.clusters[task])
        margins = _margins(contrasts, margin)
        asked = len(answers.furthest)
        single = contrasts.single
        stored = ~single & (np.maximum(contrasts.first, contrasts.second) >= asked)
        self._kind = stored + 2 * single
        self._place = np.zeros_like(contrasts.first)
        self._readers: dict[int, Reader] = {}
        for kind in np.unique(self._kind).tolist():
            rows = np.flatnonzero(self._kind == kind)
            self._place[rows] = np.arange(rows.size)
            first, second = contrasts.first[rows], contrasts.second[rows]
            options["equivalence"] = None if margins is None else margins[rows]
            options["guard"] = levels.tie(0) if kind == 2 else levels.guard  # bets call winners of scores
            if kind == 2:
                lead = _lead(answers, task, contrasts.measured[rows])
                self._readers[kind] = ScoreReader(cells, first, contrasts.value[rows], lead, **options)
            elif kind == 1:
                models = np.minimum(first, second), np.maximum(first, second), np.where(first < asked, 1, -1)
                self._readers[kind] = ReferenceReader(cells, *models, **options)
            else:
                self._readers[kind] = PairReader(cells, first, second, **options)

    def read(self, rows: Ints, stop: int) -> ContrastBlock:
        """Read contrasts at equal progress, up to index `stop` of the task's trial sequence."""
        kind = self._kind[rows]
        place = self._place[rows]
        blocks = []
        for one, reader in self._readers.items():
            if (kind == one).any():
                blocks.append(reader.read(place[kind == one], stop))
        if len(blocks) == 1:
            return blocks[0]
        order = np.argsort(kind, kind="stable")
        return joined(blocks, axis=0).take(np.argsort(order, kind="stable"))


class Courses:
    """Reads contrasts along their own models' trial sequences.

    Attributes
    ----------
    bets : ndarray of bool, shape (P,)
        Contrasts that are called by bets on a number.
    bet : ndarray of float, shape (P,)
        Log winnings of the bets, NaN for other contrasts.
    answer_bets : AnswerBets or None
        Bets on the answers in which two models differ; None without such pairs.
    bet_place : ndarray of int, shape (P,)
        The number of each pair in them; −1 for other contrasts.
    """

    def __init__(
        self, answers: Answers, contrasts: Contrasts, rule: Rule, levels: Levels, margin: float | None
    ) -> None:
        self._answers = answers
        self._contrasts = contrasts
        self.rule = rule
        self.margin = margin
        self._alpha = levels.alpha
        tasks = range(len(answers.cells))
        self._readers = [Readers(answers, task, contrasts, margin, levels) for task in tasks]
        self._last = [_no_estimate(contrasts.first.size) for _ in tasks]
        self._exact = None
        if rule.name == "exact":
            self._exact = ExactReader(answers.cells[0], contrasts.first, contrasts.second)
        self.bets = (rule.name == "anytime") & contrasts.single & ~contrasts.measured
        self.bet = np.full(contrasts.first.size, np.nan)
        self.bet_place, self.answer_bets = _answer_bets(answers, contrasts, rule)
        self._progress = np.zeros(contrasts.first.size)
        self._bet_row = np.cumsum(self.bets) - 1
        self._bets = ScoreBets(
            answers.cells,
            answers.run_sequence,
            answers.weights,
            contrasts.first[self.bets],
            contrasts.value[self.bets],
            answers.target,
            answers.clusters,
            answers.stored,
        )

    def read(self, rows: Ints, start: int, stop: int) -> Course:
        """Read `rows` from step `start` up to step `stop`; the statistic is that of each step."""
        block = self._estimate(rows, start, stop)
        self._progress[rows] = stop
        statistic, sign = self._statistic(rows, block, start, stop)
        tie = self.rule.tie_evidence(block)
        exact = block.guarded <= EXACT
        if exact.any():
            size = np.abs(block.difference)
            bar = max((self.margin or 0.0) - ROUNDING, ROUNDING)
            apart = size - block.slack > bar
            near = size + block.slack <= bar
            statistic = np.where(exact, np.where(apart, CERTAIN, -np.inf), statistic)
            tie = np.where(exact, np.where(near, np.inf, -np.inf), tie)
        measured = self._contrasts.measured[rows, None]
        if measured.any():
            statistic = np.where(measured, -np.inf, statistic)
            tie = np.where(measured, np.where(self._narrow(rows, block), np.inf, -np.inf), tie)
        claimed = np.flatnonzero(self._contrasts.claimed[rows])
        if claimed.size:
            margins = self._contrasts.claim[rows[claimed], None]
            statistic[claimed], sign[claimed] = _of_claims(block.take(claimed), margins)
            tie[claimed] = -np.inf
        estimates = (block.difference, block.variance, block.guarded, block.margin)
        return Course(statistic, sign, tie, *estimates, block.questions, block.trials, block.slack)

    def _statistic(
        self, rows: Ints, block: ContrastBlock, start: int, stop: int
    ) -> tuple[Floats, NDArray[np.int8]]:
        """Return the rule's statistic at each step, and the sign of what it speaks of."""
        if self._exact is not None:
            statistic, total = self._exact.read(rows, start, stop)
            return statistic, np.sign(total).astype(np.int8)
        if self.answer_bets is not None:
            block = self._with_bets(self.answer_bets, rows, block, start, stop)
        statistic = self.rule.statistic(block, self._answers.run_sequence.complete(start, stop))
        bets = self.bets[rows]
        if bets.any():
            side = np.sign(block.difference[bets])
            log_e = self._bets.read(self._bet_row[rows[bets]], start, stop, side)
            statistic[bets] = np.where(block.trials[bets] >= MIN_TRIALS, log_e, -np.inf)
            self.bet[rows[bets]] = log_e[:, -1]
        return statistic, np.sign(block.difference).astype(np.int8)

    def _with_bets(
        self, bets: AnswerBets, rows: Ints, block: ContrastBlock, start: int, stop: int
    ) -> ContrastBlock:
        """Return the block with the bets on answers, if they speak of the better model, and surely so."""
        place = self.bet_place[rows]
        placed = place >= 0
        if not placed.any():
            return block
        won = block.bets.copy()
        staked = block.staked.copy()
        log_e, lead = bets.read(place[placed], start, stop)
        difference = block.difference[placed]
        slack = block.slack[placed]
        agrees = _side(difference, slack) == _side(lead, 0.0)
        won[placed] = np.where(agrees, log_e, -np.inf)
        staked[placed] = bets.share
        return block._replace(bets=won, staked=staked)

    def bet_squares(self, rows: Ints) -> tuple[Floats, float]:
        """Return Σ d² of the answers that are bet on, NaN if none are, and the mean stake of a step."""
        if self.answer_bets is None:
            return np.full(rows.size, np.nan), 1.0
        place = self.bet_place[rows]
        squares = np.where(place >= 0, self.answer_bets.squares[place], np.nan)
        return squares, self.answer_bets.step_stake

    def with_foreseen_bets(self, rows: Ints, log_e: Floats, difference: Floats, steps: ArrayLike) -> Floats:
        """Return foreseen log evidence, shape (p, …), with that of bets on answers after `steps` steps."""
        place = self.bet_place[rows]
        placed = place >= 0
        if self.answer_bets is None or not placed.any():
            return log_e
        progress = self._progress[rows].reshape((-1,) + (1,) * (log_e.ndim - 1))
        made = np.broadcast_to(steps, log_e.shape)
        won = self.answer_bets.foreseen(place[placed], difference[placed], progress[placed], made[placed])
        both = log_e.copy()
        share = self.answer_bets.share
        if share < 1.0:
            kept = log1p(-share)
        else:
            kept = -np.inf
        both[placed] = np.logaddexp(kept + log_e[placed], log(share) + won)
        return both

    def _narrow(self, rows: Ints, block: ContrastBlock) -> Bools:
        """Return where a score's interval is as narrow as its contrast requires."""
        contrasts = self._contrasts
        radius = measured_radius(block.variance, self._alpha / contrasts.widths[rows, None])
        narrow = 2.0 * (radius + block.slack) <= contrasts.width[rows, None]
        return narrow & (block.trials >= MIN_TRIALS)

    def _estimate(self, rows: Ints, start: int, stop: int) -> ContrastBlock:
        """Return the overall estimates at steps ``start .. stop-1`` of the trial sequence."""
        if len(self._readers) == 1:
            return self._readers[0].read(rows, stop)
        sequence, blocks = self._answers.run_sequence, []
        for task, begin, end in sequence.spans(start, stop):
            block = self._last[task].take(rows)
            if end > begin:
                block = joined([block, self._readers[task].read(rows, end)], axis=1)
            self._last[task].put(rows, block)
            column = np.cumsum(sequence.task(start, stop) == task)
            blocks.append(block.columns(column))
        return self._answers.combine(blocks)


def _margins(contrasts: Contrasts, margin: float | None) -> Floats | None:
    """Return the margin of each contrast: that of its claim, or the equivalence margin.

    Without an equivalence margin nothing is read at that of other contrasts than claims, which is 1.
    """
    if margin is None and not contrasts.claims:
        return None
    if margin is None:
        usual = 1.0
    else:
        usual = margin
    return np.where(contrasts.claimed, contrasts.claim, usual)


def _lead(answers: Answers, task: int, measured: Bools) -> Floats | None:
    """Return what stored answers predict of the questions of a task, for the scores that are measured."""
    if answers.stored is None or answers.target != "benchmark" or not measured.any():
        return None
    sizes = answers.run_sequence.sizes
    begin = sum(sizes[:task])
    return measured[:, None] * usual_control(answers.stored, slice(begin, begin + sizes[task]))


def _of_claims(block: ContrastBlock, margins: Floats) -> tuple[Floats, NDArray[np.int8]]:
    """Return the evidence for or against claims, whichever is more, and its sign: 1 if it is for them."""
    held, failed = log_evidence_of_claim(block.difference, block.slack, block.margin, margins)
    exact = block.guarded <= EXACT
    above = block.difference + margins
    held = np.where(exact, np.where(above - block.slack > -ROUNDING, CERTAIN, -np.inf), held)
    failed = np.where(exact, np.where(above + block.slack < -ROUNDING, CERTAIN, -np.inf), failed)
    ready = exact | (block.trials >= MIN_TRIALS)
    statistic = np.where(ready, np.maximum(held, failed), -np.inf)
    return statistic, np.where(held >= failed, 1, -1).astype(np.int8)


def _side(difference: Floats | Ints, slack: Floats | float) -> Floats:
    """Return the sign of a difference, 0 if `slack` could turn it."""
    return np.where(np.abs(difference) > slack + ROUNDING, np.sign(difference), 0.0)


def _answer_bets(answers: Answers, contrasts: Contrasts, rule: Rule) -> tuple[Ints, AnswerBets | None]:
    """Return the pairs, of models that are asked, whose answers are bet on, and their bets."""
    asked = len(answers.furthest)
    pairs = ~contrasts.single & ~contrasts.claimed
    pairs &= np.maximum(contrasts.first, contrasts.second) < asked
    clustered = any(names is not None for names in answers.clusters)
    if rule.name in ("exact", "zscore") or clustered or not pairs.any():
        return np.full(pairs.size, -1), None
    place = np.where(pairs, np.cumsum(pairs) - 1, -1)
    models = contrasts.first[pairs], contrasts.second[pairs]
    run, weights = answers.run_sequence, answers.weights
    return place, AnswerBets(answers.cells, run, weights, *models, answers.target)


def _no_estimate(contrasts: int) -> ContrastBlock:
    """Return the estimate before the first trial: nothing known, no call possible."""
    shape = contrasts, 1
    (difference, trials, slack) = np.zeros((3, *shape))
    questions = np.zeros(shape, dtype=np.int64)
    variance, guarded, margin, avg_variance = np.full((4, *shape), 1e6)
    estimate = difference, variance, guarded, margin, avg_variance
    return ContrastBlock(*estimate, questions, trials, slack, *no_bets(shape))


@dataclass(frozen=True, eq=False)
class Intervals:
    """The confidence sequences of a board."""

    contrasts: Contrasts
    bets: Bools  # contrasts that are called by a bet
    alpha: float  # 1 minus the confidence
    margin: float | None  # equivalence margin in unit scores

    def ends(self, rows: Rows, verdict: Ints, latest: Course) -> tuple[Floats, Floats]:
        """Return both ends of the confidence sequences of the contrasts `rows`.

        Its variance is V_κ, `guarded`. V itself measures how far the answers are from agreement, so it is
        right for the hypothesis that the models agree and for no other: intervals from V would miss a
        difference of 0.1 near a score of 0.9 in one run of six. If a winner was called with V but V_κ has not
        rejected 0 yet, the interval ends at 0. Likewise the interval of a tie ends at ±ε, and
        that of a claim at its margin.
        """
        difference = latest.difference[rows]
        variance = latest.variance[rows]
        radius = confidence_radius(latest.guarded[rows], self.alpha, self.margin)
        measured = self.contrasts.measured[rows]
        if measured.any():
            radius = np.where(measured, self._of_widths(rows, verdict, variance), radius)
        radius = radius + latest.slack[rows]
        low, high = difference - radius, difference + radius
        bet = self.bets[rows]
        evidence = log_evidence(difference, variance, self.margin)
        rejected = bet | (evidence > -log(self.alpha))
        said = verdict[rows]
        better = (said == VerdictCode.BETTER) & rejected & np.where(bet, high > 0.0, difference > 0.0)
        worse = (said == VerdictCode.WORSE) & rejected & np.where(bet, low < 0.0, difference < 0.0)
        least, most = np.where(better, 0.0, -np.inf), np.where(worse, 0.0, np.inf)
        claimed = self.contrasts.claimed[rows]
        bound = -self.contrasts.claim[rows]
        least = np.where(claimed, np.where(said == VerdictCode.BETTER, bound, -np.inf), least)
        most = np.where(claimed, np.where(said == VerdictCode.WORSE, bound, np.inf), most)
        if self.margin is not None:
            tie = (said == VerdictCode.TIE) & ~measured
            least = np.where(tie, -self.margin, least)
            most = np.where(tie, self.margin, most)
        return np.maximum(low, least), np.minimum(high, most)

    def _of_widths(self, rows: Rows, verdict: Ints, variance: Floats) -> Floats:
        """Return half-widths of scores at the look that has ended their measurement, or at any before it."""
        at_the_look = measured_radius(variance, self.alpha / self.contrasts.widths[rows])
        before = self.of_scores(variance, measured=True)
        return np.where(verdict[rows] == VerdictCode.TIE, at_the_look, before)

    def of_scores(self, variance: Floats, *, measured: bool = False) -> Floats:
        """Return half-widths of the anytime intervals of scores, `measured` or not.

        Of a score that is measured to a width, the look that ends this has the greater part of the error.
        """
        if measured:
            level = self.alpha * (1.0 - MEASURED)
        else:
            level = self.alpha
        return confidence_radius(variance, level)


def interval(
    block: ContrastBlock | Course, alpha: float, margin: float | None = None
) -> tuple[Floats, Floats]:
    """Return the confidence sequence of estimates; unbounded before the tenth trial of each model.

    Its variance is V_κ: V is right where two models agree and too small elsewhere.
    """
    radius = confidence_radius(block.guarded, alpha, margin) + block.slack
    radius = np.where(block.trials >= MIN_TRIALS, radius, np.inf)
    return block.difference - radius, block.difference + radius
