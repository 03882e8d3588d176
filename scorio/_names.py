"""Names of this package, imported when asked for; names and files of the published one of its name."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

VERSION = "0.2.3"
_FOREIGN = ("sinf/__init__.py", "aggregate", "rank/pairwise.py", "eval/pass_at_k.py")
"""Files that only the published package has."""

NOT_HERE: dict[str, dict[str, tuple[str, ...]]] = {
    "scorio": {"`question_weights` makes a mean over tasks": ("agg", "aggregate")},
    "scorio.eval": {"`tailpass` returns a profile with all of it": ("tailpass_weights", "TailPassDraws")},
    "scorio.rank": {
        "other voting rules; `borda`, `copeland`, `schulze`, `ranked_pairs` and `kemeny_young` are here": (
            *("baldwin", "majority_judgment", "minimax", "nanson"),
        ),
        "rankings of whole lists, which right and wrong answers are not": (
            *("bradley_terry_luce", "bradley_terry_luce_map", "davidson_luce", "davidson_luce_map"),
        ),
        "models of abilities that change, or of several abilities": ("dynamic_irt", "mirt"),
        "rankings of graphs; `pagerank` and `rank_centrality` are here": (
            *("alpharank", "hodge_rank", "nash", "serial_rank", "spectral"),
        ),
        "`bayes` ranks by the posterior": ("bayesian_mcmc", "thompson"),
        "`avg` takes `question_weights`": ("inverse_difficulty",),
        "modules: their functions are in `scorio.rank` itself": (
            *("bayesian", "graph", "irt", "listwise", "pairwise", "pointwise", "priors", "voting"),
        ),
    },
}
"""Names of the published package that this one has not, by module and reason."""
NAMES = {module: set(chain.from_iterable(why.values())) for module, why in NOT_HERE.items()}


def published_table(published: Collection[str]) -> str:
    """Return the table of docs/metrics.md from the full names that the published package has."""
    lines = ["| module | names | here | not here, and what stands for it |", "| :-- | --: | --: | :-- |"]
    modules = dict.fromkeys(name.rpartition(".")[0] for name in published)
    for module in (*(other for other in NOT_HERE if other not in modules), *modules):
        names = {name.rpartition(".")[2] for name in published if name.rpartition(".")[0] == module}
        names |= NAMES.get(module, set())
        reasons = []
        for reason, absent in NOT_HERE.get(module, {}).items():
            listed = ", ".join(f"`{name}`" for name in sorted(absent))
            reasons.append(f"{listed} ({reason})")
        here = len(names) - len(NAMES.get(module, ()))
        lines.append(f"| `{module}` | {len(names)} | {here} | {'; '.join(reasons) or 'none'} |")
    return "\n".join(lines)


def missing_name(module: str, name: str) -> AttributeError:
    """Return the error for a name that a module has not: it says where the published package's names are."""
    if name in NAMES.get(module, ()):
        return AttributeError(
            f"{module}.{name} is in the published package scorio {VERSION}, not in the one of the same name "
            f"that comes with adaptive-eval; pip install scorio=={VERSION} into another environment"
        )
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def foreign_files(folder: Path) -> str | None:
    """Return a warning if files of the published package lie among this one's, else None."""
    if not any((folder / name).exists() for name in _FOREIGN):
        return None
    return (
        f"{folder} mixes two packages called scorio, which gives wrong results or tracebacks; "
        "pip uninstall scorio, then pip install --force-reinstall adaptive-eval"
    )


def elsewhere(module: str) -> Callable[[str], NoReturn]:
    """Return the ``__getattr__`` of a module, which says where a published name is."""

    def refuse(name: str) -> NoReturn:
        raise missing_name(module, name)

    return refuse


def lazy(
    module: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module, of names that are imported when asked for.

    `homes` has the names by the module that defines them.
    """
    of_names = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in of_names:
            raise missing_name(module, name)
        value = getattr(import_module(of_names[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *of_names})

    return load, names


class PublishedNames(MetaPathFinder):
    """Says where a published name is to ``from scorio.rank import minimax``, which asks for a module too."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raise ImportError for a published name that this package has not; no module is found here."""
        module, _, last = name.rpartition(".")
        if last in NAMES.get(module, ()):
            raise ImportError(str(missing_name(module, last)), name=name)
