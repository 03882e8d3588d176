"""What is foreseen of contrasts: which ones the trials in flight will decide, and when to look next.

With hundreds of trials in flight, most trials issued near the end of a comparison complete after its call.
So a contrast gets no more trials once those in flight are predicted to decide it, and a run starts slowly,
because its first trials may decide many contrasts.

While no call can end the need for a model's trials, answers wait and are read together. Decisions fall at the
same steps however the steps are read, and to read many at once costs little more than to read one. A look
that comes too late costs trials that were issued after the decision it would have found.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from adaptive_eval.core.board import SessionContrasts
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import Answers, Foresight

SLOW_START = 32
"""Trials a model may have in flight before any is answered; a call needs at least ten."""
GROWTH = 2
"""Trials more that it may have in flight for each that is answered."""

KNOWN_FROM = 5
"""Answers of each model from which on a difference is foreseen."""
_NONE = np.zeros(0, dtype=np.int64)
FEW = 1 / 16
"""The part of a number of trials that changes little: nothing is foreseen again before so many more."""
CHANCE = 1 / 3
"""A contrast waits for its trials in flight if they decide it with this chance."""
ON_THE_WAY, AT_THE_END = (-NormalDist().inv_cdf(chance) for chance in (CHANCE / 2, CHANCE))
"""Standard deviations by which a difference grows with this chance: for a winner, which the highest evidence
decides (the reflection principle), and for a tie, whose bound widens."""
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

        It is infinite if nothing is foreseen.
        """
        board = self._comparison.answers
        if not self._predicts or issued == board.complete:
            return None
        asked = [model for model in range(self._models) if issued[model] < Answers.FINISHED]
        trials = sum(issued[model] for model in asked)
        if trials + board.answered >= self._due:
            flight = trials - sum(board.complete[model] for model in asked)
            later = max(int(FEW * flight), 4 * len(self._comparison.members))
            self._due = trials + board.answered + later
            self._look(issued, flight)
        needs = np.full(self._comparison.fold.verdict.size, np.inf)
        reach = fewer_of(issued, self._first, self._second)
        complete = reach <= fewer_of(board.complete, self._first, self._second)
        # A contrast that is complete may be foreseen to end by winners elsewhere, which may never come.
        further = np.where(complete, (1.0 + FEW) * reach + 1.0, 0.0)
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
        ready = comparison.is_readable(reach) & (latest.trials[rows] >= KNOWN_FROM)
        difference = latest.difference[rows]
        variance = np.minimum(latest.variance[rows], 1.0)
        at_margin = np.ones(rows.size)
        known = ready & (variance > 0.0)
        np.divide(latest.margin[rows], variance, out=at_margin, where=known)
        at_reach = variance / np.maximum(growth, 1.0)
        pairs = np.flatnonzero(~goal.single[rows] & (reach > progress))
        if self._foresight.available and pairs.size and flight > FEW * complete:
            seen = self._foresight.read(first[pairs], second[pairs], reach[pairs])
            difference[pairs], variance[pairs], at_reach[pairs] = seen[:3]
            ready[pairs] = comparison.is_readable(reach[pairs]) & (seen[3] >= KNOWN_FROM)
        move = np.sqrt(np.maximum(variance - at_reach, 0.0))
        surplus = self._surplus(rows, difference, move, at_reach, at_margin, growth)
        until = np.divide(reach, surplus, out=np.full(rows.size, np.inf), where=ready & (surplus > 0.0))
        near = np.isfinite(until)
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
        evidence, tied = comparison.foreseen(*ends, variance, variance * at_margin)
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
        of_claims = comparison.foreseen_claims(rows, difference, ON_THE_WAY * move, variance * at_margin)
        return np.where(claimed, of_claims, surplus)


def fewer_of(trials: Sequence[int], first: Ints, second: Ints) -> Ints:
    """Return the fewer of the trials of the models of each contrast."""
    of_models = np.array(trials)
    return np.asarray(np.minimum(of_models[first], of_models[second]))


READ_BATCH = 64
"""Outcomes that may wait before contrasts are read, while not every needed model has made a step."""


class LookSchedule:
    """When a session reads what it was told: when it does changes no call, which are those of the log."""

    def __init__(self, comparison: SessionContrasts) -> None:
        self._comparison = comparison
        self._step = 1
        self._answered = READ_BATCH

    def is_due(self) -> bool:
        """Return whether a call may depend on what has come since the last look."""
        board = self._comparison.answers
        if board.answered >= self._answered:
            return True
        complete, members = board.complete, self._comparison.members
        return min(map(complete.__getitem__, members), default=Answers.FINISHED) >= self._step

    def horizon(self) -> int | None:
        """Return how far in the log to read: to a step that all needed models made, unless much lies beyond.

        Models at one step are read together. What lies beyond waits for the next look.
        """
        board, members = self._comparison.answers, self._comparison.members
        common = min(map(board.complete.__getitem__, members), default=0)
        if common < self._step:
            return None
        horizon = board.position_by(members, common)
        if board.answered - horizon < READ_BATCH + len(members):
            return horizon
        return None

    def plan_next(self) -> None:
        """Find when to look again, after a look."""
        comparison, ahead = self._comparison, next_look(self._comparison)
        self._step = comparison.reached + ahead
        self._answered = comparison.answers.answered + max(READ_BATCH, ahead * len(comparison.members))


PARTS = FEW / np.array([1, 2, 4])
"""The next look is one of these parts of the steps away, or at the next step until the least part is one."""
DEVIATIONS = 4.0
"""Standard deviations by which a difference may move until then."""
READ_TOGETHER = 100_000
"""Contrasts times steps, or paths that are drawn, so that to look at them takes little memory."""


def next_look(comparison: SessionContrasts) -> int:
    """Return after how many steps to read on: all but surely, every model is needed until then.

    Differences are taken to move by :data:`DEVIATIONS`, towards a winner and towards a tie.
    """
    now, rows = comparison.reached, np.flatnonzero(comparison.fold.needed)
    most = comparison.contrasts.condition.review or now
    steps = np.minimum(PARTS * now, min(most, now)).astype(np.int64)
    early = steps.min() < 1
    steps = steps[(steps > 1) & (steps * rows.size <= READ_TOGETHER)]
    if early or steps.size == 0 or not _foreseeable(comparison, rows):
        return 1
    growth = steps / now
    left = Foresight(comparison.answers, comparison.fold.levels.guard).least_share(now, steps)
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
        and bool(comparison.is_readable(comparison.latest.trials[rows]).all())
        and bool(np.isfinite(comparison.latest.variance[rows]).all())
    )


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
    evidence, tied = comparison.foreseen(*ends, variance, at_margin)
    if after is not None:
        evidence = comparison.courses.with_foreseen_bets(after.rows, evidence, ends[0], after.steps)
    called = (evidence >= comparison.fold.threshold) | (tied >= 1.0)
    claimed = comparison.contrasts.claimed[rows]
    if claimed.any():
        of_claims = comparison.foreseen_claims(rows, difference, move, at_margin)
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
    questions = comparison.spec.questions
    repeats = comparison.fold.progress[row] - questions
    if repeats < questions:  # the noise of its answers is hardly known
        return True
    foresight = Foresight(comparison.answers, comparison.fold.levels.guard)
    left = foresight.without_noise(live, stored)
    if left is None:
        return True
    rows, (variance, noise) = np.array([row]), np.array(left)[:, None]
    difference, move = comparison.latest.difference[rows], DEVIATIONS * np.sqrt(noise)
    return bool(_is_called(comparison, rows, difference, move, variance, variance)[0])
