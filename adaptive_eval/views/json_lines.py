"""A run as lines of JSON, for scripts: the state at every change, each decision once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from adaptive_eval.core.results_json import to_json
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.plain_data import json_text
from adaptive_eval.views.snapshot import RunView

SCHEMA = "adaptive-eval/monitor"
VERSION = 1


class JsonLines:
    """Turns successive views of one run into lines of JSON, described in ``docs/report-schema.md``."""

    def __init__(self) -> None:
        self._said: tuple[Any, ...] | None = None
        self._decisions = 0

    def line(self, view: RunView) -> str | None:
        """Return the line for `view`, or None where nothing has changed since the last one.

        Examples
        --------
        >>> from adaptive_eval.views.snapshot import RunHeader, waiting_view
        >>> lines, view = JsonLines(), waiting_view(RunHeader("demo"))
        >>> (lines.line(view) or "")[:73], lines.line(view)
        ('{"schema": "adaptive-eval/monitor", "version": 1, "name": "demo", "state"', None)
        """
        if view.mark == self._said:
            return None
        self._said = view.mark
        data = _data(view, self._decisions)
        self._decisions = len(view.decisions)
        return json_text(data)


def _data(view: RunView, decided: int) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "name": view.name,
        "state": view.state,
        "started_at": view.started,
        "at": view.at,
        "elapsed_seconds": view.elapsed,
        "headline": view.headline,
        "trials_per_second": view.trials_per_second,
        "tokens_per_second": view.tokens_per_second,
        "standings": to_json(view.results),
        "open_pairs": [
            {"first": row.pair.first, "second": row.pair.second, "progress": row.progress, "tie": row.tie}
            for row in view.open_pairs
        ],
        "budgets": [
            {**asdict(use.line), "per_second": use.rate, "seconds_left": use.seconds_left}
            for use in view.budgets
        ],
        "forecast_seconds": _seconds(view),
        "endpoints": [asdict(health) for health in view.endpoints],
        "new_decisions": [{**asdict(one), "text": describe(one)} for one in view.decisions[decided:]],
        "warnings": list(view.warnings),
        "warning_codes": [getattr(text, "code", None) for text in view.warnings],
    }


def _seconds(view: RunView) -> dict[str, float] | None:
    outlook = view.outlook
    return None if outlook is None or outlook.seconds is None else asdict(outlook.seconds)
