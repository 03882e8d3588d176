"""Permutations of trials between two models within each question: the models are equal on every question."""

from collections.abc import Sequence

import numpy as np

from scorio.arrays import AT_ONCE, Floats, Ints, floats
from scorio.sequential.evidence import ROUNDING


def p_within_questions(first: Sequence[Floats], second: Sequence[Floats], draws: int, seed: int) -> float:
    """Return the p-value of the difference of mean scores if the models are equal on every question.

    Given all answers to a question, each way to share them out to the two models is then as likely. Of
    answers of two kinds only their numbers matter: with equal numbers of trials the p-value is exact.
    """
    number = [(a.size, b.size) for a, b in zip(first, second, strict=True)]
    pooled = list(map(np.concatenate, zip(first, second, strict=True)))
    kinds = np.unique(np.concatenate(pooled))
    observed = abs(sum(a.mean() - b.mean() for a, b in zip(first, second, strict=True)))
    if kinds.size == 1:
        return 1.0
    if kinds.size > 2:
        return _drawn(pooled, number, observed, draws, seed)
    right = np.array([(answers == kinds[1]).sum() for answers in pooled])
    sizes = np.array(number)
    unit = float(kinds[1] - kinds[0])
    if (sizes == sizes[0]).all() and right.sum() <= AT_ONCE:
        return _counted(right, sizes[0], observed / unit)
    return _drawn_counts(right, sizes, observed / unit, draws, seed)


def _counted(right: Ints, size: Ints, observed: float) -> float:
    """Return the exact p-value: the first model's right answers are a sum of hypergeometric numbers."""
    from scipy.stats import hypergeom

    total = np.ones(1)
    for number in right.tolist():
        total = np.convolve(total, hypergeom(size.sum(), number, size[0]).pmf(np.arange(number + 1)))
    of_first = np.arange(total.size)
    difference = of_first / size[0] - (right.sum() - of_first) / size[1]
    less = total[np.abs(difference) < observed - ROUNDING]
    more = total[np.abs(difference) >= observed - ROUNDING]
    if less.size:
        return float(more.sum())
    return 1.0


def _drawn_counts(right: Ints, sizes: Ints, observed: float, draws: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    of_first = rng.hypergeometric(right, sizes.sum(axis=1) - right, sizes[:, 0], (draws, right.size))
    difference = of_first / sizes[:, 0] - (right - of_first) / sizes[:, 1]
    return _share(difference.sum(axis=1), observed, 1.0)


def _drawn(
    pooled: Sequence[Floats], sizes: Sequence[tuple[int, int]], observed: float, draws: int, seed: int
) -> float:
    rng = np.random.default_rng(seed)
    total = np.zeros(draws)
    for answers, (a, b) in zip(pooled, sizes, strict=True):
        step = max(1, AT_ONCE // answers.size)
        for start in range(0, draws, step):
            rows = min(step, draws - start)
            shuffled = rng.permuted(np.broadcast_to(answers, (rows, answers.size)), axis=1)
            of_first = shuffled[:, :a].sum(axis=1)
            total[start : start + rows] += of_first / a - (answers.sum() - of_first) / b
    return _share(total, observed, float(max(np.abs(answers).max() for answers in pooled)))


def _share(drawn: Floats, observed: float, scale: float) -> float:
    """Return the share of drawn differences of scores of size `scale` that are as large as observed."""
    extreme = int((np.abs(floats(drawn)) >= observed - ROUNDING * scale).sum())
    return (extreme + 1) / (drawn.size + 1)
