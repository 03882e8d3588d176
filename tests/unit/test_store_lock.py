from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys

import pytest

from adaptive_eval.errors import RunFileError, RunLocked
from adaptive_eval.store.writer import WriterLock

HOLD = """
import sys
from pathlib import Path
from adaptive_eval.store.writer import WriterLock
lock = WriterLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""

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


def test_the_second_taker_is_told_who_holds_it(path, start):
    holder, _ = start(HOLD)
    with pytest.raises(RunLocked) as caught:
        WriterLock.acquire(path)
    assert f"is being written by process {holder.pid} on {os.uname().nodename}" in str(caught.value)
    assert str(path.parent) in str(caught.value)
    assert "Stop that process, wait for it, or choose another run name" in str(caught.value)


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
    lock.release()
    lock.release()
    assert path.read_text() == ""
    WriterLock.acquire(path).release()


def test_a_holder_that_has_not_yet_said_who_it_is(path):
    lock = WriterLock.acquire(path)
    path.write_text("")
    with pytest.raises(RunLocked, match="is being written by another process"):
        WriterLock.acquire(path)
    lock.release()
