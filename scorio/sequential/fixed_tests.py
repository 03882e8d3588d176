"""Tests and intervals for one look after a number of trials that was fixed in advance.

None of these may be repeated while trials arrive: looking again and again at a 5 % test finds a difference
between equal models in up to 80 % of runs. For that, use :func:`scorio.sequential.compare`.
"""

from collections.abc import Iterator
from math import sqrt
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility, one_of, whole
from scorio.arrays import AT_ONCE, Floats, Integers, floats
from scorio.eval._inputs import Missing, read_categories, read_question_weights
from scorio.sequential._permutations import p_within_questions
from scorio.sequential._recorded import Range, ReadOutcomes, counted, read_each
from scorio.sequential.evidence import MIN_TRIALS
from scorio.sequential.one_look import WeightedMean, weighted_mean
from scorio.sequential.one_look_result import FixedTest

EQUAL_MEANS = "equal mean scores"
EXCHANGEABLE: Final = "exchangeable on every question"
EQUAL_ON_EVERY: Final = "equal on every question"
Null: TypeAlias = Literal["exchangeable on every question", "equal on every question"]
FEW_UNITS = 50
"""Units below which percentiles of a bootstrap cover less than they say: .86 to .90 at 95 %."""


def paired_difference(
    A: ArrayLike,
    B: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> FixedTest:
    r"""Test the paired difference of two models' mean scores by Student's t, for one look; with clusters.

    The questions (or clusters) are taken as a random sample and their differences as independent [1]_.

    Parameters
    ----------
    A, B : array_like, shape (M, N) or (M,)
        Outcomes 0 and 1, scores from 0 to 1 (or in `range`), or categories with `weights`, of the same M
        questions; the number of trials may differ.
    clusters : array_like, shape (M,), optional
        Group of each question whose results may depend on each other, such as its source text.
    confidence : float
        In (0, 1).
    weights : array_like, shape (C + 1,), optional
        Reward of each category; default 0 and 1.
    range : (float, float), optional
        The least and the greatest score that is possible, for scores that are numbers; default 0 and 1.
    missing : number or array_like of bool, optional
        Value that marks trials that were not made, such as NaN, or their mask.
    question_weights : array_like, shape (M,), optional
        Weight of each question in the mean scores, with sum 1; default 1/M.

    Returns
    -------
    FixedTest
        Without an interval if all differences are alike, and with the smallest p-value that the signs of
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
    level = credibility(confidence)
    given = read_each({"A": A, "B": B}, weights, missing, range)
    found = _mean_of(_differences(given), clusters, question_weights)
    return _of_mean("paired difference", found, level, given.reading, clustered=clusters is not None)


def mean_score(
    A: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
    question_weights: ArrayLike | None = None,
) -> FixedTest:
    """Student's interval of one model's mean score over questions like these, for one look; with clusters.

    The questions (or clusters) are taken as a random sample: the standard error is that of [1]_, for
    questions alone the standard deviation of their means over the root of their number.

    Parameters
    ----------
    A : array_like, shape (M, N) or (M,)
        As in :func:`paired_difference`.
    clusters, confidence, weights, range, missing, question_weights
        As in :func:`paired_difference`, whose notes have the formula with clusters.

    Returns
    -------
    FixedTest
        Without a p-value; without an interval if all questions are alike.

    References
    ----------
    .. [1] Miller (2024). Adding Error Bars to Evals. arXiv:2411.00640.

    Examples
    --------
    >>> A = [[1, 1], [1, 0], [1, 1], [0, 1], [1, 1], [0, 0]]
    >>> alone, together = mean_score(A), mean_score(A, clusters=[0, 0, 0, 1, 1, 2])
    >>> round(alone.standard_error, 4), round(together.standard_error, 4)
    (0.1667, 0.175)
    """
    level = credibility(confidence)
    given = read_each({"A": A}, weights, missing, range)
    found = _mean_of(given.question_means()[0], clusters, question_weights)
    clustered = clusters is not None
    return _of_mean("mean score", found, level, given.reading, clustered=clustered, tested=False)


def unpaired_difference(
    A: ArrayLike,
    B: ArrayLike,
    *,
    clusters: tuple[ArrayLike, ArrayLike] | None = None,
    confidence: float = 0.95,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
) -> FixedTest:
    """Test the difference of two models' mean scores on questions of their own by Welch's t, for one look.

    If both have the same questions, :func:`paired_difference` is narrower. The trials of a single question
    are the units, so that two models can be compared on one task.

    Parameters
    ----------
    A, B : array_like, shape (M, N) or (M,)
        As in :func:`paired_difference`; the questions of A and of B may differ in kind and number.
    clusters : (array_like, array_like), optional
        Group of each question of A, and of B.
    confidence, weights, range, missing
        As in :func:`paired_difference`.

    Returns
    -------
    FixedTest

    References
    ----------
    .. [1] Welch (1947). The generalization of "Student's" problem when several different population variances
       are involved. Biometrika 34, 28-35.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> result = unpaired_difference(rng.random((1, 1000)) < 0.9, rng.random((1, 800)) < 0.8)
    >>> result.low > 0.0, result.units
    (True, 1800)
    """
    level = credibility(confidence)
    parts = [read_each({name: R}, weights, missing, range) for name, R in (("A", A), ("B", B))]
    groups = (None, None) if clusters is None else clusters
    a, b = (_mean_of(_unit_means(part), names, None) for part, names in zip(parts, groups, strict=True))
    square = float(a.error) ** 2, float(b.error) ** 2
    error = sqrt(sum(square))
    share = sum(one**2 / mean.freedom for one, mean in zip(square, (a, b), strict=True))
    freedom = 1.0
    if share:
        freedom = sum(square) ** 2 / share
    found = WeightedMean(a.mean - b.mean, np.asarray(error), freedom, a.units + b.units)
    same = parts[0].reading == parts[1].reading
    reading = f"each {parts[0].reading}" if same else f"{parts[0].reading} and {parts[1].reading}"
    # Units that are all alike say nothing of how much others would vary.
    tested = error > 0.0
    clustered = groups[0] is not None
    return _of_mean("unpaired difference", found, level, reading, clustered=clustered, tested=tested)


def permutation_test(
    A: ArrayLike,
    B: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    null: Null | None = None,
    draws: int = 9_999,
    seed: int = 0,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
) -> FixedTest:
    """Test the paired difference by permutations, for one look: of signs, or of trials within questions.

    Exact in finite samples. If the models are *exchangeable on every question* (or cluster), the sign of each
    question's difference may be flipped; the least p-value is 2^(1 - M). If they are *equal on every
    question*, its trials may be exchanged between the models: this is for few questions with many trials.

    Parameters
    ----------
    A, B, clusters, weights, range, missing
        As in :func:`paired_difference`.
    null : {'exchangeable on every question', 'equal on every question'}, optional
        The hypothesis; by default the second below ten questions with more than one trial each and no
        clusters, else the first. The result names it.
    draws : int
        Permutations to draw if they are too many to count.
    seed : int
        Seed of the draws.

    Returns
    -------
    FixedTest
        Without an interval.

    Raises
    ------
    ValueError
        If an argument is malformed, or `clusters` is given for equality on every question.

    Examples
    --------
    >>> A, B = [[1], [1], [1], [1], [1], [0]], [[0], [0], [0], [0], [0], [0]]
    >>> permutation_test(A, B).p_value
    0.0625

    One task, thirty runs of each model:

    >>> result = permutation_test([[1] * 27 + [0] * 3], [[1] * 15 + [0] * 15])
    >>> round(result.p_value, 5), result.null
    (0.00151, 'equal on every question')
    """
    limit = whole("draws", draws)
    given = read_each({"A": A, "B": B}, weights, missing, range)
    d = _differences(given)
    if null is None:
        repeated = min(model.values.shape[1] for model in given.models) > 1
        # The signs of fewer differences have too few patterns for a small p-value.
        few = d.size < MIN_TRIALS and repeated and clusters is None
        null = EQUAL_ON_EVERY if few else EXCHANGEABLE
    one_of("null", null, get_args(Null))
    units = d.size
    if null == EQUAL_ON_EVERY:
        if clusters is not None:
            raise ValueError("clusters must be None for models that are equal on every question")
        p = p_within_questions(*_known_trials(given), limit, seed)
    else:
        sums = _cluster_sums(d, clusters)
        units = sums.size
        p = _p_of_signs(sums[sums != 0.0], limit, seed)
    return FixedTest(
        "permutation test", float(d.mean()), None, None, p, None, 0.95, units, null, given.reading
    )


def _p_of_signs(moved: Floats, limit: int, seed: int) -> float:
    """Return the p-value of a sum among those with other signs; all are counted up to `limit` of them."""
    observed = abs(moved.sum()) * (1.0 - 1e-12)
    if moved.size < 63 and 1 << moved.size <= limit:
        patterns = (np.arange(1 << moved.size)[:, None] >> np.arange(moved.size)) & 1
        return float((np.abs((2 * patterns - 1) @ moved) >= observed).mean())
    rng = np.random.default_rng(seed)
    extreme = 1
    for at in _pieces(limit, moved.size):
        signs = 2 * rng.integers(0, 2, (at.stop - at.start, moved.size), dtype=np.int8) - 1
        extreme += int((np.abs(signs @ moved) >= observed).sum())
    return extreme / (limit + 1)


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

    given = read_each({"A": A, "B": B})
    for model in given.models:
        if model.values.shape[1] != 1:
            shape = model.values.shape
            raise ValueError(
                f"{model.argument} must have one trial a question, shape (M,); got shape {shape}"
            )
    if given.scale.numbers:
        raise ValueError("A and B must hold outcomes 0 and 1 for mcnemar; paired_difference takes scores")
    d = _differences(given)
    for_a = int((d > 0).sum())
    discordant = int((d != 0).sum())
    p = 1.0
    if discordant:
        p = float(binomtest(for_a, discordant).pvalue)
    name = "McNemar test"
    return FixedTest(
        name, float(d.mean()), None, None, p, None, 0.95, discordant, EXCHANGEABLE, given.reading
    )


def bootstrap(
    A: ArrayLike,
    B: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    confidence: float = 0.95,
    draws: int = 9_999,
    seed: int = 0,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
) -> FixedTest:
    """Percentile interval of a mean score, or of a paired difference, by resampling questions; for one look.

    Below fifty questions (or clusters) such intervals cover less than they say, and are refused.

    Parameters
    ----------
    A, B, clusters, confidence, weights, range, missing
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
    level = credibility(confidence)
    number = whole("draws", draws)
    if B is not None:
        outcomes = {"A": A, "B": B}
    else:
        outcomes = {"A": A}
    given = read_each(outcomes, weights, missing, range)
    if B is None:
        values = given.question_means()[0]
    else:
        values = _differences(given)
    sums = _cluster_sums(values, clusters)
    sizes = _cluster_sums(np.ones(values.size), clusters)
    if sums.size < FEW_UNITS:
        other = "paired_difference"
        if B is None:
            other = "mean_score"
        kind = "questions" if clusters is None else "clusters"
        raise ValueError(
            f"bootstrap needs at least {FEW_UNITS} {kind}: with fewer its interval covers less than it says; "
            f"got {sums.size}. Take {other}, which allows for few"
        )
    rng = np.random.default_rng(seed)
    means = np.empty(number)
    for at in _pieces(number, sums.size):
        drawn = rng.integers(0, sums.size, (at.stop - at.start, sums.size))
        means[at] = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]).tolist()
    estimate = float(values.mean())
    error = float(means.std())
    return FixedTest("bootstrap", estimate, low, high, None, error, level, sums.size, None, given.reading)


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
    interval is never outside the range of the rewards, and skewed if the score is near its end. The prior
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
    level = credibility(confidence)
    number = whole("draws", draws)
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
        rng = np.random.default_rng(seed)
        means = np.empty(number)
        for at in _pieces(number, alpha.size):
            gammas = rng.standard_gamma(alpha, (at.stop - at.start, *alpha.shape))
            means[at] = (gammas @ trials.w / gammas.sum(axis=2)).mean(axis=1)
        low, high = np.quantile(means, tails)
    error = float(np.sqrt(spread.sum())) / len(alpha)
    number = len(alpha)
    estimate = float(value.mean())
    reading = counted(number, "question")
    return FixedTest(
        "posterior quantiles",
        estimate,
        float(low),
        float(high),
        None,
        error,
        level,
        number,
        None,
        reading,
    )


