"""What is said of models that repeat their answers."""

from __future__ import annotations

from collections.abc import Sequence

from adaptive_eval.core.determinism import REPEATS
from adaptive_eval.text.numbers import signed

__all__ = ["exact_words", "tested_words"]


def tested_words(models: Sequence[str]) -> str:
    """Say how models that are said to be deterministic are treated.

    Examples
    --------
    >>> tested_words(["oak"]).partition(":")[0]
    'oak should give the same answer every time (temperature 0, or deterministic: true)'
    """
    return (
        f"{', '.join(models)} should give the same answer every time (temperature 0, or deterministic: "
        f"true): {REPEATS} questions are asked twice, and where the answers agree, every question is asked "
        "once only; deterministic: false asks such a model like any other"
    )


def exact_words(low: float, high: float) -> str:
    """Say what a known difference means for these questions, and for questions like these.

    Examples
    --------
    >>> exact_words(-0.081, 0.141)
    'exact on these questions; on questions like these it lies between -0.081 and +0.141'
    """
    return (
        f"exact on these questions; on questions like these it lies between {signed(low)} and {signed(high)}"
    )
