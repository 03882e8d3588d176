"""Workers as actors of Ray, and pools of processes there. The only module that imports Ray."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import adaptive_eval
import scorio
from adaptive_eval.errors import UsageError, WorkersLost, library
from adaptive_eval.executors.remote import WorkerGone
from adaptive_eval.executors.worker import Event, Job, Setup, Worker

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_OBJECT_STORE = 100 * 2**20
"""Bytes of shared memory of a cluster started for a run: only what a worker has to know lies there."""

_REACHABLE = 10.0
"""Seconds to wait for a connection to a cluster."""

_HEAD_AGAIN = 40.0
"""Seconds in which a head that does not answer may come back; after 60, Ray ends every process of its own."""

_AGENTS = (b"DashboardAgent", b"RuntimeEnvAgent", b"agent.py", b"agent/main.py")
"""What is in the command line of Ray's agents, before and after they name themselves."""

_HEAD_ASKED = 5.0
"""Seconds between two connections to the head."""


@contextmanager
def connected(
    address: str, remark: Callable[[str], None], *, cpus: float = 0.0, user_code: Path | None = None
) -> Iterator[None]:
    """Connect to a cluster, or start one on this machine; leave it at the end.

    What runs there is this process's own: it ends with it, however it ends. A program that is connected
    already stays so, and its cluster is used.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # In a job of Ray, workers get what this run ships in place of the job's own folder.
    os.environ.setdefault("RAY_OVERRIDE_JOB_RUNTIME_ENV", "1")
    ray = library("ray", "a cluster of Ray", "ray")
    if ray.is_initialized():
        yield
        return
    if address.startswith("ray://"):
        library("grpc", "a client of a cluster of Ray (ray://)", "grpcio")
    remark(f"Connecting to Ray ({address}).")
    _require_listener(address)
    own: dict[str, Any] = {}
    if address == "local":
        own = {
            "num_cpus": max(os.cpu_count() or 1, math.ceil(cpus)),
            "object_store_memory": _OBJECT_STORE,
            "include_dashboard": False,
        }
    handler = signal.getsignal(signal.SIGTERM)
    with tempfile.TemporaryDirectory(prefix="adaptive-eval-") as folder:
        try:
            ray.init(
                address,
                runtime_env=_shipped(user_code, Path(folder)),
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                **own,
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            words = str(error).strip().splitlines()[0]
            raise UsageError(f"no cluster of Ray at {address}: {words}") from None
    # Nothing of the cluster goes to the terminal: the run itself says what ends.
    ray._private.worker.print_to_stdstream = lambda *words, **how: None
    if callable(handler):  # Ray's handler ends the process at once and loses the answers in flight
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, handler)
    try:
        yield
    finally:
        ray.shutdown()


@asynccontextmanager
async def watched(on_end: Callable[[str], None]) -> AsyncIterator[None]:
    """Call `on_end` with what has ended, if Ray's process on this machine or the head of the cluster ends.

    Ray would end this process too some time later, without a word to us. A client of a cluster (``ray://``)
    has neither; its calls fail.
    """
    import ray

    node = ray._private.worker.global_worker.node
    if node is None:
        yield
        return
    loop = asyncio.get_running_loop()
    processes = list[int]()
    with suppress(OSError, AttributeError):  # Linux only
        for process in _raylet_and_agents(_listener(node.raylet_socket_name)):
            processes.append(os.pidfd_open(process))

    def raylet_ended() -> None:
        for process in processes:
            loop.remove_reader(process)
        on_end("Ray's process on this machine (raylet) has ended")

    for number, process in enumerate(processes):
        call = raylet_ended
        if number:
            call = _leave
        loop.add_reader(process, call)
    head = loop.create_task(_watch_head(node.gcs_address, on_end))
    try:
        yield
    finally:
        head.cancel()
        await asyncio.gather(head, return_exceptions=True)
        for process in processes:
            loop.remove_reader(process)
            os.close(process)


def _leave() -> None:
    """End this process because an agent has ended: Ray does so a tenth of a second later, without a word.

    What is committed is stored.
    """
    lost = WorkersLost("an agent of Ray on this machine has ended; resume continues the run")
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        os.write(2, f"error: {lost} [{lost.code}]\n".encode())
    os._exit(lost.exit_code)


def _raylet_and_agents(raylet: int) -> Iterator[int]:
    """Yield the raylet, and those of its children with which it ends."""
    yield raylet
    for children in Path(f"/proc/{raylet}/task").glob("*/children"):
        for child in children.read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            if any(mark in command for mark in _AGENTS):
                yield int(child)


def _listener(path: str) -> int:
    """Return the process that listens at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", said)[0])


async def _watch_head(address: str, on_end: Callable[[str], None]) -> None:
    """Connect to the head again and again; call `on_end` once it has not answered for too long."""
    host, _, port = address.rpartition(":")
    failures = 0
    while failures * _HEAD_ASKED < _HEAD_AGAIN:
        await asyncio.sleep(_HEAD_ASKED)
        try:
            async with asyncio.timeout(_HEAD_ASKED):
                _, writer = await asyncio.open_connection(host, int(port))
        except (OSError, TimeoutError):
            failures += 1
            continue
        writer.close()
        failures = 0
    on_end(f"the head of the cluster of Ray ({address}) has not answered for {_HEAD_AGAIN:g} s")


def _require_listener(address: str) -> None:
    """Refuse an address without a listener at once; Ray would try for minutes."""
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_REACHABLE).close()
    except (OSError, ValueError) as error:
        raise UsageError(f"no cluster of Ray at {address}: {error}") from None


