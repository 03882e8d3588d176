"""Whole runs on a real cluster of Ray, by the installed command; workers and runs are killed."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import (
    Reached,
    Running,
    adaptive_eval,
    answered_seeds,
    environment,
    free_port,
    hold_back,
    mimic_spec,
    quickstart,
    served,
    set_faults,
    started,
    write_config,
)
from ray_here import KEY, Cluster, until, write_grader
from scripted_http import refusing

from adaptive_eval.build.assembly import build
from adaptive_eval.build.workplace import workplace_of
from adaptive_eval.config import load_config
from adaptive_eval.errors import UsageError
from adaptive_eval.executors.ray_cluster import _watch_head
from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader
from scorio.study import Bootstrap, Metric, biased_coins, convergence

pytestmark = pytest.mark.timeout(900)

LATENCY = LatencySpec(median=0.02, sigma=0.5)
MEMORY = {"object_store_memory": 80 * 2**20}


def on(cluster: Cluster, *urls: str, **sections: Any) -> dict[str, Any]:
    """Return the quickstart's config for workers on the cluster, its models behind `urls`."""
    data = quickstart(base_url=urls[0])
    for model in data["models"]:
        model["endpoints"] = list(urls)
    return {**data, "executor": {"kind": "ray", "address": cluster.address, "actors": 2}, **sections}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give commands the time that a busy machine takes to start workers."""
    monkeypatch.setattr("command_line.PATIENCE", 600.0)


@contextmanager
def under_way(cluster: Cluster, folder: Path) -> Iterator[tuple[Running, MimicProcess]]:
    """Let a run into the folder ``run`` store 60 trials; from the 130th on each answer takes 3 seconds."""
    with MimicProcess(mimic_spec(latency=LATENCY)) as mimic:
        hold_back(mimic, 130, seconds=3.0)
        config = write_config(folder, on(cluster, mimic.base_url))
        with started("run", config, "--out", "run", "--display", "none", cwd=folder) as running:
            running.until_stored(folder / "run", 60)
            yield running, mimic


def continue_here(run: Path, *options: str) -> None:
    """Continue a run to its end."""
    adaptive_eval("run", run, *options, "--display", "none", cwd=run.parent, code=0)


HERE = ("-o", "executor.kind=local")


def workers() -> set[int]:
    """Return the process ids of all workers on this machine that descend from this process's cluster."""
    return descendants(os.getpid(), b"ray::Worker")


def descendants(of: int, beginning: bytes) -> set[int]:
    """Return the processes that descend from `of` and whose program, or title, ends or begins so."""
    parents, found = {}, set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat, title = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
            except OSError:  # it has just ended
                continue
            parents[int(entry.name)] = int(stat.rpartition(")")[2].split()[1])
            if title.startswith(beginning) or title.partition(b"\0")[0].endswith(beginning):
                found.add(int(entry.name))

    def ours(pid: int) -> bool:
        return pid == of or (pid in parents and ours(parents[pid]))

    return {pid for pid in found if ours(pid)}


def balance(run: Path, *, killed: bool = False) -> None:
    """Check that every trial is stored once, with the one attempt that was answered.

    A run that was `killed` may have lost answers between their arrival and their scores: these are asked
    again.
    """
    with RunReader(run) as reader:
        stored = Counter(record.request.key for record in reader.trials())
        answered = Counter(one.key for one in reader.attempts() if one.error is None)
        assert all(record.missing is None for record in reader.trials())
    assert set(stored.values()) == {1}
    assert answered >= stored if killed else answered == stored


@pytest.mark.ray
def test_code_is_shipped_and_secrets_are_not(tmp_path, cluster):
    """The scorer is a function beside the config, which imports its neighbour; a key is asked for."""
    write_grader(tmp_path)
    (tmp_path / ".env").write_text(f"LAB_PASS={KEY}")
    with MimicProcess(mimic_spec(api_key=KEY)) as mimic:
        data = on(cluster, mimic.base_url)
        data["tasks"][0]["scorer"] = {"kind": "python", "function": "own_grader:grade"}
        for model in data["models"]:
            model["api_key_env"] = "LAB_PASS"
        config, env = write_config(tmp_path, data), environment(LAB_PASS=KEY)
        done = adaptive_eval(
            "run", config, "--out", "run", "--display", "none", cwd=tmp_path, env=env, code=0
        )
        del data["executor"]
        config = write_config(tmp_path, data)
        adaptive_eval("run", config, "--out", "alone", "--display", "none", cwd=tmp_path, env=env, code=0)
    assert Reached.by(tmp_path / "run") == Reached.by(tmp_path / "alone")
    for folder in (cluster.folder, tmp_path / "run"):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                assert KEY.encode() not in path.read_bytes(), path
    assert KEY not in done.said


