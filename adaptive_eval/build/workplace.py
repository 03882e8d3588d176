"""The executors of a run: in this process, or workers on a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from typing import TYPE_CHECKING, Protocol

from adaptive_eval.build.assembly import Built
from adaptive_eval.build.grading import Grading, model_graded
from adaptive_eval.build.model_clients import endpoint_at
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.protocols import Executor
from adaptive_eval.errors import WorkersLost

if TYPE_CHECKING:  # a run without Ray needs no workers
    from adaptive_eval.executors.worker import Setup

_PACE = 0.005
"""Seconds between two batches of results, for each worker: so there are 200 batches a second in all."""

_LONGEST_PACE = 0.1

JOBS_PER_ACTOR = 256
"""Most requests and scores of one worker at a time."""


class Workplace(Protocol):
    """Opens the executors of a run: one for its pilot, one for the run."""

    def executor(self, built: Built) -> AbstractAsyncContextManager[Executor]:
        """Return an executor for `built`, to be entered."""


class Here:
    """The process that runs the engine."""

    @asynccontextmanager
    async def executor(self, built: Built) -> AsyncIterator[Executor]:
        """Yield an executor that does everything here."""
        async with built.grading as grading:
            yield InProcess(grading)


class _OnRay:
    """A cluster of Ray."""

    def __init__(self, remark: Callable[[str], None]) -> None:
        self._remark = remark

    @asynccontextmanager
    async def executor(self, built: Built) -> AsyncIterator[Executor]:
        from adaptive_eval.executors.ray_cluster import WorkerActors, watched
        from adaptive_eval.executors.remote import RemoteExecutor, Workers

        section, setup = built.config.executor, setup_of(built)
        async with (
            built.grading as grading,
            RemoteExecutor(
                Workers(WorkerActors(setup).start, section.actors, JOBS_PER_ACTOR, section.patience),
                scored={task.name for task in setup.tasks},
                scoring=grading,
                remark=self._remark,
            ) as executor,
            watched(lambda what: executor.give_up(WorkersLost(f"{what}; resume continues the run"))),
        ):
            yield executor


def workplace_of(built: Built, remark: Callable[[str], None]) -> AbstractContextManager[Workplace]:
    """Return the workplace that the config of `built` asks for; `remark` gets messages about workers."""
    return nullcontext(Here()) if built.config.executor.kind == "local" else _on_ray(built, remark)


@contextmanager
def _on_ray(built: Built, remark: Callable[[str], None]) -> Iterator[Workplace]:
    from adaptive_eval.executors.ray_cluster import connected

    config = built.config
    section = config.executor
    functions = any(task.scorer.kind == "python" for task in config.tasks)
    with connected(
        section.address,
        remark,
        cpus=section.actors * section.cpus_per_actor,
        user_code=config.base_dir if functions else None,
    ):
        yield _OnRay(remark)


def setup_of(built: Built) -> Setup:
    """Return what workers have to know of a run.

    Answers that another model judges are scored here: its budget and its limits hold over all of them then.
    """
    from adaptive_eval.executors.worker import Setup

    section, judged = built.config.executor, model_graded(built.scorers)
    tasks = tuple(task for task in built.tasks if task.name not in judged)
    return Setup(
        built.config.models,
        tasks,
        {task.name: built.scorers[task.name] for task in tasks},
        {task.name: built.rubrics[task.name] for task in tasks},
        built.config.on.missing,
        endpoint_at,
        Grading,
        section.cpus_per_actor,
        min(_LONGEST_PACE, _PACE * section.actors),
    )
