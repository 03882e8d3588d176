"""Checks of the labels that a config's judges name."""

from __future__ import annotations

from collections.abc import Iterator

from adaptive_eval.config.run_config import RunConfig
from adaptive_eval.options.mistakes import Place, shown
from adaptive_eval.options.scorers import LabelledScorerConfig


def label_mistakes(config: RunConfig) -> Iterator[tuple[Place, str]]:
    """Yield why a run cannot be decided by the labels that its config names."""
    found = list(label_files(config))
    if not found:
        return
    limited = any(budget.limits() for budget in (config.budget, *config.own_budgets))
    written = config.stopping.max_passes is not None
    (first, file), *others = found
    for place, other in others:
        if other != file:
            yield place, f"{shown(other)} is not {shown(file)}; one file holds the labels of all tasks"
    if config.references:
        yield first, "references have no answers here to be labelled; leave labels or references out"
    if not (limited or written):
        words = "the judge alone ends no run that labels decide; give budget.trials or stopping.max_passes"
        yield first, words


def label_files(config: RunConfig) -> Iterator[tuple[Place, str]]:
    """Yield the files of labels that a config's scorers name, each with the place where it is named."""
    for number, task in enumerate(config.tasks):
        here: Place = ("tasks", number, "scorer")
        parts = getattr(task.scorer, "parts", {})
        sections = {(*here, "parts", name): part for name, part in parts.items()} or {here: task.scorer}
        for place, section in sections.items():
            if isinstance(section, LabelledScorerConfig) and section.labels is not None:
                yield (*place, "labels"), section.labels
