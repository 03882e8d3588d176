"""Golden numbers of `scorio.eval`, from the definitions in exact integers and 80-digit arithmetic.

    python tests/generation/eval_reference.py            # rewrites tests/data/eval_reference.json

Nothing here knows scorio: finite banks are ratios of binomial coefficients, posterior moments are ratios of
rising factorials summed term by term, and variances are differences of moments, which 80 digits can afford.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import ceil, comb
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "eval_reference.json"
mp.dps = 80
Case = dict[str, Any]


# Scores of the event "j of k correct", j = 0..k. Every binary metric of one question is their mean over j.


def step_scores(k: int, threshold: int) -> list[mpf]:
    return [mpf(j >= threshold) for j in range(k + 1)]


def weight_scores(weights: Sequence[float]) -> list[mpf]:
    scores = [mpf(0)]
    for weight in weights:
        scores.append(scores[-1] + mpf(weight))
    return scores


def auc_scores(k: int) -> list[mpf]:
    """The trapezoidal mean of Pass@1 .. Pass@k of j right trials among k."""
    if k == 1:
        return step_scores(1, 1)
    found = []
    for j in range(k + 1):
        failed = [mpf(comb(k - j, drawn)) / comb(k, drawn) for drawn in range(1, k + 1)]
        found.append(1 - mp.fsum((left + right) / 2 for left, right in pairwise(failed)) / (k - 1))
    return found


@cache
def scores_of(name: str, k: int) -> tuple[mpf, ...]:
    middle = -(-k // 2)
    spectra: dict[str, Callable[[], list[mpf]]] = {
        "pass_at_k": lambda: step_scores(k, 1),
        "pass_hat_k": lambda: step_scores(k, k),
        "auc_at_k": lambda: auc_scores(k),
        "maj_at_k": lambda: step_scores(k, k // 2 + 1),
        "g_pass_at_k_tau": lambda: step_scores(k, max(1, ceil(mpf(repr(TAU)) * k))),
        "mg_pass_at_k": lambda: [mpf(2 * max(j - middle, 0)) / k for j in range(k + 1)],
        "threshold_spectrum_at_k": lambda: weight_scores(weights_of(k)),
    }
    return tuple(spectra[name]())


# Finite banks: c of n correct, k drawn.


def draw(c: int, n: int, k: int, scores: Sequence[mpf]) -> mpf:
    total = comb(n, k)
    return mp.fsum(
        scores[j] * comb(c, j) * comb(n - c, k - j) / mpf(total)
        for j in range(max(0, k - n + c), min(c, k) + 1)
        if scores[j]
    )


def best(counts: Sequence[int], k: int, w: Sequence[float]) -> mpf:
    rewards = sorted(reward for reward, count in zip(w, counts, strict=True) for _ in range(count))
    total = comb(len(rewards), k)
    return mp.fsum(comb(i - 1, k - 1) * mpf(rewards[i - 1]) for i in range(k, len(rewards) + 1)) / total


def power(x: mpf, exponent: float) -> mpf:
    return mpf(1) if exponent == 0 else x ** mpf(exponent)


# Posteriors: p ~ Beta(a, b).


def beta_moments(a: mpf, b: mpf, degree: int) -> list[mpf]:
    """Return E[p^s q^(degree - s)] for s = 0..degree."""
    moments = [mp.rf(b, degree) / mp.rf(a + b, degree)]
    for s in range(degree):
        moments.append(moments[-1] * (a + s) / (b + degree - s - 1))
    return moments


@cache
def bernstein(one: tuple[mpf, ...], other: tuple[mpf, ...]) -> list[mpf]:
    """Coefficients of the product of two metrics in p^s q^(2k - s)."""
    k = len(one) - 1
    ways = [comb(k, j) for j in range(k + 1)]
    found = [mpf(0)] * (2 * k + 1)
    present = [j for j in range(k + 1) if other[j]]
    for i in range(k + 1):
        for j in present if one[i] else ():
            found[i + j] += ways[i] * one[i] * ways[j] * other[j]
    return found


def joint_moments(a: mpf, b: mpf, k: int, x: str, y: str) -> tuple[mpf, ...]:
    """Means and variances of two metrics of k new trials, and their covariance."""
    one, other = scores_of(x, k), scores_of(y, k)
    constant = tuple(step_scores(k, 0))
    powers = beta_moments(a, b, 2 * k)

    def mean(first: tuple[mpf, ...], second: tuple[mpf, ...]) -> mpf:
        return mp.fdot(bernstein(first, second), powers)

    mean_x, mean_y = mean(one, constant), mean(other, constant)
    variances = mean(one, one) - mean_x**2, mean(other, other) - mean_y**2
    return mean_x, mean_y, *variances, mean(one, other) - mean_x * mean_y


def best_moments(counts: Sequence[int], k: int, w: Sequence[float]) -> tuple[mpf, mpf]:
    """Moments of the expected best of k draws, for posterior Dirichlet parameters `counts`."""
    levels = sorted(set(w))
    total = sum(counts)
    at_most = [sum(c for c, reward in zip(counts, w, strict=True) if reward <= level) for level in levels]
    gaps = [mpf(high) - mpf(low) for low, high in pairwise(levels)]

    def power_mean(at: int) -> mpf:
        return mp.rf(at, k) / mp.rf(total, k)

    def product_mean(low: int, high: int) -> mpf:
        # A_high = A_low + D, expanded; (A_low, D, rest) is Dirichlet.
        if low == high:
            return mp.rf(low, 2 * k) / mp.rf(total, 2 * k)
        terms = (comb(k, i) * mp.rf(low, k + i) * mp.rf(high - low, k - i) for i in range(k + 1))
        return mp.fsum(terms) / mp.rf(total, 2 * k)

    means = [power_mean(at) for at in at_most[:-1]]
    mean = mpf(levels[-1]) - mp.fdot(gaps, means)
    variance = mp.fsum(
        gaps[i] * gaps[j] * (product_mean(*sorted((at_most[i], at_most[j]))) - means[i] * means[j])
        for i in range(len(gaps))
        for j in range(len(gaps))
    )
    return mean, variance


def reward_moments(posterior: Sequence[int], w: Sequence[float]) -> tuple[mpf, mpf]:
    total = sum(posterior)
    a = mp.fsum(nu * mpf(reward) for nu, reward in zip(posterior, w, strict=True)) / total
    b = mp.fsum(nu * mpf(reward) ** 2 for nu, reward in zip(posterior, w, strict=True)) / total
    return a, (b - a * a) / (total + 1)


# Datasets.


def average(values: Sequence[mpf]) -> mpf:
    return mp.fsum(values) / len(values)


def root(variance: mpf) -> mpf:
    """Square root; a variance that is 0 to 80 digits may come out negative."""
    return mp.sqrt(max(variance, mpf(0)))


def pooled(moments: Sequence[tuple[mpf, mpf]]) -> tuple[mpf, mpf]:
    return average([m for m, _ in moments]), root(mp.fsum(v for _, v in moments)) / len(moments)


def delta(x: mpf, y: mpf, vx: mpf, vy: mpf, cov: mpf, a: float, b: float) -> tuple[mpf, mpf]:
    value = power(x, a) * power(y, b)
    dx, dy = a * power(x, a - 1) * power(y, b), b * power(x, a) * power(y, b - 1)
    return value, dx * dx * vx + dy * dy * vy + 2 * dx * dy * cov


def dataset_delta(moments: Sequence[tuple[mpf, mpf, mpf, mpf, mpf]], a: float, b: float) -> tuple[mpf, mpf]:
    m = len(moments)
    x, y = average([row[0] for row in moments]), average([row[1] for row in moments])
    if y == 0:
        return mpf(0), mpf(0)
    vx, vy, cov = (mp.fsum(row[i] for row in moments) / m**2 for i in (2, 3, 4))
    value, variance = delta(x, y, vx, vy, cov, a, b)
    return value, root(variance)


def interval(mu: mpf, sigma: mpf, bounds: tuple[float, float] | None) -> list[mpf]:
    z = mp.sqrt(2) * mp.erfinv(mpf(repr(CONFIDENCE)))
    lo, hi = mu - z * sigma, mu + z * sigma
    if bounds is not None:
        lo, hi = (min(max(end, mpf(bounds[0])), mpf(bounds[1])) for end in (lo, hi))
    return [mu, sigma, lo, hi]


CONFIDENCE = 0.9
TAU, POWERS, LAM = 0.55, (0.3, 0.7), 0.25


def weights_of(k: int) -> list[float]:
    """Weights with a jump at either end: nearly constant in between."""
    return [1.0] if k == 1 else [0.5, *[0.0] * (k - 2), 0.5]


FACTORS = {
    "geom_at_k": ("pass_at_k", "pass_hat_k", *POWERS),
    "geom_ds_at_k": ("pass_at_k", "pass_hat_k", *POWERS),
    "geo_spectrum_at_k": ("pass_at_k", "threshold_spectrum_at_k", LAM, 1 - LAM),
    "geo_spectrum_star_at_k": ("pass_at_k", "mg_pass_at_k", 0.5, 0.5),
}
"""Metrics that are x^a y^b of two others: of each question for geom_at_k, else of the data set."""


def point(function: str, correct: Sequence[int], n: Sequence[int], k: int) -> mpf:
    def drawn(name: str) -> list[mpf]:
        return [draw(c, size, k, scores_of(name, k)) for c, size in zip(correct, n, strict=True)]

    if function not in FACTORS:
        return average(drawn(function))
    x, y, a, b = FACTORS[function]
    if function == "geom_at_k":
        return average([power(one, a) * power(two, b) for one, two in zip(drawn(x), drawn(y), strict=True)])
    return power(average(drawn(x)), a) * power(average(drawn(y)), b)


def posterior(
    function: str, correct: Sequence[int], n: Sequence[int], k: int, alpha0: float, beta0: float
) -> list[mpf]:
    name = function.removesuffix("_ci")
    x, y, a, b = FACTORS.get(name, (name, name, 1, 0))
    moments = [
        joint_moments(mpf(alpha0) + c, mpf(beta0) + size - c, k, x, y)
        for c, size in zip(correct, n, strict=True)
    ]
    if name not in FACTORS:
        mu, sigma = pooled([(row[0], row[2]) for row in moments])
    elif name == "geom_at_k":
        mu, sigma = pooled([delta(*row, a, b) for row in moments])
    else:
        mu, sigma = dataset_delta(moments, a, b)
    return interval(mu, sigma, (0.0, 1.0))


def categorical(
    function: str,
    counts: Sequence[Sequence[int]],
    prior: Sequence[Sequence[int]] | None,
    k: int,
    w: list[float],
) -> list[mpf] | mpf:
    size = len(w)
    before = prior or [[0] * size for _ in counts]
    posteriors = [
        [1 + n + d for n, d in zip(row, extra, strict=True)]
        for row, extra in zip(counts, before, strict=True)
    ]
    if function == "max_at_k":
        return average([best(row, k, w) for row in counts])
    if function == "max_at_k_ci":
        return interval(*pooled([best_moments(row, k, w) for row in posteriors]), (min(w), max(w)))
    if function in ("bayes", "bayes_ci"):
        mu, sigma = pooled([reward_moments(row, w) for row in posteriors])
        return [mu, sigma] if function == "bayes" else interval(mu, sigma, None)
    rescaled = []
    for row, shape in zip(counts, posteriors, strict=True):
        n = sum(row)
        a = mp.fsum(c * mpf(reward) for c, reward in zip(row, w, strict=True)) / n
        rescaled.append((a, reward_moments(shape, w)[1] * (mpf(sum(shape)) / n) ** 2))
    mu, sigma = pooled(rescaled)
    return [mu, sigma] if function == "avg" else interval(mu, sigma, None)


# Cases.

WITHIN_N = ("pass_at_k", "pass_hat_k", "auc_at_k", "maj_at_k", "g_pass_at_k_tau", "mg_pass_at_k")
BEYOND_N = (*FACTORS, "threshold_spectrum_at_k")
POINTS = (*WITHIN_N, *BEYOND_N)
BANKS = (
    ([0], [1]), ([1], [1]), ([3, 4, 0], [5, 5, 5]), ([0, 1, 40, 79, 80], [80] * 5), ([2, 0, 7], [3, 12, 7]),
    ([0], [1000]), ([1000], [1000]), ([0, 1, 371, 500, 998, 1000], [1000] * 6),
)  # fmt: skip
PRIORS = ((1.0, 1.0), (0.5, 0.01), (3.25, 12.5))
CATEGORIES: tuple[tuple[list[list[int]], list[list[int]] | None, list[float]], ...] = (
    ([[1, 0]], None, [0.0, 1.0]),
    ([[1, 2, 2], [1, 2, 2]], [[1, 0, 1], [0, 1, 1]], [0.0, 0.5, 1.0]),
    ([[0, 0, 80, 0], [80, 0, 0, 0], [20, 30, 10, 20]], None, [0.25, -3.0, 1e6, 0.25]),
    ([[3, 0, 1], [0, 12, 0]], [[0, 0, 2], [1, 0, 0]], [2.0, -1.0, 0.5]),
    ([[1000, 0, 0], [0, 0, 1000], [1, 998, 1], [333, 333, 334]], None, [1.0, 0.0, 0.4]),
    ([[1000, 0], [400, 600]], [[0, 7], [7, 0]], [0.0, 1.0]),
    ([[9, 9, 9]], None, [2.0, 2.0, 2.0]),
)


def draws(largest: int) -> list[int]:
    return sorted({k for k in (1, 3, 8, largest // 2, largest) if 1 <= k <= largest})


def requests() -> Iterator[Case]:
    """What is evaluated, without the values: each bank and budget under one of the priors in turn."""
    for bank, (correct, n) in enumerate(BANKS):
        for k in draws(min(n)):
            for function in POINTS:
                yield {"function": function, "correct": correct, "n": n, "k": k}
        budgets = draws(max(n))
        for place, k in enumerate([*budgets, 2 * max(n) + 1] if max(n) < 1000 else budgets):
            alpha0, beta0 = PRIORS[(bank + place) % len(PRIORS) if k < 1000 else 0]
            for name in POINTS if k <= max(n) else BEYOND_N:
                shape = {"alpha0": alpha0, "beta0": beta0}
                yield {"function": f"{name}_ci", "correct": correct, "n": n, "k": k, **shape}
    for counts, prior, w in CATEGORIES:
        shared: Case = {"counts": counts, "w": w}
        for function in ("bayes", "bayes_ci"):
            yield {"function": function, **shared, "prior": prior}
        for function in ("avg", "avg_ci"):
            yield {"function": function, **shared}
        sizes = [sum(row) for row in counts]
        for k in draws(min(sizes)):
            yield {"function": "max_at_k", **shared, "k": k}
        for k in [*draws(max(sizes)), max(sizes) + 3]:
            yield {"function": "max_at_k_ci", **shared, "prior": prior, "k": k}


def evaluate(case: Case) -> list[float]:
    """Return the golden numbers of a case."""
    if "counts" in case:
        values = categorical(case["function"], case["counts"], case.get("prior"), case.get("k", 1), case["w"])
    elif "alpha0" in case:
        values = posterior(
            case["function"], case["correct"], case["n"], case["k"], case["alpha0"], case["beta0"]
        )
    else:
        values = point(case["function"], case["correct"], case["n"], case["k"])
    return [float(value) for value in (values if isinstance(values, list) else [values])]


def main() -> None:
    lines = [json.dumps({**case, "expected": evaluate(case)}) for case in requests()]
    GOLDEN.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(lines)} cases in {GOLDEN}")


if __name__ == "__main__":
    main()
