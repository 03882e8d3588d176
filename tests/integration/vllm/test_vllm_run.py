"""`adaptive-eval run` against three real vLLM servers, as a user would run it."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, adaptive_eval, report, started, trials, write_config
from vllm_install import MODELS
from vllm_server import CHOICE_TASK, Counters, VllmServer

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SEED_TEST, TrialRecord
from adaptive_eval.trial import TrialKey

CONFIGS = ROOT / "configs"

PASSES = 6
KILL_AFTER = 60
"""Stored trials at which the run is killed, of 432."""

CONCURRENCY = 8


@dataclass(frozen=True)
class Run:
    """A run that has come to its end, and what the servers counted meanwhile, by model."""

    directory: Path
    exit_code: int
    output: str
    counted: dict[str, Counters]

    @cached_property
    def trials(self) -> dict[TrialKey, TrialRecord]:
        return stored_trials(self.directory)

    def usage(self, model: str, keys: Iterable[TrialKey]) -> Counters:
        """Return what the servers should have counted for these of a model's trials."""
        mine = [self.trials[key].completion.usage for key in keys if key.model == model]
        return Counters(
            finished=len(mine),
            prompt_tokens=sum(usage.prompt_tokens for usage in mine),
            generation_tokens=sum(usage.completion_tokens for usage in mine),
        )


def stored_trials(directory: Path) -> dict[TrialKey, TrialRecord]:
    records = trials(directory)
    stored = {record.request.key: record for record in records}
    assert len(stored) == len(records)
    return stored


def answers(stored: dict[TrialKey, TrialRecord]) -> dict[TrialKey, tuple[str, str, int]]:
    """Return question, answer and category of each trial."""
    return {
        key: (record.request.question, record.completion.text, record.score.category)
        for key, record in stored.items()
    }


def decisions(run: Run) -> list[tuple[int, Any]]:
    """Return what was decided and after how many trials."""
    with RunReader(run.directory) as reader:
        return [(decision.trials, decision.body) for decision in reader.decisions()]


def leaderboard(run: Run) -> list[dict[str, Any]]:
    """Return what a report says of the models, but for how long they took and what was asked again."""
    return [
        {
            name: value
            for name, value in model.items()
            if not name.startswith(("latency_", "discarded", "redrawn"))
        }
        for model in report(run.directory)["models"]
    ]


