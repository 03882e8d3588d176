"""How the process of an answer and that of its tests share objects: plain data by value, others by name.

The first part of the program inside the sandbox (:mod:`adaptive_eval.scoring.sandboxed_tests` is the second).
Both processes hold an :class:`End` of one connection, which sends JSON. Numbers, texts and containers are
copied; a list, dict or set that both hold is kept the same on both sides. Any other object stays where it was
made, and the other side gets a :class:`Handle` on it. No received text is ever run.
"""

from __future__ import annotations

import builtins
import collections
import importlib
import json
import operator
import os
import socket
import sys
import threading
import types
import weakref
from contextlib import suppress

TYPE_CHECKING = False  # what follows takes longer to import than many programs run
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
    from typing import Any

MOST_SHARED = 2_000
"""Elements of containers of earlier calls that are kept the same on both sides, and 256 containers."""

_ATOMS = (bool, float, str, type(None))
_PARTS: dict[str, tuple[str, ...]] = {
    "complex": ("real", "imag"),
    "range": ("start", "stop", "step"),
    "slice": ("start", "stop", "step"),
    "fractions.Fraction": ("numerator", "denominator"),
    "datetime.date": ("year", "month", "day"),
    "datetime.time": ("hour", "minute", "second", "microsecond", "tzinfo"),
    "datetime.datetime": ("year", "month", "day", "hour", "minute", "second", "microsecond", "tzinfo"),
    "datetime.timedelta": ("days", "seconds", "microseconds"),
}
"""Types that are sent by value, with the arguments that make a value again."""

_ZONES = ("NoneType", "datetime.timezone", "zoneinfo.ZoneInfo")
_TEXTS = (
    *("decimal.Decimal", "uuid.UUID", "zoneinfo.ZoneInfo", "pathlib.PosixPath", "pathlib.PurePosixPath"),
    *("pathlib._local.PosixPath", "pathlib._local.PurePosixPath"),
)
"""Types that are sent as a text that makes a value again."""

_CONTAINERS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (list, dict, set, bytearray, collections.deque, collections.Counter, collections.OrderedDict)
}
_CONTAINERS["defaultdict"] = collections.defaultdict
_COLLECTIONS: tuple[type[Any], ...] = (tuple, frozenset, *_CONTAINERS.values())
_VIEWS: tuple[type[Any], ...] = (type({}.keys()), type({}.items()))
_PLAIN_BASES = (int, float, complex, str, bytes, tuple, frozenset, *_CONTAINERS.values(), *_VIEWS)
_KNOWN = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (*vars(types).values(), *vars(builtins).values())
    if isinstance(kind, type)
}

_COMPARISONS = {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}
_BINARY = (
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow"),
    *("lshift", "rshift", "and", "xor", "or"),
)
_UNARY = (
    *("neg", "pos", "abs", "invert", "bool", "len", "int", "float", "complex", "index"),
    *("round", "trunc", "floor", "ceil"),
)
_OTHER = (
    *("call", "iter", "next", "reversed", "getitem", "setitem", "delitem", "contains"),
    *("enter", "exit", "str", "repr", "format", "bytes", "fspath", "hash"),
    *("aiter", "anext", "aenter", "aexit", "await"),
)
_REVERSED = {f"__r{name}__": f"__{name}__" for name in _BINARY}
_ARITHMETIC = {f"__{prefix}{name}__" for prefix in ("", "i") for name in _BINARY} | {*_REVERSED}
_SCALING = {f"__{prefix}{name}__" for prefix in ("", "i", "r") for name in ("mul", "matmul", "pow")}
_MEETING = _COMPARISONS | _ARITHMETIC
_TO_NUMBER = {f"__{name}__" for name in _UNARY}
_JUDGING = {name for name in (*dir(str), *dir(float), *dir(set)) if name.startswith("is")} | {
    *("startswith", "endswith", "count", "find", "rfind", "index", "rindex"),
    *("removeprefix", "removesuffix", "replace", "split", "rsplit", "partition", "rpartition"),
    *("union", "difference", "intersection", "symmetric_difference"),
}
"""Methods that judge plain data, or return what they are given: a derived class may not answer for them."""

