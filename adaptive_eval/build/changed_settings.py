"""Settings that were changed after answers had been looked at: when, from what, to what."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from adaptive_eval.config import RunConfig, parse_config
from adaptive_eval.errors import Coded

CHANGES = "changes"
"""Key of a run file's description that holds the changes, as JSON."""

_NO_PROMISE = frozenset({"max_passes"})
"""Settings of ``stopping`` that no promise depends on: a rule holds wherever a run ends."""


@dataclass(frozen=True, slots=True)
class ChangedSetting:
    """One setting that was changed after answers had been looked at."""

    at: float  # Unix time
    trials: int  # trials stored by then
    setting: str
    before: Any
    now: Any


def stored_changes(meta: Mapping[str, str]) -> list[ChangedSetting]:
    """Return the changes that a run file's description holds.

    Examples
    --------
    >>> stored_changes({})
    []
    """
    return [ChangedSetting(**one) for one in json.loads(meta.get(CHANGES, "[]"))]


def changes_of(
    config: RunConfig, continued: Mapping[str, str] | None, trials: int, at: float
) -> list[ChangedSetting]:
    """Return every change of a run so far; those of `config` against the stored one are made now."""
    if continued is None:
        return []
    changes = stored_changes(continued)
    if not trials or "config" not in continued:
        return changes
    before = deciding_settings(parse_config(continued["config"], continued["source"], continued["base_dir"]))
    now = deciding_settings(config)
    for setting in [*before, *(name for name in now if name not in before)]:
        if before.get(setting) != now.get(setting):
            changes.append(ChangedSetting(at, trials, setting, before.get(setting), now.get(setting)))
    return changes


def dump_changes(changes: Sequence[ChangedSetting]) -> str:
    """Return the changes as a run file keeps them."""
    return json.dumps(list(map(asdict, changes)))


def change_warnings(changes: Sequence[ChangedSetting]) -> Iterator[Coded]:
    """Say what was changed, and that the error rate does not hold as it is stated.

    Examples
    --------
    >>> list(change_warnings([ChangedSetting(0.0, 120, "stopping.confidence", 0.95, 0.9)]))
    ['after answers had been looked at, stopping.confidence was changed from 0.95 to 0.9 (1970-01-01 \
00:00 UTC, after 120 trials): the stated error rate holds for settings that are chosen before the first \
answer, and not as stated for this run']
    >>> print(_shown({"kind": "ranking", "pairs": []}))
    {"kind": "ranking"}
    """
    if changes:
        listed = "; ".join(map(_words, changes))
        yield Coded(
            "warning/settings-changed",
            f"after answers had been looked at, {listed}: the stated error rate holds for settings that are "
            "chosen before the first answer, and not as stated for this run",
        )


def _words(change: ChangedSetting) -> str:
    when = datetime.fromtimestamp(change.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    values = f"from {_shown(change.before)} to {_shown(change.now)}"
    return f"{change.setting} was changed {values} ({when}, after {change.trials:,} trials)"


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        value = {name: part for name, part in value.items() if part}
    if isinstance(value, str):
        return value
    return json.dumps(value)


def deciding_settings(config: RunConfig) -> dict[str, Any]:
    """Return the settings that verdicts depend on, by their place."""
    data = config.model_dump(mode="json", by_alias=True)
    stopping = {name: value for name, value in data["stopping"].items() if name not in _NO_PROMISE}
    found = {f"stopping.{name}": value for name, value in stopping.items()}
    found |= {"goal": data["goal"], "overall": data["overall"], "references": data["references"]}
    found["on.discarded"] = list(config.on.discarded)
    found["on.copies"] = config.on.copies
    for task, section in zip(config.tasks, data["tasks"], strict=True):
        found[f"tasks[{task.name}].weight"] = section["weight"]
        found[f"tasks[{task.name}].rubric.weights"] = list(task.rubric.category_weights)
    for model in config.models:
        found[f"models[{model.name}].deterministic"] = model.deterministic
    return found
