"""The ``exact`` rule: an e-value for a pair that holds in finite samples, read at complete passes.

With ξ = d/2 in [−½, ½] the half difference of one trial of each model on one question, and ξ̂ any prediction
of it from earlier passes, ``exp(λ ξ − ψ(λ)(ξ − ξ̂)²) ≤ exp(λ ξ̂)(1 + λ(ξ − ξ̂))`` for λ in [0, 1) and
ψ(λ) = −log(1 − λ) − λ ([1]_, [2]_), so its mean is at most ``exp(λ E ξ)``. Over a complete pass the exponents
E ξ sum to zero when the two models are equal on this benchmark, however unequal they are on single questions:
``exp(λ S − ψ(λ) W)`` is a supermartingale over passes, with S = Σ ξ and W = Σ (ξ − ξ̂)². The e-value averages
it over a grid of λ and both signs of S.

References
----------
.. [1] Fan, Grama, Liu, "Exponential inequalities for martingales with applications", EJP 20 (2015).
.. [2] Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from scorio._arrays import Floats, Ints, floats
from scorio.sequential.cells import Cells
from scorio.sequential.evidence import log_mean

RATES: Final = 0.6 * 1.5 ** -np.arange(14.0)
"""The grid of λ."""


def log_exact_evidence(total: ArrayLike, spread: ArrayLike) -> Floats:
    """Logarithm of the exact e-value.

    Parameters
    ----------
    total : array_like of float
        S, the sum of half differences over complete passes.
    spread : array_like of float
        W, the sum of squared prediction errors.

    Returns
    -------
    ndarray of float
        ``log mean_j ½ (exp(λ_j S − ψ W) + exp(−λ_j S − ψ W))``.

    Examples
    --------
    >>> float(log_exact_evidence(0.0, 0.0))
    0.0
    """
    s = floats(total)[..., None]
    w = floats(spread)[..., None]
    psi = -np.log1p(-RATES) - RATES
    exponents = np.concatenate([RATES * s - psi * w, -RATES * s - psi * w], axis=-1)
    return log_mean(exponents)


class ExactReader:
    """Running S and W of pairs of models on one task.

    Parameters
    ----------
    cells : Cells
        The trials of the models.
    first, second : array_like of int, shape (P,)
        The models of each pair.

    Notes
    -----
    A pass in which either model of a pair misses an answer is left out for that pair, because its
    differences would no longer sum to the benchmark's.
    """

    def __init__(self, cells: Cells, first: ArrayLike, second: ArrayLike) -> None:
        self.cells = cells
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        pairs = self.first.size
        self._passes = np.zeros(pairs, dtype=np.int64)
        self._total = np.zeros(pairs)
        self._spread = np.zeros(pairs)
        self._past = np.zeros((pairs, cells.sequence.questions))

    def read(self, pairs: Ints, start: int, stop: int) -> tuple[Floats, Floats]:
        """Read on to step `stop`; return log e-values and S at steps ``start .. stop-1``.

        The log e-value is minus infinity at steps that do not complete a pass.

        Parameters
        ----------
        pairs : ndarray of int, shape (p,)
            Pairs that have been read up to `start`.
        start, stop : int
            Steps to read.

        Returns
        -------
        tuple of ndarray, each of shape (p, stop − start)
            Log e-values and S.
        """
        log_e = np.full((pairs.size, stop - start), -np.inf)
        totals = np.zeros_like(log_e)
        for column in np.flatnonzero(self.cells.sequence.complete(start, stop)).tolist():
            end = start + column + 1
            # Where questions are asked a few times in a row, as many passes are complete together.
            while self._passes[pairs[0]] < end // self.cells.sequence.questions:
                self._read_pass(pairs, end)
            log_e[:, column] = log_exact_evidence(self._total[pairs], self._spread[pairs])
            totals[:, column] = self._total[pairs]
        return log_e, totals

    def _read_pass(self, pairs: Ints, end: int) -> None:
        """Add the pass that step `end` completes."""
        number = int(self._passes[pairs[0]])
        sequence = self.cells.sequence
        asked = sequence.question(0, end)
        steps = np.flatnonzero(sequence.repeats(0, end) == number)
        questions = asked[steps]
        a = self.cells.categories[self.first[pairs, None], steps]
        b = self.cells.categories[self.second[pairs, None], steps]
        whole = (np.minimum(a, b) >= 0).all(axis=1)
        half = 0.5 * (self.cells.scores[np.maximum(a, 0)] - self.cells.scores[np.maximum(b, 0)])
        expected = self._past[pairs[:, None], questions] / max(number, 1)
        self._total[pairs] += np.where(whole, half.sum(axis=1), 0.0)
        self._spread[pairs] += np.where(whole, ((half - expected) ** 2).sum(axis=1), 0.0)
        self._past[pairs[:, None], questions] += np.where(whole[:, None], half, expected)
        self._passes[pairs] = number + 1
