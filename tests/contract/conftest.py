"""A mimic for the tests that ask one, and a cluster of Ray on this machine for those marked so."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from mimic_client import SPEC, set_faults
from ray_here import KEY, Cluster

from adaptive_eval.build.assembly import PreparedRun
from adaptive_eval.build.workplace import workplace_of
from adaptive_eval.config.run_config import ExecutorConfig
from adaptive_eval.engine.protocols import Executor
from adaptive_eval.mimic.process import MimicProcess


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Start a cluster of two CPUs, whose nodes know a key."""
    ray = pytest.importorskip("ray")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "LAB_PASS": KEY}
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=80 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    folder = Path(ray._private.worker._global_node.get_session_dir_path())
    yield Cluster(ray.get_runtime_context().gcs_address, folder)
    ray.shutdown()


@pytest.fixture
def on_ray(cluster: Cluster) -> Callable[[PreparedRun], AbstractAsyncContextManager[Executor]]:
    """Return what opens an executor on the cluster, from this process."""
    section = ExecutorConfig(kind="ray", actors=1)

    def open_(built: PreparedRun) -> AbstractAsyncContextManager[Executor]:
        built = replace(built, config=built.config.model_copy(update={"executor": section}))
        with workplace_of(built, print) as workplace:
            return workplace(built)

    return open_


@pytest.fixture(scope="module")
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(SPEC) as process:
        yield process


@pytest.fixture
def faulty(mimic: MimicProcess) -> Iterator[Callable[..., None]]:
    """Set faults of the whole server for one test."""
    yield lambda *faults: set_faults(mimic, *faults)
    set_faults(mimic)
