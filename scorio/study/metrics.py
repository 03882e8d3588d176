"""The metrics a study can rank models by, as integers, so that equal scores compare equal."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import add

import numpy as np
from numpy.typing import NDArray

from scorio._arguments import one_of, powers, spectrum_weights, unit, whole
from scorio.arrays import Floats, Integers, Ints
from scorio.eval._kernels import _bank_metrics
from scorio.eval._kernels._aggregate import Counted
from scorio.rank._ties import rank_groups

_LIMIT = 2**62


def integer_grid(values: Sequence[Fraction], terms: int) -> tuple[Ints, int]:
    """Put non-negative rationals on an integer grid on which sums of `terms` of them fit an int64.

    Parameters
    ----------
    values : sequence of Fraction
        Non-negative values.
    terms : int
        How many of them will be added.

    Returns
    -------
    grid : int64 array
        Integers proportional to `values`; rounded if the exact integers are too long.
    tolerance : int
        Two sums of `terms` entries are equal as rationals only if they differ by at most this much. It is
        0 if the grid is exact; otherwise it is the rounding that `terms` entries can collect.

    Examples
    --------
    >>> from fractions import Fraction
    >>> integer_grid([Fraction(0), Fraction(1, 3), Fraction(1, 2)], 10)
    (array([0, 2, 3]), 0)
    """
    multiple = math.lcm(*(value.denominator for value in values))
    exact = [value.numerator * (multiple // value.denominator) for value in values]
    divisor = math.gcd(*exact) or 1
    exact = [value // divisor for value in exact]
    largest = max(exact)
    if largest * terms < _LIMIT:
        return np.array(exact, dtype=np.int64), 0
    top = _LIMIT // (2 * terms)
    rounded = [(2 * value * top + largest) // (2 * largest) for value in exact]
    return np.array(rounded, dtype=np.int64), terms


def pair_signs(keys: NDArray[np.integer | np.floating], tolerance: float = 0) -> NDArray[np.int8]:
    """Return the sign of ``keys[..., i] - keys[..., j]`` for all pairs i < j; 0 within `tolerance`.

    Examples
    --------
    >>> pair_signs(np.array([3, 1, 3]))
    array([ 1,  0, -1], dtype=int8)
    """
    models = keys.shape[-1]
    signs = np.empty((*keys.shape[:-1], models * (models - 1) // 2), dtype=np.int8)
    start = 0
    for first in range(models - 1):
        # One row of pairs at a time: temporaries of all pairs at once would cost more than the arithmetic.
        fall = keys[..., first, None] - keys[..., first + 1 :]
        stop = start + fall.shape[-1]
        np.subtract(fall > tolerance, fall < -tolerance, out=signs[..., start:stop], dtype=np.int8)
        start = stop
    return signs


def competition_ranks(keys: NDArray[np.integer | np.floating], tolerance: float = 0) -> Ints:
    """Return 1 + the number of models with a higher key, along the last axis.

    Integers stay integers: :func:`scorio.rank.rank_scores` would turn long ones into floats.
    """
    order = np.argsort(-keys, axis=-1, kind="stable")
    descending = np.take_along_axis(keys, order, axis=-1)
    apart = descending[..., :-1] - descending[..., 1:] > tolerance
    return rank_groups(order, apart, "competition").astype(np.int64, copy=False)


_LABELS = {
    "avg": "avg@N",
    "bayes": "Bayes@N",
    "pass_at_k": "Pass@{k}",
    "naive_pass_at_k": "naive Pass@{k}",
    "pass_hat_k": "Pass^{k}",
    "g_pass_at_k_tau": "G-Pass@{k} (tau={tau:g})",
    "mg_pass_at_k": "mG-Pass@{k}",
    "maj_at_k": "Maj@{k}",
    "auc_at_k": "AUC@{k}",
    "threshold_spectrum_at_k": "Spectrum@{k}",
    "geom_at_k": "Geom@{k}",
    "geom_ds_at_k": "Geom-ds@{k}",
    "geo_spectrum_at_k": "GeoSpectrum@{k}",
}

_BLENDS = ("geom_at_k", "geom_ds_at_k", "geo_spectrum_at_k")
"""Metrics with irrational values."""
_REAL_SCALE = 2.0**50
_REAL_TOLERANCE = 256
_CELLS_AT_ONCE = 16_000  # a look-up buffer below malloc's mmap threshold: no page faults on each use


@dataclass(frozen=True, slots=True)
class Metric:
    r"""One metric of binary outcomes, in the form that ranks many models in many replicates.

    Rankings compare **keys**: integers that grow with the score. All metrics but the geometric blends are
    means over questions of a rational function of the number of right answers; their keys are exact if
    numerators fit 62 bits (Pass@8 up to some 2,000 trials), so ties are ties.

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
        Exponents of Pass@k and Pass^k in ``geom_at_k`` and ``geom_ds_at_k``, at least 0.
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

    name: str
    k: int = 1
    tau: float = 0.5
    powers: tuple[float, float] = (0.5, 0.5)
    lam: float = 0.5
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        one_of("name", self.name, _LABELS)
        whole("k", self.k), unit("tau", self.tau), unit("lam", self.lam), powers(*self.powers)
        if min(self.powers) < 0.0:
            raise ValueError(f"powers must be at least 0, got {self.powers!r}")
        if self.name == "threshold_spectrum_at_k":
            spectrum_weights(self.weights or (), self.k)

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
        if self.linear or self.name == "naive_pass_at_k":
            return 1
        return self.k

    def keys(self, correct: Integers, n: int) -> Ints:
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
        if self.linear:
            return np.asarray(correct.sum(axis=-1, dtype=np.int64))
        if self.name in _BLENDS:
            exponents = (self.lam,) if self.name == "geo_spectrum_at_k" else self.powers
            scores: Floats = getattr(_bank_metrics, self.name)(Counted(correct, n), self.k, *exponents)
            return np.rint(scores * _REAL_SCALE).astype(np.int64)
        questions = correct.shape[-1]
        table = _table(self, n, questions)[0]
        rows = correct.reshape(-1, questions)
        keys = np.empty(len(rows), dtype=np.int64)
        step = max(1, _CELLS_AT_ONCE // questions)
        for start in range(0, len(rows), step):
            # einsum adds short int64 rows about three times as fast as sum(axis=1).
            looked_up = np.take(table, rows[start : start + step], mode="clip")
            keys[start : start + step] = np.einsum("ij->i", looked_up)
        return keys.reshape(correct.shape[:-1])

    def tolerance(self, n: int, questions: int) -> int:
        """Return the difference up to which two keys mean the same score; 0 if keys are exact."""
        if self.linear:
            return 0
        if self.name in _BLENDS:
            return _REAL_TOLERANCE
        return _table(self, n, questions)[1]


@lru_cache(maxsize=4096)
def _table(metric: Metric, n: int, questions: int) -> tuple[Ints, int]:
    """Return the integer score of c = 0..n right answers out of n, and the tolerance of a sum."""
    if n < metric.first:
        raise ValueError(f"n must be at least {metric.first} for {metric.label}, got {n!r}")
    if metric.name == "naive_pass_at_k":
        values = [1 - Fraction(n - c, n) ** metric.k for c in range(n + 1)]
    else:
        score = _SCORES[metric.name]
        values = _expected([Fraction(score(metric, right)) for right in range(metric.k + 1)], n)
    table, tolerance = integer_grid(values, questions)
    table.setflags(write=False)
    return table, tolerance


def _expected(scores: list[Fraction], n: int) -> list[Fraction]:
    """Return the mean score of k of n trials, drawn without replacement, for c = 0..n right ones."""
    k = len(scores) - 1
    unit = math.lcm(*(score.denominator for score in scores))
    whole_scores = [int(score * unit) for score in scores]
    pascal = [[1, *[0] * k]]
    for row in range(n):
        pascal.append([1, *map(add, pascal[row], pascal[row][1:])])
    values = []
    for right, wrong in zip(pascal, reversed(pascal), strict=True):
        ways = sum(map(math.prod, zip(whole_scores, right, reversed(wrong), strict=True)))
        values.append(Fraction(ways, pascal[n][k] * unit))
    return values


def _spectrum(metric: Metric, right: int) -> Fraction:
    weights = (metric.weights or ())[:right]
    return sum((Fraction(repr(float(weight))) for weight in weights), Fraction(0))


def _area(metric: Metric, right: int) -> Fraction:
    """Return the trapezoidal mean of Pass@1 .. Pass@k of k trials, `right` of them right."""
    k = metric.k
    passed = [1 - Fraction(math.comb(k - right, j), math.comb(k, j)) for j in range(1, k + 1)]
    if k == 1:
        return passed[0]
    return (sum(passed, Fraction(0)) - (passed[0] + passed[-1]) / 2) / (k - 1)


_SCORES: dict[str, Callable[[Metric, int], Fraction | bool]] = {
    "pass_at_k": lambda metric, right: right >= 1,
    "pass_hat_k": lambda metric, right: right == metric.k,
    "maj_at_k": lambda metric, right: 2 * right > metric.k,
    # Not right >= tau * k: 0.7 of 10 is 7, though 0.7 * 10 rounds to more.
    "g_pass_at_k_tau": lambda metric, right: right >= 1 and right / metric.k >= metric.tau,
    "mg_pass_at_k": lambda metric, right: Fraction(2 * max(right - -(-metric.k // 2), 0), metric.k),
    "auc_at_k": _area,
    "threshold_spectrum_at_k": _spectrum,
}
"""Score of k drawn trials by the number of right ones."""


def paper_metrics() -> tuple[Metric, ...]:
    """Return the metrics of the paper's Fig. 1: Bayes@N, Pass@2/4/8, naive Pass@k, G-Pass@k and mG-Pass@k.

    The paper does not say which k its last three lines take; k = 4 here.

    Examples
    --------
    >>> [metric.label for metric in paper_metrics()][:3]
    ['Bayes@N', 'Pass@2', 'Pass@4']
    """
    passes = [Metric("pass_at_k", k=k) for k in (2, 4, 8)]
    others = [Metric(name, k=4) for name in ("naive_pass_at_k", "g_pass_at_k_tau", "mg_pass_at_k")]
    return Metric("bayes"), *passes, *others
