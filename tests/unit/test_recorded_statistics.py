"""What is recorded of statistics is what their definitions say, computed plainly for the same calls."""

from math import ceil, comb, exp, inf, lgamma, sqrt
from unittest.mock import patch

import numpy as np
import pytest
import recorded_comparisons
import recorded_courses
import recorded_statistics
from scipy.stats import norm, t

from scorio import eval as metrics
from scorio import rank
from scorio.sequential.clusters import RATES

RECORDED = recorded_courses.recorded()


def calls_of(kind):
    """Return the calls that the cases of a kind make: a name, the function, and what it is given."""
    module = recorded_comparisons if kind in recorded_comparisons.COMPARISONS else recorded_statistics
    found = []

    def note(name, function, *given, **options):
        found.append((name, function, given, options))
        return ""

    with patch.object(module, "fact", note):
        for of, written in RECORDED:
            if of == kind:
                recorded_courses.KINDS[kind][2](recorded_courses.case_of(written))
    return found


METRICS = [one for one in calls_of("metrics") if one[3]]


def counts_of(options, number=2, axis=1):
    if options.get("counts") is not None:
        return np.asarray(options["counts"], dtype=float)
    R, missing = np.asarray(options["R"]), options.get("missing")
    gone = np.zeros(R.shape, dtype=bool)
    if missing is not None:
        gone = missing if isinstance(missing, np.ndarray) else missing == R
    return np.stack([((one == R) & ~gone).sum(axis=axis) for one in range(number)], axis=-1).astype(float)


def shares_of(options, questions):
    return np.array(options.get("question_weights", np.full(questions, 1 / questions)))


def area(right, k, options):
    passed = [1 - comb(k - right, j) / comb(k, j) for j in range(1, k + 1)]
    return passed[0] if k == 1 else (sum(passed) - (passed[0] + passed[-1]) / 2) / (k - 1)


DRAWN = {
    "pass_at_k": lambda right, k, options: right >= 1,
    "pass_hat_k": lambda right, k, options: right == k,
    "g_pass_at_k": lambda right, k, options: right == k,
    "unanimous_at_k": lambda right, k, options: right == k,
    "maj_at_k": lambda right, k, options: 2 * right > k,
    "mg_pass_at_k": lambda right, k, options: 2 * max(right - ceil(k / 2), 0) / k,
    "g_pass_at_k_tau": lambda right, k, options: right >= max(ceil(options["tau"] * k - 1e-12), 1),
    "threshold_spectrum_at_k": lambda right, k, options: sum(options["weights"][:right]),
    "auc_at_k": area,
}
"""What k answers are worth of which so many are right."""


def moment(a, b, i, j):
    """Return the mean of p^i (1 - p)^j under a Beta distribution."""
    logs = lgamma(a + i) + lgamma(b + j) - lgamma(a + b + i + j) - lgamma(a) - lgamma(b) + lgamma(a + b)
    return exp(logs)


@pytest.mark.parametrize("name", DRAWN)
def test_metrics_of_new_answers_have_the_moments_of_beta_distributions(name):
    """Also with questions of unequal numbers and weights, at any confidence, within any bounds."""
    asked = [one[3] for one in METRICS if one[1] is getattr(metrics, f"{name}_ci")]
    assert len(asked) > 9
    for options in asked:
        counts, k = counts_of(options), options["k"]
        a0, b0 = options.get("alpha0", 1.0), options.get("beta0", 1.0)
        worth = [comb(k, j) * float(DRAWN[name](j, k, options)) for j in range(k + 1)]
        mean = variance = 0.0
        for share, (wrong, right) in zip(shares_of(options, len(counts)), counts, strict=True):
            a, b = a0 + right, b0 + wrong
            first = sum(worth[j] * moment(a, b, j, k - j) for j in range(k + 1))
            second = sum(
                worth[i] * worth[j] * moment(a, b, i + j, 2 * k - i - j)
                for i in range(k + 1)
                for j in range(k + 1)
            )
            mean, variance = mean + share * first, variance + share**2 * (second - first**2)
        reach = norm.ppf(0.5 + options["confidence"] / 2) * sqrt(variance)
        low, high = options.get("bounds", (0.0, 1.0)) or (-inf, inf)
        ends = np.clip([mean - reach, mean + reach], low, high)
        assert getattr(metrics, f"{name}_ci")(**options) == pytest.approx(
            (mean, sqrt(variance), *ends), abs=1e-9
        )


