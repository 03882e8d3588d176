"""What the scorer ``code`` runs as a program if a question has cases: the answer's, once for every case.

Its text goes into the sandbox, to the process of the answer; it imports nothing of this package. Every case
has a process of its own, so a program may end itself, leave threads, or read its input in any way. None has
the expected outputs. Of a failure, no text of the program's own is told.
"""

import atexit
import builtins
import json
import os
import re
import resource
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics"),
    *("itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing"),
)
"""What programs may use without importing it, as in LiveCodeBench's own harness."""


def run_case(program: str, function: str, given: str, seconds: int) -> tuple[str, int, str]:
    """Return the problem or an empty text, its line or 0, and the output."""
    scope: dict[str, Any] = {}
    for form in ("from {} import *", "import {}"):
        for name in MODULES:
            exec(form.format(name), scope)  # noqa: S102
    Path("input").write_text(given, encoding="utf-8")
    child = os.fork()
    if not child:
        try:
            os._exit(_child(program, function, given, seconds, scope))
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    output = Path("output").read_text(errors="replace")
    if not status:
        return "", 0, output
    if status in (-signal.SIGXCPU, -signal.SIGALRM):
        return "time", 0, output
    lines = Path("errors").read_text(errors="replace").splitlines() or [""]
    told = re.fullmatch(r"([A-Za-z]+) (\d{1,9})", lines[-1])
    if told:
        return (told[1], int(told[2]), output)
    return ("status", 0, output)


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
                owner = None
                if "Solution" in scope:
                    owner = scope["Solution"]()
                if owner is None:
                    method = scope[function]
                else:
                    method = getattr(owner, function)
                value = method(*map(json.loads, given.split("\n")))
                os.write(written, json.dumps(value).encode())
        atexit._run_exitfuncs()
        for stream in {out, sys.stdout}:
            stream.flush()
    except BaseException as error:  # noqa: BLE001 - the program's own
        os.write(2, f"\n{_described(error)}\n".encode())
        return 1
    return 0


def _described(error: BaseException) -> str:
    """Return the built-in name of an exception, and its line in the program or 0."""
    ancestors = type(error).__mro__
    name = next(one.__name__ for one in ancestors if getattr(builtins, one.__name__, None) is one)
    lines = [
        n for frame, n in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == "<answer>"
    ]
    if isinstance(error, SyntaxError) and error.filename == "<answer>":
        lines.append(error.lineno or 0)
    return f"{name} {lines[-1] if lines else 0}"
