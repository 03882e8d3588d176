"""Statistics of repeated-trial evaluations.

``from scorio import eval, rank, categorical, sequential, sinf, study, utils`` loads the named modules and
no other: SciPy is imported by the functions that need it, so that ``import scorio`` costs little more than
NumPy.

The published package scorio has the same import name; the two cannot share an environment.
"""

import importlib
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from scorio._names import PublishedNames, foreign_files, missing_name

__version__ = "0.1.0"

__all__ = ["categorical", "eval", "rank", "sequential", "sinf", "study", "utils"]

if (_mixed := foreign_files(Path(__file__).parent)) is not None:
    warnings.warn(_mixed, stacklevel=2)


sys.meta_path.append(PublishedNames())

if TYPE_CHECKING:
    from scorio import categorical, eval, rank, sequential, sinf, study, utils  # noqa: A004
else:

    def __getattr__(name: str) -> ModuleType:
        if name in __all__:
            return importlib.import_module(f"{__name__}.{name}")
        raise missing_name(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
