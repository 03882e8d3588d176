"""A pool of processes on a cluster of Ray, with the interface of :mod:`concurrent.futures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from adaptive_eval.executors.ray_cluster import connected

__all__ = ["RayPool", "ray_pool"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class RayPool(Executor):
    """Runs functions on the nodes of the cluster that this process is connected to, one on each CPU.

    Whatever takes an executor of :mod:`concurrent.futures` takes this one: simulations, and the studies of
    :mod:`scorio.study`. A call whose node dies is made again elsewhere.

    Attributes
    ----------
    workers : int
        Calls at a time, as many as the cluster has CPUs now.
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
        """Break off what is not done; the cluster stays as it is."""
        for reference in list(self._pending.values()):
            self._ray.cancel(reference, force=True)


@contextmanager
def ray_pool(address: str, remark: Callable[[str], None], own_code: Path | None = None) -> Iterator[RayPool]:
    """Connect to a cluster and yield a pool there; `own_code` is a folder whose Python sources are shipped.

    Raises
    ------
    UsageError
        If Ray is not installed, or there is no cluster at the address.
    """
    with connected(address, remark, own_code=own_code), RayPool() as pool:
        yield pool


def _call(function: Callable[..., Result], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Result:
    return function(*args, **kwargs)
