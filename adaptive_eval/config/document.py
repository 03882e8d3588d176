"""A YAML text as plain data with the line of every value, what is wrong with it as YAML, and overrides of it.

The text is composed to YAML's node graph and read from there, so that every duplicate key is seen (a
loader keeps one of them or stops at the first) and every value keeps its line.
"""

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from adaptive_eval.errors import Problem
from adaptive_eval.options.mistakes import Place, dotted, shown

MAX_VALUES = 100_000
"""Values a config may have with its aliases written out; a bound against aliases that multiply."""

MAX_CHARACTERS = 300_000
"""Longest text: it takes about ten seconds to read."""

MAX_DEPTH = 500
"""Brackets that may be open at once; the parser's time grows with their square."""

_TAG = "tag:yaml.org,2002:"


Marks: TypeAlias = dict[Place, tuple[int, int]]
"""Line and column of every value, or of its key where it has one, from 1."""


@dataclass(frozen=True)
class Document:
    """The data of a YAML text."""

    data: Any  # plain data: dict, tuple, str, int, float, bool and None; None for an empty text
    problems: tuple[Problem, ...] = ()  # what is wrong with the text as YAML
    marks: Marks = field(default_factory=dict)

    def mark(self, path: Place) -> tuple[int, int] | None:
        """Return line and column of `path`, or of the nearest value around it that has them.

        A setting at the top that is not there has none.
        """
        for end in range(len(path), 0 if path else -1, -1):
            if path[:end] in self.marks:
                return self.marks[path[:end]]
        return None

    def line(self, path: Place) -> int | None:
        """Return the line of `path`, or of the nearest value around it that has one."""
        mark = self.mark(path)
        if mark:
            return mark[0]
        return None


def read_document(text: str) -> Document:
    r"""Read a YAML 1.2 text.

    Examples
    --------
    >>> document = read_document("a: 1\nb: {c: 2}\na: 3")
    >>> document.data, document.line(("b", "c"))
    ({'a': 1, 'b': {'c': 2}}, 2)
    >>> print(*document.problems)
    line 3: a: this key is already on line 1; keep one of the two [config/twice]
    """
    if len(text) > MAX_CHARACTERS:
        words = f"the text has {len(text):,} characters; a config has at most {MAX_CHARACTERS:,}"
        return Document(None, (Problem("", words),))
    if _is_deep(text):
        return Document(None, (_TOO_DEEP,))
    yaml = YAML(typ="safe", pure=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ReusedAnchorWarning)
            root = yaml.compose(text)
        return _Reader().read(root)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return Document(None, (_unreadable(error, text, mark.line if mark else None),))
    except ReusedAnchorWarning as error:
        name = str(error).split("'")[1]
        return Document(None, (Problem("", f"the anchor &{name} is set twice; rename one of them"),))
    except YAMLError as error:
        place = getattr(error, "position", None)
        line = None
        if isinstance(place, int):
            line = text.count("\n", 0, place) + 1
        return Document(
            None, (Problem("", "not readable as YAML: a control character is in the text", line),)
        )
    except RecursionError:
        return Document(None, (_TOO_DEEP,))


def _unreadable(error: MarkedYAMLError, text: str, line: int | None) -> Problem:
    """Return what a parser's message means for the person who wrote the text, on line `line` from 0."""
    words = " ".join(part for part in (error.context, error.problem) if part)
    lines = text.splitlines()
    here = ""
    if line is not None and line < len(lines):
        here = lines[line]
    before = next((one for one in reversed(lines[: line or 0]) if one.split("#")[0].strip()), "")
    if "'\\t'" in words:
        said = "a tab is used for indentation; use spaces"
    elif "quoted scalar" in words:
        start = line
        if error.context_mark:
            start = error.context_mark.line
        said, line = "the quotation mark that opens here is never closed", start
    elif "flow " in words:
        start = line
        if error.context_mark:
            start = error.context_mark.line
        said, line = "the bracket that opens here is never closed, or a comma is missing in it", start
    elif "mapping values are not allowed" in words and here.count(": ") > 1:
        said = "there are two colons; put the text that holds one in quotes"
    elif "mapping values are not allowed" in words or "block " in words:
        said = (
            f"the indentation does not fit: this line starts in column {_column(here)}, the one before in "
            f"column {_column(before)}; settings of one section start in the same column"
        )
    elif "expected ':'" in words:
        said, line = "no setting; write NAME: VALUE, with a space after the colon", (line or 1) - 1
    else:
        said = words
    shown = None
    if line is not None:
        shown = line + 1
    return Problem("", f"not readable as YAML: {said}", shown)


