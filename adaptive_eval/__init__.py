"""Adaptive, budgeted evaluation of language models with a stopping rule that holds while you look."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import scorio

__version__ = "0.1.0"

if "sequential" not in scorio.__all__:
    raise ImportError(
        f"{scorio.__file__} is the published package scorio, which has the name of a part of adaptive-eval; "
        "pip uninstall scorio, then pip install --force-reinstall adaptive-eval"
    )

_EVALUATION = ("Evaluation", "assert_at_least", "assert_not_worse", "evaluate", "evaluate_async")
_TEXT = ("describe", "explain")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that importing the package is fast.

    ``__init__.pyi`` tells type checkers what there is.
    """
    if name in _EVALUATION:
        return getattr(import_module("adaptive_eval.run.evaluate"), name)
    if name in _TEXT:
        return getattr(import_module("adaptive_eval.text.decision_words"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
