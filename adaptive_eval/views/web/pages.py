"""Pages and parts of pages, from templates that escape everything they are given.

Every string that a template prints is made inert first (:func:`adaptive_eval.views.inert.inert`) and then
escaped for HTML, without being asked to; text of several lines is inert already when it gets here
(:mod:`bounded`). So no template can forget it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from adaptive_eval.core.results import PairResult, Results
from adaptive_eval.views import budgets, numbers
from adaptive_eval.views.bars import Axis, common_axis
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.headline import headline, resolved_words
from adaptive_eval.views.inert import inert
from adaptive_eval.views.labels import SERVER_STATES, distinct_labels
from adaptive_eval.views.missing import often_without_answer
from adaptive_eval.views.numbers import NOTHING, decimals_for, percent
from adaptive_eval.views.outlook import chance, chances_words, range_words
from adaptive_eval.views.phrases import BAYES_NOTE, public
from adaptive_eval.views.ranks import standings
from adaptive_eval.views.run_words import run_problems
from adaptive_eval.views.snapshot import RunView, evidence_progress
from adaptive_eval.views.verdicts import (
    family_words,
    is_single,
    oriented,
    questions_words,
    saved_words,
    state_word,
    tie_words,
    tied_groups,
    verdict_words,
)
from adaptive_eval.views.web.bounded import Block
from adaptive_eval.views.web.tally import Tally


def problems(view: RunView, tally: Tally) -> list[str]:
    """Return everything that is not as it should be, the worst first; empty where nothing is."""
    found = run_problems(view.state, view.models, view.endpoints, int(tally.truncated.sum()))
    return [*found, *view.warnings]


FIGURES = (
    ("scores", "Scores", "Score of every model as trials come in, of up to eight with their intervals."),
    ("evidence", "Evidence", "Log e-value of the closest pairs against the value that calls a winner."),
    ("matrix", "Pairs", "Seen from the model of the row."),
    ("ranks", "Ranks", "Position of every model by score, as trials come in."),
    ("cells", "Where the trials went", "Trials of every model on every question."),
    ("cost", "Cost", "What has been spent over time, the limit, and the forecast (approximate)."),
    (
        "calibration",
        "Forecast against what happened",
        "Total trials as forecast at each moment, with 80 % interval.",
    ),
)
"""The plots: name, title, and what is to be seen."""

LISTED = 150
"""Most pairs that a page lists."""

PARTS = ("state", "summary", "board", "open", "cost", "health", "pairs", "decisions")
"""The parts of a run's page that change during the run, each with its own template."""

LABEL, BRIEF = 40, 24
"""Cells that a model's name takes at most among others and in a pair; its own page shows all of it."""


_inert = lru_cache(maxsize=4096)(inert)  # an update shows mostly what the one before it showed


def _shown(value: object) -> object:
    if value is None:
        return NOTHING
    return _inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _block(value: Block) -> Markup:
    """Print the text of a block with its line ends; everything else in it is inert already."""
    return Markup("{}").format(value.text)


def _stamp(at: float | None) -> str:
    return NOTHING if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _width(value: float, axis: Axis) -> str:
    """Return a place on an axis as the per cent that SVG attributes take."""
    return f"{min(100.0, max(0.0, 100 * (value - axis.low) / (axis.high - axis.low))):.2f}%"


def _progress(pair: PairResult) -> float:
    return evidence_progress(pair.evidence, pair.threshold)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("adaptive_eval.views.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words: Mapping[str, Any] = {
        **public(numbers),
        **public(budgets),
        **{function.__name__: function for function in (chance, often_without_answer, tie_words)},
        "block": _block,
        "both": frozenset,
        "budget_name": lambda line: inert(budgets.budget_name(line)),
        "family": family_words,
        "place": _width,
        "progress": _progress,
        "range": range_words,
        "standings": standings,
        "sentence": describe,
        "stamp": _stamp,
        "verdict": verdict_words,
    }
    environment.filters.update(words)
    environment.globals["server_states"] = SERVER_STATES
    return environment


_ENVIRONMENT = _environment()


def render(template: str, **context: Any) -> str:
    """Return a page or a part of one."""
    return _ENVIRONMENT.get_template(f"{template}.html").render(**context)


