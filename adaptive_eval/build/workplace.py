"""The executors of a run: in this process, or workers on a Ray cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from adaptive_eval.build.assembly import PreparedRun
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


Workplace: TypeAlias = Callable[[PreparedRun], AbstractAsyncContextManager[Executor]]
"""Opens the executor of a run."""


@asynccontextmanager
async def _here(built: PreparedRun) -> AsyncIterator[Executor]:
    """Yield an executor that does everything in this process."""
    async with built.grading as grading:
        yield InProcess(grading)


@asynccontextmanager
async def _on_ray(built: PreparedRun, remark: Callable[[str], None]) -> AsyncIterator[Executor]:
    """Yield an executor whose workers are on the connected cluster."""
    from adaptive_eval.executors.ray_cluster import WorkerActors, watched
    from adaptive_eval.executors.remote import RemoteExecutor, Workers

    section = built.config.executor
    setup = setup_of(built)
    async with (
        built.grading as grading,
        RemoteExecutor(
            Workers(WorkerActors(setup).start, section.actors, JOBS_PER_ACTOR, section.patience),
            scored={task.name for task in setup.tasks},
            scoring=grading,
            remark=remark,
        ) as executor,
        watched(lambda what: executor.give_up(WorkersLost(f"{what}; resume continues the run"))),
    ):
        yield executor


@contextmanager
def workplace_of(built: PreparedRun, remark: Callable[[str], None]) -> Iterator[Workplace]:
    """Yield the workplace that the config of `built` asks for; `remark` gets messages about workers."""
    config = built.config
    section = config.executor
    if section.kind == "local":
        yield _here
        return
    from adaptive_eval.executors.ray_cluster import connected

    functions = any(task.scorer.has("python") for task in config.tasks)
    with connected(
        section.address,
        remark,
        cpus=section.actors * section.cpus_per_actor,
        user_code=config.base_dir if functions else None,
    ):
        yield partial(_on_ray, remark=remark)


def setup_of(built: PreparedRun) -> Setup:
    """Return what workers have to know of a run.

    Answers that another model judges are scored here: its budget and its limits hold over all of them then.
    """
    from adaptive_eval.executors.worker import Setup

    section = built.config.executor
    judged = model_graded(built.scorers)
    tasks = tuple(task for task in built.tasks if task.name not in judged)
    scorers = {task.name: built.scorers[task.name] for task in tasks}
    rubrics = {task.name: built.rubrics[task.name] for task in tasks}
    return Setup(
        built.config.models,
        tasks,
        scorers,
        rubrics,
        built.config.on.missing,
        endpoint_at,
        Grading,
        section.cpus_per_actor,
        min(_LONGEST_PACE, _PACE * section.actors),
    )
