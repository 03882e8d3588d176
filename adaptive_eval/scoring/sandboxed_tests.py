"""The program inside the sandbox: the tests in one process, the answer that they call in another.

Its text is given to the sandbox's Python with ``-c``, after that of
:mod:`adaptive_eval.scoring.sandboxed_objects`; it imports nothing of this package. The standard input holds
the task as JSON; the argument is the descriptor of the channel to the outside, which first yields a secret.
The secret is written back once the tests have passed. The process of the answer never has the channel, the
secret or the tests, and cannot look into that of the tests, which is not dumpable. Of an exception, its
built-in name and its line are told, no text of the answer's own.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import io
import json
import os
import re
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType

TYPE_CHECKING = False  # what follows takes longer to import than many programs run
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

    from adaptive_eval.scoring.sandboxed_objects import End, Handle, Mirror, last_line

MOST_PRINTED = 2**20
"""Bytes of output of one call that the tests can see."""

_HOOKS = {"load_tests", "setUpModule", "tearDownModule"}
_PR_SET_DUMPABLE = 4
_ONLY_AST = 0x400  # the flag of compile() that ``ast.parse`` gives; importing ast would take time


def main() -> None:
    """Run the task."""
    channel = int(sys.argv[1])
    of_tests, of_answer = socket.socketpair()
    answer = os.fork()
    if not answer:
        of_tests.close()
        os.close(channel)
        _read_nothing()
        os.register_at_fork(after_in_child=lambda: os.close(of_answer.fileno()))  # a copy gives no answers
        _answer(End(of_answer, is_of_tests=False))
    _hide()
    of_answer.close()
    with open(0, "rb", closefd=False) as given:
        task = json.load(given)
    os.ftruncate(0, 0)  # bubblewrap's own process holds it too
    _read_nothing()
    secret = os.read(channel, 64)
    first = os.getpid()
    if _reported(task, channel, End(of_tests, is_of_tests=True), answer) and os.getpid() == first:
        os.write(channel, secret)
    os._exit(0)


def _read_nothing() -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _hide() -> None:
    """Let no other process without privileges see the memory and the descriptors of this one."""
    import ctypes

    if ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError("the process of the tests cannot be hidden")


def _bound(limits: dict[str, tuple[int, int]], user: int | None) -> None:
    with suppress(OSError):  # where memory runs out, the kernel ends this process first
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000")
    for name, (soft, hard) in limits.items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    if user is not None:  # begun as root, for which some limits do not hold
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


# The process of the answer


def _answer(end: End) -> None:
    """Run the code of an answer, and what the tests ask for, until they end."""
    module = ModuleType("answer")
    printed = _Printed()
    sys.stdout = io.TextIOWrapper(printed, "utf-8", "backslashreplace", write_through=True)
    sys.stdin = _Input(end)
    read, first = builtins.input, os.getpid()
    builtins.input = lambda prompt="": end.ask("input", str(prompt)) if os.getpid() == first else read(prompt)
    sys.setrecursionlimit(sys.getrecursionlimit() + 50)

    def load(code: str, limits: dict[str, tuple[int, int]], user: int | None) -> tuple[str, ...]:
        _bound(limits, user)
        sys.modules["answer"] = module
        sys.argv = ["answer"]
        exec(compile(code, "<answer>", "exec"), module.__dict__)  # noqa: S102 - what the sandbox is for
        printed.drained()
        return tuple(name for name in vars(module) if not name.startswith("__"))

    def doctest(_: object) -> tuple[int, int]:
        return tuple(importlib.import_module("doctest").testmod(module))

    def copied(name: str) -> Callable[..., Any]:
        return lambda one: getattr(importlib.import_module("copy"), name)(one)

    end.services |= {"load": load, "doctest": doctest, "copy": copied("copy"), "deepcopy": copied("deepcopy")}
    end.services |= {
        "global": lambda name: vars(module)[name],
        "set global": lambda name, value: setattr(module, name, value),
        "delete global": lambda name: delattr(module, name),
        "derive": _derived,
        "super": lambda kind, one, name: getattr(super(kind, one), name),
    }
    end.printed = lambda: printed.drained().decode("utf-8", "replace")
    end.serve()


def _derived(name: str, bases: tuple[type, ...], space: dict[str, Any]) -> type:
    """Return a class that the tests derive from one of the answer, whose methods stay with the tests."""
    own = {**space, "__module__": "answer"}
    for key, value in space.items():
        if callable(value):
            own[key] = _method(value)
    return type(bases[0])(name, bases, own)


def _method(function: Any) -> Callable[..., Any]:
    return lambda one, /, *arguments, **keywords: function(one, *arguments, **keywords)


class _Printed(io.BytesIO):
    def write(self, data: Any) -> int:
        if self.tell() < MOST_PRINTED:
            super().write(data)
        return len(data)

    def drained(self) -> bytes:
        data = self.getvalue()[:MOST_PRINTED]
        self.seek(0)
        self.truncate()
        return data


class _Input(io.TextIOBase):
    """The standard input, which is that of the tests."""

    def __init__(self, end: End) -> None:
        self.end = end

    def read(self, size: int | None = -1) -> str:
        return str(self.end.ask("read", size))

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        return str(self.end.ask("readline", size))


# The process of the tests


def _reported(task: dict[str, Any], channel: int, end: End, answer: int) -> bool:
    """Run the task; write the built-in name and the line of the exception that ends it to the channel."""
    end.lost = lambda: _end_as(answer)
    end.may = _may
    end.hear = lambda text: text and sys.stdout.write(text)
    end.services |= {
        "input": lambda prompt: input(prompt),
        "read": lambda size: sys.stdin.read(size),
        "readline": lambda size: sys.stdin.readline(size),
    }
    try:
        return _run(task, channel, end)
    except BaseException as error:
        os.write(channel, " ".join(map(str, _described(error))).encode())
        raise


def _end_as(answer: int) -> NoReturn:
    """End this process as that of the answer has ended."""
    deadline = time.monotonic() + 1.0
    found, status = 0, 0
    while not found and time.monotonic() < deadline:
        found, status = os.waitpid(answer, os.WNOHANG)
        time.sleep(0.001)
    code = 1
    if found:  # it has closed the connection, and still runs
        code = os.waitstatus_to_exitcode(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


def _described(error: Any) -> tuple[str, int, int, int]:
    """Return the built-in name of an exception, its lines in the program and in the tests, and the case.

    A line is 0 if there is none; so is the number of the case, unless the tests are those of cases.
    """
    if hasattr(type(error), "CASE"):
        return error.problem, error.line, 0, error.case
    names = (one.__name__ for one in type(error).__mro__ if vars(builtins).get(one.__name__) is one)
    return next(names), getattr(error, "line_of_answer", 0), last_line(error, "<tests>"), 0


def _run(task: dict[str, Any], channel: int, end: End) -> bool:
    """Return True if the tests pass, raise if they do not."""
    os.write(channel, b"started\n")
    text = task["tests"]
    limits = {name: tuple(both) for name, both in task["limits"].items()}
    names = {*end.ask("load", task["code"], limits, task["user"])}
    _bound(limits, task["user"])
    entered = set[CodeType]()
    tests = _watched(text)
    sys.modules["answer"] = _AnswerModule(end, names)
    scope = ModuleType("__main__")
    wanted = names
    if "globals" not in text:
        wanted = names.intersection(re.findall(r"\w+", text))
    for name in _shown(wanted, text):
        vars(scope)[name] = _of_library(name, text) or end.ask("global", name)
    if "super" in text:
        vars(scope)["super"] = _Super
    vars(scope)[_ENTERED] = lambda: entered.add(sys._getframe(1).f_code)
    given = list[list[CodeType]]()
    end.give = lambda one: given.append(_codes(one))
    sys.modules["__main__"] = scope  # where unittest.main() looks for tests
    sys.argv = ["answer"]
    _adapt(text, end)
    try:
        exec(tests, scope.__dict__)  # noqa: S102
        _run_cases(scope)
    except SystemExit as error:  # right where the tests end themselves, wrong where the answer does
        if error.code or hasattr(error, "line_of_answer"):
            raise
    for failure in end.failures:
        raise failure
    for codes in given:
        if codes and entered.isdisjoint(codes):
            raise AssertionError
    return True


_ENTERED = "__entered__"
_LONGEST_WATCHED = 2**20


def _watched(text: str) -> CodeType:
    """Return the code of tests in which each function that asserts something tells that it is entered.

    An answer that is given one, to call it, has to call it.
    """
    if "assert" not in text or len(text) > _LONGEST_WATCHED:
        return compile(text, "<tests>", "exec")
    tree = compile(text, "<tests>", "exec", _ONLY_AST)
    for node in _nodes(tree):
        if not hasattr(node, "args") or not hasattr(node, "body") or not any(map(_asserts, _nodes(node))):
            continue
        (tell,) = compile(f"({_ENTERED}(), 0)[1]", "<tests>", "exec", _ONLY_AST).body
        if isinstance(node.body, list):  # after its documentation
            first = node.body[0]
            is_text = type(first) is type(tell) and type(first.value) is type(tell.value.slice)
            node.body.insert(int(is_text), tell)
        else:
            tell.value.value.elts[1], node.body = node.body, tell.value
    return compile(tree, "<tests>", "exec")


def _nodes(tree: Any) -> Iterator[Any]:
    """Yield a node of a syntax tree and all below it."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        for name in node._fields:
            value = getattr(node, name, None)
            parts = value if isinstance(value, list) else [value]
            left += [part for part in parts if hasattr(part, "_fields")]


