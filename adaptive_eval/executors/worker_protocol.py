"""The messages between this process and a worker, sent in batches; all can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from adaptive_eval.config.model import ModelConfig
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.engine.protocols import Scoring
from adaptive_eval.errors import EndpointError
from adaptive_eval.scoring.rubric import Rubric
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import Completion, Message, Score, TrialRequest


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of a run that a worker needs, without secrets: it reads those from its environment."""

    models: tuple[ModelConfig, ...]  # how each model is asked
    tasks: tuple[Task, ...]  # the tasks whose answers workers score
    scorers: dict[str, Scorer]  # their scorers
    rubrics: dict[str, Rubric]  # their rubrics
    missing: tuple[str, ...]  # causes for which an empty answer counts as missing
    client: Callable[[ModelConfig, str], OpenAIEndpoint]  # makes the client for a model at a base URL
    grading: Callable[..., Scoring]  # makes the scoring of some tasks
    cpus: float  # CPUs that a worker may keep busy
    pace: float  # least seconds between two batches of results


class Job(NamedTuple):
    """A request to be made and its answers to be scored; or, with an `answer`, that to be scored."""

    number: int
    url: str
    messages: Sequence[Message]
    requests: Sequence[TrialRequest]
    answer: Completion | None


class Answered(NamedTuple):
    """The answers to a job's request."""

    number: int
    answers: Sequence[Completion | None]


class Scored(NamedTuple):
    """The score of the answer at `place` among those of a job, or why it has none."""

    number: int
    place: int
    score: Score | EndpointError


class Failed(NamedTuple):
    """A job's request has failed."""

    number: int
    error: EndpointError


class Broken(NamedTuple):
    """A job raised an unexpected error; `words` hold its traceback."""

    number: int
    words: str


Event: TypeAlias = Answered | Scored | Failed | Broken
