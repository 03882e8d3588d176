"""The scorers ``json`` and ``tool_calls``: fields and calls of the answer against those of the target."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaptive_eval.errors import library
from adaptive_eval.options.scorers import JsonScorerConfig, ToolCallsScorerConfig
from adaptive_eval.scoring.numeric import read_number
from adaptive_eval.scoring.scorer import Answer, AnswerScorer
from adaptive_eval.scoring.text import Extract, normalised, storable
from adaptive_eval.scoring.workers import LIMIT, in_worker
from adaptive_eval.trial import Completion, Question, Score, shown_call

_OPENING = re.compile(r"[{\[]")
_MOST_STARTS = 200
_FENCE_BEGINS = re.compile(r"```(?:json)?[ \t]*\n")
_FENCE_ENDS = re.compile(r"\n[ \t]*```")


class JsonScorer(JsonScorerConfig, AnswerScorer):
    """Reads the last JSON object (or list) of an answer.

    Numbers of its field are compared by value, texts up to layout. Without field and schema the whole value
    must equal the target.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> answer = Completion('Here it is: {"city": "Paris", "n": 2.0}', "stop")
    >>> JsonScorer(field="n").score(answer, Question("t", "q", "2")).category
    1
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target, or the schema, unusable, or None."""
        if self.json_schema is not None:
            jsonschema = library("jsonschema", "the scorer json with a schema", "jsonschema")
            validator = jsonschema.validators.validator_for(self._schema())
            try:
                validator.check_schema(self._schema())
            except jsonschema.SchemaError as error:
                return f"the schema is not a valid JSON Schema: {error.message[:200]}"
            return None
        if self.field is None and not isinstance(json_value(question.target), dict | list):
            words = "is not a JSON object or list"
            return (
                f"the target {question.target[:60]!r} {words}; set field to the one that it is compared with"
            )
        return None

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the last JSON value in `text`, or None."""
        found = _last_fenced(text) or _last_value(text, self.field)
        if found is None:
            return None
        return Answer(found, "JSON", is_final=True)

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether the value fits the schema and its field is the target."""
        value = json_value(answer.text)
        if self.json_schema is not None:
            fits = in_worker(_fits, value, self._schema(), limit=LIMIT, imports="jsonschema")
            if not fits or self.field is None:
                return fits
        if self.field is None:
            return is_same(value, json_value(question.target))
        return _is_target(_field(value, self.field), question.target)

    def _schema(self) -> Any:
        """Return the schema with lists in place of tuples, as jsonschema needs it."""
        return self.model_dump(mode="json")["json_schema"]


def _fits(value: Any, schema: Any) -> bool:
    jsonschema = library("jsonschema", "the scorer json with a schema", "jsonschema")
    return bool(jsonschema.validators.validator_for(schema)(schema).is_valid(value))


def json_value(text: str) -> Any:
    """Return the JSON value that a text is, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _last_fenced(text: str) -> str | None:
    """Return the last fenced block that is JSON."""
    ends = [match.start() for match in _FENCE_ENDS.finditer(text)]
    starts = [match.end() for match in _FENCE_BEGINS.finditer(text)]
    for start in reversed(starts[-_MOST_STARTS:]):
        following = bisect(ends, start)
        block = ""
        if following < len(ends):
            block = text[start : ends[following]]
        if json_value(block) is not None:
            return block
    return None


def _last_value(text: str, field: str | None) -> str | None:
    """Return the last outermost object or list in a text, preferably one with the field.

    A reference such as [1] after the object is JSON as well.
    """
    decoder = json.JSONDecoder()
    end = 0
    found = None
    has_field = False
    starts = [match.start() for match in _OPENING.finditer(text)][-_MOST_STARTS:]
    for start in starts:
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        has_it = field is not None and _field(value, field) is not None
        if has_it or not has_field:
            found = text[start:end]
            has_field = has_it
    return found


