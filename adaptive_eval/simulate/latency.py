"""How long a simulated answer takes."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

import numpy as np

from adaptive_eval.errors import UsageError

__all__ = ["Latency"]


@dataclass(frozen=True)
class Latency:
    """Lognormal seconds from request to answer, which may depend on the outcome.

    Parameters
    ----------
    median : float or tuple of float
        Median in seconds, of all models or of each, for an answer of the worst category.
    sigma : float
        Standard deviation of the logarithm.
    best_factor : float
        An answer of the best category takes this many times as long; in between by its score.
    tick : float
        Answers that arrive within so many seconds are told together, as a store commits them in groups; 0
        tells them one by one.

    Raises
    ------
    UsageError
        If a value is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> Latency(2.0, sigma=0.0, best_factor=0.5).draw(0, 1.0, np.random.default_rng(1))
    1.0
    """

    median: float | tuple[float, ...] = 1.0
    sigma: float = 0.4
    best_factor: float = 1.0
    tick: float = 0.0

    def __post_init__(self) -> None:
        medians = self.median if isinstance(self.median, tuple) else (self.median,)
        if not medians or not all(isfinite(median) and median > 0 for median in medians):
            raise UsageError(f"median latency must be positive seconds, got {self.median}")
        if not (isfinite(self.sigma) and self.sigma >= 0):
            raise UsageError(f"sigma of the latency must be a number from 0, got {self.sigma}")
        if not (isfinite(self.best_factor) and self.best_factor > 0):
            raise UsageError(f"best_factor of the latency must be positive, got {self.best_factor}")
        if not (isfinite(self.tick) and self.tick >= 0):
            raise UsageError(f"tick of the latency must be seconds from 0, got {self.tick}")

    def draw(self, model: int, score: float, rng: np.random.Generator) -> float:
        """Return the seconds that one answer of `model` with the given unit score takes."""
        median = self.median[model] if isinstance(self.median, tuple) else self.median
        return float(rng.lognormal(log(median) + score * log(self.best_factor), self.sigma))