def _column(line: str) -> int:
    return len(line) - len(line.lstrip(" ")) + 1


_TOO_DEEP = Problem("", "the text is nested too deeply to be a config")


def _is_deep(text: str) -> bool:
    """Tell whether brackets are nested deeply, quoted ones included: a text has few that are not closed."""
    depth = 0
    for bracket in re.finditer(r"[\[\]{}]", text):
        if bracket[0] in "[{":
            depth += 1
        else:
            depth = max(0, depth - 1)
        if depth > MAX_DEPTH:
            return True
    return False


def write_document(data: Any) -> str:
    r"""Return plain data as a YAML text that :func:`read_document` reads back.

    Examples
    --------
    >>> write_document({"a": [1, "2"], "b": {"c": None}})
    "a:\n- 1\n- '2'\nb:\n  c:\n"
    """
    text = _dumped(data, allow_unicode=True)
    # The library writes some exotic white space as it is, which reads back as an ordinary line break.
    if text.isascii() or read_document(text).data == data:
        return text
    return _dumped(data, allow_unicode=False)


def _dumped(data: Any, *, allow_unicode: bool) -> str:
    yaml = YAML()
    yaml.width = 10_000
    yaml.allow_unicode = allow_unicode
    written = io.StringIO()
    yaml.dump(_plain(data), written)
    return written.getvalue()


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        return list(map(_plain, data))
    return data


class _TooLarge(Exception):
    """Aliases write out to more values than any config has."""


class _Reader:
    """Turns one node graph into plain data, collecting lines and problems on the way."""

    def __init__(self) -> None:
        self.marks: Marks = {}
        self.problems: list[Problem] = []
        self.open: set[int] = set()
        self.values = 0

    def read(self, root: Node | None) -> Document:
        if root is None:
            return Document(None)
        try:
            data = self._value(root, ())
        except _TooLarge:
            problem = Problem("", f"aliases write this out to more than {MAX_VALUES:,} values")
            return Document(None, (problem,))
        return Document(data, tuple(self.problems), self.marks)

    def _value(self, node: Node, path: Place) -> Any:
        self.marks.setdefault(path, _mark(node))
        self.values += 1
        if self.values > MAX_VALUES:
            raise _TooLarge
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self.open:
            self._complain(path, "this alias contains itself; write the value out", node)
            return None
        self.open.add(id(node))
        value = self._mapping(node, path) if isinstance(node, MappingNode) else self._sequence(node, path)
        self.open.discard(id(node))
        return value

    def _sequence(self, node: Node, path: Place) -> tuple[Any, ...]:
        return tuple(self._value(child, (*path, place)) for place, child in enumerate(node.value))

    def _mapping(self, node: MappingNode, path: Place) -> dict[str, Any]:
        data: dict[str, Any] = {}
        first_line: dict[str, int] = {}
        merged: list[MappingNode] = []
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                merged += self._merge_sources(value_node, path)
                continue
            if not isinstance(key_node, ScalarNode) or key_node.tag != _TAG + "str":
                self._complain(path, "a key here is not text; put it in quotes", key_node)
                continue
            key = key_node.value
            line = key_node.start_mark.line + 1
            if key in first_line:
                words = f"this key is already on line {first_line[key]}; keep one of the two"
                self._complain((*path, key), words, key_node, "config/twice")
                continue
            first_line[key] = line
            self.marks.setdefault((*path, key), _mark(key_node))
            data[key] = self._value(value_node, (*path, key))
        for source in merged:
            inherited = self._value(source, path)
            if isinstance(inherited, dict):
                data = {**inherited, **data}
        return data

    def _merge_sources(self, node: Node, path: Place) -> list[MappingNode]:
        if isinstance(node, SequenceNode):
            sources = node.value
        else:
            sources = [node]
        if all(isinstance(source, MappingNode) for source in sources):
            return list(sources)
        self._complain(path, "'<<' takes a mapping or a list of mappings", node)
        return []

    def _scalar(self, node: ScalarNode, path: Place) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        text: str = node.value
        if kind in ("str", "timestamp"):
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in ("true", "yes", "on")
        try:
            if kind == "int":
                return _integer(text)
            if kind == "float":
                return _real(text)
        except ValueError:
            self._complain(path, "this number cannot be read", node)
            return None
        self._complain(path, f"the tag !{kind} is not allowed; write plain values", node)
        return None

    def _complain(self, path: Place, words: str, node: Node, code: str = "config/unreadable") -> None:
        self.problems.append(Problem(dotted(path), words, node.start_mark.line + 1, code))


