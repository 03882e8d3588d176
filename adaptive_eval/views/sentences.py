"""The sentences of all views: templates of plain text, which a view escapes as any other text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from adaptive_eval import __version__
from adaptive_eval.core.results import Decision, ModelResult, Results, StopVerdict
from adaptive_eval.errors import SessionError
from adaptive_eval.views import budgets, numbers, verdicts
from adaptive_eval.views.inert import inert

TEMPLATES = Path(__file__).parent / "templates"


@cache
def environment() -> Environment:
    """Return the environment of all templates, with the figures and words of the views."""
    made = Environment(  # noqa: S701 - pages are made by an overlay that escapes
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for module in (numbers, verdicts, budgets):
        made.globals.update(public(module))
    made.globals.update(app_version=__version__, inert=inert, describe=describe, say=say, said=said)
    return made


def public(module: ModuleType) -> dict[str, Any]:
    """Return the functions and texts that a module has for others, by name."""
    found = {}
    for name, value in vars(module).items():
        own = isinstance(value, str) or getattr(value, "__module__", "") == module.__name__
        if own and not name.startswith("_"):
            found[name] = value
    return found


def say(name: str, *about: Any) -> str:
    """Return what the macro FILE.NAME says about something.

    Examples
    --------
    >>> run = Results("rank all models", "anytime", 0.95, "holm", 0.05, 30, (), (), (), 0, None)
    >>> say("run.settings", run)
    'Goal: rank all models; rule: anytime at 95 %; Holm over all pairs; ties within ±0.05.'
    """
    file, macro = name.split(".")
    return str(getattr(_module(file), macro)(*about))


def said(name: str, *about: Any) -> list[str]:
    """Return what a macro says in lines, without empty ones."""
    return [line for line in say(name, *about).splitlines() if line]


@cache
def _module(file: str) -> Any:
    return environment().get_template(f"{file}.jinja").module


def sentences(template: str, **context: Any) -> list[str]:
    """Return the lines of a text template, without empty ones."""
    shown = environment().get_template(template).render(context)
    return [line for line in shown.splitlines() if line]


def describe(what: Decision | StopVerdict) -> str:
    """Return a decision, or why a session stopped, as a sentence.

    Examples
    --------
    >>> used = {"scope": "task", "owner": "sums", "used": {"trials": [60, 60]}}
    >>> describe(StopVerdict("budget", evidence=used))
    'the budget of task sums ended before the goal was reached: 60 of 60 trials'
    >>> describe(Decision("model_stopped", ("oak",), "stopped", 7, 90, "HTTP 401"))
    'oak stopped: HTTP 401'
    """
    if isinstance(what, StopVerdict):
        return what.text or say("decisions.stop", what.reason, what.evidence)
    return say("decisions.decision", what)


def note_words(line: ModelResult, results: Results) -> str:
    """Return why a model has stopped, or where a reference is from; empty for any other."""
    if line.note or line.state != "stopped":
        return line.note
    own = [one for one in results.budgets if (one.scope, one.owner) == ("model", line.model)]
    used = {one.name: (one.spent, one.limit) for one in own if one.limit is not None}
    return say("decisions.own_budget", used)


def explain(results: Results, first: str, second: str | None = None) -> str:
    """Describe the result of a pair, with its figures and the promise of the rule."""
    names = [line.model for line in results.models]
    unknown = [name for name in (first, second) if name is not None and name not in names]
    if unknown:
        raise SessionError(f"there is no model {unknown[0]!r}; the models are {', '.join(names)}")
    if second is None:
        found = [pair for pair in results.pairs if pair.kind != "pair" and pair.first == first]
    else:
        found = [pair for pair in results.pairs if {pair.first, pair.second} == {first, second}]
    if not found:
        asked = first if second is None else f"{first} and {second}"
        raise SessionError(f"the goal ({results.goal}) does not ask about {asked}")
    promised = promises(results).holds[:2]
    return "\n\n".join(say("decisions.explained", pair, results, promised) for pair in found)


@dataclass(frozen=True, slots=True)
class Promises:
    """Sentences on what holds and on what does not."""

    holds: tuple[str, ...]  # what the run's rule promises
    limits: tuple[str, ...]  # what it does not, and what is only for reference


def promises(
    results: Results,
    target: str | None = None,
    together: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> Promises:
    """Return the promises that belong to a run's rule, family, margin and confidence.

    Examples
    --------
    >>> run = Results("rank all models", "zscore", 0.95, "pair", None, 30, (), (), (), 0, None)
    >>> promises(run).holds
    ()
    """
    plugin = results.rule_plugin
    margin = results.equivalence
    lines = sentences(
        "promises.txt",
        results=results,
        target=target,
        together=together,
        at=f"{numbers.trimmed(results.confidence * 100)} %",
        error=f"{numbers.trimmed((1 - results.confidence) * 100)} %",
        in_family=plugin is None or plugin.in_family,
        compared=sum(pair.kind != "width" for pair in results.pairs),
        ranked=verdicts.rank_column(results).ranked,
        kinds=sorted({pair.kind for pair in results.pairs}),
        margin=None if margin is None else numbers.trimmed(margin),
        questions=f"{results.questions:,}",
    )
    end = lines.index("---")
    return Promises(tuple(lines[:end]), tuple(lines[end + 1 :]))
