"""Programs that nobody has read, run where they can do no harm: bubblewrap, or not at all.

A program sees a file system of its own: Python read-only, a small memory disk as its only writable place, no
home, no network, no other process. Its process, and every one that it starts, is bounded in CPU time, memory,
file size, open files and number; all are killed with the wall-clock limit. Run by root, every program gets a
user number of its own, because the limit on the number of processes does not hold for root.
"""

from __future__ import annotations

import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import IO

from adaptive_eval.errors import UsageError

__all__ = ["Limits", "Outcome", "SandboxFailed", "require_sandbox", "run_tests"]

_USERS = range(20_000, 60_000)
"""User numbers for programs that root runs; drawn at random, so that two hardly ever share one."""

_SAID = 4_096
"""Bytes, from the end, of what a program writes to its error output that are kept."""

_DYING = 10.0
"""Seconds that killed processes may take to be gone."""

_CHUNK = 1 << 16
_STARTED = b"started\n"
_DISK = "/tmp"  # noqa: S108 - the sandbox's own
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")


_FOR_USERS = ("--unshare-user", "--disable-userns")
_FOR_ROOT = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
"""What it takes to become another user; these capabilities are gone once that is done."""


class SandboxFailed(Exception):
    """The sandbox could not be entered, or was killed: this says nothing about the program."""


