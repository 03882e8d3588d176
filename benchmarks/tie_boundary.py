"""Compute boundaries of a tie in a first pass exactly: false ties at the margin, and trials of equal models.

    python benchmarks/tie_boundary.py [--alpha 0.05] [--margin 0.08,0.03]

Of right-or-wrong answers to questions drawn from many, differences are −1, 0 and 1, independent, whatever the
questions and the models are: all that matters is ε and the mean square q of a difference. So the chance of
every pair of counts is followed from trial to trial, without simulation, with a look after every trial; what
is called a winner first is no tie. Compared are the first boundary, |D| ≤ ε/2 − V₂ ln(1/α)/ε, the likelihood
ratio with the variance at the margin (editions 2 to 5), and the present one, by the code of a run. Trials are
those of each of two equal models whose differences have the mean square q, by the first boundary; then the
ratios of the others to them.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.contrasts import FLOOR, ContrastBlock, first_pass_margin, tie_block
from scorio.sequential.evidence import MIN_QUESTIONS, MIN_Z2, beyond, log_evidence, log_tie_evidence

RATIOS = (0.6, 0.8, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0)
"""q over the margin; at the margin 1 is the least possible: all differences have one sign."""
LEFT = 1e-5
"""Chance of pairs that are not called at which a row ends."""
Floats = NDArray[np.float64]


def tied(plus: Floats, minus: Floats, n: int, margin: float, alpha: float) -> tuple[NDArray[np.bool_], ...]:
    """Return at which counts of differences each boundary calls a tie."""
    d, square, bar, one = (plus - minus) / n, plus + minus, -np.log(alpha), np.ones(1)
    guarded, questions = (square + 2) / n**2, np.full(square.shape, n)
    block = ContrastBlock(d, np.maximum(square / n**2, FLOOR), guarded, guarded, guarded, questions)
    earlier = tie_block(block, margin, "population", n * one, (d, d), one)
    share = 1.0 - beyond(alpha)
    present = first_pass_margin(earlier, margin, square, 0 * one, 0 * one, 0 * one, one, share)
    ratios = (log_tie_evidence(d, one.margin, margin) >= bar for one in (earlier, present))
    return np.abs(d) <= margin / 2 - guarded * bar / margin, *ratios


def ends(q: float, gap: float, margin: float, alpha: float) -> tuple[Floats, Floats]:
    """Return the chance of a tie and the mean trials to a call, by boundary."""
    bar, chances = -np.log(alpha), ((q + gap) / 2, (q - gap) / 2)
    ties, trials, steps = np.zeros(3), np.zeros(3), round(12 * bar * (q + margin) / margin**2)
    most = [round(p * steps + 8 * (p * steps) ** 0.5) + 12 for p in chances]
    share = np.zeros((3, most[0] + 1, most[1] + 1))
    share[:, 0, 0] = 1.0
    for n in range(1, steps + 1):
        trials += share.sum(axis=(1, 2))
        new = (1 - q) * share
        new[:, 1:] += chances[0] * share[:, :-1]
        new[:, :, 1:] += chances[1] * share[:, :, :-1]
        share = new
        if n < MIN_QUESTIONS:
            continue
        rows, columns = (
            min(top, round(p * n + 8 * (p * n) ** 0.5) + 12) + 1 for top, p in zip(most, chances, strict=True)
        )
        plus, minus = np.arange(float(rows))[:, None], np.arange(float(columns))
        d, v = (plus - minus) / n, np.maximum((plus + minus) / n**2, 1e-15)
        won = (log_evidence(d, v, margin) >= bar) & (d * d > MIN_Z2 * v)
        for at, called in enumerate(tied(plus, minus, n, margin, alpha)):
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
    options = parser.parse_args()
    print(
        "margin, q: false ties at the margin by the first, the earlier, the present boundary; trials of a tie"
    )
    for margin in map(float, options.margin.split(",")):
        for ratio in RATIOS:
            false, _ = (
                ends(ratio * margin, margin, margin, options.alpha) if ratio >= 1.0 else (np.zeros(0), None)
            )
            _, trials = ends(ratio * margin, 0.0, margin, options.alpha)
            shares = " / ".join(f"{one:.2%}" for one in false) or "–"
            costs = " / ".join(f"{one / trials[0]:.3f}" for one in trials[1:])
            print(f"{margin:g}, {ratio * margin:.4f}:  {shares}   {trials[0]:.0f} / {costs}", flush=True)


if __name__ == "__main__":
    main()