def avg_of(counts, shares, w):
    """Return avg@N and its variance."""
    number, flat = counts.sum(axis=-1), counts + 1.0
    total = flat.sum(axis=-1)
    first, second = (flat * w).sum(axis=-1) / total, (flat * w**2).sum(axis=-1) / total
    variance = (shares**2 * (total / number) ** 2 * (second - first**2) / (total + 1.0)).sum(axis=-1)
    return (shares * (counts * w).sum(axis=-1) / number).sum(axis=-1), variance


def test_transfer_is_the_mean_over_how_far_models_may_have_moved():
    asked = [one[3] for one in METRICS if one[1] is rank.transfer]
    assert len(asked) > 3
    for options in asked:
        w = np.array(options.get("w", (0.0, 1.0)))
        counts = counts_of(options, w.size, axis=2)
        before = counts_of(
            {"counts": options.get("prior_counts"), "R": options.get("R0", [])}, w.size, axis=2
        )
        shares = shares_of(options, counts.shape[1])
        x, v = avg_of(counts, shares, w)
        known = before.sum(axis=(1, 2)) > 0
        x0, v0 = np.zeros(len(x)), np.zeros(len(x))
        x0[known], v0[known] = avg_of(before[known], shares, w)
        fits, means = [], []
        for tau in [0.0, *np.geomspace(0.01, 0.5, 24) * np.ptp(w)]:
            total = v + v0 + tau**2
            fits.append(np.exp(norm.logpdf(x, x0, np.sqrt(total))[known].sum()))
            means.append(np.where(known, (x0 * v + x * (v0 + tau**2)) / total, x))
        scores = np.average(means, axis=0, weights=fits)
        ranks, found = rank.transfer(**options)
        assert found == pytest.approx(scores)
        assert ranks.tolist() == rank.rank_scores(scores, options["method"]).tolist()


# ---------------------------------------------------------------------------- tests for one look


def means_of(R, w):
    """Return the mean score of each question."""
    found = []
    for row in np.asarray(R, dtype=float):
        known = row[~np.isnan(row)]
        found.append(np.mean(known if w is None else np.asarray(w)[known.astype(int)]))
    return np.array(found)


def plain_mean(d, shares, groups):
    """Return the weighted mean with its variance by clusters and the degrees of freedom."""
    mean, names = (shares * d).sum(), np.unique(groups)
    s = np.array([shares[groups == one].sum() for one in names])
    moved = np.array([(shares * (d - mean))[groups == one].sum() for one in names])
    return mean, (moved**2 / (1 - 2 * s + (s**2).sum())).sum(), (s**2).sum() ** 2 / (s**4).sum() - 1


def test_means_and_differences_are_students_with_weights_and_clusters():
    checked = 0
    for name, function, given, options in calls_of("tests"):
        if name not in ("paired", "mean"):
            continue
        try:
            found = function(*given, **options)
        except ValueError:
            continue
        d = means_of(given[0], options.get("weights"))
        if name == "paired":
            d = d - means_of(given[1], options.get("weights"))
        groups = np.asarray(options.get("clusters", np.arange(d.size)))
        mean, variance, freedom = plain_mean(d, shares_of(options, d.size), groups)
        assert found.estimate == pytest.approx(mean)
        assert found.units == np.unique(groups).size
        if variance > 1e-20:
            error, student = sqrt(variance), t(freedom)
            reach = student.ppf(0.5 + options["confidence"] / 2) * error
            assert (found.low, found.high) == pytest.approx((mean - reach, mean + reach))
            assert found.standard_error == pytest.approx(error)
            if name == "paired":
                assert found.p_value == pytest.approx(2 * student.sf(abs(mean) / error))
            checked += 1
    assert checked > 20


