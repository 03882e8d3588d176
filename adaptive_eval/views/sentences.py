"""The sentences of all views: templates of plain text, which a view escapes as any other text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

from adaptive_eval import __version__
from adaptive_eval.core.determinism import REPEATS
from adaptive_eval.core.results import Decision, ModelResult, PairResult, Results, StopVerdict
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import SessionError
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views import budgets, numbers, verdicts
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import (
    NOTHING,
    decimals_for,
    fixed,
    interval,
    short,
    signed,
    trimmed,
    usd,
)
from adaptive_eval.views.verdicts import state_word

if TYPE_CHECKING:
    from jinja2 import BytecodeCache, Environment
    from jinja2.bccache import Bucket

TEMPLATES = Path(__file__).parent / "templates"


def compiled_templates(kind: str) -> BytecodeCache:
    """Return where an environment keeps its compiled templates: beside Python's, if that may be written."""
    from jinja2 import FileSystemBytecodeCache
    from jinja2 import __version__ as version

    class Kept(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    return Kept(str(TEMPLATES.parent / "__pycache__"), f"%s.{kind}.jinja-{version}")


@cache
def environment() -> Environment:
    """Return the environment of all templates, with the figures and words of the views."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701 - pages are made by an overlay that escapes
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # it takes longer than it saves: a template is filled once or twice
        bytecode_cache=compiled_templates("text"),
    )
    for module in (numbers, verdicts, budgets, sys.modules[__name__]):
        made.globals.update(public(module))
    made.globals.update(app_version=__version__, inert=inert)
    return made


def public(module: ModuleType) -> dict[str, Any]:
    """Return the functions, texts and numbers that a module has for others, by name."""
    found = {}
    for name, value in vars(module).items():
        own = isinstance(value, str | int | tuple) or getattr(value, "__module__", "") == module.__name__
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


def repeat_notices(spec: SessionSpec) -> list[str]:
    """Say how models that should repeat their answers are treated, and if `spend` saves nothing."""
    return said("spec.notices", spec, REPEATS, verdicts.gap_after_two_passes)


def ceiling_words(spec: SessionSpec) -> str:
    """Return the most trials under passes and budget, in words; nothing where none bounds them.

    Examples
    --------
    >>> from adaptive_eval.core.spec import ModelSpec, StoppingSpec, TaskSpec
    >>> task = TaskSpec("t", tuple(f"q{i}" for i in range(60)))
    >>> models = (ModelSpec("a"), ModelSpec("b"))
    >>> spec = SessionSpec(models, (task,), stopping=StoppingSpec(max_passes=80))
    >>> ceiling_words(spec)
    'at most 9,600 trials: 80 passes × 60 questions × 2 models'
    """
    return say("spec.ceiling", spec)


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
    judged: Mapping[str, int] = MappingProxyType({}),
    cut_off: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Promises:
    """Return the promises that belong to a run's rule, family, margin and confidence.

    Examples
    --------
    >>> run = Results("rank all models", "zscore", 0.95, "pair", None, 30, (), (), (), 0, None)
    >>> promises(run).holds
    ()
    """
    kinds = [pair.kind for pair in results.pairs]
    lines = sentences(
        "promises.txt",
        results=results,
        target=target,
        together=together,
        judged=judged,
        cut_off=cut_off,
        compared=len(kinds) - kinds.count("width"),
        kinds=sorted(set(kinds)),
    )
    end = lines.index("---")
    return Promises(tuple(lines[:end]), tuple(lines[end + 1 :]))


def used(results: Results) -> str:
    """Return what a run has used: USD, or tokens if the config gives no price."""
    return f"{short(results.tokens)} tokens" if results.usd is None else usd(results.usd)


_KINDS = 5


def task_rows(results: Results) -> list[list[str]]:
    """Return every model's name and its scores on all tasks, in the order of the leaderboard."""
    cells: dict[str, list[str]] = {line.model: [] for line in results.models}
    for task in results.tasks:
        decimals = decimals_for(
            value for one in task.scores for value in (one.score_low, one.score, one.score_high)
        )
        for one in task.scores:
            span = interval(one.score_low, one.score_high, decimals)
            cells[one.model].append(NOTHING if one.score is None else f"{fixed(one.score, decimals)} {span}")
    return [[model, *row] for model, row in cells.items()]


def level_words(results: Results) -> str:
    """Return the confidence, such as ``95 %``."""
    return f"{trimmed(results.confidence * 100)} %"


def state_words(line: ModelResult, results: Results) -> str:
    """Return a model's state with its note."""
    state = state_word(line, results, running=results.stop is None)
    note = note_words(line, results)
    return f"{state}: {note}" if note else state


def score_name(results: Results) -> str:
    """Return the name of the score that ranks: the mean of question means, of several tasks their mean."""
    return "mean of tasks" if results.tasks else "mean of questions"


def bayes_words(line: ModelResult, decimals: int) -> str:
    """Return Bayes@N μ ± σ."""
    return (
        NOTHING
        if line.bayes_mu is None
        else f"{fixed(line.bayes_mu, decimals)} ± {fixed(line.bayes_sigma, decimals)}"
    )


def difference_words(pair: PairResult, decimals: int) -> str:
    """Return a difference with its sign, or a score that is to be measured."""
    return fixed(pair.difference, decimals) if pair.kind == "width" else signed(pair.difference, decimals)


def span_words(pair: PairResult, decimals: int) -> str:
    """Return the confidence sequence of a difference, or of a score that is to be measured."""
    return interval(pair.difference_low, pair.difference_high, decimals, sign=pair.kind != "width")


def evidence_words(pair: PairResult) -> str:
    """Return the evidence and its threshold; a score that is to be measured has none."""
    if pair.kind == "width":
        return NOTHING
    return f"{fixed(pair.evidence, 2)} / {fixed(pair.threshold, 2)}"


def kinds_words(counts: Mapping[str, int]) -> str:
    """Return counts by kind, most frequent first.

    Examples
    --------
    >>> kinds_words({"timeout": 2, "rate_limit": 12}), kinds_words({})
    ('rate_limit 12, timeout 2', 'none')
    """
    ordered = sorted((-n, kind) for kind, n in counts.items() if n)
    shown = [f"{inert(kind)} {-n:,}" for n, kind in ordered[:_KINDS]]
    if len(ordered) > len(shown):
        shown.append(f"{len(ordered) - len(shown)} more kinds")
    return ", ".join(shown) or "none"


def seconds_words(value: float | None) -> str:
    """Return a latency.

    Examples
    --------
    >>> seconds_words(0.5), seconds_words(None)
    ('0.50 s', '–')
    """
    return NOTHING if value is None else f"{value:.2f} s"


def score_decimals(lines: Sequence[ModelResult]) -> int:
    """Return the number of decimals that suits the scores."""
    return decimals_for(value for line in lines for value in (line.score_low, line.score, line.score_high))


def pair_decimals(pairs: Sequence[PairResult]) -> int:
    """Return the number of decimals that suits the differences."""
    return decimals_for(
        value for pair in pairs for value in (pair.difference, pair.difference_low, pair.difference_high)
    )


SERVER_STATES = {
    "out": "does not answer",
    "probation": "answers again",
    "refused": "refuses the model",
    "joining": "has not answered yet",
    "left": "removed",
}
"""Words of the views for a server that is not in normal use."""


def condition_words(health: EndpointHealth) -> str:
    """Return the problems of an endpoint in words, empty where it has none.

    Examples
    --------
    >>> errors = {"server": 2}
    >>> condition_words(EndpointHealth("a", "http://a/v1", 0, 8, 0, 0.0, 0.0, None, None, errors, "out"))
    'does not answer, server 2'
    """
    state = "" if health.state == "in" else SERVER_STATES.get(health.state, inert(health.state))
    errors = kinds_words(health.errors) if any(health.errors.values()) else ""
    return ", ".join(filter(None, (state, errors)))
