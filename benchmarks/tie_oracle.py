"""What a tie could save if the noise of every question were known, while winners are called as they are.

    python benchmarks/tie_oracle.py RECORDED.npz [--runs 640] [--seed 1] [--margin 0.03] [--passes 8]

Pairs within the margin of recorded means, or boards, along the schedule, a look after every trial, by the
readers and the rule of a run. "noise known" ends at the same winners, and at ties by the true variance of the
difference.
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

AT_ONCE = 128
"""Models that share an order of the questions, and array operations."""
PIECE = 400


def trials_of_boards(
    p: NDArray[np.float64], size: int, margin: float, passes: int, seed: int
) -> NDArray[np.int64]:
    """Return the trials of boards by the first boundary, the present one, and with known noise."""
    rng, (models, questions) = np.random.default_rng(seed), p.shape
    sequence, rules = (
        TrialSequence(rng.permutation(questions)),
        (Anytime(0.05, margin, True), Anytime(0.05, margin)),
    )
    first, second = (
        np.concatenate([start + one for start in range(0, models, size)]) for one in np.triu_indices(size, 1)
    )
    cells, rows, bar = Cells(sequence, np.array([0.0, 1.0]), models), np.arange(first.size), np.log(20.0)
    reader = PairReader(cells, first, second, equivalence=margin)
    a, b = p[first], p[second]
    within, between = (a * (1 - a) + b * (1 - b)).mean(axis=1)[:, None], (a - b).var(axis=1)[:, None]
    steps = passes * questions
    won, tied = np.empty((rows.size, steps), dtype=np.float32), np.full((3, rows.size), steps)
    for start in range(0, steps, PIECE):
        stop = min(start + PIECE, steps)
        asked = sequence.question(start, stop)
        cells.absorb(np.arange(models), (rng.random((models, stop - start)) < p[:, asked]).astype(np.int64))
        block = reader.read(rows, stop)
        c, t = block.questions.astype(np.float64), np.arange(start + 1.0, stop + 1.0)
        whole, part = np.divmod(np.maximum(t, questions), questions)
        noise = np.where(c < questions, 1.0, (1 - part / questions) / whole + part / questions / (whole + 1))
        true = between * (1 / c - 1 / questions) + within * noise / c
        known = (log_tie_evidence(block.difference, true, margin) >= bar) & (c >= MIN_QUESTIONS)
        won[:, start:stop] = rules[0].statistic(block, np.zeros(stop - start, dtype=bool))
        for way, called in enumerate((rules[0].tied(block), rules[1].tied(block), known)):
            at = np.where(called.any(axis=1), start + called.argmax(axis=1), steps)
            tied[way] = np.minimum(tied[way], at)
        cells.forget(stop)
    won = np.maximum.accumulate(won, axis=1)
    pairs = size * (size - 1) // 2
    found = np.zeros((3, models // size), dtype=np.int64)
    for board in range(models // size):
        here = slice(board * pairs, (board + 1) * pairs)
        for way in range(3):
            ends = decided(won[here], tied[way, here])
            for model in range(board * size, (board + 1) * size):
                theirs = (first[here] == model) | (second[here] == model)
                found[way, board] += min(int(ends[theirs].max()) + 1, steps)
    return found


def decided(won: NDArray[np.float32], tied: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the step at which each pair of a board is decided, winners by Holm."""
    pairs, steps = won.shape
    ends, winners = np.full(pairs, steps), 0
    while True:
        level = np.log(20.0 * max(pairs - winners, 1))
        wins = np.array([np.searchsorted(one, level) for one in won])
        free = ends == steps
        at = np.where(free, np.minimum(wins, tied), steps)
        now = at.min()
        if now >= steps:
            return ends
        ends[at == now] = now
        winners += int((wins[at == now] <= now).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recorded", type=Path)
    parser.add_argument("--runs", type=int, default=640)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--margin", type=float, default=0.03)
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--models", type=int, default=2, help="of a board; 2: pairs within the margin")
    options = parser.parse_args()
    recorded, rng = read_recorded([options.recorded]), np.random.default_rng(options.seed)
    chances = np.nan_to_num(recorded.scores())
    chances = chances[(recorded.counts.min(axis=1) > 0) & (chances.mean(axis=1) >= 0.05)]
    means, size = chances.mean(axis=1), options.models
    if size == 2:
        near = np.argwhere(np.triu(np.abs(means[:, None] - means) < options.margin, 1))
        some = near[rng.permutation(len(near))[:16]]
    else:
        some = np.array([rng.permutation(means.size)[:size] for _ in range(16)])
    boards, share = some[np.arange(options.runs) % len(some)], AT_ONCE // size
    found = np.concatenate(
        [
            trials_of_boards(
                chances[boards[at : at + share].ravel()], size, options.margin, options.passes, seed
            )
            for seed, at in enumerate(range(0, options.runs, share), 1000 * options.seed)
        ],
        axis=1,
    )
    again = rng.integers(options.runs, size=(400, options.runs))
    for name, steps in zip(("first boundary", "present", "noise known"), found, strict=True):
        ratio, resampled = (
            steps.mean() / found[0].mean(),
            steps[again].mean(axis=1) / found[0][again].mean(axis=1),
        )
        shown = f"{ratio:.3f} ± {resampled.std():.3f}"
        print(f"{name:16}{steps.mean():8,.0f} trials a {'pair' if size == 2 else 'board'}: {shown}")


if __name__ == "__main__":
    main()
