"""The published package of the same name: the names that this one has not, and files left behind by it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

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
