"""Many independent pairs of models on one board: with the family ``pair`` they do not touch each other."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from session_scripts import make_spec

from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.simulate import GivenChances, SimulationResult, simulate
from scorio.study import biased_coins

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
    pairs: int = 400
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


def most(trials: int, rate: float) -> int:
    """Return the largest count that trials at `rate` exceed with probability FALSE_ALARM at most."""
    return int(scipy.stats.binom.ppf(1.0 - FALSE_ALARM, trials, rate))


def least(trials: int, rate: float) -> int:
    """Return the smallest count that `trials` chances at `rate` fall below that rarely."""
    return int(scipy.stats.binom.ppf(FALSE_ALARM, trials, rate))
