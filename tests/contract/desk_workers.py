"""Workers on this event loop, whose mail is pickled as it is between processes; and runs to set them to."""

import asyncio
import pickle
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Any

from command_line import ARITHMETIC, ARITHMETIC_TASK

from adaptive_eval.build.assembly import PreparedRun, build
from adaptive_eval.build.workplace import setup_of
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.executors.remote import RemoteExecutor, WorkerGone, Workers
from adaptive_eval.executors.worker import Worker
from adaptive_eval.mimic.mimic_spec import DatasetSpec, LatencySpec, MimicModelSpec, MimicSpec
from adaptive_eval.trial import TrialKey, TrialRequest

PATIENCE = 60.0


def built_at(url: str, model: Mapping[str, Any] = MappingProxyType({}), **sections: Any) -> PreparedRun:
    """Return a config of two models, of which `model` says more, behind a server; with its data loaded."""
    sampling = {"temperature": 0.7, "max_tokens": 400}
    common = {"endpoints": [url], "concurrency": 8, "sampling": sampling, **model}
    models = [{"name": name, **common} for name in ("sage", "novice")]
    limits = {"stopping": {"equivalence": 0.2}, "budget": {"trials": 2000}}
    config = {"name": "spread", "seed": 3, "models": models, "tasks": [ARITHMETIC_TASK], **limits, **sections}
    return build(config_from_data(config, Path.cwd()))


def mimic_spec() -> MimicSpec:
    """Return the server of both models."""
    wait = LatencySpec(median=0.0)
    coins = {"sage": 0.9, "novice": 0.3}
    return MimicSpec(
        models=tuple(MimicModelSpec(name=name, mean=mean, latency=wait) for name, mean in coins.items()),
        seed=7,
        datasets=(DatasetSpec(path=str(ARITHMETIC)),),
    )


def trial(built: PreparedRun, number: int, model: str = "sage") -> TrialRequest:
    """Return a trial of question `number`."""
    question = built.tasks[0].questions[number]
    return TrialRequest(TrialKey(model, number), "arithmetic", question.id, 0, 1000 + number)


class Desk:
    """A worker on this event loop, which can be told to die."""

    def __init__(self, worker: Worker, name: str, lifetime: int | None) -> None:
        self.name = name
        self.most = 0
        self.results = 0
        self.in_hand: set[int] = set()
        self.cancelled: list[int] = []
        self._worker = worker
        self._lifetime = lifetime
        self._dead = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, jobs: Any) -> None:
        self.in_hand |= {job.number for job in jobs}
        self.most = max(self.most, len(self.in_hand))
        if self._lifetime is not None and self.results >= self._lifetime:
            self.die()
        self._send(self._worker.submit(pickle.loads(pickle.dumps(jobs))))

    def cancel(self, numbers: Any) -> None:
        self.cancelled += numbers
        self._send(self._worker.cancel(numbers))

    async def collect(self) -> Any:
        results = asyncio.ensure_future(self._worker.collect())
        try:
            await asyncio.wait({results, self._dead}, return_when="FIRST_COMPLETED")
            if self._dead.done():
                raise WorkerGone("it was told to")
            events = pickle.loads(pickle.dumps(results.result()))
        finally:
            results.cancel()
        self.in_hand -= {event.number for event in events}
        self.results += len(events)
        return events

    async def stop(self) -> None:
        await asyncio.gather(*self._tasks)
        await self._worker.close()

    def die(self) -> None:
        if not self._dead.done():
            self._dead.set_result(None)

    def _send(self, message: Any) -> None:
        task = asyncio.ensure_future(message)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Desks:
    """Starts workers on this event loop.

    Parameters
    ----------
    built : PreparedRun
        The run.
    refuse_after : int, optional
        So many start; those after them do not.
    lifetime : int, optional
        Each dies when it gets its next job after so many results.
    """

    def __init__(
        self, built: PreparedRun, *, refuse_after: int | None = None, lifetime: int | None = None
    ) -> None:
        self.built = built
        self.started: list[Desk] = []
        self.remarks: list[str] = []
        self._refuse_after = refuse_after
        self._lifetime = lifetime

    async def start_worker(self, number: int) -> Desk:
        if self._refuse_after is not None and len(self.started) >= self._refuse_after:
            raise WorkerGone("no room")
        worker = Worker(pickle.loads(pickle.dumps(setup_of(self.built))))
        desk = Desk(worker, f"{number} on {await worker.start()}", self._lifetime)
        self.started.append(desk)
        return desk

    def executor(self, size: int = 2, most: int = 64, patience: float = PATIENCE) -> RemoteExecutor:
        return RemoteExecutor(
            Workers(self.start_worker, size, most, patience),
            scored={"arithmetic"},
            scoring=self.built.grading,
            remark=self.remarks.append,
        )


def at_desks(built: PreparedRun) -> Any:
    return Desks(built).executor()


def in_process(built: PreparedRun) -> Any:
    return nullcontext(InProcess(built.grading))
