"""Names of this package, imported when asked for; names and files of the published one of its name."""

import re
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Any

VERSION = "0.2.3"
_FOREIGN = ("sinf/__init__.py", "aggregate", "rank/pairwise.py", "eval/pass_at_k.py")
"""Files that only the published package has."""

NAMES = {
    "scorio": {"agg", "aggregate"},
    "scorio.eval": {"tailpass_weights", "TailPassDraws"},
    "scorio.rank": {
        *("alpharank", "baldwin", "bayesian_mcmc", "bradley_terry_luce", "bradley_terry_luce_map"),
        *("davidson_luce", "davidson_luce_map", "dynamic_irt", "glicko", "hodge_rank", "inverse_difficulty"),
        *("majority_judgment", "minimax", "mirt", "nanson", "nash", "ranked_pairs", "rasch_3pl"),
        *("rasch_3pl_map", "rasch_mml", "rasch_mml_credible", "serial_rank", "spectral", "thompson"),
        *("trueskill", "pairwise", "voting", "listwise", "irt", "graph", "pointwise", "bayesian", "priors"),
    },
}
"""Names of the published package that this one has not, by module."""


def missing_name(module: str, name: str) -> AttributeError:
    """Return the error for a name that a module has not: it says where the published package's names are."""
    if name in NAMES.get(module, ()):
        return AttributeError(
            f"{module}.{name} is in the published package scorio {VERSION}, not in the one of the same name "
            f"that comes with adaptive-eval; pip install scorio=={VERSION} into another environment"
        )
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def foreign_files(folder: Path, names: Collection[str] = _FOREIGN) -> str | None:
    """Return a warning where files of the published package lie among this one's, else None."""
    if not any((folder / name).exists() for name in names):
        return None
    return (
        f"{folder} mixes two packages called scorio, which gives wrong results or tracebacks; "
        "pip uninstall scorio, then pip install --force-reinstall adaptive-eval"
    )


def lazy(module: str, file: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__all__``, ``__getattr__`` and ``__dir__`` of a module, for the names in the stub beside it.

    A name is imported when it is asked for, from the module that the stub names.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {name: home for home, name in re.findall(r"^from ([\w.]+) import (\w+) as", stub, re.MULTILINE)}

    def load(name: str) -> Any:
        if name not in homes:
            raise missing_name(module, name)
        home = import_module(homes[name])
        value = import_module(f"{module}.{name}") if home.__name__ == module else getattr(home, name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *homes})

    return sorted(homes), load, names
