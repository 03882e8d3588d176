"""Runs untrusted programs, only under bubblewrap.

A program sees its own file system: Python read-only, a small memory disk as its only writable place, no
home, no network, no other process. Each of its processes is bounded in CPU time, address space, file size and
open files, all together in number and resident memory; all are killed at the wall-clock limit. Run by root,
each program gets its own user number: the limit on the number of processes does not hold for root.
"""

import builtins
import json
import os
import re
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from adaptive_eval.errors import UsageError
from adaptive_eval.scoring.confinement import Enclosure, NotBindable, enclosures, syscall_filter
from adaptive_eval.scoring.interpreter_files import NotAnInterpreter
from adaptive_eval.scoring.text import sendable

_USERS = range(20_000, 60_000)
"""User numbers for the programs of root, drawn at random: two hardly ever share one."""

_KEPT = 4_096
"""Bytes at the end of the error output that are kept."""

_DYING = 10.0
"""Seconds that killed processes may take to end."""

_GLANCE = 0.02
"""Seconds between two measurements of a program's memory."""

_FILES = 10_000
"""Files that a program may have at once: each takes kernel memory, which no limit of a process counts."""

_CHUNK = 1 << 16
_CODE = "scorer/no-sandbox"
_KERNEL = "use a kernel with CONFIG_PROC_CHILDREN"
_NEEDS = "It needs user namespaces, and a Python that every user may read (option python)"
_STARTED = b"started\n"
_SUM = ("answer = 6 * 7", "assert answer == 42")


class SandboxFailed(Exception):
    """The sandbox did not start, or was killed; this says nothing about the program."""


class _Killed(Exception):
    """The sandbox was killed by a signal that no process in it can block."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a program.

    Seconds until all of its processes are killed, and of CPU time of one process; bytes of resident memory of
    all processes together (and of address space of one), and of all files; processes and threads at once.
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
        # The soft limit ends a program by a signal that names the cause.
        return {"RLIMIT_CPU": (cpu, cpu + 1), **{name: (value, value) for name, value in same.items()}}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a program's tests, and the reason of a failure."""

    passed: bool
    reason: str


def require_sandbox(python: str | None = None, *, strict: bool = False) -> None:
    """Raise UsageError, with what to do, unless `python` (default: this one) can run in a sandbox.

    With `strict`, all :func:`protections` must hold.
    """
    lacking = _lacking(protections(python))
    if strict and lacking:
        raise UsageError(f"require_sandbox: strict, but the sandbox lacks here {lacking}", code=_CODE)


def sandbox_notice(python: str | None) -> str:
    """Return a sentence on the protections that the sandbox has on this machine."""
    found = protections(python)
    has = ", ".join(name for name, cure in found.items() if cure is None)
    lacking = _lacking(found)
    missing = ""
    if lacking:
        missing = f"; it lacks {lacking}"
    return f"programs run in a sandbox with {has}" + missing


def _lacking(found: Mapping[str, str | None]) -> str:
    return "; ".join(f"{name} ({cure})" for name, cure in found.items() if cure is not None)


def protections(python: str | None = None) -> Mapping[str, str | None]:
    """Return the protections that a machine may lack: None if one holds, otherwise what to do."""
    found = _enclosure(python)
    private = "run as another user than root, or name a python that every user may read, as /usr/bin/python3"
    cure = private
    if found.own_namespace:
        cure = "install bubblewrap 0.8 or newer"
    sees_children = Path(f"/proc/self/task/{os.getpid()}/children").exists()
    held = (
        ("a bar on further user namespaces", found.is_last_namespace, cure),
        ("a filter on system calls", found.is_filtered, "use x86_64 or aarch64, with seccomp"),
        ("an IPC namespace", True, ""),
        ("a limit on the memory of all processes together", sees_children, _KERNEL),
    )
    cures: dict[str, str | None] = {}
    for name, holds, what in held:
        cures[name] = None if holds else what
    return cures


@lru_cache
def _enclosure(python: str | None) -> Enclosure:
    """Return the safest way to call bubblewrap that works; a failure is not remembered."""
    words = ""
    if sys.platform != "linux":
        words = f"it needs Linux and bubblewrap, and this is {sys.platform}"
    elif shutil.which("bwrap") is None:
        words = "bubblewrap is not installed; for example: apt install bubblewrap"
    else:
        for enclosure in enclosures(has_filter=syscall_filter() is not None):
            try:
                outcome = _run(*_SUM, Limits(wall=60.0), python, enclosure, is_last=True)
            except SandboxFailed as error:
                words = f"{error}. {_NEEDS}"
            else:
                if outcome.passed:
                    return enclosure
                words = f"a test program fails in it: {outcome.reason}"
    raise UsageError(f"the scorer code needs a sandbox, which cannot be made here: {words}", code=_CODE)


