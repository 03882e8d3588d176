"""A mimic's spec as JSON: what ``--spec FILE`` holds and what a parent process hands to its mimic."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from adaptive_eval.errors import UsageError
from adaptive_eval.mock_server.mock_spec import (
    DatasetSpec,
    FaultSpec,
    KnownQuestion,
    LatencySpec,
    MimicSpec,
    ModelSpec,
    TokenSpec,
)

__all__ = ["faults_from_data", "spec_from_data", "spec_from_json", "spec_to_json"]

Part = TypeVar("Part", MimicSpec, FaultSpec, ModelSpec, LatencySpec, TokenSpec, DatasetSpec, KnownQuestion)

_OBJECTS: Final[Mapping[str, Any]] = {"latency": LatencySpec, "tokens": TokenSpec}
_LISTS: Final[Mapping[str, Any]] = {
    "models": ModelSpec,
    "datasets": DatasetSpec,
    "questions": KnownQuestion,
    "faults": FaultSpec,
}


def spec_to_json(spec: MimicSpec) -> str:
    """Return `spec` as one line of JSON. It holds the API key where there is one.

    Examples
    --------
    >>> spec = MimicSpec(models=(ModelSpec("a", mean=0.5),))
    >>> spec_from_json(spec_to_json(spec)) == spec
    True
    """
    return json.dumps(dataclasses.asdict(spec), separators=(",", ":"))


def spec_from_json(text: str, source: str = "mimic spec") -> MimicSpec:
    """Read a spec from JSON.

    Parameters
    ----------
    text : str
        The JSON.
    source : str
        Where it comes from, for messages.

    Returns
    -------
    MimicSpec
        The spec; what the text leaves out has its default.

    Raises
    ------
    UsageError
        The text is not JSON, has an unknown field or a bad value; the message names its place.

    Examples
    --------
    >>> spec_from_json('{"models": [{"name": "a", "mean": 0.5}], "seed": 3}').seed
    3
    >>> spec_from_json('{"models": [{"name": "a", "mean": 5}]}')
    Traceback (most recent call last):
        ...
    adaptive_eval.errors.UsageError: mimic spec: models[0].mean: 5 is not a number in [0, 1]
    """
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{source}: not JSON: {error}") from None
    return spec_from_data(data, source)


def spec_from_data(data: object, source: str = "mimic spec") -> MimicSpec:
    """Build a spec from plain data (mappings and lists), as :func:`spec_from_json` does from text.

    Raises
    ------
    UsageError
        An unknown field or a bad value; the message names its place.

    Examples
    --------
    >>> spec_from_data({"models": [{"name": "a", "mean": 0.5}]}).models[0].mean
    0.5
    """
    return _part(MimicSpec, data, "", source)


def faults_from_data(data: object, source: str = "faults") -> tuple[FaultSpec, ...]:
    """Build faults from a list of mappings.

    Raises
    ------
    UsageError
        It is not a list, or has an unknown field or a bad value; the message names its place.

    Examples
    --------
    >>> faults_from_data([{"kind": "hang", "every": 10}])[0].every
    10
    """
    return tuple(_parts(FaultSpec, data, "faults", source))


def _parts(cls: type[Part], data: object, place: str, source: str) -> list[Part]:
    if not isinstance(data, list | tuple):
        raise UsageError(f"{source}: {place}: {data!r} is not a list")
    return [_part(cls, item, f"{place}[{index}]", source) for index, item in enumerate(data)]


def _part(cls: type[Part], data: object, place: str, source: str) -> Part:
    at = f"{source}: {place}" if place else source
    if not isinstance(data, Mapping):
        raise UsageError(f"{at}: {data!r} is not an object with fields")
    known = [field.name for field in dataclasses.fields(cls)]
    values: dict[str, Any] = {}
    for name, value in data.items():
        inner = f"{place}.{name}" if place else str(name)
        if name not in known:
            raise UsageError(f"{source}: {inner}: no such field; known: {', '.join(known)}")
        values[name] = _value(name, value, inner, source)
    missing = [
        field.name
        for field in dataclasses.fields(cls)
        if field.name not in values
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"{at}: {', '.join(missing)}: missing")
    try:
        return cls(**values)
    except ValueError as error:
        raise UsageError(f"{at}{'.' if place else ': '}{error}") from None


def _value(name: str, value: object, place: str, source: str) -> object:
    if name in _OBJECTS:
        return _part(_OBJECTS[name], value, place, source)
    if name in _LISTS:
        return tuple(_parts(_LISTS[name], value, place, source))
    return tuple(value) if isinstance(value, list) else value
