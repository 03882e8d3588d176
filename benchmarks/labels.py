"""Judges held against labels: false winners of equal models, and the labels that a verdict takes.

    python benchmarks/labels.py [--runs 200] [--only equal,gap]

Two models answer 200 questions in passes. A judge scores every answer; a random share of the questions of a
pass has labels. The bets are those of ``scorio.sequential.labels``, read after every question, and again
from the first question on after each further choice of answers (``shares``): a run that has no winner with
one share gets the next one. A rate of 5 % has the standard error that is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.labels import label_bets

Floats = NDArray[np.float64]

QUESTIONS = 200
NEEDED = float(np.log(20.0))
GRADES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])


@dataclass(frozen=True)
class Judged:
    """The answers of two models, in the order asked: what they are worth, and what the judge says."""

    truth: Floats  # (2, T)
    judge: Floats
    draw: Floats  # (T,): questions below a share have labels

    def bets(self, share: float, *, slope: float | None = None) -> Floats:
        """Return log e-values after every question."""
        label = np.where(self.draw < share, self.truth, np.nan)
        chosen = self.draw < share
        return label_bets(self.judge, label, share, chosen=chosen, slope=slope).log_e()


def judged(
    rng: np.random.Generator,
    passes: int,
    *,
    gap: float = 0.0,
    bias: float = 0.0,
    right: float = 0.95,
    graded: bool = False,
    mean: float = 0.6,
) -> Judged:
    """Draw a run: a judge that is right in a share of answers, and `bias` points too kind to the first."""
    spread = rng.beta(8 * mean, 8 * (1 - mean), QUESTIONS)
    chance = np.clip(spread - spread.mean() + mean + np.array([[gap / 2], [-gap / 2]]), 0.01, 0.99)
    orders = [rng.permutation(QUESTIONS)] * passes
    asked = chance[:, np.concatenate(orders)]
    shape = asked.shape
    if graded:
        truth = rng.binomial(GRADES.size - 1, asked) / (GRADES.size - 1)
        other = rng.choice(GRADES, shape)
        judge = np.where(rng.random(shape) < right, truth, other)
        room = 1.0 - judge[0]
        raised = rng.random(shape[1]) < bias / max(room.mean(), 1e-9)
        judge[0] = np.where(raised, 1.0, judge[0])
    else:
        truth = (rng.random(shape) < asked).astype(float)
        judge = np.where(rng.random(shape) < right, truth, 1.0 - truth)
        wrong = 1.0 - judge[0].mean()
        judge[0] = np.where(rng.random(shape[1]) < bias / wrong, 1.0, judge[0])
    return Judged(truth, judge, rng.random(shape[1]))


def first_call(log_e: Floats) -> float:
    """Return the number of questions after which a winner is called; infinite for none."""
    reached = np.flatnonzero(log_e >= NEEDED)
    return float(reached[0] + 1) if reached.size else np.inf


def false_winners(
    runs: int, seed: int, shares: Sequence[float], passes: int = 5, **judge: float
) -> tuple[float, float, float]:
    """Return shares of runs of equal models with a winner: by one share, by all in turn, by the judge."""
    rng, found = np.random.default_rng(seed), np.zeros(3)
    for _ in range(runs):
        run = judged(rng, passes, **judge)  # type: ignore[arg-type]
        calls = [first_call(run.bets(share)) for share in shares]
        alone = first_call(label_bets(run.judge, run.judge, 1.0).log_e())
        found += np.array([calls[0], min(calls), alone]) < np.inf
    one, several, judge_alone = (found / runs).tolist()
    return one, several, judge_alone


def labels_to_a_winner(
    runs: int, seed: int, share: float, passes: int = 12, **judge: float
) -> tuple[float, float, float, float]:
    """Return median labels of each model with the judge and alone, and shares of runs with that winner."""
    rng, taken = np.random.default_rng(seed), np.empty((runs, 2))
    for number in range(runs):
        run = judged(rng, passes, **judge)  # type: ignore[arg-type]
        bought = np.append(np.cumsum(run.draw < share), np.inf)
        for column, slope in enumerate((None, 0.0)):
            at = first_call(run.bets(share, slope=slope))
            taken[number, column] = bought[int(min(at, bought.size)) - 1]
    medians, ended = np.median(taken, axis=0), np.isfinite(taken).mean(axis=0)
    return float(medians[0]), float(medians[1]), float(ended[0]), float(ended[1])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="equal,gap")
    given = parser.parse_args()
    tables = given.only.split(",")
    if "equal" in tables:
        error = (0.05 * 0.95 / given.runs) ** 0.5
        print(f"Equal models, false winners; {given.runs} runs a row, standard error of 5 %: {error:.1%}")
        print(f"{'answers':<14}{'bias':>6}{'share':>7}{'once':>8}{'in turn':>9}{'judge alone':>13}")
        for number, graded in enumerate((False, True)):
            for bias in (0.0, 0.05, 0.17):
                for share in (0.05, 0.1, 0.3):
                    shares = [share * factor for factor in (1.0, 1.5, 2.0, 3.0)]
                    found = false_winners(given.runs, 10 + number, shares, bias=bias, graded=graded)
                    kind = "graded" if graded else "right/wrong"
                    once, turn, alone = (f"{one:.1%}" for one in found)
                    print(f"{kind:<14}{bias:>6.2f}{share:>7.2f}{once:>8}{turn:>9}{alone:>13}", flush=True)
    if "gap" in tables:
        print(f"Labels of each model to a winner, medians; {given.runs} runs a row")
        heads = ("gap", "judge right", "share", "with judge", "alone", "ratio", "ended")
        print("".join(f"{head:>13}" for head in heads))
        for gap, right in ((0.1, 0.95), (0.1, 0.85), (0.1, 0.5), (0.2, 0.95)):
            for share in (0.05, 0.1, 0.3):
                parts = {"gap": gap, "right": right}
                both, single, *ended = labels_to_a_winner(given.runs, 20, share, _passes(share), **parts)
                reached = " ".join(f"{one:.0%}" for one in ended)
                figures = (gap, right, share, both, single, both / single)
                forms = (".2f", ".2f", ".2f", ".0f", ".0f", ".2f")
                cells = [format(*one) for one in zip(figures, forms, strict=True)]
                print("".join(f"{cell:>13}" for cell in (*cells, reached)), flush=True)


def _passes(share: float) -> int:
    return round(2.5 / share) + 2


if __name__ == "__main__":
    main()
