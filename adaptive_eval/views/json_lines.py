"""A run as lines of JSON, for scripts: the state at every change, each decision once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from adaptive_eval.core.results_json import to_json
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.plain_data import json_text
from adaptive_eval.views.summary import Summary

SCHEMA = "adaptive-eval/monitor"
VERSION = 1


class JsonLines:
    """Turns successive views of one run into lines of JSON, described in ``docs/report-schema.md``."""

    def __init__(self) -> None:
        self._said: tuple[Any, ...] | None = None
        self._decisions = 0

    def line(self, summary: Summary) -> str | None:
        """Return the line for `summary`, or None where nothing has changed since the last one.

        Examples
        --------
        >>> from adaptive_eval.views.summary import RunHeader, waiting_summary
        >>> lines, summary = JsonLines(), waiting_summary(RunHeader("demo"))
        >>> (lines.line(summary) or "")[:73], lines.line(summary)
        ('{"schema": "adaptive-eval/monitor", "version": 1, "name": "demo", "state"', None)
        """
        if summary.mark == self._said:
            return None
        self._said = summary.mark
        data = _data(summary, self._decisions)
        self._decisions = len(summary.decisions)
        return json_text(data)


def _data(summary: Summary, decided: int) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "name": summary.name,
        "state": summary.state,
        "started_at": summary.started,
        "at": summary.updated,
        "elapsed_seconds": summary.elapsed,
        "headline": summary.headline,
        "trials_per_second": summary.rates.trials,
        "tokens_per_second": summary.rates.tokens,
        "results": to_json(summary.results),
        "open_pairs": [
            {"first": row.pair.first, "second": row.pair.second, "progress": row.progress, "tie": row.tie}
            for row in summary.open_pairs
        ],
        "budgets": [
            {**asdict(use.line), "per_second": use.rate, "seconds_left": use.seconds_left}
            for use in summary.rates.budgets
        ],
        "forecast_seconds": _seconds(summary),
        "endpoints": [asdict(health) for health in summary.endpoints],
        "new_decisions": [{**asdict(one), "text": describe(one)} for one in summary.decisions[decided:]],
        "warnings": list(summary.warnings),
        "warning_codes": [getattr(text, "code", None) for text in summary.warnings],
    }


def _seconds(summary: Summary) -> dict[str, float] | None:
    outlook = summary.outlook
    return None if outlook is None or outlook.seconds is None else asdict(outlook.seconds)
