"""Run files: opened, locked, and refused where they are damaged."""

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import run_examples as runs
from config_texts import plain

from adaptive_eval.build.describe import describe_run
from adaptive_eval.errors import RunDamaged, RunFileError, RunLocked, RunOfOtherVersion
from adaptive_eval.store import run_files
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.run_files import FILE_VERSION
from adaptive_eval.store.writer import RunWriter, WriterLock, salvage

# Opening a run file: one version, its own tables only, and no query without an end.


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


@pytest.fixture
def run(tmp_path) -> Path:
    RunWriter.create(tmp_path / "run", meta={"seed": "1"}).close()
    return tmp_path / "run"


@pytest.fixture
def db(run):
    db = connect(run / "run.db")
    yield db
    db.close()


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
@pytest.mark.parametrize("version", [1, FILE_VERSION - 1, FILE_VERSION + 1])
def test_a_file_of_another_version_is_refused_with_what_to_do(run, db, use, version):
    db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(RunOfOtherVersion, match=rf"version {version}; .* {FILE_VERSION}\."):
        use(run)
    db.execute(f"PRAGMA user_version = {FILE_VERSION}")
    use(run).close()  # nothing was changed, no lock was kept


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize("use", [RunWriter.open, RunReader, lambda run: salvage(run, run.with_name("new"))])
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM outcomes; END",
        f"CREATE VIEW more AS {ENDLESS}",
        f"DROP TABLE attempts; CREATE VIEW attempts AS {ENDLESS}",
        "CREATE TABLE more (id)",
    ],
)
def test_a_file_with_foreign_tables_views_or_triggers_is_refused(run, db, use, sql):
    db.executescript(sql)
    with pytest.raises(RunDamaged, match="no run file has"):
        use(run)


def test_a_query_without_an_end_ends_with_an_error(run, monkeypatch):
    monkeypatch.setattr(run_files, "_LEAST_TICKS", 2)
    monkeypatch.setattr(run_files, "_TICK", 10_000)
    with RunReader(run) as reader:
        with pytest.raises(RunFileError):
            reader._rows(ENDLESS)
        assert reader.count() == 0  # the next statement has all its time again


def test_a_long_run_is_read_within_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "_LEAST_TICKS", 0)
    monkeypatch.setattr(run_files, "_TICK", 1000)
    runs.make_run(tmp_path / "run", {"oak": 0.9, "elm": 0.3}, trials=2_000)
    with RunReader(tmp_path / "run") as reader:
        assert not reader.damage()
        assert sum(1 for _ in reader.trials()) == reader.count() == len(reader.outcomes())
        assert reader.cells().stored.sum() == reader.count()
        reader.error_counts(), reader.signals_named(""), reader.launched(), reader.unanswered()


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
@pytest.mark.parametrize("content", ["another program's", b"", b"name: first\nseed: 1234\n" * 50])
def test_what_is_no_run_file_is_refused_and_left_alone(tmp_path, use, content):
    file = tmp_path / "run.db"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        with closing(connect(file)) as db:
            db.execute("CREATE TABLE theirs (id INTEGER)")
    before = file.read_bytes()
    with pytest.raises(RunDamaged, match="not a run file"):
        use(tmp_path)
    assert file.read_bytes() == before


def test_a_look_at_a_strangers_run_imports_none_of_its_files(tmp_path):
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\n")
    models = [{"name": name, "endpoints": ["python:theirs:model"]} for name in ("oak", "elm")]
    task = {"dataset": "python:theirs:rows", "scorer": {"kind": "python", "function": "theirs:f"}}
    config = json.dumps(plain(task=task, models=models))
    meta = {"config": config, "source": "c.yaml", "base_dir": str(tmp_path), "identity": "{}"}
    runs.make_run(tmp_path / "run", {"oak": 0.9, "elm": 0.3}, trials=8, meta=meta)
    with RunReader(tmp_path / "run") as reader:
        about = describe_run(reader)
        assert {about.target(record) for record in reader.trials()} == {None}
    assert not (tmp_path / "mark").exists()


#


HOLD_AND_FORK = """
import os, sys
from pathlib import Path
from adaptive_eval.store.writer import WriterLock
lock = WriterLock.acquire(Path(sys.argv[1]))
if os.fork() == 0:
    print("forked", os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


@pytest.fixture
def start(path):
    processes = []

    def start(code):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process, process.stdout.readline().split()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused_with_what_to_do(path, monkeypatch, code):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(RunFileError, match=r"has no locks.* Put the run on a local disk"):
        WriterLock.acquire(path)


def test_a_forked_child_does_not_keep_it_after_the_holder_was_killed(path, start):
    holder, (said, child) = start(HOLD_AND_FORK)
    assert said == "forked"
    with pytest.raises(RunLocked):
        WriterLock.acquire(path)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    os.kill(int(child), 0)  # the child is alive
    WriterLock.acquire(path).release()


def test_it_holds_within_one_process_too_and_can_be_taken_again(path):
    lock = WriterLock.acquire(path)
    assert json.loads(path.read_text())["pid"] == os.getpid()
    with pytest.raises(RunLocked, match=f"process {os.getpid()}"):
        WriterLock.acquire(path)
    path.write_text("")  # as a holder leaves it that has not said yet who it is
    with pytest.raises(RunLocked, match="is being written by another process"):
        WriterLock.acquire(path)
    lock.release()
    lock.release()
    assert path.read_text() == ""
    WriterLock.acquire(path).release()


#
