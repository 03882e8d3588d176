"""What the validation library finds wrong in a section, in plain words, each at its place in the section.

Every section words its own mistakes, so that what is inside a part of it is worded there already.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from adaptive_eval.errors import Coded
from adaptive_eval.options.mistakes import (
    MALFORMED,
    Found,
    Mistakes,
    Place,
    did_you_mean,
    malformed,
    missing,
    nearest,
    not_one_of,
    out_of_range,
    shown,
    unknown_key,
)

_ELSEWHERE = {
    "SamplingConfig.seed": "every trial gets its own seed, derived from the run's seed at the top",
    "SamplingConfig.n": "every trial is one answer; for several a request, write samples_per_request next to "
    "sampling",
    **dict.fromkeys(("ModelConfig.base_url", "ModelConfig.url"), "write endpoints: [URL]"),
    **{
        f"SamplingConfig.{key}": f"write extra_body: {{{key}: VALUE}} in the model, next to sampling"
        for key in (
            *("top_k", "min_p", "min_tokens", "repetition_penalty", "presence_penalty", "frequency_penalty"),
            *("chat_template_kwargs", "typical_p", "logit_bias", "stop_token_ids"),
        )
    },
    "Price.prompt": "write input, in USD per million tokens",
    "Price.completion": "write output, in USD per million tokens",
}

_OF_TYPE = {
    **dict.fromkeys(("int_type", "int_from_float"), "a whole number"),
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    **dict.fromkeys(
        ("dict_type", "model_type", "dataclass_type", "model_attributes_type"), "a mapping (key: value)"
    ),
}
_OUT_OF_RANGE = {
    "greater_than": "{value} must be greater than {gt:g}",
    "greater_than_equal": "{value} must be at least {ge:g}",
    "less_than": "{value} must be less than {lt:g}",
    "less_than_equal": "{value} must be at most {le:g}",
    "too_short": "has {actual_length} items and needs at least {min_length}; {said}",
    "too_long": "has {actual_length} items and needs at most {max_length}; {said}",
}
_MALFORMED = {
    "string_too_short": "is empty; {said}",
    "string_too_long": "is longer than {max_length} characters",
}
_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


def mistakes_of(error: ValidationError, section: Any, said: Mapping[str, str], top: Any) -> Found:
    """Yield the mistakes that a validation finds in a section.

    `said` is what the section says of its keys, `top` the section that is the whole config.
    """
    found = error.errors(include_url=False)
    fields = fields_of(section)
    unknown = [str(one["loc"][-1]) for one in found if one["type"] in _UNKNOWN]
    hints = {key: _elsewhere(key, section, top) for key in unknown}
    meant = {nearest(key, fields) for key, hint in hints.items() if hint is None}
    for details in found:
        kind = details["type"]
        value = details["input"]
        context = details.get("ctx", {})
        place = _place(details["loc"], fields)
        name = ""
        if place:
            name = str(place[0])
        if kind == "too_short" and len(value) >= context["min_length"]:
            continue  # long enough as written: its items are wrong, and are reported one by one
        if kind == "missing" and name in meant:
            continue  # it is misspelt
        if kind == "union_tag_invalid" and isinstance(value, Mapping):
            place = (*place, _tag_of(details))  # the kind itself is wrong
        if kind in _UNKNOWN:
            if hints[name]:
                hint = f"; {hints[name]}"
            else:
                hint = did_you_mean(name, fields)
            yield place, unknown_key(f"unknown key{hint} (allowed here: {', '.join(fields)})")
        elif isinstance(context.get("error"), Mistakes):
            yield from (((*place, *inside), words) for inside, words in context["error"].found)
        else:
            yield place, _words(details, place, fields.get(name), _in_a_sentence(said.get(name, "")))


def fields_of(section: Any) -> dict[str, FieldInfo]:
    """Return the fields of a section by the keys that a config writes."""
    fields: dict[str, FieldInfo] = section.__pydantic_fields__
    return {field.alias or name: field for name, field in fields.items()}


def _place(loc: tuple[int | str, ...], fields: Mapping[str, FieldInfo]) -> Place:
    """Return a place without what the library adds to it: kinds of sections, and marks of keys."""
    field = None
    if loc:
        field = fields.get(str(loc[0]))
    parts = _parts(field)
    in_mapping = any(get_origin(part) is dict for part in parts)
    named = 1
    if in_mapping and len(loc) > 1:
        named = 2
    return (*loc[:named], *(part for part in loc[named:] if isinstance(part, int)))


def _parts(field: FieldInfo | None) -> list[Any]:
    """Return all types that a field may have, but not those of the items of a list or mapping."""
    if field is not None:
        parts = [field.annotation]
    else:
        parts = []
    for part in parts:  # which grows
        if get_origin(part) not in (tuple, dict):
            parts += get_args(part)
    return parts


def _in_a_sentence(text: str) -> str:
    """Return what a section says of a key as the end of a sentence."""
    is_word = text[1:2].islower() or text[1:2] == " "
    return (text[:1].lower() + text[1:] if is_word else text).rstrip(".")


def _words(details: ErrorDetails, place: Place, field: FieldInfo | None, description: str) -> str:
    kind = details["type"]
    value = details["input"]
    context = details.get("ctx", {})
    if kind == "value_error":
        said = context["error"].args
        code = MALFORMED
        if said:
            code = getattr(said[0], "code", MALFORMED)
        return Coded(code, str(context["error"]))
    if kind == "missing":
        if isinstance(place[-1], int):
            return missing("the list is too short here")
        advice = "is missing"
        if description:
            advice = f"is missing; {description}"
        return missing(advice)
    if kind in ("literal_error", "union_tag_invalid"):
        tag = context.get("tag", value)
        expected = context.get("expected") or context["expected_tags"]
        return _not_one_of(tag, expected)
    if kind == "union_tag_not_found":
        tag = _tag_of(details)
        inside = [fields_of(one)[tag] for one in _sections(field)]
        kinds = ", ".join(str(name) for one in inside for name in get_args(one.annotation))
        return missing(f"{tag} is missing; write one of {kinds}")
    if value is None:
        return missing(f"has no value; give one ({description}) or remove the line")
    if kind in _OF_TYPE:
        return Coded("config/type", f"{shown(value)} is not {_OF_TYPE[kind]}{_advice(kind, value)}")
    fitting = {**_OUT_OF_RANGE, **_MALFORMED}.get(kind, "{value} does not fit here; {said}")
    words = fitting.format(value=shown(value), said=description, **context) + _advice(kind, value)
    if kind in _OUT_OF_RANGE:
        return out_of_range(words)
    return malformed(words)


def _advice(kind: str, value: Any) -> str:
    if kind == "less_than" and 2 <= value <= 100:  # for a share
        return f"; write {value / 100:.6g} for {value:g} %"
    if kind in ("int_type", "float_type") and isinstance(value, str) and re.fullmatch(r"[-+\d.eE]+", value):
        return "; remove the quotes"
    if kind == "float_type" and isinstance(value, str) and re.fullmatch(r"\d{1,3}(\.\d+)? ?%", value):
        return f"; write {float(value.rstrip(' %')) / 100:.6g}"
    if kind == "string_type" and isinstance(value, int | float):
        return "; put it in quotes"
    if kind == "tuple_type" and isinstance(value, str | int | float):
        if shown(value) in (repr(value), str(value)):
            return f"; write [{value}]"
        return ""
    return ""


def _not_one_of(value: Any, expected: str) -> str:
    names = re.findall(r"'([^']*)'", expected)
    listed = expected
    if names:
        listed = ", ".join(names)
    suggestion = ""
    if isinstance(value, str):
        suggestion = did_you_mean(value, names)
    return not_one_of(f"{shown(value)} is not one of {listed}{suggestion}")


def _elsewhere(key: str, section: Any, top: Any) -> str | None:
    """Return where the content of an unknown key belongs, as advice; None if nothing is known of it."""
    fields = fields_of(section)
    if f"{section.__name__}.{key}" in _ELSEWHERE:
        return _ELSEWHERE[f"{section.__name__}.{key}"]
    if section.__name__ == "SamplingConfig":
        near = did_you_mean(key, fields).removeprefix("; ")
        return f"{near} put parameters of your server under extra_body".strip()
    if top is not None and key in fields_of(top):
        return "it belongs at the top of the file, next to models and tasks"
    if {f"{key}s", key.removesuffix("s")} & fields.keys():
        return None  # singular or plural of a key
    holder = section_with(key, section)
    if holder:
        return f"it belongs under {holder}"
    return None


def section_with(key: str, section: Any) -> str | None:
    """Return the first section of a section that has a key; None if no one has."""
    for name, field in fields_of(section).items():
        if any(key in fields_of(inner) for inner in _sections(field)):
            return name
    return None


def _sections(field: FieldInfo | None) -> list[Any]:
    """Return the sections that a field may be."""
    return [part for part in _parts(field) if hasattr(part, "__pydantic_fields__")]


def _tag_of(details: ErrorDetails) -> str:
    """Return the key that says which kind of section this is."""
    return str(details["ctx"]["discriminator"]).strip("'")