def _field(value: Any, path: str) -> Any:
    if isinstance(value, dict) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal; true is not 1, unlike in Python."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def _is_target(value: Any, target: str) -> bool:
    if value is None:
        return False
    if isinstance(value, dict | list):
        return is_same(value, json_value(target))
    if isinstance(value, bool):
        text = json.dumps(value)
    else:
        text = str(value)
    number = read_number(text)
    wanted = read_number(target)
    if number is not None and wanted is not None:
        return number == wanted
    return normalised(text) == normalised(target)


MOST = 64
"""Calls of an answer that are compared."""


class ToolCallsScorer(ToolCallsScorerConfig):
    """Compares the calls of an answer with those of the target, a JSON list of names and arguments.

    Examples
    --------
    >>> question = Question("t", "q", '[{"name": "weather", "arguments": {"city": "Oslo"}}]')
    >>> call = {"id": "1", "name": "weather", "arguments": '{"city": "Oslo", "days": 1}'}
    >>> answer = Completion("", "tool_calls", tool_calls=(call,))
    >>> ToolCallsScorer().score(answer, question).category
    0
    >>> ToolCallsScorer(arguments="subset").score(answer, question).category
    1
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        if _wanted(question.target) is None:
            words = 'is no JSON list of calls, such as [{"name": "f", "arguments": {"a": 1}}]'
            return f"the target {question.target[:60]!r} {words}; [] is right for no call"
        return None

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer."""
        wanted = _wanted(question.target) or []
        made = list(map(_Call.parse, completion.tool_calls[:MOST]))
        truncated = completion.cut_off
        fits = [self._fitting(one, made) for one in wanted]
        if self.ordered:
            found = _in_order(fits)
        else:
            found = _paired(fits)
        right = found and (self.calls == "subset" or len(completion.tool_calls) == len(wanted))
        reason = "no call"
        if made or right:
            reason = "right (calls)" if right else "wrong (calls)"
        return Score(
            int(right),
            storable("; ".join(map(shown_call, completion.tool_calls))) or None,
            {"is_correct": right, "has_box": False, "truncated": truncated, "tool_calls": len(made)},
            reason,
        )

    def _fitting(self, wanted: _Call, made: Sequence[_Call]) -> list[bool]:
        return [self._fits(wanted, one) for one in made]

    def _fits(self, wanted: _Call, made: _Call) -> bool:
        if wanted.name != made.name:
            return False
        if self.arguments == "equal":
            return is_same(wanted.arguments, made.arguments)
        return self.arguments == "ignore" or _is_part(wanted.arguments, made.arguments)


@dataclass(frozen=True, slots=True)
class _Call:
    name: str
    arguments: Any  # a JSON value; what is no JSON stays a text

    @classmethod
    def parse(cls, call: Mapping[str, Any]) -> _Call:
        given = call.get("arguments")
        read = given
        if isinstance(given, str):
            read = json_value(given)
        return cls(str(call.get("name")), given if read is None and given else read or {})


def _wanted(target: str) -> list[_Call] | None:
    """Return the calls of a target; None if it is no list of calls."""
    value = json_value(target)
    listed = value
    if isinstance(value, dict):
        listed = [value]
    if not isinstance(listed, list) or len(listed) > MOST:
        return None
    calls = []
    for one in listed:
        call = None
        if isinstance(one, dict):
            call = one.get("function", one)
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            return None
        calls.append(_Call.parse(call))
    return calls


def _is_part(wanted: Any, made: Any) -> bool:
    """Tell whether every argument that is wanted was given; in objects within, too."""
    if isinstance(wanted, dict) and isinstance(made, dict):
        return all(name in made and _is_part(value, made[name]) for name, value in wanted.items())
    return is_same(wanted, made)


def _in_order(fits: Sequence[Sequence[bool]]) -> bool:
    """Tell whether each wanted call has one that fits it, in the same order."""
    place = 0
    for row in fits:
        if True not in row[place:]:
            return False
        place = row.index(True, place) + 1
    return True


def _paired(fits: Sequence[Sequence[bool]]) -> bool:
    """Tell whether each wanted call has one that fits it for itself."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    if not fits or not fits[0]:
        return not fits
    return bool((maximum_bipartite_matching(csr_array(fits), perm_type="column") >= 0).all())
