"""What a program is given and denied: the command line of the sandbox and its filter, without running it."""

import struct
from itertools import pairwise
from pathlib import Path

import pytest

from adaptive_eval.scoring import confinement
from adaptive_eval.scoring.confinement import Enclosure, enclosures, syscall_filter

KILLED, VERDICTS = 0x80000000, {"ALLOWED": 0x7FFF0000}
VERDICTS |= {name: 0x00050000 | number for name, number in (("EPERM", 1), ("ENOSYS", 38), ("NO_FAMILY", 97))}
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = (Path(__file__).parents[1] / "data" / "filtered_calls.txt").read_text().splitlines()[1:]


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


def verdict(number, argument=0, machine="x86_64", architecture=None):
    """Run the filter as the kernel does."""
    architecture = architecture or MACHINES[machine]
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


@pytest.mark.parametrize("line", CALLS)
def test_what_the_filter_says_of_a_call(line):
    machine, expected, *of_calls = line.partition("#")[0].split()
    numbers, arguments = ([int(one, 0) for one in part.split(",")] for part in of_calls)
    found = {verdict(number, argument, machine) for number in numbers for argument in arguments}
    assert found == {VERDICTS[expected]}


def test_a_call_of_another_architecture_ends_the_program():
    assert verdict(0, architecture=0x40000003) == KILLED