def _pieces(draws: int, size: int) -> Iterator[slice]:
    """Yield draws of `size` random numbers each, in pieces of at most :data:`~scorio.arrays.AT_ONCE`."""
    step = max(1, AT_ONCE // size)
    for start in range(0, draws, step):
        yield slice(start, min(start + step, draws))


def _mean_of(values: Floats, clusters: ArrayLike | None, question_weights: ArrayLike | None) -> WeightedMean:
    """Return the weighted mean of questions with its standard error, see :func:`paired_difference`."""
    shares = read_question_weights(question_weights, values.size)
    if shares is None:
        shares = np.full(values.size, 1.0 / values.size)
    groups = _groups_of(values, clusters)
    sizes = shares if groups is None else np.bincount(groups, weights=shares)
    if np.count_nonzero(sizes) < 2:
        kind = "questions" if clusters is None else "clusters"
        raise ValueError(
            f"there must be at least two {kind}; got {np.count_nonzero(sizes)}. Of a single question take "
            "permutation_test or unpaired_difference, whose units are its trials"
        )
    return weighted_mean(values, shares, groups)


def _of_mean(
    name: str, found: WeightedMean, level: float, reading: str, *, clustered: bool, tested: bool = True
) -> FixedTest:
    """Return the result of a mean; units that are all alike leave it without an interval."""
    low = high = p = null = None
    mean = float(found.mean)
    error = float(found.error)
    reach = float(found.reach(level))
    if error > 0.0:
        low, high = mean - reach, mean + reach
    if clustered:
        name += " with clustered standard error"
    if tested:
        p, null = float(found.p_value), EQUAL_MEANS
    return FixedTest(name, mean, low, high, p, error, level, found.units, null, reading)


def _unit_means(given: ReadOutcomes) -> Floats:
    """Return the questions' mean scores; the scores of all trials of a single question."""
    means = given.question_means()[0]
    if means.size > 1:
        return means
    return given.known_scores()[0][0]


def _known_trials(given: ReadOutcomes) -> tuple[list[Floats], list[Floats]]:
    """Return the scores of both models' trials, one array a question."""
    first, second = given.known_scores()
    return first, second


def _differences(given: ReadOutcomes) -> Floats:
    a, b = given.question_means()
    if a.size != b.size:
        raise ValueError(f"A and B must have the same questions; got {a.size} and {b.size}")
    return a - b


def _groups_of(values: Floats, clusters: ArrayLike | None) -> Integers | None:
    """Return the number of each question's cluster; None without clusters."""
    if clusters is None:
        return None
    labels = np.asarray(clusters)
    if labels.shape != values.shape:
        raise ValueError(f"clusters must have one entry a question ({values.size}); got shape {labels.shape}")
    return np.unique(labels, return_inverse=True)[1]


def _cluster_sums(values: Floats, clusters: ArrayLike | None) -> Floats:
    groups = _groups_of(values, clusters)
    if groups is None:
        return values
    return floats(np.bincount(groups, weights=values))
