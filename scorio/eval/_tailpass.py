"""TailPass: how probable it is that k new trials of a question reach each of several mean scores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import credibility, numbers, positive, resamples, unit, whole
from scorio.arrays import Floats, Ints, floats

from ._inputs import CategoryTrials, Missing, read_categories, read_prior

Summary: TypeAlias = tuple[Any, Any, Any, Any]

_CELLS = 1 << 26
"""Most probabilities (nodes by outcomes of k trials) that are computed for a question."""
_ROUNDING = 1e-12
"""A mean score reaches a threshold up to this."""


def tailpass(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = None,
    R0: ArrayLike | None = None,
    *,
    eta: float = 1.0,
    prior: ArrayLike = 1.0,
    thresholds: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    missing: Missing = None,
) -> TailPassProfile:
    r"""Posterior of the probabilities that the mean score of `k` new trials reaches each threshold.

    Parameters
    ----------
    R : array_like of int, shape (M, N) or (N,)
        Categories ``0..C``; None with `counts`.
    k : int
        New trials of each question, at least 1.
    w : array_like of float, shape (C + 1,), optional
        Score of each category, in [0, 1]; default 0 and 1.
    R0 : array_like of int, shape (M, D), optional
        Earlier trials of the same questions.
    eta : float
        How much one of them counts, in [0, 1].
    prior : array_like
        Dirichlet parameters of the categories, positive: a number, shape (C + 1,) or (M, C + 1).
    thresholds : array_like, shape (T,), optional
        Mean scores in [0, 1], increasing; default 1/k, 2/k, ..., 1.
    counts, missing
        Unequal numbers of trials, see `scorio.eval`.

    Returns
    -------
    TailPassProfile
        Mean, standard deviation and covariance of the profile, and of scores that follow from it.

    Raises
    ------
    ValueError
        If an argument is malformed or out of range, or `k` and the categories are too many to sum over.

    Notes
    -----
    With :math:`S_q` the mean score of `k` new trials of question q and :math:`\pi_q` its category
    probabilities, the profile is

    .. math:: T(\tau) = \frac{1}{M} \sum_q P(S_q \ge \tau \mid \pi_q).

    Its posterior moments are integrals of polynomials of degree 2k. Gauss quadrature with k + 1 nodes for
    each category but one is exact to rounding; the covariance is a sum of squares. For right and wrong
    answers the first threshold is Pass@k, the last Pass^k. The published package can also share posterior
    draws among several utilities (``sample``), this one cannot.

    References
    ----------
    .. [1] Hariri, Hinczewski, Ayday and Chaudhary (2026). Success Has a Shape: TailPass@k for Repeated
       Sampling Evaluation.

    Examples
    --------
    >>> from scorio.eval import tailpass
    >>> profile = tailpass([[0, 1, 1], [1, 1, 1]], k=4)
    >>> profile.mean.round(4)
    array([0.9571, 0.8429, 0.6429, 0.3571])
    >>> mu, sigma = profile.discovery()
    >>> round(mu, 4), round(sigma, 4)
    (0.9571, 0.061)
    """
    trials = read_categories(R, w, counts, missing, None)
    scores = _unit_scores(trials)
    earlier = read_prior(R0, None, trials, missing)
    base = floats(prior)
    if base.ndim > 2 or not (np.isfinite(base) & (base > 0.0)).all():
        raise ValueError(f"prior must hold positive finite numbers; got {prior!r}")
    try:
        parameters = np.broadcast_to(base, trials.counts.shape) + trials.counts
    except ValueError as error:
        raise ValueError(
            f"prior must be a number or have shape ({scores.size},) or {trials.counts.shape}; "
            f"got shape {base.shape}"
        ) from error
    if earlier is not None:
        parameters = parameters + unit("eta", eta) * earlier
    levels, merged = _merge(scores, parameters)
    return TailPassProfile(resamples(k), _thresholds(k, thresholds), merged, levels)


def tailpass_empirical(
    R: ArrayLike | None,
    k: int,
    w: ArrayLike | None = None,
    *,
    thresholds: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    missing: Missing = None,
) -> Floats:
    """Share of draws of `k` recorded trials, without replacement, whose mean score reaches each threshold.

    Parameters
    ----------
    R, w, thresholds, counts, missing
        As in `tailpass`.
    k : int
        Trials drawn, at most those of every question.

    Returns
    -------
    ndarray, shape (T,)
        Means over questions. For right and wrong answers the first is Pass@k, the last Pass^k.

    Raises
    ------
    ValueError
        As `tailpass`; `k` larger than a question's number of trials.

    Examples
    --------
    >>> from scorio.eval import tailpass_empirical
    >>> tailpass_empirical([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]], 2)
    array([0.95, 0.45])
    """
    from scipy.special import gammaln

    trials = read_categories(R, w, counts, missing, None)
    levels, bank = _merge(_unit_scores(trials), trials.counts)
    drawn = _compositions(trials.draws(k), levels.size)
    events = _events(drawn @ levels / k, _thresholds(k, thresholds))
    total = np.zeros(events.shape[1])
    states, often = np.unique(bank, axis=0, return_counts=True)
    for state, number in zip(states, often.tolist(), strict=True):
        left = np.maximum(state - drawn, 0.0)
        ways = (gammaln(state + 1) - gammaln(drawn + 1) - gammaln(left + 1)).sum(axis=1)
        ways = np.where((drawn <= state).all(axis=1), np.exp(ways - ways.max()), 0.0)
        total += number * (ways @ events) / ways.sum()
    return total / len(bank)


@dataclass(frozen=True, eq=False)
class TailPassProfile:
    """The profile that :func:`tailpass` returns.

    Parameters
    ----------
    k : int
        New trials of each question.
    thresholds : ndarray, shape (T,)
        Mean scores to be reached.
    parameters : ndarray, shape (M, S)
        Dirichlet parameters of each question's posterior, by distinct score.
    scores : ndarray, shape (S,)
        The distinct scores, increasing.
    """

    k: int
    thresholds: Floats
    parameters: Floats
    scores: Floats

    @property
    def mean(self) -> Floats:
        """Posterior mean of the profile, shape (T,)."""
        return np.asarray(self.question_mean.mean(axis=0))

    @property
    def std(self) -> Floats:
        """Posterior standard deviation at each threshold, shape (T,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def question_mean(self) -> Floats:
        """Posterior mean of each question's profile, shape (M, T)."""
        return self._tails[0]

    @property
    def covariance(self) -> Floats:
        """Posterior covariance of the profile, shape (T, T)."""
        return self._tails[1]

    def linear(self, weights: ArrayLike) -> tuple[float, float]:
        """Mean and deviation of the weighted mean over thresholds; `weights` are at least 0 with sum 1."""
        return self._summary(self._payoff(weights))

    def moment(self, lam: float) -> tuple[float, float]:
        """Mean and deviation of E[S^lam], S the mean score of the new trials and `lam` positive."""
        return self._summary(self._bank ** positive("lam", lam))

    def discovery(self) -> tuple[float, float]:
        """Mean and deviation of P(S > 0)."""
        return self._summary((self._bank > 0.0).astype(np.float64))

    def stability(self) -> tuple[float, float]:
        """Mean and deviation of P(all new trials have score 1)."""
        return self._summary((self._bank >= 1.0 - _ROUNDING).astype(np.float64))

    def at_k(self, k: int, *, thresholds: ArrayLike | None = None) -> TailPassProfile:
        """Return the profile of the same posterior for another number of new trials."""
        return TailPassProfile(resamples(k), _thresholds(k, thresholds), self.parameters, self.scores)

    def ci(
        self,
        confidence: float = 0.95,
        *,
        method: Literal["mc", "normal"] = "mc",
        n_draws: int = 4000,
        rng: int | np.random.Generator | None = None,
    ) -> Summary:
        """Return mean, deviation and interval at each threshold, each of shape (T,).

        ``mc`` takes quantiles of posterior draws, ``normal`` a clipped normal approximation of the exact
        moments. The intervals hold threshold by threshold, not all at once.
        """
        values = _events(self._bank, self.thresholds)
        return self._interval(values, self.mean, self.std, confidence, method, n_draws, rng)

    def linear_ci(self, weights: ArrayLike, confidence: float = 0.95, **options: Any) -> Summary:
        """Return mean, deviation and interval of :meth:`linear`; options as in :meth:`ci`."""
        return self._scalar_interval(self._payoff(weights), confidence, **options)

    def moment_ci(self, lam: float, confidence: float = 0.95, **options: Any) -> Summary:
        """Return mean, deviation and interval of :meth:`moment`; options as in :meth:`ci`."""
        return self._scalar_interval(self._bank ** positive("lam", lam), confidence, **options)

    @cached_property
    def _drawn(self) -> Ints:
        return _compositions(self.k, self.scores.size)

    @cached_property
    def _bank(self) -> Floats:
        return self._drawn @ self.scores / self.k

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        return self._moments(_events(self._bank, self.thresholds))

    def _payoff(self, weights: ArrayLike) -> Floats:
        checked = numbers("weights", weights, "one weight a threshold", self.thresholds.size, least=0.0)
        if abs(checked.sum() - 1.0) > _ROUNDING:
            raise ValueError(f"weights must have sum 1; got {checked.sum()}")
        return _events(self._bank, self.thresholds) @ checked

    def _summary(self, payoff: Floats) -> tuple[float, float]:
        means, covariance = self._moments(payoff[:, None])
        return float(means.mean()), math.sqrt(float(covariance[0, 0]))

    def _moments(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the questions' means of `values` of the drawn counts, and the covariance of their mean."""
        states, state_of, often = np.unique(self.parameters, axis=0, return_inverse=True, return_counts=True)
        means = np.empty((len(states), values.shape[1]))
        covariance = np.zeros((values.shape[1],) * 2)
        for row, (state, number) in enumerate(zip(states, often.tolist(), strict=True)):
            shares, weights = _dirichlet_nodes(state, self.k + 1, len(self._drawn))
            at_nodes = self._probabilities(shares) @ values
            means[row] = weights @ at_nodes
            apart = at_nodes - means[row]
            covariance += number * (apart.T * weights) @ apart
        return means[state_of.ravel()], covariance / len(self.parameters) ** 2

    def _probabilities(self, shares: Floats) -> Floats:
        """Return the multinomial probabilities of the drawn counts for each row of category shares."""
        from scipy.special import gammaln

        log_ways = gammaln(self.k + 1) - gammaln(self._drawn + 1).sum(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.maximum(np.log(shares), -1e300)  # 0 log 0 is 0
        return np.asarray(np.exp(logs @ self._drawn.T + log_ways))

    def _draws(self, values: Floats, number: int, rng: Any) -> Iterator[Floats]:
        for parameters in self.parameters:
            yield self._probabilities(rng.dirichlet(parameters, number)) @ values

    def _interval(
        self,
        values: Floats,
        mu: Any,
        sigma: Any,
        confidence: float,
        method: str = "mc",
        n_draws: int = 4000,
        rng: Any = None,
    ) -> Summary:
        from statistics import NormalDist

        level = credibility(confidence)
        if method == "normal":
            reach = NormalDist().inv_cdf(0.5 + level / 2.0) * sigma
            return mu, sigma, np.clip(mu - reach, 0.0, 1.0), np.clip(mu + reach, 0.0, 1.0)
        if method != "mc":
            raise ValueError(f"method must be mc or normal; got {method!r}")
        if whole("n_draws", n_draws) < 2:
            raise ValueError(f"n_draws must be at least 2; got {n_draws}")
        found = sum(self._draws(values, n_draws, np.random.default_rng(rng)), np.zeros(()))
        draws = found / len(self.parameters)
        low, high = np.quantile(draws, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
        return draws.mean(axis=0), draws.std(axis=0, ddof=1), low, high

    def _scalar_interval(self, payoff: Floats, confidence: float, **options: Any) -> Summary:
        mu, sigma = self._summary(payoff)
        found = self._interval(payoff[:, None], np.array([mu]), np.array([sigma]), confidence, **options)
        mu, sigma, low, high = (float(value[0]) for value in found)
        return mu, sigma, low, high


def _unit_scores(trials: CategoryTrials) -> Floats:
    if trials.w.min() < 0.0 or trials.w.max() > 1.0:
        raise ValueError(f"w must have scores in [0, 1]; got {trials.w.tolist()}")
    return trials.w


def _thresholds(k: int, thresholds: ArrayLike | None) -> Floats:
    if thresholds is None:
        return np.arange(1, resamples(k) + 1) / k
    values = numbers("thresholds", thresholds, "increasing mean scores", np.size(thresholds), least=0.0)
    if values[-1] > 1.0 or (np.diff(values) <= 0.0).any():
        raise ValueError(f"thresholds must increase within [0, 1]; got {values.tolist()}")
    return values


def _merge(scores: Floats, columns: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the distinct scores, and the sums of the columns of categories with the same one."""
    levels, level_of = np.unique(scores, return_inverse=True)
    same = level_of[:, None] == np.arange(levels.size)
    return levels, columns @ same.astype(np.float64)


def _events(bank: Floats, thresholds: Floats) -> Floats:
    return (bank[:, None] >= thresholds - _ROUNDING).astype(np.float64)


def _compositions(k: int, parts: int) -> Ints:
    """Return all ways to write k as a sum of `parts` counts in order, shape (ways, parts)."""
    ways = math.comb(k + parts - 1, parts - 1)
    if ways > _CELLS // (k + 1):
        raise ValueError(f"k = {k} trials of {parts} different scores have {ways} outcomes, too many to sum")
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(parts - 1):
        room = k - rows.sum(axis=1)
        start = np.repeat(np.cumsum(room + 1) - room - 1, room + 1)
        rows = np.c_[np.repeat(rows, room + 1, axis=0), np.arange(start.size) - start]
    return np.asarray(np.c_[rows, k - rows.sum(axis=1)])


def _dirichlet_nodes(alpha: Floats, points: int, outcomes: int) -> tuple[Floats, Floats]:
    """Return nodes (shares of categories) and weights that integrate polynomials of degree 2 points - 1.

    A share of what earlier categories leave is a Beta variable, independent of the others.
    """
    if points ** (alpha.size - 1) * outcomes > _CELLS:
        raise ValueError(
            f"k = {points - 1} trials of {alpha.size} different scores are too many to integrate over"
        )
    shares = np.zeros((1, 0))
    weights = np.ones(1)
    left = np.ones(1)
    for category in range(alpha.size - 1):
        nodes, node_weights = _beta_nodes(alpha[category], alpha[category + 1 :].sum(), points)
        taken = left[:, None] * nodes
        shares = np.c_[np.repeat(shares, points, axis=0), taken.ravel()]
        weights = (weights[:, None] * node_weights).ravel()
        left = (left[:, None] * (1.0 - nodes)).ravel()
    return np.c_[shares, left], weights


def _beta_nodes(a: float, b: float, points: int) -> tuple[Floats, Floats]:
    """Gauss quadrature of Beta(a, b) on [0, 1] by the eigenvalues of its Jacobi matrix (Golub and Welsch)."""
    from scipy.linalg import eigh_tridiagonal

    n = np.arange(1.0, points)
    total = a + b + 2.0 * n
    centre = np.r_[a / (a + b), 0.5 + 0.5 * (a - b) * (a + b - 2.0) / (total * (total - 2.0))]
    off_diagonal = np.full(n.size, a * b / ((a + b) ** 2 * (a + b + 1.0)))
    n = n[1:]
    total = total[1:]
    off_diagonal[1:] = n * (n + a - 1.0) * (n + b - 1.0) * (n + a + b - 2.0)
    off_diagonal[1:] /= (total - 1.0) * (total - 2.0) ** 2 * (total - 3.0)
    nodes, vectors = eigh_tridiagonal(centre, np.sqrt(off_diagonal))
    return np.clip(nodes, 0.0, 1.0), vectors[0] ** 2
