"""Where the description of a stored run is not the one that the config in it leads to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from adaptive_eval import __version__
from adaptive_eval.build.changed_settings import CHANGES, deciding_settings, stored_changes
from adaptive_eval.build.session_spec import as_configured, rounds_identity, worth_of
from adaptive_eval.config import RunConfig
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.core.stored_spec import SESSION, spec_to_json
from adaptive_eval.errors import AdaptiveEvalError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.interop.stored_config import written_config
from adaptive_eval.store.file_errors import UNREADABLE
from adaptive_eval.views.details import CONFIG, NAME, STARTED_AT, WORTH

_HASH = "config_hash"
_OF_CONFIGS = (CONFIG, "source", "base_dir", _HASH, "identity", "scoring", WORTH, "thresholds", CHANGES)
_WRITTEN = (NAME, *_OF_CONFIGS, "seed", SESSION, STARTED_AT, "versions")
"""What every run holds that was started from a config, the first of it only such runs."""


def misdescribed(meta: Mapping[str, str], spec: SessionSpec) -> Iterator[str]:
    """Yield where the description of a run disagrees with its config; `spec` is the stored session."""
    if IMPORTED in meta:  # there is no config that it was started from
        ours = [key for key in _OF_CONFIGS if key in meta]
        if ours:
            yield f"the description of the run says that it was imported, and holds {', '.join(ours)}"
        return
    lacking = [key for key in _WRITTEN if key not in meta]
    if lacking:
        yield f"the description of the run lacks {', '.join(lacking)}"
        return
    is_ours = json.loads(meta["versions"]).get("adaptive-eval") == __version__  # else settings may be others
    try:
        config = written_config(meta)
        stored = _stored(meta, spec)
        made = _made(config, meta, spec)
        if is_ours:
            stored[_HASH], made[_HASH] = meta[_HASH], config.hash()
    except (AdaptiveEvalError, *UNREADABLE) as error:
        if is_ours:
            why = " ".join(str(error).split())
            yield f"config: the one in the description of the run cannot be read ({why:.300})"
        return
    yield from _unlike(stored, made)


def _stored(meta: Mapping[str, str], spec: SessionSpec) -> dict[str, Any]:
    """Return the parts of a description that follow from a config, as they are stored."""
    told: dict[str, Any] = {key: json.loads(meta[key]) for key in ("identity", "scoring", WORTH)}
    changed = {change.setting: change.now for change in stored_changes(meta)}
    written = {NAME: meta[NAME], "seed": meta["seed"], SESSION: json.loads(spec_to_json(spec))}
    return written | told | {"changes": changed}


def _made(config: RunConfig, meta: Mapping[str, str], stored: SessionSpec) -> dict[str, Any]:
    """Return the same as the config says it; what it does not say is as it is stored."""
    spec = as_configured(config, stored)
    told = json.loads(meta["identity"])
    scored = json.loads(meta["scoring"])
    identity = config.trial_identity() | {"samples_per_request": spec.samples_per_prompt}
    identity |= rounds_identity(spec) | {"code": told.get("code")}
    for name, task in identity["tasks"].items():
        task["dataset"] = told["tasks"].get(name, {}).get("dataset")
    scoring = {}
    for section in config.tasks:
        of_code = {key: value for key, value in scored.get(section.name, {}).items() if key.endswith(".py")}
        scoring[section.name] = {**section.scoring_identity(), "missing": list(config.on.missing), **of_code}
    now = deciding_settings(config)
    changes = {change.setting: now.get(change.setting) for change in stored_changes(meta)}
    made = {"identity": identity, "scoring": scoring, WORTH: worth_of(spec), "changes": changes}
    of_config = {NAME: config.name, "seed": str(config.seed), SESSION: json.loads(spec_to_json(spec))}
    return {**of_config, **json.loads(json.dumps(made))}


def _unlike(stored: Any, made: Any, place: str = "") -> Iterator[str]:
    """Yield where stored data are not those that the config says.

    Examples
    --------
    >>> list(_unlike({"a": [{"b": 1}], "c": [2]}, {"a": [{"b": 3}], "c": [2], "d": None}))
    ['a.0.b: stored 1, the config says 3']
    """
    if isinstance(stored, Mapping) and isinstance(made, Mapping):
        for key in {**stored, **made}:
            yield from _unlike(stored.get(key), made.get(key), f"{place}.{key}".removeprefix("."))
    elif isinstance(stored, list) and isinstance(made, list) and len(stored) == len(made):
        for number, (old, now) in enumerate(zip(stored, made, strict=True)):
            yield from _unlike(old, now, f"{place}.{number}")
    elif stored != made:
        yield f"{place}: stored {stored!r:.80}, the config says {made!r:.80}"
