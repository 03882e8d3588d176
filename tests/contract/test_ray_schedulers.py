"""The documented ways to start a run under a scheduler, with stubs in place of the scheduler's commands."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import (
    COMMAND,
    ROOT,
    Reached,
    adaptive_eval,
    environment,
    mimic_spec,
    quickstart,
    write_config,
)
from ray_here import Cluster
from ruamel.yaml import YAML

from adaptive_eval.mock_server.process import MockServerProcess

SRUN = """#!/bin/sh
while case $1 in -*) true;; *) false;; esac; do shift; done
exec "$@"
"""

RAY_JOB = """#!/bin/sh
# What Ray's head does: it takes the folder, and runs the command with the address of its cluster.
set -eu
[ "$1 $2" = "job submit" ]
while [ "$1" != -- ]; do
    [ "$1" = --working-dir ] && cp -r "$2" "$JOBS/job"
    shift
done
shift
cd "$JOBS/job"
exec "$@"
"""


def command_of(folder: Path, name: str, text: str) -> None:
    """Put a command where the shell finds it first."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Reached]]:
    """Yield a folder with a config and its questions, and what a run of it reaches without Ray."""
    folder = tmp_path_factory.mktemp("spread")
    with MockServerProcess(mimic_spec()) as mimic:
        config = write_config(folder, quickstart(base_url=mimic.base_url))
        config.rename(folder / "spread.yaml")
        done = adaptive_eval("run", "spread.yaml", "--out", "alone", "--display", "none", cwd=folder)
        assert done.code == 0, done
        yield folder, Reached.by(folder / "alone")


def run_as_written(words: list[str], cwd: Path, commands: Path, **variables: str) -> None:
    """Run a command line of ours, with `commands` first in the path."""
    path = f"{commands}:{COMMAND.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        words,
        cwd=cwd,
        env=environment(PATH=path, **variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_a_job_of_ray(in_one_process: tuple[Path, Reached], tmp_path: Path, cluster: Cluster) -> None:
    folder, alone = in_one_process
    text = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    (line,) = re.findall(r"^ray job submit (?:.*\\\n)*.*$", text, re.MULTILINE)
    command_of(tmp_path / "bin", "ray", RAY_JOB)
    run = tmp_path / "run"
    words = [
        str(run) if word.startswith("/shared/") else word for word in shlex.split(line.replace("\\\n", " "))
    ]
    run_as_written(words, folder, tmp_path / "bin", JOBS=str(tmp_path), RAY_ADDRESS=cluster.address)
    assert Reached.by(run) == alone


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_the_entry_point_of_kuberay(
    in_one_process: tuple[Path, Reached], tmp_path: Path, cluster: Cluster
) -> None:
    folder, alone = in_one_process
    manifest = YAML(typ="safe").load((ROOT / "configs" / "ray" / "kuberay.yaml").read_text("utf-8"))
    line = manifest["spec"]["entrypoint"].replace("/config/", f"{folder}/").replace("/runs/", f"{tmp_path}/")
    words = [word.replace("actors=16", "actors=2") for word in shlex.split(line)]
    run_as_written(words, tmp_path, tmp_path, RAY_ADDRESS=cluster.address)
    assert Reached.by(tmp_path / "spread") == alone


@pytest.mark.ray
@pytest.mark.timeout(900)
def test_a_job_of_slurm(in_one_process: tuple[Path, Reached], tmp_path: Path, cluster: Cluster) -> None:
    """Both nodes of the job are this machine; they end with the job."""
    import ray

    folder, alone = in_one_process
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    command_of(tmp_path / "bin", "srun", SRUN)
    command_of(tmp_path / "bin", "hostname", f"#!/bin/sh\necho {ray.util.get_node_ip_address()}\n")
    script, run = ROOT / "configs" / "ray" / "slurm.sh", tmp_path / "run"
    bash = shutil.which("bash") or "bash"
    variables = {"RAY_PORT": str(port), "SLURM_JOB_NUM_NODES": "2", "RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory(
        prefix="ray-", ignore_cleanup_errors=True
    ) as own:  # sockets: a short path
        variables |= {"RAY_ADDRESS": "", "RAY_TMPDIR": own}
        try:
            words = [bash, str(script), "spread.yaml", str(run)]
            run_as_written(words, folder, tmp_path / "bin", **variables)
            assert Reached.by(run) == alone
        finally:
            for pid in of_cluster(port):
                os.kill(pid, signal.SIGKILL)


def of_cluster(port: int) -> list[int]:
    """Return the processes of the cluster whose head has this port."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                title = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if re.search(rf"[:=]{port}\b", title) and "ray" in title:
                found.append(int(entry.name))
    return found
