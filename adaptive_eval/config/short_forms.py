"""Short forms of a config, written out: ready benchmarks, providers, variants and files of prompts.

``tasks: [gsm8k]`` is a task of ``benchmarks.yaml``; ``provider: openrouter`` is its address and the variable
of its key; ``variants: {of: qwen, system: [plain.txt, strict.txt]}`` is a grid of models.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from adaptive_eval.config.document import Document, Marks, apply_overrides, read_document, write_document
from adaptive_eval.options.mistakes import (
    Place,
    did_you_mean,
    malformed,
    no_dataset,
    not_one_of,
    twice,
    unknown_name,
)
from adaptive_eval.options.section import IN_LITELLM

Problems: TypeAlias = list[tuple[Place, str]]

TEXTS = ("system", "prompt")
"""Keys of a model whose value may be the name of a file."""

_FILES = (".txt", ".md")
_PARAMETERS = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort")
"""Keys of ``sampling`` that a grid may name directly."""

_OF_THE_DATASET = ("subset", "split", "revision")
"""Keys that say nothing about another dataset."""


def written_out(document: Document, base: Path | None, problems: Problems) -> Document:
    """Return a config with its short forms written out, and add what is wrong with them to `problems`.

    Examples
    --------
    >>> found = []
    >>> models = ({"name": "a", "provider": "ollama"}, {"variants": {"of": "a", "temperature": (0, 0.7)}})
    >>> tasks = ({"benchmark": "gsm8k", "limit": 50}, "gsm9k")
    >>> data = written_out(Document({"models": models, "tasks": tasks}), None, found).data
    >>> [(model["name"], model["endpoints"]) for model in data["models"]][1]
    ('a:temperature-0', ('http://localhost:11434/v1',))
    >>> data["tasks"][0]["name"], data["tasks"][0]["limit"], data["tasks"][0]["scorer"]
    ('gsm8k', 50, 'numeric')
    >>> found
    [(('tasks', 1), "'gsm9k' is no benchmark; did you mean 'gsm8k'? `adaptive-eval tasks` lists them")]
    """
    data, marks = document.data, document.marks
    if not isinstance(data, Mapping):
        return document
    written = dict(data)
    tasks = data.get("tasks")
    models = data.get("models")
    if isinstance(tasks, tuple):
        found = [_with_benchmark(task, ("tasks", place), problems) for place, task in enumerate(tasks)]
        written["tasks"] = tuple(found)
    if isinstance(models, tuple):
        known = [_with_provider(model, ("models", place), problems) for place, model in enumerate(models)]
        varied = list(_with_variants(known, problems))
        written["models"] = tuple(_with_texts(model, path, base, problems) for path, model in varied)
        marks = _moved(marks, [path for path, _ in varied])
    return replace(document, data=written, marks=marks)


def _moved(marks: Marks, origins: Sequence[Place]) -> Marks:
    """Return the marks with those of every model at its place among the models that are written out."""
    of_model: dict[Place, list[Place]] = {}
    for place in marks:
        of_model.setdefault(place[:2], []).append(place)
    moved = {place: mark for place, mark in marks.items() if place[:1] != ("models",) or len(place) == 1}
    for number, origin in enumerate(origins):
        for place in of_model.get(origin, ()):
            moved["models", number, *place[2:]] = marks[place]
    return moved


@dataclass(frozen=True)
class Benchmark:
    """One ready benchmark."""

    name: str
    about: str  # one sentence
    questions: int  # how many, in the dataset's revision
    license: str
    prompt_from: str  # where the form of the prompt comes from
    task: Mapping[str, Any]  # the task as a config writes it, without a name
    needs: str = ""  # what a user must add or have

    @property
    def revision(self) -> str | None:
        """The commit of the dataset; None if it is not pinned and its newest version is asked."""
        return self.task.get("revision")

    @property
    def config(self) -> str:
        """The task as YAML, for a config."""
        return write_document({"tasks": ({"name": self.name, **self.task},)})


@cache
def benchmarks() -> Mapping[str, Benchmark]:
    """Return the ready benchmarks by name.

    Examples
    --------
    >>> benchmarks()["gsm8k"].task["scorer"]
    'numeric'
    """
    text = files("adaptive_eval.config").joinpath("benchmarks.yaml").read_text("utf-8")
    table = read_document(text).data
    return MappingProxyType({name: Benchmark(name, **row) for name, row in table.items()})


def _with_benchmark(item: Any, path: Place, problems: Problems) -> Any:
    """Return a task with that of the benchmark it names."""
    given = item
    if isinstance(item, str):
        given = {"benchmark": item}
    if not isinstance(given, Mapping) or "benchmark" not in given:
        return item
    name = given["benchmark"]
    if not isinstance(name, str) or name not in benchmarks():
        near = ""
        if isinstance(name, str):
            near = did_you_mean(name, benchmarks())
        words = f"{name!r:.60} is no benchmark{near or ';'} `adaptive-eval tasks` lists them"
        problems.append((path, unknown_name(words)))
        return item
    return _task(benchmarks()[name], {key: value for key, value in given.items() if key != "benchmark"})


def _task(benchmark: Benchmark, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the benchmark's task with the config's changes."""
    preset = {"name": benchmark.name, **benchmark.task}
    if given.get("dataset", preset.get("dataset")) != preset.get("dataset"):
        preset = {key: value for key, value in preset.items() if key not in _OF_THE_DATASET}
    return {**preset, **{key: _merged(preset.get(key), value) for key, value in given.items()}}


