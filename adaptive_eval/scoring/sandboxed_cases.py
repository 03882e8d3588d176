"""What the scorer ``code`` runs as tests where a question has cases: the program, once for every case.

Its text goes into the sandbox; it imports nothing of this package. Every case has a process of its own, so a
program may end itself, leave threads, or read its input in any way.
"""

import atexit
import json
import os
import resource
import signal
import sys
import traceback
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
"""What programs may use without importing it, as in LiveCodeBench's own harness."""


def check(program: str, function: str, cases: list[dict[str, str]], seconds: int) -> None:
    """Raise AssertionError unless the program gives the output of every case."""
    scope: dict[str, object] = {}
    for form in ("from {} import *", "import {}"):
        for name in MODULES:
            exec(form.format(name), scope)  # noqa: S102
    for number, case in enumerate(cases, start=1):
        name = function if case["testtype"] == "functional" else ""
        problem, output = _run(program, name, case["input"], seconds, dict(scope))
        if not problem and not (_same_value if name else _same_lines)(output, case["output"]):
            problem = f"gave {output.strip()[:60]!r}, not {case['output'].strip()[:60]!r}"
        assert not problem, f"case {number} of {len(cases)}: {problem}"


def _run(program: str, function: str, given: str, seconds: int, scope: dict[str, Any]) -> tuple[str, str]:
    """Return what was wrong, or nothing, and the output."""
    Path("input").write_text(given, encoding="utf-8")
    child = os.fork()
    if not child:
        try:
            os._exit(_child(program, function, given, seconds, scope))
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    output, errors = (Path(name).read_text(errors="replace") for name in ("output", "errors"))
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return f"took longer than {seconds} s", output
    return ((errors.strip().splitlines() or [f"status {status}"])[-1] if status else ""), output


def _child(program: str, function: str, given: str, seconds: int, scope: dict[str, Any]) -> int:
    os.closerange(3, 64)  # the way to the outside too
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.alarm(4 * seconds)  # one that sleeps uses no CPU time
    os.dup2(os.open("input", os.O_RDONLY), 0)
    written = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_WRONLY) if function else written, 1)
    os.dup2(os.open("errors", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    out = sys.stdout
    scope["__name__"] = "answer" if function else "__main__"
    sys.setrecursionlimit(50_000)
    try:
        with suppress(SystemExit):
            exec(compile(program, "<answer>", "exec"), scope)  # noqa: S102
            if function:
                owner = scope["Solution"]() if "Solution" in scope else None
                method = scope[function] if owner is None else getattr(owner, function)
                value = method(*map(json.loads, given.split("\n")))
                os.write(written, json.dumps(value).encode())
        atexit._run_exitfuncs()
        for stream in {out, sys.stdout}:
            stream.flush()
    except BaseException:  # noqa: BLE001 - the program's own
        traceback.print_exc()
        sys.stderr.flush()
        return 1
    return 0


def _same_value(output: str, expected: str) -> bool:
    return bool(output) and json.loads(output) == json.loads(expected)


def _same_lines(output: str, expected: str) -> bool:
    """Compare as LiveCodeBench does: the same lines, stripped, or exactly the same numbers in them."""
    lines, wanted = _lines(output), _lines(expected)
    return len(lines) == len(wanted) and all(map(_same_line, lines, wanted))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_line(line: str, wanted: str) -> bool:
    return line == wanted or _numbers(line) == _numbers(wanted) != []


def _numbers(line: str) -> list[Decimal]:
    try:
        return [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return []
