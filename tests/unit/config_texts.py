"""Two configs, changes of them, and what is wrong with one."""

import copy
import json
from pathlib import Path

import pytest

from adaptive_eval.config import parse_config
from adaptive_eval.errors import ConfigError

BASES = json.loads((Path(__file__).parents[1] / "data" / "base_configs.json").read_text("utf-8"))
MINIMAL, WIDE = BASES["minimal"], BASES["wide"]


SECRET = "0123456789abcdefABCDEF"  # of the bad configs into which a key is pasted


def problems_of(text, **options):
    """Return what is wrong with a config; no key in it is repeated."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, **options)
    assert SECRET not in f"{caught.value} {caught.value!r}"
    return caught.value.problems


def plain(*models, task=None, **sections):
    """Return a config of models of these names and one task; sections are added or take their place."""
    return {
        "name": "demo",
        "models": [{"name": name, "endpoints": [f"http://{name}/v1"]} for name in models or "ab"],
        "tasks": [{"name": "t", "dataset": "t.jsonl", "scorer": "exact", **(task or {})}],
        **sections,
    }


def with_changes(changes, base=MINIMAL):
    """Return a config with values replaced: `models.0.name` is its place; None removes."""
    data = copy.deepcopy(base)
    for place, value in changes.items():
        *path, last = [int(part) if part.isdigit() else part for part in place.split(".")]
        target = data
        for part in path:
            target = target.setdefault(part, {}) if isinstance(target, dict) else target[part]
        if value is None:
            del target[last]
        else:
            target[last] = value
    return json.dumps(data)
