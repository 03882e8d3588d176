"""Checks of a task's rubric against the models that are to give its signals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from adaptive_eval.options.mistakes import Place, shown, unknown_name
from adaptive_eval.options.rubric import (
    BINARY,
    by_schema,
    default_weights,
    resolve_schema,
)

if TYPE_CHECKING:
    from scorio.categorical import Schema

LOGGED_SIGNALS = frozenset(
    {
        *("has_box", "is_correct", "truncated", "score"),
        *("token_ratio", "repeated_pattern", "completion_bpt", "prompt_bpt"),
        *("latency", "prompt_tokens", "completion_tokens"),
    }
)
"""Signals that every attempt can have; some scorers add their own."""

_OF_SCORERS = {
    "verifier": frozenset(f"verifier_{part}{label}" for part in ("", "raw_") for label in "abc"),
    "judge": frozenset({"judgements", "order_decided"}),
}
"""Signals that only one kind of scorer records; one of kind python may record any."""

_ASKED_FOR = {
    "completion_bpt": ("sampling", "logprobs", "sampling: {logprobs: true}"),
    "prompt_bpt": ("extra_body", "prompt_logprobs", "extra_body: {prompt_logprobs: 0}"),
}
"""Signals that an endpoint gives only when the request asks for them: section, key, and how to write it."""


def check_rubric(
    task: Mapping[str, Any], models: Sequence[Mapping[str, Any]], path: Place, *, steers: bool = True
) -> Iterator[tuple[Place, str]]:
    """Yield what is wrong with a task's rubric.

    Examples
    --------
    >>> list(check_rubric({"rubric": {"weights": (1, 1)}}, [], ("rubric",)))[0][1]
    'all weights are 1: no answer would be better than another'
    """
    rubric = by_schema(task.get("rubric"))
    if not isinstance(rubric, dict):
        return
    name = rubric.get("schema", BINARY)
    try:
        schema = resolve_schema(name)
        weights = default_weights(name)
    except (ValueError, TypeError, AttributeError, KeyError):
        return  # the grammar says what is wrong
    label = BINARY if schema is None else schema.name
    yield from _weights(rubric.get("weights"), len(weights), label, path)
    yield from _thresholds(rubric, schema, label, path, steers=steers)
    if schema is not None:
        yield from _signals(schema, _scorer_kind(task), models, (*path, "schema"))


def rubric_name(rubric: Any) -> str | None:
    """Return what a rubric as written is called, or None where it is malformed.

    Examples
    --------
    >>> rubric_name(None), rubric_name("format-aware"), rubric_name({"schema": {"name": "mine"}})
    ('binary', 'format-aware', 'mine')
    """
    schema = by_schema({} if rubric is None else rubric)
    schema = schema.get("schema", BINARY) if isinstance(schema, dict) else None
    name = schema.get("name", "own") if isinstance(schema, dict) else schema
    return name if isinstance(name, str) else None


def score_range(rubric: Any) -> tuple[float, float] | None:
    """Return the least and the greatest weight of a rubric as written; None where it is malformed.

    Examples
    --------
    >>> score_range(None), score_range({"schema": "binary", "weights": (10, -5)})
    ((0.0, 1.0), (-5.0, 10.0))
    """
    section = by_schema({} if rubric is None else rubric)
    if not isinstance(section, dict):
        return None
    try:
        weights = [
            float(one) for one in section.get("weights", default_weights(section.get("schema", BINARY)))
        ]
    except (ValueError, TypeError, AttributeError, KeyError):
        return None  # another check says what is wrong
    return (min(weights), max(weights)) if weights else None


def _weights(weights: Any, expected: int, label: str, path: Place) -> Iterator[tuple[Place, str]]:
    if not isinstance(weights, tuple):
        return
    if len(weights) != expected:
        yield (*path, "weights"), f"{len(weights)} weights for the {expected} categories of {label}"
    elif all(weight == weights[0] for weight in weights):
        yield (*path, "weights"), f"all weights are {weights[0]}: no answer would be better than another"


def _thresholds(
    rubric: Mapping[str, Any], schema: Schema | None, label: str, path: Place, *, steers: bool
) -> Iterator[tuple[Place, str]]:
    given = rubric.get("thresholds", {})
    given = given if isinstance(given, dict) else {}
    ruled = [] if schema is None else [rule.name for rule in schema.threshold_rules]
    fixed = [] if schema is None else list(schema.given_thresholds)
    for name in given:
        if name not in (*ruled, *fixed):
            has = f"it has {', '.join((*ruled, *fixed))}" if (*ruled, *fixed) else "it has none"
            yield (*path, "thresholds", name), unknown_name(f"{label} has no threshold {shown(name)}; {has}")
    open_ones = [name for name in ruled if name not in given]
    sources = [key for key in ("pilot", "thresholds_from") if rubric.get(key) is not None]
    if not steers:
        for key in sources:
            yield (*path, key), "is for the rubric that steers; a tracked one takes the run's own answers"
        return
    if len(sources) == 2:
        yield (*path, "pilot"), "thresholds come from a pilot or from an earlier run; keep one of the two"
    elif sources and not open_ones:
        why = "all of them are given" if ruled else f"{label} has none"
        yield (*path, sources[0]), f"finds thresholds, and {why}; leave it out"
    elif open_ones and not sources:
        yield (
            (*path, "schema"),
            f"{label} cuts at {', '.join(open_ones)}, which have no value: give thresholds: "
            f"{{{open_ones[0]}: …}}, thresholds_from: RUN, or pilot: 2 to find them from two trials each",
        )


def _signals(
    schema: Schema, scorer: str, models: Sequence[Mapping[str, Any]], path: Place
) -> Iterator[tuple[Place, str]]:
    for signal in sorted(schema.signals):
        if signal in _ASKED_FOR:
            section, key, example = _ASKED_FOR[signal]
            for model in models:
                asked = model.get(section)
                value = asked.get(key) if isinstance(asked, dict) else None
                if value is None or value is False:
                    words = f"{schema.name} needs {signal}, from log-probabilities"
                    yield path, f"{words}: give the model {shown(model.get('name'))} {example}"
        elif scorer != "python" and signal not in LOGGED_SIGNALS | _OF_SCORERS.get(scorer, frozenset()):
            known = ", ".join(sorted(LOGGED_SIGNALS))
            words = f"needs the signal {shown(signal)}, which nothing records; there are {known}"
            yield path, f"{schema.name} {words}"


def _scorer_kind(task: Mapping[str, Any]) -> str:
    scorer = task.get("scorer")
    kind = scorer.get("kind") if isinstance(scorer, dict) else scorer
    return kind if isinstance(kind, str) else ""
