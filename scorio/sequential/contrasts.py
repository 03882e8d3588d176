"""Contrasts: the difference of two models at equal progress, and a model's own score, with their variances.

Over the c questions both models have answered by step t, with d_q the difference of their running means on
question q, the estimate is D = Σ d_q / c. Its variance goes over, as trials repeat, from the spread of the
d_q between questions to the noise within questions, because the target is the mean over these very questions
(``target="benchmark"``); with ``target="population"`` the questions are a sample themselves and only the
spread between them counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scorio.sequential.cells import PathBlock
from scorio.sequential.evidence import likelihood_variance, margin_variance

Target = Literal["benchmark", "population"]
Floats = NDArray[np.float64]
Ints = NDArray[np.integer]
Noise = tuple[Floats, Floats, Floats, Floats]
"""w and u summed over models, the smaller G, the smaller R."""

KAPPA = 2.0
"""Continuity term: as if two more questions had differed fully."""
SCORE_KAPPA = 4.0
"""The same for a single model's score, whose centred squares follow its mean: with 2, intervals of means near
0.05 to 0.1 and 0.9 missed the truth at some time in up to 6.7 %; with 4, in 3 to 5 %."""
ENOUGH_NOISE = 4.0
"""Σ n v at which the empirical-Bayes noise of a model is trusted."""
TRUST = 8.0
"""Repeated trials at which within- and between-question variance weigh about evenly."""
MANY_REPEATS = 40.0
"""Repeats of a model from which a tie in a first pass takes those of both models together: with a quarter as
many (200 questions), 5.3 % of pairs at the margin were called tied instead of 4.4 %."""
MORE_REPEATS = 0.5
"""Disagreements of two answers to one question that a tie in a first pass counts beyond those seen, where
many were repeated. Without any, 5.0–5.2 % of pairs at the margin were called tied (800 questions, noise known
from 43 repeats), with a half of one 4.0–4.5 %."""
GRADED_MARGIN = 1.02
"""Factor of the variance at the margin in a first pass where scores are graded: without it, 5.2 % of 18,000
pairs at the margin were called tied (2,000 questions, three grades, margin 5 points)."""
LIKELY_LATER = 1.03
"""Factor of the variance by likelihood after a first pass, which bounds the variance at the margin from where
that is larger than :data:`MOST_LATER` times V."""
MOST_LATER = 1.25
FEWER_REPEATS = 6.0
"""The variance at the margin is taken larger by (6/r) V₂ where it is estimated from r repeats, a quarter of
the questions or more: the bound of a tie has no slack. Without it, 5.3 % of 8,000 pairs at the margin were
called tied (200 questions, unrelated models at .5: in passes 2 and 3), with it 4.8 %."""
FEW_CLUSTERS = 3.0
"""The variance at the margin is taken larger by 3/(G − 1) of it where it is estimated from G clusters of
questions. Without it, 5.3 % of 6,000 pairs at the margin were called tied (2,000 questions in groups of 50,
unrelated models), with it 4.4 %."""
FLOOR = 1e-15
"""Smallest variance, so that no division by zero can follow from identical answers."""


@dataclass(frozen=True, slots=True)
class ContrastBlock:
    """Estimates along a piece of the trial sequence; every array has shape (contrasts, steps).

    Parameters
    ----------
    difference : ndarray of float
        D, in unit scores.
    variance : ndarray of float
        V, for calling a winner.
    guarded : ndarray of float
        V₂, the same with κ = 2, for intervals.
    margin : ndarray of float
        The variance that D would have at the equivalence margin, for calling a tie; V₂ where there is none.
    avg_variance : ndarray of float
        Variance of D from the paper's avg@N variances alone; at complete passes D² over it is the paper's z².
    questions : ndarray of int
        c, the questions both have answered.
    """

    difference: Floats
    variance: Floats
    guarded: Floats
    margin: Floats
    avg_variance: Floats
    questions: NDArray[np.int64]

    def _map(self, *others: ContrastBlock, to: Callable[..., NDArray[Any]]) -> ContrastBlock:
        return ContrastBlock(
            *(to(*(getattr(block, name) for block in (self, *others))) for name in self.__slots__)
        )

    def less(self, value: Floats, equivalence: float | None = None) -> ContrastBlock:
        """Return scores held against `value`, of shape (contrasts, 1).

        The variance at the margin grows as that of right-or-wrong answers: p(1 − p) there over p(1 − p) here.
        """
        if equivalence is None:
            return replace(self, difference=self.difference - value)
        here = self.difference * (1.0 - self.difference)
        ends = (np.clip(value - equivalence, 0.0, 1.0), np.clip(value + equivalence, 0.0, 1.0))
        there = np.maximum(*(end * (1.0 - end) for end in ends))
        grown = np.maximum(there / np.maximum(here, self.guarded), 1.0)
        return replace(self, difference=self.difference - value, margin=self.guarded * grown)

    def with_margin(self, margin: Floats) -> ContrastBlock:
        """Return the block with another variance at the margin."""
        rest = (self.avg_variance, self.questions)
        return ContrastBlock(self.difference, self.variance, self.guarded, margin, *rest)

    def take(self, rows: Ints) -> ContrastBlock:
        """Return some contrasts."""
        return self._map(to=lambda array: array[rows])

    def columns(self, columns: Ints) -> ContrastBlock:
        """Return some steps."""
        return self._map(to=lambda array: array[:, columns])

    def append(self, later: ContrastBlock) -> ContrastBlock:
        """Return this block followed by later steps."""
        return self._map(later, to=lambda a, b: np.concatenate([a, b], axis=1))

    def joined(self, others: ContrastBlock) -> ContrastBlock:
        """Return this block with further contrasts at the same steps."""
        return self._map(others, to=lambda a, b: np.concatenate([a, b], axis=0))

    def put(self, rows: Ints, block: ContrastBlock) -> ContrastBlock:
        """Return one-step blocks with the last step of `block` in `rows`."""

        def replaced(array: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
            out = array.copy()
            out[rows, 0] = new[:, -1]
            return out

        return self._map(block, to=replaced)


def contrast_variance(
    square: Floats,
    kappa: float,
    questions: Floats,
    total: int,
    noise: Noise,
    target: Target,
) -> Floats:
    """Variance of the mean of per-question values.

    Parameters
    ----------
    square : ndarray of float
        Q, the sum of squared values over seen questions.
    kappa : float
        Continuity term added to Q.
    questions : ndarray of float
        c, the number of seen questions, at least 1.
    total : int
        M, the number of questions.
    noise : tuple of ndarray
        w (summed over the models), u (summed), G (the smaller), R (the smaller).
    target : {'benchmark', 'population'}
        Whether the questions are the target or a sample.

    Returns
    -------
    ndarray of float
        V of ``STATISTICS.md`` section 5.

    Examples
    --------
    >>> one = np.ones(1)
    >>> noise = (0.5 * one, one, 5 * one, 0 * one)
    >>> contrast_variance(6 * one, 0.0, 15 * one, 30, noise, "benchmark").round(6)
    array([0.026667])
    """
    w, u, g, r = noise
    between = (square + kappa) / (questions * questions)
    if target == "population":
        return np.asarray(np.maximum(between, FLOOR))
    trust = 1.0 - (TRUST / (TRUST + r)) ** 2
    within = np.where(
        g >= ENOUGH_NOISE,
        (1.0 - trust) * between + trust * w / questions,
        np.minimum(between, np.maximum(w, u) / questions),
    )
    # Single answers without noise: while questions are left, they are a sample; then they are known.
    fraction = np.where(np.isinf(r) & (questions < total), 0.0, questions / total)
    return np.asarray(np.maximum((1.0 - fraction) * between + fraction * within, FLOOR))


def score_block(
    path: PathBlock,
    questions: int,
    target: Target = "benchmark",
    spread: tuple[Floats, Floats] | None = None,
    repeat_weight: float = 1.0,
) -> ContrastBlock:
    """Each model's own mean score with its variance, along a piece of its trial sequence.

    The square sum is centred, with a continuity term always: an estimate at 0 or 1 has a variance too.

    Parameters
    ----------
    path : PathBlock
        From :meth:`scorio.sequential.cells.Cells.path` or ``latest``.
    questions : int
        M, the number of questions.
    target : {'benchmark', 'population'}
        Target of the estimate.
    spread : tuple of ndarray, optional
        Of clusters of questions: the squared sums of the centred means of each cluster's questions, and
        G/(G − 1), see :class:`scorio.sequential.pairs.ClusterSums`.
    repeat_weight : float
        As in :class:`scorio.sequential.cells.Cells`.

    Returns
    -------
    ContrastBlock
        `difference` is the mean score.
    """
    seen = np.maximum(path.seen, 1.0)
    centred, stretch = np.maximum(path.square - path.total**2 / seen, 0.0), np.ones(1)
    if spread is not None:
        centred, stretch = spread
    variance = stretch * contrast_variance(
        centred, SCORE_KAPPA, seen, questions, (path.w, path.u, path.g, repeat_weight * path.r), target
    )
    count = path.seen.astype(np.int64)
    return ContrastBlock(path.total / seen, variance, variance, variance, path.u / seen, count)


def single_share(repeats: Floats, questions: Floats) -> Floats:
    """Return how far a difference rests on single answers whose noise is known from repeats of few questions.

    It is 0 without repeats, rises up to :data:`MANY_REPEATS`, and is 0 again where every fourth question
    has one.
    """
    few = np.minimum(np.maximum(1.0 - 4.0 * repeats / questions, 0.0), 1.0)
    return np.asarray(few * np.minimum(repeats / MANY_REPEATS, 1.0))


def pooled_noise(a: PathBlock, b: PathBlock, noise: Noise) -> Noise:
    """Return the noise of a pair's difference in a first pass, both models' repeats taken together.

    Each model's w includes its total variance T once, as if one more repeat had shown it (T/(R + 1)), so that
    few repeats cannot make it too small. A difference needs one such repeat only, and has those of both.
    """
    w, u, g, r = noise
    seen_a, seen_b = np.maximum(a.seen, 1.0), np.maximum(b.seen, 1.0)
    share = single_share(r, np.minimum(seen_a, seen_b))
    for one, seen in ((a, seen_a), (b, seen_b)):
        spread = np.maximum(one.square / seen - (one.total / seen) ** 2, 0.0)
        w = w - 0.5 * share * spread / (one.r + 1.0)
    return np.maximum(w, 0.0), u, g, r * (1.0 + share)


def tie_block(
    block: ContrastBlock,
    equivalence: float,
    target: Target,
    trials: Floats,
    means: tuple[Floats, Floats],
    step: Floats,
    square: Floats | None = None,
    likely: float = 0.0,
    factor: Floats | float = 1.0,
) -> ContrastBlock:
    """Return pairs with the variance that they would have at the margin.

    What is added to V for the margin grows with 1/q², q the variance of a difference of one trial. While most
    questions have one answer of each model, what is seen of q is Q/c: a finite population makes V smaller
    than q/n, but the noise in it comes from the repeats, which few of the differences are part of.

    Parameters
    ----------
    block : ContrastBlock
        The pairs.
    equivalence : float
        Equivalence margin ε in unit scores.
    target : {'benchmark', 'population'}
        Target of the estimate.
    trials : ndarray of float
        Trials of each model of a pair.
    means : tuple of ndarray
        Their scores.
    step : ndarray of float
        Of differences of single trials, see :func:`scorio.sequential.evidence.margin_variance`.
    square : ndarray of float, optional
        Q, where models are asked the same questions. The block's `margin` is then V₂ with the noise of
        :func:`pooled_noise`, which the result shrinks to; without it q is V n throughout.
    likely : float
        How far the variance is bounded by the one for which no difference is as much likelier than the margin
        (:func:`scorio.sequential.evidence.likelihood_variance`), in [0, 1]: near 0 and 100 % the variance at
        the margin is up to twice V, more than the evidence needs.
    factor : float or ndarray of float
        Factor of the result, see :func:`cluster_factor`.
    """
    if target == "population":
        n, variance = np.maximum(block.questions, 1).astype(np.float64), np.minimum(block.variance, 1e6)
    else:
        n = np.maximum(np.where(np.isinf(trials), block.questions, trials), 1.0)
        # A score between 0 and 1 with mean p has a variance of p(1 − p) at most.
        most = sum((mean * (1.0 - mean) for mean in means), start=block.difference**2)
        variance = np.minimum(block.variance, most / n)
    margin, shrunk = later_margin(block.difference, variance, n, equivalence, step, likely), np.ones(1)
    if square is not None and target == "benchmark":
        c = np.maximum(block.questions, 1).astype(np.float64)
        single = np.maximum(np.maximum(variance * n, np.minimum(square / c, most)), FLOOR) / c
        grown = margin_variance(block.difference, single, c, equivalence, step) / single
        share = single_share(n - c, c)
        margin = (1.0 - share) * margin + share * variance * grown
        shrunk = block.margin / block.guarded
    margin = np.maximum(margin, block.guarded) * shrunk
    # While nothing differs, κ in V₂ stands for what may. At the margin that has a chance of (1 − ε)ⁿ at most,
    # so the evidence, ε²/(2V), is not more than the logarithm of 1 over it.
    unseen = equivalence**2 / (-2.0 * n * np.log1p(-min(equivalence, 0.999)))
    return block.with_margin(factor * np.where(variance > FLOOR, margin, np.maximum(block.guarded, unseen)))


def cluster_factor(stretch: Floats, few_clusters: float) -> Floats:
    """Return 1 + `few_clusters`/(G − 1), where `stretch` is G/(G − 1)."""
    return np.asarray(1.0 + few_clusters * np.minimum(stretch - 1.0, 1.0))


def later_margin(
    difference: Floats, variance: Floats, trials: Floats, equivalence: float, step: Floats, likely: float
) -> Floats:
    """Return the variance at the margin after a first pass; for `likely` see :func:`tie_block`."""
    margin = margin_variance(difference, variance, trials, equivalence, step)
    if likely == 0.0:
        return margin
    q = np.maximum(variance * trials, FLOOR)
    least = LIKELY_LATER * variance * likelihood_variance(q, equivalence, step) / q
    least = np.minimum(margin, np.maximum(least, MOST_LATER * variance))
    return np.asarray(likely * least + (1.0 - likely) * margin)


def later_growth(repeats: Floats, questions: Floats) -> Floats:
    """Return by how much V₂ is too uncertain for a tie if it is estimated from so many repeats."""
    quarter = 0.25 * questions
    return np.asarray(1.0 + FEWER_REPEATS * np.minimum(repeats / quarter, 1.0) / np.maximum(repeats, quarter))


def first_pass_margin(
    block: ContrastBlock,
    equivalence: float,
    square: Floats,
    noise: Floats,
    repeats: Floats,
    fraction: Floats,
    step: Floats,
    share: float,
    factor: float = 1.0,
) -> ContrastBlock:
    """Return pairs with the variance at the margin of a first pass, as far as they are in it.

    Until every fourth question has a second answer, the noise is the mean variance of the answers that were
    repeated, as if a half of a disagreement more had been seen (with r repeats (1 + 8/r)/2). The spread of
    the differences is taken as if one more question had differed, two if all differences are in favour of one
    model, and grows to what a likelihood ratio needs
    (:func:`scorio.sequential.evidence.likelihood_variance`). From then on the variance at the margin is
    larger by what V₂ grows by :func:`later_growth`.

    Parameters
    ----------
    block : ContrastBlock
        The pairs as :func:`tie_block` returns them.
    equivalence : float
        Equivalence margin ε in unit scores.
    square : ndarray of float
        Q, the sum of squared differences.
    noise : ndarray of float
        Mean variance of a repeated answer, summed over both models.
    repeats : ndarray of float
        Repeated answers of each model; infinite where answers have no noise.
    fraction : ndarray of float
        Share of the questions that are answered, 0 where they are a sample.
    step : ndarray of float
        As in :func:`tie_block`.
    share : float
        1 at a level of 5 %, less at smaller ones (:func:`scorio.sequential.evidence.beyond`): the likelihood
        ratio is one of estimated spreads, which is too large there by more than it is small elsewhere.
    factor : float
        Of the variance in a first pass.
    """
    c = np.maximum(block.questions, 1).astype(np.float64)
    known = np.isinf(repeats)
    some = np.where(known, 0.0, repeats)
    single = share * np.minimum(np.maximum(1.0 - 4.0 * some / c, 0.0), 1.0)
    single = np.where(known & (fraction >= 1.0), 0.0, single)
    later = block.margin + (later_growth(repeats, c) - 1.0) * block.guarded
    if not single.any():
        return block.with_margin(np.where(square > 0.0, later, block.margin))
    one_sided = np.abs(block.difference) * c * np.sqrt(step) / np.maximum(square, FLOOR)
    extra = 1.0 + np.minimum(one_sided, 1.0)
    between = (square + extra) / (c * c)
    more = MORE_REPEATS * (1.0 + TRUST / np.maximum(some, 1e-9))
    within = noise + 0.5 * more * step / np.maximum(some, 1e-9)
    within = np.minimum(within * (1.0 - 0.5 * some / c) / c, between)
    variance = (1.0 - fraction) * between + fraction * within
    seen = (square + extra) / (c + extra)
    likely = factor * variance * likelihood_variance(seen, equivalence, step) / seen
    margin = single * likely + (1.0 - single) * later
    return block.with_margin(np.where(square > 0.0, margin, block.margin))
