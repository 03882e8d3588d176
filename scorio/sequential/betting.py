"""A model against a number: evidence that its mean score is another one, by bets on single trials.

A bet of λ on a trial with score x in [0, 1] multiplies the stake by 1 + λ(x − θ₀). Over a pass whose mean
score is θ₀ the product has expectation at most 1, however uneven the questions are, because a product of
positive factors with a given mean is largest when they are equal ([1]_, [2]_). So the stake is an e-value at
the end of every pass, however rare a right (or a wrong) answer is; looks within a pass were checked by
simulation. No variance is estimated from few successes, which is why the level holds far into the tail that a
family of many models needs. The stake is spread over λ as :mod:`scorio.sequential.evidence` spreads
differences. For graded scores and several tasks λ follows the variance of earlier trials, and the level there
was checked by simulation too.

With stored answers of finished models (:mod:`scorio.sequential.control`) most of these bets are on
z = x − θ₀ − β(f − θ₀), where f, with mean θ₀ over the questions, is fixed before the run. Over a pass the
mean of z is that of x − θ₀, so all of the above holds for it too. Only bets on the side on which the score
lies count: early in a pass z may speak for the other side.

A tenth of the stake is placed question by question, and read at the ends of passes from the second on. The
first two passes are one bet: for answers x, y to one question with score p, the factor
exp(λ(x + y − 2θ₀) − ψ(λ)(x − y)²), ψ(λ) = −ln(1 − |λ|) − |λ|, has expectation at most exp(2λ(p − θ₀)). For
right or wrong answers and λ > 0, with r = 1 − p and u = 2λ, that of exp(λ(x + y − 2p) − ψ(λ)(x − y)²) is
exp(ur)(1 − ur + r²(exp(−u) − 1 + u)) ≤ 1, because (exp(−u) − 1 + u)/u² falls with u; for graded scores it was
checked on 60,000 distributions. In later passes, if earlier ones predict the score m of a question, the
factor exp(λ(m − θ₀))(1 + λ(x − m)) has expectation at most exp(λ(p − θ₀)). Over a complete pass these
exponents sum to 0. Such bets win on the noise within questions alone, which is small if most questions are
always, or never, answered right.

References
----------
.. [1] Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024).
.. [2] Hoeffding, "On the distribution of the number of successes in independent trials", AMS 27 (1956).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, log, log1p
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import AT_ONCE, Bools, Floats, Integers, Ints, floats
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import ON_CLUSTERS, RATES
from scorio.sequential.contrasts import Target
from scorio.sequential.control import StoredAnswers, control
from scorio.sequential.evidence import FLOOR, MIXTURE
from scorio.sequential.moments import Mark
from scorio.sequential.trial_bets import MOST, TrialBets, worst_lead
from scorio.sequential.trial_sequence import RunSequence

SIZES: Final = RATES.size // 2
"""Differences above the number that are bet on, and below it: as many as rates of other bets."""
SMALLEST: Final = 0.004
"""The smallest of them."""
BY_QUESTION: Final = 1.0 - ON_CLUSTERS
"""Share of the stake that is bet question by question: as beside bets on clusters, a tenth is for what seldom
wins first."""
QUIET: Final = (1.0, 0.25, 0.0625)
"""Variances within questions, over θ₀(1 − θ₀), that its first bet is made for, in equal parts."""
CONTROLLED: Final = 0.8
"""Share of the bets on trials that is on scores less what stored answers predict, if there are some."""


def stakes(value: float) -> tuple[Floats, Floats]:
    """Return the differences that are bet on, and the logarithm of each one's share of the stake.

    Parameters
    ----------
    value : float
        The number θ₀ that a score is held against, in (0, 1).

    Returns
    -------
    tuple of ndarray, each of shape (32,)
        Differences within −θ₀ and 1 − θ₀, and log shares; half of the stake lies on each side.

    Examples
    --------
    >>> differences, shares = stakes(0.9)
    >>> bool(-0.9 < differences.min() and differences.max() < 0.1)
    True
    >>> round(float(np.exp(shares[differences < 0]).sum()), 9)
    0.5
    """
    sides = []
    for sign, room in ((-1.0, value), (1.0, 1.0 - value)):
        size = np.geomspace(min(SMALLEST, 0.25 * room), MOST * room, SIZES)
        density = sum(weight / tau * np.exp(-0.5 * (size / tau) ** 2) for weight, tau in MIXTURE)
        share = np.maximum(size * density, 1e-12)
        sides.append((sign * size, np.log(0.5 * share / share.sum())))
    (below, low), (above, high) = sides
    return np.concatenate([below, above]), np.concatenate([low, high])


def most_winnings(value: float, sizes: Sequence[Floats], weights: Sequence[float]) -> float:
    """Return the most that bets on a sample of questions can win, in logarithms.

    Parameters
    ----------
    value : float
        The number that a score is held against, in unit scores.
    sizes : sequence of ndarray of float
        Per task the number of questions of each cluster; ones without clusters.
    weights : sequence of float
        Weight of each task; they sum to 1.
    """
    value = min(max(value, 1e-6), 1.0 - 1e-6)
    differences, shares = stakes(value)
    questions = np.array([size.sum() for size in sizes])
    of_trial = np.asarray(weights) * questions.sum() / questions
    largest = max(float(size.max()) for size in sizes)
    most = MOST / (of_trial.max() * largest)
    bets = np.clip(differences / (value * (1.0 - value) * largest), -most / (1.0 - value), most / value)
    ends = []
    for lead in (1.0 - value, -value):
        won = shares.copy()
        for weight, size in zip(of_trial.tolist(), sizes, strict=True):
            won += np.log1p(bets[:, None] * weight * size * lead).sum(axis=1)
        ends.append(float(_log_sum(won)))
    return max(ends)


class ScoreBets:
    """Running bets on models' scores, each against a number.

    Parameters
    ----------
    cells : sequence of Cells
        The trials of the models, per task.
    run_sequence : RunSequence
        The trial sequence of all tasks.
    weights : sequence of float
        Weight of each task in the overall score; they sum to 1.
    models : array_like of int, shape (P,)
        The model of each contrast.
    values : array_like of float, shape (P,)
        The number each is held against, in unit scores.
    target : {'benchmark', 'population'}
        Target of the estimate. With ``population`` one bet is placed on the mean of each question, or
        cluster.
    clusters : sequence of (array_like or None), optional
        Per task the cluster of each question; only with ``population``.
    stored : StoredAnswers, optional
        Answers of finished models: most bets on trials are on scores less what these predict. Not with
        ``population``, over whose questions the predictions have a mean that is not known.

    Notes
    -----
    A trial counts once all questions have been asked as often before it, so that calibration repeats, and
    questions that an allocation asks more often, weigh no more than others. A lost answer counts against each
    bet as much as any score could. So does a repeat that is dropped, unless bets are on means of questions: a
    prediction in its place would count the answers before it twice.
    """

    def __init__(
        self,
        cells: Sequence[Cells],
        run_sequence: RunSequence,
        weights: Sequence[float],
        models: ArrayLike,
        values: ArrayLike,
        target: Target = "benchmark",
        clusters: Sequence[ArrayLike | None] | None = None,
        stored: StoredAnswers | None = None,
    ) -> None:
        self.cells, self.run_sequence = cells, run_sequence
        self.models = np.asarray(models, dtype=np.int64)
        self.values = np.clip(floats(values), 1e-6, 1.0 - 1e-6)
        sizes = np.array([one.sequence.questions for one in cells])
        self._offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        # What a trial of each task weighs: 1 on average over the questions.
        self._weight = np.asarray(weights) * sizes.sum() / sizes
        self._most = MOST / self._weight.max()  # the largest bet on a question
        contrasts = self.models.size
        tables = list(map(stakes, self.values.tolist()))
        self._sizes = np.array([size for size, _ in tables]).reshape(contrasts, 2 * SIZES)
        self._shares = np.array([share for _, share in tables]).reshape(contrasts, 2 * SIZES)
        learns = len(cells) > 1 or not cells[0].scale.binary
        weight = np.repeat(self._weight, sizes)
        self._on_trials = [TrialBets(self.values, self._sizes, weight, learns=learns)]
        self._plain = self._on_trials[0].won
        if stored is not None and target == "benchmark":
            predict = partial(control, stored, weight)
            controlled = TrialBets(self.values, self._sizes, weight, learns=learns, predict=predict)
            self._on_trials.append(controlled)
        self._careful = np.zeros_like(self._sizes)
        self._passes = np.zeros(contrasts, dtype=np.int64)
        self._past = np.zeros((3, contrasts, int(sizes.sum())))  # n, Σx, Σx² of complete passes
        self._ends: list[int] = []
        self._scanned = 0
        self._begun = np.zeros(1, dtype=np.int64)
        self._groups: _Groups | None = None
        if target == "population":
            self._groups = _Groups(self._offset, clusters or [None] * len(cells), contrasts)

    def read(self, rows: Ints, start: int, stop: int, side: Floats | None = None) -> Floats:
        """Read on to step `stop`; return log e-values after steps ``start .. stop-1``.

        Parameters
        ----------
        rows : ndarray of int, shape (p,)
            Contrasts that have been read up to `start`.
        start, stop : int
            Steps of the trial sequence to read.
        side : ndarray of float, shape (p, stop − start), optional
            On which side of the number each score lies: its sign. Of bets on answers less what is predicted
            only those on this side count; by default all.

        Returns
        -------
        ndarray of float, shape (p, stop − start)
            Log e-values.
        """
        if self._groups is not None:
            return self._read_groups(self._groups, rows, start, stop)
        pieces, first = [], start
        while start < stop:
            end = int(min(self._pass_end(self._pass_of(rows), stop), start + AT_ONCE // rows.size + 1, stop))
            part = None
            if side is not None:
                part = side[:, start - first : end - first]
            pieces.append(self._read_within_pass(rows, start, end, part))
            while self._pass_end(self._pass_of(rows), stop) <= end:
                self._close_pass(rows, end)
                won = [bets.won[rows, None] for bets in self._on_trials]
                last = None
                if part is not None:
                    last = part[:, -1:]
                pieces[-1][:, -1:] = self._log_e(rows, won, last)
            start = end
        return np.concatenate(pieces, axis=1)

    def _pass_of(self, rows: Ints) -> int:
        return int(self._passes[rows[0]])

    def _log_e(self, rows: Ints, won: Sequence[Floats], side: Floats | None) -> Floats:
        """Return the log of the whole stake, given the log winnings (p, steps, sizes) of bets on trials."""
        shares = self._shares[rows, None]
        log_e = _log_sum(shares + won[0])
        if len(won) > 1:
            controlled = shares + won[1]
            if side is not None:
                controlled = np.where(self._sizes[rows, None] * side[:, :, None] > 0.0, controlled, -np.inf)
            both = log1p(-CONTROLLED) + log_e, log(CONTROLLED) + _log_sum(controlled)
            log_e = np.logaddexp(*both)
        careful = _log_sum(self._shares[rows] + self._careful[rows])
        return np.logaddexp(log1p(-BY_QUESTION) + log_e, log(BY_QUESTION) + careful[:, None])

    # ------------------------------------------------------------------ bets on trials

    def _read_within_pass(self, rows: Ints, start: int, stop: int, side: Floats | None) -> Floats:
        task, question, repeat = self._asked(start, stop)
        counted = repeat == self._pass_of(rows)
        score = self._scores(rows, start, stop, task)
        lead = self._lead(rows, score, question)
        lost = np.isposinf(score)
        won = [bets.read(rows, lead, lost, question, counted) for bets in self._on_trials]
        return self._log_e(rows, won, side)

    def _asked(self, start: int, stop: int) -> tuple[Ints, Ints, Ints]:
        """Return task, question (counted over all tasks) and earlier askings of each step."""
        task = self.run_sequence.task(start, stop).astype(np.int64)
        question = np.empty_like(task)
        repeat = np.empty_like(task)
        for number, begin, end in self.run_sequence.spans(start, stop):
            sequence = self.cells[number].sequence
            question[task == number] = self._offset[number] + sequence.question(begin, end)
            repeat[task == number] = sequence.repeats(begin, end)
        return task, question, repeat

    def _scores(self, rows: Ints, start: int, stop: int, task: Ints) -> Floats:
        """Return the scores of some steps, see :func:`_with_missing`."""
        score = np.empty((rows.size, stop - start))
        for number, begin, end in self.run_sequence.spans(start, stop):
            categories = self.cells[number].categories[self.models[rows], begin:end]
            score[:, task == number] = _with_missing(self.cells[number], categories)
            copied = self.cells[number].copied
            if copied is not None:  # nothing may be won by a copy
                score[:, task == number] = np.where(
                    copied[self.models[rows], begin:end], inf, score[:, task == number]
                )
        return score

    def _lead(self, rows: Ints, score: Floats, question: Ints) -> Floats:
        """Return by how much scores exceed the number; of trials without one, by how much earlier ones do."""
        value = self.values[rows, None]
        n, total, _ = self._past[:, rows[:, None], question]
        predicted = np.where(n > 0, total / np.maximum(n, 1.0), value)
        return np.where(np.isfinite(score), score, predicted) - value

    # ------------------------------------------------------------------ passes

    def _pass_end(self, number: int, stop: int) -> float:
        """Return the step by which every question has been asked `number` + 1 times; inf if after `stop`."""
        if stop > self._scanned:
            repeat = self._asked(self._scanned, stop)[2]
            while True:
                this = len(self._ends)
                before = 0
                if this < self._begun.size:
                    before = self._begun[this]
                places = np.flatnonzero(repeat == this)
                missing = int(self._offset[-1] - before)
                if places.size < missing:
                    break
                if missing:
                    until = self._scanned + int(places[missing - 1]) + 1
                else:
                    until = self._scanned
                self._ends.append(until)
            most = max(int(repeat.max()) + 1, self._begun.size)
            self._begun = np.pad(self._begun, (0, most - self._begun.size))
            self._begun += np.bincount(repeat, minlength=most)
            self._scanned = stop
        end = inf
        if number < len(self._ends):
            end = self._ends[number]
        if end <= stop:
            return end
        return inf

    def _close_pass(self, rows: Ints, stop: int) -> None:
        """Settle the bets question by question on the pass that has ended, and begin the next."""
        number = self._pass_of(rows)
        score, _ = self._scores_of_pass(rows, number, stop)
        if number == 1:
            self._careful[rows] += self._won_by_pairs(rows, score)
        elif number > 0:
            self._careful[rows] += self._won_by_question(rows, score)
        self._careful[rows[np.isposinf(score).any(axis=1)]] = -inf  # it is given up with an answer lost
        known = np.isfinite(score)
        found = np.where(known, score, 0.0)
        self._past[:, rows] += np.stack([known.astype(np.float64), found, found * found])
        self._passes[rows] = number + 1
        early, asked = self._scores_of_pass(rows, number + 1, stop)
        if asked.any():
            question = np.flatnonzero(asked)
            score = early[:, asked]
            lead = self._lead(rows, score, question)
            lost = np.isposinf(score)
            for bets in self._on_trials:
                bets.read(rows, lead, lost, question, np.ones(question.size, dtype=bool))

    def _scores_of_pass(self, rows: Ints, number: int, stop: int) -> tuple[Floats, Bools]:
        """Return the scores of trials asked after `number` others of their question, and which were asked."""
        score = np.full((rows.size, int(self._offset[-1])), np.nan)
        asked = np.zeros(score.shape[1], dtype=bool)
        for task, (cells, end) in enumerate(zip(self.cells, self.run_sequence.local(stop), strict=True)):
            steps = np.flatnonzero(cells.sequence.repeats(0, end) == number)
            question = self._offset[task] + cells.sequence.question(0, end)[steps]
            at = self.models[rows, None], steps
            score[:, question] = _with_missing(cells, cells.categories[at])
            if cells.copied is not None:
                score[:, question] = np.where(cells.copied[at], inf, score[:, question])
            asked[question] = True
        return score, asked

    def _won_by_pairs(self, rows: Ints, score: Floats) -> Floats:
        """Return the log winnings of the bets on the first two passes, of which `score` is the second."""
        n, total, _ = self._past[:, rows]
        value = self.values[rows, None]
        pair = np.stack([np.where(n > 0, total, np.nan), np.where(np.isfinite(score), score, np.nan)])
        answers = (~np.isnan(pair)).sum(axis=0)
        lead = np.nansum(pair - value, axis=0) * 2.0 / np.maximum(answers, 1)
        # Of a lost answer the worst is assumed: that it was the opposite of the other.
        square = np.where(answers == 2, np.diff(pair, axis=0)[0] ** 2, 1.0) * (answers > 0)
        most, won = self._most, []
        for quiet in QUIET:
            bets = np.clip(self._sizes[rows] / (quiet * value * (1.0 - value)), -most, most)
            log_e = np.zeros_like(bets)
            for task, weight in enumerate(self._weight.tolist()):
                part = slice(self._offset[task], self._offset[task + 1])
                risk = np.abs(weight * bets)
                log_e += weight * bets * lead[:, part].sum(axis=1)[:, None]
                log_e += (np.log1p(-risk) + risk) * square[:, part].sum(axis=1)[:, None]
            won.append(log_e)
        return _log_sum(np.stack(won, axis=-1)) - log(len(QUIET))

    def _won_by_question(self, rows: Ints, score: Floats) -> Floats:
        """Return the log winnings of bets on a complete pass, with scores predicted from earlier passes."""
        n, total, squares = self._past[:, rows]
        mean = np.empty_like(total)
        noise = np.empty_like(total)
        weight = np.repeat(self._weight, np.diff(self._offset))
        for task, cells in enumerate(self.cells):
            part = slice(self._offset[task], self._offset[task + 1])
            trials = n[:, part].astype(np.int64)
            sums = (total[:, part], squares[:, part])
            trials[~trials.any(axis=1)] = 1  # without any answer; what is fitted is not used then
            prior = cells.scale.prior(trials, *sums)[:, None]
            mean[:, part], noise[:, part] = prior.mean(trials, sums[0]), prior.variance(trials, *sums)
        mean = np.where(n > 0, mean, self.values[rows, None])
        lead = weight * (np.where(np.isfinite(score), score, mean) - mean)
        variance = np.maximum((weight**2 * noise).mean(axis=1), FLOOR)[:, None]
        bets = np.clip(self._sizes[rows] / variance, -self._most, self._most)
        shift = (weight * (mean - self.values[rows, None])).sum(axis=1)
        won = bets * shift[:, None]
        for piece in np.split(lead, range(256, lead.shape[1], 256), axis=1):
            won += np.log1p(bets[:, None] * piece[:, :, None]).sum(axis=1)
        return np.asarray(won)

    # ------------------------------------------------------------------ bets on questions, or on clusters

    def _read_groups(self, groups: _Groups, rows: Ints, start: int, stop: int) -> Floats:
        task, question, _ = self._asked(start, stop)
        change = np.zeros((rows.size, stop - start))
        lost = np.zeros(change.shape, dtype=bool)
        for number, begin, end in self.run_sequence.spans(start, stop):
            if end == begin:
                continue
            path = self.cells[number].path(self.models[rows], begin, end)
            answered = self.cells[number].categories[self.models[rows], begin:end] != Mark.MISSING
            before = np.where(path.fresh, self.values[rows, None], path.before)
            gain = np.where(answered, path.after - before, 0.0)
            change[:, task == number] = self._weight[number] * gain
            lost[:, task == number] = ~answered
        most = MOST / (self._weight.max() * groups.largest)
        value = self.values[rows, None]
        variance = value * (1.0 - value) * groups.largest
        bets = np.clip(self._sizes[rows] / variance, -most / (1.0 - value), most / value)
        log_e = np.empty_like(change)
        for column, one in enumerate(question.tolist()):
            worst = self._weight[task[column]] * worst_lead(self.values[rows], self._sizes[rows])
            self._plain[rows] += np.where(lost[:, [column]], np.log1p(bets * worst), 0.0)
            before, after = groups.add(rows, one, change[:, column])
            self._plain[rows] += np.log1p(bets * after[:, None]) - np.log1p(bets * before[:, None])
            log_e[:, column] = _log_sum(self._shares[rows] + self._plain[rows])
        return log_e


class _Groups:
    """By how much the questions of each cluster exceed the number, summed."""

    def __init__(self, offset: Ints, clusters: Sequence[ArrayLike | None], contrasts: int) -> None:
        numbers, first = [], 0
        for size, names in zip(np.diff(offset).tolist(), clusters, strict=True):
            if names is None:
                own = np.arange(size)
            else:
                own = np.unique(np.asarray(names), return_inverse=True)[1]
            numbers.append(first + own)
            first += int(own.max()) + 1
        self._group = np.concatenate(numbers)
        self._sum = np.zeros((contrasts, first))
        self.largest = int(np.bincount(self._group).max())

    def add(self, rows: Ints, question: int, change: Floats) -> tuple[Floats, Floats]:
        """Return the sums of the question's cluster before and after a change."""
        group = self._group[question]
        before = self._sum[rows, group]
        self._sum[rows, group] = before + change
        return before, before + change


def _with_missing(cells: Cells, categories: Integers) -> Floats:
    """Return scores: infinite of a lost or dropped trial, not a number of one that needed no answer."""
    known = np.where(categories < 0, np.nan, cells.scale.scores[np.maximum(categories, 0)])
    return np.where((categories == Mark.MISSING) | (categories == Mark.DROPPED), inf, known)


def _log_sum(values: Floats) -> Floats:
    """Return log Σ exp over the last axis."""
    peak = np.maximum(values.max(axis=-1), -1e300)
    total = np.exp(values - peak[..., None]).sum(axis=-1)
    return np.asarray(peak + np.log(np.maximum(total, 1e-300)))
