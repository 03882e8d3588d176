"""Sentences about models that repeat their answers."""

from __future__ import annotations

from collections.abc import Sequence

from adaptive_eval.core.determinism import REPEATS
from adaptive_eval.core.results import ContrastKind, Results
from adaptive_eval.views.numbers import fixed, signed
from adaptive_eval.views.verdicts import pair_name


def once_only_words(models: Sequence[str]) -> str:
    """Say how models that are said to be deterministic are treated.

    Examples
    --------
    >>> once_only_words(["oak", "elm"]).partition(" (")[0]
    'oak, elm should give the same answer every time'
    """
    return (
        f"{', '.join(models)} should give the same answer every time (temperature 0, or deterministic: "
        f"true): {REPEATS} questions are asked twice, and where the answers agree, every question is asked "
        "once only; deterministic: false asks such a model like any other"
    )


def exact_words(low: float, high: float, kind: ContrastKind = "pair") -> str:
    """Explain a known difference or score for these questions, and for questions like these.

    Examples
    --------
    >>> exact_words(-0.081, 0.141)
    'exact on these questions; on questions like these it lies between -0.081 and +0.141'
    """
    shown = fixed if kind == "width" else signed
    return f"exact on these questions; on questions like these it lies between {shown(low)} and {shown(high)}"


def exact_pairs(results: Results, most: int = 5) -> list[str]:
    """Return a sentence for each of the first pairs whose difference is known on these questions."""
    found = [pair for pair in results.pairs if pair.exact]
    lines = []
    for pair in found[:most]:
        known = f"{pair_name(pair)} = {signed(pair.difference)}"
        if pair.kind == "width":
            known = f"{pair.first} scores {fixed(pair.difference)}"
        low, high = pair.population_low or 0.0, pair.population_high or 0.0
        lines.append(f"{known}: {exact_words(low, high, pair.kind)}.")
    more = len(found) - most
    return [*lines, f"{more:,} more are exact on these questions."] if more > 0 else lines
