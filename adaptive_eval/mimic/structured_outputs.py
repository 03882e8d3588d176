"""Answers with a required structure: one of given choices, or a flat JSON object with given fields."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from adaptive_eval.mimic.answer_key import Answerable
from adaptive_eval.mimic.examinee import Reply


class FormatError(ValueError):
    """The structure asked for is not one that the mimic server can give."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(f"{param} {message}")
        self.param = param


@dataclass(frozen=True, slots=True)
class Format:
    """A required structure: `choice` where it is not empty, else an object with `properties`."""

    choice: tuple[str, ...] = ()  # the answers allowed
    # the schema of each field, with type (string, number, integer, boolean, null), enum or const
    properties: Mapping[str, Any] = field(default_factory=dict)


_ANY_OBJECT: Final = {"reasoning": {"type": "string"}, "answer": {"type": "string"}}


def parse_format(structured_outputs: object, response_format: object) -> Format | None:
    """Read vLLM's ``structured_outputs`` and OpenAI's ``response_format``; None where neither binds.

    Examples
    --------
    >>> parse_format({"choice": ["yes", "no"]}, None).choice
    ('yes', 'no')
    >>> parse_format(None, {"type": "text"}) is None
    True
    """
    if structured_outputs is not None:
        return _structured_outputs(structured_outputs)
    return None if response_format is None else _response_format(response_format)


def _structured_outputs(value: object) -> Format:
    name = "structured_outputs"
    given = {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else {}
    if len(given) != 1:
        raise FormatError(name, "must be an object with exactly one of choice, json.")
    if isinstance(given.get("json"), dict):
        return _object(given["json"], name)
    choice = given.get("choice")
    if isinstance(choice, list) and choice and all(isinstance(item, str) and item for item in choice):
        return Format(choice=tuple(choice))
    raise FormatError(
        name, "must be a choice among non-empty texts, or json with a schema; the mimic server has no others."
    )


def _response_format(value: object) -> Format | None:
    name = "response_format"
    kind = value.get("type") if isinstance(value, dict) else None
    if not isinstance(value, dict) or kind not in ("text", "json_object", "json_schema"):
        raise FormatError(name, "must have type text, json_object or json_schema.")
    if kind == "text":
        return None
    if kind == "json_object":
        return Format(properties=_ANY_OBJECT)
    inner = value.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, dict) else None
    if not isinstance(schema, dict):
        raise FormatError(name, "of type json_schema must have json_schema.schema, an object.")
    return _object(schema, name)


def _object(schema: Mapping[str, Any], param: str) -> Format:
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict) or not properties:
        raise FormatError(param, "must have a schema of type object with properties.")
    return Format(properties=properties)


def structured_answer(form: Format, reply: Reply, question: Answerable) -> str:
    """Return the text of `reply` in the structure `form`.

    A right reply gives the choice that is the right answer (its letter or its text), a wrong one another.
    In JSON, fields whose name speaks of reasons hold the worked text and other fields the answer.
    """
    if form.choice:
        return _choose(form.choice, reply, question)
    fields = form.properties.items()
    return json.dumps({name: _field(schema, name, reply) for name, schema in fields}, ensure_ascii=False)


def _choose(options: Sequence[str], reply: Reply, question: Answerable) -> str:
    wanted = {question.right.casefold()}
    if question.choices and len(question.right) == 1:
        wanted.add(question.choices[ord(question.right) - ord("A")].strip().casefold())
    right = [option for option in options if option.strip().casefold() in wanted]
    pool: Sequence[str] = right
    if not right:
        pool = options
    elif not reply.right:
        pool = [option for option in options if option not in right] or options
    return pool[int(reply.pick * len(pool))]


def _field(schema: object, name: str, reply: Reply) -> object:
    if isinstance(schema, dict) and "const" in schema:
        return schema["const"]
    if isinstance(schema, dict) and isinstance(schema.get("enum"), list) and schema["enum"]:
        return _from_enum(schema["enum"], reply)
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind == "string":
        explains = any(word in name.lower() for word in ("reason", "explan", "thought"))
        return reply.text if explains else reply.answer
    if kind in ("number", "integer"):
        return _as_number(reply.answer, whole=kind == "integer")
    if kind == "boolean":
        return reply.right
    if kind == "null":
        return None
    raise FormatError("response_format", f"has field {name!r} of the unknown type {kind!r}.")


def _from_enum(options: Sequence[object], reply: Reply) -> object:
    same = [option for option in options if str(option).casefold() == reply.answer.casefold()]
    return same[0] if same else options[int(reply.pick * len(options))]


def _as_number(answer: str, *, whole: bool) -> int | float:
    try:
        number = float(answer)
    except ValueError:
        return 0
    if not math.isfinite(number):
        return 0
    return int(number) if whole or number.is_integer() else number
