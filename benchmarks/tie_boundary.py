"""Compute the boundary of a tie in a first pass exactly: false ties at the margin, trials of equal models.

    python benchmarks/tie_boundary.py [--alpha 0.05] [--margin 0.08,0.03] [--factors 1,1.03,1.06]

Of right-or-wrong answers to questions drawn from many, differences are −1, 0 and 1, independent, whatever the
questions and the models are: all that matters is ε and the mean square q of a difference. So the chance of
every pair of counts is followed from trial to trial, without simulation, with a look after every trial; what
is called a winner first is no tie. Factors of the variance at the margin are compared. Trials are those of
each of two equal models whose differences have the mean square q.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.evidence import (
    FLOOR,
    MIN_TRIALS,
    TIE_FACTOR,
    log_evidence,
    log_tie_evidence,
    tie_variance,
)

RATIOS = (0.6, 0.8, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
"""q over the margin; at the margin 1 is the least possible: all differences have one sign."""
LEFT = 1e-5
"""Chance of pairs that are not called at which a row ends."""
Floats = NDArray[np.float64]


def tied(
    plus: Floats, minus: Floats, n: int, margin: float, alpha: float, factors: Floats
) -> NDArray[np.bool_]:
    """Return at which counts of differences a tie is called, by factor."""
    d, square = (plus - minus) / n, plus + minus
    variance = np.maximum(square / n**2, FLOOR)
    at_margin = tie_variance(d, variance, (square + 2) / n**2, n, margin) / TIE_FACTOR
    return np.asarray(log_tie_evidence(d, factors[:, None, None] * at_margin, margin) >= -np.log(alpha))


def ends(q: float, gap: float, margin: float, alpha: float, factors: Floats) -> tuple[Floats, Floats]:
    """Return the chance of a tie and the mean trials to a call, by factor."""
    bar, chances = -np.log(alpha), ((q + gap) / 2, (q - gap) / 2)
    steps = round(12 * bar * (q + margin) / margin**2)
    ties, trials = np.zeros((2, factors.size))
    most = [round(p * steps + 8 * (p * steps) ** 0.5) + 12 for p in chances]
    share = np.zeros((factors.size, most[0] + 1, most[1] + 1))
    share[:, 0, 0] = 1.0
    for n in range(1, steps + 1):
        trials += share.sum(axis=(1, 2))
        new = (1 - q) * share
        new[:, 1:] += chances[0] * share[:, :-1]
        new[:, :, 1:] += chances[1] * share[:, :, :-1]
        share = new
        if n < MIN_TRIALS:
            continue
        rows, columns = (
            min(top, round(p * n + 8 * (p * n) ** 0.5) + 12) + 1 for top, p in zip(most, chances, strict=True)
        )
        plus, minus = np.arange(float(rows))[:, None], np.arange(float(columns))
        d, v = (plus - minus) / n, np.maximum((plus + minus) / n**2, FLOOR)
        won = log_evidence(d, v, margin) >= bar
        for at, called in enumerate(tied(plus, minus, n, margin, alpha, factors)):
            some = share[at, :rows, :columns]
            some[won] = 0.0
            ties[at] += some[called].sum()
            some[called] = 0.0
        if share.sum(axis=(1, 2)).max() < LEFT:
            break
    return ties, trials


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--margin", default="0.08,0.03", help="margins, separated by commas")
    parser.add_argument("--factors", default="1,1.03,1.06", help="factors, separated by commas")
    options = parser.parse_args()
    factors = np.array([float(one) for one in options.factors.split(",")])
    print("margin, q: false ties at the margin by factor; trials of a tie")
    for margin in map(float, options.margin.split(",")):
        for ratio in RATIOS:
            q, false = ratio * margin, np.zeros(0)
            if ratio >= 1.0:
                false, _ = ends(q, margin, margin, options.alpha, factors)
            _, trials = ends(q, 0.0, margin, options.alpha, factors)
            shares = " / ".join(f"{one:.2%}" for one in false) or "–"
            costs = " / ".join(f"{one / trials[0]:.3f}" for one in trials[1:])
            print(f"{margin:g}, {q:.4f}:  {shares}   {trials[0]:.0f} / {costs}", flush=True)


if __name__ == "__main__":
    main()
