"""Golden numbers of `scorio.eval`, from the definitions in exact integers and 80-digit arithmetic.

    python tests/generation/eval_reference.py            # rewrites tests/data/eval_reference.json

Nothing here knows scorio: finite banks are ratios of binomial coefficients, posterior moments are ratios of
rising factorials summed term by term, and variances are differences of moments, which 80 digits can afford.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil, comb
from pathlib import Path
from typing import Any

from mpmath import mp, mpf

GOLDEN = Path(__file__).resolve().parent.parent / "data" / "eval_reference.json"
mp.dps = 80
Case = dict[str, Any]


# Scores of the event "j of k correct", j = 0..k.


def step_scores(k: int, threshold: int) -> list[mpf]:
    return [mpf(j >= threshold) for j in range(k + 1)]


def majority_scores(k: int) -> list[mpf]:
    return step_scores(k, k // 2 + 1)


def tau_scores(k: int, tau: float) -> list[mpf]:
    return step_scores(k, max(1, ceil(mpf(repr(tau)) * k)))


def mg_scores(k: int) -> list[mpf]:
    middle = -(-k // 2)
    return [mpf(2 * max(j - middle, 0)) / k for j in range(k + 1)]


def weight_scores(weights: Sequence[float]) -> list[mpf]:
    scores = [mpf(0)]
    for weight in weights:
        scores.append(scores[-1] + mpf(weight))
    return scores


# Finite banks: c of n correct, k drawn.


def draw(c: int, n: int, k: int, scores: Sequence[mpf]) -> mpf:
    total = comb(n, k)
    return mp.fsum(
        scores[j] * comb(c, j) * comb(n - c, k - j) / mpf(total)
        for j in range(max(0, k - n + c), min(c, k) + 1)
        if scores[j]
    )


def pass_any(c: int, n: int, k: int) -> mpf:
    return 1 - mpf(comb(n - c, k)) / comb(n, k)


def pass_all(c: int, n: int, k: int) -> mpf:
    return mpf(comb(c, k)) / comb(n, k)


def auc(c: int, n: int, k: int) -> mpf:
    if k == 1:
        return pass_any(c, n, 1)
    values = [pass_any(c, n, j) for j in range(1, k + 1)]
    return mp.fsum((left + right) / 2 for left, right in pairwise(values)) / (k - 1)


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


@lru_cache(maxsize=8)
def bernstein(scores: tuple[mpf, ...]) -> tuple[list[mpf], list[mpf]]:
    """Coefficients of g and of g^2 in p^s q^(k - s) and p^s q^(2k - s)."""
    k = len(scores) - 1
    single = [comb(k, j) * scores[j] for j in range(k + 1)]
    present = [j for j in range(k + 1) if single[j]]
    double = [mpf(0)] * (2 * k + 1)
    for i in present:
        for j in present:
            double[i + j] += single[i] * single[j]
    return single, double


def spectrum_moments(a: mpf, b: mpf, scores: Sequence[mpf]) -> tuple[mpf, mpf]:
    single, double = bernstein(tuple(scores))
    mean = mp.fdot(single, beta_moments(a, b, len(single) - 1))
    return mean, mp.fdot(double, beta_moments(a, b, len(double) - 1)) - mean**2


def auc_moments(a: mpf, b: mpf, k: int) -> tuple[mpf, mpf]:
    weights = [mpf(1)] if k == 1 else [mpf(1 if 1 < j < k else 0.5) / (k - 1) for j in range(1, k + 1)]
    failed = [mpf(1)]
    for s in range(2 * k):
        failed.append(failed[-1] * (b + s) / (a + b + s))
    mean = mp.fsum(weight * failed[j] for j, weight in enumerate(weights, 1))
    double = [mpf(0)] * (2 * k + 1)
    for i, left in enumerate(weights, 1):
        for j, right in enumerate(weights, 1):
            double[i + j] += left * right
    return 1 - mean, mp.fdot(double, failed) - mean**2


def any_all_moments(a: mpf, b: mpf, k: int) -> tuple[mpf, mpf, mpf, mpf, mpf]:
    """Means and variances of 1 - q^k and p^k, and their covariance."""
    none, every = mp.rf(b, k) / mp.rf(a + b, k), mp.rf(a, k) / mp.rf(a + b, k)
    none_twice, every_twice = mp.rf(b, 2 * k) / mp.rf(a + b, 2 * k), mp.rf(a, 2 * k) / mp.rf(a + b, 2 * k)
    both = mp.rf(a, k) * mp.rf(b, k) / mp.rf(a + b, 2 * k)
    return 1 - none, every, none_twice - none**2, every_twice - every**2, none * every - both


def any_spectrum_moments(a: mpf, b: mpf, scores: Sequence[mpf]) -> tuple[mpf, mpf, mpf, mpf, mpf]:
    k = len(scores) - 1
    none = mp.rf(b, k) / mp.rf(a + b, k)
    mean, variance = spectrum_moments(a, b, scores)
    single, _ = bernstein(tuple(scores))
    # q^k times g has the coefficients of g with k more powers of q.
    both = mp.fdot(single, beta_moments(a, b, 2 * k)[: k + 1])
    return 1 - none, mean, mp.rf(b, 2 * k) / mp.rf(a + b, 2 * k) - none**2, variance, none * mean - both


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


def point(function: str, correct: Sequence[int], n: Sequence[int], k: int) -> mpf:
    pairs = list(zip(correct, n, strict=True))

    def mean(value: Callable[[int, int], mpf]) -> mpf:
        return average([value(c, size) for c, size in pairs])

    passed, every = mean(lambda c, size: pass_any(c, size, k)), mean(lambda c, size: pass_all(c, size, k))
    spectra = {
        "maj_at_k": majority_scores(k),
        "g_pass_at_k_tau": tau_scores(k, TAU),
        "mg_pass_at_k": mg_scores(k),
        "threshold_spectrum_at_k": weight_scores(weights_of(k)),
        "geo_spectrum_at_k": weight_scores(weights_of(k)),
        "geo_spectrum_star_at_k": mg_scores(k),
    }
    summary = mean(lambda c, size: draw(c, size, k, spectra[function])) if function in spectra else mpf(0)
    a, b = POWERS
    values: dict[str, Callable[[], mpf]] = {
        "pass_at_k": lambda: passed,
        "pass_hat_k": lambda: every,
        "auc_at_k": lambda: mean(lambda c, size: auc(c, size, k)),
        "geom_at_k": lambda: mean(
            lambda c, size: pass_any(c, size, k) ** mpf(a) * pass_all(c, size, k) ** mpf(b)
        ),
        "geom_ds_at_k": lambda: power(passed, a) * power(every, b),
        "geo_spectrum_at_k": lambda: power(passed, LAM) * power(summary, 1 - LAM),
        "geo_spectrum_star_at_k": lambda: mp.sqrt(passed * summary),
    }
    return values.get(function, lambda: summary)()


def posterior(
    function: str, correct: Sequence[int], n: Sequence[int], k: int, alpha0: float, beta0: float
) -> list[mpf]:
    shapes = [(mpf(alpha0) + c, mpf(beta0) + size - c) for c, size in zip(correct, n, strict=True)]
    spectra: dict[str, Callable[[], list[mpf]]] = {
        "pass_at_k_ci": lambda: step_scores(k, 1),
        "pass_hat_k_ci": lambda: step_scores(k, k),
        "maj_at_k_ci": lambda: majority_scores(k),
        "g_pass_at_k_tau_ci": lambda: tau_scores(k, TAU),
        "mg_pass_at_k_ci": lambda: mg_scores(k),
        "threshold_spectrum_at_k_ci": lambda: weight_scores(weights_of(k)),
    }
    if function in spectra:
        scores = spectra[function]()
        mu, sigma = pooled([spectrum_moments(a, b, scores) for a, b in shapes])
    elif function == "auc_at_k_ci":
        mu, sigma = pooled([auc_moments(a, b, k) for a, b in shapes])
    elif function == "geom_at_k_ci":
        mu, sigma = pooled([delta(*any_all_moments(a, b, k), *POWERS) for a, b in shapes])
    elif function == "geom_ds_at_k_ci":
        mu, sigma = dataset_delta([any_all_moments(a, b, k) for a, b in shapes], *POWERS)
    elif function == "geo_spectrum_at_k_ci":
        scores = weight_scores(weights_of(k))
        moments = [any_spectrum_moments(a, b, scores) for a, b in shapes]
        mu, sigma = dataset_delta(moments, LAM, 1 - LAM)
    else:
        mu, sigma = dataset_delta([any_spectrum_moments(a, b, mg_scores(k)) for a, b in shapes], 0.5, 0.5)
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

POINTS = (
    *("pass_at_k", "pass_hat_k", "auc_at_k", "maj_at_k", "g_pass_at_k_tau", "mg_pass_at_k", "geom_at_k"),
    *("geom_ds_at_k", "geo_spectrum_at_k", "geo_spectrum_star_at_k", "threshold_spectrum_at_k"),
)
BEYOND_N = (
    "geom_at_k",
    "geom_ds_at_k",
    "geo_spectrum_at_k",
    "geo_spectrum_star_at_k",
    "threshold_spectrum_at_k",
)
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
