"""The report's tables as CSV, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from typing import TypeAlias

from adaptive_eval.views.decisions import describe
from adaptive_eval.views.inert import inert, without_formula
from adaptive_eval.views.plain_data import picked
from adaptive_eval.views.summary import Summary

Cell: TypeAlias = str | int | float | None


def models_csv(summary: Summary) -> str:
    """Return the leaderboard as CSV, one model a row."""
    keys = (
        "model state rank rank_low rank_high score score_low score_high bayes_mu bayes_sigma trials issued "
        "questions missing score_if_missing_wrong score_if_missing_right truncated after_stop prompt_tokens "
        "completion_tokens usd latency_p50_seconds latency_p95_seconds"
    )
    rows = (
        picked(
            line,
            keys,
            truncated=account.truncated,
            latency_p50_seconds=account.latency_p50,
            latency_p95_seconds=account.latency_p95,
        )
        for line, account in zip(summary.results.models, summary.known.models, strict=True)
    )
    return _csv(keys, (row.values() for row in rows))


def pairs_csv(summary: Summary) -> str:
    """Return the pairs as CSV, one a row, each seen from its better model."""
    keys = (
        "first second kind verdict difference difference_low difference_high evidence threshold tie_margin "
        "trials_each questions decided_at"
    )
    return _csv(keys, (picked(pair, keys).values() for pair in summary.results.pairs))


def decisions_csv(summary: Summary) -> str:
    """Return the decisions as CSV, one a row, oldest first."""
    keys = "at trials kind first second verdict step text"
    rows = []
    for at, one in zip(summary.times, summary.decisions, strict=True):
        first, second = (*one.models, "", "")[:2]
        rows.append((at, one.trials, one.kind, first, second, one.verdict, one.step, describe(one)))
    return _csv(keys, rows)


def questions_csv(summary: Summary) -> str:
    """Return how every model did on every question as CSV, one question and model a row.

    Only the header where scores are not simply the fraction correct.
    """
    keys = "task question question_correct question_spread model trials correct"
    names = [line.model for line in summary.results.models]
    rows = (
        (one.task, one.question, one.correct, one.spread, name, trials, correct)
        for one in summary.known.questions or ()
        for name, (trials, correct) in zip(names, one.by_model, strict=True)
        if trials
    )
    return _csv(keys, rows)


def _csv(keys: str, rows: Iterable[Iterable[Cell]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(keys.split())
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: Cell) -> str | int | float | None:
    """Return a cell: an infinite number or NaN is left empty, a text is inert and never a formula.

    Examples
    --------
    >>> _cell("=HYPERLINK(1)"), _cell("-3"), _cell(float("nan"))
    ("'=HYPERLINK(1)", '-3', None)
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, str):
        return value
    return without_formula(inert(value))