SPECIAL = _MEETING | _TO_NUMBER | {f"__{name}__" for name in _OTHER}


class Handle:
    """An object of the other side; what is done with it is asked of that side.

    It compares with objects of its own side only: plain data are equal to what they are equal to themselves.
    """

    __slots__ = ("__weakref__", "_bounded", "_has_limits", "_is_made", "_is_mixed", "_number")
    _end: End
    _has_plain = False
    _number: int
    _is_made: bool  # whether this side has called a class of the other side for it
    _has_limits: bool  # whether it was made from a number or a text: an interval may have no end
    _bounded: tuple[type, ...]  # types of which it was found not to contain everything
    # whether plain data have entered it, but as a factor: from them the other side may know what is expected
    _is_mixed: bool

    def __getattr__(self, name: str) -> Any:
        found = self._end.ask("getattr", self, name)
        if name in _JUDGING and self._has_plain and not self._is_made and isinstance(found, Handle):
            return getattr(self._end.ask("plain", self), name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        self._end.ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._end.ask("delattr", self, name)

    def __dir__(self) -> Iterable[str]:
        return self._end.ask("dir", self)  # type: ignore[no-any-return]

    def __copy__(self) -> Any:
        return self._end.ask("copy", self)

    def __deepcopy__(self, _: object) -> Any:
        return self._end.ask("deepcopy", self)

    def __del__(self) -> None:
        self._end.dropped.append(self._number)


def _forward(name: str) -> Callable[..., Any]:
    """Return the special method of handles that has a name."""

    def method(self: Any, /, *arguments: Any, **keywords: Any) -> Any:
        is_mixed = self._is_mixed
        meets_plain = name in _MEETING and not isinstance(arguments[0], Handle)
        if meets_plain and self._has_plain:
            return _operated(name, self._end.ask("plain", self), arguments[0])
        if meets_plain and name in _COMPARISONS:
            return NotImplemented
        if name == "__contains__" and not self._is_made and not isinstance(arguments[0], Handle):
            if self._has_plain:
                return arguments[0] in self._end.ask("plain", self)
            return any(one == arguments[0] for one in self)
        if name in ("__exit__", "__aexit__"):
            arguments = (*arguments[:2], None)  # a traceback stays on its side
        found = self._end.ask("special", self, name, *arguments, **keywords)
        if name == "__exit__":
            return bool(found) and not _fails_a_test(arguments[1])
        if name == "__aexit__":
            return _exited(found, arguments[1])
        if name == "__contains__" and found and not isinstance(arguments[0], Handle):
            _require_bounded(self, type(arguments[0]))
        meets_mixed = name in _ARITHMETIC and not meets_plain and arguments[0]._is_mixed
        is_told = meets_plain or (is_mixed and (name in _TO_NUMBER or meets_mixed))
        if is_told and found is not NotImplemented:
            if not isinstance(found, Handle):
                raise TypeError("an object of the answer makes a number of one of the tests")
            object.__setattr__(found, "_is_mixed", is_mixed or name not in _SCALING)
        return found

    method.__name__ = name
    return _await if name == "__await__" else method


def _await(one: Any) -> Generator[Any, None, Any]:
    yield from ()  # the other side waits
    return one._end.ask("await", one)


async def _exited(found: Any, error: Any) -> bool:
    return bool(await found) and not _fails_a_test(error)


def _require_bounded(one: Any, kind: type) -> None:
    """Raise for an object that has said of plain data of a type that it contains them, if it always does."""
    if one._has_limits:
        kind = object
    if kind in one._bounded:
        return
    if _contains_everything(one, kind):
        raise TypeError(f"an object of the answer contains every {kind.__name__}")
    object.__setattr__(one, "_bounded", (*one._bounded, kind))


def _numbers() -> list[int]:
    number = int.from_bytes(os.urandom(16), "big")
    return [number, number + 1, -number, -number - 1]


def _contains_everything(one: Any, kind: type) -> bool:
    """Tell whether an object says that it contains values of a type, or of all, that nobody put into it."""
    values: list[Any] = [os.urandom(16).hex(), os.urandom(9).hex().upper(), *_numbers()]
    if kind is str:
        values = values[:2]
    elif kind in (int, float):
        values = [*map(kind, values[2:])]
    with suppress(Exception):
        one = one._end.ask("deepcopy", one)  # since one that is asked may change
    try:
        return all(one._end.ask("special", one, "__contains__", value) for value in values)
    except Exception:  # noqa: BLE001 - of the answer, which expects no such value
        return False


def _fails_a_test(error: Any) -> bool:
    """Tell whether an exception is a failure of the tests, which no object of the answer may suppress."""
    return isinstance(error, AssertionError) and not hasattr(error, "line_of_answer")


def _operated(name: str, one: Any, other: Any) -> Any:
    if name in _REVERSED:
        return _operated(_REVERSED[name], other, one)
    if name == "__divmod__":
        return divmod(one, other)
    return getattr(operator, name)(one, other)


class Mirror(type):
    """The type of classes of the other side."""

    _end: End
    _class_number: int

    def __new__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any]) -> Any:
        """Have the other side derive a class from one of its own."""
        kept = ("__module__", "__qualname__", "__classcell__")
        said = {one: value for one, value in space.items() if one not in kept}
        end = next(base for base in bases if isinstance(base, cls))._end
        give, end.give = end.give, id  # the answer may leave some of its methods uncalled
        derived = end.ask("derive", name, bases, said)
        end.give = give
        if "__classcell__" in space:  # for super() in its methods
            space["__classcell__"].cell_contents = derived
        return derived

    def __init__(cls, *_: Any) -> None:
        """Leave the class as it is."""

    def __call__(cls, /, *arguments: Any, **keywords: Any) -> Any:
        """Have the other side make an object."""
        made = cls._end.ask("call", cls, *arguments, **keywords)
        if isinstance(made, Handle):
            object.__setattr__(made, "_is_made", True)
            given = (*arguments, *keywords.values())
            object.__setattr__(made, "_has_limits", not all(isinstance(one, _COLLECTIONS) for one in given))
        return made

    def __getattr__(cls, name: str) -> Any:
        return cls._end.ask("getattr", cls, name)

    def __setattr__(cls, name: str, value: object) -> None:
        if name.startswith("__"):  # as of abc
            type.__setattr__(cls, name, value)
        else:
            cls._end.ask("setattr", cls, name, value)

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls._end.ask("call", iter, cls))

    def __len__(cls) -> int:
        return len(cls._end.ask("call", list, cls))

    def __getitem__(cls, key: object) -> Any:
        return cls._end.ask("getitem", cls, key)


