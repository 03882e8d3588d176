"""Many independent pairs of models on one board: with the family ``pair`` they do not touch each other.

``STATISTICAL_SCALE=12`` draws twelve times as many; ``PROMISES_TABLE=FILE`` adds a row for each rate to FILE.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from session_scripts import make_spec

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.simulate import GivenChances, SimulationResult, simulate
from scorio.study import biased_coins

SCALE = int(os.environ.get("STATISTICAL_SCALE", "1"))
"""How many times more runs a night draws than a pull request."""

FALSE_ALARM = 1e-4
"""Probability that a test fails although the rate it watches is exactly at its bound."""

WEIGHTS = {"binary": (0.0, 1.0), "graded": (1.0, -1.0, 0.0), "skewed": (0.0, 20.0, 1.0)}


@dataclass(frozen=True)
class PairSetting:
    """Pairs whose first model is better by `gap`; `shape` is the concentration of question chances.

    Questions are repeated `samples_per_prompt` times in a row after the first pass.
    """

    questions: int
    passes: int
    mean: float
    gap: float = 0.0
    shape: float = 8.0
    outcome: str = "binary"
    pairs: int = 400 * SCALE
    greedy: bool = False
    samples_per_prompt: int = 1

    def chances(self, seed: int) -> NDArray[np.float64]:
        """Return the chances of models 2r and 2r + 1 of each pair r."""
        rng = np.random.default_rng(seed)
        p = np.concatenate(
            [
                biased_coins(
                    (self.mean + self.gap, self.mean),
                    self.questions,
                    seed=rng,
                    concentration=self.shape,
                    correlation=float(rng.choice([0.0, 0.5, 0.9, 1.0])),
                ).p
                for _ in range(self.pairs)
            ]
        )
        if self.outcome == "graded":
            return np.stack([p * p, (1.0 - p) ** 2, 2.0 * p * (1.0 - p)], axis=2)
        if self.outcome == "skewed":
            return np.stack([0.5 - 0.03 * p, 0.06 * p, 0.5 - 0.03 * p], axis=2)
        return p

    def decide(self, seed: int, **stopping: Any) -> SimulationResult:
        """Decide every pair at its own level, with a look after every trial."""
        coins = GivenChances(self.chances(seed))
        return simulate(self.spec(**stopping), coins, 1, seed, in_flight=1, workers=1)

    def spec(self, **stopping: Any) -> SessionSpec:
        """Return what decides every pair at its own level."""
        pairs = tuple((f"m{number}", f"m{number + 1}") for number in range(0, 2 * self.pairs, 2))
        model = {"weights": WEIGHTS[self.outcome], "greedy": self.greedy}
        parts = {"family": "pair", "max_passes": self.passes, "seed": 0, **model, **stopping}
        spec = make_spec(2 * self.pairs, self.questions, goal="pairs", pairs=pairs, **parts)
        return replace(spec, samples_per_prompt=self.samples_per_prompt)


def at_most(count: int, trials: int, rate: float) -> None:
    """Assert a count that trials at `rate` exceed with probability FALSE_ALARM at most."""
    bound = int(scipy.stats.binom.ppf(1.0 - FALSE_ALARM, trials, rate))
    note(count, trials, f"≤ {rate:g}", float(scipy.stats.binom.sf(bound, trials, min(2.0 * rate, 1.0))))
    assert count <= bound


def at_least(count: int, trials: int, rate: float) -> None:
    """Assert a count that trials at `rate` fall below with probability FALSE_ALARM at most."""
    bound = int(scipy.stats.binom.ppf(FALSE_ALARM, trials, rate))
    missing = min(2.0 * (1.0 - rate), 1.0)
    note(count, trials, f"≥ {rate:g}", float(scipy.stats.binom.cdf(bound - 1, trials, 1.0 - missing)))
    assert count >= bound


def note(count: int, trials: int, rate: str, power: float) -> None:
    """Add a row to the table: what was seen, and the chance that twice as many errors fail the test."""
    if path := os.environ.get("PROMISES_TABLE"):
        name = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)").split("/")[-1]
        with Path(path).open("a", encoding="utf-8") as table:
            table.write(f"| {name} | {trials:,} | {rate} | {count / trials:.4f} | {power:.3f} |\n")
