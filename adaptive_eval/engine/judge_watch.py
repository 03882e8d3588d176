"""Tests whether a judge changes during a run: its scores of the same answers, judged again in each pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from adaptive_eval.core.results import ChangedModel
from adaptive_eval.engine.drift import minute, uniform
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import ANCHOR, ANCHOR_PARTS
from scorio.sequential.parts import RepeatedScores

FALSE_ALARM: Final = 0.05
"""Chance of a false warning about the judges of a run together, at most, whenever one looks."""

_MOST_WAITING: Final = 3
"""Judgements of one answer for which others are waited for, which may have been lost."""


@dataclass(slots=True)
class _Judge:
    number: int  # of its anchors
    evidence: RepeatedScores = field(default_factory=RepeatedScores)
    waiting: dict[int, list[int]] = field(default_factory=dict)  # of each anchor, scores that are not read
    seen: set[int] = field(default_factory=set)
    again: int = 0
    at: float = 0.0  # Unix time of the last judgement before the pass that is read
    changed: bool = False

    def is_whole(self, anchor: int) -> bool:
        """Whether the next judgement of every answer is there, or one that is lacking must be lost."""
        least = 0
        if not self.evidence.scores:
            least = self.number
        awaited = max(len(self.seen), least)
        return len(self.waiting) >= awaited or len(self.waiting[anchor]) >= _MOST_WAITING


class JudgeWatch:
    """Watches for judges that change, by answers that they are shown again, a pass at a time.

    See :class:`scorio.sequential.repeated.RepeatedScores` for the evidence.

    Examples
    --------
    >>> watch = JudgeWatch({"essays": 30})
    >>> watch.watched, watch.remarks()
    ({}, ())
    """

    def __init__(self, tasks: Mapping[str, int] = MappingProxyType({})) -> None:
        self._judges = {task: _Judge(number) for task, number in tasks.items()}
        self._remarks: list[Coded] = []
        self.changes: list[ChangedModel] = []

    @property
    def watched(self) -> dict[str, int]:
        """By task, how often an answer was judged again by a judge that has not changed so far."""
        judges = self._judges.items()
        return {task: judge.again for task, judge in judges if judge.again and not judge.changed}

    def take(self, trial: LoggedTrial) -> Sequence[Coded]:
        """Take in a finished trial; return a remark if its judge turns out to change."""
        judge = self._judges.get(trial.task)
        if judge is None or judge.changed:
            return ()
        said = len(self._remarks)
        for name in trial.signals:
            if name.startswith(ANCHOR):
                anchor, part = map(int, name.removeprefix(ANCHOR).split("_"))
                self._count(judge, anchor, part, trial)
        return self._remarks[said:]

    def verdict(self) -> None:
        """Return None: a judge that changes ends no run."""

    def remarks(self) -> Sequence[Coded]:
        """Return a remark on each judge that has changed."""
        return tuple(self._remarks)

    def _count(self, judge: _Judge, anchor: int, part: int, trial: LoggedTrial) -> None:
        judge.waiting.setdefault(anchor, []).append(part)
        judge.again += anchor in judge.seen
        judge.seen.add(anchor)
        if not judge.is_whole(anchor):
            return
        scores = {of: parts.pop(0) for of, parts in judge.waiting.items()}
        judge.waiting = {of: parts for of, parts in judge.waiting.items() if parts}
        judge.evidence.add(scores, uniform(f"judge {trial.key.model}", trial.key.index))
        if judge.evidence.peak >= len(self._judges) / FALSE_ALARM and not judge.changed:
            judge.changed = True
            self._remarks.append(self._words(judge, trial.task))
        judge.at = trial.finished_at

    def _words(self, judge: _Judge, task: str) -> Coded:
        segments = judge.evidence.segments()
        number = segments[0].outcomes
        before, after = (segment.mean / ANCHOR_PARTS for segment in segments)
        who = f"judge of {task}"
        change = ChangedModel(
            model=who,
            server="",
            trials=number,
            at=judge.at,
            before=before,
            after=after,
            false_alarm=FALSE_ALARM,
        )
        self.changes.append(change)
        return Coded(
            "warning/judge-changed",
            f"the {who} has changed: its scores of the same {len(judge.seen)} answers have the mean "
            f"{before:.3f} in its first {number:,} judgements of them (until {minute(judge.at)}) and "
            f"{after:.3f} after; was its model or server swapped? Changes of models since then may be its. "
            "Scores mix both judges, and verdicts are about that mix: the two models of a pair were judged "
            "at the same steps. Labels correct either judge. A false alarm about a judge has a chance of at "
            f"most {FALSE_ALARM:.0%}",
        )