@pytest.mark.ray
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(tmp_path, cluster, undisturbed):
    """SIGKILL, in the middle. What it had in hand is asked again; the server is not blamed."""
    run = tmp_path / "run"
    with under_way(cluster, tmp_path) as (running, mimic):
        os.kill(min(workers()), signal.SIGKILL)
        set_faults(mimic)
        done = running.finish()
        assert done.code == 0, done
        seeds = answered_seeds(mimic)
    assert "has died" in done.err
    balance(run)
    assert Reached.by(run) == undisturbed
    # What was asked again is what was lost on the way, as attempts of the worker's.
    with RunReader(run) as reader:
        lost = {one.key for one in reader.attempts() if one.error == "worker"}
        again = {
            record.request.key
            for record in reader.trials()
            if seeds[record.request.key.model, record.request.seed] > 1
        }
    assert again <= lost


@pytest.mark.ray
def test_a_killed_run_is_resumed_and_leaves_no_workers(tmp_path, cluster, undisturbed):
    run = tmp_path / "run"
    with under_way(cluster, tmp_path) as (running, mimic):
        assert workers()
        running.process.kill()
        running.process.wait()
        set_faults(mimic)
        until(lambda: not workers())
        continue_here(run)
    balance(run, killed=True)
    assert Reached.by(run) == undisturbed


@pytest.fixture
def nodes() -> Iterator[Any]:
    """Start a cluster of a head without CPUs, to which a test adds nodes; it takes clients by ray://."""
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "GRPC_ENABLE_FORK_SUPPORT": "0"}
    port = free_port()
    head = {"num_cpus": 0, "ray_client_server_port": port, "include_dashboard": False, **MEMORY}
    nodes = cluster_utils.Cluster(initialize_head=True, head_node_args=head)
    nodes.client_address = f"ray://127.0.0.1:{port}"
    yield nodes
    nodes.shutdown()


@pytest.mark.ray
def test_a_node_that_dies_is_replaced_by_another_and_the_head_ends_the_run(tmp_path, nodes, undisturbed):
    """All processes of a node are killed, and a node joins. Later those of the head: exit code 4, a hint."""
    run = tmp_path / "run"
    node = nodes.add_node(num_cpus=2, **MEMORY)
    with under_way(Cluster(nodes.address, tmp_path), tmp_path) as (running, mimic):
        nodes.remove_node(node, allow_graceful=False)
        nodes.add_node(num_cpus=2, **MEMORY)
        running.until_said("has died")
        running.until_stored(run, 125)
        nodes.remove_node(nodes.head_node, allow_graceful=False)
        done = running.finish()
        set_faults(mimic)
        assert done.code == 4, done
        assert "raylet) has ended; resume continues the run" in done.said
        continue_here(run, *HERE)
    balance(run, killed=True)
    assert Reached.by(run) == undisturbed


@pytest.mark.ray
@pytest.mark.parametrize("name", [b"/raylet", b"DashboardAgent"])
def test_rays_own_process_on_this_machine_ends(tmp_path, cluster, undisturbed, name):
    """The cluster is the run's own (``address: local``): its raylet is killed, or what that ends with."""
    run = tmp_path / "run"
    with under_way(Cluster("local", tmp_path), tmp_path) as (running, mimic):
        (process,) = descendants(running.process.pid, name)
        os.kill(process, signal.SIGKILL)
        done = running.finish()
        set_faults(mimic)
        assert done.code == 4, done
        assert "has ended; resume continues the run" in done.err
        assert not done.out, "Ray's own news stay out of the terminal"
        continue_here(run, *HERE)
    balance(run, killed=True)
    assert Reached.by(run) == undisturbed


