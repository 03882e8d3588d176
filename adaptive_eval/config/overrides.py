"""Settings given outside the file: ``budget.trials=2000``, ``models[gpt].concurrency=4``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

from adaptive_eval.config.document import read_document
from adaptive_eval.errors import Problem
from adaptive_eval.options.mistakes import Place, shown

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
        path = _path(place, data) if equals and place else None
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
    """Return the path that `place` writes, or what is wrong with it; None where it is no place at all."""
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
        value = _inside(value, part)
    return tuple(path) if end == len(place) and path else None


def _position(selector: str, items: Any) -> int | str:
    if not isinstance(items, tuple):
        return f"[{selector}] needs a list before it"
    if selector.isdecimal():
        return int(selector) if int(selector) < len(items) else f"[{selector}]: there are {len(items)} items"
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if selector in names:
        return names.index(selector)
    return f"[{selector}]: no item has this name ({', '.join(str(name) for name in names if name)})"


def _inside(value: Any, part: str | int) -> Any:
    if isinstance(value, dict):
        return value.get(str(part))
    return value[part] if isinstance(value, tuple) and isinstance(part, int) else None


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
    first, rest = path[0], path[1:]
    if isinstance(first, int) and isinstance(data, tuple):
        return (*data[:first], _with(data[first], rest, value), *data[first + 1 :])
    old = data if isinstance(data, dict) else {}
    return {**old, first: _with(old.get(first), rest, value)}
