"""convergence@n from its definition, with fractions and sorting: slow, and nothing shared with scorio."""

from fractions import Fraction
from math import comb

import numpy as np


def score(outcomes: np.ndarray, name: str, k: int) -> Fraction:
    """Return avg or Pass@k of one model's (M, n) outcomes."""
    questions, n = outcomes.shape
    if name in ("avg", "bayes"):
        return Fraction(int(outcomes.sum()), questions * n)
    missed = (Fraction(comb(n - int(row.sum()), k), comb(n, k)) for row in outcomes)
    return 1 - sum(missed, Fraction(0)) / questions


def ranking(outcomes: np.ndarray, name: str, k: int) -> list[int]:
    """Return competition ranks of the models of an (L, M, n) tensor."""
    scores = [score(model, name, k) for model in outcomes]
    return [1 + sum(other > mine for other in scores) for mine in scores]


def convergence_at(outcomes: np.ndarray, gold: list[int], name: str, k: int, confirm: int) -> int | None:
    """Return the smallest s <= N - confirm from which on every prefix ranks as `gold`."""
    trials = outcomes.shape[2]
    first = 1 if name in ("avg", "bayes") else k
    matches = {n: ranking(outcomes[:, :, :n], name, k) == gold for n in range(first, trials + 1)}
    for s in range(first, trials - confirm + 1):
        if all(matches[n] for n in range(s, trials + 1)):
            return s
    return None