def test_posterior_means_are_those_of_dirichlet_distributions():
    for name, function, given, options in calls_of("tests"):
        if name == "posterior":
            w = np.array(options.get("weights", (0.0, 1.0)), dtype=float)
            rows = [[int(x) for x in row if x == x] for row in np.asarray(given[0], dtype=float)]
            nu = 1.0 + np.array([[row.count(one) for one in range(w.size)] for row in rows])
            total = nu.sum(axis=1)
            first, second = (nu * w).sum(axis=1) / total, (nu * w**2).sum(axis=1) / total
            variance = ((second - first**2) / (total + 1.0)).sum() / len(rows) ** 2
            found = function(*given, **options)
            assert (found.estimate, found.standard_error) == pytest.approx((first.mean(), sqrt(variance)))


# ---------------------------------------------------------------------------- bets by labels


def plain_bets(judge, label, chance, against, side, **told_too):
    """Return the log e-value after each answer, bet by bet."""
    chosen, stake, groups, doubted, slope = map(
        told_too.get, ("chosen", "stake", "groups", "doubted", "slope")
    )
    models, steps = judge.shape
    shares = np.broadcast_to(chance, (steps,))
    marked = ~np.isnan(label).all(axis=0) if chosen is None else chosen
    rates = np.array([rate for rate in RATES if side == 0 or rate * side > 0]) * shares.min() / models
    products = squares = 0.0
    homes = {} if groups is None else dict(zip(*groups, strict=True))
    largest = max((list(homes.values()).count(one) for one in homes.values()), default=1)
    told = {question: [] for question in homes}
    log_e, found = np.zeros(rates.size), []
    for step in range(steps):
        x, y = judge[:, step], label[:, step]
        rho = min(max(products / (squares + 1.0), 0.0), 1.0) if slope is None else slope
        ends = []
        for worth in (0.0, 1.0):
            delta = rho * x
            if marked[step]:
                delta = delta + (np.where(np.isnan(y), worth, y) - rho * x) / shares[step]
            ends.append(np.where(np.isnan(x), worth, delta))
        low, high = ends[0][0], ends[1][0]
        gap = x[0], y[0]
        if models == 2:
            low, high = low - ends[1][1], high - ends[0][1]
            gap = x[0] - x[1], y[0] - y[1]
        if marked[step] and not np.isnan(sum(gap)):
            products, squares = products + gap[0] * gap[1], squares + gap[0] ** 2
        won = (np.where(rates > 0, low, high) - against) * (1.0 if stake is None else stake[step])
        if groups is None:
            factor = np.log1p(rates * won)
            if doubted is not None and doubted[step]:
                factor = np.minimum(factor, 0.0)
            log_e = log_e + factor
        else:
            told[groups[0][step]].append(won)
            log_e = np.zeros(rates.size)
            for home in set(homes.values()):
                parts = [
                    np.mean(told[one], axis=0) for one, its in homes.items() if its == home and told[one]
                ]
                log_e = log_e + np.log1p(rates * sum(parts, np.zeros(rates.size)) / largest)
        found.append(np.log(np.exp(log_e).mean()))
    return found


def test_bets_by_labels_are_those_of_their_definition_whatever_they_are_told():
    made = []
    bets_of = recorded_comparisons.sequential.label_bets

    def noted(*given, **options):
        made.append((given, options))
        return bets_of(*given, **options)

    with patch.object(recorded_comparisons.sequential, "label_bets", noted):
        calls_of("labelled")
    assert len(made) > 12
    for place, (given, options) in enumerate(made):
        against, side = ((0.0, 0), (0.1, 1), (0.1, -1), (0.5, 0))[place % 4]
        expected = plain_bets(*given, against, side, **options)
        found = bets_of(*given, **options)
        assert found.log_e(against, side) == pytest.approx(expected, abs=1e-9)
        assert found.last(against, side) == pytest.approx(expected[-1], abs=1e-9)
