"""Confinement of untrusted programs: a filter of system calls, and the command lines of bubblewrap.

:func:`syscall_filter` assembles the filter as classic BPF, in the form that ``bwrap --seccomp`` reads. A
denied call fails with EPERM. Calls newer than Linux 5.10, and ``clone3``, fail with ENOSYS: libraries then
use an older call, whose arguments a filter can read.
"""

import os
import platform
import pwd
import shutil
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from adaptive_eval.scoring.interpreter_files import InterpreterFiles, ask

_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)  # on x86_64 and aarch64
_FIRST_UNKNOWN = 441
"""The first call after Linux 5.10, and all of x86's other ABI, whose numbers begin at 2**30."""

_NEW_NAMESPACE = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6: network namespaces do not bound others, such as AF_VSOCK."""

_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Column of the tables of numbers, and what the kernel calls the machine."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _MACHINE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97


def syscall_filter(machine: str | None = None) -> bytes | None:
    """Return the filter for a machine, or None if the numbers of its system calls are not known.

    Examples
    --------
    >>> len(syscall_filter("x86_64")) % 8, syscall_filter("riscv64")
    (0, None)
    """
    known = _MACHINES.get(machine or platform.machine())
    if known is None:
        return None
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in _program(*known))


def _program(column: int, machine: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions: operation, steps to skip where it is true, where it is false, operand."""
    yield _LOAD, 0, 0, _MACHINE
    yield _EQUAL, 1, 0, machine
    yield _RETURN, 0, 0, _KILL  # a 32-bit call, whose numbers differ
    yield _LOAD, 0, 0, _NUMBER
    yield from _fail_if(_AT_LEAST, _FIRST_UNKNOWN, _ENOSYS)
    yield from _fail_if(_EQUAL, _CLONE3[column], _ENOSYS)
    for line in _text("denied_calls.txt").splitlines():
        numbers = line.split()[1:]
        if numbers and not line.startswith("#") and numbers[column] != "-":
            yield from _fail_if(_EQUAL, int(numbers[column]), _EPERM)
    yield _EQUAL, 0, 4, _CLONE[column]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield from _fail_if(_ANY_BIT, _NEW_NAMESPACE, _EPERM)
    yield _RETURN, 0, 0, _ALLOW
    yield _EQUAL, 1, 0, _SOCKET[column]
    yield _RETURN, 0, 0, _ALLOW
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    for family in _FAMILIES:
        yield _EQUAL, 0, 1, family
        yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _FAIL | _EAFNOSUPPORT


def _fail_if(test: int, operand: int, error: int) -> Iterator[tuple[int, int, int, int]]:
    yield test, 0, 1, operand
    yield _RETURN, 0, 0, _FAIL | error


_DISK = "/tmp"  # noqa: S108 - the sandbox's own
_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/alternatives")
_PERSON = 1000
"""The first user number of persons, not services (UID_MIN of login.defs)."""


