"""Time and memory of comparisons of scores that are numbers, over those of right and wrong answers.

    python benchmarks/score_speed.py

Each shape has 100,000 trials of each model; the CPU time is the best of two calls, the memory the peak of
Python's allocations. Exits 1 where scores take more than twice of either.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from scorio.sequential import board, compare, score

SHAPES = ((1000, 100), (100_000, 1), (100, 1000))
MOST = 2.0


def board_of(first: Any, second: Any) -> Any:
    """Return the board of two models."""
    return board({"first": first, "second": second})


def score_of(first: Any, _: Any) -> Any:
    """Return the score of the first model."""
    return score(first, against=0.5)


FACES: dict[str, Callable[[Any, Any], Any]] = {"compare": compare, "board": board_of, "score": score_of}


def cost(face: Callable[[Any, Any], Any], pair: tuple[Any, Any]) -> tuple[float, float]:
    """Return CPU seconds and megabytes of a call."""
    face(pair[0][:20], pair[1][:20])  # imports are no part of a call
    seconds = []
    for _ in range(2):
        start = time.process_time()
        face(*pair)
        seconds.append(time.process_time() - start)
    tracemalloc.start()
    face(*pair)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return min(seconds), peak / 1e6


def main() -> int:
    """Print a line for each face and shape; return 1 where scores take too much."""
    rng, worst = np.random.default_rng(0), 0.0
    for shape in SHAPES:
        chances = rng.beta(8.0, 8.0, (shape[0], 1))
        binary = rng.random(shape) < chances, rng.random(shape) < chances
        numbers = tuple(np.clip(rng.normal(chances, 0.3, shape), 0.0, 1.0) for _ in binary)
        for name, face in FACES.items():
            seconds, megabytes = cost(face, binary)
            their_seconds, their_megabytes = cost(face, (numbers[0], numbers[1]))
            ratios = their_seconds / seconds, their_megabytes / megabytes
            worst = max(worst, *ratios)
            print(
                f"{shape[0]} x {shape[1]} {name}: right/wrong {seconds:.2f} s {megabytes:.0f} MB, scores "
                f"{their_seconds:.2f} s {their_megabytes:.0f} MB, ratios {ratios[0]:.2f} {ratios[1]:.2f}"
            )
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())
