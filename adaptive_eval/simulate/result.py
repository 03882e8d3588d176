"""Results of many simulated runs: errors with their intervals, verdicts, trials, time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.results_table import frame_of
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.stops import StopReason
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import VerdictCode

Table = Literal["replicates", "pairs", "models"]

EQUAL = 1e-12
"""True scores that differ by less are equal: rounding of means over questions."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A count of events in independent trials, with its rate and interval.

    Parameters
    ----------
    count, total : int
        Times it happened, times it could have.

    Examples
    --------
    >>> rate = Rate(3, 100)
    >>> rate.share, [round(end, 4) for end in rate.interval()]
    (0.03, [0.0062, 0.0852])
    """

    count: int
    total: int

    @property
    def share(self) -> float:
        """``count / total``; NaN if it could never have happened."""
        if self.total:
            return self.count / self.total
        return float("nan")

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the Clopper-Pearson interval; (0, 1) if it could never have happened.

        Parameters
        ----------
        confidence : float
            Coverage, at least; in (0, 1).
        """
        if not self.total:
            return 0.0, 1.0
        from scipy.special import betaincinv

        tail = (1.0 - confidence) / 2.0
        others = self.total - self.count
        low = 0.0
        if self.count:
            low = float(betaincinv(self.count, others + 1, tail))
        high = 1.0
        if others:
            high = float(betaincinv(self.count + 1, others, 1.0 - tail))
        return low, high

    def __str__(self) -> str:
        """Return the share with its 95 % interval, in per cent."""
        if not self.total:
            return "–"
        low, high = self.interval()
        return f"{100 * self.share:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Many simulated runs of one session.

    Parameters
    ----------
    models : tuple of str
        Names, L of them.
    pairs : tuple of (str, str)
        Contrasts, P of them; the second is the number itself if models are held against one.
    truth : ndarray of float, shape (L,)
        True scores, in score units.
    gap : ndarray of float, shape (P,)
        True difference of each contrast, of a claim from what it allows; NaN if the goal calls no
        differences (``width``).
    margin : float or None
        Equivalence margin.
    verdict, decided_at : ndarray of int, shape (R, P)
        Verdict of each run's contrasts (0 open, 1 first is better, -1 worse, 2 tie), and the step at which it
        fell (-1 while open).
    trials : ndarray of int64, shape (R, L)
        Trials per model, those in flight at the stop included.
    score : ndarray of float, shape (R, L)
        Final mean scores, in score units.
    steps : ndarray of int64, shape (R,)
        Trials of a model's sequence that had been decided on at the stop.
    time : ndarray of float, shape (R,)
        Virtual seconds to the stop; without a latency, rounds of answers.
    reason : tuple of str
        Why each run stopped.
    exhausted : ndarray of bool, shape (R, L)
        Models whose recorded trials ran out.
    limit : ndarray of int64, shape (R, L)
        Trials after which the answers of each model run out; beyond any number if they never do.
    one_by_one : bool
        Whether the runs had a look after every step, with nothing in flight beyond it.
    drawn_gap : ndarray of float, shape (R, P), optional
        True difference of each contrast in each run, if it is drawn for every run.
    """

    models: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    truth: Floats
    gap: Floats
    margin: float | None
    verdict: NDArray[np.int8]
    decided_at: Ints
    trials: Ints
    score: Floats
    steps: Ints
    time: Floats
    reason: tuple[StopReason, ...]
    exhausted: Bools
    limit: Ints
    one_by_one: bool
    drawn_gap: Floats | None = None

    @property
    def _gaps(self) -> Floats:
        """True differences, of a shape that fits (R, P)."""
        if self.drawn_gap is None:
            return self.gap
        return self.drawn_gap

    @property
    def replicates(self) -> int:
        """Number of runs R."""
        return len(self.reason)

    # ------------------------------------------------------------------ errors

    @property
    def wrong(self) -> Bools:
        """Winners that are none, shape (R, P): the wrong sign, or any winner between two true equals."""
        return np.asarray(
            ((self.verdict == VerdictCode.BETTER) & (self._gaps <= EQUAL))
            | ((self.verdict == VerdictCode.WORSE) & (self._gaps >= -EQUAL))
        )

    @property
    def wrong_tie(self) -> Bools:
        """Ties whose true difference is the margin or more, shape (R, P)."""
        if self.margin is None:
            margin = np.inf
        else:
            margin = self.margin - EQUAL
        return np.asarray((self.verdict == VerdictCode.TIE) & (np.abs(self._gaps) >= margin))

    @property
    def family_wise(self) -> Rate:
        """Runs with any wrong winner."""
        return Rate(int(self.wrong.any(axis=1).sum()), self.replicates)

    @property
    def wrong_calls(self) -> Rate:
        """Wrong winners among all contrasts of all runs.

        The contrasts of one run are not independent; the interval takes them as if they were.
        """
        return Rate(int(self.wrong.sum()), self.wrong.size)

    @property
    def wrong_ties(self) -> Rate:
        """Wrong ties among the contrasts whose true difference is the margin or more."""
        if self.margin is None:
            return Rate(0, 0)
        apart = np.broadcast_to(np.abs(self._gaps) >= self.margin - EQUAL, self.verdict.shape)
        return Rate(int(self.wrong_tie.sum()), int(apart.sum()))

    # ------------------------------------------------------------------ verdicts and cost

    @property
    def _won(self) -> Bools:
        return np.isin(self.verdict, (VerdictCode.BETTER, VerdictCode.WORSE))

    def share(self, verdict: Literal["decided", "tie", "open"]) -> float:
        """Return the share of contrasts that ended with a winner, a tie, or undecided; NaN without any."""
        chosen = {
            "decided": self._won,
            "tie": self.verdict == VerdictCode.TIE,
            "open": self.verdict == VerdictCode.OPEN,
        }
        if self.pairs:
            return float(chosen[verdict].mean())
        return float("nan")

    @property
    def reasons(self) -> dict[StopReason, int]:
        """Number of runs that stopped for each reason, the most frequent first."""
        return dict(Counter(self.reason).most_common())

    @property
    def total(self) -> Ints:
        """Trials of each run, shape (R,)."""
        return np.asarray(self.trials.sum(axis=1))

    @property
    def uniform(self) -> SimulationResult:
        """The same runs with all models asked up to the stop, as far as there are answers."""
        return replace(self, trials=np.minimum(self.steps[:, None], self.limit))

    @property
    def uniform_total(self) -> Ints:
        """Trials that each run would have taken with uniform allocation up to the stop, shape (R,).

        The same outcomes lead to the same decisions, so this is what policy ``uniform`` pays for them.

        Raises
        ------
        ValueError
            If trials were in flight beyond the looks (`one_by_one` is false): then simulate ``uniform``.
        """
        if not self.one_by_one:
            raise ValueError("with trials in flight, the uniform policy must be simulated by itself")
        return np.asarray(self.uniform.total)

    def trials_quantile(self, level: float) -> float:
        """Return a quantile of the trials per run."""
        return float(np.quantile(self.total, level))

    # ------------------------------------------------------------------ export

    def to_columns(self, table: Table = "replicates") -> dict[str, list[Any]]:
        """Return one of the result's tables as columns, as data-frame libraries take them.

        Parameters
        ----------
        table : {'replicates', 'pairs', 'models'}
            One row a run, a contrast, or a model.

        Returns
        -------
        dict of str to list
            Equally long columns of plain Python values.
        """
        columns = {"replicates": self._by_run, "pairs": self._by_pair, "models": self._by_model}[table]()
        return {name: np.asarray(values).tolist() for name, values in columns.items()}

    def to_rows(self, table: Table = "replicates") -> list[dict[str, Any]]:
        """Return one of the result's tables as a list of rows, see :meth:`to_columns`."""
        columns = self.to_columns(table)
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_frame(self, table: Table = "replicates") -> Any:
        """Return one of the result's tables as a ``pandas.DataFrame``, see :meth:`to_columns`.

        Raises
        ------
        UsageError
            If pandas is not installed.
        """
        return frame_of(self.to_columns(table))

    def _by_run(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "trials": self.total,
            "steps": self.steps,
            "time": self.time,
            "winners": self._won.sum(axis=1),
            "ties": (self.verdict == VerdictCode.TIE).sum(axis=1),
            "open": (self.verdict == VerdictCode.OPEN).sum(axis=1),
            "wrong_winners": self.wrong.sum(axis=1),
            "wrong_ties": self.wrong_tie.sum(axis=1),
        }

    def _by_pair(self) -> dict[str, Any]:
        decided = self.decided_at >= 0
        steps = np.where(decided, self.decided_at, 0).sum(axis=0) / np.maximum(decided.sum(axis=0), 1)
        first = [one for one, _ in self.pairs]
        second = [other for _, other in self.pairs]
        return {
            "first": first,
            "second": second,
            "gap": self.gap,
            "better": (self.verdict == VerdictCode.BETTER).mean(axis=0),
            "worse": (self.verdict == VerdictCode.WORSE).mean(axis=0),
            "tie": (self.verdict == VerdictCode.TIE).mean(axis=0),
            "open": (self.verdict == VerdictCode.OPEN).mean(axis=0),
            "wrong": self.wrong.mean(axis=0),
            "wrong_tie": self.wrong_tie.mean(axis=0),
            "mean_steps": np.where(decided.any(axis=0), steps, np.nan),
        }

    def _by_model(self) -> dict[str, Any]:
        return {
            "model": self.models,
            "truth": self.truth,
            "mean_score": self.score.mean(axis=0),
            "mean_trials": self.trials.mean(axis=0),
            "most_trials": self.trials.max(axis=0),
            "exhausted": self.exhausted.mean(axis=0),
        }


