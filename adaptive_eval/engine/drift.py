"""Tests whether a model changes during a run: its early and late outcomes on the same questions."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

from adaptive_eval.core.results import ChangedModel
from adaptive_eval.engine.health import KEPT
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import STEPS, ScoreRange, TrialKey
from scorio.sequential.parts import DriftEvidence

FALSE_ALARM: Final = 0.001
"""Chance of a false warning about a model and its servers in a run, at most, whenever one looks."""

_LIMIT: Final = 2.0 / FALSE_ALARM
"""Half of that chance is for the model."""

_RANKS: Final = 100
"""Parts of a range of scores within which numbers are alike: each earlier one of a question costs time."""

Question: TypeAlias = tuple[str, str]
_Outcome: TypeAlias = tuple[Question, int, float, str]
_Value: TypeAlias = tuple[int, float]  # by which an outcome is ranked, and what it is worth
_Counts: TypeAlias = tuple[tuple[float, int], ...]


@dataclass(slots=True)
class _History:
    """The evidence about a model, or about one of its servers, and when its outcomes came."""

    limit: float
    evidence: DriftEvidence = field(default_factory=DriftEvidence)
    seen: dict[Question, _Counts] = field(default_factory=dict)
    times: array[float] = field(default_factory=lambda: array("d"))
    words: str = ""

    def add(self, question: Question, value: _Value, at: float, uniform: float) -> bool:
        """Take in an outcome; return whether it is the one that raises the alarm."""
        if self.words:
            return False
        earlier = self.seen.get(question, ())
        (level, worth) = value
        self.evidence.add_among(level, dict(earlier), uniform, value=worth)
        self.seen[question] = _with_one_more(earlier, level)
        self.times.append(at)
        return self.evidence.peak >= self.limit

    def copied(self, limit: float) -> _History:
        """Return the same history of its own."""
        evidence = deepcopy(self.evidence)
        return replace(self, limit=limit, evidence=evidence, seen=dict(self.seen), times=self.times[:])


@lru_cache(maxsize=4096)
def _with_one_more(earlier: _Counts, category: int) -> _Counts:
    """Return how often each category came; questions with the same counts share one object."""
    counts = dict(earlier)
    counts[category] = counts.get(category, 0) + 1
    return tuple(sorted(counts.items()))


@dataclass(slots=True)
class _ModelDrift:
    whole: _History
    only: str | None = None  # the server of all outcomes so far, whose history is that of the model
    servers: dict[str, _History] = field(default_factory=dict)
    pending: dict[int, _Outcome | None] = field(default_factory=dict)
    next: int = 0


class DriftWatch:
    """Watches for models whose outcomes change: swapped by a provider, or served from another checkpoint.

    Outcomes count in the order of the model's trial sequence, not of their arrival: right answers may be
    slower than wrong ones. Half of the chance of a false alarm is for the model, half for its servers, each
    of which is compared with what it answered itself before.

    Examples
    --------
    >>> watch = DriftWatch()
    >>> for index in range(2_000):
    ...     right = int(index < 1_000 or index % 3 == 0)
    ...     watch.add(TrialKey("m", index), ("t", str(index % 100)), right, at=60.0 * index, server="")
    >>> (words,) = watch.remarks()
    >>> print(words.partition(";")[0].partition("changed ")[2])
    after about 996 of its trials (1970-01-01 16:36 UTC): mean 1.000 before, 0.391 after
    """

    def __init__(self, ranges: Mapping[str, ScoreRange] | None = None) -> None:
        self._ranges = ranges or {}  # of the tasks whose scores are numbers
        self._models: dict[str, _ModelDrift] = {}
        self._remarks: list[Coded] = []
        self.changes: list[ChangedModel] = []

    def take(self, trial: LoggedTrial) -> Sequence[Coded]:
        """Take in a finished trial; return a remark if a model, or a server of it, turns out to change."""
        said = len(self._remarks)
        question = trial.task, trial.question
        self.add(trial.key, question, trial.category, at=trial.finished_at, server=trial.server)
        return self._remarks[said:]

    def verdict(self) -> None:
        """Return None: a model that changes ends no run."""

    def remarks(self) -> Sequence[Coded]:
        """Return a remark on each change."""
        return self._remarks

    def add(self, key: TrialKey, question: Question, category: int | None, *, at: float, server: str) -> None:
        """Take in a finished trial; `category` is None for a missing one, `server` empty if unknown."""
        known = self._models.get(key.model)
        if known is None:
            known = self._models[key.model] = _ModelDrift(_History(_LIMIT))
        if key.index < known.next:
            return
        known.pending[key.index] = None if category is None else (question, category, at, server)
        if len(known.pending) > KEPT:  # they wait for one that is lost
            known.next = min(known.pending)
        while known.next in known.pending:
            outcome = known.pending.pop(known.next)
            if outcome is not None:
                self._count(key.model, known, known.next, outcome)
            known.next += 1

    def _count(self, name: str, known: _ModelDrift, index: int, outcome: _Outcome) -> None:
        question, category, at, server = outcome
        scores = self._ranges.get(question[0])
        value = (category, float(category))
        if scores is not None:
            value = (category * _RANKS // STEPS, scores.score(category))
        breaker = uniform(name, index)
        if known.only is None:
            known.only = server
        alone = known.only == server and not known.servers
        if not (alone or known.servers) and known.only:
            # A change that was found while the server was alone is said once, of the model.
            known.servers[known.only] = known.whole.copied(_limit_of(1))
        if known.whole.add(question, value, at, breaker):
            self._alarm(known.whole, name, "")
        if server and not alone:
            of_server = known.servers.get(server)
            if of_server is None:
                of_server = known.servers[server] = _History(_limit_of(len(known.servers) + 1))
            if of_server.add(question, value, at, breaker) and len(known.servers) > 1:
                self._alarm(of_server, name, server)

    def _alarm(self, history: _History, model: str, server: str) -> None:
        before, after = history.evidence.segments()
        at = history.times[min(before.outcomes, len(history.times) - 1)]
        who = model
        if server:
            who = f"{model} at {server}"
        history.words = (
            f"{who}: its outcomes on the same questions changed after about {before.outcomes:,} of its "
            f"trials ({minute(at)}): mean {before.mean:.3f} before, {after.mean:.3f} after; was the "
            "model or its server swapped? The results mix both. A false alarm about a model "
            f"has a chance of at most {FALSE_ALARM:.1%}"
        )
        history.times, history.seen = array("d"), {}
        self._remarks.append(Coded("warning/model-changed", history.words))
        self.changes.append(
            ChangedModel(
                model=model,
                server=server,
                trials=before.outcomes,
                at=at,
                before=before.mean,
                after=after.mean,
                false_alarm=FALSE_ALARM,
            )
        )


def _limit_of(place: int) -> float:
    """Return the limit of the server that comes in this place: 1/(1·2) + 1/(2·3) + … = 1."""
    return _LIMIT * place * (place + 1)


def minute(at: float) -> str:
    """Return a Unix time as people read it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def uniform(model: str, index: int) -> float:
    """Return a number in [0, 1) that depends on the trial alone, so that a resumed run finds the same."""
    digest = blake2b(f"{model}/{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2.0**64
