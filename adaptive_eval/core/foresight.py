"""What is foreseen of contrasts: which ones the trials in flight will decide, and when to look next.

With hundreds of trials in flight, most trials issued near the end of a comparison complete after its call.
So a contrast gets no more trials once those in flight are predicted to decide it, and a run starts slowly,
because its first trials may decide many contrasts.

While no call can end the need for a model's trials, answers wait and are read together. Decisions fall at the
same steps however the steps are read, and to read many at once costs little more than to read one. A look
that comes too late costs trials that were issued after the decision it would have found.
"""

from collections.abc import Sequence
from math import log
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from scorio.sequential.parts import (
    FINISHED,
    FLOOR,
    GUARD,
    MIN_TRIALS,
    TRUST,
    Bools,
    Cells,
    Floats,
    Ints,
    contrast_variance,
    log_evidence,
    log_evidence_above,
    log_evidence_of_claim,
    log_tie_evidence,
)

SLOW_START = 32
"""Trials a model may have in flight before any is answered; a call needs at least ten."""


KNOWN_FROM = 5
"""Answers of each model from which on a difference is foreseen."""
_NONE = np.zeros(0, dtype=np.int64)
LOOKS = 16
"""Predictions while as many trials are issued and completed as are in flight."""
SMALL_FLIGHT = 1 / 16
"""Trials in flight for each that is complete, below which those that are complete say enough; also the part
of its trials that a contrast is asked while it waits for other calls."""
CHANCE = 1 / 3
"""A contrast waits for its trials in flight if they decide it with this chance."""
ON_THE_WAY, AT_THE_END = (-NormalDist().inv_cdf(chance) for chance in (CHANCE / 2, CHANCE))
"""Standard deviations by which a difference grows with this chance: for a winner, which the highest evidence
decides (the reflection principle), and for a tie, whose bound widens."""
FAR = 2.0
"""A need of so many times the trials of the furthest model is taken for endless."""
DECIDERS = ("anytime",)
"""Rules whose evidence can be predicted."""


