"""Means and deviations of many runs at once: over replicates, and of Bayes@N."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mean_and_error(
    total: NDArray[np.float64], squares: NDArray[np.float64], number: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return means and their standard errors from sums and sums of squares of `number` >= 2 values."""
    mean = total / number
    variance = np.maximum(squares / number - mean**2, 0) * number / (number - 1)
    return mean, np.sqrt(variance / number)


def posterior(correct: NDArray[np.integer], n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return :math:`\mu` and :math:`\sigma` of Bayes@N with the uniform prior.

    For 0/1 outcomes the paper's Eq. 15 is a mean of Beta(1 + c, 1 + n - c) posteriors.

    Parameters
    ----------
    correct : int array, shape (..., M)
        Right answers of each question among `n` trials.
    n : int
        Trials per question.

    Returns
    -------
    mu, sigma : float arrays, shape (...)
    """
    total, questions = n + 2, correct.shape[-1]
    mu = (correct.sum(axis=-1, dtype=np.int64) + questions) / (questions * total)
    products = ((correct + 1) * (n + 1 - correct)).sum(axis=-1, dtype=np.int64)
    return mu, np.sqrt(products / (total + 1)) / (questions * total)
