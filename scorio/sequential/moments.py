"""Moments of answers: scores of categories, the empirical-Bayes prior of their noise, running moments."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.arrays import Bools, Floats, Integers, Ints, floats

POOLED = 1e4
"""Prior strength that stands for "no variance between questions"."""
ENOUGH_NOISE = 2.0
"""Σ n v at which the empirical-Bayes noise of a model is trusted."""


class Mark:
    """What stands in the place of a category, as arrays hold it: below all categories."""

    (
        DROPPED,  # a repeat that does not count, as if it had not been asked
        NOT_YET,  # the trial is not completed
        FILLED_IN,  # the step needs no trial: the model repeats its answers, and has answered the question
        MISSING,  # the trial got no answer
    ) = range(-4, 0)


def unit_scores(weights: ArrayLike) -> Floats:
    """Scale category weights to scores in [0, 1].

    Parameters
    ----------
    weights : array_like of float, shape (C + 1,)
        Weight of each category, in any order.

    Returns
    -------
    ndarray of float, shape (C + 1,)
        ``(w - min w) / (max w - min w)``.

    Raises
    ------
    ValueError
        If there are fewer than two weights, if one is not finite, or if all are equal.

    Examples
    --------
    >>> unit_scores([0, -1, 2, 0.5]).tolist()
    [0.3333333333333333, 0.0, 1.0, 0.5]
    """
    w = floats(weights)
    if w.ndim != 1 or w.size < 2 or not np.all(np.isfinite(w)):
        raise ValueError(f"weights must be at least two finite numbers, got {weights!r}")
    low, high = w.min(), w.max()
    if low == high:
        raise ValueError(f"weights must not all be equal, got {w.tolist()}")
    return floats((w - low) / (high - low))


MOMENT_LEVELS = np.array([0.0, 0.5, 1.0])
"""Scores whose counts stand for any answers with the same number, sum and sum of squares."""


def shares(scores: Floats, *, moments: bool) -> NDArray[Any]:
    """Return what one answer of each category adds to the counts of its cell.

    Parameters
    ----------
    scores : ndarray of float, shape (C + 1,)
        Score of each category in [0, 1].
    moments : bool
        For scores that are numbers: an answer is shared among 0, 1/2 and 1 so that the number of answers, the
        sum of their scores and that of the squares are right. A share may be negative. Shares are multiples
        of 2**-36, so that sums of up to 2**17 of them are exact.

    Returns
    -------
    ndarray, shape (C + 5, C + 1) or (C + 5, 3)
        The last four rows, of the marks of trials without an answer, are 0.

    Examples
    --------
    >>> shares(np.array([0.0, 0.25, 1.0]), moments=True)[1].tolist()
    [0.375, 0.75, -0.125]
    """
    if not moments:
        return np.pad(np.eye(scores.size, dtype=np.int32), ((0, -Mark.DROPPED), (0, 0)))
    table = np.zeros((scores.size - Mark.DROPPED, MOMENT_LEVELS.size))
    none, half, one = table[: scores.size].T
    half[:] = np.round(4.0 * scores * (1.0 - scores) * 2**36) / 2**36
    one[:] = np.round(scores * (2.0 * scores - 1.0) * 2**36) / 2**36
    none[:] = 1.0 - half - one
    return table


@dataclass(frozen=True, slots=True)
class ScorePrior:
    """Empirical-Bayes prior of a question's score: `strength` A and the first two moments m1, m2."""

    strength: Floats
    m1: Floats
    m2: Floats

    def __getitem__(self, models: Any) -> ScorePrior:
        """Return the prior of some models, or of all as columns for rows of questions: ``[:, None]``."""
        return ScorePrior(self.strength[models], self.m1[models], self.m2[models])

    def __setitem__(self, models: Any, prior: ScorePrior) -> None:
        """Replace the prior of some models."""
        self.strength[models], self.m1[models], self.m2[models] = prior.strength, prior.m1, prior.m2

    def mean(self, n: Integers, sx: Floats) -> Floats:
        """Return the posterior mean score of cells with these sums."""
        return (self.strength * self.m1 + sx) / (n + self.strength)

    def variance(self, n: Integers | Floats, sx: Floats, sxx: Floats) -> Floats:
        """Return the posterior one-trial variance v of cells with these sums.

        If `sxx` is the array `sx`, scores are 0 and 1, and m2 is m1.
        """
        total = n + self.strength
        a = (self.strength * self.m1 + sx) / total
        b = a
        if sxx is not sx:
            b = (self.strength * self.m2 + sxx) / total
        return (b - a * a) * total / (total + 1.0)


