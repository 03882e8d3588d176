"""A worker: makes requests and scores their answers; it decides nothing. And the messages to and from it."""

from __future__ import annotations

import asyncio
import math
import platform
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeAlias

from adaptive_eval.config.model import ModelConfig
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.protocols import Scoring
from adaptive_eval.errors import EndpointError, UsageError
from adaptive_eval.scoring.rubric import Rubric, TaskScoring
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.scoring.workers import bound_workers
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import Completion, Message, Score, TrialRequest

_NOWHERE = "http://nowhere.invalid/v1"
"""An address to try out how a model is asked, without asking."""


class Worker:
    """Takes jobs, and hands results over in batches; all of it on one event loop."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._models = {model.name: model for model in setup.models}
        self._graded = frozenset(task.name for task in setup.tasks)
        self._endpoints: dict[tuple[str, str], OpenAIEndpoint] = {}
        self._jobs: dict[int, asyncio.Task[None]] = {}
        self._events: list[Event] = []
        self._some = asyncio.Event()
        self._handed_over = -math.inf

    async def start(self) -> str:
        """Get ready, and return the name of the machine."""
        for model in self._setup.models:
            self._setup.client(model, _NOWHERE)
        most = max(1, math.ceil(self._setup.cpus))
        bound_workers(most)  # before a check has started any
        for task in self._setup.tasks:
            problem = self._setup.scorers[task.name].check_target(task.questions[0])
            if problem is not None:
                raise UsageError(f"task {task.name!r}: {problem}")
        scoring = {
            task.name: TaskScoring(
                self._setup.scorers[task.name], self._setup.rubrics[task.name], self._setup.missing
            )
            for task in self._setup.tasks
        }
        threads = ThreadPoolExecutor(most, thread_name_prefix="scoring")
        self._executor = InProcess(self._setup.grading(self._setup.tasks, scoring, threads=threads))
        return platform.node()

    async def submit(self, jobs: Iterable[Job]) -> None:
        """Begin with `jobs`."""
        for job in jobs:
            task = asyncio.create_task(self._do(job))
            self._jobs[job.number] = task
            task.add_done_callback(partial(self._done, job.number))

    async def cancel(self, numbers: Iterable[int]) -> None:
        """Cancel the jobs with these numbers; they report nothing more."""
        for number in numbers:
            job = self._jobs.get(number)
            if job is not None:
                job.cancel()

    async def close(self) -> None:
        """Cancel everything and close the connections."""
        jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        for endpoint in self._endpoints.values():
            await endpoint.aclose()

    async def collect(self) -> Sequence[Event]:
        """Wait until there are results, and for as long as batches are to be apart; return them."""
        loop = asyncio.get_running_loop()
        await self._some.wait()
        early = self._handed_over + self._setup.pace - loop.time()
        if early > 0.0:
            await asyncio.sleep(early)
        self._handed_over = loop.time()
        self._some.clear()
        events, self._events = self._events, []
        return events

    def _tell(self, event: Event) -> None:
        self._events.append(event)
        self._some.set()

    async def _do(self, job: Job) -> None:
        if job.answer is not None:
            await self._score(job, 0, job.answer)
            return
        try:
            endpoint = self._endpoint(job.requests[0].key.model, job.url)
            answers = await self._executor.attempt(endpoint, job.messages, job.requests)
        except EndpointError as error:
            self._tell(Failed(job.number, error))
            return
        self._tell(Answered(job.number, tuple(answers)))
        if job.requests[0].task in self._graded:
            given = [(place, one) for place, one in enumerate(answers) if one is not None]
            await asyncio.gather(*(self._score(job, place, one) for place, one in given))

    async def _score(self, job: Job, place: int, answer: Completion) -> None:
        score: Score | EndpointError
        try:
            score = await self._executor.score(job.requests[place], answer)
        except EndpointError as error:
            score = error
        else:
            score = replace(score, signals=dict(score.signals))  # a view of a mapping cannot be pickled
        self._tell(JobScore(job.number, place, score))

    def _endpoint(self, model: str, url: str) -> OpenAIEndpoint:
        """Return the client for a model at an address; servers may join during the run."""
        found = self._endpoints.get((model, url))
        if found is None:
            found = self._endpoints[model, url] = self._setup.client(self._models[model], url)
        return found

    def _done(self, number: int, task: asyncio.Task[None]) -> None:
        del self._jobs[number]
        error = None
        if not task.cancelled():
            error = task.exception()
        if error is not None:
            self._tell(Broken(number, "".join(traceback.format_exception(error))))


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


class JobScore(NamedTuple):
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


Event: TypeAlias = Answered | JobScore | Failed | Broken
