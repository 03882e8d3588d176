"""A comparison of two runs as Markdown, HTML and JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adaptive_eval.core.results import ModelResult
from adaptive_eval.views.blocks import Items, PageSection, Warn, WholePage, to_text
from adaptive_eval.views.column_types import Column, Span, Unit
from adaptive_eval.views.comparison_sentences import (
    called_words,
    comparison_notes,
    comparison_warnings,
    comparison_words,
    runs_words,
)
from adaptive_eval.views.files import write_files
from adaptive_eval.views.inert import distinct_labels
from adaptive_eval.views.numbers import trimmed
from adaptive_eval.views.page import render
from adaptive_eval.views.plain_data import json_text, picked
from adaptive_eval.views.plots import Axis
from adaptive_eval.views.report_tables import LABEL
from adaptive_eval.views.run_changes import ModelChange, PairChange, RunChanges
from adaptive_eval.views.sentences import score_decimals
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.tables import Look, Table, column, table_of
from adaptive_eval.views.verdicts import rank_column


def write_comparison(comparison: RunChanges, folder: Path) -> list[Path]:
    """Write the comparison as HTML, Markdown and JSON into `folder`, and return the paths."""
    files = {
        "comparison.html": comparison_html(comparison),
        "comparison.md": comparison_markdown(comparison),
        "comparison.json": json_text(comparison_data(comparison), indent=2) + "\n",
    }
    write_files(folder, files)
    return [folder / name for name in files]


def comparison_markdown(comparison: RunChanges) -> str:
    """Return the comparison as Markdown; every name and message in it is escaped."""
    return to_text(_page(comparison, html=False))


def comparison_html(comparison: RunChanges) -> str:
    """Return the comparison as one self-contained HTML page, like the report of one run."""
    return render(_page(comparison, html=True))


def _page(comparison: RunChanges, *, html: bool) -> WholePage:
    names = _labels(comparison) if html else {}
    sections = []
    if comparison.differences:
        sections.append(PageSection("different", "What is different", [Items(comparison.differences)]))
    sections.append(PageSection("scores", "Scores", [_scores(comparison, names)]))
    if comparison.pairs:
        sections.append(PageSection("pairs", "Pairs", [_pairs(comparison, names)]))
    notes = Items(comparison_notes(comparison, _level(comparison)))
    sections.append(PageSection("notes", "How to read this", [notes]))
    title = f"{comparison.before.name} and {comparison.after.name}"
    return WholePage(
        title=title,
        window=f"{title}: compared",
        before="Two runs compared: ",
        verdict=comparison_words(comparison),
        intro=[Items(runs_words(comparison)), *map(Warn, comparison_warnings(comparison))],
        sections=sections,
    )


def _labels(comparison: RunChanges) -> Mapping[str, str]:
    return distinct_labels((one.model for one in comparison.models), LABEL)


def _level(comparison: RunChanges) -> str:
    return f"{trimmed(comparison.confidence * 100)} %"


def _scores(comparison: RunChanges, names: Mapping[str, str]) -> Table:
    before, now = (rank_column(run.results) for run in (comparison.before, comparison.after))
    columns: list[Column[ModelChange]] = [
        column("model", lambda one: one.model, Unit.MODEL),
        column(f"{before.head} before", lambda one: before.of.get(one.model), Unit.NUMBER, spare=True),
        column(f"{now.head} now", lambda one: now.of.get(one.model), Unit.NUMBER, spare=True),
        column("score before", lambda one: one.before and one.before.score, Unit.SCORE, spare=True),
        column("score now", lambda one: one.after and one.after.score, Unit.SCORE, spare=True),
        column("difference", lambda one: one.difference, Unit.DIFFERENCE),
        column(f"{_level(comparison)} interval, at least", _span, Unit.SIGNED_INTERVAL),
        column("score is now", _direction, Unit.VERDICT, kind=_colour),
    ]
    ends = [end for one in comparison.models for end in _span(one)]
    digits = max(score_decimals(run.results.models) for run in (comparison.before, comparison.after))
    look = Look(digits=digits, names=names, scale=Axis.around_zero(ends))
    return table_of("Scores of both runs by model", columns, comparison.models, look)


def _span(one: ModelChange) -> Span:
    return Span(one.difference_low, one.difference, one.difference_high)


def _direction(one: ModelChange) -> str | None:
    words = "cannot be told apart"
    if one.direction != "unknown":
        words = one.direction
    if one.difference_low is None:
        return None
    return words


def _colour(one: ModelChange) -> str:
    return {"higher": "better", "lower": "worse"}.get(one.direction, "bare")


_CHANGES = {
    "same": ("bare", "as before"),
    "settled": ("better", "newly decided"),
    "reopened": ("open", "now open"),
    "reversed": ("worse", "reversed"),
    "changed": ("tie", "changed"),
    "only_before": ("bare", "only before"),
    "only_after": ("bare", "only now"),
}


def _pairs(comparison: RunChanges, names: Mapping[str, str]) -> Table:
    before, after = comparison.before.results, comparison.after.results
    columns: list[Column[PairChange]] = [
        column("pair", lambda one: one.after or one.before, Unit.PAIR),
        column("before", lambda one: called_words(one, one.before, before)),
        column("now", lambda one: called_words(one, one.after, after)),
        column(
            "change", lambda one: _CHANGES[one.kind][1], Unit.VERDICT, kind=lambda one: _CHANGES[one.kind][0]
        ),
    ]
    return table_of("Verdicts of both runs by pair", columns, comparison.pairs, Look(names=names))


def comparison_data(comparison: RunChanges) -> dict[str, Any]:
    """Return the comparison as plain data, as ``docs/report-schema.md`` describes it."""
    keys = "model before after difference difference_low difference_high direction"
    models = [
        picked(one, keys, before=_line_data(one.before), after=_line_data(one.after))
        for one in comparison.models
    ]
    return {
        "schema": "adaptive-eval/comparison",
        "version": 1,
        "verdict": comparison_words(comparison),
        "before": _run_data(comparison.before),
        "after": _run_data(comparison.after),
        "differences": list(comparison.differences),
        "comparable": comparison.comparable,
        "confidence": comparison.confidence,
        "models": models,
        "pairs": list(map(_pair_data, comparison.pairs)),
    }


def _pair_data(one: PairChange) -> dict[str, Any]:
    seen = one.after or one.before
    before, after = one.before and one.before.verdict, one.after and one.after.verdict
    facts = {"kind": seen and seen.kind, "margin": seen and seen.margin}
    keys = "first second kind margin before after change"
    return picked(one, keys, before=before, after=after, change=one.kind, **facts)


def _run_data(summary: RunSummary) -> dict[str, Any]:
    return {
        "name": summary.name,
        "started_at": summary.started,
        "finished": summary.results.stop is not None,
        "trials": summary.results.trials,
        "verdict": summary.headline,
    }


def _line_data(line: ModelResult | None) -> dict[str, Any] | None:
    keys = "score score_low score_high rank_low rank_high trials missing redrawn_trials"
    if line is None:
        return None
    return picked(line, keys)
