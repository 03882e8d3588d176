"""Turns what the validation library reports into problems in plain words, each at its place in the file."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, Tag, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from adaptive_eval.errors import Coded
from adaptive_eval.options.mistakes import MALFORMED, Found, Mistakes, Place, did_you_mean, nearest, shown
from adaptive_eval.options.section import described

_ELSEWHERE = {
    ("SamplingConfig", "seed"): "every trial gets its own seed, derived from the run's seed at the top",
    (
        "SamplingConfig",
        "n",
    ): "every trial is one answer; for several a request, write samples_per_request next to sampling",
    ("ModelConfig", "base_url"): "write endpoints: [URL]",
    ("ModelConfig", "url"): "write endpoints: [URL]",
    ("Price", "prompt"): "write input, in USD per million tokens",
    ("Price", "completion"): "write output, in USD per million tokens",
}


def misspelt_keys(error: ValidationError, root: type[BaseModel]) -> Iterator[Place]:
    """Yield the place of every key that was probably meant where an unknown one is written."""
    for details in error.errors(include_url=False):
        if details["type"] in _UNKNOWN:
            spot = _Spot.find(root, details["loc"])
            owner = spot.owner or root
            near = nearest(str(spot.path[-1]), _fields(owner))
            if near is not None and _elsewhere(str(spot.path[-1]), owner, root) is None:
                yield (*spot.path[:-1], near)


def plain_problems(error: ValidationError, root: type[BaseModel]) -> Found:
    """Yield the place and the plain words of every error of a validation.

    Examples
    --------
    >>> from adaptive_eval.options.request_options import RetryConfig
    >>> try:
    ...     RetryConfig.model_validate({"attempts": "6"})
    ... except ValidationError as error:
    ...     print(list(plain_problems(error, RetryConfig)))
    [(('attempts',), "'6' is not a whole number; remove the quotes")]
    """
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and len(details["input"]) >= details["ctx"]["min_length"]:
            continue  # long enough as written: its items are wrong, and are reported one by one
        spot = _Spot.find(root, details["loc"])
        error_of = details.get("ctx", {}).get("error")
        if isinstance(error_of, Mistakes):
            yield from (((*spot.path, *place), words) for place, words in error_of.found)
        else:
            yield spot.path_of(details), Coded(_code(details), _words(details, spot, root))


class _Spot(NamedTuple):
    """The place in the grammar of an error's location."""

    path: Place
    owner: type[BaseModel] | None
    said: str  # what the grammar says of it
    annotation: Any

    @classmethod
    def find(cls, root: type[BaseModel], loc: tuple[int | str, ...]) -> _Spot:
        """Follow `loc` down the grammar, leaving out the library's own additions to it."""
        spot = cls((), root, "", root)
        for part in loc:
            spot = spot._step(part)
        return spot

    def _step(self, part: int | str) -> _Spot:
        if part == "[key]":  # an error about a mapping's key, not about its value
            return self
        annotation = _bare(self.annotation)
        tagged = _tagged(annotation)
        if part in tagged:
            return self._replace(annotation=tagged[part])
        options = _sections(annotation)
        if len(options) > 1:
            chosen = next((option for option in options if part in _kinds(option)), None)
            return self._replace(owner=chosen or self.owner, annotation=chosen)
        if options:
            field = _fields(options[0]).get(str(part))
            said = described(options[0]).get(str(part)) or (field and field.description) or ""
            return _Spot((*self.path, part), options[0], said, field.annotation if field else None)
        inner = get_args(annotation)
        if get_origin(annotation) is tuple and isinstance(part, int):
            item = inner[0] if inner[-1] is Ellipsis or part >= len(inner) else inner[part]
            return self._replace(path=(*self.path, part), annotation=item)
        if get_origin(annotation) is dict:
            return self._replace(path=(*self.path, part), annotation=inner[1])
        return self

    def path_of(self, details: ErrorDetails) -> Place:
        """Return the path to point at: for a wrong kind, the kind itself where it is written out."""
        wrong_kind = details["type"] == "union_tag_invalid" and isinstance(details["input"], Mapping)
        return (*self.path, _tag_of(details)) if wrong_kind else self.path

    @property
    def description(self) -> str:
        """The grammar's description of this field, for a message."""
        text = self.said
        is_word = text[1:2].islower() or text[1:2] == " "
        return (text[:1].lower() + text[1:] if is_word else text).rstrip(".")


def _code(details: ErrorDetails) -> str:
    kind = details["type"]
    if kind == "value_error":
        said = details["ctx"]["error"].args
        return getattr(said[0], "code", MALFORMED) if said else MALFORMED
    if details["input"] is None and kind not in _CODES:
        return "config/missing"
    return "config/type" if kind in _TYPES else _CODES.get(kind, MALFORMED)


