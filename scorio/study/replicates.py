"""Blocks of replicates: random streams that depend on the seed and the block, never on who does the work."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

Seed = int | np.random.SeedSequence | np.random.Generator

Result = TypeVar("Result")


class ReplicateBlock(NamedTuple):
    """A block of replicates: its random numbers, how many replicates are drawn, and how many count."""

    rng: np.random.Generator
    length: int
    keep: int


_CELLS_PER_BLOCK = 160_000  # so that a block's cumulative counts stay in the processor's cache
_TASKS = 32


def seed_sequence(seed: Seed) -> np.random.SeedSequence:
    """Return the root of a study's random streams; a generator gives another one at every call."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if isinstance(seed, np.random.Generator):
        return np.random.SeedSequence(seed.integers(0, 2**32, size=4).tolist())
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a non-negative int, a SeedSequence or a Generator, got {seed!r}")
    return np.random.SeedSequence(int(seed))


def block_generator(root: np.random.SeedSequence, block: int) -> np.random.Generator:
    """Return the generator of one block: the root's child number `block`, as ``spawn`` would number it."""
    child = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, block))
    return np.random.default_rng(child)


def block_length(cells: int) -> int:
    """Return the replicates of a block for `cells` model-question cells.

    It depends on the shape of the data alone, so a seed means the same replicates for every metric,
    every number of replicates and every executor.
    """
    return int(np.clip(_CELLS_PER_BLOCK // max(cells, 1), 64, 256))


def run_blocks(
    work: Callable[[ReplicateBlock], Result],
    cells: int,
    replicates: int,
    seed: Seed,
    executor: Executor | None,
    least: int = 1,
) -> Iterator[Result]:
    """Yield ``work(block)`` for each block in order; `cells` is models times questions.

    `work` always draws `length` replicates and keeps the first `keep`, so the last, shorter block holds
    the same replicates that a longer study would. There must be at `least` so many replicates.
    """
    if replicates < least:
        raise ValueError(f"replicates must be at least {least}, got {replicates!r}")
    length = block_length(cells)
    root = seed_sequence(seed)
    starts = range(0, replicates, length)
    blocks = [(number, min(length, replicates - start)) for number, start in enumerate(starts)]
    share = 1
    if executor is not None:
        share = -(-len(blocks) // _TASKS)
    spans = [blocks[start : start + share] for start in range(0, len(blocks), share)]
    task = partial(_run_span, work, length, root)
    for results in map(task, spans) if executor is None else executor.map(task, spans):
        yield from results


def _run_span(
    work: Callable[[ReplicateBlock], Result],
    length: int,
    root: np.random.SeedSequence,
    span: list[tuple[int, int]],
) -> list[Result]:
    return [work(ReplicateBlock(block_generator(root, block), length, keep)) for block, keep in span]
