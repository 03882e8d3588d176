"""Variants of a model: ``variants: {of: qwen, system: [plain.txt, strict.txt]}`` is short for a grid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from adaptive_eval.config.document import write_document
from adaptive_eval.config.overrides import Override, apply_overrides
from adaptive_eval.options.mistakes import Place, did_you_mean, malformed, no_dataset, twice, unknown_name

TEXTS = ("system", "prompt")
"""Keys of a model whose value may be the name of a file."""

_FILES = (".txt", ".md")
_PARAMETERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort")
"""Keys of ``sampling`` that a grid may name directly."""

_Problems: TypeAlias = list[tuple[Place, str]]


def with_variants(data: Any, base: Path | None) -> tuple[list[Override], _Problems]:
    """Return the models of a config with variants and files of prompts written out, and what is wrong.

    Examples
    --------
    >>> models = ({"name": "a"}, {"variants": {"of": "a", "temperature": (0, 0.7)}})
    >>> (override,), _ = with_variants({"models": models}, None)
    >>> [model["name"] for model in override.value]
    ['a', 'a:temperature-0', 'a:temperature-0.7']
    """
    models = data.get("models") if isinstance(data, Mapping) else None
    if not isinstance(models, tuple):
        return [], []
    problems: _Problems = []
    found: list[Any] = []
    named = [one for one in models if isinstance(one, Mapping) and isinstance(one.get("name"), str)]
    by_name = {one["name"]: one for one in named}
    for place, model in enumerate(models):
        path: Place = ("models", place)
        if isinstance(model, Mapping) and "variants" in model:
            found += _grid(model, by_name, (*path, "variants"), problems)
        else:
            found.append(model)
    written = tuple(
        _with_texts(model, ("models", place), base, problems) for place, model in enumerate(found)
    )
    if written == models:
        return [], problems
    return [Override(("models",), written, write_document(written))], problems


def _grid(
    entry: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], path: Place, problems: _Problems
) -> Iterator[dict[str, Any]]:
    """Yield the models of one grid."""
    variants = entry["variants"]
    if not isinstance(variants, Mapping) or len(entry) > 1:
        problems.append((path, malformed("write {of: LABEL, KEY: [values]}, and nothing next to it")))
        return
    name = variants.get("of")
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(str(name), list(known))
        problems.append(((*path, "of"), unknown_name(f"{name!r:.60} is no model of this config{hint}")))
        return
    axes = list(_axes({key: value for key, value in variants.items() if key != "of"}))
    if not axes:
        problems.append((path, malformed("names no values to vary, such as system: [a.txt, b.txt]")))
        return
    seen: set[str] = set()
    for values in product(*(values for _, values in axes)):
        settings = [(place, value) for (place, _), value in zip(axes, values, strict=True)]
        label = ":".join([name, *(_part(place[-1], value) for place, value in settings)])
        if label in seen:
            problems.append((path, twice(f"two variants would be called {label!r}; name their files apart")))
        seen.add(label)
        overrides = [Override(place, value, "") for place, value in settings]
        yield {"model": name, **apply_overrides(known[name], overrides), "name": label}


def _axes(section: Mapping[str, Any], path: Place = ()) -> Iterator[tuple[Place, tuple[Any, ...]]]:
    """Yield every setting that varies, with its values."""
    for key, value in section.items():
        place: Place = ("sampling", key) if not path and key in _PARAMETERS else (*path, key)
        if isinstance(value, Mapping):
            yield from _axes(value, place)
        else:
            yield place, value if isinstance(value, tuple) else (value,)


def _part(key: str | int, value: Any) -> str:
    """Return what a value is called in a label."""
    if key in TEXTS:
        text = Path(value).stem if str(value).endswith(_FILES) else str(value)[:20]
    else:
        text = f"{key}-{value}"
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.") or "variant"


def _with_texts(model: Any, path: Place, base: Path | None, problems: _Problems) -> Any:
    """Return a model with the texts of the files that it names."""
    if not isinstance(model, Mapping):
        return model
    for key in TEXTS:
        value = model.get(key)
        if not isinstance(value, str) or not value.endswith(_FILES) or "\n" in value or base is None:
            continue
        try:
            text = (base / Path(value).expanduser()).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            words = f"{value!r:.80} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
            problems.append(((*path, key), no_dataset(words)))
        else:
            model = {**model, key: text.rstrip("\n")}
    return model
