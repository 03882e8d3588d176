"""Ending a run before it is resolved: by Ctrl-C, by SIGTERM, by a budget; and going on."""

import os
import pty
import re
import shlex
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import (
    PATIENCE,
    Reached,
    adaptive_eval,
    answered_seeds,
    environment,
    hold_back,
    in_process,
    mimic_spec,
    quickstart,
    report,
    served,
    set_faults,
    started,
    trials,
    write_config,
)

from adaptive_eval.mimic.mimic_spec import LatencySpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SEED_TEST
from adaptive_eval.trial import TrialKey


@pytest.fixture
def mimic() -> Iterator[MimicProcess]:
    with MimicProcess(mimic_spec(latency=LatencySpec(median=0.05, sigma=0.5))) as process:
        yield process


@pytest.fixture
def command(tmp_path: Path, mimic: MimicProcess) -> tuple[object, ...]:
    """The command that runs the quickstart against the mimic into the folder ``run``."""
    return ("run", write_config(tmp_path, quickstart(base_url=mimic.base_url)), "--out", "run")


def check_interrupted(run: Path, mimic: MimicProcess) -> None:
    """Check that the run was interrupted, and that every answer that was paid for is stored."""
    stored = {(record.request.key.model, record.request.seed) for record in trials(run)}
    assert stored == set(answered_seeds(mimic))
    assert report(run)["run"]["stop"]["reason"] == "interrupted"
    assert report(run)["counts"]["stored"] == len(stored)


def seed_tests(run: Path) -> Counter[TrialKey]:
    """Return how often trials were asked again, because servers may repeat answers of the same seed."""
    with RunReader(run) as reader:
        return Counter(attempt.key for attempt in reader.attempts() if attempt.error == SEED_TEST)


def check_answered_once(run: Path, mimic: MimicProcess) -> None:
    """Check that each trial was answered once, and else only requests that test seeds."""
    answered, records, tests = answered_seeds(mimic), trials(run), seed_tests(run)
    assert sum(answered.values()) == len(records) + tests.total()
    for record in records:
        key = record.request.key
        assert 1 <= answered[key.model, record.request.seed] <= 1 + tests[key]


def suggested(out: str, setting: str) -> float:
    """Return the value that the last line's command gives to `setting`."""
    *_, option, written = shlex.split(out.splitlines()[-1].partition("adaptive-eval ")[2])
    name, _, value = written.rpartition("=")
    assert (option, name) == ("-o", setting)
    factor = {"k": 1e3, "M": 1e6}.get(value[-1], 1.0)
    return float(value.rstrip("kM")) * factor


def all_hang(mimic: MimicProcess) -> bool:
    """Say whether requests are out and none of them will ever come back."""
    stats = served(mimic)
    return bool(stats["faults"].get("hang", 0) == stats["in_flight"] > 0)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_one_signal_waits_for_the_answers_that_are_out(tmp_path, mimic, command, undisturbed, number):
    run = tmp_path / "run"
    hold_back(mimic, 80, seconds=1.0)
    with started(*command, cwd=tmp_path) as running:
        running.until_stored(run, 50)
        while not served(mimic)["in_flight"]:
            assert running.for_a_moment()
        running.process.send_signal(number)
        done = running.finish()
    set_faults(mimic)
    assert done.code == 130
    assert "answers in flight; Ctrl-C again cancels them." in done.err
    assert done.out.splitlines()[-1].endswith(": adaptive-eval run run")
    check_interrupted(run, mimic)
    if number is signal.SIGINT:
        before = trials(run)
        done = in_process("run", "run", cwd=tmp_path, code=0)
        assert trials(run)[: len(before)] == before
        assert max(answered_seeds(mimic).values()) == 1
        assert Reached.by(run) == undisturbed


@pytest.mark.slow
def test_a_reader_that_leaves_stops_the_run_as_ctrl_c_does(tmp_path, mimic, command):
    """``adaptive-eval run … | head -1``: what is out is stored, and nothing more is spent unseen."""
    hold_back(mimic, 80, seconds=1.0)
    with started(*command, "--display", "plain", cwd=tmp_path) as running:
        assert running.process.stdout is not None
        assert " start quickstart" in running.process.stdout.readline()
        running.process.stdout.close()
        running.process.stdout = None
        done = running.finish()
    assert done.code == 130
    assert "Exception" not in done.err
    check_interrupted(tmp_path / "run", mimic)


