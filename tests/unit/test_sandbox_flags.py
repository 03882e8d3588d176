"""What a program is given and denied: the command line of the sandbox and its filter, without running it."""

import struct
from itertools import pairwise

import pytest

from adaptive_eval.scoring import confinement
from adaptive_eval.scoring.confinement import Enclosure, enclosures, syscall_filter

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, NO_FAMILY = (0x00050000 | number for number in (1, 38, 97))
X86 = 0xC000003E


def command(own=True, last=True, filtered=True):
    return Enclosure(own, last, filtered).command(None, disk=1234, channel=5, seccomp=6)


def test_all_is_taken_away_that_a_program_could_reach_others_by():
    words = command()
    alone = {"--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"}
    assert alone | {"--unshare-user", "--die-with-parent", "--new-session", "--clearenv"} <= set(words)
    assert "--disable-userns" in words
    assert "--bind" not in words
    for pair in (
        ("--cap-drop", "ALL"),
        ("--seccomp", "6"),
        ("--size", "1234"),
        ("--tmpfs", "/tmp"),
        ("--remount-ro", "/"),
        ("--remount-ro", "/dev"),
        ("--chdir", "/tmp"),
    ):
        assert pair in pairwise(words)
    for number, word in enumerate(words):
        if word == "--ro-bind":  # at its own place, and nothing of a home but the interpreter's
            assert words[number + 1] == words[number + 2]


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        ({"own": False, "last": False}, "--unshare-user"),
        ({"last": False}, "--disable-userns"),
        ({"filtered": False}, "--seccomp"),
    ],
)
def test_a_weaker_way_lacks_its_own_part_only(parts, missing):
    without = set(command()) - set(command(**parts))
    assert missing in without
    assert without <= {missing, "6", "--disable-userns", "--assert-userns-disabled"}


@pytest.mark.parametrize("user", [0, 1000])
def test_the_safest_way_is_tried_first(user, monkeypatch):
    monkeypatch.setattr(confinement.os, "getuid", lambda: user)
    ways = [
        (one.own_namespace, one.is_last_namespace, one.is_filtered) for one in enclosures(has_filter=True)
    ]
    assert ways[:2] == [(True, True, True), (True, False, True)]
    assert ((False, False, True) in ways) == (user == 0)
    assert not any(one.is_filtered for one in enclosures(has_filter=False))


def verdict(number, argument=0, machine="x86_64", architecture=X86):
    """Run the filter as the kernel does."""
    program, at, value = list(struct.iter_unpack("<HBBI", syscall_filter(machine))), 0, 0
    fields = {0: number, 4: architecture, 16: argument}
    while True:
        code, if_true, if_false, operand = program[at]
        if code == 0x06:
            return operand
        if code == 0x20:
            value = fields[operand]
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            at += if_true if holds else if_false
        at += 1


@pytest.mark.parametrize(
    ("number", "argument", "expected"),
    [
        *(
            (number, 0, ALLOWED) for number in (0, 1, 9, 59, 60, 105, 202, 257)
        ),  # read, write, mmap, execve, exit, setuid, futex, openat
        *((number, 0, EPERM) for number in (272, 308, 165, 166, 155, 161, 101, 310, 321, 250, 319, 425, 426)),
        *((number, 0, EPERM) for number in (248, 298, 323, 175, 313, 246, 169, 29, 438, 304, 135)),
        (435, 0, ENOSYS),  # clone3, whose arguments no filter can read
        *((number, 0, ENOSYS) for number in (441, 500, 0x40000000 + 39)),
        (2**30, 0, ENOSYS),
        *((56, flags, ALLOWED) for flags in (0x00000100, 0x3D0F00)),  # a thread
        *((56, flag, EPERM) for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000)),
        *((56, flag, EPERM) for flag in (0x20000000, 0x40000000)),
        *((41, domain, ALLOWED) for domain in (1, 2, 10)),
        *((41, domain, NO_FAMILY) for domain in (16, 17, 38, 40)),
    ],
)
def test_what_the_filter_says_of_a_call(number, argument, expected):
    assert verdict(number, argument) == expected


@pytest.mark.parametrize(
    ("number", "argument", "expected"),
    [
        *((number, 0, ALLOWED) for number in (63, 64, 222, 221, 93, 146, 98)),
        *((number, 0, EPERM) for number in (97, 40, 117, 194, 219, 425, 279, 280, 241)),
        *((number, 0, ENOSYS) for number in (435, 500)),
        (220, 0x3D0F00, ALLOWED),  # a thread
        (220, 0x10000011, EPERM),
        (198, 40, NO_FAMILY),
    ],
)
def test_what_it_says_on_arm(number, argument, expected):
    assert verdict(number, argument, "aarch64", 0xC00000B7) == expected


def test_a_call_of_another_architecture_ends_the_program():
    assert verdict(0, architecture=0x40000003) == KILLED