def _asserts(node: Any) -> bool:
    """Tell whether a node asserts something: ``assert False`` says that it is not reached."""
    if type(node).__name__ == "Assert":
        return type(node.test).__name__ != "Constant"
    called = getattr(getattr(node, "func", None), "attr", "")
    return isinstance(called, str) and called.startswith("assert")


def _codes(one: Any) -> list[CodeType]:
    """Return the code that tells when it is entered of a function, method, generator, coroutine or class."""
    parts = [one]
    if isinstance(one, type):
        parts = [*vars(one).values()]
    found = list[CodeType]()
    for part in parts:
        of = getattr(part, "__func__", part)
        for name in ("__code__", "gi_code", "cr_code", "ag_code"):
            code = getattr(of, name, None)
            if isinstance(code, CodeType) and _ENTERED in code.co_names:
                found.append(code)
    return found


class _Super:
    """What ``super()`` gives the tests, also in a class that they derive from one of the answer."""

    def __init__(self, *given: Any) -> None:
        if not given:
            frame = sys._getframe(1)
            given = frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]]
        object.__setattr__(self, "given", given)

    def __getattribute__(self, name: str) -> Any:
        kind, one = object.__getattribute__(self, "given")
        if isinstance(kind, Mirror):
            return kind._end.ask("super", kind, one, name)
        return getattr(super(kind, one), name)


