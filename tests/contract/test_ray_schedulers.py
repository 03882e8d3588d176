"""The documented ways to start a run under a scheduler, with stubs in place of the scheduler's commands."""

import os
import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import (
    COMMAND,
    ROOT,
    Reached,
    adaptive_eval,
    ended,
    environment,
    free_port,
    hold_back,
    mimic_spec,
    quickstart,
    set_faults,
    stored_trials,
    write_config,
)
from ray_here import until, write_grader
from ruamel.yaml import YAML

from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader

pytestmark = [pytest.mark.ray, pytest.mark.timeout(900)]

SRUN = """#!/bin/sh
while case $1 in -*) true;; *) false;; esac; do shift; done
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
    with MimicProcess(mimic_spec()) as mimic:
        config = write_config(folder, quickstart(base_url=mimic.base_url))
        config.rename(folder / "spread.yaml")
        adaptive_eval("run", "spread.yaml", "--out", "alone", "--display", "none", cwd=folder, code=0)
        yield folder, Reached.by(folder / "alone")


def run_as_written(words: list[str], cwd: Path, commands: Path, **variables: str) -> None:
    """Run a command line of ours, with `commands` first in the path."""
    path = f"{commands}:{COMMAND.parent}:{os.environ['PATH']}"
    ended(*words, cwd=cwd, env=environment(PATH=path, **variables), code=0)


@pytest.fixture
def job_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Start a cluster of two CPUs that takes jobs, and yield the address of its job server."""
    pytest.importorskip("aiohttp_cors", reason="the job server needs ray[default]")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PATH", f"{COMMAND.parent}:{os.environ['PATH']}")  # of the jobs, too
    head = {
        "num_cpus": 2,
        "include_dashboard": True,
        "dashboard_port": free_port(),
        "dashboard_agent_listen_port": free_port(),
        "object_store_memory": 80 * 2**20,
    }
    cluster = Cluster(initialize_head=True, head_node_args=head)
    yield f"http://{cluster.webui_url}"
    cluster.shutdown()


def test_a_job_of_ray(tmp_path, job_server):
    """It is stopped with answers on their way, which are awaited; sent again, it ends as in one process.

    The scorer is a function beside the config, which is in the job's folder already.
    """
    text = (ROOT / "docs" / "scaling.md").read_text("utf-8")
    (line,) = re.findall(r"^ray job submit (?:.*\\\n)*.*$", text, re.MULTILINE)
    run = tmp_path / "run"
    words = shlex.split(line.replace("\\\n", " ").replace("http://head:8265", job_server))
    words = [str(run) if word.startswith("/shared/") else word for word in words]
    folder = tmp_path / "job"
    folder.mkdir()
    write_grader(folder)
    with MimicProcess(mimic_spec()) as mimic:
        data = quickstart(base_url=mimic.base_url)
        data["tasks"][0]["scorer"] = {"kind": "python", "function": "own_grader:grade"}
        write_config(folder, data).rename(folder / "spread.yaml")
        hold_back(mimic, 130, seconds=6.0)
        ray_job("submit", "--no-wait", "--submission-id", "first", *words[3:], cwd=folder)
        until(lambda: stored_trials(run) >= 60)
        ray_job("stop", "--address", job_server, "first", cwd=folder)
        assert "Continue with" in ray_job("logs", "--address", job_server, "first", cwd=folder)
        with RunReader(run) as reader:
            assert reader.count() >= 130
            assert not reader.unanswered()
        set_faults(mimic)
        ray_job(*words[2:], cwd=folder)
        adaptive_eval("run", "spread.yaml", "--out", "alone", "--display", "none", cwd=folder, code=0)
    assert Reached.by(run) == Reached.by(folder / "alone")


def ray_job(*words: str, cwd: Path) -> str:
    """Run ``ray job`` with `words`, and return what it printed."""
    done = ended(COMMAND.with_name("ray"), "job", *words, cwd=cwd, code=0)
    return done.out


def test_the_entry_point_of_kuberay(in_one_process, tmp_path, cluster):
    folder, alone = in_one_process
    manifest = YAML(typ="safe").load((ROOT / "configs" / "ray" / "kuberay.yaml").read_text("utf-8"))
    line = manifest["spec"]["entrypoint"].replace("/config/", f"{folder}/").replace("/runs/", f"{tmp_path}/")
    words = [word.replace("actors=16", "actors=2") for word in shlex.split(line)]
    run_as_written(words, tmp_path, tmp_path, RAY_ADDRESS=cluster.address)
    assert Reached.by(tmp_path / "spread") == alone


def test_a_job_of_slurm(in_one_process, tmp_path, cluster):
    """Both nodes of the job are this machine; they end with the job."""
    import ray

    folder, alone = in_one_process
    port = free_port()
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