class NotBindable(Exception):
    """An interpreter needs a folder that holds a home."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """One way to call bubblewrap."""

    # whether bubblewrap makes a user namespace, in which nothing is root's. If not, it runs as root, and
    # the process in it becomes another user before it runs a program.
    own_namespace: bool
    # whether no process in it can make a further user namespace (``--disable-userns``)
    is_last_namespace: bool
    is_filtered: bool  # whether system calls are filtered

    def command(self, python: str | None, disk: int, channel: int, seccomp: int) -> list[str]:
        """Return the command line, which names all that a program sees.

        `disk` is the size of the only writable place in bytes, `channel` and `seccomp` are the descriptors of
        the channel to the outside and of the filter. No home is seen, nor a folder that holds one.

        Raises
        ------
        NotBindable
            If the interpreter cannot be shown without a home.
        """
        interpreter = _interpreter(python)
        homes = _homes()
        system = [Path(place) for place in _SYSTEM if os.path.lexists(place)]
        links = [place for place in system if place.is_symlink()]
        hidden = [home for home in homes if any(map(home.is_relative_to, system))]
        needed = [place for place in _needed(interpreter, homes) if not _is_seen(place, system, hidden)]
        own, last = ("--unshare-user",), ("--disable-userns", "--assert-userns-disabled")
        # Capabilities to become another user, gone once that is done.
        switch = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        command = [
            shutil.which("bwrap") or "bwrap",
            *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
            *("--die-with-parent", "--new-session", "--hostname", "sandbox", "--cap-drop", "ALL"),
            *(own if self.own_namespace else switch),
        ]
        if self.is_last_namespace:
            command += last
        if self.is_filtered:
            command += ("--seccomp", str(seccomp))
        for place in links:
            command += ("--symlink", str(place.readlink()), str(place))
        for place in system:
            if place not in links:
                command += ("--ro-bind", str(place), str(place))
        command += ("--proc", "/proc", "--dev", "/dev")
        command += ("--perms", "1777", "--size", str(disk), "--tmpfs", _DISK)
        for place in hidden:
            command += ("--perms", "0755", "--tmpfs", str(place))
        for folder in _above(needed, system):  # made beforehand, or they would be for root alone
            command += ("--perms", "0755", "--dir", str(folder))
        for place in needed:
            command += ("--ro-bind", str(place), str(place))
        packages = Path(interpreter.library, "site-packages")
        if packages.parent in needed and packages.is_dir() and not packages.is_symlink():
            hidden.append(packages)
            command += ("--perms", "0755", "--tmpfs", str(packages))
        for place in hidden:
            command += ("--remount-ro", str(place))
        second = _text("sandboxed_tests.py").replace("from __future__ import annotations\n", "", 1)
        text = _text("sandboxed_objects.py") + second
        return [
            *command,
            *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", _DISK, "--clearenv"),
            *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", _DISK, "--setenv", "LANG", "C.UTF-8"),
            *("--", interpreter.program, "-I", "-S", "-B", "-c", text, str(channel)),
        ]


def enclosures(*, has_filter: bool) -> list[Enclosure]:
    """Return the ways to call bubblewrap here, the safest first; one of them may work."""
    filtered = [Enclosure(True, True, True), Enclosure(True, False, True)]
    unfiltered = [Enclosure(True, True, False)]
    if os.getuid() == 0:
        filtered.append(Enclosure(False, False, True))
        unfiltered.append(Enclosure(False, False, False))
    if has_filter:
        return [*filtered, *unfiltered]
    return unfiltered


def _interpreter(python: str | None) -> InterpreterFiles:
    """Return the files of an interpreter (default: this one), behind any virtual environment."""
    if python is None:
        return ask(str(Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")))
    return ask(str(Path(python).expanduser().absolute()))


def _homes() -> list[Path]:
    """Return the homes of this user and of all persons (not of services, such as /usr/sbin)."""
    named = [Path(name) for name in (*_homes_of_persons(), os.environ.get("HOME", "")) if name]
    homes = {home.resolve() for home in named if home.is_absolute() and home.is_dir()}
    return sorted(homes - {Path("/")})


@lru_cache
def _homes_of_persons() -> list[str]:
    return [
        entry.pw_dir
        for entry in pwd.getpwall()
        if entry.pw_uid >= _PERSON or entry.pw_uid in (0, os.getuid())
    ]


def _needed(interpreter: InterpreterFiles, homes: Iterable[Path]) -> list[Path]:
    """Return what to show of an interpreter, without what lies in a folder that is shown anyway."""
    folders = [Path(interpreter.library)]
    for place in map(Path, interpreter.modules):
        if not place.is_relative_to(folders[0]):
            folders.append(place)
    for folder in folders:
        for home in homes:
            if home.is_relative_to(folder.resolve()):
                raise NotBindable(f"the folder {folder} of the interpreter holds or is the home {home}")
    files = map(Path, (interpreter.program, *interpreter.shared_objects))
    return [*folders, *(file for file in files if not any(map(file.is_relative_to, folders)))]


def _is_seen(place: Path, system: Iterable[Path], hidden: Iterable[Path]) -> bool:
    is_of_the_system = any(map(place.is_relative_to, system))
    return is_of_the_system and not any(map(place.is_relative_to, hidden))


def _above(needed: Iterable[Path], system: Iterable[Path]) -> list[Path]:
    """Return the folders that hold what is needed, the outermost first, but for those that are there."""
    folders = {folder for place in needed for folder in place.parents}
    return sorted(folders - {Path("/"), Path(_DISK), *system})


@lru_cache
def _text(name: str) -> str:
    return files("adaptive_eval.scoring").joinpath(name).read_text(encoding="utf-8")
