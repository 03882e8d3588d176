"""The program inside the sandbox: limits itself irrevocably, runs an answer's code, then the tests.

Its text is given to the sandbox's Python with ``-c``; it imports nothing of this package. The standard input
holds the task as JSON; the argument is the descriptor of the channel to the outside, which first yields a
secret. The secret is written back once the tests have passed. An answer that ends the process earlier, in
whatever way, does not know it: the secret waits on the interpreter's stack, and no name, frame, container or
descriptor leads to it. An answer that reads the memory of its own process (``ctypes``) can find it. Of an
exception, its built-in name and its line are told, no text of the answer's own.
"""

from __future__ import annotations

import builtins
import importlib
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import CodeType, ModuleType

TYPE_CHECKING = False  # what follows takes longer to import than many programs run
if TYPE_CHECKING:
    import ast
    from typing import Any, TypeGuard


def main() -> None:
    """Run the task."""
    channel = int(sys.argv[1])
    with open(0, "rb", closefd=False) as given:
        task = json.load(given)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nothing for an answer that reads its input
    _bound(task["limits"], task["user"])
    _conclude(os.write, channel, os.getpid, os.getpid(), os.read(channel, 64), _reported(task, channel))


def _conclude(
    write: Callable[[int, bytes], int],
    channel: int,
    process: Callable[[], int],
    first: int,
    secret: bytes,
    passed: bool,
) -> None:
    if passed and process() == first:  # no copy of the process, which the answer may have made to guess
        write(channel, secret)


def _bound(limits: dict[str, tuple[int, int]], user: int | None) -> None:
    with suppress(OSError):  # where memory runs out, the kernel ends this process first
        os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000")
    for name, (soft, hard) in limits.items():
        resource.setrlimit(getattr(resource, name), (soft, hard))
    if user is not None:  # begun as root, for which some limits do not hold
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def _reported(task: dict[str, Any], channel: int) -> bool:
    """Run the task; write the built-in name and the line of the exception that ends it to the channel."""
    try:
        return _run(task, channel)
    except BaseException as error:
        os.write(channel, " ".join(map(str, _described(error))).encode())
        raise


def _described(error: Any) -> tuple[str, int, int, int]:
    """Return the built-in name of an exception, its lines in the program and in the tests, and the case.

    A line is 0 where there is none; so is the number of the case, unless the tests are those of cases.
    """
    if hasattr(error, "case"):
        return error.problem, error.line, 0, error.case
    ancestors: tuple[type, ...] = type(error).__mro__
    names = (one.__name__ for one in ancestors if vars(builtins).get(one.__name__) is one)
    lines = {"<answer>": 0, "<tests>": 0}
    trace = error.__traceback__
    while trace is not None:
        place = trace.tb_frame.f_code.co_filename
        if place in lines:
            lines[place] = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename in lines:
        lines[error.filename] = error.lineno or 0
    return next(names), lines["<answer>"], lines["<tests>"], 0


def _run(task: dict[str, Any], channel: int) -> bool:
    """Return True where the tests pass, raise where they do not."""
    os.write(channel, b"started\n")
    text, ended = task["tests"], SystemExit
    tests, ends = compile(text, "<tests>", "exec"), _lines_that_end(text)
    own, known = {id(code) for code in _codes(tests)}, [object, *_classes()]
    restore = _guard(text)
    shared_builtins, own_builtins = vars(builtins), dict(vars(builtins))
    answer = ModuleType("answer")
    sys.modules["answer"] = answer
    sys.argv = ["answer"]
    exec(compile(task["code"], "<answer>", "exec"), answer.__dict__)  # noqa: S102 - what the sandbox is for
    shared_builtins.update(own_builtins)  # what follows calls them
    scope = _test_module(answer, text)
    restore(scope.__dict__)
    sys.modules["__main__"] = scope  # where unittest.main() looks for tests
    _compare_plain_data(known)
    try:
        exec(tests, scope.__dict__)  # noqa: S102
    except ended as end:  # right where the tests end themselves, wrong where the answer that they call does
        trace = end.__traceback__ and end.__traceback__.tb_next
        while trace is not None and trace.tb_next is not None and id(trace.tb_frame.f_code) in own:
            trace = trace.tb_next
        if trace is None or id(trace.tb_frame.f_code) not in own or trace.tb_lineno not in ends or end.code:
            raise
    impostor = _impostor(known)
    if impostor is not None:
        raise AssertionError(f"an object of {impostor} is equal to anything")
    return True


def _test_module(answer: ModuleType, text: str) -> ModuleType:
    """Return the module of the tests: all names of the answer but those that shadow a builtin.

    An answer that defines its own ``abs`` or ``sorted`` goes on using it, and the tests use Python's.
    """
    if "doctest" in text:  # which looks at functions of the very module that defines them
        return answer
    scope = ModuleType("__main__")
    own = {name: value for name, value in vars(answer).items() if name not in vars(builtins)}
    scope.__dict__.update(own)
    return scope


_PLAIN = (bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, type(None))
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def _compare_plain_data(known: list[type]) -> None:
    """Let no class of the answer say how its objects compare with plain data, such as 3 or [1, 2]."""
    old = set(map(id, known))
    attributes = type.__dict__["__dict__"].__get__
    for one in [*_classes()]:
        if id(one) in old or _is_of_a_library(one):
            continue
        for name in _COMPARISONS:
            compare = attributes(one).get(name)
            if compare is not None:
                with suppress(TypeError):  # a class of C
                    type.__setattr__(one, name, _for_own_kind(compare))