class _Killed(Exception):
    """The program, or the sandbox, was killed by a signal that nothing in there can hold against."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may use.

    Parameters
    ----------
    wall : float
        Seconds until all of its processes are killed.
    cpu : float
        Seconds of CPU time of one process.
    memory : int
        Bytes of address space of one process.
    disk : int
        Bytes of all files together, and of one.
    processes : int
        Processes and threads at once.
    """

    wall: float = 10.0
    cpu: float = 10.0
    memory: int = 512 * 2**20
    disk: int = 16 * 2**20
    processes: int = 16

    def as_rlimits(self) -> dict[str, tuple[int, int]]:
        """Return soft and hard limits by the names of the operating system."""
        cpu = max(1, round(self.cpu))
        same = {
            "RLIMIT_AS": self.memory,
            "RLIMIT_FSIZE": self.disk,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
        }
        # The soft limit ends a program with a signal of its own, by which it is known.
        return {"RLIMIT_CPU": (cpu, cpu + 1), **{name: (value, value) for name, value in same.items()}}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a program: whether its tests passed, and why not."""

    passed: bool
    reason: str


def require_sandbox(python: str | None = None) -> None:
    """Refuse where programs cannot be run safely; asked until there is a sandbox, and then no more.

    Parameters
    ----------
    python : str, optional
        The Python that is to run them; default: the one that runs this.

    Raises
    ------
    UsageError
        If there is no bubblewrap, or it cannot make a sandbox here; the message says what to do.
    """
    _require(python)


@lru_cache
def _require(python: str | None) -> None:
    problem = _problem(python)
    if problem is not None:
        raise UsageError(f"the scorer code runs programs in a sandbox, and there can be none here: {problem}")


def _problem(python: str | None) -> str | None:
    if sys.platform != "linux":
        return f"it needs Linux and bubblewrap, and this is {sys.platform}"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed; for example: apt install bubblewrap"
    try:
        outcome = run_tests("answer = 6 * 7", "assert answer == 42", Limits(), python)
    except SandboxFailed as error:
        return f"{error}. It needs user namespaces, and a Python that every user may read (option python)"
    return None if outcome.passed else f"even a sum fails in it: {outcome.reason}"


def run_tests(code: str, tests: str, limits: Limits, python: str | None = None) -> Outcome:
    """Run code and then its tests in a sandbox.

    A program that is killed may have done that itself, or used up its CPU time; or the system was out of
    memory. It is run once more, and what comes of that counts.

    Parameters
    ----------
    code, tests : str
        Python. The tests run in the module that the code has made.
    limits : Limits
        What they may use.
    python : str, optional
        The interpreter; without packages. Default: the one that runs this.

    Returns
    -------
    Outcome
        Passed where the tests came to their end without an error.

    Raises
    ------
    SandboxFailed
        If the program was not begun, or the sandbox around it was killed twice.
    """
    try:
        outcome = _run(code, tests, limits, python, is_last=False)
    except _Killed:
        outcome = _run(code, tests, limits, python, is_last=True)
    return outcome


def _run(code: str, tests: str, limits: Limits, python: str | None, *, is_last: bool) -> Outcome:
    task = {
        "code": _sendable(code),
        "tests": _sendable(tests),
        "limits": limits.as_rlimits(),
        "user": secrets.choice(_USERS) if os.getuid() == 0 else None,
    }
    data, secret = json.dumps(task).encode(), secrets.token_hex(32).encode()
    deadline = time.monotonic() + limits.wall
    with _readable(data + secret) as given:
        receive, send = os.pipe()
        with os.fdopen(receive, "rb", buffering=0) as verdict:
            try:
                process = _begin(_command(python, len(data), send, limits), given, send)
            finally:
                os.close(send)
            with process:
                late = not _ended(process, verdict, deadline, heard := _Heard())
                passed = heard.verdict == _STARTED + secret
                late = late or not (passed or _exited(process, deadline))
                code_of_end = process.poll()
                process.kill()  # all that is in the sandbox dies with it, and then the pipes close
                _ended(process, verdict, time.monotonic() + _DYING, _Heard())
    if passed:
        return Outcome(True, "the tests pass")
    if code_of_end in (-signal.SIGKILL, 128 + signal.SIGKILL) and not is_last:
        raise _Killed
    if not heard.verdict.startswith(_STARTED):
        raise SandboxFailed(_last_line(heard.errors) or f"it did not begin within {limits.wall:g} s")
    if code_of_end == -signal.SIGKILL:  # from outside: no program in there can see it
        raise SandboxFailed("it was killed")
    return Outcome(False, _why(process.returncode, heard.errors, limits, late=late))


@dataclass(slots=True)
class _Heard:
    """What came out of a sandbox: of the pipe for the verdict all, of the error output the end."""

    verdict: bytes = b""
    errors: bytes = b""


def _ended(process: subprocess.Popen[bytes], verdict: IO[bytes], deadline: float, heard: _Heard) -> bool:
    """Listen until both pipes are closed, which is when all processes have ended; False at the deadline."""
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(verdict, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            ready = selector.select(left) if left > 0.0 else []
            if not ready:
                return False
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is verdict:
                    heard.verdict = (heard.verdict + data)[:_SAID]
                else:
                    heard.errors = (heard.errors + data)[-_SAID:]
    return True


def _exited(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait for the end of the sandbox itself, whose pipes are closed; False at the deadline."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def _readable(data: bytes) -> Iterator[int]:
    """Give a descriptor from which `data` can be read, kept in memory."""
    descriptor = os.memfd_create("task")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _begin(command: Sequence[str], given: int, outside: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - the program is data, and this is its sandbox
            command,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(outside,),
            cwd="/",
            env={},
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxFailed(f"bubblewrap cannot be started: {error.strerror}") from None


def _command(python: str | None, length: int, outside: int, limits: Limits) -> list[str]:
    """Return the command line: what is not named here, the program does not see."""
    interpreter, home = _interpreter(python)
    seen = [place for place in map(Path, (*_SYSTEM, home)) if place.exists() or place.is_symlink()]
    links = [place for place in seen if place.is_symlink()]
    # Made beforehand, or they would be for root alone.
    above = [str(folder) for folder in [*Path(home).parents][-2::-1]]
    return [
        shutil.which("bwrap") or "bwrap",
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"),
        *(_FOR_ROOT if os.getuid() == 0 else _FOR_USERS),
        *(word for folder in above for word in ("--perms", "0755", "--dir", folder)),
        *(word for place in links for word in ("--symlink", str(place.readlink()), str(place))),
        *(word for place in seen if place not in links for word in ("--ro-bind", str(place), str(place))),
        *("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", str(limits.disk)),
        *("--tmpfs", _DISK),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", _DISK, "--clearenv"),
        *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", _DISK, "--setenv", "LANG", "C.UTF-8"),
        *("--", interpreter, "-I", "-S", "-B", "-c", _inside(), str(length), str(outside)),
    ]


def _interpreter(python: str | None) -> tuple[str, str]:
    """Return the interpreter itself, behind any virtual environment, and the folder that holds all of it."""
    if python is not None:
        place = Path(python).resolve()
        return str(place), str(place.parent.parent)
    place = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    return str(place), sys.base_prefix


@lru_cache
def _inside() -> str:
    return files("adaptive_eval.scoring").joinpath("inside.py").read_text(encoding="utf-8")


def _why(code: int, errors: bytes, limits: Limits, *, late: bool) -> str:
    if late:
        return f"took longer than {limits.wall:g} s"
    if code in (128 + signal.SIGXCPU, 128 + signal.SIGKILL):
        return f"used up its {limits.cpu:g} s of CPU time, or was killed"
    if code > 128:
        return f"was ended by signal {code - 128}"
    if code == 0:
        return "ended before its tests had run"
    return f"failed: {_last_line(errors) or f'exit code {code}'}"


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip()[:200] if lines else ""


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
