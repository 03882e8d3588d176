"""Tests and intervals for one look after a number of trials that was fixed in advance.

None of these may be repeated while trials arrive: looking again and again at a 5 % test finds a difference
between equal models in up to 80 % of runs. For that, use :func:`scorio.sequential.compare`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility, whole
from scorio._arrays import Floats, floats
from scorio._named import Named
from scorio.eval._inputs import Missing, as_array, read_binary, read_categories, read_question_weights
from scorio.sequential._recorded import read_array, read_scores

_DRAWS = 1 << 21
"""Random numbers drawn at once."""


@dataclass(frozen=True, slots=True)
class FixedTest(Named):
    """Result of a test or an interval for one look.

    Parameters
    ----------
    test : str
        Name of the test.
    estimate : float
        Difference A − B of the mean scores, or the mean score of one model.
    low, high : float or None
        Interval at `confidence`; None where the test has none.
    p_value : float or None
        Two-sided, against no difference; None where there is no test.
    standard_error : float or None
        Of the estimate.
    confidence : float
        Level of the interval.
    units : int
        Independent units: questions, clusters, or discordant pairs.
    """

    test: str
    estimate: float
    low: float | None
    high: float | None
    p_value: float | None
    standard_error: float | None
    confidence: float
    units: int

    def __str__(self) -> str:
        """Say the result in a line, and that it is for one look."""
        parts = [f"{self.test}: {self.estimate:+.4f}"]
        if self.low is not None:
            parts.append(f"[{self.low:.4f}, {self.high:.4f}] at {100 * self.confidence:g} %")
        if self.p_value is not None:
            parts.append(f"p = {self.p_value:.3g}")
        return ", ".join(parts) + f" ({self.units} units; for one look)"


def paired_difference(
    A: ArrayLike,
    B: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> FixedTest:
    r"""Test the paired difference of two models' mean scores by Student's t, for one look; with clusters.

    The questions (or clusters) are taken as a random sample and their differences as independent [1]_.

    Parameters
    ----------
    A, B : array_like of int, shape (M, N) or (M,)
        Outcomes 0 and 1, categories with `weights`, or scores from 0 to 1, of the same M questions; the
        number of trials may differ.
    clusters : array_like, shape (M,), optional
        Group of each question whose results may depend on each other, such as its source text.
    confidence : float
        In (0, 1).
    weights : array_like, shape (C + 1,), optional
        Reward of each category; default 0 and 1.
    missing : number or array_like of bool, optional
        Value that marks trials that were not made, or their mask.
    question_weights : array_like, shape (M,), optional
        Weight of each question in the mean scores, with sum 1; default 1/M.

    Returns
    -------
    FixedTest
        Without an interval where all differences are alike, and with the smallest p-value that the signs of
        so many differences can have, 2^(1 - units).

    Raises
    ------
    ValueError
        If an argument is malformed or there are fewer than two questions or clusters.

    Notes
    -----
    With the questions' differences :math:`d_q`, their weights :math:`\omega_q` and mean :math:`\bar d` in
    clusters g of weight :math:`s_g` (one question each by default), the variance of :math:`\bar d` is
    :math:`\sum_g (\sum_{q \in g} \omega_q (d_q - \bar d))^2 / (1 - 2 s_g + S_2)` with
    :math:`S_k = \sum_g s_g^k`, unbiased if all clusters vary alike, and t has :math:`S_2^2/S_4 - 1` degrees
    of freedom. Of equal models, right or wrong with chances .5 and .8, 5 % level, 0.2 to 3.9 % are called
    different at 5 questions and 1.2 to 6.0 % at 8; of 3 to 30 clusters of 1 to 6 questions 0.7 to 5.8 %; of
    tasks of 3 to 200 questions that weigh the same 0 to 4.3 %.

    References
    ----------
    .. [1] Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640.

    Examples
    --------
    >>> A = [[1, 1], [1, 0], [1, 1], [0, 1], [1, 1], [0, 0]]
    >>> B = [[0, 1], [0, 0], [1, 0], [0, 1], [1, 0], [0, 0]]
    >>> result = paired_difference(A, B)
    >>> round(result.estimate, 4), round(result.standard_error, 4), round(result.p_value, 4)
    (0.3333, 0.1054, 0.025)
    """
    from scipy.special import stdtr, stdtrit

    level = credibility(confidence)
    d = _differences(A, B, weights, missing)
    shares = read_question_weights(question_weights, d.size)
    sizes = np.full(d.size, 1.0 / d.size) if shares is None else shares
    estimate = float(d.mean() if shares is None else d @ shares)
    name, sums = "paired difference", sizes * (d - estimate)
    if clusters is not None:
        name += " with clustered standard error"
    sums = _cluster_sums(sums, clusters)
    sizes = _cluster_sums(sizes, clusters)
    _check_units(sums[sizes > 0.0], clusters)
    whole_square = float(sizes @ sizes)
    error = sqrt(float((sums**2 / (1.0 - 2.0 * sizes + whole_square)).sum()))
    freedom = whole_square**2 / float((sizes**4).sum()) - 1.0
    if error <= 1e-12 * abs(estimate):  # rounding
        p = 1.0 if estimate == 0.0 else 2.0 ** (1 - sums.size)
        return FixedTest(name, estimate, None, None, p, 0.0, level, sums.size)
    reach = float(stdtrit(freedom, 0.5 + level / 2.0)) * error
    p = 2.0 * float(stdtr(freedom, -abs(estimate) / error))
    return FixedTest(name, estimate, estimate - reach, estimate + reach, p, error, level, sums.size)


def permutation_test(
    A: ArrayLike,
    B: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    draws: int = 9_999,
    seed: int = 0,
    weights: ArrayLike | None = None,
    missing: Missing = None,
) -> FixedTest:
    """Test the paired difference by flipping the signs of the questions' differences, for one look.

    Exact in finite samples under the hypothesis that the models are exchangeable on every question (or
    cluster). All sign patterns are counted where there are no more than `draws`, else so many are drawn.

    Parameters
    ----------
    A, B, clusters, weights, missing
        As in :func:`paired_difference`.
    draws : int
        Sign patterns to draw.
    seed : int
        Seed of the draws.

    Returns
    -------
    FixedTest
        Without an interval.

    Examples
    --------
    >>> A, B = [[1], [1], [1], [1], [1], [0]], [[0], [0], [0], [0], [0], [0]]
    >>> permutation_test(A, B).p_value
    0.0625
    """
    limit = whole("draws", draws)
    d = _differences(A, B, weights, missing)
    sums = _cluster_sums(d, clusters)
    moved = sums[sums != 0.0]
    observed = abs(moved.sum()) * (1.0 - 1e-12)
    if moved.size < 63 and 1 << moved.size <= limit:
        patterns = (np.arange(1 << moved.size)[:, None] >> np.arange(moved.size)) & 1
        p = float((np.abs((2 * patterns - 1) @ moved) >= observed).mean())
    else:
        rng, extreme = np.random.default_rng(seed), 1
        for at in _pieces(limit, moved.size):
            signs = 2 * rng.integers(0, 2, (at.stop - at.start, moved.size), dtype=np.int8) - 1
            extreme += int((np.abs(signs @ moved) >= observed).sum())
        p = extreme / (limit + 1)
    return FixedTest("permutation test", float(d.mean()), None, None, p, None, 0.95, sums.size)


def mcnemar(A: ArrayLike, B: ArrayLike) -> FixedTest:
    """Test two models with one binary trial a question, for one look: exact test of the discordant questions.

    Parameters
    ----------
    A, B : array_like of int, shape (M,) or (M, 1)
        Outcomes 0 and 1 of the same M questions, one trial each.

    Returns
    -------
    FixedTest
        `units` is the number of questions that exactly one model has right.

    Raises
    ------
    ValueError
        If a model has more than one trial a question.

    References
    ----------
    .. [1] McNemar (1947). Note on the sampling error of the difference between correlated proportions.
       Psychometrika 12, 153-157.

    Examples
    --------
    >>> mcnemar([1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 0, 1]).p_value
    0.0625
    """
    from scipy.stats import binomtest

    columns = []
    for name, R in (("A", A), ("B", B)):
        array = as_array(name, R)
        columns.append(array[:, None] if array.ndim == 1 else array)
        if columns[-1].shape[1:] != (1,):
            raise ValueError(f"{name} must have one trial a question, shape (M,); got shape {array.shape}")
    d = _differences(columns[0], columns[1], None, None)
    for_a, discordant = int((d > 0).sum()), int((d != 0).sum())
    p = float(binomtest(for_a, discordant).pvalue) if discordant else 1.0
    return FixedTest("McNemar test", float(d.mean()), None, None, p, None, 0.95, discordant)


def bootstrap(
    A: ArrayLike,
    B: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    draws: int = 9_999,
    seed: int = 0,
    weights: ArrayLike | None = None,
    missing: Missing = None,
) -> FixedTest:
    """Percentile interval of a mean score, or of a paired difference, by resampling questions; for one look.

    Parameters
    ----------
    A, B, clusters, confidence, weights, missing
        As in :func:`paired_difference`; without `B` the mean score of A.
    draws : int
        Resamples of the questions (or of whole clusters).
    seed : int
        Seed of the resamples.

    Returns
    -------
    FixedTest
        Without a p-value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> result = bootstrap(rng.random((200, 1)) < 0.6)
    >>> round(result.low, 3), round(result.high, 3)
    (0.48, 0.62)
    """
    level, number = credibility(confidence), whole("draws", draws)
    values = _means("A", A, weights, missing) if B is None else _differences(A, B, weights, missing)
    sums = _cluster_sums(values, clusters)
    sizes = _cluster_sums(np.ones(values.size), clusters)
    _check_units(sums, clusters)
    rng, means = np.random.default_rng(seed), np.empty(number)
    for at in _pieces(number, sums.size):
        drawn = rng.integers(0, sums.size, (at.stop - at.start, sums.size))
        means[at] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]).tolist()
    estimate = float(values.mean())
    return FixedTest("bootstrap", estimate, low, high, None, float(means.std()), level, sums.size)


def posterior_interval(
    A: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    confidence: float = 0.95,
    draws: int = 20_000,
    seed: int = 0,
    missing: Missing = None,
) -> FixedTest:
    """Equal-tailed quantile interval of the mean score under Bayes@N's Beta or Dirichlet posterior; one look.

    Each question's chances have a Dirichlet(1 + counts) posterior, a Beta for right and wrong; quantiles of
    their mean are taken from draws. Unlike the normal approximation (:func:`scorio.eval.bayes_ci`) the
    interval is never outside the range of the rewards, and skewed where the score is near its end. The prior
    pulls every question towards the mean reward: with many questions and few trials each, the interval misses
    the score; take :func:`scorio.eval.avg_ci` there.

    Parameters
    ----------
    A : array_like of int, shape (M, N)
        Outcomes 0 and 1, or categories with `weights`.
    weights : array_like, shape (C + 1,), optional
        Reward of each category; default 0 and 1.
    confidence : float
        In (0, 1).
    draws, seed : int
        Draws from the posterior and their seed; a single binary question is exact.
    missing : number, optional
        Value that marks trials that were not made.

    Returns
    -------
    FixedTest
        Without a p-value; the estimate is the posterior mean.

    Examples
    --------
    >>> result = posterior_interval([[1, 1, 1, 1, 0]])
    >>> round(result.low, 4), round(result.high, 4)
    (0.3588, 0.9567)
    """
    level, number = credibility(confidence), whole("draws", draws)
    trials = read_categories(A, weights, None, missing, None)
    alpha = trials.counts + 1.0
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    total = alpha.sum(axis=1)
    chances = alpha / total[:, None]
    value = chances @ trials.w
    spread = (chances @ trials.w**2 - value**2) / (total + 1.0)
    if alpha.shape == (1, 2):
        from scipy.special import betaincinv

        low, high = np.sort(trials.w[0] + np.ptp(trials.w) * betaincinv(alpha[0, 1], alpha[0, 0], tails))
    else:
        rng, means = np.random.default_rng(seed), np.empty(number)
        for at in _pieces(number, alpha.size):
            gammas = rng.standard_gamma(alpha, (at.stop - at.start, *alpha.shape))
            means[at] = (gammas @ trials.w / gammas.sum(axis=2)).mean(axis=1)
        low, high = np.quantile(means, tails)
    error = float(np.sqrt(spread.sum())) / len(alpha)
    return FixedTest(
        "posterior quantiles", float(value.mean()), float(low), float(high), None, error, level, len(alpha)
    )


def _pieces(draws: int, size: int) -> Iterator[slice]:
    """Yield draws of `size` random numbers each, in pieces of at most :data:`_DRAWS`."""
    step = max(1, _DRAWS // size)
    for start in range(0, draws, step):
        yield slice(start, min(start + step, draws))


def _means(name: str, R: ArrayLike, weights: ArrayLike | None, missing: Missing) -> Floats:
    """Return each question's mean reward; a vector has one trial a question."""
    given = read_array(name, R, missing)
    if given.ndim == 1:
        given = given[:, None]
        missing = missing if missing is None or np.ndim(missing) == 0 else np.asarray(missing)[:, None]
    (R,), weights, missing = read_scores({name: given}, weights, missing)
    if weights is None:
        trials = read_binary(R, None, missing, None)
        if np.any(np.asarray(trials.n) == 0):
            raise ValueError(f"{name} must have a trial of every question")
        return trials.correct / floats(trials.n)
    counted = read_categories(R, weights, None, missing, None)
    counted.require_trials(name)
    return np.asarray(counted.counts @ counted.w / counted.counts.sum(axis=1))


def _differences(A: ArrayLike, B: ArrayLike, weights: ArrayLike | None, missing: Missing) -> Floats:
    a, b = _means("A", A, weights, missing), _means("B", B, weights, missing)
    if a.size != b.size:
        raise ValueError(f"A and B must have the same questions; got {a.size} and {b.size}")
    return a - b


def _check_units(sums: Floats, clusters: ArrayLike | None) -> None:
    """Refuse a single unit: nothing says how much it varies."""
    if sums.size < 2:
        kind = "questions" if clusters is None else "clusters"
        raise ValueError(f"there must be at least two {kind}; got {sums.size}")


def _cluster_sums(values: Floats, clusters: ArrayLike | None) -> Floats:
    if clusters is None:
        return values
    labels = np.asarray(clusters)
    if labels.shape != values.shape:
        raise ValueError(f"clusters must have one entry a question ({values.size}); got shape {labels.shape}")
    groups = np.unique(labels, return_inverse=True)[1]
    return floats(np.bincount(groups, weights=values))
