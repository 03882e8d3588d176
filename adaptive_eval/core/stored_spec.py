"""A session's specification as the run file keeps it, so that its trials can be replayed without its config.

References, priors and labels are left out: what was taken from elsewhere is stored by itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.options.decisions import GoalSpec
from adaptive_eval.options.section import as_read
from adaptive_eval.trial import ScoreRange

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SESSION = "session"
"""Key of the run file's description that holds the specification."""


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    """Return what writes and reads each field."""
    from pydantic import TypeAdapter  # a session that stores nothing needs none of it

    hints = get_type_hints(SessionSpec)
    return {name: TypeAdapter(hint) for name, hint in hints.items() if name not in _TAKEN}


_TAKEN = ("references", "prior", "labels")


def _goal(data: Mapping[str, Any]) -> GoalSpec:
    """Return a goal from all of its fields; a config writes only those of its kind."""
    parts = tuple(map(_goal, data["goals"]))
    pairs = tuple((first, second) for first, second in data["pairs"])
    return GoalSpec(**{**data, "goals": parts, "pairs": pairs})


def spec_to_json(spec: SessionSpec) -> str:
    """Return a specification without its references, priors and labels as JSON text."""
    data: dict[str, Any] = {}
    for name, adapter in _adapters().items():
        value = getattr(spec, name)
        if isinstance(value, frozenset):
            value = sorted(value)  # the order of a set is another in each process
        data[name] = adapter.dump_python(value, mode="json", warnings=False)
    ranges = [task.name for task in spec.tasks if task.numbers]
    return json.dumps({"spec": data, "ranges": ranges})


def spec_from_json(text: str) -> SessionSpec:
    """Return what :func:`spec_to_json` was given.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, TaskSpec
    >>> stars = TaskSpec("stars", ("q1", "q2"), ScoreRange((1, 10)))
    >>> spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), (stars,), seed=7)
    >>> spec_from_json(spec_to_json(spec)) == spec
    True
    """
    data = as_read(json.loads(text))
    ranges = frozenset(data["ranges"])
    fields: dict[str, Any] = {"goal": _goal(data["spec"]["goal"])}
    for name, adapter in _adapters().items():
        if name not in fields:
            fields[name] = adapter.validate_python(data["spec"][name])
    tasks = []
    for task in fields.pop("tasks"):
        is_range = task.name in ranges
        if is_range:
            tasks.append(replace(task, weights=ScoreRange(task.weights)))
        else:
            tasks.append(task)
    return SessionSpec(tasks=tuple(tasks), **fields)