class Numbers(NamedTuple):
    """The largest numbers that the reason of a failure may hold: a program may tell false ones."""

    lines: int  # of the program
    lines_of_tests: int = 0
    cases: int = 0


def run_tests(
    code: str, tests: str, limits: Limits, python: str | None = None, numbers: Numbers | None = None
) -> Outcome:
    """Run code and then its tests in a sandbox.

    A program that is killed may have killed itself or used up its CPU time, or the system was out of memory.
    It is run once more, and the second outcome counts.

    The tests run in another process, where the names of the code call it. The interpreter
    (default: this one) sees no packages.
    Without `numbers`, a reason names lines of `code` and of `tests`.
    """
    enclosure = _enclosure(python)
    try:
        outcome = _run(code, tests, limits, python, enclosure, numbers, is_last=False)
    except _Killed:
        outcome = _run(code, tests, limits, python, enclosure, numbers, is_last=True)
    return outcome


def _run(
    code: str,
    tests: str,
    limits: Limits,
    python: str | None,
    enclosure: Enclosure,
    numbers: Numbers | None = None,
    *,
    is_last: bool,
) -> Outcome:
    user = None
    if os.getuid() == 0:
        user = secrets.choice(_USERS)
    own_user = user
    if enclosure.own_namespace:
        own_user = None
    task = {
        "code": sendable(code),
        "tests": sendable(tests),
        "limits": limits.as_rlimits(),
        "user": own_user,
    }
    secret = secrets.token_bytes(32)
    ours, theirs = socket.socketpair()
    with ours, _readable(json.dumps(task).encode()) as given, _readable(syscall_filter() or b"") as seccomp:
        with theirs:
            ours.sendall(secret)  # read before the program begins: nothing that it can open still holds it
            try:
                command = enclosure.command(python, limits.disk, theirs.fileno(), seccomp)
            except (NotAnInterpreter, NotBindable) as error:
                raise SandboxFailed(str(error)) from None
            descriptors = (theirs.fileno(), seccomp)
            deadline = time.monotonic() + limits.wall
            own = None
            if enclosure.own_namespace:
                own = user
            process = _begin(command, given, descriptors, own)
        with process:
            ended = _listen(process, ours, deadline, heard := _Heard(), limits)
            passed = heard.verdict == _STARTED + secret
            if ended is None and not passed:
                ended = _wait(process, deadline, limits)
            status = process.poll()
            if status is None:
                # Every process in the sandbox dies with bubblewrap's first one, and the channel closes; the
                # second one does not while the sandbox is made, so the group is killed.
                os.killpg(process.pid, signal.SIGKILL)
            _listen(process, ours, time.monotonic() + _DYING, _Heard())
    if passed:
        return Outcome(True, "the tests pass")
    if status in (-signal.SIGKILL, 128 + signal.SIGKILL) and not is_last:
        raise _Killed
    if not heard.verdict.startswith(_STARTED):
        raise SandboxFailed(_last_line(heard.errors) or f"it did not start within {limits.wall:g} s")
    if status == -signal.SIGKILL:  # from outside: no process in it can see bubblewrap
        raise SandboxFailed("it was killed")
    numbers = numbers or Numbers(len(code.splitlines()), len(tests.splitlines()))
    told = _told(heard.verdict.removeprefix(_STARTED), numbers)
    return Outcome(False, ended or _why(process.returncode, told, limits))


@dataclass(slots=True)
class _Heard:
    """The output of a sandbox: all of the channel, the end of the error output."""

    verdict: bytes = b""
    errors: bytes = b""


def _listen(
    process: subprocess.Popen[bytes],
    channel: socket.socket,
    deadline: float,
    heard: _Heard,
    limits: Limits | None = None,
) -> str | None:
    """Read until all processes have ended; return the exceeded limit, time or memory, or None."""
    assert process.stderr is not None
    measure = time.monotonic() + _GLANCE
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0.0:
                if limits is None:
                    return "took too long"
                return _late(limits)
            for key, _ in selector.select(min(left, _GLANCE)):
                data = b""
                with suppress(ConnectionResetError):  # it ended before it had read the secret
                    data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                elif key.fileobj is channel:
                    heard.verdict = (heard.verdict + data)[:_KEPT]
                else:
                    heard.errors = (heard.errors + data)[-_KEPT:]
            if limits is not None and time.monotonic() >= measure:
                if _exceeds(process.pid, limits.memory):
                    return f"used more than {limits.memory / 2**20:g} MB of memory in all of its processes"
                if _files(process.pid) > _FILES:
                    return f"made more than {_FILES:,} files"
                measure = time.monotonic() + _GLANCE
    return None


