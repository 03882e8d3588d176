"""What a run needs of its machine: room on its disk, open files, and processes that see what it sees."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from config_texts import plain
from run_examples import command, make_run

from adaptive_eval.build.assembly import PreparedRun, build
from adaptive_eval.build.model_clients import concurrency_within, most_connections, shortage
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import RunDiskFull
from adaptive_eval.executors.processes import process_pool
from adaptive_eval.run import disk
from adaptive_eval.run.disk import forecast, room_warning
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import stored_bytes, trial_bytes

# What a run takes on its disk is forecast, and looked for before it begins.


Usage = namedtuple("Usage", "total used free")


def config(folder: Path, **sections):
    questions = folder / "questions.jsonl"
    questions.write_text("\n".join(json.dumps({"id": n, "input": "?", "target": "1"}) for n in range(30)))
    data = plain("oak", "elm", task={"dataset": str(questions)}, stopping={"max_passes": 200_000}, **sections)
    for model, tokens in zip(data["models"], (1000, 3000), strict=True):
        model |= {"sampling": {"max_tokens": tokens}, "price": {"input": 1, "output": 2}}
    return data


def built(folder: Path, **budget):
    return build(config_from_data(config(folder, budget=budget)))


def free(monkeypatch, size: float) -> None:
    """Set how many bytes are free on every disk."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 0, int(size)))


@pytest.mark.parametrize(
    ("budget", "trials"),
    [
        ({"trials": 5000}, 5000),
        ({"tokens": "4M"}, 2000),
        ({"trials": 5000, "tokens": "4M"}, 2000),
        ({"usd": 4.0}, 1000),
    ],
)
def test_before_the_start_each_limit_bounds_the_trials(tmp_path, budget, trials):
    need = forecast(built(tmp_path, **budget), tmp_path / "run")
    assert need.trials == pytest.approx(trials)
    assert need.per_trial == pytest.approx((trial_bytes(1000) + trial_bytes(3000)) / 2)


def test_where_nothing_bounds_an_answer_nothing_is_said(tmp_path):
    data = config(tmp_path, budget={"trials": 10**9})
    del data["models"][0]["sampling"]
    assert forecast(build(config_from_data(data)), tmp_path / "run") is None


@pytest.fixture
def unfinished(tmp_path) -> Path:
    """A run that its budget has ended."""
    session = make_run(tmp_path / "run", {"oak": 0.6, "elm": 0.6}, trials=600, equivalence=0.001)
    assert session.stopped.reason != "resolved"
    return tmp_path / "run"


def test_a_run_that_goes_on_is_measured_by_what_it_has_stored(tmp_path, unfinished):
    with RunReader(unfinished) as reader:
        stored = reader.count()
    need = forecast(built(tmp_path, trials=3000), unfinished)
    assert need.per_trial == stored_bytes(unfinished) / stored
    assert need.trials == pytest.approx(3000 - stored, rel=0.05)
    assert forecast(built(tmp_path, trials=100), unfinished).trials == 0.0


def test_a_run_that_may_not_fit_is_warned_of_and_begins(tmp_path, monkeypatch):
    some = built(tmp_path, trials=5_000_000)
    free(monkeypatch, 3.2e9)
    said = room_warning(some, tmp_path / "run")
    assert f"{tmp_path / 'run'} may need up to about 22.5 GB more: 5,000,000 trials of about 4.5 kB" in said
    assert "(by max_tokens, compressed). Only 3.2 GB are free. A full disk ends the run" in said
    free(monkeypatch, 2.4e10)
    assert room_warning(some, tmp_path / "run") is None


def test_a_full_disk_is_refused_and_may_be_overridden(tmp_path, monkeypatch):
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps(config(tmp_path, budget={"trials": 10})), encoding="utf-8")
    begun = []
    monkeypatch.setattr(PreparedRun, "session", lambda *_: begun.append(1) or sys.exit(0))
    free(monkeypatch, disk.RESERVE - 1)
    done = command("run", path, "--out", tmp_path / "run")
    assert isinstance(done.exception, RunDiskFull)
    assert "only 100 MB are free on its disk" in str(done.exception)
    assert "--no-disk-check" in str(done.exception)
    assert begun == []
    command("run", path, "--out", tmp_path / "run", "--no-disk-check")
    assert begun == [1]


def test_resume_looks_too(tmp_path, unfinished, monkeypatch):
    some = built(tmp_path, trials=3000)
    monkeypatch.setattr("adaptive_eval.build.assembly.config_of_run", lambda *_: some.config)
    monkeypatch.setattr(PreparedRun, "session", lambda *_: sys.exit(0))
    free(monkeypatch, 0)
    done = command("run", unfinished)
    assert "only 0 B are free on its disk" in str(done.exception)
    assert command("run", unfinished, "--no-disk-check").exit_code == 0


# The limit on open files: raised as far as it goes, and shared by the models where it is too low.


@pytest.fixture
def limit():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def pooled(tmp_path):
    (tmp_path / "d.jsonl").write_text('{"input": "1", "target": "2"}\n')
    models = [
        {"name": name, "endpoints": ["http://127.0.0.1:9/v1"], "concurrency": concurrency}
        for name, concurrency in (("oak", 1500), ("elm", 500), ("ash", "auto"))
    ]
    return config_from_data(plain(models=models, task={"dataset": str(tmp_path / "d.jsonl")}))


def test_the_soft_limit_is_raised(limit):
    limit(128)
    assert most_connections() > 128
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 128


def test_a_limit_that_cannot_be_raised_is_shared_and_said(pooled):
    assert concurrency_within(pooled, 192) == {"oak": 144, "elm": 48}
    assert "192 requests be in flight, not the 2,000 " in (shortage(pooled, 192) or "")
    assert concurrency_within(pooled, 2000) == {"oak": 1500, "elm": 500}
    assert shortage(pooled, 2000) is None


# Processes of this machine: they see what their caller sees.


def test_a_later_pool_has_the_environment_and_the_folder_of_its_time(tmp_path, monkeypatch):
    """Like functions of a user that score stored answers: one server forks for the whole session."""
    with process_pool(1) as pool:
        pool.submit(os.getpid).result()
    monkeypatch.setenv("SET_LATER", "yes")
    monkeypatch.chdir(tmp_path)
    with process_pool(1) as pool:
        assert pool.submit(os.getenv, "SET_LATER").result() == "yes"
        assert pool.submit(os.getcwd).result() == str(tmp_path)


POOL = """
import sys
from adaptive_eval.executors.processes import process_pool
if __name__ == "__main__":
    with process_pool(2) as pool:
        list(pool.map(abs, [1, 2]))
        print("begun", flush=True)
        sys.stdin.read()
"""


def test_processes_end_when_their_caller_is_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(POOL)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, script], text=True, **pipes) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
        # Nothing is left that might write.
        assert process.communicate(timeout=60.0)[0] == ""