class Drain:
    """Finds the contrasts that the trials in flight will probably decide, or nearly so.

    A pair of models is predicted from all their answers, also those that wait for earlier ones. Of other
    contrasts the present difference is kept, while its variance shrinks in proportion to the trials; the log
    winnings of bets on a number grow in proportion to them. A prediction only holds back trials: when it
    fails, the contrast asks again as soon as the trials are complete.
    """

    def __init__(self, comparison: SessionContrasts) -> None:
        self._comparison = comparison
        self._predicts = comparison.rule.name in DECIDERS
        self._foresight = Foresight(comparison.answers, comparison.fold.levels.guard)
        self._models = len(comparison.spec.models)
        self._due = 0
        self._rows = self._first = self._second = _NONE
        self._until = np.zeros(0)

    def needs(self, issued: Sequence[int]) -> Floats | None:
        """Return up to which step each contrast is forecast to need its models; None if nothing is awaited.

        It is infinite if nothing is foreseen, or if it is far.
        """
        board = self._comparison.answers
        if not self._predicts or issued == board.complete:
            return None
        asked = [model for model in range(self._models) if issued[model] < FINISHED]
        trials = sum(issued[model] for model in asked)
        if trials + board.answered >= self._due:
            flight = trials - sum(board.complete[model] for model in asked)
            later = max(flight // LOOKS, 4 * len(self._comparison.members))
            self._due = trials + board.answered + later
            self._look(issued, flight)
        needs = np.full(self._comparison.fold.verdict.size, np.inf)
        reach = fewer_of(issued, self._first, self._second)
        complete = reach <= fewer_of(board.complete, self._first, self._second)
        # A contrast that is complete may be foreseen to end by winners elsewhere, which may never come.
        further = np.where(complete, (1.0 + SMALL_FLIGHT) * reach + 1.0, 0.0)
        needs[self._rows] = np.maximum(self._until, further)
        return needs

    def _look(self, issued: Sequence[int], flight: int) -> None:
        """Find up to which step each contrast will probably need its models."""
        comparison, goal = self._comparison, self._comparison.contrasts
        complete = max(sum(comparison.answers.complete[: self._models]), 1)
        rows = np.flatnonzero(comparison.fold.needed & ~goal.measured)
        first = goal.first[rows]
        second = goal.partner[rows]
        reach = fewer_of(issued, first, second)
        latest, progress = comparison.latest, comparison.fold.progress[rows]
        growth = reach / np.maximum(progress, 1)
        ready = (reach >= MIN_TRIALS) & (latest.trials[rows] >= KNOWN_FROM)
        difference = latest.difference[rows]
        variance = np.minimum(latest.variance[rows], 1.0)
        at_margin = np.ones(rows.size)
        known = ready & (variance > 0.0)
        np.divide(latest.margin[rows], variance, out=at_margin, where=known)
        at_reach = variance / np.maximum(growth, 1.0)
        pairs = np.flatnonzero(~goal.single[rows] & (reach > progress))
        if self._foresight.available and pairs.size and flight > SMALL_FLIGHT * complete:
            seen = self._foresight.read(first[pairs], second[pairs], reach[pairs])
            difference[pairs], variance[pairs], at_reach[pairs] = seen[:3]
            ready[pairs] = (reach[pairs] >= MIN_TRIALS) & (seen[3] >= KNOWN_FROM)
        move = np.sqrt(np.maximum(variance - at_reach, 0.0))
        surplus = self._surplus(rows, difference, move, at_reach, at_margin, growth)
        until = reach / np.maximum(np.where(ready, surplus, 0.0), FLOOR)
        going = [trials for trials in issued[: self._models] if trials < FINISHED]
        near = until < FAR * max(going, default=0)
        self._rows = rows[near]
        self._first = first[near]
        self._second = second[near]
        self._until = until[near]

    def _surplus(
        self,
        rows: Ints,
        difference: Floats,
        move: Floats,
        variance: Floats,
        at_margin: Floats,
        growth: Floats,
    ) -> Floats:
        """Return how many times over contrasts are decided, with a chance, if `move` is what is uncertain."""
        comparison, bet = self._comparison, self._comparison.courses.bet[rows]
        size = np.abs(difference)
        ends = size + ON_THE_WAY * move, np.maximum(size - AT_THE_END * move, 0.0)
        steps = comparison.fold.progress[rows] * np.maximum(growth, 1.0)
        evidence, tied = foreseen(comparison, *ends, variance, variance * at_margin)
        evidence = comparison.courses.with_foreseen_bets(rows, evidence, ends[0], steps)
        read = np.maximum(evidence, comparison.latest.statistic[rows])
        evidence = np.where(np.isnan(bet), read, bet * growth)
        # Each winner lowers the threshold of the others, also of those that reached it before.
        winners, won = -1, 0
        while won > winners:
            winners = won
            share = evidence / comparison.fold.levels.winner(comparison.fold.won + winners)
            won = int(((share >= 1.0) & (tied < 1.0)).sum())
        surplus = np.maximum(share, tied)
        claimed = comparison.contrasts.claimed[rows]
        of_claims = foreseen_claims(comparison, rows, difference, ON_THE_WAY * move, variance * at_margin)
        return np.where(claimed, of_claims, surplus)


def foreseen_claims(
    comparison: SessionContrasts, rows: Ints, difference: Floats, move: Floats, at_margin: Floats
) -> Floats:
    """Return how many times over claims reach what decides them; no number for other contrasts.

    The differences may move so far either way, with these variances at the margins of the claims.
    """
    margin, fold = comparison.contrasts.claim[rows], comparison.fold
    if not comparison.contrasts.claims:
        return np.full(difference.shape, np.nan)
    margin = margin.reshape(-1, *(1,) * (difference.ndim - 1))
    held = log_evidence_of_claim(difference + move, 0.0, at_margin, margin)[0]
    failed = log_evidence_of_claim(difference - move, 0.0, at_margin, margin)[1]
    return np.maximum(held / fold.levels.claim(fold.held), failed / fold.levels.claim(fold.failed))


def foreseen(
    comparison: SessionContrasts, largest: Floats, least: Floats, variance: Floats, at_margin: Floats
) -> tuple[Floats, Floats]:
    """Return the log evidence of winners, and how many times over contrasts reach what ends them otherwise.

    Differences may become as large as `largest`, and as small as `least`, with these variances.
    """
    margin, fold = comparison.margin, comparison.fold
    evidence, tied = log_evidence(largest, variance, margin), np.zeros(largest.shape)
    if margin is not None:
        tied = log_tie_evidence(least, at_margin, margin) / fold.tie_threshold
        if claims := fold.levels.claims:
            # The better model of a pair is the one that is sought.
            above = log_evidence_above(largest, at_margin, margin)
            tied = np.maximum(tied, above / log(claims / comparison.alpha))
    return evidence, tied


def fewer_of(trials: Sequence[int], first: Ints, second: Ints) -> Ints:
    """Return the fewer of the trials of the models of each contrast."""
    of_models = np.array(trials)
    return np.asarray(np.minimum(of_models[first], of_models[second]))


AFFORDABLE = 2**22
"""Models squared times questions, up to which all answers are looked at: some milliseconds."""


class Foresight:
    """Estimates of pairs of models when the trials issued so far are complete."""

    def __init__(self, board: SessionAnswers, guard: float = GUARD) -> None:
        self._board, self._guard = board, guard
        self._weights = board.spec.task_weights
        models, questions = len(board.spec.names), board.run_sequence.questions
        self.available = board.spec.stopping.target == "benchmark" and models**2 * questions <= AFFORDABLE
        """Whether it knows this kind of estimate, and is quick enough."""

    def read(self, first: Ints, second: Ints, reach: Ints) -> tuple[Floats, Floats, Floats, Floats]:
        """Return differences and their variances, as far as answers are known and at the end.

        The variance is that between questions in a first pass, and that of the noise after it.

        Parameters
        ----------
        first, second : ndarray of int, shape (p,)
            The models of each pair.
        reach : ndarray of int, shape (p,)
            Trials issued of both.

        Returns
        -------
        difference, variance, at_reach : ndarray of float, shape (p,)
            In unit scores, and its square now and when the trials issued are complete.
        answers : ndarray of float, shape (p,)
            Answers of the model that has fewer.
        """
        difference, variance, at_reach = np.zeros((3, reach.size))
        answers = np.zeros(reach.size)
        for task, weight in enumerate(self._weights):
            mean, now, share, fewer = self._task(task, first, second, reach)
            difference += weight * mean
            variance += weight**2 * now
            at_reach += weight**2 * now * share
            answers += fewer
        return difference, np.maximum(variance, FLOOR), np.maximum(at_reach, FLOOR), answers

    def _task(self, task: int, first: Ints, second: Ints, reach: Ints) -> tuple[Floats, ...]:
        """Return difference, variance, its share that will be left, and the fewer answers, on one task."""
        board, cells = self._board, self._board.cells[task]
        total = cells.sequence.questions
        trials, score, square = self._by_question(task, cells)
        seen, many = (trials > 0).astype(np.float64), np.maximum(trials, 1.0)
        answered = np.maximum(trials.sum(axis=1), 1.0)
        mean = score / many
        spread = square.sum(axis=1) / answered - (score.sum(axis=1) / answered) ** 2
        repeats = np.maximum(answered - seen.sum(axis=1), 0.0)
        # The variance between answers to one question; without repeats, that between all answers.
        within = ((square - score * mean).sum(axis=1) + 2.0 * spread) / (repeats + 2.0)
        noises = seen * within[:, None] / many
        of_mean, of_square, of_noise = (_products(value, seen) for value in (mean, mean**2, noises))
        both = np.maximum(_products(seen, seen)[first, second], 1.0)
        gap = of_square[first, second] + of_square[second, first] - 2.0 * _products(mean, mean)[first, second]
        noise = of_noise[first, second] + of_noise[second, first]
        answered[len(board.spec.models) :] = np.inf  # of references nothing is awaited
        issued = np.maximum(reach * (total / board.run_sequence.questions), 1.0)
        repeating = issued >= total
        fewer = np.minimum(answered[first], answered[second])
        trials_known = np.where(repeating, fewer, both)
        variance = np.where(repeating, noise, gap + self._guard) / both**2
        mean_difference = (of_mean[first, second] - of_mean[second, first]) / both
        return mean_difference, variance, np.minimum(trials_known / issued, 1.0), fewer

    def _by_question(self, task: int, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """Return the answers of each model to each question: their number, Σx and Σx²; shape (L, M) each."""
        board, counts = self._board, cells.counts.astype(np.float64)
        places, categories = [_NONE], [_NONE]
        for model in range(len(board.spec.models)):
            start, stop = int(board.progress[model]), board.furthest[model]
            if stop <= start:
                continue
            ahead = board.answers[model, start:stop]
            here = ahead[board.run_sequence.task(start, stop) == task]
            local = board.run_sequence.local(start)[task]
            asked = cells.sequence.of(np.array([model]), local, local + here.size)[0]
            places.append(model * counts.shape[1] + asked)
            categories.append(here)
        place, category = np.concatenate(places), np.concatenate(categories)
        known = category >= 0
        np.add.at(counts.reshape(-1, counts.shape[2]), place[known], cells.shares[category[known]])
        return counts.sum(axis=2), counts @ cells.levels, counts @ cells.levels**2


def _products(one: Floats, other: Floats) -> Floats:
    """Return the inner products of all rows; without BLAS, whose threads wait longer than these sums take."""
    return np.asarray(np.einsum("im,jm->ij", one, other))


FIRST = 64
"""Steps that are looked at one by one."""
PARTS = np.array([64, 32, 16])
"""The next look is one of these parts of the steps away, or at the next step."""
DEVIATIONS = 4.0
"""Standard deviations by which a difference may move until then."""
PASSES = 2
"""Passes over the questions from which on the noise of a model's answers is taken as known."""
READ_TOGETHER = 100_000
"""Contrasts times steps, so that a look takes little memory."""


def next_look(comparison: SessionContrasts) -> int:
    """Return after how many steps to read on: all but surely, every model is needed until then.

    Differences are taken to move by :data:`DEVIATIONS`, towards a winner and towards a tie.
    """
    now, rows = comparison.reached, np.flatnonzero(comparison.fold.needed)
    most = comparison.contrasts.condition.review or now
    steps = np.minimum(now // PARTS, min(most, now))
    steps = steps[(steps > 1) & (steps * rows.size <= READ_TOGETHER)]
    if now < FIRST or steps.size == 0 or not _foreseeable(comparison, rows):
        return 1
    growth = steps / now
    left = _least_variance(comparison.answers, now, steps)
    goal, latest = comparison.contrasts, comparison.latest
    difference = latest.difference[rows, None]
    variance = latest.variance[rows, None]
    move = DEVIATIONS * np.sqrt(variance * growth / (1.0 + growth))
    after = _After(rows, now + steps[None, :])
    at_margin = latest.margin[rows, None] * left
    called = _is_called(comparison, rows, difference, move, variance * left, at_margin, after)
    if goal.condition.separate:
        open_ = np.zeros((len(comparison.spec.names) + 1, steps.size), dtype=bool)
        for side in (goal.first[rows], goal.second[rows]):
            np.logical_or.at(open_, side, ~called)
        safe = open_[comparison.members].all(axis=0)
    else:
        safe = ~called.any(axis=0)
    return int(steps[safe].max(initial=1))


def _foreseeable(comparison: SessionContrasts, rows: Ints) -> bool:
    """Return whether calls of these contrasts come gradually, and each at a threshold of its own."""
    return (
        comparison.rule.name in DECIDERS
        and not comparison.answers.determinism.claimed
        and not comparison.contrasts.measured[rows].any()
        and bool(np.isnan(comparison.courses.bet[rows]).all())
        and bool((comparison.latest.trials[rows] >= MIN_TRIALS).all())
        and bool(np.isfinite(comparison.latest.variance[rows]).all())
    )


def _least_variance(board: SessionAnswers, now: int, steps: Ints) -> Floats:
    """Return the least share of a variance that may be left after so many steps more.

    It shrinks in proportion to the trials, as the rest of a first pass does, and with the part of the spread
    between questions that repeats replace.
    """
    share = now / (now + steps)
    for column, step in enumerate(steps.tolist()):
        local = board.run_sequence.local(now), board.run_sequence.local(now + step)
        for cells, before, after in zip(board.cells, *local, strict=True):
            (seen, repeats), (seen_then, repeats_then) = map(cells.sequence.asked, (before, after))
            rest = cells.sequence.questions - seen
            left = (cells.sequence.questions - seen_then) / rest if rest else 1.0
            share[column] *= max(left, 0.01) * ((TRUST + repeats) / (TRUST + repeats_then)) ** 2
    return share


class _After(NamedTuple):
    """Contrasts, and the steps after which they are looked at."""

    rows: Ints
    steps: Ints


def _is_called(
    comparison: SessionContrasts,
    rows: Ints,
    difference: Floats,
    move: Floats,
    variance: Floats,
    at_margin: Floats,
    after: _After | None = None,
) -> Bools:
    """Return which contrasts are called if their differences move so much, either way."""
    size = np.abs(difference)
    ends = size + move, np.maximum(size - move, 0.0)
    evidence, tied = foreseen(comparison, *ends, variance, at_margin)
    if after is not None:
        evidence = comparison.courses.with_foreseen_bets(after.rows, evidence, ends[0], after.steps)
    called = (evidence >= comparison.fold.threshold) | (tied >= 1.0)
    claimed = comparison.contrasts.claimed[rows]
    if claimed.any():
        of_claims = foreseen_claims(comparison, rows, difference, move, at_margin)
        called[claimed] = of_claims[claimed] >= 1.0
    return np.asarray(called)


def too_noisy(comparison: SessionContrasts) -> list[str]:
    """Return the references whose noise alone leaves every needed contrast open, whatever is still asked.

    Nothing is returned while any needed contrast may be decided, or is one without a reference.
    """
    spec = comparison.spec
    if not spec.references:
        return []
    goal, rows = comparison.contrasts, np.flatnonzero(comparison.fold.needed)
    stored = np.maximum(goal.first, goal.second)[rows]
    known = comparison.rule.name in DECIDERS and not any(task.clusters for task in spec.tasks)
    if not known or not rows.size or stored.min() < len(spec.models):
        return []
    if any(_may_be_decided(comparison, row) for row in rows.tolist()):
        return []
    return [spec.names[number] for number in np.unique(stored).tolist()]


def _may_be_decided(comparison: SessionContrasts, row: int) -> bool:
    """Return whether a contrast with a reference can get a verdict once its model has no noise any more."""
    live, stored = sorted((int(comparison.contrasts.first[row]), int(comparison.contrasts.second[row])))
    spec = comparison.spec
    variance = 0.0
    moving = 0.0
    for weight, cells in zip(spec.task_weights, comparison.answers.cells, strict=True):
        asked = cells.counts[live].any(axis=1)
        there = cells.counts[stored].any(axis=1)
        if (there & ~asked).any() or comparison.fold.progress[row] < PASSES * spec.questions:
            return True
        (score, noise, _), (other, held, shown) = cells.noise(live), cells.noise(stored)
        latest = cells.latest()
        questions = np.array(there.sum(), dtype=np.float64)
        wider, avg_wider, left, share_left = cells.left_of(np.array([stored]))[:, 0]
        square = np.maximum(((score - other)[there] ** 2).sum() - noise[there].sum(), 0.0)
        remaining = (
            wider * held[there].sum() / questions,
            avg_wider * shown[there].sum() / questions,
            latest.g[stored, 0] * share_left,
            np.minimum(latest.r[stored, 0], left),
        )
        exact = cells.binary and not latest.r[stored, 0]
        guard = 0.0 if exact else comparison.fold.levels.guard
        least = contrast_variance(square, guard, questions, len(there), remaining, spec.stopping.target)
        variance += weight**2 * float(least)
        moving += weight**2 * float(noise[there].sum() / questions**2)
    rows, least_variance = np.array([row]), np.array([variance])
    difference, move = comparison.latest.difference[rows], DEVIATIONS * np.sqrt(np.array([moving]))
    return bool(_is_called(comparison, rows, difference, move, least_variance, least_variance)[0])
