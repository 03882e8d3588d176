"""Comparable keys of every metric after each trial of a block of replicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from scorio.study.gold import GoldStandard
from scorio.study.metrics import Metric
from scorio.study.sources import Source

Keys = NDArray[np.int64]


def check_metrics(source: Source, metrics: Sequence[Metric]) -> None:
    """Raise ValueError where a metric cannot be read from the source."""
    for metric in metrics:
        if not source.binary and not metric.linear:
            raise ValueError(f"metric must be avg or bayes for weighted outcomes, got {metric.label}")
        if metric.first > source.trials:
            raise ValueError(
                f"k must be at most the {source.trials} trials of a replicate, got {metric.label}"
            )


def check_confirm(source: Source, confirm: int) -> None:
    """Raise ValueError where a ranking cannot agree for so many further trials."""
    if not 0 <= confirm < source.trials:
        raise ValueError(f"confirm must lie in [0, {source.trials - 1}], got {confirm!r}")


def standard_of(source: Source, gold: GoldStandard | None) -> GoldStandard:
    """Return the ranking that replicates are compared with: the source's own where none is given."""
    standard = source.gold() if gold is None else gold
    if len(standard.order) != source.models:
        raise ValueError(f"gold must rank the source's {source.models} models, got {len(standard.order)}")
    return standard


def keys_by_trial(
    source: Source, metrics: Sequence[Metric], rng: np.random.Generator, replicates: int
) -> Iterator[tuple[int, list[tuple[Keys, int] | None]]]:
    """Yield n and, per metric, the keys (replicates, L) after n trials with their tolerance.

    A metric that is not defined at n yet is None. Later arrays do not overwrite earlier ones.
    """
    if all(metric.linear for metric in metrics):
        yield from _from_totals(source, metrics, rng, replicates)
    else:
        yield from _from_cells(source, metrics, rng, replicates)


def _from_totals(
    source: Source, metrics: Sequence[Metric], rng: np.random.Generator, replicates: int
) -> Iterator[tuple[int, list[tuple[Keys, int] | None]]]:
    total: Keys = np.zeros((replicates, source.models), dtype=np.int64)
    for n, scores in enumerate(source.totals(rng, replicates), start=1):
        total = total + scores
        yield n, [(total, source.tolerance)] * len(metrics)


def _from_cells(
    source: Source, metrics: Sequence[Metric], rng: np.random.Generator, replicates: int
) -> Iterator[tuple[int, list[tuple[Keys, int] | None]]]:
    correct = np.zeros((replicates, source.models, source.questions), dtype=np.min_scalar_type(source.trials))
    for n, outcomes in enumerate(source.cells(rng, replicates), start=1):
        correct += outcomes
        yield (
            n,
            [
                None if n < metric.first else (metric.keys(correct, n), metric.tolerance(n, source.questions))
                for metric in metrics
            ],
        )
