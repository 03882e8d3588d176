"""The noise of models asked at temperature 0: what their repeated answers leave possible.

A server may flip answers at temperature 0, because batches change the arithmetic. Let d be the chance that
two answers of a model to a question that is drawn at random differ. The variance of one answer is then d/2 at
most, whatever the scores. d is bounded from above by an e-process over repeats, so the limit may be read at
any time.
"""

from dataclasses import replace
from functools import lru_cache
from math import exp, inf, log

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Floats, Integers
from scorio.sequential.moments import ENOUGH_NOISE, PathBlock

SHARES = {0.0: 0.5, 0.2: 0.125, 0.4: 0.125, 0.6: 0.125, 0.8: 0.125}
"""Alternatives to a chance d, as shares of it, with the weights of the mixture: half on no flips at all."""


@lru_cache(maxsize=100_000)
def flip_limit(repeats: float, differing: float, level: float) -> float:
    """Return an upper limit of the chance that two answers differ, which holds at every time.

    Under a chance d, a repeat that differs multiplies the likelihood ratio of the alternative s·d by s, one
    that agrees by (1 − s d)/(1 − d). The mixture over s exceeds 1/level at any time with probability at most
    `level` (Ville's inequality); it grows with d, so the limit is the d at which it does.

    Parameters
    ----------
    repeats, differing : float
        Repeated answers, and those that differ from the answer before.
    level : float
        Chance that the limit is too low at some time.

    Examples
    --------
    >>> round(flip_limit(200, 0, 0.0025), 4), flip_limit(0, 0, 0.0025)
    (0.0324, 1.0)
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2.0
        if _log_evidence(middle, repeats, differing) < -log(level):
            low = middle
        else:
            high = middle
    return high


def _log_evidence(chance: float, repeats: float, differing: float) -> float:
    """Return the logarithm of the mixture of likelihood ratios against a chance."""
    logs = []
    for share, weight in SHARES.items():
        if share == 0.0 and differing:
            continue
        agree = log((1.0 - share * chance) / (1.0 - chance))
        differ = log(share) if differing else 0.0
        logs.append(log(weight) + (repeats - differing) * agree + differing * differ)
    top = max(logs, default=-inf)
    return top + log(sum(exp(value - top) for value in logs))


class Flips:
    """Limits of the noise of some models, kept as their trials come.

    Parameters
    ----------
    models, questions : int
        Number of models and of questions.
    measured : array_like of int
        The models whose noise is limited by their repeats.
    level : float
        Chance that the limit of a model is too low at some time.
    scores : ndarray of float, optional
        The score of each category if scores are numbers: then d is the mean of the squared difference of
        two answers, half of which is the variance of one. The likelihood ratio is convex in such a
        difference, so to count it as so much of a flip is on the safe side.
    """

    def __init__(
        self, models: int, questions: int, measured: ArrayLike, level: float, scores: Floats | None
    ) -> None:
        self._scores = scores
        self.measured = np.zeros(models, dtype=bool)
        self.measured[np.asarray(measured, dtype=np.int64)] = True
        self._level = level
        self._latest = np.full((models, questions), -1, dtype=np.int16)
        self._repeats, self._differing = np.zeros((2, models))
        self._inverse = np.zeros(models)  # Σ 1/n over answered questions
        self.noise = np.zeros(models)
        """Limit of the mean of v/n over answered questions, by model; 0 where it is not limited."""

    def absorb(
        self, models: Integers, questions: Integers, categories: Integers, before: Integers, seen: Floats
    ) -> Floats:
        """Take in answers to different questions, of shape (models, steps); return limits of the mean of v/n.

        `before` are the answers to each question before the step, `seen` the answered questions after it.
        Every second answer is compared with the one before it, so no answer is compared twice.
        """
        limits = np.zeros(categories.shape)
        chosen = self.measured[models]
        if not chosen.any():
            return limits
        rows = models[chosen]
        categories = categories[chosen]
        before = before[chosen]
        present = categories >= 0
        at = (rows[:, None], questions)
        again = present & (before % 2 == 1)
        latest = self._latest[at]
        self._latest[at] = np.where(present, categories, latest)
        repeats = self._repeats[rows, None] + again.cumsum(axis=1)
        apart = latest != categories
        if self._scores is not None:
            apart = (self._scores[latest] - self._scores[categories]) ** 2
        differing = self._differing[rows, None] + (again * apart).cumsum(axis=1)
        gained = 1.0 / (before + 1.0) - np.where(before > 0, 1.0 / np.maximum(before, 1), 0.0)
        inverse = self._inverse[rows, None] + (present * gained).cumsum(axis=1)
        self._repeats[rows], self._differing[rows] = repeats[:, -1], differing[:, -1]
        self._inverse[rows] = inverse[:, -1]
        counts = zip(repeats.ravel().tolist(), differing.ravel().tolist(), strict=True)
        chance = np.array([flip_limit(*count, self._level) for count in counts]).reshape(repeats.shape)
        limits[chosen] = 0.5 * chance * inverse / seen[chosen]
        self.noise[rows] = limits[chosen][:, -1]
        return limits

    def apply(self, models: Integers, sums: Floats, limits: Floats) -> None:
        """Hold the noise w of rows (w, u, G, …) to its limits, which are to be trusted: G is enough."""
        chosen = self.measured[models]
        sums[0, chosen] = np.maximum(sums[0, chosen], limits[chosen])
        sums[2, chosen] = np.maximum(sums[2, chosen], ENOUGH_NOISE)

    def trusted(self, path: PathBlock, models: Integers) -> PathBlock:
        """Return a path of some models with the noise of those that are limited as trusted as before."""
        least = np.where(self.measured[models], ENOUGH_NOISE, 0.0)
        return replace(path, g=np.maximum(path.g, least[:, None]))
