"""One look at the means of questions: a difference of two models, or one score, with interval and p-value.

All tests take the questions, or whole groups of them, as independent. If the same questions are the target
and not a sample, their chances differ and the variance is smaller than the one taken here, so that the tests
then err less often than they say.
"""

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from scorio._arrays import Floats, Integers, floats
from scorio.sequential.one_look_result import FixedTest

MOST_FLIPPED = 20
"""Groups up to which all patterns of their signs are counted: a million patterns."""


class WeightedMean(NamedTuple):
    """A weighted mean of independent units, which are questions or groups of them."""

    mean: float
    error: float  # standard error; 0 where all units are alike, up to rounding
    freedom: float  # degrees of freedom of the standard error
    units: int

    def reach(self, confidence: float) -> float:
        """Return half the width of Student's interval."""
        from scipy.special import stdtrit

        return float(stdtrit(self.freedom, 0.5 + confidence / 2.0)) * self.error

    @property
    def p_value(self) -> float:
        """Student's two-sided p-value of a mean of 0; of units that are all alike, that of their signs."""
        from scipy.special import stdtr

        if self.error > 0.0:
            return 2.0 * float(stdtr(self.freedom, -abs(self.mean) / self.error))
        if self.mean == 0.0:
            return 1.0
        return 2.0 ** (1 - self.units)


def weighted_mean(values: Floats, shares: Floats, groups: Integers | None = None) -> WeightedMean:
    """Return the mean of questions with weights that sum to 1; groups are the units, if there are any.

    For the formulas see :func:`scorio.sequential.paired_difference`.
    """
    mean = float(values @ shares)
    sums, sizes = shares * (values - mean), shares
    if groups is not None:
        sums, sizes = _sums(sums, groups), _sums(sizes, groups)
    square = float(sizes @ sizes)
    variance = 0.0
    if sums.size > 1:
        variance = float((sums**2 / (1.0 - 2.0 * sizes + square)).sum())
    error, rounding = sqrt(variance), 1e-12 * float(np.abs(values).max())
    freedom = square**2 / float((sizes**4).sum()) - 1.0
    return WeightedMean(mean, error if error > rounding else 0.0, freedom, sums.size)


def look_at_difference(
    differences: Floats, shares: Floats, groups: Integers | None, confidence: float, *, single: bool
) -> FixedTest:
    """Test the mean of the questions' differences; `single` says that each is of one right or wrong answer.

    Examples
    --------
    >>> d = np.array([1.0] * 9 + [-1.0] + [0.0] * 10)
    >>> test = look_at_difference(d, np.full(20, 0.05), None, 0.95, single=True)
    >>> test.test, round(test.p_value, 4), round(test.low, 3), round(test.high, 3)
    ('McNemar', 0.0215, 0.095, 0.632)
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
) -> FixedTest:
    """Return the mean score of questions with its interval, and the test of it against a number.

    Without few groups that is Wilson's interval for as many answers as have the same standard error [1]_.

    References
    ----------
    .. [1] Korn, Graubard (1998). Confidence intervals for proportions with small expected number of positive
       counts estimated from survey data. Survey Methodology 24, 193-201.

    Examples
    --------
    >>> scores, shares = np.repeat([1.0, 0.0], [35, 5]), np.full(40, 1 / 40)
    >>> test = look_at_score(scores, shares, None, 0.95, against=0.7)
    >>> round(test.low, 3), round(test.high, 3), round(test.p_value, 3)
    (0.731, 0.947, 0.022)
    """
    if groups is not None and int(np.unique(groups).size) <= MOST_FLIPPED:
        return _flips(scores, shares, groups, confidence, against or 0.0)
    from scipy.special import stdtr, stdtrit

    found = _with_groups(weighted_mean(scores, shares, groups), groups)
    mean, freedom = found.mean, max(found.freedom, 1.0)
    answers = mean * (1.0 - mean) / found.error**2 if found.error > 0.0 else float(found.units)
    t = float(stdtrit(freedom, 0.5 + confidence / 2.0))
    middle = (mean + t**2 / (2.0 * answers)) / (1.0 + t**2 / answers)
    reach = t / (1.0 + t**2 / answers) * sqrt(mean * (1.0 - mean) / answers + t**2 / (4.0 * answers**2))
    p_value = None
    if against is not None:
        error = sqrt(max(against * (1.0 - against), 0.0) / answers)
        distance = abs(mean - against)
        p_value = 2.0 * float(stdtr(freedom, -distance / error)) if error > 0.0 else float(distance == 0.0)
    name = "Wilson, with groups"
    if groups is None:
        name = "Wilson"
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    return FixedTest(name, mean, low, high, p_value, found.error, confidence, found.units)


def _look_at_groups(differences: Floats, shares: Floats, groups: Integers, confidence: float) -> FixedTest:
    if int(np.unique(groups).size) <= MOST_FLIPPED:
        return _flips(differences, shares, groups, confidence)
    found = _with_groups(weighted_mean(differences, shares, groups), groups)
    return _students(found, confidence, "cluster-robust t")


def _with_groups(found: WeightedMean, groups: Integers | None) -> WeightedMean:
    """Return a mean with one degree of freedom less than groups, the usual ones of cluster-robust errors."""
    if groups is None:
        return found
    return found._replace(freedom=found.units - 1.0)


def _students(found: WeightedMean, confidence: float, name: str) -> FixedTest:
    """Return Student's t; if all units are alike, what so many units can say."""
    mean, error, units, p_value = found.mean, found.error, found.units, found.p_value
    if error > 0.0:
        reach = found.reach(confidence)
        return FixedTest(name, mean, mean - reach, mean + reach, p_value, error, confidence, units)
    unseen = 1.0 - (1.0 - confidence) ** (1.0 / units)  # largest share of units of another kind
    low, high = mean - unseen * (1.0 + mean), mean + unseen * (1.0 - mean)
    return _agreeing(FixedTest(name, mean, low, high, p_value, 0.0, confidence, units))


