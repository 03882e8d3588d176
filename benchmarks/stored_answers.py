"""What stored answers of finished models save where one model is held against a number.

    python benchmarks/stored_answers.py --data R.npz ... --runs 10

Models are coins with the recorded shares of right answers (arrays `correct` and `count`), a question that
was always or never answered right included. Each run holds one model, picked at random, against a number
below or above its score, with 1, 3 or 10 other models as references and without. A row gives the mean trials
with references over those without, both runs with the same answers, and which share ended by its `--passes`.
The last column holds the model against its own score: the share of runs that call it, which at most 5 % may.
Without `--data`: coins that have nothing to do with each other.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.spec import GoalSpec, ModelSpec, ReferenceSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import GivenChances, simulate

Floats = NDArray[np.float64]

GAPS = (0.05, 0.15)
REFERENCES = (1, 3, 10)
STORED = 20
"""Trials of a reference of each question."""


def chances(path: str) -> Floats:
    """Return the share of right answers of each model to each question, of models from 5 to 95 %."""
    recorded = np.load(path)
    share = recorded["correct"] / np.maximum(recorded["count"], 1)
    mean = share.mean(axis=1)
    return np.asarray(share[(mean >= 0.05) & (mean <= 0.95)])


def unrelated(seed: int = 1) -> Floats:
    """Return chances of models of which none is like another."""
    return np.random.default_rng(seed).beta(1.0, 1.0, size=(12, 100))


def references(chance: Floats, seed: int) -> tuple[ReferenceSpec, ...]:
    """Return finished models with these chances."""
    right = np.random.default_rng([seed, 1]).binomial(STORED, chance)
    counts = np.stack([STORED - right, right], axis=2)
    return tuple(ReferenceSpec(f"old{number}", {"t": table}) for number, table in enumerate(counts))


class Board:
    """Models of which one at a time is held against a number."""

    def __init__(self, chance: Floats, passes: int) -> None:
        self.chance, self.passes = chance, passes
        self.used: dict[str, list[int]] = {"with": [], "without": []}
        self.ended: list[bool] = []

    def hold(self, number: float, model: int, others: NDArray[np.int64], seed: int) -> bool | None:
        """Hold a model against a number; return whether it is called, None if nothing can."""
        if not 0.01 <= number <= 0.99:
            return None
        spec = SessionSpec(
            (ModelSpec("new"),),
            (TaskSpec("t", tuple(map(str, range(self.chance.shape[1])))),),
            goal=GoalSpec("threshold", value=number),
            stopping=StoppingSpec(max_passes=self.passes),
        )
        known = references(self.chance[others], seed)
        coin = GivenChances(self.chance[[model]])
        called = False
        for name, old in {"without": (), "with": known}.items():
            result = simulate(replace(spec, references=old), coin, 1, seed, in_flight=1, workers=1)
            self.used[name].append(int(result.trials.sum()))
            called = bool(result.verdict[0, 0])
        self.ended.append(called)
        return called

    def ratio(self) -> tuple[float, float]:
        """Return the trials with references over those without, and the share that ended."""
        return sum(self.used["with"]) / sum(self.used["without"]), float(np.mean(self.ended))


def main() -> None:
    """Print a row for each set, gap and number of references."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--passes", type=int, default=40)
    options = parser.parse_args()
    boards = {Path(path).stem: chances(path) for path in options.data} or {"unrelated coins": unrelated()}
    print("set, references, gap: trials with them over without; ended; called at its own score")
    for name, chance in boards.items():
        for old in REFERENCES:
            for gap in GAPS:
                board, null = Board(chance, options.passes), Board(chance, min(options.passes, 10))
                wrong = []
                for seed in range(options.runs):
                    rng = np.random.default_rng([seed, old])
                    model, *others = rng.permutation(len(chance))[: old + 1].tolist()
                    score = float(chance[model].mean())
                    side = gap if rng.random() < 0.5 else -gap
                    board.hold(score + side, model, np.array(others), seed)
                    wrong.append(null.hold(score, model, np.array(others), seed))
                ratio, ended = board.ratio()
                false = np.mean([called for called in wrong if called is not None])
                print(f"{name:22} {old:3} {gap:.2f}: {ratio:.2f}  {ended:.0%}  {false:.1%}", flush=True)


if __name__ == "__main__":
    main()