def _words(details: ErrorDetails, spot: _Spot, root: type[BaseModel]) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return _missing(spot)
    if kind in _UNKNOWN:
        return _unknown_key(spot, root)
    if kind in ("literal_error", "union_tag_invalid"):
        tag = context.get("tag", value)
        return _not_one_of(tag, context.get("expected") or context["expected_tags"])
    if kind == "union_tag_not_found":
        return f"{_tag_of(details)} is missing; write one of {', '.join(_all_kinds(spot.annotation))}"
    if value is None:
        return f"has no value; give one ({spot.description}) or remove the line"
    if kind in _TYPES:
        return f"{shown(value)} is not {_TYPES[kind]}{_type_advice(kind, value)}"
    return _out_of_range(kind, value, context, spot)


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")
_TYPES = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "dataclass_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_CODES = {
    "missing": "config/missing",
    "union_tag_not_found": "config/missing",
    "extra_forbidden": "config/unknown-key",
    "unexpected_keyword_argument": "config/unknown-key",
    "literal_error": "config/not-one-of",
    "union_tag_invalid": "config/not-one-of",
    **dict.fromkeys([*_BOUNDS, "too_short", "too_long"], "config/out-of-range"),
}


def _missing(spot: _Spot) -> str:
    if spot.path and isinstance(spot.path[-1], int):
        return "the list is too short here"
    return f"is missing; {spot.description}" if spot.description else "is missing"


def _type_advice(kind: str, value: Any) -> str:
    if kind in ("int_type", "float_type") and isinstance(value, str) and re.fullmatch(r"[-+\d.eE]+", value):
        return "; remove the quotes"
    if kind == "float_type" and isinstance(value, str) and re.fullmatch(r"\d{1,3}(\.\d+)? ?%", value):
        return f"; write {float(value.rstrip(' %')) / 100:.6g}"
    if kind == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    if kind == "tuple_type" and isinstance(value, str | int | float):
        return f"; write [{value}]" if shown(value) in (repr(value), str(value)) else ""
    return ""


def _out_of_range(kind: str, value: Any, context: Mapping[str, Any], spot: _Spot) -> str:
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        percent = name == "lt" and context[name] == 1 and 2 <= value <= 100
        advice = f"; write {value / 100:.6g} for {value:g} %" if percent else ""
        return f"{shown(value)} must be {words} {context[name]:g}{advice}"
    if kind in ("too_short", "too_long"):
        bound = context["min_length"] if kind == "too_short" else context["max_length"]
        words = "at least" if kind == "too_short" else "at most"
        return f"has {len(value)} items and needs {words} {bound}; {spot.description}"
    if kind == "string_too_short":
        return f"is empty; {spot.description}"
    if kind == "string_too_long":
        return f"is longer than {context['max_length']} characters"
    return f"{shown(value)} does not fit here; {spot.description}"


def _not_one_of(value: Any, expected: str) -> str:
    names = re.findall(r"'([^']*)'", expected)
    listed = ", ".join(names) if names else expected
    suggestion = did_you_mean(value, names) if isinstance(value, str) else ""
    return f"{shown(value)} is not one of {listed}{suggestion}"


def _unknown_key(spot: _Spot, root: type[BaseModel]) -> str:
    key = str(spot.path[-1])
    owner = spot.owner or root
    allowed = list(_fields(owner))
    hint = _elsewhere(key, owner, root)
    words = f"; {hint}" if hint else did_you_mean(key, allowed)
    return f"unknown key{words} (allowed here: {', '.join(allowed)})"


def _elsewhere(key: str, owner: type[BaseModel], root: type[BaseModel]) -> str | None:
    """Return where the content of an unknown key belongs, as advice; None where nothing is known of it."""
    if (owner.__name__, key) in _ELSEWHERE:
        return _ELSEWHERE[owner.__name__, key]
    if owner.__name__ == "SamplingConfig":
        near = did_you_mean(key, _fields(owner)).removeprefix("; ")
        return f"{near} put parameters of your server under extra_body".strip()
    if key in _fields(root):
        return "it belongs at the top of the file, beside models and tasks"
    if {f"{key}s", key.removesuffix("s")} & _fields(owner).keys():
        return None  # singular or plural of a key
    for name, field in _fields(owner).items():
        if any(key in _fields(inner) for inner in _sections(_bare(field.annotation))):
            return f"it belongs under {name}"
    return None


def _fields(section: type[BaseModel]) -> dict[str, FieldInfo]:
    fields: dict[str, FieldInfo] = section.__pydantic_fields__
    return {field.alias or name: field for name, field in fields.items()}


def _bare(annotation: Any) -> Any:
    """Return an annotation without its metadata and without ``None``."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in (Union, types.UnionType):
        rest = [option for option in get_args(annotation) if option is not type(None)]
        return _bare(rest[0]) if len(rest) == 1 else annotation
    return annotation


def _sections(annotation: Any) -> list[type[BaseModel]]:
    options = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    return [option for option in options if hasattr(option, "__pydantic_fields__")]


def _tagged(annotation: Any) -> dict[Any, Any]:
    """Return the options of a union that are told apart by tags, by tag."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return {}
    return {
        mark.tag: option
        for option in get_args(annotation)
        for mark in getattr(option, "__metadata__", ())
        if isinstance(mark, Tag)
    }


def _tag_of(details: ErrorDetails) -> str:
    """Return the key that says which kind of section this is."""
    return str(details["ctx"]["discriminator"]).strip("'")


def _kinds(section: type[BaseModel]) -> tuple[Any, ...]:
    field = _fields(section).get("kind") or _fields(section).get("discover")
    is_literal = field is not None and get_origin(field.annotation) is Literal
    return get_args(field.annotation) if field is not None and is_literal else ()


def _all_kinds(annotation: Any) -> list[str]:
    return [str(kind) for option in _sections(_bare(annotation)) for kind in _kinds(option)]
