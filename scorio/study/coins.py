"""Biased coins as models: known success probabilities with exactly the stated means."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.eval._arguments import positive, unit, whole
from scorio.study.replicates import Seed, block_generator, seed_sequence

PAPER_MEANS = (0.2332, 0.2545, 0.3604, 0.3642, 0.3642, 0.4466, 0.5418, 0.5276, 0.608, 0.6213, 0.7327)
"""Mean success probabilities of the paper's eleven mimics, LLM 1 to 11 (section 2.7)."""


class Coins:
    """Models whose success probabilities are known.

    Parameters
    ----------
    p : float array, shape (L, M)
        Probability of a right answer per model and question.
    means : float array, shape (L,), optional
        The stated means of the rows of `p`. The true ranking is read from these, so that two models
        stated equal are tied whatever the rounding of their rows' means. Default: the rows' means.

    Raises
    ------
    ValueError
        When `p` is not a matrix of probabilities or a row's mean is not the stated one (within 1e-9).

    Examples
    --------
    >>> coins = Coins(np.array([[0.2, 0.6], [0.9, 0.5]]))
    >>> coins.sample(3, seed=1).shape
    (2, 2, 3)
    """

    def __init__(self, p: ArrayLike, means: ArrayLike | None = None) -> None:
        self.p = np.array(p, dtype=np.float64)
        inside = (self.p >= 0) & (self.p <= 1)
        if self.p.ndim != 2 or self.p.size == 0 or not inside.all():
            raise ValueError(f"p must be a matrix, models by questions, of numbers in [0, 1]; got {p!r}")
        rows = self.p.mean(axis=1)
        self.means = rows if means is None else np.array(means, dtype=np.float64)
        if self.means.shape != rows.shape or not np.all(np.abs(self.means - rows) <= 1e-9):
            raise ValueError(f"means must be the means of the rows of p {rows}, got {self.means}")
        self.models, self.questions = self.p.shape
        self.p.setflags(write=False)
        self.means.setflags(write=False)

    def subset(self, models: ArrayLike) -> Coins:
        """Return the coins of the given model numbers, in that order."""
        index = np.asarray(models, dtype=np.intp)
        return Coins(self.p[index], self.means[index])

    def sample(self, trials: int, *, seed: Seed) -> NDArray[np.uint8]:
        """Return one outcome tensor: shape (L, M, N), 1 where the answer is right."""
        rng = block_generator(seed_sequence(seed), 0)
        return (rng.random((*self.p.shape, whole("trials", trials))) < self.p[:, :, None]).astype(np.uint8)


def biased_coins(
    means: ArrayLike = PAPER_MEANS,
    questions: int = 30,
    *,
    seed: Seed,
    concentration: float = 8.0,
    correlation: float = 0.0,
) -> Coins:
    r"""Draw biased coins with given mean success probabilities.

    A model's question probabilities are drawn from
    :math:`\mathrm{Beta}(\kappa\bar p, \kappa(1-\bar p))` and moved to the stated mean by one shift,
    clipped to [0, 1]. The paper states the means but not the distribution of its coins (section 2.7);
    :math:`\kappa = 8` reproduces its figures, and a :math:`\kappa` below about 2 gives questions that are
    nearly always or nearly never solved.

    Parameters
    ----------
    means : array_like, shape (L,)
        Mean success probabilities in [0, 1].
    questions : int
        M.
    seed : int, SeedSequence or Generator
        Of the draw.
    concentration : float
        :math:`\kappa > 0`; larger means questions more alike.
    correlation : float
        Correlation in [0, 1] of the models' question difficulties on the normal scale (a Gaussian copula
        with one common factor): 0, every model has its own hard questions; 1, all models agree.

    Returns
    -------
    Coins

    Raises
    ------
    ValueError
        On an argument outside its range.

    Examples
    --------
    >>> coins = biased_coins([0.3, 0.6], questions=20, seed=1)
    >>> coins.p.mean(axis=1).round(12)
    array([0.3, 0.6])
    """
    stated = np.array(means, dtype=np.float64)
    if stated.ndim != 1 or stated.size == 0 or not np.all((stated >= 0) & (stated <= 1)):
        raise ValueError(f"means must be a list of numbers in [0, 1], got {means!r}")
    whole("questions", questions), positive("concentration", concentration), unit("correlation", correlation)
    rng = block_generator(seed_sequence(seed), 0)
    drawn = np.repeat(stated[:, None], questions, axis=1)
    inner = (stated > 0) & (stated < 1)
    a, b = concentration * drawn[inner], concentration * (1 - drawn[inner])
    drawn[inner] = _correlated_beta(a, b, correlation, rng) if correlation else rng.beta(a, b)
    return Coins(shift_to_means(drawn, stated), stated)


def shift_to_means(p: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row of `p` moved by one number and clipped to [0, 1], so that its mean is as stated.

    The clipped mean grows with the shift, so bisection finds it; 60 halvings of [-1, 1] reach rounding.
    """
    low, high = np.full(len(p), -1.0), np.full(len(p), 1.0)
    for _ in range(60):
        middle = (low + high) / 2
        below = np.clip(p + middle[:, None], 0.0, 1.0).mean(axis=1) < means
        low[below], high[~below] = middle[below], middle[~below]
    shifted: NDArray[np.float64] = np.clip(p + high[:, None], 0, 1)
    return shifted


def _correlated_beta(
    a: NDArray[np.float64], b: NDArray[np.float64], correlation: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    from scipy.special import betaincinv, ndtr

    common, own = rng.standard_normal((1, a.shape[1])), rng.standard_normal(a.shape)
    normal = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    return np.asarray(betaincinv(a, b, ndtr(normal)), dtype=np.float64)