def _mcnemar(differences: Floats, found: WeightedMean, confidence: float) -> FixedTest:
    """Return McNemar's exact test, with the interval of Bonett and Price (2012)."""
    from scipy.special import bdtr

    first, second = int((differences > 0).sum()), int((differences < 0).sum())
    p_value = min(2.0 * float(bdtr(min(first, second), first + second, 0.5)), 1.0)
    number = differences.size + 2
    for_first, for_second = (first + 1) / number, (second + 1) / number
    middle = for_first - for_second
    reach = NormalDist().inv_cdf(0.5 + confidence / 2.0) * sqrt((for_first + for_second - middle**2) / number)
    low, high = middle - reach, middle + reach
    test = FixedTest("McNemar", found.mean, low, high, p_value, found.error, confidence, first + second)
    return _agreeing(test)


def _agreeing(test: FixedTest) -> FixedTest:
    """Return the test with an interval that has 0 in it if 0 is not rejected, and only then."""
    assert test.low is not None
    assert test.high is not None
    assert test.p_value is not None
    low, high = max(test.low, -1.0), min(test.high, 1.0)
    if test.p_value > 1.0 - test.confidence:
        low, high = min(low, 0.0), max(high, 0.0)
    elif test.estimate > 0.0:
        low = max(low, 0.0)
    else:
        high = min(high, 0.0)
    return FixedTest(
        test.test, test.estimate, low, high, test.p_value, test.standard_error, test.confidence, test.units
    )


def _flips(
    values: Floats, shares: Floats, groups: Integers, confidence: float, against: float = 0.0
) -> FixedTest:
    """Return the test that flips the signs of groups, and the interval of the means that it does not reject.

    With the signs of some groups flipped, a mean θ is not rejected while it lies between the means of the
    groups that are flipped and of those that are not.
    """
    sums, sizes = _sums(shares * values, groups), _sums(shares, groups)
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
    name = "sign flips of groups"
    return FixedTest(name, mean, lowest, highest, p_value, None, confidence, sums.size)


def _of_subsets(values: Floats) -> Floats:
    """Return the sums of all subsets that hold the first value, that of all values last."""
    found = values[:1]
    for value in values[1:]:
        found = np.concatenate([found, found + value])
    return found


def _sums(values: Floats, groups: Integers) -> Floats:
    return floats(np.bincount(groups, weights=values))
