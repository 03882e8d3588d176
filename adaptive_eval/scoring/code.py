"""The scorer ``code``: right when the answer's program passes the question's tests, run in a sandbox."""

import json
import pickletools
import re
import zlib
from base64 import b64decode
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, TypedDict

from adaptive_eval.errors import UsageError
from adaptive_eval.options.scorers import CodeScorerConfig
from adaptive_eval.scoring.sandbox import Limits, Numbers, SandboxFailed, require_sandbox, run_tests
from adaptive_eval.scoring.text import answer_part, storable
from adaptive_eval.trial import Completion, Question, Score, Signal

_BLOCK = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"\{(\w+)\}")
_PYTHON = ("python", "py", "python3")

DISK = 16 * 2**20
"""Bytes of files that a program may write."""

CASES_DISK = 256 * 2**20
"""Bytes of files with cases: those of LiveCodeBench have inputs and answers of many megabytes."""


class Case(TypedDict):
    """One input of a program, and what it must give."""

    input: str  # the standard input, or the arguments as JSON, one a line
    output: str  # the standard output, or the returned value as JSON
    testtype: Literal["stdin", "functional"]


class CodeScorer(CodeScorerConfig):
    """Runs a model's Python program, and then the tests, in a sandbox without network or files.

    The tests run in another process, where the names of the program call it. They pass if they come to their
    end, or end the process themselves with status 0; the program that they test may not. Functional cases
    call the ``func_name`` of the field ``metadata``.
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question unusable, or None."""
        if not self.allow_execution:
            raise UsageError(
                "the scorer code runs programs that a model wrote; set allow_execution: true to allow it"
            )
        require_sandbox(self.python, strict=self.require_sandbox == "strict")
        if self.cases:
            try:
                self._case_tests(question, "", self._cases(question))
            except ValueError as error:
                return str(error)
            return None
        values = self._values(question, "")
        missing = [name for name in _FIELD.findall(self.code + self.tests) if name not in values]
        if missing:
            known = ", ".join(values)
            return f"the scorer's code or tests use the field {missing[0]!r}; the question has {known}"
        if _filled(self.tests, values).strip():
            return None
        return "the tests are empty"

    def score(self, completion: Completion, question: Question) -> Score:
        """Run one answer; a program that fails, hangs or ends the process gets category 0 and a reason."""
        program = find_code(answer_part(completion.text, strip_reasoning=self.strip_reasoning))
        signals: dict[str, Signal] = {
            "is_correct": False,
            "has_box": program is not None,
            "truncated": completion.cut_off,
        }
        if program is None:
            reason = "no code found"
            if signals["truncated"]:
                reason = "truncated"
            return Score(0, None, signals, reason)
        extracted = storable(program)
        # with cases each has a process, and the one that compares may take all the time
        if self.cases:
            cpu_limit = self.time_limit
        else:
            cpu_limit = self.cpu_limit
        disk = CASES_DISK if self.cases else DISK
        limits = Limits(self.time_limit, cpu_limit, self.memory, disk)
        values = self._values(question, program)
        try:
            if self.cases:
                cases = self._cases(question)
                tests = self._case_tests(question, program, cases)
                numbers = Numbers(lines=len(program.splitlines()), cases=len(cases))
                outcome = run_tests(_text("sandboxed_cases.py"), tests, limits, self.python, numbers)
            else:
                code = _filled(self.code, values)
                tests = _filled(self.tests, values)
                outcome = run_tests(code, tests, limits, self.python)
        except (SandboxFailed, UsageError) as error:  # another process than that of check_target may lack it
            del signals["is_correct"]
            return Score(None, extracted, signals, f"the sandbox failed: {storable(str(error))}")
        signals["is_correct"] = outcome.passed
        return Score(int(outcome.passed), extracted, signals, storable(outcome.reason))

    def _cases(self, question: Question) -> list[Case]:
        """Return the cases of a question; ValueError says what is wrong with a field."""
        cases: list[Case] = []
        for name in self.cases:
            try:
                cases += read_cases(str(question.fields.get(name, "")))
            except ValueError as error:
                raise ValueError(f"the field {name!r} {error}") from None
        if not cases:
            raise ValueError(f"there is no case in {', '.join(self.cases)}")
        return cases

    def _case_tests(self, question: Question, program: str, cases: list[Case]) -> str:
        """Return the tests that run a program for every case; ValueError names a function that is missing."""
        function = ""
        if any(case["testtype"] == "functional" for case in cases):
            try:
                function = json.loads(str(question.fields["metadata"]))["func_name"]
            except (KeyError, TypeError, ValueError):
                raise ValueError(
                    "functional cases need a func_name in the JSON of the field metadata"
                ) from None
        seconds = max(1, round(self.cpu_limit))
        return f"{_text('sandboxed_checks.py')}\n\ncheck({program!r}, {function!r}, {cases!r}, {seconds})\n"

    def _values(self, question: Question, program: str) -> dict[str, str]:
        fields = {name: str(value) for name, value in question.fields.items()}
        return {**fields, "target": question.target, "answer": program}


