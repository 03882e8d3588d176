"""A fresh machine installs what pyproject.toml declares and nothing else: all that is imported is there."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions, requires

import pytest
from command_line import ROOT
from packaging.requirements import Requirement

COMPANIONS = {"pydantic_core"}
"""Parts of a declared package that come under a name of their own: pydantic pins its core to a version."""

OURS = {"adaptive_eval", "scorio"}


def imported_by(package: str) -> set[str]:
    """Return the top-level names of all modules of others that `package` imports anywhere."""
    names: set[str] = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - OURS - set(sys.stdlib_module_names)


def declared(*extras: str) -> set[str]:
    """Return the names of the distributions that the project asks for, with what their own extras bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"]]
    for extra in extras:
        wanted += project["optional-dependencies"].get(extra, [])
    names = set()
    for requirement in map(Requirement, wanted):
        names.add(normal(requirement.name))
        for extra in requirement.extras:
            brought = map(Requirement, requires(requirement.name) or ())
            names |= {normal(r.name) for r in brought if r.marker and r.marker.evaluate({"extra": extra})}
    return names


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("package", sorted(OURS))
def test_everything_imported_is_declared(package: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [name for name in project["optional-dependencies"] if name != "dev"]
    known, homes = declared(*extras), packages_distributions()
    missing = {
        module
        for module in imported_by(package) - COMPANIONS
        if not known & {normal(home) for home in homes.get(module, [module])}
    }
    assert not missing, f"{package} imports {sorted(missing)}, which pyproject.toml does not declare"


@pytest.mark.slow
def test_the_check_sees_imports() -> None:
    assert {"click", "pydantic", "openai", "aiohttp"} <= imported_by("adaptive_eval")
    assert {"numpy", "scipy"} == imported_by("scorio")