_cases_run: list[object] = []
"""Test cases that the tests have run themselves."""


def _run_cases(scope: ModuleType) -> None:
    """Run the test cases that the tests define, unless they have run some."""
    unittest = sys.modules.get("unittest")
    if unittest is None or _cases_run:
        return
    if unittest.defaultTestLoader.loadTestsFromModule(scope).countTestCases():
        unittest.main()


def _shown(wanted: set[str], text: str) -> set[str]:
    """Return the names of the answer that the tests get: none of a builtin, unless they test nothing else.

    An answer keeps using an ``abs`` of its own, and the tests the builtin. A question may ask for a function
    ``sum``: then each comparison of the tests begins with a call of it.
    """
    known = {*vars(builtins)}
    if not wanted or not wanted <= known:
        return wanted - known - _HOOKS
    compared = set()
    for statement in compile(text, "<tests>", "exec", _ONLY_AST).body:
        left = getattr(getattr(statement, "test", None), "left", None)
        compared.add(getattr(getattr(left, "func", None), "id", ""))
    if compared <= wanted:
        return compared
    return set()


class _AnswerModule(ModuleType):
    """The module of the answer, whose names are looked up in its process."""

    def __init__(self, end: End, names: set[str]) -> None:
        super().__init__("answer")
        shown = sorted(names - {*vars(builtins)} - _HOOKS)
        vars(self).update(_end=end, _names=[*names])
        vars(self)["__all__"] = [name for name in shown if not name.startswith("_")]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return vars(self)["_end"].ask("global", name)
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        vars(self)["_end"].ask("set global", name, value)

    def __delattr__(self, name: str) -> None:
        vars(self)["_end"].ask("delete global", name)

    def __dir__(self) -> list[str]:
        return list(vars(self)["_names"])


