"""What this process and a worker tell each other, in batches; all of it can be pickled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from adaptive_eval.config import ModelConfig
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.engine.protocols import Scoring
from adaptive_eval.errors import EndpointError
from adaptive_eval.scoring import Scorer
from adaptive_eval.scoring.rubric import Rubric
from adaptive_eval.tasks import Task
from adaptive_eval.trial import Completion, Message, Score, TrialRequest

__all__ = ["Answered", "Broken", "Event", "Failed", "Job", "Scored", "Setup"]


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a worker has to know of a run. Secrets are not in it: it takes them from its own environment.

    Parameters
    ----------
    models : tuple of ModelConfig
        How each model is asked.
    tasks : tuple of Task
        The tasks whose answers workers score.
    scorers : mapping of str to Scorer
        Their scorers.
    rubrics : mapping of str to Rubric
        Their rubrics.
    missing : tuple of str
        Causes for which an answer that is none counts as missing.
    client : callable
        Makes the client for a model at a base URL.
    grading : callable
        Makes what scores answers, of tasks, their scoring and threads.
    cpus : float
        CPUs that a worker may keep busy.
    pace : float
        Seconds between two batches of results at least.
    """

    models: tuple[ModelConfig, ...]
    tasks: tuple[Task, ...]
    scorers: dict[str, Scorer]
    rubrics: dict[str, Rubric]
    missing: tuple[str, ...]
    client: Callable[[ModelConfig, str], OpenAIEndpoint]
    grading: Callable[..., Scoring]
    cpus: float
    pace: float


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
    answers: Sequence[Completion]


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
    """A job has come upon a bug; `words` say where."""

    number: int
    words: str


Event: TypeAlias = Answered | Scored | Failed | Broken
