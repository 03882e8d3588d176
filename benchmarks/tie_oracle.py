"""What a tie could save if the noise of every question were known, while winners are called as they are.

    python benchmarks/tie_oracle.py RECORDED.npz [--runs 640] [--seed 1] [--margin 0.03] [--passes 8]

Pairs within the margin of recorded means, along the schedule, a look after every trial, by the readers and
the rule of a run. "noise known" ends at the same winners, and at ties by the true variance of the difference.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.interop.recorded_files import read_recorded
from scorio.sequential.cells import Cells
from scorio.sequential.evidence import MIN_QUESTIONS, log_tie_evidence
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence

BOARD = 64
"""Pairs that share an order of the questions, and array operations."""
PIECE = 400


def steps_to_a_call(p: NDArray[np.float64], margin: float, passes: int, seed: int) -> NDArray[np.int64]:
    """Return the steps of each pair by the first boundary, the present one, and with known noise."""
    rng, (models, size) = np.random.default_rng(seed), p.shape
    sequence, rules = (
        TrialSequence(rng.permutation(size)),
        (Anytime(0.05, margin, True), Anytime(0.05, margin)),
    )
    cells, rows, bar = Cells(sequence, np.array([0.0, 1.0]), models), np.arange(models // 2), np.log(20.0)
    reader = PairReader(cells, np.arange(0, models, 2), np.arange(1, models, 2), equivalence=margin)
    a, b = p[::2], p[1::2]
    within, between = (a * (1 - a) + b * (1 - b)).mean(axis=1)[:, None], (a - b).var(axis=1)[:, None]
    found = np.full((3, rows.size), passes * size)
    for start in range(0, passes * size, PIECE):
        stop = min(start + PIECE, passes * size)
        asked = sequence.question(start, stop)
        cells.absorb(np.arange(models), (rng.random((models, stop - start)) < p[:, asked]).astype(np.int64))
        block = reader.read(rows, stop)
        c, t = block.questions.astype(np.float64), np.arange(start + 1.0, stop + 1.0)
        whole, part = np.divmod(np.maximum(t, size), size)
        noise = np.where(c < size, 1.0, (1 - part / size) / whole + part / size / (whole + 1))
        true = between * (1 / c - 1 / size) + within * noise / c
        known = (log_tie_evidence(block.difference, true, margin) >= bar) & (c >= MIN_QUESTIONS)
        won = rules[0].statistic(block, np.zeros(stop - start, dtype=bool)) >= bar
        for way, tied in enumerate((rules[0].tied(block), rules[1].tied(block), known)):
            called = won | tied
            first = np.where(called.any(axis=1), start + called.argmax(axis=1) + 1, passes * size)
            found[way] = np.minimum(found[way], first)
        cells.forget(stop)
        if (found < passes * size).all():
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recorded", type=Path)
    parser.add_argument("--runs", type=int, default=640)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--margin", type=float, default=0.03)
    parser.add_argument("--passes", type=int, default=8)
    options = parser.parse_args()
    recorded, rng = read_recorded([options.recorded]), np.random.default_rng(options.seed)
    chances = np.nan_to_num(recorded.scores())
    chances = chances[(recorded.counts.min(axis=1) > 0) & (chances.mean(axis=1) >= 0.05)]
    means = chances.mean(axis=1)
    apart = np.abs(means[:, None] - means) < options.margin
    near = np.argwhere(np.triu(apart, 1))
    some = near[rng.permutation(len(near))[:16]]
    pairs = some[np.arange(options.runs) % len(some)]
    found = np.concatenate(
        [
            steps_to_a_call(chances[pairs[at : at + BOARD].ravel()], options.margin, options.passes, seed)
            for seed, at in enumerate(range(0, options.runs, BOARD), 1000 * options.seed)
        ],
        axis=1,
    )
    again = rng.integers(options.runs, size=(400, options.runs))
    for name, steps in zip(("first boundary", "present", "noise known"), found, strict=True):
        ratio, resampled = (
            steps.mean() / found[0].mean(),
            steps[again].mean(axis=1) / found[0][again].mean(axis=1),
        )
        print(f"{name:16}{2 * steps.mean():8,.0f} trials a pair: {ratio:.3f} ± {resampled.std():.3f}")


if __name__ == "__main__":
    main()
