"""For users of Inspect: end a task's epochs once the goal is decided."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.inspect_task import sample_id, score_value
from adaptive_eval.interop.sequences import first_indices
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome
from adaptive_eval.views.sentences import describe

BATCH = 16
"""Outcomes handed to the session at once."""


class StopEarly:
    """An ``EarlyStopping`` for a Task of Inspect: skips the epochs that are not needed any more.

    ``Task(…, epochs=20, early_stopping=StopEarly(width=0.1))`` ends when the score's anytime confidence
    interval is no wider than 0.1; ``StopEarly(threshold=0.7)`` when it lies on one side of 0.7. The interval
    holds although it is looked at after every sample. Inspect runs all samples once before it begins with the
    second epoch, so at least one epoch is run as a whole.

    Examples
    --------
    >>> StopEarly(width=0.1).goal.text
    "every model's interval no wider than 0.1"
    """

    def __init__(
        self,
        *,
        width: float | None = None,
        threshold: float | None = None,
        confidence: float = 0.95,
        metric: str | None = None,
        right_from: float = 0.5,
    ) -> None:
        if (width is None) == (threshold is None):
            raise UsageError("say when to stop: StopEarly(width=0.1), or StopEarly(threshold=0.7)")
        if width is not None:
            self.goal = GoalSpec("width", width=width)
        else:
            self.goal = GoalSpec("threshold", value=threshold or 0.0)
        self._stopping = StoppingSpec(confidence=confidence)
        self._metric = metric
        self._right_from = right_from
        self._session: Session | None = None
        self._indices: dict[tuple[str, int], int] = {}
        self._outcomes: list[TrialOutcome | Missing] = []
        self._skipped = 0

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Take note of the samples; called by Inspect."""
        ids = tuple(sample_id(sample, number) for number, sample in enumerate(samples))
        model = ModelSpec(str(task.model))
        spec = SessionSpec((model,), (TaskSpec(str(task.task), ids),), self.goal, self._stopping)
        self._session = Session(spec)
        self._indices = first_indices(ids, epochs, self._session.board.run_sequence)
        return "adaptive-eval"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Say whether an epoch of a sample is still needed; called by Inspect."""
        stopped = None if self._session is None else self._session.stopped
        if stopped is None:
            return None
        self._skipped += 1
        return import_module("inspect_ai.util").EarlyStop(id=id, epoch=epoch, reason=describe(stopped))

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, Any]) -> None:
        """Count the score of a sample; called by Inspect."""
        session = self._session
        index = self._indices.get((str(id), epoch))
        if session is None or index is None:
            return
        key = TrialKey(session.spec.models[0].name, index)
        category = self._category(scores)
        self._outcomes.append(Missing(key, "not scored") if category is None else TrialOutcome(key, category))
        if len(self._outcomes) >= BATCH:
            self._tell()

    async def complete_task(self) -> dict[str, Any]:
        """Return the results for the log; called by Inspect."""
        session = self._session
        if session is None:
            return {}
        self._tell()
        line = session.results().models[0]
        return {
            "goal": self.goal.text,
            "stopped": None if session.stopped is None else describe(session.stopped),
            "score": line.score,
            "low": line.low,
            "high": line.high,
            "trials": line.trials,
            "skipped": self._skipped,
        }

    def _tell(self) -> None:
        if self._session is not None:
            self._session.replay([self._outcomes])
        self._outcomes = []

    def _category(self, scores: dict[str, Any]) -> int | None:
        if self._metric is None and len(scores) > 1:
            raise UsageError(f"the task is scored by {', '.join(scores)}; choose one: StopEarly(metric=…)")
        name = self._metric or next(iter(scores), None)
        if name is None or name not in scores:
            return None
        number = score_value(scores[name].score.value)
        return None if number is None else int(number >= self._right_from)
