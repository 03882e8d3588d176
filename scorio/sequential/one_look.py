"""One look at the means of questions: a difference of two models, or one score, with interval and p-value.

All tests take the questions, or whole groups of them, as independent. If the same questions are the target
and not a sample, their chances differ and the variance is smaller than the one taken here, so that the tests
then err less often than they say.
"""

from math import sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scorio.arrays import Floats, Integers, floats

MOST_FLIPPED = 20
"""Groups up to which all patterns of their signs are counted: a million patterns."""


class Looks(NamedTuple):
    """Tests of one look with their intervals: arrays of any shape, or single numbers."""

    test: str | NDArray[Any]  # name of the test: of all, or of each
    estimate: Floats
    low: Floats
    high: Floats
    p_value: Floats  # two-sided; 1 if nothing is tested


class WeightedMean(NamedTuple):
    """Weighted means of independent units, which are questions or groups of them."""

    mean: Floats
    error: Floats  # standard error; 0 where all units are alike, up to rounding
    freedom: float  # degrees of freedom of the standard error
    units: int

    def reach(self, confidence: float) -> Floats:
        """Return half the width of Student's interval."""
        from scipy.special import stdtrit

        return np.asarray(float(stdtrit(self.freedom, 0.5 + confidence / 2.0)) * self.error)

    @property
    def p_value(self) -> Floats:
        """Student's two-sided p-value of a mean of 0; of units that are all alike, that of their signs."""
        from scipy.special import stdtr

        varied = self.error > 0.0
        t = np.divide(np.abs(self.mean), self.error, out=np.zeros(np.shape(self.mean)), where=varied)
        alike = np.where(self.mean == 0.0, 1.0, 2.0 ** (1 - self.units))
        return np.where(varied, 2.0 * stdtr(self.freedom, -t), alike)


def weighted_mean(values: Floats, shares: Floats, groups: Integers | None = None) -> WeightedMean:
    """Return means of questions, the last axis, with weights that sum to 1; groups are the units, if any.

    For the formulas see :func:`scorio.sequential.paired_difference`.
    """
    mean = np.asarray(values @ shares)
    sums = shares * (values - mean[..., None])
    sizes = shares
    if groups is not None:
        sums = _sums(sums, groups)
        sizes = _sums(sizes, groups)
    square = float(sizes @ sizes)
    variance = np.zeros(mean.shape)
    if sizes.size > 1:
        variance = (sums**2 / (1.0 - 2.0 * sizes + square)).sum(axis=-1)
    error = np.sqrt(variance)
    rounding = 1e-12 * np.abs(values).max(axis=-1)
    freedom = square**2 / float((sizes**4).sum()) - 1.0
    return WeightedMean(mean, np.where(error > rounding, error, 0.0), freedom, sizes.size)


def look_at_difference(
    differences: Floats, shares: Floats, groups: Integers | None, confidence: float, *, single: bool
) -> Looks:
    """Test means of differences of questions, the last axis.

    `single` says that each is of one right or wrong answer.

    Examples
    --------
    >>> d = np.array([1.0] * 9 + [-1.0] + [0.0] * 10)
    >>> test, *figures = look_at_difference(d, np.full(20, 0.05), None, 0.95, single=True)
    >>> test, np.round(figures, 4).tolist()
    ('McNemar', [0.4, 0.095, 0.6323, 0.0215])
    """
    if groups is not None:
        return _look_at_groups(differences, shares, groups, confidence)
    found = weighted_mean(differences, shares)
    if single:
        return _mcnemar(differences, found, confidence)
    return _students(found, confidence, "paired t")


def look_at_score(
    scores: Floats,
    shares: Floats,
    groups: Integers | None,
    confidence: float,
    against: float | None = None,
) -> Looks:
    """Return the mean score of questions with its interval, and the test of it against a number.

    Without few groups that is Wilson's interval for as many answers as have the same standard error [1]_.

    References
    ----------
    .. [1] Korn, Graubard (1998). Confidence intervals for proportions with small expected number of positive
       counts estimated from survey data. Survey Methodology 24, 193-201.

    Examples
    --------
    >>> scores, shares = np.repeat([1.0, 0.0], [35, 5]), np.full(40, 1 / 40)
    >>> _, *figures = look_at_score(scores, shares, None, 0.95, against=0.7)
    >>> np.round(figures, 3).tolist()
    [0.875, 0.731, 0.947, 0.022]
    """
    if groups is not None and int(np.unique(groups).size) <= MOST_FLIPPED:
        return _flips(scores, shares, groups, confidence, against or 0.0)
    from scipy.special import stdtr, stdtrit

    found = _with_groups(weighted_mean(scores, shares, groups), groups)
    mean = float(found.mean)
    error = float(found.error)
    freedom = max(found.freedom, 1.0)
    if error > 0.0:
        answers = mean * (1.0 - mean) / error**2
    else:
        answers = float(found.units)
    t = float(stdtrit(freedom, 0.5 + confidence / 2.0))
    middle = (mean + t**2 / (2.0 * answers)) / (1.0 + t**2 / answers)
    reach = t / (1.0 + t**2 / answers) * sqrt(mean * (1.0 - mean) / answers + t**2 / (4.0 * answers**2))
    p_value = 1.0
    if against is not None:
        error = sqrt(max(against * (1.0 - against), 0.0) / answers)
        distance = abs(mean - against)
        if error > 0.0:
            p_value = 2.0 * float(stdtr(freedom, -distance / error))
        else:
            p_value = float(distance == 0.0)
    name = "Wilson, with groups"
    if groups is None:
        name = "Wilson"
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    return Looks(name, *map(np.asarray, (mean, low, high, p_value)))