def fit_prior(n: Integers | Floats, sx: Floats, sxx: Floats, p1: float, p2: float) -> ScorePrior:
    """Fit the empirical-Bayes prior of one model, or of several.

    Parameters
    ----------
    n, sx, sxx : ndarray, shape (..., m)
        Trials, sum of scores and of squared scores of each question. Without any trial the moments are those
        of a uniformly drawn category.
    p1, p2 : float
        Mean score and mean squared score of a uniformly drawn category.

    Returns
    -------
    ScorePrior
        Of shape (...): strength A (within-question over between-question variance; large if none is
        visible) and the moments m1, m2.
    """
    asked = n > 0
    many = np.maximum(n, 1)
    m = asked.sum(axis=-1)
    some = np.maximum(m, 1)
    mean_n = np.where(m > 0, n.sum(axis=-1) / some, 1.0)
    y = (sx / many).sum(axis=-1) / some
    y2 = (sxx / many).sum(axis=-1) / some
    m1 = (m * y + p1 / mean_n) / (m + 1.0 / mean_n)
    m2 = (m * y2 + p2 / mean_n) / (m + 1.0 / mean_n)
    total = (y2 - y**2) * m / np.maximum(m - 1, 1)
    return ScorePrior(_prior_strength(n, sx, sxx, total), np.asarray(m1), np.asarray(m2))


def _prior_strength(n: Integers | Floats, sx: Floats, sxx: Floats, total: Floats) -> Floats:
    """Strength A: within-question over between-question variance, of which `total` is the sum."""
    repeated = n >= 2
    k = repeated.sum(axis=-1)
    variance = (sxx - sx**2 / np.maximum(n, 1)) / np.maximum(n - 1, 1)
    within = (np.where(repeated, variance, 0.0).sum(axis=-1) + total) / (k + 1)
    visible = (k > 0) & (total > within)
    strength = np.clip(within / np.where(visible, total - within, 1.0), 0.05, POOLED)
    return np.where(visible, strength, POOLED)


class CategoryScale:
    """What the categories of a task are worth.

    Parameters
    ----------
    scores : ndarray of float, shape (C + 1,)
        Score of each category in [0, 1], see :func:`unit_scores`.
    moments : bool
        Whether scores are numbers, so that the counts are those of :func:`shares`.

    Attributes
    ----------
    levels : ndarray of float, shape (C + 1,) or (3,)
        The scores that are counted.
    worth : ndarray of float, shape (C + 5,)
        The score of each category, and 0 for each mark of a trial without an answer.
    shares : ndarray
        What one answer of each category adds to the counts.
    p1, p2 : float
        Mean score and mean squared score of a uniformly drawn category.
    """

    def __init__(self, scores: Floats, *, moments: bool) -> None:
        if moments:
            self.levels = MOMENT_LEVELS
        else:
            self.levels = scores
        self.p1 = float(self.levels.mean())
        self.p2 = float((self.levels**2).mean())
        self.binary = scores.size == 2
        self.zero_one = scores.tolist() == [0.0, 1.0]
        self._take(scores, moments)

    def _take(self, scores: Floats, moments: bool) -> None:
        self.scores = scores
        self.worth = np.append(scores, [0.0] * -Mark.DROPPED)  # what has no answer scores nothing
        self.shares = shares(scores, moments=moments)

    def set_score(self, category: int, score: float) -> None:
        """Let a category stand for a score, if scores are numbers of which not all are known before."""
        if category >= self.scores.size:
            self._take(np.pad(self.scores, (0, self.scores.size)), moments=True)
        self.scores[category] = self.worth[category] = score
        self.shares[category] = shares(np.array([score]), moments=True)[0]

    def sums(self, counts: NDArray[Any]) -> tuple[Ints, Floats, Floats]:
        """Return the trials, Σ scores and Σ squared scores of cells."""
        n = np.rint(counts.sum(axis=-1)).astype(np.int64)
        return n, counts @ self.levels, counts @ self.levels**2

    def prior(self, n: Integers | Floats, sx: Floats, sxx: Floats) -> ScorePrior:
        """Return :func:`fit_prior` of cells with these sums."""
        return fit_prior(n, sx, sxx, self.p1, self.p2)

    def avg_variance(self, n: Integers | Floats, sx: Floats, sxx: Floats) -> Floats:
        """Return the variance of avg@N of cells (the paper's Eq. 20, uniform prior); 0 if n = 0.

        If `sxx` is the array `sx`, scores are 0 and 1.
        """
        size = self.levels.size
        total = n + size
        a = (size * self.p1 + sx) / total
        b = a
        if sxx is not sx:
            b = (size * self.p2 + sxx) / total
        scale = (n > 0) * (total / np.maximum(n, 1))
        return scale**2 * (b - a * a) / (total + 1.0)


