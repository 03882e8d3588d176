"""Adaptive, budgeted evaluation of language models with a stopping rule that holds while you look.

What is exported here is public (docs/python.md lists it); everything else may change without notice.
"""

from importlib import import_module
from typing import Any

import scorio

__version__ = "0.1.0"

if "sequential" not in scorio.__all__:
    raise ImportError(
        f"{scorio.__file__} is the published package scorio, which has the name of a part of adaptive-eval; "
        "pip uninstall scorio, then install adaptive-eval again, as before"
    )

_PUBLIC = {
    "adaptive_eval.run.evaluate": (
        "Evaluation",
        "EvaluationWarning",
        "evaluate",
        "evaluate_async",
        "resume_run",
        "run_config",
    ),
    "adaptive_eval.run.assertions": ("assert_at_least", "assert_each_question", "assert_not_worse"),
    "adaptive_eval.run.claims": ("Claim", "at_least", "compare_runs", "not_worse", "results_of"),
    "adaptive_eval.core.session": ("Session",),
    "adaptive_eval.core.spec": (
        "AllocationSpec",
        "BudgetSpec",
        "GoalSpec",
        "ModelSpec",
        "Price",
        "SessionSpec",
        "StoppingSpec",
        "TaskSpec",
    ),
    "adaptive_eval.core.results": ("Decision", "ModelResult", "PairResult", "Results", "StopVerdict"),
    "adaptive_eval.views.decision_sentences": ("describe",),
    "adaptive_eval.views.promises": ("explain",),
    "adaptive_eval.trial": ("Completion", "Missing", "TrialKey", "TrialOutcome", "TrialRequest", "Usage"),
    "adaptive_eval.errors": ("AdaptiveEvalError",),
    "adaptive_eval.store.reader": ("RunReader",),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *_MODULE_OF]


def __getattr__(name: str) -> Any:
    """Import a public name when it is asked for, so that importing the package is fast."""
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