def _merged(preset: Any, value: Any) -> Any:
    """Return a section with the keys given in place of the preset's; another kind replaces it."""
    if not isinstance(value, Mapping):
        return value
    section = preset
    if isinstance(preset, str):
        section = {"kind": preset}
    if not isinstance(section, Mapping) or value.get("kind", section.get("kind")) != section.get("kind"):
        return value
    return {**section, **value}


def _hosted(url: str, key: str, **more: Any) -> Mapping[str, Any]:
    return {"endpoints": (url,), "api_key_env": key, **more}


def _local(port: int) -> Mapping[str, Any]:
    return {"endpoints": (f"http://localhost:{port}/v1",)}


PROVIDERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "anthropic": _hosted("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", api="messages"),
        "deepseek": _hosted("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", accepts=("text", "tools")),
        "gemini": _hosted("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
        "groq": _hosted("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        "litellm": {"endpoints": (IN_LITELLM,)},
        "llama.cpp": _local(8080),
        "lm-studio": _local(1234),
        # It refuses fields that it does not know, and calls the seed random_seed.
        "mistral": _hosted("https://api.mistral.ai/v1", "MISTRAL_API_KEY", send_seed=False),
        "ollama": _local(11434),
        "openai": _hosted("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "openrouter": _hosted("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        "sglang": _local(30000),
        "together": _hosted("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "vllm": _local(8000),
    }
)
"""Settings of a model's section, as each provider documents them; any key can be overridden."""


def _with_provider(given: Any, path: Place, problems: Problems) -> Any:
    """Return a model with the settings of the provider it names."""
    if not isinstance(given, Mapping) or not isinstance(given.get("provider"), str):
        return given
    name = given["provider"]
    if name not in PROVIDERS:
        words = f"{name!r:.60} is none of {', '.join(PROVIDERS)}{did_you_mean(name, PROVIDERS)}"
        words += "; docs/providers.md says how to reach Azure, Bedrock and others"
        problems.append(((*path, "provider"), not_one_of(words)))
    own = {key: value for key, value in given.items() if key != "provider"}
    return {**PROVIDERS.get(name, _local(80)), **own}


def _with_variants(models: list[Any], problems: Problems) -> Iterator[tuple[Place, Any]]:
    """Yield every model with the place where it, or its grid, is written."""
    named = [one for one in models if isinstance(one, Mapping) and isinstance(one.get("name"), str)]
    known = {one["name"]: one for one in named}
    for place, model in enumerate(models):
        path: Place = ("models", place)
        if isinstance(model, Mapping) and "variants" in model:
            for variant in _grid(model, known, (*path, "variants"), problems):
                yield path, variant
        else:
            yield path, model


def _grid(
    entry: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], path: Place, problems: Problems
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
        yield {"model": name, **apply_overrides(known[name], settings), "name": label}


def _axes(section: Mapping[str, Any], path: Place = ()) -> Iterator[tuple[Place, tuple[Any, ...]]]:
    """Yield every setting that varies, with its values."""
    for key, value in section.items():
        if not path and key in _PARAMETERS:
            place: Place = ("sampling", key)
        else:
            place = (*path, key)
        if isinstance(value, Mapping):
            yield from _axes(value, place)
        else:
            yield place, value if isinstance(value, tuple) else (value,)


def _part(key: str | int, value: Any) -> str:
    """Return what a value is called in a label."""
    if key in TEXTS:
        if str(value).endswith(_FILES):
            text = Path(value).stem
        else:
            text = str(value)[:20]
    else:
        text = f"{key}-{value}"
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.") or "variant"


def _with_texts(model: Any, path: Place, base: Path | None, problems: Problems) -> Any:
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
