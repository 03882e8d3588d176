"""A small config, changes of it, and what is wrong with one."""

from __future__ import annotations

import copy
import json

import pytest

from adaptive_eval.config import parse_config
from adaptive_eval.errors import ConfigError

MINIMAL = {
    "name": "demo",
    "models": [
        {"name": "a", "endpoints": ["http://localhost:8000/v1"]},
        {"name": "b", "endpoints": ["http://localhost:8001/v1"]},
    ],
    "tasks": [{"name": "sums", "dataset": "sums.jsonl", "scorer": "numeric"}],
}


def problems_of(text, **options):
    with pytest.raises(ConfigError) as caught:
        parse_config(text, **options)
    return [str(problem) for problem in caught.value.problems]


def with_changes(**changes):
    """Return MINIMAL with values replaced: `models_0_name="x"` sets models[0].name; None removes."""
    data = copy.deepcopy(MINIMAL)
    for place, value in changes.items():
        *path, last = [int(part) if part.isdigit() else part for part in place.split("__")]
        target = data
        for part in path:
            target = target.setdefault(part, {}) if isinstance(target, dict) else target[part]
        if value is None:
            del target[last]
        else:
            target[last] = value
    return json.dumps(data)
