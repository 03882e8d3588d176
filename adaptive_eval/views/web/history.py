"""The history of a run: a bounded number of moments, from its stored snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from adaptive_eval.core.results import Forecast, ModelResult, Results
from adaptive_eval.core.results_json import from_json
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.thinning import spread

MOST = 240
"""Moments kept at most; at twice the moments a screen can tell apart, half of them go."""


@dataclass(frozen=True, slots=True)
class PairPoint:
    """One pair at one moment: log e-value, value that calls a winner, steps of both, whether it is open."""

    evidence: float
    threshold: float
    trials: int
    open: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at one moment."""

    # unix time; seconds of running time
    at: float
    elapsed: float
    # of the whole run
    trials: int
    issued: int
    tokens: int
    usd: float | None  # cost of the whole run; None where the config gives no price
    # by name, and by both names
    models: dict[str, ModelResult]
    pairs: dict[tuple[str, str], PairPoint]
    # what the session said at this moment for the first time; None where it only said it again
    forecast: Forecast | None


class History:
    """The moments of one run.

    Examples
    --------
    >>> history = History()
    >>> nothing = Results("rank", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> history.add(SnapshotRecord(10.0, 0.0, 0, {}), nothing)
    >>> [moment.at for moment in history.moments]
    [10.0]
    """

    def __init__(self) -> None:
        self.moments: list[Moment] = []
        self._said: Forecast | None = None

    def catch_up(self, reader: RunReader) -> bool:
        """Take in the snapshots stored since the last time; return whether there were any."""
        since = self.moments[-1].at if self.moments else None
        before = len(self.moments)
        for snapshot in reader.snapshots(since=since, most=MOST // 2):
            self.add(snapshot, from_json(snapshot.results))
        grown = len(self.moments) > before
        if len(self.moments) > MOST:
            kept = spread([(i, moment.trials) for i, moment in enumerate(self.moments)], MOST // 2)
            self.moments = [self.moments[i] for i in kept]
        return grown

    def add(self, snapshot: SnapshotRecord, results: Results) -> None:
        """Take in one snapshot."""
        unchanged = results.forecast == self._said
        self._said = results.forecast
        self.moments.append(
            Moment(
                at=snapshot.at,
                elapsed=snapshot.elapsed,
                trials=results.trials,
                issued=sum(line.issued for line in results.models),
                tokens=results.tokens,
                usd=results.usd,
                models={line.model: line for line in results.models},
                pairs={
                    (pair.first, pair.second): PairPoint(
                        pair.evidence, pair.threshold, pair.trials, pair.verdict == "open"
                    )
                    for pair in results.pairs
                },
                forecast=None if unchanged else results.forecast,
            )
        )
