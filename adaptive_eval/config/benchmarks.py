"""Ready benchmarks: ``tasks: [gsm8k]`` is short for the task in ``benchmarks.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from adaptive_eval.config.document import read_document, write_document
from adaptive_eval.config.overrides import Override
from adaptive_eval.options.mistakes import Place, did_you_mean, unknown_name

_OF_THE_DATASET = ("subset", "split", "revision")
"""Keys that say nothing about another dataset."""


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
        """The commit of the dataset; None where it is not pinned and its newest version is asked."""
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


def written_out(data: Any) -> tuple[list[Override], list[tuple[Place, str]]]:
    """Return the tasks of a config that name a benchmark, written out, and the names that are none.

    Examples
    --------
    >>> (override,), _ = written_out({"tasks": ({"benchmark": "gsm8k", "limit": 50},)})
    >>> override.path, override.value["name"], override.value["limit"], override.value["scorer"]
    (('tasks', 0), 'gsm8k', 50, 'numeric')
    >>> written_out({"tasks": ("gsm9k",)})[1]
    [(('tasks', 0), "'gsm9k' is no benchmark; did you mean 'gsm8k'? `adaptive-eval tasks` lists them")]
    """
    overrides: list[Override] = []
    problems: list[tuple[Place, str]] = []
    tasks = data.get("tasks") if isinstance(data, Mapping) else None
    for number, item in enumerate(tasks if isinstance(tasks, tuple) else ()):
        given = {"benchmark": item} if isinstance(item, str) else item
        if not isinstance(given, Mapping) or "benchmark" not in given:
            continue
        name = given["benchmark"]
        if not isinstance(name, str) or name not in benchmarks():
            near = did_you_mean(name, benchmarks()) if isinstance(name, str) else ""
            words = f"{name!r:.60} is no benchmark{near or ';'} `adaptive-eval tasks` lists them"
            problems.append((("tasks", number), unknown_name(words)))
            continue
        task = _task(benchmarks()[name], {key: value for key, value in given.items() if key != "benchmark"})
        overrides.append(Override(("tasks", number), task, write_document(task)))
    return overrides, problems


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
    section = {"kind": preset} if isinstance(preset, str) else preset
    if not isinstance(section, Mapping) or value.get("kind", section.get("kind")) != section.get("kind"):
        return value
    return {**section, **value}