@pytest.mark.slow
def test_a_terminal_that_is_closed_stops_the_run_as_one_ctrl_c_does(tmp_path, mimic, command):
    """It says so by a signal and by refusing what is written, and that is not a second Ctrl-C."""
    run = tmp_path / "run"
    hold_back(mimic, 80, seconds=1.0)
    terminal, its_end = pty.openpty()
    streams = {"stdin": its_end, "stdout": its_end, "stderr": its_end, "start_new_session": True}
    with started(*command, cwd=tmp_path, env=environment(TERM="xterm"), **streams) as running:
        os.close(its_end)
        running.until_stored(run, 50)
        os.close(terminal)
        running.process.send_signal(signal.SIGHUP)
        assert running.process.wait(PATIENCE) == 130
    check_interrupted(run, mimic)


@pytest.mark.slow
def test_a_signal_that_the_caller_ignores_is_ignored(tmp_path, command):
    """As under nohup, when the terminal is closed."""
    run = tmp_path / "run"
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with started(*command, "-o", "budget.trials=200", cwd=tmp_path) as running:
            running.until_stored(run, 50)
            running.process.send_signal(signal.SIGHUP)
            done = running.finish()
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert done.code == 3
    assert len(trials(run)) == 200


@pytest.mark.slow
def test_a_second_signal_cancels_what_is_out(tmp_path, mimic, command):
    run = tmp_path / "run"
    hold_back(mimic, 80)
    with started(*command, cwd=tmp_path) as running:
        running.until_stored(run, 50)
        while not all_hang(mimic):
            assert running.for_a_moment()
        answers = trials(run)
        running.process.send_signal(signal.SIGINT)
        running.until_said("answers in flight; Ctrl-C again cancels them.")
        assert running.for_a_moment(1.0), "the first signal must wait for the answers"
        running.process.send_signal(signal.SIGINT)
        done = running.finish()  # though not one of the answers ever comes
    assert done.code == 130
    assert trials(run)[: len(answers)] == answers
    assert [line["reserved"] for line in report(run)["budgets"]] == [0.0, 0.0], (
        "nothing is in flight any more"
    )
    told = re.search(r"at most ([\d.]+)k of requests without an answer or usage", " ".join(done.out.split()))
    assert told
    hanging = served(mimic)["faults"]["hang"]
    assert float(told[1]) > hanging * 0.4, "max_tokens of an answer is 400"
    with RunReader(run) as reader:
        assert hanging <= len(reader.launched()) <= 40
    set_faults(mimic)
    assert in_process("run", "run", cwd=tmp_path).code == 0
    check_answered_once(run, mimic)