def _of_library(name: str, text: str) -> ModuleType | None:
    """Return the module of the standard library that the tests use by its name without importing it."""
    used = re.findall(rf"\b{name}\.(\w+)", text)
    if used and name in sys.stdlib_module_names:
        with suppress(ImportError):
            module = importlib.import_module(name)
            if all(hasattr(module, one) for one in used):
                return module
    return None


def _without_handle(one: Any) -> Any:
    if isinstance(one, Handle):
        return set(one)
    return one


def _adapt(text: str, end: End) -> None:
    """Have unittest, doctest and dataclasses work as they do in one process."""
    if "dataclasses" in text:
        import dataclasses

        for name in ("fields", "asdict", "astuple", "replace"):
            setattr(dataclasses, name, _of_both(getattr(dataclasses, name)))
    if "unittest" in text:
        import unittest

        class Program(unittest.TestProgram):
            def runTests(self) -> None:
                self.exit = False
                super().runTests()
                result = self.result  # Python 3.12.1 does not count a skipped test as run
                if not result.wasSuccessful() or not (result.testsRun or result.skipped):
                    sys.exit(1)

        unittest.main = Program
        of_sets = unittest.TestCase.assertSetEqual

        def compare(self: Any, *sets: Any, **message: Any) -> None:
            # Plain sets, since unittest asks one of them about the other.
            of_sets(self, *map(_without_handle, sets), **message)

        unittest.TestCase.assertSetEqual = compare  # type: ignore[method-assign]
        run_case = unittest.TestCase.run

        def run(self: Any, *arguments: Any) -> Any:
            _cases_run.append(self)
            return run_case(self, *arguments)

        unittest.TestCase.run = run  # type: ignore[assignment, method-assign]
    if "doctest" in text:
        import doctest

        of_module = doctest.testmod

        def testmod(m: Any = None, *arguments: Any, **keywords: Any) -> Any:
            if isinstance(m, _AnswerModule):  # whose examples are its own
                return doctest.TestResults(*end.ask("doctest", None))
            return of_module(m, *arguments, **keywords)

        doctest.testmod = testmod


def _of_both(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a library that also takes objects and classes of the answer."""

    @functools.wraps(function)
    def called(one: Any, *given: Any, **changes: Any) -> Any:
        if isinstance(one, (Handle, Mirror)):
            return one._end.ask("call", called, one, *given, **changes)
        return function(one, *given, **changes)

    return called


_STREAMS = (io.StringIO, io.BytesIO)
_CHANGING = {"__setitem__", "__delitem__"}


def _may(service: str, one: Any = None, name: Any = "", *_: object) -> None:
    """Raise for what an answer may not ask of an object of the tests: whatever leads to their variables."""
    kind = type(one)
    unittest = sys.modules.get("unittest")
    is_own = kind.__module__ == "__main__" and not (unittest and isinstance(one, unittest.TestCase))
    is_class = isinstance(one, type) and one.__module__ == "__main__"
    is_open = isinstance(name, str) and not name.startswith("__")
    may_read = is_own or is_class or isinstance(one, _STREAMS) or _mocks(one, name)
    is_name = isinstance(one, FunctionType) and name in ("__name__", "__qualname__")
    may_change = is_own and not callable(getattr(kind, str(name), None))
    may = {
        "special": (is_own or name not in _CHANGING) and (is_class or not isinstance(one, type)),
        "call": is_class,
        "await": kind.__module__ == "builtins" and hasattr(kind, "__await__"),
        "getattr": is_name or (is_open and may_read),
        "setattr": is_open and may_change,
        "delattr": is_open and may_change,
    }
    if not may.get(service, service in ("input", "read", "readline", "plain", "dir")):
        raise AttributeError(name)


def _mocks(one: Any, name: str) -> bool:
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(one, mock.NonCallableMock) and name not in dir(mock.Mock)


if __name__ == "__main__":
    main()
