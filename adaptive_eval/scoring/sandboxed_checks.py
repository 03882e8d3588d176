"""What the scorer ``code`` runs as tests if a question has cases: compares the output of every case.

Its text goes into the sandbox, to the process of the tests; it imports nothing of this package. What it
calls, ``run_case``, is of :mod:`adaptive_eval.scoring.sandboxed_cases`, in the process of the answer.
"""

import json
from decimal import Decimal, InvalidOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adaptive_eval.scoring.sandboxed_cases import run_case


class CaseFailed(AssertionError):
    """A case that a program fails.

    The problem is ``output``, ``time``, ``status``, or the built-in name of an exception at a line of the
    program; otherwise the line is 0.
    """

    CASE = True

    def __init__(self, case: int, problem: str, line: int) -> None:
        super().__init__()
        self.case = case
        self.problem = problem
        self.line = line


def check(program: str, function: str, cases: list[dict[str, str]], seconds: int) -> None:
    """Raise CaseFailed unless the program gives the output of every case."""
    for number, case in enumerate(cases, start=1):
        name = ""
        if case["testtype"] == "functional":
            name = function
        problem, line, output = run_case(program, name, case["input"], seconds)
        if not problem and not (_same_value if name else _same_lines)(output, case["output"]):
            problem = "output"
        if problem:
            raise CaseFailed(number, problem, line)


def _same_value(output: str, expected: str) -> bool:
    return bool(output) and json.loads(output) == json.loads(expected)


def _same_lines(output: str, expected: str) -> bool:
    """Compare as LiveCodeBench does: the same lines, stripped, or exactly the same numbers in them."""
    lines = _lines(output)
    wanted = _lines(expected)
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
