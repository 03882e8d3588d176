"""Servers that are found, and pools of servers that are killed and come back."""

import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import (
    COINS,
    Reached,
    adaptive_eval,
    answered_seeds,
    hold_back,
    in_process,
    mimic_spec,
    port_of_ones_own,
    quickstart,
    report,
    started,
    trials,
    write_config,
)

from adaptive_eval.mimic.mimic_spec import FaultSpec, LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader

# Servers that are found: written into files by jobs that come and go, as on a Slurm cluster.


LATENCY = LatencySpec(median=0.002)

FOREVER = 10**9
"""More requests than a run makes."""


def config_of(folder: Path, **found: Any) -> Path:
    """Return the quickstart's config with servers that are found in the folder ``servers``."""
    (folder / "servers").mkdir(exist_ok=True)
    data = quickstart(base_url="http://nowhere/v1")
    section = {"discover": "file", "path": "servers/*.txt", "every": 0.1, "patience": 120, **found}
    for model in data["models"]:
        model["endpoints"] = section
    return write_config(folder, data)


def register(folder: Path, name: str, server: MimicProcess) -> None:
    """Write a server's host and port into a file, as a job does when its server is up."""
    draft = folder / "servers" / f"{name}.part"
    draft.write_text(f"{server.base_url.removeprefix('http://').removesuffix('/v1')}\n", "utf-8")
    draft.rename(folder / "servers" / f"{name}.txt")


def said_of_servers(run: Path) -> list[str]:
    """Return what is stored of servers that joined or left."""
    with RunReader(run) as reader:
        return [one.body["text"] for one in reader.decisions() if one.body["kind"] == "servers"]


@pytest.mark.slow
def test_jobs_come_and_go_and_the_run_goes_on(tmp_path, undisturbed):
    """The first server answers 100 requests and leaves: the run can end through the second only."""
    dies_young = FaultSpec(kind="hang", requests=(101, FOREVER))
    one = MimicProcess(mimic_spec(latency=LATENCY, faults=(dies_young,)))
    run = tmp_path / "run"
    with one, MimicProcess(mimic_spec(latency=LATENCY)) as two:
        config = config_of(tmp_path)
        with started("run", config, "--out", run, "--display", "none", cwd=tmp_path) as running:
            register(tmp_path, "job-1", one)
            running.until_stored(run, 60)
            register(tmp_path, "job-2", two)
            (tmp_path / "servers" / "job-1.txt").unlink()
            assert one._child is not None
            os.kill(one._child.pid, signal.SIGKILL)
            done = running.finish()
        assert done.code == 0, done
        by_two = {model for model, _ in answered_seeds(two)}
    assert by_two
    assert Reached.by(run) == undisturbed
    assert all(record.missing is None for record in trials(run))
    words = said_of_servers(run)
    joined, left = (
        {model for model in COINS if f"{model}: server {one.base_url} {what}" in words}
        for what in ("joined", "left")
    )
    assert joined == left != set()
    assert all(words.count(f"{model}: server {two.base_url} joined") == 1 for model in by_two)
    assert set(words) <= {decision["text"] for decision in report(run)["decisions"]}


@pytest.mark.slow
def test_a_run_without_servers_ends_with_one_error_and_is_resumed(tmp_path, undisturbed):
    config = config_of(tmp_path, patience=5)
    done = adaptive_eval("run", config, "--out", "run", "--display", "none", cwd=tmp_path, code=4)
    assert "wait for a server, 5 s at most: servers/*.txt names none" in done.err
    assert done.err.count("wait for a server") == 1
    assert "there was no server for 5 s: servers/*.txt names none" in done.said
    assert "adaptive-eval run" in done.said
    with MimicProcess(mimic_spec(latency=LATENCY)) as one:
        register(tmp_path, "job-1", one)
        patient = [part for model in COINS for part in ("-o", f"models[{model}].endpoints.patience=120")]
        done = adaptive_eval("run", "run", "--display", "none", *patient, cwd=tmp_path)
    assert done.code == 0, done
    assert Reached.by(tmp_path / "run") == undisturbed


