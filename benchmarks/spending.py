"""Tokens for equal precision, by what a run spends: trials (along the schedule, in rounds) or tokens.

Models, chances and costs are those of recorded trials: an npz file with `R` (L, M, N), 1 for right, 0 for
wrong and -1 for no trial, and `tokens` of the same shape (not a number where unknown). A cell's chance is the
empirical-Bayes mean of its trials, and an answer costs what one of them did, drawn at random. Precision is
the variance that the run itself states; the last columns compare it with the errors, and these with 0.

    python benchmarks/spending.py --replay mcpmark.npz
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.cells import Cells
from scorio.sequential.moments import fit_prior, unit_scores
from scorio.sequential.trial_sequence import TrialSequence

Floats = NDArray[np.float64]
WAYS = {"schedule": (False, False), "rounds, trials": (True, False), "rounds, tokens": (True, True)}
PASSES = (4, 8, 16)
"""Passes of the schedule, the variance of whose answers is wanted."""


def recorded(path: Path, least: float) -> tuple[Floats, Floats]:
    """Return chances (L, M) and costs (L, M, N) of the models whose mean is at least `least`."""
    with np.load(path) as file:
        right, tokens = file["R"].astype(float), file["tokens"]
    used = (right >= 0.0).all(axis=(1, 2)) & (right.mean(axis=(1, 2)) >= least)
    right, tokens = right[used], tokens[used]
    tokens = np.where(np.isnan(tokens), np.nanmean(tokens, axis=(1, 2), keepdims=True), tokens)
    trials, sums = np.full(right.shape[:2], right.shape[2]), right.sum(axis=2)
    return fit_prior(trials, sums, sums, 0.5, 0.5)[:, None].mean(trials, sums), tokens


def run(chances: Floats, tokens: Floats, way: str, seed: int) -> tuple[Floats, Floats]:
    """Return tokens of models up to each of :data:`PASSES`, and error over standard error at the end."""
    (in_rounds, by_cost), rng = WAYS[way], np.random.default_rng(seed)
    size, models = chances.shape[1], np.arange(len(chances))
    sequence = TrialSequence(rng.permutation(size), own=seed if in_rounds else None)
    cells, spent, step = Cells(sequence, unit_scores((0.0, 1.0)), models.size), np.zeros(models.size), 0
    wanted = (chances * (1.0 - chances)).mean(axis=1)[:, None] / size / np.array(PASSES)
    taken = np.full(wanted.shape, np.inf)
    while np.isinf(taken).any():
        stop = int(min(step + size // 4, *map(sequence.laid_out, models.tolist())))
        sequence.ensure(min(stop, sequence.shared or stop))
        asked = sequence.questions_of(models, step, stop)
        paid = tokens[models[:, None], asked, rng.integers(tokens.shape[2], size=asked.shape)]
        right = rng.random(asked.shape) < chances[models[:, None], asked]
        cells.absorb(models, right.astype(np.int64), paid if by_cost else None)
        cells.forget(stop - 1)
        spent, step, latest = spent + paid.sum(axis=1), stop, cells.latest()
        variance = latest.w[:, 0] / latest.seen[:, 0]
        reached = (variance[:, None] <= wanted) & (step >= 2 * size)
        taken = np.where(reached & np.isinf(taken), spent[:, None], taken)
    return taken, (latest.mean[:, 0] - chances.mean(axis=1)) / np.sqrt(variance)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replay", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=2, help="of all models")
    parser.add_argument("--least", type=float, default=0.05, help="smallest mean of a model")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chances, tokens = recorded(options.replay, options.least)
    print(f"{len(chances)} models, {chances.shape[1]} questions, {options.runs} runs of each")
    print(f"{'passes of the schedule':<24}" + "".join(f"{number:>8}" for number in PASSES))
    for way in WAYS:
        seeds = range(options.seed, options.seed + options.runs)
        found = [run(chances, tokens, way, seed) for seed in seeds]
        taken, errors = (np.stack(each) for each in zip(*found, strict=True))
        plain = tokens.mean(axis=2).sum(axis=1)[:, None] * np.array(PASSES)
        share = (taken / plain).mean(axis=(0, 1))
        bias = errors.mean() / errors.std() * np.sqrt(errors.size)
        print(f"{way:<24}" + "".join(f"{one:>8.3f}" for one in share), end="")
        print(f"   error² over variance {(errors**2).mean():.2f}, mean error {bias:+.1f} standard errors")


if __name__ == "__main__":
    main()