@pytest.fixture(scope="module")
def config(servers: dict[str, VllmServer], tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = {
        "name": "three-tiny-models",
        "seed": 11,
        "models": [server.choosing(CONCURRENCY) for server in servers.values()],
        "tasks": [CHOICE_TASK],
        "goal": "ranking",
        "stopping": {"rule": "anytime", "confidence": 0.95, "max_passes": PASSES},
        "on": {"discarded": ["killed"]},  # vLLM honours seeds, which answers of one letter cannot always show
    }
    return write_config(tmp_path_factory.mktemp("vllm-run"), data)


@pytest.fixture(scope="module")
def carry_out(servers: dict[str, VllmServer]) -> Callable[..., Run]:
    """Run a command of adaptive-eval to its end."""

    def carry_out(directory: Path, *arguments: str) -> Run:
        before = {name: server.wait_until_idle() for name, server in servers.items()}
        done = adaptive_eval(*arguments, "--display", "plain", cwd=directory.parent)
        counted = {name: server.wait_until_idle() - before[name] for name, server in servers.items()}
        return Run(directory, done.code, done.said, counted)

    return carry_out


@pytest.fixture(scope="module")
def first(config: Path, carry_out: Callable[..., Run]) -> Run:
    """A run from start to end."""
    directory = config.parent / "first"
    return carry_out(directory, "run", str(config), "--out", str(directory))


def test_the_run_ends_at_its_cap_with_a_report(first):
    assert first.exit_code == 3, first.output
    assert "432 trials" in first.output
    assert report(first.directory)["run"]["stop"]["reason"] == "max_passes"
    assert {model["model"] for model in report(first.directory)["models"]} == set(MODELS)
    assert (first.directory / "report.md").read_text().startswith("#")
    (stop,) = decisions(first)
    assert stop[0] == 432


def test_the_usage_stored_is_what_vllm_has_counted(first):
    for record in first.trials.values():
        assert record.completion.usage.prompt_tokens > 32
        assert record.completion.usage.completion_tokens >= 1
        assert record.charged == record.completion.usage
    for model in MODELS:
        assert first.counted[model] == first.usage(model, first.trials)
        (reported,) = [line for line in report(first.directory)["models"] if line["model"] == model]
        assert reported["prompt_tokens"] == first.counted[model].prompt_tokens
        assert reported["completion_tokens"] == first.counted[model].generation_tokens


def test_a_killed_run_is_resumed_without_asking_anything_stored_again(first, config, servers, carry_out):
    directory = config.parent / "killed"
    kill_in_the_middle(config, directory)
    for server in servers.values():
        server.wait_until_idle()
    kept = stored_trials(directory)
    with RunReader(directory) as reader:
        lost = {request.key for request in reader.launched()}
    assert KILL_AFTER <= len(kept) < len(first.trials)
    # In flight, or answered and waiting to be stored while others were sent in their places.
    assert 1 <= len(lost) <= 2 * CONCURRENCY * len(MODELS)

    resumed = carry_out(directory, "run", str(directory))
    assert resumed.exit_code == 3, resumed.output
    stored = resumed.trials
    assert {key: stored[key] for key in kept} == kept
    assert answers(stored) == answers(first.trials)
    assert leaderboard(resumed) == leaderboard(first)
    assert decisions(resumed) == decisions(first)

    asked = stored.keys() - kept.keys()
    assert lost <= asked
    with RunReader(directory) as reader:
        tests = Counter(one.key.model for one in reader.attempts() if one.error == SEED_TEST)
    for model in MODELS:
        wanted = resumed.usage(model, asked)
        assert resumed.counted[model].finished == wanted.finished + tests[model]
        if not tests[model]:
            assert resumed.counted[model] == wanted


def test_the_config_that_ships_runs_when_its_models_are_pointed_at_servers(servers, carry_out, tmp_path):
    config = str(CONFIGS / "vllm.yaml")
    overrides = ["-o", "stopping.max_passes=1", "-o", "on.length=wrong"]
    for place, server in enumerate(servers.values()):
        model = f"models[{place}]"
        overrides += ["-o", f"{model}.model={server.model}", "-o", f"{model}.endpoints=[{server.base_url}]"]
        overrides += ["-o", f"{model}.sampling.max_tokens=12"]
    shipped = carry_out(tmp_path / "shipped", "run", config, "--out", str(tmp_path / "shipped"), *overrides)
    assert shipped.exit_code == 3, shipped.output
    assert {counted.finished for counted in shipped.counted.values()} == {24}
    for record in shipped.trials.values():
        assert record.sent["top_k"] == 20
        assert record.completion.usage.completion_tokens <= 12


def kill_in_the_middle(config: Path, directory: Path) -> None:
    """Start a run and ``kill -9`` it when some of its trials are stored and others are in flight.

    It is held still to look: between two passes nothing is in flight.
    """
    command = ("run", config, "--out", directory, "--display", "none")
    with started(*command, cwd=directory.parent) as running:
        running.until_stored(directory, KILL_AFTER)
        while not in_flight_when_stopped(running.process.pid, directory):
            running.process.send_signal(signal.SIGCONT)
            assert running.for_a_moment(), running.finish()
        running.process.kill()


def in_flight_when_stopped(process: int, directory: Path) -> bool:
    """Stop a process, and say whether its run has trials that were launched and are not stored."""
    os.kill(process, signal.SIGSTOP)
    os.waitid(os.P_PID, process, os.WSTOPPED)
    with RunReader(directory) as reader:
        return bool(reader.launched())
