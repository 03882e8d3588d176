"""Simulate and draw the figures of docs/statistics.md; print the numbers quoted there.

    .venv/bin/pip install matplotlib
    .venv/bin/python scripts/statistics_figures.py

Everything is seeded. Many pairs are simulated at once: two rows of one table of cells are a pair, so the very
code that decides a run is run here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt

from scorio.sequential.cells import Cells
from scorio.sequential.moments import unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime, ZScore
from scorio.sequential.trial_sequence import TrialSequence

IMAGES = Path(__file__).parents[1] / "docs" / "images"
BLOCK = 500


def chances(pairs: int, questions: int, mean: float, gap: float, rng: np.random.Generator) -> np.ndarray:
    """Return right-answer probabilities, shape (2 pairs, questions); the first of a pair is `gap` better."""
    difficulty = rng.beta(8 * mean, 8 * (1 - mean), size=(pairs, questions))
    difficulty += mean - difficulty.mean(axis=1, keepdims=True)
    rows = np.repeat(difficulty, 2, axis=0)
    rows[0::2] += gap / 2
    rows[1::2] -= gap / 2
    return np.clip(rows, 0.0, 1.0)


def first_calls(
    pairs: int,
    questions: int,
    steps: int,
    *,
    gap: float,
    mean: float = 0.6,
    epsilon: float | None = None,
    rounds: bool = False,
    seed: int,
) -> dict[str, np.ndarray]:
    """Return, per rule, the step of each pair's first call (inf for none)."""
    rng = np.random.default_rng(seed)
    chance = chances(pairs, questions, mean, gap, rng)
    sequence = TrialSequence(np.arange(questions), own=seed if rounds else None)
    cells = Cells(sequence, unit_scores([0, 1]), 2 * pairs)
    reader = PairReader(cells, np.arange(0, 2 * pairs, 2), np.arange(1, 2 * pairs, 2), equivalence=epsilon)
    models, everyone = np.arange(2 * pairs), np.arange(pairs)
    anytime, naive = Anytime(0.05, epsilon), ZScore(1.645)
    at = {name: np.full(pairs, np.inf) for name in ("winner", "tie", "naive")}
    start = 0
    while start < steps:
        stop = int(min(start + BLOCK, steps, sequence.laid_out(0)))
        asked = sequence.questions_of(models, start, stop)
        right = rng.random(asked.shape) < np.take_along_axis(chance, asked, axis=1)
        cells.absorb(models, right.astype(np.int64))
        block = reader.read(everyone, stop)
        complete = sequence.complete(start, stop)  # of the schedule: the naive rule is for it alone
        hits = {
            "winner": anytime.statistic(block, complete) >= np.log(20),
            "tie": anytime.tied(block),
            "naive": naive.statistic(block, complete) >= 1.645,
        }
        for name, hit in hits.items():
            new = hit.any(axis=1) & np.isinf(at[name])
            at[name][new] = start + 1 + hit.argmax(axis=1)[new]
        cells.forget(stop - 1)
        start = stop
        if np.isfinite(np.minimum(at["winner"], at["tie"])).all():
            break
    return at


def style(axes: Any) -> None:
    """Leave out what carries no information."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)


def save(figure: Any, name: str) -> None:
    """Write an SVG without a date, so that the same figures give the same file."""
    figure.tight_layout()
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def peeking() -> None:
    """How often two equal models are called different, by the number of looks."""
    pairs, questions, passes = 1000, 30, 100
    at = first_calls(pairs, questions, passes * questions, gap=0.0, seed=1)
    looks = np.arange(1, passes + 1)
    curves = {
        "z ≥ 1.645 after every pass": at["naive"],
        "anytime, after every trial": at["winner"],
    }
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for (label, steps), colour in zip(curves.items(), ("#c0392b", "#1f6fb2"), strict=True):
        share = (steps[:, None] <= looks * questions + 1).mean(axis=0)  # pass 1 ends after one repeat
        axes.plot(looks, share, label=label, color=colour, lw=2)
        print(
            f"peeking: {label}: {share[0]:.3f}, {share[9]:.3f}, {share[-1]:.3f} after 1, 10, {passes} passes"
        )
    axes.axhline(0.05, color="grey", ls=":", lw=1)
    axes.annotate("promised: 5 %", (passes, 0.06), ha="right", color="grey")
    axes.set(xlabel="passes through 30 questions", ylabel="equal models called different", ylim=(0, None))
    axes.yaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.legend(frameon=False)
    style(axes)
    save(figure, "peeking")


def trials_to_a_call() -> None:
    """How many trials a gap takes."""
    gaps = [0.03, 0.05, 0.08, 0.12, 0.2, 0.3]
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for questions, colour in ((30, "#1f6fb2"), (500, "#2e8b57"), (2000, "#b07d12")):
        medians = []
        for place, gap in enumerate(gaps):
            at = first_calls(
                200, questions, 6000, gap=gap, rounds=questions <= 100, seed=100 * questions + place
            )
            medians.append(np.median(at["winner"]))
        axes.plot(gaps, medians, "o-", label=f"{questions:,} questions", color=colour)
        print(f"trials to a call, M = {questions}:", dict(zip(gaps, medians, strict=True)))
        axes.axhline(questions, color=colour, ls=":", lw=1)
    axes.set(xscale="log", yscale="log", xlabel="true difference", ylabel="median trials of each model")
    axes.set_xticks(gaps, [f"{gap:g}" for gap in gaps])
    axes.minorticks_off()
    axes.legend(frameon=False, title="dotted: one full pass")
    style(axes)
    save(figure, "trials-to-a-call")


def price_of_a_tie() -> None:
    """What an equivalence margin costs when two models are tied, and when they are a little apart."""
    margins = [0.05, 0.07, 0.1, 0.15]
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for share, label, colour in (
        (0.0, "truly equal", "#1f6fb2"),
        (0.5, "apart by half the margin", "#b07d12"),
    ):
        medians = []
        for place, margin in enumerate(margins):
            at = first_calls(
                150, 30, 12_000, gap=share * margin, epsilon=margin, rounds=True, seed=7_000 + place
            )
            medians.append(np.median(np.minimum(at["winner"], at["tie"])))
        axes.plot(margins, medians, "o-", label=label, color=colour)
        print(f"price of a tie, {label}:", dict(zip(margins, medians, strict=True)))
    axes.set(xscale="log", yscale="log", xlabel="equivalence margin ε", ylabel="median trials of each model")
    axes.set_xticks(margins, [f"±{margin:g}" for margin in margins])
    axes.minorticks_off()
    axes.legend(frameon=False, title="30 questions")
    style(axes)
    save(figure, "price-of-a-tie")


def main() -> None:
    """Draw everything."""
    mpl.use("svg")
    mpl.rcParams.update({"font.size": 10, "svg.hashsalt": "adaptive-eval", "svg.fonttype": "none"})
    IMAGES.mkdir(parents=True, exist_ok=True)
    peeking()
    trials_to_a_call()
    price_of_a_tie()


if __name__ == "__main__":
    main()