class FittedPriors:
    """The empirical-Bayes priors of the models of a task, and when they are fitted again."""

    def __init__(self, models: int, scale: CategoryScale) -> None:
        uniform = np.full(models, scale.p1), np.full(models, scale.p2)
        self.prior = ScorePrior(np.full(models, POOLED), *uniform)
        self.repeated = np.zeros(models, dtype=np.int64)  # questions with a second trial
        self._fitted = np.zeros(models, dtype=np.int64)  # `repeated` at the last doubling

    def until(self, models: Integers, start: int, repeated: Ints, questions: int) -> tuple[int, Integers]:
        """Return how many steps to take at once, and the models to fit again after the last of them."""
        if repeated.shape[1] == 1 and (start + 1) % questions and (start & (start + 1)):
            doubled = repeated[:, 0] >= 2 * np.maximum(self._fitted[models], 1)
            if not doubled.any():
                return 1, models[:0]
        steps = start + 1 + np.arange(repeated.shape[1])
        due = (repeated == 0) & ((steps & (steps - 1)) == 0)
        due |= repeated >= 2 * np.maximum(self._fitted[models], 1)[:, None]
        due |= steps % questions == 0
        first = np.flatnonzero(due.any(axis=0))
        if first.size == 0:
            return repeated.shape[1], models[:0]
        at = int(first[0])
        doubled = repeated[:, at] >= 2 * np.maximum(self._fitted[models], 1)
        self._fitted[models[doubled]] = repeated[doubled, at]
        return at + 1, models[due[:, at]]


@dataclass(frozen=True, slots=True)
class PathBlock:
    """What a pair reads of some models: running moments at each step of a piece of their trial sequence.

    Every array has shape (models, steps).

    `before` and `after` are the running mean score of the step's question before and after the step, not a
    number while the model has no answer to it. `w`, `u` are means over seen questions, `g`, `r`
    the sums of section 5 of the statistics; `seen` counts seen questions, `total` and `square` are the
    sums of the question means and of their squares. Of the questions that have answers, `lost` sums the
    shares of their trials that have none, and `lost_score` these shares times the question means.
    """

    before: Floats
    after: Floats
    w: Floats
    u: Floats
    g: Floats
    r: Floats
    seen: Floats
    total: Floats
    square: Floats
    lost: Floats
    lost_score: Floats

    @property
    def fresh(self) -> Bools:
        """Whether the model had no answer to the step's question before."""
        return np.isnan(self.before)

    @property
    def repeats(self) -> Floats:
        """Repeated trials with an answer; 0 if answers have no noise."""
        return np.where(np.isinf(self.r), 0.0, self.r)

    @property
    def trials(self) -> Floats:
        """Trials with an answer; infinity if answers have no noise."""
        return self.seen + self.r

    @property
    def mean(self) -> Floats:
        """Mean score over seen questions."""
        return self.total / np.maximum(self.seen, 1.0)

    def whole(self, asked: ArrayLike) -> bool:
        """Return whether each of the `asked` questions was answered, and no answer is lost."""
        return bool((self.seen >= np.asarray(asked)).all()) and not self.lost.any()

    def bounds(self, asked: ArrayLike) -> tuple[Floats, Floats]:
        """Return the least and the greatest mean score if lost answers were known.

        Each of the `asked` questions weighs the same, and each lost answer to it may be anything from 0 to 1.
        """
        number = np.maximum(np.maximum(asked, self.seen), 1.0)
        mean = self.mean
        unanswered = number - self.seen
        fall = self.lost_score + unanswered * mean
        rise = self.lost - self.lost_score + unanswered * (1.0 - mean)
        return mean - fall / number, mean + rise / number


class PathBuffer:
    """The fields of :class:`PathBlock` of all models of a task, at the steps that are not forgotten yet."""

    def __init__(self, models: int) -> None:
        self._base = 0
        self._values = np.zeros((len(fields(PathBlock)), models, 64))

    def part(self, start: int, stop: int) -> Floats:
        """Return the fields of all models at steps ``start .. stop-1``, which must not be forgotten."""
        if start < self._base:
            raise ValueError(f"steps before {self._base} are forgotten, asked from {start}")
        return self._values[:, :, start - self._base : stop - self._base]

    def keep(self, models: Integers, start: int, values: Floats) -> None:
        """Keep the last fields of some models from step `start` on, shape (fields, I, K)."""
        begin = start - self._base
        forgotten = max(-begin, 0)  # a straggler may stand where the path is already forgotten
        kept = values[:, :, forgotten:]
        begin += forgotten
        self._values[-len(values) :, models, begin : begin + kept.shape[2]] = kept

    def reserve(self, stop: int) -> None:
        """Have room for the steps before `stop`."""
        width = stop - self._base
        number, models, have = self._values.shape
        if width > have:
            wider = np.zeros((number, models, width + width // 4 + 64))
            wider[:, :, :have] = self._values
            self._values = wider

    def forget(self, before: int) -> None:
        """Allow the steps before `before` to be dropped."""
        number, models, width = self._values.shape
        shift = before - self._base
        if shift < max(256, width // 2):
            return
        kept = np.zeros((number, models, max(64, width - shift)))
        kept[:, :, : max(width - shift, 0)] = self._values[:, :, shift:]
        self._values = kept
        self._base = before
