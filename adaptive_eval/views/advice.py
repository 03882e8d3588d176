"""What to do about models whose very first request was refused: the settings to change, and the command."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.endpoints.causes import CAUSES
from adaptive_eval.views.budgets import item_place

_RESTART = (
    "A run keeps sampling, prompts and model ids, which are part of every trial. Change the config, or start "
    "again from this run, which is kept under another name"
)
_CONTINUE = "Addresses, keys and limits may change while a run continues. Continue with"
_UNKNOWN = (
    "A run keeps sampling, prompts and model ids: to change one of these, change the config and start again "
    "with --new. Addresses, keys and limits may change while it continues. Continue with"
)


def refused_words(refused: Mapping[str, Sequence[str]], config: RunConfig, run: Path) -> list[str]:
    """Return what to do about refused models, each with its cause, as lines; the last is a command."""
    alike: dict[str, list[str]] = {}
    settings: list[str] = []
    for name, cause in refused.items():
        model = config.model(name)
        change, setting = _change(model, cause)
        alike.setdefault(change, []).append(name)
        if setting:
            settings.append(f"{item_place('models', name, config)}.{setting}")
    lines = [f"{', '.join(names)}: {change}" for change, names in alike.items() if change]
    others = [model.name for model in config.models if model.name not in refused]
    if others:
        lines.append(f"To run {', '.join(others)} alone: {_command(run, ['--allow-missing'], [])}")
    known = [CAUSES[cause[0]].kept for cause in refused.values() if cause]
    if any(known):
        return [*lines, f"{_RESTART}: {_command(run, ['--new'], settings)}"]
    words = _UNKNOWN
    if len(known) == len(refused):
        words = _CONTINUE
    return [*lines, f"{words}: {_command(run, [], settings)}"]


def _command(run: Path, flags: Sequence[str], settings: Sequence[str]) -> str:
    command = ["adaptive-eval", "run", str(run), *flags]
    for setting in settings:
        command += ["-o", setting]
    return shlex.join(command)


def _change(model: ModelConfig, cause: Sequence[str]) -> tuple[str, str]:
    """Return what to change for a model, and the setting that does it; each empty if it is not known."""
    if not cause:
        return "", ""
    name = cause[0]
    named = cause[-1]
    words = CAUSES[name].change.format(named=named)
    sent = model.sampling.as_sent()
    if name == "renamed" and "max_tokens" in sent:
        limit = sent.pop("max_tokens")
        return words, _setting("sampling", {**sent, "max_completion_tokens": limit})
    if name == "context":
        return words, _setting("sampling", _lowered(sent, named))
    if name == "parameter" and named == "seed":
        return f"{words} (send_seed: false)", "send_seed=false"
    for place, fields in (("sampling", sent), ("extra_body", model.extra_body)):
        if name in ("parameter", "value") and named in fields:
            left = {key: value for key, value in fields.items() if key != named}
            return f"{words} of {place}", _setting(place, left)
    if name == "api":
        return words, f"api={named}"
    if name == "system" and model.system is not None:
        return words, "system=null"
    if name == "key" and model.api_key_env is not None:
        return f"is the key in {model.api_key_env} the right one, and may it use this model?", ""
    if name == "key":
        return "name the variable that holds the server's key in api_key_env", "api_key_env=VARIABLE"
    if name == "model":
        return words, "model=NAME"
    if name in ("address", "page"):
        return words, "endpoints=[URL]"
    return words, ""


def _setting(place: str, value: Mapping[str, Any]) -> str:
    return f"{place}={json.dumps(value)}"


def _lowered(sent: Mapping[str, Any], context: str) -> dict[str, Any]:
    """Return the sampling with half of the limit on tokens, or of the context if the server names it."""
    limits = [name for name in ("max_tokens", "max_completion_tokens") if name in sent]
    digits = context.replace(",", "")
    lowered = dict(sent)
    for name in limits or ["max_tokens"]:
        if digits.isdecimal():
            whole = int(digits)
        else:
            whole = sent.get(name, 4096)
        lowered[name] = max(1, min(whole, sent.get(name, whole)) // 2)
    return lowered