def run_context(view: RunView, tally: Tally) -> dict[str, Any]:
    """Return the data of a run's page."""
    results = view.results
    names = [line.model for line in view.models]
    label = distinct_labels(names, LABEL)
    values = [value for line in view.models for value in (line.low, line.score, line.high)]
    return {
        "label": label,
        "brief": brief_labels(view),
        "headline": headline(results, label) if names else view.headline,
        "view": view,
        "results": results,
        "model_number": {line.model: number for number, line in enumerate(results.models)},
        "pair_number": pair_numbers(view),
        "pair_forecast": _pair_forecasts(view),
        "called": _called(view),
        "axis": common_axis(values),
        "decimals": decimals_for(values),
        "noun": _noun(results),
        "asked": questions_words(results.in_rounds, len(results.tasks)),
        "states": state_words(view),
        "ties": tied_groups(results),
        "bayes_note": BAYES_NOTE,
        "resolved": resolved_words(results),
        "chances": chances_words(results),
        "listed_pairs": _listed(view),
        "resolved_share": _resolved_share(view),
        "saved": saved_words(results),
        "problems": problems(view, tally),
    }


def state_words(view: RunView) -> dict[str, str]:
    """Return the state of every model."""
    running = view.state == "running"
    return {line.model: state_word(line, view.results, running=running) for line in view.models}


def brief_labels(view: RunView) -> dict[str, str]:
    """Return short names for pairs, of the models and of a number that they are held against."""
    others = {pair.second: pair.second for pair in view.results.pairs}
    return {**others, **distinct_labels([line.model for line in view.results.models], BRIEF)}


def pair_words(pair: PairResult, label: Mapping[str, str]) -> str:
    """Return the verdict of a pair in a sentence."""
    first, second = label[pair.first], label[pair.second]
    if pair.kind == "width":
        state = "not measured yet" if pair.verdict == "open" else "measured"
        return f"{first} to a {second.replace(' ', ' of ')}: {state}."
    if pair.verdict == "open":
        share = percent(_progress(pair))
        return f"Not resolved: {share} of the evidence that would separate {first} and {second}."
    if pair.verdict == "tie":
        return f"{first} and {second} are tied."
    if pair.kind == "threshold":
        return f"{first} is {'above' if pair.verdict == 'better' else 'below'} {second}."
    ahead = oriented(pair)
    return f"{label[ahead.first]} is ahead of {label[ahead.second]}."


def pair_numbers(view: RunView) -> dict[tuple[str, str], int]:
    """Return the number of each pair, in both orders of its models."""
    numbers = {}
    for number, pair in enumerate(view.results.pairs):
        numbers[pair.first, pair.second] = numbers[pair.second, pair.first] = number
    return numbers


def render_parts(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the HTML of every part of a run's page."""
    return {name: render(f"parts/{name}", **context) for name in PARTS}


def _called(view: RunView) -> dict[frozenset[str], Mapping[str, float]]:
    """Return the evidence with which each pair was called; the threshold has moved on since."""
    return {frozenset(one.models): one.evidence for one in view.decisions if one.kind == "pair"}


def _listed(view: RunView) -> list[PairResult]:
    """Return the pairs that the page lists: of a large board the open ones first, and not all."""
    still_open = [one.pair for one in view.open_pairs]
    if len(view.results.pairs) <= LISTED:
        return [*view.decided_pairs, *still_open]
    return [*still_open, *view.decided_pairs][:LISTED]


def _pair_forecasts(view: RunView) -> dict[tuple[str, str], Any]:
    forecast = view.outlook.forecast if view.outlook is not None else None
    found = {}
    for one in forecast.pairs if forecast is not None else ():
        found[one.first, one.second] = found[one.second, one.first] = one
    return found


def _noun(results: Results) -> str:
    """Return the noun of the goal's contrasts: pairs, models, or both."""
    if is_single(results):
        return "model"
    return "pair" if all(pair.kind == "pair" for pair in results.pairs) else "contrast"


def _resolved_share(view: RunView) -> float:
    pairs = view.results.pairs
    return sum(pair.verdict != "open" for pair in pairs) / len(pairs) if pairs else 0.0