class End:
    """One end of the connection: asks, answers, and remembers what both sides share."""

    def __init__(self, connection: socket.socket, *, is_of_tests: bool) -> None:
        self.connection, self.file = connection, connection.makefile("rb")
        self.is_of_tests = is_of_tests
        self.lock = threading.RLock()
        self.own: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}  # of own objects, by id
        self.others: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.classes: dict[int, type] = {}  # of the other side
        self.dropped: list[int] = []
        self.shared: dict[int, tuple[Any, list[Any]]] = {}  # and what each held when it was last sent
        self.shared_numbers: dict[int, int] = {}
        self.next = int(is_of_tests)  # odd numbers are those of containers that the tests made
        self.forgotten: list[int] = []
        self.depth = 0
        self.failures: list[BaseException] = []  # of the tests, that an answer has not passed on to them
        self.services: dict[str, Callable[..., Any]] = {
            "call": lambda one, /, *arguments, **keywords: one(*arguments, **keywords),
            "getattr": getattr,
            "setattr": setattr,
            "delattr": delattr,
            "getitem": operator.getitem,
            "special": _special,
            "plain": _plain,
            "dir": dir,
            "await": self._awaited,
        }
        self.loop: Any = None  # of asyncio, in which this side's awaitables are awaited
        self.may: Callable[..., None] = lambda *_: None  # raises for what the other side may not ask
        self.printed: Callable[[], str] = str  # what was printed since it was last called
        self.hear: Callable[[str], object] = str
        self.give: Callable[[Any], object] = id  # told of each object of this side that the other side gets
        self.lost: Callable[[], None] = lambda: os._exit(0)

    def ask(self, service: str, /, *arguments: Any, **keywords: Any) -> Any:
        """Return what the other side answers, or raise what it raises."""
        with self.lock:
            if not self.depth and self.is_of_tests:
                self._forget()
            self.depth += 1
            known = len(self.failures)
            try:
                self._send({"ask": service}, arguments, keywords)
                return self._wait(service, arguments)
            except (StopIteration, StopAsyncIteration):
                raise
            except BaseException:
                del self.failures[known:]
                raise
            finally:
                self.depth -= 1

    def _awaited(self, one: Any) -> Any:
        """Return what an awaitable of this side leads to; a loop that awaits the other side stands still."""
        asyncio: Any = importlib.import_module("asyncio")

        async def awaited() -> Any:
            return await one

        outer, loop = asyncio._get_running_loop(), self.loop
        if loop is None or loop.is_running():
            loop = asyncio.new_event_loop()
        self.loop = self.loop or loop
        asyncio._set_running_loop(None)
        try:
            return loop.run_until_complete(awaited())
        finally:
            asyncio._set_running_loop(outer)

    def serve(self) -> None:
        """Answer until the other side ends."""
        while True:
            self._answer(self._receive())

    def _wait(self, service: str, arguments: tuple[Any, ...]) -> Any:
        while "ask" in (message := self._receive()):
            self._answer(message)
        (value, *cause), _ = self._contents(message)
        if "line" not in message:
            return value
        if not isinstance(value, BaseException):  # a class would be called for one
            raise TypeError("the other side raises what is no exception")
        if isinstance(value, StopIteration) and arguments[1:2] != ("__next__",):
            value = RuntimeError("StopIteration")  # which would end a loop of the tests
        causes = [one for one in cause if isinstance(one, BaseException)]
        for error in (value, *causes):
            error.line_of_answer = int(message["line"])  # by which it is known to be of the other side
        raise value from next(iter(causes), None)

    def _answer(self, message: dict[str, Any]) -> None:
        answer: dict[str, Any] = {}
        try:
            arguments, keywords = self._contents(message)
            self.may(message["ask"], *arguments)
            value = self.services[message["ask"]](*arguments, **keywords)
            self._send(answer, (value,), {})
        except BaseException as error:  # noqa: BLE001 - for the other side
            if self.is_of_tests and _fails_a_test(error):
                self.failures.append(error)
            answer = {"line": last_line(error, "<answer>")}
            self._send(answer, (error.with_traceback(None), error.__cause__), {})

    def _send(self, message: dict[str, Any], arguments: Iterable[Any], keywords: dict[str, Any]) -> None:
        message["dropped"], self.dropped = self.dropped, []
        message["forgotten"], self.forgotten = self.forgotten, []
        changes = []
        for number, (one, before) in [*self.shared.items()]:
            now = _elements(one)
            if len(now) != len(before) or not all(map(operator.is_, now, before)):
                self.shared[number] = one, now
                changes.append([number, *self._encoded(now)])
        values = self._encoded([*arguments])
        named = {name: self.encode(value) for name, value in keywords.items()}
        message |= {"changes": changes, "values": values, "named": named}
        data = json.dumps(message | {"printed": self.printed()}).encode()
        with suppress(BrokenPipeError):
            self.connection.sendall(len(data).to_bytes(8, "big") + data)

    def _receive(self) -> dict[str, Any]:
        head = self.file.read(8)
        data = self.file.read(int.from_bytes(head, "big")) if len(head) == 8 else b""
        if not data:
            self.lost()
        message: dict[str, Any] = json.loads(data)
        for number in message["dropped"]:
            self.numbers.pop(id(self.own.pop(number, None)), None)
        return message

    def _contents(self, message: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        for number in message["forgotten"]:
            del self.shared_numbers[id(self.shared.pop(number)[0])]
        for number, *content in message["changes"]:
            one = self.shared[number][0]
            _fill(one, self._decoded(content))
            self.shared[number] = one, _elements(one)
        values = self._decoded(message["values"])
        named = {name: self.decode(value) for name, value in message["named"].items()}
        self.hear(message["printed"])
        return values, named

    def _forget(self) -> None:
        sizes = [len(before) for _, before in self.shared.values()]
        first = 0
        while len(sizes) - first > 256 or sum(sizes[first:]) > MOST_SHARED:
            first += 1
        self.forgotten = [*self.shared][:first]
        for number in self.forgotten:
            del self.shared_numbers[id(self.shared.pop(number)[0])]

    # Values

    def encode(self, value: Any) -> Any:
        """Return what JSON can hold of a value."""
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is int:
            if abs(value) < 2**53:
                return value
            return ["int", hex(value)]
        if kind in (tuple, frozenset):
            return [kind.__name__, *self._encoded([*value])]
        if kind is bytes:
            return ["bytes", value.decode("latin-1")]
        name = _name(kind)
        if kind in _CONTAINERS.values():
            return self._container(value, kind.__name__)
        if name in _PARTS and _name(type(getattr(value, "tzinfo", None))) in _ZONES:
            return ["value", name, *(self.encode(getattr(value, part)) for part in _PARTS[name])]
        if name == "datetime.timezone":
            return ["value", name, self.encode(value.utcoffset(None))]
        if name in _TEXTS:
            return ["text", name, str(value)]
        if value is NotImplemented or value is Ellipsis:
            return ["constant", str(value)]
        if isinstance(kind, Mirror):
            return ["yours", value._number]
        self.give(value)
        if isinstance(value, type):
            return self._class(value)
        if self.is_of_tests and _is_found(value):
            return ["found", value.__module__, value.__qualname__]
        if isinstance(value, types.CoroutineType):
            return ["coroutine", ["mine", self._number_of(value), self._described(kind)]]
        if isinstance(value, BaseException):
            of = self._class(kind)
            number = 0 if of[0] == "found" else self._number_of(value)
            return ["raised", number, of, self.encode(value.args)]
        return ["mine", self._number_of(value), self._described(kind)]

    def decode(self, data: Any) -> Any:
        """Return the value that JSON holds."""
        if not isinstance(data, list):
            return data
        tag, *parts = data
        if tag == "yours":
            return self.own[parts[0]]
        if tag == "same":
            return self.shared[parts[0]][0]
        read: Callable[..., Any] = getattr(self, f"_read_{tag}")
        return read(*parts)

    def _encoded(self, values: list[Any]) -> list[Any]:
        if values and {*map(type, values)} == {int} and -(2**53) < min(values) <= max(values) < 2**53:
            return values
        return [*map(self.encode, values)]

    def _decoded(self, parts: Iterable[Any]) -> list[Any]:
        return [*map(self.decode, parts)]

    def _number_of(self, value: Any) -> int:
        number = self.numbers.get(id(value))
        if number is None:
            self.next += 2
            number = self.numbers[id(value)] = self.next
            self.own[number] = value
        return number

    def _container(self, value: Any, kind: str) -> list[Any]:
        if id(value) in self.shared_numbers:
            return ["same", self.shared_numbers[id(value)]]
        self.next += 2
        self._share(self.next, value)
        further = getattr(value, "default_factory", getattr(value, "maxlen", None))
        return ["container", kind, self.next, self.encode(further), *self._encoded(_elements(value))]

    def _share(self, number: int, value: Any) -> None:
        self.shared[number] = value, _elements(value)
        self.shared_numbers[id(value)] = number

    def _class(self, kind: type) -> list[Any]:
        if isinstance(kind, Mirror):
            return ["yours", kind._class_number]
        if vars(builtins).get(kind.__name__) is kind:
            return ["found", "builtins", kind.__name__]
        if self.is_of_tests and _is_found(kind):
            return ["found", kind.__module__, kind.__qualname__]
        return self._described(kind)

    def _described(self, kind: type) -> list[Any]:
        is_told = id(kind) in self.numbers
        number = self._number_of(kind)
        return ["class", number, None if is_told else self._description(kind)]

    def _description(self, kind: type) -> dict[str, Any]:
        names = [name for name in SPECIAL if _says(kind, name)]
        bases = [one for one in kind.__bases__ if one.__module__ == kind.__module__ or _is_error(one)]
        doc = kind.__doc__ if isinstance(kind.__doc__, str) else None
        return {
            "name": kind.__name__,
            "qualname": kind.__qualname__,
            "module": kind.__module__,
            "doc": doc,
            "bases": [*map(self._class, bases)],
            "special": names,
            "plain": next((one.__name__ for one in _PLAIN_BASES if issubclass(kind, one)), None),
        }

    def _read_int(self, text: str) -> int:
        return int(text, 16)

    def _read_tuple(self, *parts: Any) -> tuple[Any, ...]:
        return tuple(self._decoded(parts))

    def _read_frozenset(self, *parts: Any) -> frozenset[Any]:
        return frozenset(self._decoded(parts))

    def _read_bytes(self, text: str) -> bytes:
        return text.encode("latin-1")

    def _read_text(self, name: str, text: str) -> Any:
        if name not in _TEXTS or not isinstance(text, str):
            raise ValueError(name)
        module, _, kind = name.rpartition(".")
        return getattr(importlib.import_module(module), kind)(text)

    def _read_constant(self, name: str) -> Any:
        return {"NotImplemented": NotImplemented, "Ellipsis": Ellipsis}[name]

    def _read_value(self, name: str, *parts: Any) -> Any:
        if name not in (*_PARTS, "datetime.timezone"):
            raise ValueError(name)
        module, _, kind = name.rpartition(".")
        is_plain = all(not isinstance(part, list) or part[0] in ("int", "value", "text") for part in parts)
        if name != "slice" and not is_plain:
            raise TypeError(name)
        return getattr(importlib.import_module(module or "builtins"), kind)(*self._decoded(parts))

    def _read_container(self, kind: str, number: int, further: Any, *elements: Any) -> Any:
        further, value = self.decode(further), _CONTAINERS[kind]()
        if kind == "deque":
            value = collections.deque(maxlen=further)
        if kind == "defaultdict":
            value.default_factory = further
        self._share(number, value)  # before its elements, one of which may be the container
        _fill(value, self._decoded(elements))
        self._share(number, value)
        return value

    def _read_found(self, module: str, name: str) -> Any:
        found: Any = sys.modules[module] if self.is_of_tests else importlib.import_module(module)
        if self.is_of_tests and (module != "builtins" or not isinstance(vars(found)[name], type)):
            raise ValueError(name)
        return operator.attrgetter(name)(found)

    def _read_coroutine(self, of: list[Any]) -> Coroutine[Any, Any, Any]:
        handle = self.decode(of)

        async def awaited() -> Any:
            return self.ask("await", handle)

        return awaited()

    def _read_raised(self, number: int, of: list[Any], arguments: list[Any]) -> BaseException:
        kind, given = self.decode(of), self.decode(arguments)
        if not _is_error(kind):
            raise TypeError("the other side makes what is no exception")
        if not isinstance(kind, Mirror):
            with suppress(Exception):
                return kind(*given)  # type: ignore[no-any-return]
        if isinstance(self.others.get(number), kind):
            return self.others[number]  # type: ignore[no-any-return]
        error: BaseException = kind.__new__(kind, *given)
        if isinstance(kind, Mirror):
            vars(error)["_number"] = number
            self.others[number] = error
        return error

    def _read_mine(self, number: int, of: list[Any]) -> Any:
        kind = self.decode(of)
        found = self.others.get(number)
        if found is None:
            found = self.others[number] = object.__new__(kind)
            object.__setattr__(found, "_number", number)
            object.__setattr__(found, "_bounded", ())
            for name in ("_has_limits", "_is_made", "_is_mixed"):
                object.__setattr__(found, name, False)
            if number in self.dropped:
                self.dropped.remove(number)
        return found

    def _read_class(self, number: int, told: dict[str, Any] | None) -> type:
        if number not in self.classes:
            assert told is not None
            self.classes[number] = self._known_error(told) or self._mirror(number, told)
        return self.classes[number]

    def _known_error(self, told: dict[str, Any]) -> type | None:
        """Return this side's exception of the same name and library, but for those that steer tests."""
        module = str(told["module"])
        if module.partition(".")[0] in sys.stdlib_module_names - {"unittest", "doctest", "bdb", "__main__"}:
            found = vars(sys.modules.get(module, types)).get(told["name"])
            if isinstance(found, type) and _is_error(found):
                return found
            return None
        return None

    def _mirror(self, number: int, told: dict[str, Any]) -> Any:
        name, module = str(told["name"]), str(told["module"])
        bases = tuple(map(self.decode, told["bases"]))
        is_error = any(map(_is_error, bases))
        space: dict[str, Any] = {one: _forward(one) for one in SPECIAL.intersection(told["special"])}
        space |= {"__module__": module, "__doc__": _inert(told["doc"]), "_end": self}
        if is_error:
            space = {one: space[one] for one in ("__module__", "__doc__", "_end", "__str__") if one in space}
            space["__getattr__"] = _of_error
        else:
            space |= {"__slots__": (), "_has_plain": told["plain"] is not None}
            known = _KNOWN.get(f"{module}.{told['qualname']}")
            if known is None or issubclass(known, _PLAIN_BASES):  # what only plain data may say of themselves
                known = _CONTAINERS.get(str(told["plain"])) or _KNOWN.get(f"builtins.{told['plain']}")
            if known is not None:
                space["__class__"] = property(lambda _: known)
            if known is types.FunctionType:
                space["__doc__"] = property(lambda one: _inert(self.ask("getattr", one, "__doc__")))
                space["__module__"] = property(lambda one: self.ask("getattr", one, "__module__"))
        if not is_error:
            bases = tuple(one for one in bases if issubclass(one, Handle)) or (Handle,)
        kind = type.__new__(Mirror, name, bases, space)
        type.__setattr__(kind, "__qualname__", str(told["qualname"] or name))
        type.__setattr__(kind, "_class_number", number)
        return kind


def _of_error(error: Any, name: str) -> Any:
    return error._end.ask("getattr", error, name)


def _name(kind: type) -> str:
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _is_error(kind: type) -> bool:
    return issubclass(kind, BaseException)


def _is_found(value: Any) -> bool:
    """Tell whether a function or class is one of the standard library, found there by its name."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return False
    if module.partition(".")[0] not in sys.stdlib_module_names - {"__main__"}:
        return False
    with suppress(AttributeError):
        return operator.attrgetter(name)(sys.modules.get(module)) is value
    return False


def _says(kind: type, name: str) -> bool:
    """Tell whether a class has a special method of its own."""
    if name in ("__str__", "__repr__", "__format__"):
        return not _is_error(kind) or getattr(kind, name) is not getattr(BaseException, name)
    owners = [one for one in kind.__mro__ if name in vars(one)]
    return bool(owners) and owners[0] not in (object, BaseException) and vars(owners[0])[name] is not None


def _special(one: Any, name: str, /, *arguments: Any, **keywords: Any) -> Any:
    if name not in SPECIAL:
        raise AttributeError(name)
    return getattr(type(one), name)(one, *arguments, **keywords)


def _plain(one: Any) -> Any:
    """Return an object of a class that is derived from one of plain data, as such data."""
    base: Any = next(kind for kind in _PLAIN_BASES if isinstance(one, kind))
    if issubclass(base, dict):
        return dict(dict.items(one))
    if base in (int, float, complex):
        return base.__add__(one, base())
    if base in _VIEWS:
        return set(one)
    if base is str:
        return str.__str__(one)
    return base([*base.__iter__(one)])


def _elements(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return [*value]


def _fill(value: Any, elements: list[Any]) -> None:
    value.clear()
    if isinstance(value, dict):
        half = len(elements) // 2
        for key, one in zip(elements[:half], elements[half:], strict=True):
            value[key] = one
    elif isinstance(value, set):
        value.update(elements)
    else:
        value.extend(elements)


def last_line(error: BaseException, file: str) -> int:
    """Return the last line of a file in the traceback of an exception, or 0."""
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == file:
        line = error.lineno or 0
    return line


def _inert(doc: Any) -> str | None:
    """Return a documentation in which doctest finds nothing to run."""
    if isinstance(doc, str):
        return doc.replace(">>>", "> > >")
    return None