def test_validate_says_what_a_source_names_and_who_of_them_is_wrong(tmp_path):
    config = config_of(tmp_path)
    empty = in_process("validate", config, cwd=tmp_path, code=0)
    assert "servers/*.txt names nothing now; a run waits 120 s for a server" in empty.out
    with (
        MimicProcess(mimic_spec()) as all_of_them,
        MimicProcess(mimic_spec(models=("sage",))) as sage_alone,
    ):
        register(tmp_path, "job-1", all_of_them)
        register(tmp_path, "job-2", sage_alone)
        (tmp_path / "servers" / "job-3.txt").write_text("half-writ", "utf-8")
        done = in_process("validate", config, cwd=tmp_path)
    assert done.code == 0, done
    assert f"servers/*.txt names {all_of_them.base_url}, {sage_alone.base_url}\n" in done.out
    assert (
        "warning    servers/*.txt: job-3.txt: line 1: 'half-writ' is neither host:port nor a URL" in done.out
    )
    assert f"warning    novice: {sage_alone.base_url} does not serve 'novice'" in done.out
    assert f"endpoint   sage: {sage_alone.base_url} answers" in done.out


# Pools of real servers that are killed and come back, as a person runs them overnight.


POOL_LATENCY = LatencySpec(median=0.02, sigma=0.5)


def pool_config(*servers: MimicProcess) -> dict[str, object]:
    """Return the quickstart's config, every model behind all `servers`."""
    data = quickstart(base_url=servers[0].base_url)
    for model in data["models"]:
        model["endpoints"] = [server.base_url for server in servers]
    return data


def kill(server: MimicProcess) -> None:
    """Kill a server as a crash does: no goodbye, its connections are reset."""
    assert server._child is not None
    os.kill(server._child.pid, signal.SIGKILL)
    server.stop()


def failures(run: Path) -> Counter[tuple[str, str]]:
    """Return how many attempts failed, by address and kind."""
    with RunReader(run) as reader:
        return Counter((one.endpoint, one.error) for one in reader.attempts() if one.error is not None)


@pytest.mark.slow
def test_servers_are_killed_one_after_the_other_and_one_comes_back(tmp_path, undisturbed):
    """The run goes on with whoever is left, waits while nobody is, and reaches the same verdicts."""
    servers = [MimicProcess(mimic_spec(latency=POOL_LATENCY), port=port_of_ones_own()) for _ in range(3)]
    run = tmp_path / "run"
    with servers[0], servers[1], servers[2]:
        # Fewer together than the run needs, and the last one more than is asked of it: it sees seed tests
        # and what the others dropped as well.
        for server, answers in zip(servers, (100, 150, 300), strict=True):
            hold_back(server, answers)
        config = write_config(tmp_path, pool_config(*servers))
        with started("run", config, "--out", run, "--display", "none", cwd=tmp_path) as running:
            running.until_stored(run, 60)
            kill(servers[0])
            running.until_stored(run, 120)
            kill(servers[1])
            running.until_stored(run, 180)
            kill(servers[2])
            assert running.for_a_moment(0.5)
            servers[1].start()  # and holds nothing back any more
            done = running.finish()
        assert done.code == 0, done
        # It was killed with its counts: these are of after its return.
        assert answered_seeds(servers[1])
    stored = trials(run)
    assert all(record.missing is None for record in stored)
    assert Reached.by(run) == undisturbed
    lost = failures(run)
    # A request that was out is dropped, and one sent to a server that is gone finds no connection.
    assert set() < {kind for _, kind in lost} <= {"connection", "dropped", "seed_test"}
    assert {url for url, _ in lost} == {server.base_url for server in servers}
    with RunReader(run) as reader:
        assert sum(attempt.error is None for attempt in reader.attempts()) == len(stored)


@pytest.mark.slow
def test_killed_runs_of_a_pool_are_resumed_with_other_servers(tmp_path, undisturbed):
    """Which servers answer is no part of what a trial is: the run goes on with those that are left."""
    run = tmp_path / "run"
    with (
        MimicProcess(mimic_spec(latency=POOL_LATENCY)) as one,
        MimicProcess(mimic_spec(latency=POOL_LATENCY)) as two,
    ):
        config = write_config(tmp_path, pool_config(one, two))
        with started("run", config, "--out", run, "--display", "none", cwd=tmp_path) as running:
            running.until_stored(run, 100)
            running.process.kill()
        kill(two)
        done = in_process("run", "run", "--display", "none", cwd=tmp_path, code=0)
        assert f"{two.base_url}: connection refused" in done.err
        assert "the run begins without it" in done.err
        assert Reached.by(run) == undisturbed