@dataclass(frozen=True, slots=True, eq=False)
class RunOutcome:
    """One simulated run.

    Parameters
    ----------
    verdict, decided_at : ndarray of int, shape (P,)
        Verdict of each contrast (0 open, 1 first is better, -1 worse, 2 tie) and its step (-1 while open).
    trials : ndarray of int64, shape (L,)
        Trials paid for per model, those in flight at the stop included.
    score : ndarray of float, shape (L,)
        Mean score over seen questions at the end, in unit scores; NaN without a trial.
    steps : int
        Steps folded when the run stopped.
    time : float
        Virtual seconds to the stop; without a latency, rounds of answers.
    reason : str
        Why it stopped.
    exhausted : ndarray of bool, shape (L,)
        Models whose recorded answers ran out while they were needed.
    limit : ndarray of int64, shape (L,)
        Trials after which the answers of each model run out.
    truth : ndarray of float, shape (L,), optional
        True scores, in score units, if they are drawn for every run.
    """

    verdict: NDArray[np.int8]
    decided_at: Ints
    trials: Ints
    score: Floats
    steps: int
    time: float
    reason: StopReason
    exhausted: Bools
    limit: Ints
    truth: Floats | None = None


def scores_until(spec: SessionSpec, board: SessionAnswers, steps: Ints) -> Floats:
    """Return each model's overall mean unit score over the first `steps` trials of its sequence, shape (L,).

    Questions are weighted equally within a task, whatever their numbers of trials; NaN if a task has no
    trial yet. Within rounds of a model's own, it is their weighted mean.
    """
    overall = np.zeros(steps.size)
    for model, stop in enumerate(steps.tolist()):
        local = board.run_sequence.local(stop)
        for weight, cells, end in zip(spec.task_weights, board.cells, local, strict=True):
            if cells.rounds is not None and end > cells.rounds.first:
                overall[model] += weight * cells.rounds.score(model, end, cells.categories)
                continue
            categories = cells.categories[model, :end]
            there = categories >= 0
            questions = cells.sequence.question(0, end)[there]
            count = np.bincount(questions)
            total = np.bincount(questions, weights=cells.scale.scores[categories[there]])
            seen = count > 0
            mean = (total[seen] / count[seen]).mean() if seen.any() else np.nan
            overall[model] += weight * mean
    return overall