def test_a_signal_while_endpoints_are_asked_leaves_nothing(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        config = write_config(tmp_path, quickstart(base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1"))
        with started("run", config, cwd=tmp_path) as running:
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(1)
                running.process.send_signal(signal.SIGINT)
                done = running.finish()
    assert done.code == 130
    assert done.err.split() == ["interrupted"]
    assert {path.name for path in tmp_path.iterdir()} == {"config.yaml"}


def test_a_budget_of_trials_is_used_up_and_never_exceeded(tmp_path, mimic, command):
    run = tmp_path / "run"
    for limit, line in ((61, command), (130, ("run", "run"))):
        done = in_process(*line, "-o", f"budget.trials={limit}", cwd=tmp_path, code=3)
        assert len(trials(run)) == limit
        assert served(mimic)["requests"] == limit
        assert report(run)["run"]["stop"]["reason"] == "budget"
        assert f"{limit} of {limit} trials" in done.out
        assert suggested(done.out, "budget.trials") > limit
    assert in_process("run", "run", cwd=tmp_path).code == 3, "the raised budget is part of the run"
    assert len(trials(run)) == 130


@pytest.mark.slow
def test_what_a_failed_request_counts_can_be_chosen(tmp_path, mimic):
    """Each request is charged and cut once; only later tests of seeds, which answer, are presumed billed."""
    set_faults(mimic, {"kind": "malformed", "attempts": 1})
    data = quickstart(base_url=mimic.base_url)
    data["retry"] = {"attempts": 1, "requeue": 1}
    data["budget"] = {"trials": 10, "tokens": "1M", "usd": 1.0, "usage_on_failure": "none"}
    for model in data["models"]:
        model["price"] = {"input": 0.0, "output": 1.0}
    in_process("run", write_config(tmp_path, data), "--out", "run", cwd=tmp_path, code=3)
    budgets = {line["name"]: line for line in report(tmp_path / "run")["budgets"]}
    tests = seed_tests(tmp_path / "run")
    longest = sum(
        tests[record.request.key] * record.sent["max_tokens"] for record in trials(tmp_path / "run")
    )
    assert budgets["usd"]["presumed"] == pytest.approx(longest / 1e6)  # nothing for the ten failures
    assert not any("usage_on_failure" in text for text in report(tmp_path / "run")["warnings"])
    billed = budgets["tokens"]["spent"] - budgets["tokens"]["presumed"]
    assert billed == sum(record.usage.total_tokens for record in trials(tmp_path / "run")) > 0
    with RunReader(tmp_path / "run") as reader:
        assert sum(counts["malformed"] for counts in reader.error_counts().values()) == 10


@pytest.mark.slow
def test_a_model_s_own_budget_ends_and_the_rest_goes_on(tmp_path, mimic):
    """Its pairs stay open, the report says whose budget it was, and a higher cap decides them."""
    data = quickstart(base_url=mimic.base_url)
    for model in data["models"]:
        model["price"] = {"input": 1.0, "output": 4.0, "cached_input": 0.1}
    guesser = next(model for model in data["models"] if model["name"] == "guesser")
    guesser["budget"] = {"usd": 0.005}
    config, run = write_config(tmp_path, data), tmp_path / "run"
    done = in_process("run", config, "--out", "run", cwd=tmp_path, code=3)
    stop = report(run)["run"]["stop"]
    assert stop["reason"] == "partial"
    assert stop["evidence"] == {"open": 4, "open_models": 0, "silent": [], "spent": ["guesser"]}
    pairs = {frozenset((pair["first"], pair["second"])): pair["verdict"] for pair in report(run)["pairs"]}
    assert {pair for pair, verdict in pairs.items() if verdict == "open"} == {
        frozenset((name, "guesser")) for name in ("sage", "scholar", "student", "novice")
    }
    spent = served(mimic)["models"]["guesser"]
    dollars = (spent["prompt_tokens"] * 1.0 + spent["completion_tokens"] * 4.0) / 1e6
    assert 0.0 < dollars <= 0.005
    (line,) = (one for one in report(run)["budgets"] if one["owner"] == "guesser")
    assert (line["name"], line["limit"], line["spent"]) == ("usd", 0.005, pytest.approx(dollars))
    assert "USD of guesser" in (run / "report.md").read_text("utf-8")
    assert suggested(done.out, "models[guesser].budget.usd") > 0.005
    in_process("run", "run", "-o", "models[guesser].budget.usd=5", cwd=tmp_path, code=0)
    assert not [pair for pair in report(run)["pairs"] if pair["verdict"] == "open"]


@pytest.mark.slow
def test_at_the_deadline_what_is_out_can_be_cancelled(tmp_path, mimic, command):
    set_faults(mimic, {"kind": "hang", "probability": 0.05})
    limits = ("-o", "budget.wall_clock=2s", "-o", "budget.at_deadline=cancel")
    done = adaptive_eval(*command, *limits, cwd=tmp_path, code=3)  # not for ever, as they hang
    assert "budget.wall_clock=" in done.out.splitlines()[-1]
    assert report(tmp_path / "run")["run"]["stop"]["reason"] == "budget"
    before = trials(tmp_path / "run")
    in_process("run", "run", cwd=tmp_path, code=3)
    assert trials(tmp_path / "run") == before, "its time is used up, and another sitting gives it none"
    more = f"budget.wall_clock={report(tmp_path / 'run')['run']['elapsed_seconds'] + 2.0:.1f}s"
    set_faults(mimic)
    in_process("run", "run", "-o", more, cwd=tmp_path, code=(0, 3))
    assert len(trials(tmp_path / "run")) > len(before), "no second counts twice"
