"""The metrics a study can rank models by, as tables of integers that keep ties exact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from scorio.study._comparable import integer_grid

MetricName = Literal[
    "avg",
    "bayes",
    "pass_at_k",
    "naive_pass_at_k",
    "pass_hat_k",
    "g_pass_at_k_tau",
    "mg_pass_at_k",
    "maj_at_k",
    "auc_at_k",
    "geom_at_k",
    "geom_ds_at_k",
    "geo_spectrum_at_k",
    "threshold_spectrum_at_k",
]

_LABELS: dict[str, str] = {
    "avg": "avg@N",
    "bayes": "Bayes@N",
    "pass_at_k": "Pass@{k}",
    "naive_pass_at_k": "naive Pass@{k}",
    "pass_hat_k": "Pass^{k}",
    "g_pass_at_k_tau": "G-Pass@{k} (tau={tau:g})",
    "mg_pass_at_k": "mG-Pass@{k}",
    "maj_at_k": "Maj@{k}",
    "auc_at_k": "AUC@{k}",
    "geom_at_k": "Geom@{k}",
    "geom_ds_at_k": "Geom-ds@{k}",
    "geo_spectrum_at_k": "GeoSpectrum@{k}",
    "threshold_spectrum_at_k": "Spectrum@{k}",
}

_REAL_SCALE = 2.0**50
_CELLS_AT_ONCE = 16_000  # a look-up buffer below malloc's mmap threshold: no page faults on each use


@dataclass(frozen=True, slots=True)
class Metric:
    r"""One metric of binary outcomes, in the form that ranks many models in many replicates.

    Every metric here is a mean over questions of a function of the number of right answers, or a product
    of powers of two such means (``geom_ds_at_k``, ``geo_spectrum_at_k``). Rankings compare **keys**:
    integers that grow with the score, exact wherever the score is rational and its numerator fits 62
    bits (Pass@8 does up to some 2,000 trials), so ties are ties.

    Parameters
    ----------
    name : str
        The function of :mod:`scorio.eval`, or ``naive_pass_at_k``, the biased
        :math:`1 - (1 - c/n)^k` of the paper's Fig. 1. ``bayes`` is Bayes@N with the uniform prior, which
        orders models as ``avg`` does (paper, Appendix B).
    k : int
        Samples; ignored by ``avg`` and ``bayes``.
    tau : float
        Threshold of ``g_pass_at_k_tau`` in [0, 1].
    powers : tuple of float
        Exponents of Pass@k and Pass^k in ``geom_at_k`` and ``geom_ds_at_k``.
    lam : float
        The exponent :math:`\lambda` of ``geo_spectrum_at_k`` in [0, 1].
    weights : tuple of float, optional
        The k spectrum weights of ``threshold_spectrum_at_k``.

    Raises
    ------
    ValueError
        On an unknown name or a parameter outside its range.

    Examples
    --------
    >>> Metric("pass_at_k", k=8).label
    'Pass@8'
    >>> import numpy as np
    >>> Metric("pass_at_k", k=2).keys(np.array([[4, 0], [2, 2]]), 5)  # (1 + 0)/2 < (7 + 7)/20
    array([10, 14])
    """

    name: MetricName
    k: int = 1
    tau: float = 0.5
    powers: tuple[float, float] = (0.5, 0.5)
    lam: float = 0.5
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.name not in get_args(MetricName):
            raise ValueError(f"name must be one of {', '.join(get_args(MetricName))}, got {self.name!r}")
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ValueError(f"k must be a positive int, got {self.k!r}")
        if not 0 <= self.tau <= 1:
            raise ValueError(f"tau must lie in [0, 1], got {self.tau!r}")
        if not 0 <= self.lam <= 1:
            raise ValueError(f"lam must lie in [0, 1], got {self.lam!r}")
        if not all(power >= 0 and math.isfinite(power) for power in self.powers) or len(self.powers) != 2:
            raise ValueError(f"powers must be two finite numbers of at least 0, got {self.powers!r}")
        if self.name == "threshold_spectrum_at_k":
            self._check_weights()

    def _check_weights(self) -> None:
        weights = self.weights
        if weights is None or len(weights) != self.k:
            raise ValueError(f"weights must be {self.k} numbers (one per threshold), got {weights!r}")
        if not all(weight >= 0 and math.isfinite(weight) for weight in weights):
            raise ValueError(f"weights must be finite and not negative, got {weights!r}")
        if sum(weights) > 1 + 1e-12:
            raise ValueError(f"weights must sum to at most 1, got a sum of {sum(weights)!r}")

    @property
    def label(self) -> str:
        """The metric's name in figures, such as ``Pass@8``."""
        return _LABELS[self.name].format(k=self.k, tau=self.tau)

    @property
    def linear(self) -> bool:
        """Whether the score is the mean of the trials' own scores, so that totals suffice."""
        return self.name in ("avg", "bayes")

    @property
    def first(self) -> int:
        """The smallest number of trials at which the metric is defined (k, or 1 for plug-in metrics)."""
        return 1 if self.linear or self.name == "naive_pass_at_k" else self.k

    def keys(self, correct: NDArray[np.integer], n: int) -> NDArray[np.int64]:
        """Return one integer per model that orders models as the metric does.

        Parameters
        ----------
        correct : integer array, shape (..., M)
            Right answers of each question among `n` trials.
        n : int
            Trials per question, at least :attr:`first`.

        Returns
        -------
        int64 array, shape (...)
            Comparable within one `n` and M; differences up to :meth:`tolerance` are ties.
        """
        questions = correct.shape[-1]
        rows = correct.reshape(-1, questions)
        keys = np.empty(len(rows), dtype=np.int64)
        step = max(1, _CELLS_AT_ONCE // questions)
        for start in range(0, len(rows), step):
            keys[start : start + step] = self._row_keys(rows[start : start + step], n)
        return keys.reshape(correct.shape[:-1])

    def tolerance(self, n: int, questions: int) -> int:
        """Return the difference up to which two keys mean the same score; 0 where keys are exact."""
        if self.linear:
            return 0
        if self._two_means:
            return 64
        return _table(self, n, questions)[1]

    @property
    def _two_means(self) -> bool:
        return self.name in ("geom_ds_at_k", "geo_spectrum_at_k")

    def _row_keys(self, rows: NDArray[np.integer], n: int) -> NDArray[np.int64]:
        if self.linear:
            totals: NDArray[np.int64] = rows.sum(axis=1, dtype=np.int64)
            return totals
        if self._two_means:
            return self._product_keys(rows, n)
        return _summed(_table(self, n, rows.shape[1])[0], rows)

    def _product_keys(self, rows: NDArray[np.integer], n: int) -> NDArray[np.int64]:
        """Return the keys of a product of powers of two means, each mean summed exactly."""
        if self.name == "geom_ds_at_k":
            second, (a, b) = Metric("pass_hat_k", k=self.k), self.powers
        else:
            second, (a, b) = Metric("mg_pass_at_k", k=self.k), (self.lam, 1 - self.lam)
        questions = rows.shape[1]
        product = np.ones(len(rows))
        for metric, power in ((Metric("pass_at_k", k=self.k), a), (second, b)):
            table = _table(metric, n, questions)[0]
            largest = max(int(table.max()), 1) * questions
            product *= (_summed(table, rows) / largest) ** power
        return np.rint(product * _REAL_SCALE).astype(np.int64)


def _summed(table: NDArray[np.int64], rows: NDArray[np.integer]) -> NDArray[np.int64]:
    # einsum adds short int64 rows about three times as fast as sum(axis=1); the table fits the first cache.
    looked_up = np.empty(rows.shape, dtype=np.int64)
    np.take(table, rows, out=looked_up, mode="clip")
    total: NDArray[np.int64] = np.einsum("ij->i", looked_up)
    return total


@lru_cache(maxsize=4096)
def _table(metric: Metric, n: int, questions: int) -> tuple[NDArray[np.int64], int]:
    """Return the integer score of c = 0..n right answers out of n, and the tolerance of a sum."""
    if n < metric.first:
        raise ValueError(f"n must be at least {metric.first} for {metric.label}, got {n!r}")
    if metric.name == "geom_at_k":
        passed, unanimous = (
            np.array([float(value) for value in _RATIONAL[name](metric, n)])
            for name in ("pass_at_k", "pass_hat_k")
        )
        values = passed ** metric.powers[0] * unanimous ** metric.powers[1]
        table, tolerance = np.rint(values * _REAL_SCALE).astype(np.int64), 8 * questions
    else:
        table, tolerance = integer_grid(_RATIONAL[metric.name](metric, n), questions)
    table.setflags(write=False)
    return table, tolerance


def _pass_at_k(metric: Metric, n: int) -> list[Fraction]:
    subsets = math.comb(n, metric.k)
    return [1 - Fraction(math.comb(n - c, metric.k), subsets) for c in range(n + 1)]


def _naive_pass_at_k(metric: Metric, n: int) -> list[Fraction]:
    return [1 - Fraction((n - c) ** metric.k, n**metric.k) for c in range(n + 1)]


def _drawn_right(n: int, c: int, k: int) -> list[Fraction]:
    """Return P(j of k draws without replacement are right), j = 0..k."""
    subsets = math.comb(n, k)
    return [Fraction(math.comb(c, j) * math.comb(n - c, k - j), subsets) for j in range(k + 1)]


def _at_least(metric: Metric, n: int, least: int) -> list[Fraction]:
    return [sum(_drawn_right(n, c, metric.k)[least:], Fraction(0)) for c in range(n + 1)]


def _pass_hat_k(metric: Metric, n: int) -> list[Fraction]:
    return _at_least(metric, n, metric.k)


def _g_pass_at_k_tau(metric: Metric, n: int) -> list[Fraction]:
    # Not ceil(tau * k): 0.7 of 10 is 7, though 0.7 * 10 rounds to more.
    least = next(j for j in range(1, metric.k + 1) if j / metric.k >= metric.tau)
    return _at_least(metric, n, least)


def _maj_at_k(metric: Metric, n: int) -> list[Fraction]:
    return _at_least(metric, n, metric.k // 2 + 1)


def _mg_pass_at_k(metric: Metric, n: int) -> list[Fraction]:
    k, majority = metric.k, -(-metric.k // 2)
    return [
        sum((Fraction(2 * (j - majority), k) * drawn[j] for j in range(majority + 1, k + 1)), Fraction(0))
        for drawn in (_drawn_right(n, c, k) for c in range(n + 1))
    ]


def _auc_at_k(metric: Metric, n: int) -> list[Fraction]:
    passed = [_pass_at_k(Metric("pass_at_k", k=j), n) for j in range(1, metric.k + 1)]
    if metric.k == 1:
        return passed[0]
    half = Fraction(1, 2 * (metric.k - 1))
    return [
        half * (2 * sum((row[c] for row in passed), Fraction(0)) - passed[0][c] - passed[-1][c])
        for c in range(n + 1)
    ]


def _threshold_spectrum_at_k(metric: Metric, n: int) -> list[Fraction]:
    weights = [Fraction(repr(float(weight))) for weight in metric.weights or ()]
    reached = [sum(weights[:j], Fraction(0)) for j in range(metric.k + 1)]
    return [
        sum(
            (have * drawn for have, drawn in zip(reached, _drawn_right(n, c, metric.k), strict=True)),
            Fraction(0),
        )
        for c in range(n + 1)
    ]


_RATIONAL: dict[str, Callable[[Metric, int], list[Fraction]]] = {
    "pass_at_k": _pass_at_k,
    "naive_pass_at_k": _naive_pass_at_k,
    "pass_hat_k": _pass_hat_k,
    "g_pass_at_k_tau": _g_pass_at_k_tau,
    "mg_pass_at_k": _mg_pass_at_k,
    "maj_at_k": _maj_at_k,
    "auc_at_k": _auc_at_k,
    "threshold_spectrum_at_k": _threshold_spectrum_at_k,
}


def paper_metrics() -> tuple[Metric, ...]:
    """Return the metrics of the paper's Fig. 1: Bayes@N, Pass@2/4/8, naive Pass@k, G-Pass@k and mG-Pass@k.

    The paper does not say which k its last three lines take; k = 4 here.

    Examples
    --------
    >>> [metric.label for metric in paper_metrics()][:3]
    ['Bayes@N', 'Pass@2', 'Pass@4']
    """
    return (
        Metric("bayes"),
        Metric("pass_at_k", k=2),
        Metric("pass_at_k", k=4),
        Metric("pass_at_k", k=8),
        Metric("naive_pass_at_k", k=4),
        Metric("g_pass_at_k_tau", k=4, tau=0.5),
        Metric("mg_pass_at_k", k=4),
    )
