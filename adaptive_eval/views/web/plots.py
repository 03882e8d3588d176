"""The numbers behind the plots, as JSON-able data that the page's script draws and tabulates.

Every text in it is inert and short; every number is finite or null. Sizes are bounded: moments by the
history, pairs and questions here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from adaptive_eval.core.results import Forecast, ModelResult, Range, Results
from adaptive_eval.views.inert import inert
from adaptive_eval.views.labels import cut, distinct_labels
from adaptive_eval.views.outlook import Outlook
from adaptive_eval.views.snapshot import RunView, evidence_progress
from adaptive_eval.views.verdicts import flipped, of_kind
from adaptive_eval.views.web.history import Moment, PairPoint
from adaptive_eval.views.web.pages import pair_words
from adaptive_eval.views.web.tally import Tally

PER_PAIR = 5
"""Forecasts shown of one pair at most: neighbouring ones say nearly the same."""


EVIDENCE_PAIRS = 8
"""Pairs whose evidence is drawn: the open ones nearest to a verdict, then those decided last."""

QUESTIONS = 1000
"""Columns of the heat map of questions at most; more questions share a column."""

_LABEL, _SHORT = 18, 10
"""Cells of a name, and on a phone: a legend of twenty has to fit below its plot."""


def plots_data(view: RunView, moments: Sequence[Moment], tally: Tally) -> dict[str, Any]:
    """Return what all plots show."""
    names = [line.model for line in view.models]
    labels, short = distinct_labels(names, _LABEL), distinct_labels(names, _SHORT)
    numbers = {line.model: number for number, line in enumerate(view.results.models)}
    return {
        "models": [
            {"name": labels[name], "short": short[name], "url": f"models/{numbers[name]}"} for name in names
        ],
        "trials": [moment.trials for moment in moments],
        "scores": _scores(names, moments),
        "ranks": [[_rank(moment.models.get(name)) for moment in moments] for name in names],
        "evidence": _evidence(view, moments, labels),
        "matrix": _matrix(view.results, names, labels),
        "cells": _cells(names, tally),
        "cost": _cost(view, moments),
        "calibration": _calibration(view.results, moments, labels),
    }


def _scores(names: Sequence[str], moments: Sequence[Moment]) -> dict[str, Any]:
    rows = [[moment.models.get(name) for moment in moments] for name in names]
    return {
        field: [[_number(getattr(point, field)) if point else None for point in row] for row in rows]
        for field in ("score", "low", "high")
    }


def _rank(point: ModelResult | None) -> int | None:
    return None if point is None or point.score is None else point.rank


def _evidence(view: RunView, moments: Sequence[Moment], labels: Mapping[str, str]) -> dict[str, Any]:
    decided = sorted(view.decided_pairs, key=lambda pair: -(pair.decided_at or 0))
    shown = [*(one.pair for one in view.open_pairs), *decided][:EVIDENCE_PAIRS]
    order = {(pair.first, pair.second): number for number, pair in enumerate(view.results.pairs)}
    lines = []
    for pair in shown:
        key = (pair.first, pair.second) if (pair.first, pair.second) in order else (pair.second, pair.first)
        lines.append(
            {
                "name": f"{_of(labels, pair.first)} – {_of(labels, pair.second)}",
                "url": f"pairs/{order[key]}",
                "open": pair.verdict == "open",
                "values": _until_called([moment.pairs.get(key) for moment in moments]),
            }
        )
    thresholds = [next((point.threshold for point in moment.pairs.values()), None) for moment in moments]
    return {"pairs": lines, "threshold": [_number(value) for value in thresholds]}


def _until_called(points: Sequence[PairPoint | None]) -> list[float | None]:
    """Return the evidence of a pair up to the moment at which it was called."""
    called = next((k for k, point in enumerate(points) if point is not None and not point.open), len(points))
    return [
        _number(point.evidence) if point is not None and k <= called else None
        for k, point in enumerate(points)
    ]


def _matrix(results: Results, names: Sequence[str], labels: Mapping[str, str]) -> dict[str, Any] | None:
    """Return every pair seen from the model of its row; None where the goal compares no pairs of models."""
    if not any(pair.kind == "pair" for pair in results.pairs):
        return None
    place = {name: i for i, name in enumerate(names)}
    size = len(names)
    kind: list[list[str | None]] = [[None] * size for _ in names]
    words: list[list[str]] = [[""] * size for _ in names]
    urls: list[list[str | None]] = [[None] * size for _ in names]
    for number, pair in enumerate(results.pairs):
        if pair.kind != "pair":
            continue
        for seen in (pair, flipped(pair)):
            i, j = place[seen.first], place[seen.second]
            kind[i][j] = seen.verdict
            words[i][j] = pair_words(seen, labels)
            urls[i][j] = f"pairs/{number}"
    progress = [[0.0] * size for _ in names]
    for pair in of_kind(results, "pair").pairs:
        i, j = place[pair.first], place[pair.second]
        progress[i][j] = progress[j][i] = round(evidence_progress(pair.evidence, pair.threshold), 3)
    return {"kind": kind, "progress": progress, "words": words, "urls": urls}


def _cells(names: Sequence[str], tally: Tally) -> dict[str, Any]:
    rows = [tally.row(name) for name in names]
    counts = np.array(
        [np.zeros(len(tally.questions)) if row is None else tally.stored[row] for row in rows]
    ).reshape(len(names), len(tally.questions))
    width = max(1, math.ceil(len(tally.questions) / QUESTIONS))
    starts = np.arange(0, len(tally.questions), width)
    if width > 1:
        counts = np.add.reduceat(counts, starts, axis=1) if len(starts) else counts
    return {
        "counts": counts.astype(int).tolist(),
        "questions": [_column_words(tally.questions[start : start + width]) for start in starts.tolist()],
        "urls": [f"questions/{start}" if width == 1 else "questions" for start in starts.tolist()],
        "per_column": width,
    }


def _column_words(questions: Sequence[tuple[str, str]]) -> str:
    first = cut(inert("/".join(questions[0])), _LABEL)
    return first if len(questions) == 1 else f"{first} and {len(questions) - 1} more"


def _cost(view: RunView, moments: Sequence[Moment]) -> dict[str, Any]:
    priced = any(moment.usd is not None for moment in moments)
    unit = "usd" if priced else "tokens"
    limit = next(
        (use.line.limit for use in view.budgets if (use.line.name, use.line.scope) == (unit, "run")), None
    )
    return {
        "unit": unit,
        "elapsed": [_number(moment.elapsed) for moment in moments],
        "spent": [_number((moment.usd or 0.0) if priced else moment.tokens) for moment in moments],
        "limit": _number(limit),
        "ahead": _ahead(view.outlook, unit),
    }


def _ahead(outlook: Outlook | None, unit: str) -> dict[str, Any] | None:
    if outlook is None or outlook.seconds is None:
        return None
    amount = outlook.forecast.usd if unit == "usd" else outlook.forecast.tokens
    return None if amount is None else {"seconds": _range(outlook.seconds), "amount": _range(amount)}


def _calibration(results: Results, moments: Sequence[Moment], labels: Mapping[str, str]) -> dict[str, Any]:
    """Compare the forecasts with what happened: of the whole run, and of single pairs."""
    said = [(moment, moment.forecast) for moment in moments if moment.forecast is not None]
    pairs = _pair_forecasts(said, results)
    stop = results.stop
    return {
        "trials": [moment.trials for moment, _ in said],
        # trials of the whole run from its start to its end
        "total": [_range(forecast.trials, moment.issued) for moment, forecast in said],
        "issued": sum(line.issued for line in results.models),
        "finished": stop is not None and stop.reason == "resolved",
        "held": [sum(span.low <= happened <= span.high for _, span, happened, _ in pairs), len(pairs)],
        "pairs": [
            {
                "name": f"{_of(labels, first)} – {_of(labels, second)}",
                "said": _range(span),
                "happened": happened,
                "open": still_open,
            }
            for (first, second), span, happened, still_open in pairs
        ],
    }


def _pair_forecasts(
    forecasts: Sequence[tuple[Moment, Forecast]], results: Results
) -> list[tuple[tuple[str, str], Range, int, bool]]:
    """Return forecasts of pairs, the further trials that came, and whether the pair is open after them.

    Of an open pair, forecasts count from when its trials are beyond their intervals: to leave it out then
    would choose the pairs that were quick.
    """
    ends = {(pair.first, pair.second): (pair.trials, pair.decided_at) for pair in results.pairs}
    asked_models = {line.model for line in results.models if line.state != "reference"}
    found: dict[tuple[str, str], list[tuple[tuple[str, str], Range, int, bool]]] = {}
    for moment, forecast in forecasts:
        for said in forecast.pairs:
            key = said.first, said.second
            point = moment.pairs.get(key)
            if key not in ends or point is None:
                continue
            trials, call = ends[key]
            happened = sum(name in asked_models for name in key) * ((call or trials) - point.trials)
            if happened >= 0 and (call is not None or happened > said.trials.high):
                found.setdefault(key, []).append((key, said.trials, happened, call is None))
    return [check for checks in found.values() for check in checks[:: -(-len(checks) // PER_PAIR)]]


def _of(labels: Mapping[str, str], name: str) -> str:
    """Return the label of a model, or the number that a model is held against."""
    return labels.get(name) or cut(inert(name), _LABEL)


def _range(value: Range, before: int = 0) -> list[float | None]:
    return [_number(before + end) for end in (value.low, value.median, value.high)]


def _number(value: float | None) -> float | None:
    """Return a number with six digits, which no plot can show more of; None where it is not finite."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
