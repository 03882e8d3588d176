"""Measure what earlier results of the same models gain for an early ranking: R0 against transfer.

    python benchmarks/priors.py [--replicates 20000] [--seed 0]

The setting is the paper's (section 2.8): eight models and 30 questions; each model is updated by moving the
parameters of its Beta distribution by one. Printed is the gain in Kendall's tau between estimated and true
ranking over no earlier results, after N trials a question, for D earlier trials a question: added to the
uniform prior (``R0``), or through a random effect per model (``transfer``). Exits with 1 when a target is
missed; with fewer replicates than the default the noise may exceed the margin.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scorio.eval._kernels._categories import avg
from scorio.rank import transfer_posterior
from scorio.rank._kendall import tau_b_of_signs
from scorio.study import BetaUpdate, paper_originals
from scorio.study.metrics import pair_signs

DEPTHS = (1, 2, 4, 8, 16)
TRIALS = (1, 2, 3, 5, 10, 20)
REWARDS = np.array([0.0, 1.0])
BLOCK = 1_000
TARGETS = {(8, 1): 0.093, (8, 5): 0.013}
"""Gain of transfer at (depth, trials)."""
TOLERANCE = 0.003
LEAST = -0.001
"""No gain of transfer may be below it."""


def moments(right: NDArray[np.int64], trials: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return avg@N and its standard deviation from right answers per question."""
    return avg(np.stack([trials - right, right], axis=-1), REWARDS)


def gains(replicates: int, seed: int) -> NDArray[np.float64]:
    """Return mean gains, shape (2, depths, trials): of R0 and of transfer."""
    originals, update = paper_originals(seed=1), BetaUpdate()
    total = np.zeros((2, len(DEPTHS), len(TRIALS)))
    for block in range(replicates // BLOCK):
        rng = np.random.default_rng([seed, block])
        p = update.draw(rng, BLOCK, originals.questions)
        truth = pair_signs(p.mean(axis=2))
        earlier = [rng.binomial(depth, np.broadcast_to(originals.p, p.shape)) for depth in DEPTHS]
        for column, trials in enumerate(TRIALS):
            right = rng.binomial(trials, p)
            mean, sigma = moments(right, trials)
            plain = tau_b_of_signs(pair_signs(right.sum(axis=2)), truth)
            for row, (depth, before) in enumerate(zip(DEPTHS, earlier, strict=True)):
                old_mean, old_sigma = moments(before, depth)
                found = transfer_posterior(mean, sigma**2, old_mean, old_sigma**2)
                added = pair_signs((right + before).sum(axis=2))
                total[0, row, column] += (tau_b_of_signs(added, truth) - plain).sum()
                total[1, row, column] += (tau_b_of_signs(pair_signs(found.mu), truth) - plain).sum()
    return total / (replicates // BLOCK * BLOCK)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if options.replicates < BLOCK:
        parser.error(f"--replicates must be at least {BLOCK}")
    found = gains(options.replicates, options.seed)
    print(f"Gain in Kendall's tau, {options.replicates:,} replicates")
    print("          D " + "".join(f"{f'N={trials}':>9}" for trials in TRIALS))
    for name, table in zip(("R0", "transfer"), found, strict=True):
        for depth, row in zip(DEPTHS, table, strict=True):
            print(f"{name:<9}{depth:>3}" + "".join(f"{value:>+9.4f}" for value in row))
    missed = 0
    for (depth, trials), target in TARGETS.items():
        value = found[1, DEPTHS.index(depth), TRIALS.index(trials)]
        missed += value < target - TOLERANCE
        print(f"transfer, D = {depth}, N = {trials}: {value:+.4f} (target {target:+.3f})")
    missed += found[1].min() < LEAST
    print(f"transfer, worst of all D and N: {found[1].min():+.4f} (target at least {LEAST:+.3f})")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
