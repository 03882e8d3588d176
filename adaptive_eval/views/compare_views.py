"""A comparison of two runs as Markdown, HTML and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adaptive_eval.core.results import ModelResult, PairResult
from adaptive_eval.views.charts import Scale
from adaptive_eval.views.comparison import Comparison, ModelChange, PairChange, PairKind, comparison_words
from adaptive_eval.views.files import write_files
from adaptive_eval.views.numbers import (
    NOTHING,
    decimals_for,
    fixed,
    interval,
    signed,
    stamp,
    trimmed,
)
from adaptive_eval.views.page import page, render_markdown
from adaptive_eval.views.phrases import pair_words
from adaptive_eval.views.plain_data import json_text, picked
from adaptive_eval.views.ranks import RankColumn, rank_column
from adaptive_eval.views.sentences import sentences
from adaptive_eval.views.summary import Summary

_KIND_WORDS: dict[PairKind, str] = {
    "same": "as before",
    "settled": "newly decided",
    "reopened": "now open",
    "reversed": "reversed",
    "changed": "changed",
    "only_before": "only before",
    "only_after": "only now",
}
_DIRECTIONS = {"higher": "higher", "lower": "lower", "unknown": "cannot be told apart"}


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
    return render_markdown("comparison.md", **_shown(comparison))


def comparison_html(comparison: Comparison) -> str:
    """Return the comparison as one self-contained HTML page, like the report of one run."""
    ends = [value for one in comparison.models for value in (one.low, one.difference, one.high)]
    return page("comparison.html", scale=Scale.around_zero(ends), **_shown(comparison))


def _shown(comparison: Comparison) -> dict[str, Any]:
    """Return what the comparison shows, as a page and as Markdown."""
    rules = {summary.results.rule for summary in (comparison.before, comparison.after)}
    level = f"{trimmed(comparison.confidence * 100)} %"
    return {
        "title": f"{comparison.before.name} and {comparison.after.name}",
        "verdict": comparison_words(comparison),
        "runs": _runs(comparison),
        "warned": _warnings(comparison),
        "different": comparison.differences,
        "model_header": _model_header(comparison),
        "models": list(zip(comparison.models, _model_rows(comparison), strict=True)),
        "pair_header": ["pair", "before", "now", "change"],
        "pairs": list(zip(comparison.pairs, _pair_rows(comparison), strict=True)),
        "notes": sentences("comparison_notes.txt", comparison=comparison, level=level, rules=rules),
    }


def comparison_data(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as plain data, as ``docs/report-schema.md`` describes it."""
    return {
        "schema": "adaptive-eval/comparison",
        "version": 1,
        "verdict": comparison_words(comparison),
        "before": _run_data(comparison.before),
        "after": _run_data(comparison.after),
        "differences": list(comparison.differences),
        "comparable": comparison.comparable,
        "confidence": comparison.confidence,
        "models": [
            picked(
                one,
                "model before after difference difference_low difference_high direction",
                before=_line_data(one.before),
                after=_line_data(one.after),
            )
            for one in comparison.models
        ],
        "pairs": [
            picked(
                one,
                "first second before after change",
                before=one.before and one.before.verdict,
                after=one.after and one.after.verdict,
                change=one.kind,
            )
            for one in comparison.pairs
        ],
    }


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


def _runs(comparison: Comparison) -> list[str]:
    pairs = (("Before", comparison.before), ("Now", comparison.after))
    return [f"{word}: {one.name}, started {stamp(one.started)}. {one.headline}" for word, one in pairs]


def _warnings(comparison: Comparison) -> list[str]:
    warnings = []
    if comparison.comparable is None:
        warnings.append(
            "a run file does not say what was asked; the differences mean something only if both runs asked "
            "and scored the same questions in the same way"
        )
    for word, summary in (("before", comparison.before), ("now", comparison.after)):
        if summary.results.stop is None:
            warnings.append(f"the run {word} ({summary.name}) is not finished")
        warnings += [f"{summary.name}: {text}" for text in summary.warnings]
    return warnings


def _model_header(comparison: Comparison) -> list[str]:
    level = f"{trimmed(comparison.confidence * 100)} % interval, at least"
    before, now = _rank_columns(comparison)
    return [
        "model",
        f"{before.head} before",
        f"{now.head} now",
        "score before",
        "score now",
        "difference",
        level,
        "score is now",
    ]


def _model_rows(comparison: Comparison) -> list[list[str]]:
    lines = [line for one in comparison.models for line in (one.before, one.after) if line is not None]
    decimals = decimals_for(value for line in lines for value in (line.low, line.score, line.high))
    places = [ranks.of for ranks in _rank_columns(comparison)]
    return [
        _model_row(one, [of.get(one.model, NOTHING) for of in places], decimals) for one in comparison.models
    ]


def _rank_columns(comparison: Comparison) -> tuple[RankColumn, RankColumn]:
    return rank_column(comparison.before.results), rank_column(comparison.after.results)


def _model_row(one: ModelChange, places: list[str], decimals: int) -> list[str]:
    return [
        one.model,
        *places,
        *(NOTHING if line is None else fixed(line.score, decimals) for line in _lines(one)),
        signed(one.difference, decimals),
        interval(one.low, one.high, decimals, sign=True),
        NOTHING if one.low is None else _DIRECTIONS[one.direction],
    ]


def _lines(one: ModelChange) -> tuple[ModelResult | None, ModelResult | None]:
    return one.before, one.after


def _pair_rows(comparison: Comparison) -> list[list[str]]:
    return [
        [
            f"{one.first} − {one.second}",
            _pair_words(one, one.before, comparison.before),
            _pair_words(one, one.after, comparison.after),
            _KIND_WORDS[one.kind],
        ]
        for one in comparison.pairs
    ]


def _pair_words(one: PairChange, pair: PairResult | None, summary: Summary) -> str:
    if pair is None:
        return NOTHING
    if pair.verdict in ("better", "worse"):
        return f"{one.first if pair.verdict == 'better' else one.second} ahead"
    return pair_words(pair, summary.results)
