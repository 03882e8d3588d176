"""The course of a run: a bounded number of moments, from its stored snapshots, for the plots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from adaptive_eval.core.results import Results
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.tables import spread

MOST = 120
"""Moments kept at most, about as many as a small plot can tell apart."""

_PAIRS_READ = 500_000
"""Contrasts that a course is read from at most: of a large board it has fewer moments."""

_PAIRS_KEPT = 60
"""Contrasts whose evidence a moment keeps: the open ones nearest to a verdict."""


class ScorePoint(NamedTuple):
    """A score with its interval."""

    score: float | None
    low: float | None
    high: float | None


class PairPoint(NamedTuple):
    """The evidence of a contrast, the value that calls a winner, and whether it was open."""

    evidence: float
    threshold: float
    open: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at one moment."""

    # unix time; seconds of running time
    at: float
    elapsed: float
    # of the whole run; no USD if the config gives no price
    trials: int
    tokens: int
    usd: float | None
    # by name, and by both names
    models: Mapping[str, ScorePoint]
    pairs: Mapping[tuple[str, str], PairPoint]


def read_course(reader: RunReader, results: Results) -> tuple[Moment, ...]:
    """Return the moments of a run from its first snapshot to its latest."""
    course = Course(results)
    course.catch_up(reader)
    return tuple(course.moments)


class Course:
    """The moments of a run that is being watched, from its oldest snapshot on."""

    def __init__(self, results: Results) -> None:
        self.moments: list[Moment] = []
        self._most = max(16, min(MOST, _PAIRS_READ // max(1, len(results.pairs))))

    def catch_up(self, reader: RunReader) -> None:
        """Take in the snapshots stored since the last time."""
        since = self.moments[-1].at if self.moments else None
        for snapshot in reader.snapshots(since=since, most=self._most // 2):
            self.moments.append(moment_of(snapshot))
        if len(self.moments) > self._most:
            kept = spread([(i, moment.trials) for i, moment in enumerate(self.moments)], self._most // 2)
            self.moments = [self.moments[i] for i in kept]


def moment_of(snapshot: SnapshotRecord) -> Moment:
    """Return what the plots need of a snapshot; its JSON is not checked again, which would take longest."""
    stored = snapshot.results
    models = stored["models"]
    costs = [line["usd"] for line in models if line["usd"] is not None]
    return Moment(
        at=snapshot.at,
        elapsed=snapshot.elapsed,
        trials=stored["trials"],
        tokens=sum(line["prompt_tokens"] + line["completion_tokens"] for line in models),
        usd=sum(costs) if costs else None,
        models={line["model"]: ScorePoint(line["score"], line["low"], line["high"]) for line in models},
        pairs={(pair["first"], pair["second"]): _point(pair) for pair in _nearest(stored["pairs"])},
    )


def _nearest(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    contrasts = [pair for pair in pairs if pair.get("kind") != "width"]
    if len(contrasts) <= _PAIRS_KEPT:
        return contrasts
    still_open = [pair for pair in contrasts if pair["verdict"] == "open"]
    return sorted(still_open, key=lambda pair: -_share(pair))[:_PAIRS_KEPT]


def _share(pair: dict[str, Any]) -> float:
    evidence, threshold = pair["evidence"], pair["threshold"]
    return evidence / threshold if evidence and threshold else 0.0


def _point(pair: dict[str, Any]) -> PairPoint:
    return PairPoint(pair["evidence"], pair["threshold"], pair["verdict"] == "open")
