"""Statistics of repeated-trial evaluations.

``from scorio import eval, rank, categorical, sequential, study`` loads the named modules and no other:
SciPy is imported by the functions that need it, so that ``import scorio`` costs little more than NumPy.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["categorical", "eval", "rank", "sequential", "study"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
