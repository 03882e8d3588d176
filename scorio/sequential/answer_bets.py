"""Bets on the answers in which two models differ, carried through all passes.

Let d in [−1, 1] be the difference of two models' answers to one question in one pass. If the models score
the same on these questions, the differences that are expected sum to 0 over a pass, so the product of
1 + λd over a complete pass has expectation at most 1 for every λ, whatever the profile of the questions,
because a product of positive factors with a given mean is largest when they are equal ([1]_, [2]_). The
same holds for the product over any number of passes, and for an average over λ: an e-value at the end of
every pass, with no variance to be estimated. Looks within a pass were checked by simulation.

Right or wrong answers differ by −1, 0 or 1. With s and f the answers in which the one and the other model
alone is right, the average over λ with the distribution Beta(½, ½) of (1 + λ)/2 has a closed form:
2^(s + f) B(s + ½, f + ½)/B(½, ½). Graded answers, and several tasks, take an average over a grid of λ. There
a question is bet on in proportion to its weight. If the questions are a sample (target ``population``),
a question enters once, with the mean of its differences so far: factors of several passes would count the
spread between questions as if it were noise.

References
----------
.. [1] Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024).
.. [2] Hoeffding, "On the distribution of the number of successes in independent trials", AMS 27 (1956).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, inf, log, pi
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import AT_ONCE, Bools, Floats, Ints
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import ON_CLUSTERS, RATES
from scorio.sequential.contrasts import Target
from scorio.sequential.evidence import least, log_mean
from scorio.sequential.moments import Mark
from scorio.sequential.pairs import running
from scorio.sequential.trial_sequence import RunSequence

ON_ANSWERS: Final = 0.2
"""Share of the stake of a pair that is bet on answers (docs/measurements.md: .1 and .3 do about as well)."""
FEW: Final = 2
"""Questions of a run up to which bets on answers alone decide: a variance says too little of so few."""


class Winnings(NamedTuple):
    """After each step, shape (contrasts, steps): log winnings of the bets, and the sum of what was bet on."""

    log_e: Floats
    lead: Floats | Ints


def log_bets(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the logarithm of what bets on right or wrong answers have won.

    Parameters
    ----------
    first, second : array_like of float
        s and f, the answers in which the first model alone, and the second alone, was right.

    Returns
    -------
    ndarray of float
        ``(s + f) log 2 + log B(s + ½, f + ½) − log B(½, ½)``.

    Examples
    --------
    >>> log_bets([1, 10], [1, 0]).round(4).tolist()
    [-0.6931, 5.1953]
    """
    from scipy.special import gammaln

    s = np.asarray(first, dtype=np.float64)
    f = np.asarray(second, dtype=np.float64)
    beta = gammaln(s + 0.5) + gammaln(f + 0.5) - gammaln(s + f + 1.0)
    return np.asarray((s + f) * log(2.0) + beta - log(pi))


def expected_log_bets(lead: ArrayLike, squares: ArrayLike) -> Floats:
    """Return :func:`log_bets` of what is expected: Σ d is `lead`, and Σ d² `squares` unless that is less."""
    size = np.abs(lead)
    both = np.maximum(squares, size)
    return log_bets(0.5 * (both + size), 0.5 * (both - size))


def least_lead(squares: Floats, level: float) -> Floats:
    """Return the least Σ d at which expected log winnings reach `level`, given Σ d²."""
    most = np.maximum(squares, 4.0 * level + 16.0)
    return least(lambda lead: expected_log_bets(lead, squares) >= level, np.zeros(squares.shape), most)


def bet_steps(steps: ArrayLike, questions: int, first_round: float = inf, *, sample: bool = False) -> Floats:
    """Return how many of some steps are bet on.

    Parameters
    ----------
    steps : array_like of float
        Steps of a model.
    questions : int
        Questions of all tasks.
    first_round : float
        The step from which models follow rounds of their own.
    sample : bool
        Whether the questions are a sample, each of which is bet on once.
    """
    made = np.asarray(steps, dtype=np.float64)
    if sample:
        return np.minimum(made, questions)
    part = first_round - questions  # every question as often as in the block of passes before
    begin = first_round
    bet = np.minimum(made, first_round)
    while begin < made.max(initial=0.0):
        bet = bet + np.clip(made - begin, 0.0, part)
        begin += part * ceil(begin / part)
    return bet


