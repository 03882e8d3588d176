"""What the tables of the decision benchmark share: scale, processes, and how a figure is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from decisions_pairs import Verdicts
from numpy.typing import NDArray

from adaptive_eval.simulate import Rate


@dataclass(frozen=True, slots=True)
class Options:
    """What every section needs."""

    scale: float
    seed: int
    pool: ProcessPoolExecutor
    replay: Path | None
    questions: tuple[int, ...] = ()
    rows: str = ""

    def wanted(self, questions: int) -> bool:
        """Say whether rows with so many questions are asked for."""
        return not self.questions or questions in self.questions

    def number(self, full: int, least: int = 4) -> int:
        """Return how many of `full` replicates to run."""
        return max(least, round(full * self.scale))

    def run(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run jobs over all processes; return their results in order."""
        return list(self.pool.map(_call, jobs))

    def seeds(self, number: int, *place: int) -> list[int]:
        """Return seeds that differ between places of the tables."""
        root = np.random.SeedSequence([self.seed, *place])
        return [int(state) for state in root.generate_state(number, np.uint32)]


def _call(job: Callable[[], Any]) -> Any:
    return job()


def heading(text: str, *columns: str) -> None:
    print(f"\n{text}\n{'-' * len(text)}")
    if columns:
        row(*columns)


def row(name: str, *cells: str) -> None:
    print(f"  {name:<46}" + "".join(f"{cell:>24}" for cell in cells), flush=True)


def percent(rate: Rate) -> str:
    """Return a rate with its 95 % interval, or a dash where nothing could go wrong."""
    if rate.total == 0:
        return "–"
    low, high = rate.interval()
    return f"{100 * rate.share:.1f} [{100 * low:.1f}, {100 * high:.1f}] %"


def mark(rate: Rate, most: float) -> str:
    """Say whether a rate keeps below `most`, as far as its interval can tell."""
    low, high = rate.interval()
    return "ok" if high <= most else "MISS" if low > most else "ok?" if rate.share <= most else "?"


def below(value: float, most: float) -> str:
    return "ok" if value <= most else "MISS"


def split(total: int, size: int) -> list[int]:
    """Split `total` pairs into boards of about `size`."""
    return [size] * (total // size) + ([total % size] if total % size else [])


def pooled(results: Iterable[Verdicts]) -> tuple[Rate, Rate, NDArray[np.int64]]:
    """Return wrong calls, ties, and steps to a winner of several boards of pairs."""
    found = list(results)
    pairs = sum(one.pairs for one in found)
    steps = np.concatenate([one.winner_steps for one in found])
    return Rate(sum(one.wrong for one in found), pairs), Rate(sum(one.ties for one in found), pairs), steps