def _shipped(user_code: Path | None, folder: Path) -> dict[str, Any]:
    """Return the runtime environment of the workers: our packages, and the sources in `user_code`.

    Neither data nor files that may hold keys go with them.
    """
    packages = [str(Path(module.__path__[0])) for module in (adaptive_eval, scorio)]
    environment: dict[str, Any] = {"py_modules": packages, "excludes": ["__pycache__"]}
    if user_code is not None:
        own = folder / "own"
        own.mkdir()
        for path in user_code.resolve().iterdir():
            if path.is_file() and path.suffix == ".py":
                shutil.copy(path, own)
            elif (path / "__init__.py").is_file():
                shutil.copytree(path, own / path.name, ignore=_not_sources)
        environment["working_dir"] = str(own)
    return environment


def _not_sources(folder: str, names: list[str]) -> set[str]:
    return {name for name in names if not name.endswith(".py") and not (Path(folder) / name).is_dir()}


class WorkerActors:
    """Starts the actors of a run."""

    def __init__(self, setup: Setup) -> None:
        import ray

        self._ray = ray
        self._actor = ray.remote(Worker).options(
            num_cpus=setup.cpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self._setup = ray.put(setup)

    async def start(self, number: int) -> RayWorker:
        """Return the actor of worker `number` once a node has room for it and it is ready."""
        actor = self._actor.remote(self._setup)
        try:
            place = await actor.start.remote()
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, UsageError):
                raise UsageError(f"{error.cause} (on the node of worker {number})") from None
            raise
        except self._ray.exceptions.RayError as error:
            raise WorkerGone(_said(error)) from None
        return RayWorker(actor, f"{number} on {place}")


class RayWorker:
    """An actor, as :class:`~adaptive_eval.executors.remote.RemoteExecutor` wants its workers."""

    def __init__(self, actor: ActorHandle, name: str) -> None:
        self._actor = actor
        self.name = name

    def submit(self, jobs: Sequence[Job]) -> None:
        """Send jobs; if the actor has died, :meth:`collect` says so."""
        self._actor.submit.remote(jobs)

    def cancel(self, numbers: Sequence[int]) -> None:
        """Ask for jobs to be cancelled."""
        self._actor.cancel.remote(numbers)

    async def collect(self) -> Sequence[Event]:
        """Wait for results, and return them."""
        from ray.exceptions import RayError, RayTaskError

        try:
            events: Sequence[Event] = await self._actor.collect.remote()
        except RayTaskError:
            raise
        except RayError as error:
            raise WorkerGone(_said(error)) from None
        return events

    async def stop(self) -> None:
        """Kill the actor."""
        import ray

        ray.kill(self._actor)


def _said(error: Exception) -> str:
    """Return the first sentence of what Ray says of a death."""
    return str(error).strip().splitlines()[0].rstrip(".")


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class RayPool(Executor):
    """Runs functions on the nodes of the cluster that this process is connected to, one on each CPU.

    Whatever takes an executor of :mod:`concurrent.futures` takes this one: simulations, and the studies of
    :mod:`scorio.study`. A call whose node dies is made again elsewhere.
    """

    def __init__(self) -> None:
        import ray

        self._ray = ray
        self._call = ray.remote(_call).options(num_cpus=1, scheduling_strategy="SPREAD")
        self._pending: dict[Future[Any], Any] = {}
        self.workers = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(
        self, fn: Callable[Parameters, Result], /, *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Future[Result]:
        """Have ``fn(*args, **kwargs)`` called on a node."""
        reference = self._call.remote(fn, args, kwargs)
        future: Future[Result] = reference.future()
        self._pending[future] = reference
        future.add_done_callback(lambda done: self._pending.pop(done, None))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel pending calls; the cluster keeps running."""
        for reference in list(self._pending.values()):
            self._ray.cancel(reference, force=True)


@contextmanager
def ray_pool(address: str, remark: Callable[[str], None]) -> Iterator[RayPool]:
    """Connect to a cluster and yield a pool there."""
    with connected(address, remark), RayPool() as pool:
        yield pool


def _call(function: Callable[..., Result], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
    return function(*args, **kwargs)
