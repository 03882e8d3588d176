"""The limit on trials in flight: no more than the open contrasts can use.

With hundreds of trials in flight, most trials issued near the end of a comparison complete after its call.
So a contrast gets no more trials once those in flight are predicted to decide it, and a run starts slowly,
because its first trials may decide many contrasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.foresight import Foresight
from scorio.sequential.parts import MIN_QUESTIONS, log_evidence, log_evidence_above, log_tie_evidence

SLOW_START = 32
"""Trials a model may have in flight before any is complete; a call needs at least about 21."""


def most_in_flight(complete: Sequence[int]) -> list[int]:
    """Return how many trials each model may have in flight, given the length of its common prefix.

    Examples
    --------
    >>> most_in_flight([0, 100])
    [32, 132]
    """
    return [SLOW_START + steps for steps in complete]


_NONE = np.zeros(0, dtype=np.int64)
LOOKS = 16
"""Predictions while as many trials are issued and completed as are in flight."""
SMALL_FLIGHT = 1 / 16
"""Trials in flight for each that is complete, below which those that are complete say enough."""
DECIDERS = ("anytime",)
"""Rules whose evidence can be predicted."""


class Drain:
    """Finds the contrasts that the trials in flight will probably decide, or nearly so.

    A pair of models is predicted from all their answers, also those that wait for earlier ones. Of other
    contrasts the present difference is kept, while its variance shrinks in proportion to the trials; the log
    winnings of bets on a number grow in proportion to them. A prediction only holds back trials: when it
    fails, the contrast asks again as soon as the trials are complete.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._predicts = comparison.rule.name in DECIDERS
        self._foresight = Foresight(comparison.board, comparison.fold.levels.guard)
        self._models = len(comparison.spec.models)
        self._due = 0
        self._closing = self._first = self._second = _NONE

    def closed(self, issued: Sequence[int]) -> NDArray[np.int64]:
        """Return the contrasts that need no further trials, given the steps that each model was issued."""
        board = self._comparison.board
        if not self._predicts or issued == board.complete:
            return _NONE
        trials = sum(issued[: self._models])
        if trials + board.answered >= self._due:
            flight = trials - sum(board.complete[: self._models])
            later = max(flight // LOOKS, 4 * len(self._comparison.members))
            self._due = trials + board.answered + later
            self._look(issued, flight)
        if self._closing.size == 0:
            return _NONE
        models = self._first, self._second
        return self._closing[_of_both(issued, *models) > _of_both(board.complete, *models)]

    def _look(self, issued: Sequence[int], flight: int) -> None:
        """Find the contrasts that are decided when all that is issued is complete."""
        comparison, goal = self._comparison, self._comparison.goal
        complete = max(sum(comparison.board.complete[: self._models]), 1)
        rows = np.flatnonzero(comparison.fold.needed & ~goal.measured)
        first, second = goal.first[rows], np.where(goal.single[rows], goal.first[rows], goal.second[rows])
        reach = _of_both(issued, first, second)
        awaited = reach > _of_both(comparison.board.complete, first, second)
        rows, reach, first, second = (each[awaited] for each in (rows, reach, first, second))
        single = goal.single[rows]
        growth = (reach / np.maximum(comparison.fold.progress[rows], 1))[:, None]
        ready = comparison.latest.questions[rows] >= MIN_QUESTIONS
        difference, variance = (
            comparison.latest.difference[rows, None],
            comparison.latest.variance[rows, None],
        )
        at_margin = np.ones((rows.size, 1))
        np.divide(
            comparison.latest.margin[rows, None],
            variance,
            out=at_margin,
            where=ready[:, None] & (variance > 0.0),
        )
        variance = variance / growth
        pairs = np.flatnonzero(~single)
        if self._foresight.available and pairs.size and flight > SMALL_FLIGHT * complete:
            of_pairs = first[pairs], second[pairs], reach[pairs]
            mean, spread, questions = self._foresight.read(
                *of_pairs, comparison.reached, difference[pairs, 0]
            )
            difference, variance = (np.repeat(each, mean.shape[1], axis=1) for each in (difference, variance))
            difference[pairs], variance[pairs], ready[pairs] = mean, spread, questions >= MIN_QUESTIONS
        decided = ready & self._decided(rows, difference, variance, at_margin, growth[:, 0])
        self._closing, self._first, self._second = rows[decided], first[decided], second[decided]

    def _decided(
        self,
        rows: NDArray[np.int64],
        difference: NDArray[np.float64],
        variance: NDArray[np.float64],
        at_margin: NDArray[np.float64],
        growth: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Return where contrasts are decided on the way, or at the end."""
        comparison, margin = self._comparison, self._comparison.margin
        evidence = log_evidence(difference, variance, margin).max(axis=1)
        bet = comparison.courses.bet[rows]
        read = np.maximum(evidence, comparison.latest.statistic[rows])
        evidence = np.where(np.isnan(bet), read, bet * growth)
        tied = np.zeros(rows.size, dtype=bool)
        if margin is not None:
            ties = log_tie_evidence(difference, variance * at_margin, margin).max(axis=1)
            tied = ties >= comparison.fold.tie_threshold
            if claims := comparison.fold.levels.claims:
                # The better model of a pair is the one that is sought.
                above = log_evidence_above(np.abs(difference), variance * at_margin, margin)
                tied |= above.max(axis=1) >= log(claims / comparison.alpha)
        # Each winner lowers the threshold of the others, also of those that reached it before.
        winners = -1
        won = tied
        while int((won & ~tied).sum()) > winners:
            winners = int((won & ~tied).sum())
            won = evidence >= comparison.fold.levels.winner(comparison.fold.won + winners)
        return np.asarray(won | tied)


def _of_both(trials: Sequence[int], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fewer of the trials of the models of each contrast."""
    of_models = np.array(trials)
    return np.asarray(np.minimum(of_models[first], of_models[second]))
