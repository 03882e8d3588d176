"""A comparison of two runs as Markdown, HTML and JSON."""

from pathlib import Path
from typing import Any

from adaptive_eval.core.results import ModelResult
from adaptive_eval.views.comparison_sentences import (
    called_words,
    comparison_notes,
    comparison_warnings,
    comparison_words,
    runs_words,
)
from adaptive_eval.views.files import write_files
from adaptive_eval.views.numbers import trimmed
from adaptive_eval.views.page import page, render_markdown
from adaptive_eval.views.plain_data import json_text, picked
from adaptive_eval.views.plots import Scale
from adaptive_eval.views.run_changes import Comparison, PairChange
from adaptive_eval.views.sentences import score_decimals
from adaptive_eval.views.summary import Summary


def write_comparison(comparison: Comparison, folder: Path) -> list[Path]:
    """Write the comparison as HTML, Markdown and JSON into `folder`, and return the paths."""
    files = {
        "comparison.html": comparison_html(comparison),
        "comparison.md": comparison_markdown(comparison),
        "comparison.json": json_text(comparison_data(comparison), indent=2) + "\n",
    }
    write_files(folder, files)
    return [folder / name for name in files]


def comparison_markdown(comparison: Comparison) -> str:
    """Return the comparison as Markdown; every name and message in it is escaped."""
    return render_markdown("two_runs.jinja", **_shown(comparison))


def comparison_html(comparison: Comparison) -> str:
    """Return the comparison as one self-contained HTML page, like the report of one run."""
    return page("two_runs.jinja", **_shown(comparison))


def _shown(comparison: Comparison) -> dict[str, Any]:
    """Return what the comparison shows, as a page and as Markdown."""
    ends = [
        value
        for one in comparison.models
        for value in (one.difference_low, one.difference, one.difference_high)
    ]
    runs = (comparison.before.results, comparison.after.results)
    level = f"{trimmed(comparison.confidence * 100)} %"
    return {
        "comparison": comparison,
        "title": f"{comparison.before.name} and {comparison.after.name}",
        "verdict": comparison_words(comparison),
        "warned": comparison_warnings(comparison),
        "runs": runs_words(comparison),
        "notes": comparison_notes(comparison, level),
        "called": called_words,
        "level": level,
        "decimals": max(score_decimals(results.models) for results in runs),
        "scale": Scale.around_zero(ends),
    }


def comparison_data(comparison: Comparison) -> dict[str, Any]:
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
        "pairs": [_pair_data(one) for one in comparison.pairs],
    }


def _pair_data(one: PairChange) -> dict[str, Any]:
    before, after = one.before and one.before.verdict, one.after and one.after.verdict
    return picked(one, "first second before after change", before=before, after=after, change=one.kind)


def _run_data(summary: Summary) -> dict[str, Any]:
    return {
        "name": summary.name,
        "started_at": summary.started,
        "finished": summary.results.stop is not None,
        "trials": summary.results.trials,
        "verdict": summary.headline,
    }


def _line_data(line: ModelResult | None) -> dict[str, Any] | None:
    keys = "score score_low score_high rank_low rank_high trials missing"
    return None if line is None else picked(line, keys)
