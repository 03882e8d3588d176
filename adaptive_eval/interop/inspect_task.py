"""Tasks of Inspect, found by ``FILE.py@NAME``: rows, scores, and an end of their epochs by a goal."""

import importlib.util
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.errors import DatasetError, UsageError, library
from adaptive_eval.interop.found import in_range
from adaptive_eval.options.scorers import GradedScorerConfig, InspectScorerConfig
from adaptive_eval.scoring.scorer import ScorerFailed, graded
from adaptive_eval.tasks.sources import modules_of
from adaptive_eval.trial import Completion, Message, Missing, Question, Score, TrialKey, TrialOutcome
from adaptive_eval.views.decision_sentences import describe


@dataclass(frozen=True, slots=True)
class SampleMessage(Message):
    """A question that is a sample of Inspect; `content` is its text, for people."""

    task: str = ""
    sample: str = ""
    epoch: int = 1


def load_inspect_task(name: str, base: Path) -> Any:
    """Return a fresh task of Inspect."""
    inspect = library("inspect_ai", f"inspect:{name}", "inspect-ai", DatasetError)
    place, at, function = name.rpartition("@")
    if not (at and place and function):
        raise DatasetError(f"inspect:{name}: write inspect:FILE.py@TASK")
    with ExitStack() as stack:
        found = getattr(_module(place, base, name, stack), function, None)
        task = None
        if callable(found):
            task = found()
    if not isinstance(task, inspect.Task):
        raise DatasetError(f"inspect:{name}: {place} has no task {function!r}")
    return task


def _module(place: str, base: Path, name: str, stack: ExitStack) -> Any:
    if not place.endswith(".py"):
        try:
            return import_module(place)
        except ImportError as error:
            raise DatasetError(f"inspect:{name}: the module cannot be imported: {error}") from None
    path = (base / Path(place).expanduser()).resolve()
    if not path.is_file():
        raise DatasetError(f"inspect:{name}: there is no such file ({path})", code="dataset/not-found")
    folder = str(path.parent)
    sys.path[:] = [folder, *(other for other in sys.path if other != folder)]  # for what it imports later
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    stack.enter_context(modules_of(path.parent, path.stem))
    sys.modules.setdefault(path.stem, module)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise DatasetError(f"inspect:{name}: {path.name} cannot be imported: {error}") from None
    return module


def inspect_rows(name: str, base: Path) -> Iterator[dict[str, str]]:
    """Yield the samples of a task as rows with ``id``, ``input`` and ``target``; only texts of them."""
    task = load_inspect_task(name, base)
    for number, sample in enumerate(task.dataset):
        if isinstance(sample.target, str):
            target = sample.target
        else:
            target = ", ".join(sample.target)
        # a scorer of Inspect need not look at a target; a row of ours has one
        yield {"id": sample_id(sample, number), "input": sample_text(sample) or "-", "target": target or "-"}


def sample_id(sample: Any, number: int) -> str:
    """Return a sample's id, as Inspect gives it to one that has none."""
    if sample.id is None:
        name = number + 1
    else:
        name = sample.id
    return str(name)


def sample_text(sample: Any) -> str:
    """Return the prompt of a sample as text; of a conversation its last message."""
    if isinstance(sample.input, str):
        return sample.input
    if sample.input:
        return str(sample.input[-1].text)
    return ""


_LETTERS: Mapping[str, float] = MappingProxyType({"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0})
"""Inspect's correct, partial, incorrect, no answer."""

_WORDS: Mapping[str, float] = MappingProxyType({"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0})

_NONE: Mapping[str, tuple[Any, str | None]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SampleCompletion(Completion):
    """A sample that Inspect has run."""

    # by scorer its value and the answer it has found
    scores: Mapping[str, tuple[Any, str | None]] = field(default_factory=lambda: _NONE)


class InspectScorer(InspectScorerConfig):
    """Takes the score that Inspect has given.

    Examples
    --------
    >>> answer = SampleCompletion("It is 4.", "stop", scores={"match": ("C", "4")})
    >>> InspectScorer().score(answer, Question("t", "q", "4")).category
    1
    """

    def check_target(self, question: Question) -> str | None:
        """Return None: what a target must be is Inspect's to say."""
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Return the score; without a category if Inspect has given none that can be used."""
        if isinstance(completion, SampleCompletion):
            scores = completion.scores
        else:
            scores = {}
        if self.metric is None and len(scores) > 1:
            return Score(None, reason=f"scored by {', '.join(scores)}; choose one with metric")
        name = self.metric or next(iter(scores), None)
        if name is None or name not in scores:
            return Score(None, reason=f"not scored by {name or 'Inspect'}")
        value, answer = scores[name]
        try:
            number = score_value(value)
        except ValueError as error:
            return Score(None, reason=f"{name}: {error}")
        if number is None:
            return Score(None, reason=f"left unscored by {name}")
        return taken(self, name, number, answer, completion)


def taken(
    scorer: GradedScorerConfig, name: str, number: float, answer: str | None, completion: Completion
) -> Score:
    """Return the score `number` that the scorer or metric `name` of another tool has given."""
    try:
        score = graded(scorer, number, answer, f"{name}: {number:g}")
    except ScorerFailed as error:
        return Score(None, reason=f"{name}: {error}")
    return replace(score, signals={**score.signals, "truncated": completion.cut_off})


def score_value(value: Any) -> float | None:
    """Return the score for a value of Inspect, None for a sample that was left unscored.

    Examples
    --------
    >>> [score_value(value) for value in ("C", "P", True, "0.25")]
    [1.0, 0.5, 1.0, 0.25]
    """
    if isinstance(value, str):
        known = _LETTERS.get(value, _WORDS.get(value.lower()))
        if known is not None:
            return known
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{value!r:.100} is not a score") from None
    if math.isnan(number):
        return None  # Inspect's mark of a sample that its scorer could not judge
    return number


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
        from adaptive_eval.interop.sequences import first_indices  # with what reads logs

        self._indices = first_indices(ids, epochs, self._session.board.run_sequence)
        return "adaptive-eval"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Say whether an epoch of a sample is still needed; called by Inspect."""
        stopped = None
        if self._session is not None:
            stopped = self._session.stopped
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
        if category is None:
            self._outcomes.append(Missing(key, "not scored"))
        else:
            self._outcomes.append(TrialOutcome(key, category))
        if len(self._outcomes) >= BATCH:
            self._tell()

    async def complete_task(self) -> dict[str, Any]:
        """Return the results for the log; called by Inspect."""
        session = self._session
        if session is None:
            return {}
        self._tell()
        line = session.results().models[0]
        stopped = None
        if session.stopped is not None:
            stopped = describe(session.stopped)
        return {
            "goal": self.goal.text,
            "stopped": stopped,
            "score": line.score,
            "score_low": line.score_low,
            "score_high": line.score_high,
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
        if number is None:
            return None
        return int(in_range(number, name) >= self._right_from)