def find_code(text: str) -> str | None:
    r"""Return the program in an answer: its last fenced block (of Python, if one is), or the whole text.

    Examples
    --------
    >>> find_code("First:\n```\n$ ls\n```\nThen:\n```python\nx = 1\n```\nDone.")
    'x = 1\n'
    >>> find_code("Sure!") is None
    True
    """
    found = [(match[1].lower(), match[2]) for match in _BLOCK.finditer(text) if match[2].strip()]
    marked = [body for language, body in found if language in _PYTHON]
    blocks = marked or [body for language, body in found if not language]
    if blocks:
        return blocks[-1]
    fenced = "```" in text
    if not fenced and re.search(r"^(?:def|class|import|from)\s", text, re.MULTILINE):
        return text
    return None


def _filled(template: str, values: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), template)


@lru_cache
def _text(name: str) -> str:
    return files("adaptive_eval.scoring").joinpath(name).read_text(encoding="utf-8")


MOST_BYTES = 256 * 2**20
"""Bytes that a field may hold once it is decompressed."""

_TEXT = {"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"}
_AROUND_IT = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}


def read_cases(text: str) -> list[Case]:
    """Read a JSON list of cases, or a pickled text of one, compressed by zlib, in base64.

    Nothing is unpickled: the opcodes are read, and only those that spell out one text are accepted.

    Raises
    ------
    ValueError
        If `text` is neither, holds more than a text, or more than 256 MiB.

    Examples
    --------
    >>> read_cases('[{"input": "1 2", "output": "3", "testtype": "stdin"}]')[0]["output"]
    '3'
    """
    try:
        plain = text
        if not text.lstrip().startswith("["):
            plain = _unpacked(text)
        found: Any = json.loads(plain)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except json.JSONDecodeError:
        raise ValueError("is not JSON") from None
    if not isinstance(found, list) or not all(map(_is_case, found)):
        raise ValueError("must be a list of {input, output, testtype: stdin or functional}, all texts")
    return found


def _unpacked(text: str) -> str:
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(b64decode(text, validate=True), MOST_BYTES)
    except (ValueError, zlib.error):
        raise ValueError("is neither a JSON list nor one that is pickled, compressed and in base64") from None
    if reader.unconsumed_tail or not reader.eof:
        raise ValueError(f"holds more than {MOST_BYTES // 2**20} MiB, or is cut off")
    found: list[str] = []
    try:
        opcodes = list(islice(pickletools.genops(data), 20))
    except ValueError:
        raise ValueError("is compressed, but is no pickle") from None
    for opcode, argument, _ in opcodes:
        if opcode.name in _TEXT:
            found.append(str(argument))
        elif opcode.name not in _AROUND_IT:
            raise ValueError(f"is a pickle of more than a text ({opcode.name}), and is not read")
    if len(found) != 1 or opcodes[-1][0].name != "STOP":
        raise ValueError("is a pickle of more than one text, and is not read")
    return found[0]


def _is_case(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("input"), str)
        and isinstance(value.get("output"), str)
        and value.get("testtype") in ("stdin", "functional")
    )
