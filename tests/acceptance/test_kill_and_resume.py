"""``kill -9`` at any moment: what is stored stays, is not paid for twice, and the verdicts do not change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import (
    Reached,
    answered_seeds,
    in_process,
    mimic_spec,
    quickstart,
    started,
    trials,
    write_config,
)

from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord

LATENCY = LatencySpec(median=0.05, sigma=0.8)
"""Long enough for requests to be out whenever the process is killed."""
IN_ROUNDS = 425
"""Stored trials at which models are in rounds of their own, after two passes of 40 questions; 472 are all."""


@pytest.fixture
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec(latency=LATENCY)) as process:
        yield process


class Killings:
    """A run that is killed again and again, and what must hold each time."""

    def __init__(self, folder: Path, mimic: MimicProcess, seed: int) -> None:
        self.folder = folder
        self.mimic = mimic
        self.run = folder / "run"
        self.random = random.Random(seed)
        self.config = write_config(folder, quickstart(base_url=mimic.base_url))
        self.stored: list[TrialRecord] = []
        self.paid: dict[tuple[str, int], int] = {}

    def sit(self) -> tuple[str, ...]:
        """Return a command that starts the run or goes on with it: one of the two that do."""
        if self.stored and self.random.random() < 0.5:
            return ("run", str(self.run))
        return ("run", str(self.config), "--out", str(self.run))

    def kill_during(self, more: int) -> None:
        """Let a sitting store about `more` trials, kill it, and check that all earlier ones are kept.

        A fast machine may come to the run's end first.
        """
        with started(*self.sit(), "--display", "none", cwd=self.folder) as running:
            running.towards(self.run, len(self.stored) + more)
            running.for_a_moment(self.random.uniform(0.0, 0.05))
            running.process.kill()
            running.process.wait()
        self.check()

    def kill_after(self, seconds: float) -> None:
        """Kill a sitting that has just been started: while it loads, replays or asks for the first time."""
        with started(*self.sit(), "--display", "none", cwd=self.folder) as running:
            running.for_a_moment(seconds)
            running.process.kill()
            running.process.wait()
        self.check()

    def finish(self) -> None:
        """Let it end."""
        done = in_process(*self.sit(), "--display", "none", cwd=self.folder)
        assert done.code == 0, done
        assert done.err == ""
        self.check()

    def check(self) -> None:
        """Check that what was stored is there unchanged, and has not been answered again."""
        if not (self.run / "run.db").exists():
            assert not self.stored
            return
        stored = trials(self.run)
        assert stored[: len(self.stored)] == self.stored
        keys = [record.request.key for record in stored]
        assert len(set(keys)) == len(keys)
        answered = answered_seeds(self.mimic)
        for trial, times in self.paid.items():
            assert answered[trial] == times, f"{trial} was asked again although its answer was stored"
        self.stored = stored
        for record in stored:
            trial = (record.request.key.model, record.request.seed)
            self.paid.setdefault(trial, answered[trial])


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_moments_reaches_the_same_end(
    tmp_path: Path, mimic: MimicProcess, undisturbed: Reached, seed: int
) -> None:
    killings = Killings(tmp_path, mimic, seed)
    for _ in range(seed):
        killings.kill_during(killings.random.randrange(1, 140))
    killings.kill_during(IN_ROUNDS - len(killings.stored))
    asked = max(record.request.key.index for record in killings.stored)
    assert asked >= 2 * len({record.request.question for record in killings.stored})
    killings.finish()
    assert Reached.by(killings.run) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 6))
def test_a_run_killed_many_times_reaches_the_same_end(
    tmp_path: Path, mimic: MimicProcess, undisturbed: Reached, seed: int
) -> None:
    killings = Killings(tmp_path, mimic, seed)
    for _ in range(8):
        killings.kill_after(killings.random.uniform(0.0, 1.5))
    for _ in range(5):
        killings.kill_during(killings.random.randrange(1, 20))
    killings.finish()
    assert Reached.by(killings.run) == undisturbed


def test_what_was_in_flight_is_asked_again_first(tmp_path: Path) -> None:
    """Otherwise the verdicts would have another basis than the uninterrupted run's."""
    with MimicProcess(mimic_spec(latency=LatencySpec(median=0.2, sigma=1.0))) as mimic:
        killings = Killings(tmp_path, mimic, seed=1)
        killings.kill_during(20)
        stored = {record.request.key for record in killings.stored}
        with RunReader(killings.run) as reader:
            lost = {request.key for request in reader.launched()}
        missing = {key for key in lost if any(k.model == key.model and k.index > key.index for k in stored)}
        assert missing
        budget = f"budget.trials={len(stored) + len(missing)}"
        assert in_process("run", killings.run, "-o", budget, cwd=tmp_path).code == 3
    assert {record.request.key for record in trials(killings.run)} == stored | missing


def test_the_quickstart_s_own_mimic_is_no_obstacle(tmp_path: Path) -> None:
    """The mimic that the run starts for itself dies with it; the next sitting starts another."""
    config = write_config(tmp_path, quickstart(latency=0.02))
    run = tmp_path / "run"
    with started("run", config, "--out", run, cwd=tmp_path) as running:
        running.until_stored(run, 100)
        running.process.kill()
        running.process.wait()
    before = trials(run)
    assert in_process("run", run, cwd=tmp_path).code == 0
    assert trials(run)[: len(before)] == before