def _look_at_groups(differences: Floats, shares: Floats, groups: Integers, confidence: float) -> Looks:
    if int(np.unique(groups).size) > MOST_FLIPPED:
        found = _with_groups(weighted_mean(differences, shares, groups), groups)
        return _students(found, confidence, "cluster-robust t")
    if differences.ndim == 1:
        return _flips(differences, shares, groups, confidence)
    flipped = [_flips(one, shares, groups, confidence) for one in differences]
    test, *columns = zip(*flipped, strict=True)
    return Looks(test[0], *map(np.array, columns))


def _with_groups(found: WeightedMean, groups: Integers | None) -> WeightedMean:
    """Return a mean with one degree of freedom less than groups, the usual ones of cluster-robust errors."""
    if groups is None:
        return found
    return found._replace(freedom=found.units - 1.0)


def _students(found: WeightedMean, confidence: float, name: str) -> Looks:
    """Return Student's t; if all units are alike, what so many units can say."""
    mean = found.mean
    varied = found.error > 0.0
    reach = found.reach(confidence)
    unseen = 1.0 - (1.0 - confidence) ** (1.0 / found.units)  # largest share of units of another kind
    low = np.where(varied, mean - reach, mean - unseen * (1.0 + mean))
    high = np.where(varied, mean + reach, mean + unseen * (1.0 - mean))
    return _agreeing(Looks(name, mean, low, high, found.p_value), confidence)


def _mcnemar(differences: Floats, found: WeightedMean, confidence: float) -> Looks:
    """Return McNemar's exact test, with the interval of Bonett and Price (2012)."""
    from scipy.special import bdtr

    first, second = (differences > 0).sum(axis=-1), (differences < 0).sum(axis=-1)
    p_value = np.minimum(2.0 * bdtr(np.minimum(first, second), first + second, 0.5), 1.0)
    number = differences.shape[-1] + 2
    for_first, for_second = (first + 1) / number, (second + 1) / number
    middle = for_first - for_second
    spread = np.sqrt((for_first + for_second - middle**2) / number)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2.0) * spread
    return _agreeing(Looks("McNemar", found.mean, middle - reach, middle + reach, p_value), confidence)


def _agreeing(looks: Looks, confidence: float) -> Looks:
    """Return tests with intervals that have 0 in them if 0 is not rejected, and only then."""
    low, high = np.maximum(looks.low, -1.0), np.minimum(looks.high, 1.0)
    open_ = looks.p_value > 1.0 - confidence
    above = looks.estimate > 0.0
    least = np.where(open_, np.minimum(low, 0.0), np.where(above, np.maximum(low, 0.0), low))
    most = np.where(open_, np.maximum(high, 0.0), np.where(above, high, np.minimum(high, 0.0)))
    return looks._replace(low=least, high=most)


def _flips(
    values: Floats, shares: Floats, groups: Integers, confidence: float, against: float = 0.0
) -> Looks:
    """Return the test that flips the signs of groups, and the interval of the means that it does not reject.

    With the signs of some groups flipped, a mean θ is not rejected while it lies between the means of the
    groups that are flipped and of those that are not.
    """
    sums = _sums(shares * values, groups)
    sizes = _sums(shares, groups)
    mean = float(sums.sum())
    kept, weight = _of_subsets(sums), _of_subsets(sizes)  # the last subset is of all groups
    signed = 2.0 * (kept - against * weight) - (mean - against)
    p_value = float((np.abs(signed) >= abs(mean - against) * (1.0 - 1e-12)).mean())
    low, high = np.full(kept.size, -np.inf), np.full(kept.size, np.inf)
    ends = kept[:-1] / weight[:-1], (mean - kept[:-1]) / (1.0 - weight[:-1])
    np.minimum(*ends, out=low[:-1])
    np.maximum(*ends, out=high[:-1])
    place = int((1.0 - confidence) * kept.size * (1.0 + 1e-12))
    lowest = float(np.partition(low, place)[place])
    highest = float(-np.partition(-high, place)[place])
    return Looks("sign flips of groups", *map(np.asarray, (mean, lowest, highest, p_value)))


def _of_subsets(values: Floats) -> Floats:
    """Return the sums of all subsets that hold the first value, that of all values last."""
    found = values[:1]
    for value in values[1:]:
        found = np.concatenate([found, found + value])
    return found


def _sums(values: Floats, groups: Integers) -> Floats:
    """Return the sums of groups along the last axis."""
    rows = values.reshape(-1, groups.size)
    number = int(groups.max()) + 1
    place = groups + number * np.arange(len(rows))[:, None]
    sums = np.bincount(place.ravel(), weights=rows.ravel(), minlength=number * len(rows))
    return floats(sums.reshape(*values.shape[:-1], number))