def _mark(node: Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits.lstrip("+-")[:2], 10)
    return int(digits, base)


def _real(text: str) -> float:
    digits = text.replace("_", "").lower()
    return float(digits.replace(".inf", "inf").replace(".nan", "nan"))


_PART = re.compile(r"\.?([^.\[\]=]+)|\[([^\[\]=]+)\]")

_CODE = "config/override"


Override: TypeAlias = tuple[Place, Any]
"""Where a setting goes (an item of a list by its position), and its value as plain data."""


def read_overrides(assignments: Sequence[str], data: Any) -> tuple[list[Override], list[Problem]]:
    """Read assignments of the form ``place=value``.

    Examples
    --------
    >>> overrides, _ = read_overrides(["models[b].concurrency=4"], {"models": ({"name": "a"}, {"name": "b"})})
    >>> overrides
    [(('models', 1, 'concurrency'), 4)]
    """
    found, problems = [], []
    for assignment in assignments:
        place, equals, source = assignment.partition("=")
        place = place.strip()
        parsed = read_document(source)
        path = None
        if equals and place:
            path = _path(place, data)
        if path is None:
            words = "write place=value, such as budget.trials=2000 or models[NAME].concurrency=4"
            problems.append(Problem("", f"the override {shown(place)} names no setting; {words}", code=_CODE))
        elif isinstance(path, str):
            problems.append(Problem(place, path, code=_CODE))
        elif parsed.problems:
            problems.append(Problem(place, f"the value is {parsed.problems[0].message}", code=_CODE))
        else:
            found.append((path, parsed.data))
    return found, problems


def _path(place: str, data: Any) -> Place | str | None:
    """Return the path that `place` writes, or what is wrong with it; None if it is no place at all."""
    path: list[str | int] = []
    value, end = data, 0
    for match in _PART.finditer(place):
        if match.start() != end:
            return None
        end = match.end()
        part: str | int = match[1] or match[2]
        if match[2]:
            position = _position(match[2], value)
            if isinstance(position, str):
                return position
            part = position
        path.append(part)
        if isinstance(value, tuple) and isinstance(part, str):
            return f"{part!r} names no item of a list; write {place[: match.start()]}[NAME] or [0]"
        value = _inside(value, part)
    if end == len(place) and path:
        return tuple(path)
    return None


def _position(selector: str, items: Any) -> int | str:
    if not isinstance(items, tuple):
        return f"[{selector}] needs a list before it"
    if selector.isdecimal():
        if int(selector) < len(items):
            return int(selector)
        return f"[{selector}]: there are {len(items)} items"
    names = []
    for number, item in enumerate(items):
        name = None
        if isinstance(item, dict):
            name = item.get("name")
        if name == selector:
            return number
        names.append(name)
    return f"[{selector}]: no item has this name ({', '.join(map(str, filter(None, names)))})"


def _inside(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(str(part))
    if isinstance(value, tuple) and isinstance(part, int):
        return value[part]
    return None


def apply_overrides(data: Any, overrides: Sequence[Override]) -> Any:
    """Return `data` with `overrides` put in; sections that are not there are made.

    Examples
    --------
    >>> apply_overrides({"name": "x"}, [(("budget", "trials"), 5)])
    {'name': 'x', 'budget': {'trials': 5}}
    """
    for path, value in overrides:
        data = _with(data, path, value)
    return data


def _with(data: Any, path: Place, value: Any) -> Any:
    if not path:
        return value
    first = path[0]
    rest = path[1:]
    if isinstance(first, int) and isinstance(data, tuple):
        return (*data[:first], _with(data[first], rest, value), *data[first + 1 :])
    old = data
    if not isinstance(data, dict):
        old = {}
    return {**old, first: _with(old.get(first), rest, value)}