def _is_of_a_library(one: type) -> bool:
    module = one.__module__ if isinstance(one.__module__, str) else ""
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return False
    return getattr(sys.modules.get(module), one.__name__, None) is one


def _for_own_kind(compare: Any) -> Callable[[Any, Any], Any]:
    """Return a comparison that leaves plain data to the type of the data."""

    def compared(self: Any, other: Any) -> Any:
        if type(other) in _PLAIN:
            return NotImplemented
        bind = getattr(compare, "__get__", None)
        return compare(self, other) if bind is None else bind(self, type(self))(other)

    return compared


def _guard(text: str) -> Callable[[dict[str, Any]], None]:
    """Prepare the modules that tests rely on; return a function that undoes the answer's changes."""
    modules = [module for module in map(_module, _imported(text)) if module is not None]
    if "unittest" in sys.modules:
        _report_by_error(text)
    classes = [one for module in modules for one in vars(module).values() if isinstance(one, type)]
    kept = [(owner, dict(vars(owner))) for owner in (*modules, *classes)]
    own_builtins = dict(vars(builtins))
    sys.settrace = sys.setprofile = _no_trace  # by which a line of the tests could be left out

    def restore(scope: dict[str, Any]) -> None:
        for owner, attributes in kept:
            with suppress(AttributeError, TypeError):
                for name in {*vars(owner)} - {*attributes} if isinstance(owner, type) else ():
                    delattr(owner, name)
                for name, value in attributes.items():
                    if vars(owner).get(name) is not value:
                        setattr(owner, name, value)
        for module in modules:
            sys.modules[module.__name__] = module
        mock = sys.modules.get("unittest.mock")
        if mock is not None and "ANY" not in text:
            mock._ANY.__eq__ = object.__eq__
        scope.pop("load_tests", None)
        scope.update(__name__="__main__", __builtins__=own_builtins)

    return restore


def _imported(text: str) -> set[str]:
    """Return the modules that the tests import, but for those that they share with the answer."""
    lines = re.findall(
        r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))", text, re.MULTILINE
    )
    names = {
        part.split()[0]
        for source, several in lines
        for part in (source or several).split(",")
        if part.strip()
    }
    return names - {"sys", "builtins", "answer", "__main__", "__future__"}


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except Exception:  # noqa: BLE001 - the tests will say so themselves
        return None


def _report_by_error(text: str) -> None:
    """Have ``unittest.main()`` return where the tests pass: an answer could raise SystemExit as well."""
    import unittest

    class Program(unittest.TestProgram):
        def runTests(self) -> None:
            self.exit = False
            super().runTests()
            result = self.result
            if not result.wasSuccessful():
                sys.exit(1)
            found = result.testsRun or result.skipped  # Python 3.12.1 does not count a skipped test as run
            if not found or (result.skipped and "skip" not in text.lower()):
                raise AssertionError("no test was run, or the answer has skipped one")

    unittest.main = Program


def _no_trace(function: object) -> None:
    if function is not None:  # doctest ends tracing
        raise RuntimeError("tracing is not available in the sandbox")


def _lines_that_end(text: str) -> set[int]:
    """Return the lines on which the tests do nothing but end the process themselves."""
    if "exit" not in text.lower():
        return set()
    import ast

    tree = ast.parse(text)
    ends = [node for node in ast.walk(tree) if _is_end(node)]
    inside = {id(inner) for end in ends for inner in ast.walk(end)}
    others = {getattr(node, "lineno", 0) for node in ast.walk(tree) if id(node) not in inside}
    lines = (range(end.lineno, getattr(end, "end_lineno", end.lineno) + 1) for end in ends)
    return {line for some in lines for line in some} - others


def _is_end(node: ast.AST) -> TypeGuard[ast.stmt]:
    import ast

    if not isinstance(node, ast.Raise | ast.Expr):
        return False
    call = node.exc if isinstance(node, ast.Raise) else node.value
    name = call.func if isinstance(call, ast.Call) else call
    if isinstance(name, ast.Attribute):
        return name.attr == "exit" and isinstance(name.value, ast.Name) and name.value.id == "sys"
    return isinstance(name, ast.Name) and name.id in ("exit", "SystemExit")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _classes(root: type = object) -> Iterator[type]:
    one: type
    for one in type.__subclasses__(root):
        yield one
        yield from _classes(one)


def _impostor(known: list[type]) -> str | None:
    """Return the name of a class of the answer whose objects are equal to anything, if there is one."""
    old = set(map(id, known))
    attributes, ancestors = type.__dict__["__dict__"].__get__, type.__dict__["__mro__"].__get__
    probes = (object(), 7919, -0.125, "\0probe", [7919], ("\0probe",), {"\0probe": 7919})
    old.add(id(getattr(sys.modules.get("unittest.mock"), "_ANY", None)))  # the tests may use it
    for one in _classes():
        if id(one) not in old and "__eq__" in attributes(one):
            makers = (attributes(base).get("__new__") for base in ancestors(one) if id(base) in old)
            try:
                made = next(filter(None, makers))(one)
                if any(made == probe for probe in probes):
                    return one.__name__
            except BaseException:  # noqa: BLE001, S112 - it has looked at the other object
                continue
    return None


if __name__ == "__main__":
    main()