@pytest.mark.ray
def test_a_client_of_a_cluster_with_servers_that_are_found(tmp_path, nodes, undisturbed):
    """By ``ray://``; the second server joins and the first leaves while the run is under way."""
    pytest.importorskip("grpc")
    nodes.add_node(num_cpus=2, **MEMORY)
    run, found = tmp_path / "run", tmp_path / "servers.txt"
    with (
        MimicProcess(mimic_spec(latency=LATENCY)) as one,
        MimicProcess(mimic_spec(latency=LATENCY)) as two,
    ):
        hold_back(one, 100, seconds=3.0)
        found.write_text(f"{one.base_url}\n", "utf-8")
        data = on(Cluster(nodes.client_address, tmp_path), "http://nowhere/v1")
        for model in data["models"]:
            model["endpoints"] = {"discover": "file", "path": found.name, "every": 0.1, "patience": 120}
        config = write_config(tmp_path, data)
        with started("run", config, "--out", run, "--display", "none", cwd=tmp_path) as running:
            running.until_stored(run, 60)
            draft = found.with_suffix(".part")
            draft.write_text(f"{two.base_url}\n", "utf-8")
            draft.rename(found)
            done = running.finish()
        assert done.code == 0, done
        assert served(two)["requests"] > 0
    assert Reached.by(run) == undisturbed


@pytest.mark.ray
def test_limits_hold_over_all_workers_while_servers_misbehave(tmp_path, cluster, undisturbed):
    """Six places at the server, as it counted itself; 429 and broken connections decide nothing."""
    run = tmp_path / "run"
    with MimicProcess(mimic_spec(latency=LATENCY)) as mimic:
        set_faults(
            mimic,
            {"kind": "status", "status": 429, "retry_after": 0.05, "every": 15},
            {"kind": "drop", "every": 40},
        )
        data = on(cluster, mimic.base_url)
        data["servers"] = [{"url": mimic.base_url, "concurrency": 6}]
        adaptive_eval(
            "run", write_config(tmp_path, data), "--out", run, "--display", "none", cwd=tmp_path, code=0
        )
        counted = served(mimic)
    assert counted["peak_in_flight"] <= 6
    assert counted["faults"]["status"] > 0
    assert counted["faults"]["drop"] > 0
    balance(run)
    assert Reached.by(run) == undisturbed


@pytest.mark.ray
def test_simulations_and_studies_on_a_cluster_give_the_same(tmp_path, cluster):
    command = ("plan", "--models", 2, "--questions", 10, "--replicates", 12, "--seed", 4, "--json")
    here = adaptive_eval(*command, "--workers", 1, cwd=tmp_path)
    there = adaptive_eval(*command, "--ray", cluster.address, cwd=tmp_path)
    assert there.code == here.code == 0, there
    assert there.out == here.out
    assert "Ray" in there.err

    from adaptive_eval.executors.ray_cluster import RayPool

    source = Bootstrap(biased_coins(np.linspace(0.2, 0.8, 4), 8, seed=1).sample(6, seed=2))
    alone = convergence(source, Metric("avg"), replicates=500, seed=3)
    with RayPool() as pool:
        shared = convergence(source, Metric("avg"), replicates=500, seed=3, executor=pool)
    assert np.array_equal(alone.at, shared.at)


@pytest.mark.ray
def test_a_cluster_that_is_not_there(tmp_path, cluster):
    with refusing() as port:
        address = f"127.0.0.1:{port}"
        data = {**quickstart(), "executor": {"kind": "ray", "address": address}}
        done = adaptive_eval("run", write_config(tmp_path, data), "--display", "none", cwd=tmp_path)
    assert done.code == 2, done
    assert f"error: no cluster of Ray at {address}: " in done.err


def test_without_ray_the_message_says_what_to_install(tmp_path, monkeypatch):
    data = {**quickstart(), "executor": {"kind": "ray", "address": "local"}}
    built = build(load_config(write_config(tmp_path, data)))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match=r"pip install ray"), workplace_of(built, print):
        pass


def test_a_head_that_does_not_answer_for_too_long_is_noticed_once(monkeypatch):
    monkeypatch.setattr("adaptive_eval.executors.ray_cluster._HEAD_ASKED", 0.001)
    monkeypatch.setattr("adaptive_eval.executors.ray_cluster._HEAD_AGAIN", 0.003)
    said: list[str] = []
    with refusing() as port:
        address = f"127.0.0.1:{port}"
        asyncio.run(_watch_head(address, said.append))
    assert len(said) == 1
    assert address in said[0]
