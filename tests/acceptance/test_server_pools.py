"""Pools of real servers that are killed and come back, as a person runs them overnight."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from command_line import (
    Reached,
    answered_seeds,
    hold_back,
    in_process,
    mimic_spec,
    port_of_ones_own,
    quickstart,
    started,
    trials,
    write_config,
)

from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader

LATENCY = LatencySpec(median=0.02, sigma=0.5)


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
def test_servers_are_killed_one_after_the_other_and_one_comes_back(
    tmp_path: Path, undisturbed: Reached
) -> None:
    """The run goes on with whoever is left, waits while nobody is, and reaches the same verdicts."""
    servers = [MimicProcess(mimic_spec(latency=LATENCY), port=port_of_ones_own()) for _ in range(3)]
    run = tmp_path / "run"
    with servers[0], servers[1], servers[2]:
        for server in servers:
            hold_back(server, 130)
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
    assert set() < {kind for _, kind in lost} <= {"connection", "dropped"}
    assert {url for url, _ in lost} == {server.base_url for server in servers}
    with RunReader(run) as reader:
        assert sum(attempt.error is None for attempt in reader.attempts()) == len(stored)


@pytest.mark.slow
def test_killed_runs_of_a_pool_are_resumed_with_other_servers(tmp_path: Path, undisturbed: Reached) -> None:
    """Which servers answer is no part of what a trial is: the run goes on with those that are left."""
    run = tmp_path / "run"
    with (
        MimicProcess(mimic_spec(latency=LATENCY)) as one,
        MimicProcess(mimic_spec(latency=LATENCY)) as two,
    ):
        config = write_config(tmp_path, pool_config(one, two))
        with started("run", config, "--out", run, "--display", "none", cwd=tmp_path) as running:
            running.until_stored(run, 100)
            running.process.kill()
        kill(two)
        done = in_process("run", "run", "--display", "none", cwd=tmp_path)
        assert done.code == 0, done
        assert f"{two.base_url}: connection refused" in done.err
        assert "the run begins without it" in done.err
        assert Reached.by(run) == undisturbed
