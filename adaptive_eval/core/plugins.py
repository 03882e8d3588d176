"""Plug-in rules and allocation policies, which installed packages offer as entry points.

A package names a factory under ``adaptive_eval.rules`` or ``adaptive_eval.policies``; configs and commands
then take its name like one of ours. What a plug-in returns is checked at every call, so that its mistake
ends the run with its name and never becomes a verdict.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from math import inf
from typing import TYPE_CHECKING, Any

from adaptive_eval.errors import SessionError, UserCodeError
from adaptive_eval.options.decisions import RULE_GROUP, installed

if TYPE_CHECKING:  # the config asks for names alone, and its readers need no arrays
    from scorio.arrays import Bools, Floats
    from scorio.sequential.parts import ContrastBlock, Rule

_RULE_PARTS = ("promise", "warning", "level", "fixed_threshold", "statistic", "tied")


def package_of(group: str, name: str) -> str:
    """Return the package that offers `name`, with its version."""
    distribution = _point(group, name).dist
    if distribution is None:
        return "an unnamed package"
    return f"{distribution.name} {distribution.version}"


def load_rule(name: str, alpha: float, equivalence: float | None) -> Rule:
    """Make the rule that a package offers under `name`."""
    rule = load_plugin(RULE_GROUP, name)(alpha, equivalence)
    missing = [part for part in _RULE_PARTS if not hasattr(rule, part)]
    if missing:
        raise UserCodeError(f"rule {name!r} of {package_of(RULE_GROUP, name)} lacks {', '.join(missing)}")
    return CheckedRule(name, rule)


def _point(group: str, name: str) -> EntryPoint:
    found = [point for point in entry_points(group=group) if point.name == name]
    if not found:
        known = ", ".join(installed(group)) or "none"
        raise UserCodeError(f"no installed package offers {name!r} under {group}; installed: {known}")
    return found[0]


def load_plugin(group: str, name: str) -> Any:
    """Return the factory that a package offers under `name`."""
    point = _point(group, name)
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise UserCodeError(f"{name!r} of {package_of(group, name)} cannot be loaded: {error}") from error


class CheckedRule:
    """A rule of a package, its answers checked."""

    def __init__(self, name: str, rule: Rule) -> None:
        self.name = name
        self.promise = rule.promise
        self.warning = rule.warning
        self.level = rule.level
        self.fixed_threshold = rule.fixed_threshold
        self._rule = rule

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Return the rule's statistic."""
        found = self._rule.statistic(block, complete)
        if found.shape != block.difference.shape or (found != found).any():
            raise SessionError(
                f"rule {self.name!r} must return a number for each of {block.difference.shape} contrasts and "
                f"steps, -inf if no call is allowed; it returned shape {found.shape} with "
                f"{int((found != found).sum())} NaN"
            )
        return found

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Return infinity if the rule allows a tie, minus infinity otherwise."""
        tied = self.tied(block).astype("float64")
        return (2.0 * tied - 1.0) * inf

    def tied(self, block: ContrastBlock) -> Bools:
        """Return where the rule allows a tie."""
        found = self._rule.tied(block)
        if found.shape != block.difference.shape or found.dtype != bool:
            raise SessionError(
                f"rule {self.name!r} must say of each of {block.difference.shape} contrasts and steps "
                f"whether a tie may be called; it returned {found.dtype} of shape {found.shape}"
            )
        return found