def has_answer_bets(questions: int) -> bool:
    """Return whether answers to so many questions are bet on: two of them move together too often."""
    return questions > FEW


def answers_share(questions: int, *, sample: bool) -> float:
    """Return the share of the stake of a pair that is bet on answers to so many questions, or a `sample`.

    Questions that are a sample enter as clusters do.
    """
    if questions <= FEW:
        return 1.0
    if sample:
        return ON_CLUSTERS
    return ON_ANSWERS


class AnswerBets:
    """Running bets on the answers of pairs of models.

    Parameters
    ----------
    cells : sequence of Cells
        The trials of the models, per task.
    run_sequence : RunSequence
        The trial sequence of all tasks.
    weights : sequence of float
        Weight of each task in the overall score; they sum to 1.
    first, second : array_like of int, shape (P,)
        The models of each pair.
    target : {'benchmark', 'population'}
        Target of the estimate.

    Attributes
    ----------
    squares : ndarray of float, shape (P,)
        Σ d² of what was bet on: for right or wrong answers the number of those in which the models differ.

    Notes
    -----
    A lost answer is any score from 0 to 1, at each bet the worst. An answer that may be a copy of an earlier
    one counts only if it lowers the winnings. An answer that repeats what the model is known to answer is
    no draw, and is not bet on. Of a model's own rounds only the part that asks every question as often is bet
    on. If a question is asked several times in a row, and of two questions, the winnings are read when all
    have been asked as often.
    """

    def __init__(
        self,
        cells: Sequence[Cells],
        run_sequence: RunSequence,
        weights: Sequence[float],
        first: ArrayLike,
        second: ArrayLike,
        target: Target = "benchmark",
    ) -> None:
        self.cells = tuple(cells)
        self.run_sequence = run_sequence
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        self._by_question = target == "population"
        self._counts = len(self.cells) == 1 and cells[0].scale.binary and not self._by_question
        of_question = np.array(weights) / [one.sequence.questions for one in cells]
        self._stake = of_question / of_question.max()
        pairs = self.first.size
        self.squares = np.zeros(pairs)
        self._lead = np.zeros(pairs)
        self._alone = np.zeros((2, pairs), dtype=np.int64)  # of which one alone is right
        self._doubt = np.zeros((3, pairs), dtype=np.int64)  # the same of copies, and lost ones
        self._doubtful = False
        repeated = cells[0].sequence.samples_per_prompt > 1
        self._held = repeated or run_sequence.questions == FEW  # until all are asked as often
        width = 1
        if not self._counts:
            width = RATES.size
        self._won = np.zeros((pairs, width))
        self._shown = np.zeros((2, pairs))  # the winnings that were last read, and their lead
        self._table = _LogFactorials()

    @property
    def step_stake(self) -> float:
        """Mean stake of a step: Σ d is so much of the difference of the overall scores, a step."""
        sizes = np.array([one.sequence.questions for one in self.cells])
        return float((self._stake * sizes).sum() / sizes.sum())

    def foreseen(self, pairs: Ints, difference: Floats, progress: Floats, steps: Floats) -> Floats:
        """Return the log winnings of pairs after `steps`, if their differences are then as given.

        `progress` are the steps read; all but `pairs` broadcast to shape (p, …).
        """
        sequence = self.cells[0].sequence
        first = (1.0 + sequence.samples_per_prompt) * self.run_sequence.questions
        kind = self.run_sequence.questions, first if sequence.own_rounds else inf
        now, then = (bet_steps(number, *kind, sample=self._by_question) for number in (progress, steps))
        shape = (pairs.size,) + (1,) * (difference.ndim - 1)
        squares = self.squares[pairs].reshape(shape) * then / np.maximum(now, 1.0)
        return expected_log_bets(difference * self.step_stake * then, squares)

    @property
    def share(self) -> float:
        """Share of the stake of a pair that is bet."""
        return answers_share(self.run_sequence.questions, sample=self._by_question)

    def read(self, pairs: Ints, start: int, stop: int) -> Winnings:
        """Read pairs on to step `stop`; return their winnings after steps ``start .. stop-1``.

        Parameters
        ----------
        pairs : ndarray of int, shape (p,)
            Pairs that have been read up to `start`.
        start, stop : int
            Steps of the trial sequence to read.
        """
        if self._counts:
            width = stop - start
        else:
            width = max(1, AT_ONCE // max(pairs.size, 1))
        ends = [*range(start + width, stop, width), stop]
        parts = [self._read(pairs, begin, end) for begin, end in pairwise([start, *ends])]
        if len(parts) == 1:
            return parts[0]
        return Winnings(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))

    def _read(self, pairs: Ints, start: int, stop: int) -> Winnings:
        if self._counts:
            read = self._read_counts
        else:
            read = self._read_grid
        won = read(pairs, start, stop)
        if not self._held:
            return won
        return self._when_complete(pairs, start, stop, won)

    def _when_complete(self, pairs: Ints, start: int, stop: int, won: Winnings) -> Winnings:
        """Return the winnings as they were when last all questions had been asked as often."""
        passes = np.arange(start + 1, stop + 1) <= self.run_sequence.questions
        ready = passes | self.run_sequence.complete(start, stop)
        last = np.maximum.accumulate(np.where(ready, np.arange(1, ready.size + 1), 0))
        values = np.concatenate([self._shown[:, pairs, None], np.stack(won)], axis=2)[:, :, last]
        self._shown[:, pairs] = values[:, :, -1]
        return Winnings(*values)

    # ------------------------------------------------------------------ right or wrong answers

    def _read_counts(self, pairs: Ints, start: int, stop: int) -> Winnings:
        gap, lost, copied = self._gaps(0, pairs, start, stop)
        change = np.stack([gap > 0.0, gap < 0.0]).astype(np.int64)
        if lost is None and copied is None and not self._doubtful:
            first, second = counts = running(self._alone[:, pairs], change)
            self._alone[:, pairs] = counts[:, :, -1]
            self.squares[pairs] = counts[:, :, -1].sum(axis=0)
            return Winnings(self._table.log_bets(first, second), first - second)
        return self._read_doubtful(pairs, change, lost, copied)

    def _read_doubtful(self, pairs: Ints, change: Ints, lost: Bools | None, copied: Bools | None) -> Winnings:
        """Return winnings if answers may be copies or are lost, which count with the fewer."""
        self._doubtful = True
        none = np.zeros(change.shape[1:], dtype=bool)
        if copied is None:
            copied = none
        surely = running(self._alone[:, pairs], change * ~copied)
        doubt = np.zeros((3, *none.shape), dtype=np.int64)
        doubt[:2], doubt[2] = change * copied, none if lost is None else lost
        doubt = running(self._doubt[:, pairs], doubt)
        self._alone[:, pairs], self._doubt[:, pairs] = surely[:, :, -1], doubt[:, :, -1]
        self.squares[pairs] = surely[:, :, -1].sum(axis=0)
        first, second = surely
        first_copies, second_copies, gone = doubt
        most = np.maximum(first, second)
        least = np.minimum(first, second)
        joining = gone + np.where(first > second, second_copies, first_copies)
        return Winnings(self._table.log_bets(most, np.minimum(least + joining, most)), first - second)

    def _gaps(
        self, task: int, pairs: Ints, start: int, stop: int
    ) -> tuple[Floats, Bools | None, Bools | None]:
        """Return differences of answers, 0 if none is bet on, and if one is lost, or copied."""
        cells = self.cells[task]
        scores = self.cells[task].scale.worth
        models = self.first[pairs], self.second[pairs]
        first, second = (cells.categories[side, start:stop] for side in models)
        gap = scores[first] - scores[second]
        lost = copied = None
        if min(first.min(initial=0), second.min(initial=0)) < 0:
            absent = (first < 0) | (second < 0)
            lost = absent & (first != Mark.FILLED_IN) & (second != Mark.FILLED_IN)
            gap = np.where(absent, 0.0, gap)
        if cells.copied is not None:
            copied = cells.copied[models[0], start:stop] | cells.copied[models[1], start:stop]
        if stop > cells.sequence.shared:
            here = self._alike(cells, pairs, start, stop)
            gap = np.where(here, gap, 0.0)
            if lost is not None:
                lost = lost & here
        return gap, lost, copied

    def _alike(self, cells: Cells, pairs: Ints, start: int, stop: int) -> Bools:
        """Return at which steps both models are asked the same, in a part that asks every question."""
        assert cells.rounds is not None
        sequence = cells.sequence
        if sequence.questions == 1:
            return np.ones((pairs.size, stop - start), dtype=bool)
        early = cells.rounds.since(start, stop) < sequence.questions * sequence.samples_per_prompt
        first, second = (
            sequence.questions_of(models[pairs], start, stop) for models in (self.first, self.second)
        )
        return np.asarray(early & (first == second))

    # ------------------------------------------------------------------ graded answers, several tasks

    def _read_grid(self, pairs: Ints, start: int, stop: int) -> Winnings:
        shape = pairs.size, stop - start
        task = self.run_sequence.task(start, stop)
        won = np.zeros((*shape, RATES.size))
        lead, squares = np.zeros((2, *shape))
        for number, begin, end in self.run_sequence.spans(start, stop):
            if end == begin:
                continue
            here = task == number
            stake = self._stake[number]
            before, after, lost, copied = self._ends(number, pairs, begin, end)
            bet = stake * after[:, :, None] * RATES
            logs = np.log1p(bet) - np.log1p(stake * before[:, :, None] * RATES)
            if lost is not None:
                least, most = lost
                worst = np.where(RATES > 0.0, least[:, :, None], most[:, :, None])
                logs += np.log1p(stake * RATES * worst)
            moved = stake * (after - before)
            if copied is not None:
                logs = np.where(copied[:, :, None], np.minimum(logs, 0.0), logs)
                moved = np.where(copied, 0.0, moved)
            won[:, here], lead[:, here] = logs, moved
            squares[:, here] = stake**2 * (after**2 - before**2)
        log_e = np.cumsum(np.concatenate([self._won[pairs, None], won], axis=1), axis=1)[:, 1:]
        lead = running(self._lead[pairs], lead)
        self._won[pairs], self._lead[pairs] = log_e[:, -1], lead[:, -1]
        self.squares[pairs] += squares.sum(axis=1)
        return Winnings(log_mean(log_e), lead)

    def _ends(
        self, task: int, pairs: Ints, start: int, stop: int
    ) -> tuple[Floats, Floats, tuple[Floats, Floats] | None, Bools | None]:
        """Return what is bet on before and after each step of a task, ranges of lost ones, and the copied."""
        gap, lost, copied = self._gaps(task, pairs, start, stop)
        before = np.zeros(gap.shape)
        after = gap
        if self._by_question:
            models = np.concatenate([self.first[pairs], self.second[pairs]])
            path = self.cells[task].path(models, start, stop)
            before, after = (_known_gap(means, pairs.size) for means in (path.before, path.after))
            copied = None  # a mean is right whether its answers are copies or not
        if lost is None or not lost.any():
            return before, after, None, copied
        return before, after, self._range(task, pairs, start, stop, lost), copied

    def _range(self, task: int, pairs: Ints, start: int, stop: int, lost: Bools) -> tuple[Floats, Floats]:
        """Return the least and the largest difference if an answer is lost; 0 otherwise."""
        cells = self.cells[task]
        ends = []
        for models in (self.first, self.second):
            category = cells.categories[models[pairs], start:stop]
            score = cells.scale.worth[category]
            ends.append((np.where(category < 0, 0.0, score), np.where(category < 0, 1.0, score)))
        (least, most), (other_least, other_most) = ends
        return np.where(lost, least - other_most, 0.0), np.where(lost, most - other_least, 0.0)


def _known_gap(means: Floats, pairs: int) -> Floats:
    """Return first less second model's means; 0 if one has no answer yet."""
    gap = means[:pairs] - means[pairs:]
    return np.where(np.isnan(gap), 0.0, gap)


class _LogFactorials:
    """log Γ(n + ½) and log Γ(n + 1), kept for the numbers that come."""

    def __init__(self) -> None:
        self._half = self._whole = np.zeros(0)

    def log_bets(self, first: Ints, second: Ints) -> Floats:
        """Return :func:`log_bets` of whole numbers."""
        both = first + second
        most = int(both.max(initial=0))
        if most >= self._half.size:
            from scipy.special import gammaln

            number = np.arange(2 * most + 64)
            self._half = gammaln(number + 0.5) - 0.5 * log(pi)
            self._whole = gammaln(number + 1.0) - number * log(2.0)
        return np.asarray(self._half[first] + self._half[second] - self._whole[both])