def _wait(process: subprocess.Popen[bytes], deadline: float, limits: Limits) -> str | None:
    """Wait for the end of the sandbox itself, whose channel is closed."""
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return _late(limits)
    return None


def _late(limits: Limits) -> str:
    return f"took longer than {limits.wall:g} s"


def _exceeds(root: int, most: int) -> bool:
    """Tell whether a process and its descendants hold more than `most` bytes of memory."""
    processes = list(_descendants(root))
    return (
        sum(map(_resident, processes)) > most  # an upper bound: processes share pages
        and sum(map(_proportional, processes)) > most
    )


def _descendants(process: int) -> Iterator[int]:
    """Yield a process and its descendants; in a PID namespace no process loses its ancestors."""
    yield process
    with suppress(OSError), os.scandir(f"/proc/{process}/task") as threads:
        for thread in threads:
            for child in _read(f"{thread.path}/children").split():
                yield from _descendants(int(child))


def _resident(process: int) -> int:
    with suppress(OSError, IndexError):
        return int(_read(f"/proc/{process}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _proportional(process: int) -> int:
    """Return the resident bytes of a process, shared pages divided by the number of their users."""
    with suppress(OSError, ValueError, StopIteration):
        lines = _read(f"/proc/{process}/smaps_rollup").splitlines()
        return int(next(line for line in lines if line.startswith(b"Pss:")).split()[1]) * 1024
    return _resident(process)


def _files(root: int) -> int:
    """Return how many files there are on the memory disk of a sandbox; 0 if that cannot be seen."""
    with suppress(OSError):
        outside = Path("/tmp").stat().st_dev  # noqa: S108 - only looked at
        for process in _descendants(root):
            place = Path("/proc", str(process), "root", "tmp")
            with suppress(OSError):
                if place.stat().st_dev != outside:
                    disk = os.statvfs(place)
                    return disk.f_files - disk.f_ffree
    return 0


def _read(place: str) -> bytes:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        return os.read(descriptor, _CHUNK)
    finally:
        os.close(descriptor)


@contextmanager
def _readable(data: bytes) -> Iterator[int]:
    """Give a descriptor from which `data` can be read, kept in memory."""
    descriptor = os.memfd_create("data")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _begin(
    command: Sequence[str], given: int, descriptors: Sequence[int], user: int | None
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - the program is data, and this is its sandbox
            command,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=descriptors,
            cwd="/",
            env={},
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else (),
        )
    except OSError as error:
        raise SandboxFailed(f"bubblewrap cannot be started: {error.strerror}") from None


def _why(status: int, told: str | None, limits: Limits) -> str:
    if status in (128 + signal.SIGXCPU, 128 + signal.SIGKILL):
        return f"used up its {limits.cpu:g} s of CPU time, or was killed"
    if status > 128:
        return f"was ended by signal {status - 128}"
    if status == 0:
        return "ended before its tests had run"
    return f"failed: {told or f'exit code {status}'}"


_TOLD = re.compile(rb"([A-Za-z]+) (\d{1,9}) (\d{1,9}) (\d{1,9})")
"""What the sandbox tells of a failure: the problem, its line in the program and in the tests, the case."""

_PROBLEMS = {
    "output": "another output than expected",
    "time": "took too long",
    "status": "ended with an error",
}


def _told(text: bytes, largest: Numbers) -> str | None:
    """Return what the sandbox tells of a failure; None if it tells nothing that it may.

    The program may have told it: so this holds no text of its own, and no larger number.
    """
    found = _TOLD.fullmatch(text)
    if found is None:
        return None
    problem = found[1].decode()
    line, line_of_tests, case = (int(number) for number in found.groups()[1:])
    if problem in _PROBLEMS:
        words = _PROBLEMS[problem]
    elif _is_built_in(problem):
        words = problem
    else:
        return None
    if 0 < line <= largest.lines:
        words += f" (line {line} of the program)"
    elif 0 < line_of_tests <= largest.lines_of_tests:
        words += f" (line {line_of_tests} of the tests)"
    if 0 < case <= largest.cases:
        words = f"case {case} of {largest.cases}: {words}"
    return words


def _is_built_in(name: str) -> bool:
    known = getattr(builtins, name, None)
    return isinstance(known, type) and issubclass(known, BaseException)


def _last_line(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    if lines:
        return lines[-1].strip()[:200]
    return ""
