"""The report and the monitor as JSON: stable schemas with versions; see ``docs/report-schema.md``."""

from dataclasses import asdict
from typing import Any

from adaptive_eval.core.results import to_json as results_to_json
from adaptive_eval.errors import codes_of
from adaptive_eval.views.column_types import Shown, data_of, schema_of
from adaptive_eval.views.columns import BUDGETS, ENDPOINTS
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.plain_data import json_lines, json_text
from adaptive_eval.views.report_columns import REPORT
from adaptive_eval.views.sentences import note_words
from adaptive_eval.views.summary import RunSummary

MONITOR_SCHEMA = "adaptive-eval/monitor"
MONITOR_VERSION = 1


class JsonLines:
    """Turns successive views of one run into lines of JSON, described in ``docs/report-schema.md``."""

    def __init__(self) -> None:
        self._said: tuple[Any, ...] | None = None
        self._decisions = 0

    def line(self, summary: RunSummary) -> str | None:
        """Return the line for `summary`, or None if nothing has changed since the last one.

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


def _data(summary: RunSummary, decided: int) -> dict[str, Any]:
    open_pairs = []
    for row in summary.open_pairs:
        names = {"first": row.pair.first, "second": row.pair.second}
        open_pairs.append({**names, "progress": row.progress, "tie": row.tie})
    budgets = [data_of(BUDGETS, use, Shown.JSON | Shown.MONITOR) for use in summary.rates.budgets]
    endpoints = [data_of(ENDPOINTS, health, Shown.MONITOR) for health in summary.endpoints]
    results = results_to_json(summary.results)
    for shown, line in zip(results["models"], summary.results.models, strict=True):
        shown["note"] = note_words(line, summary.results)
    decisions = [{**asdict(one), "text": describe(one)} for one in summary.decisions[decided:]]
    return {
        "schema": MONITOR_SCHEMA,
        "version": MONITOR_VERSION,
        "name": summary.name,
        "state": summary.state,
        "started_at": summary.started,
        "updated_at": summary.updated,
        "elapsed_seconds": summary.elapsed,
        "verdict": summary.headline,
        "trials_per_second": summary.rates.trials,
        "tokens_per_second": summary.rates.tokens,
        "results": results,
        "open_pairs": open_pairs,
        "budgets": budgets,
        "forecast_seconds": _seconds(summary),
        "endpoints": endpoints,
        "new_decisions": decisions,
        "warnings": list(summary.warnings),
        "warning_codes": codes_of(summary.warnings),
    }


def _seconds(summary: RunSummary) -> dict[str, float] | None:
    outlook = summary.outlook
    if outlook is None or outlook.seconds is None:
        return None
    return asdict(outlook.seconds)


def to_json(summary: RunSummary) -> str:
    """Return the report as JSON text: ASCII only, no NaN or infinity, an item of a list on each line."""
    return json_lines(report_data(summary)) + "\n"


def report_data(summary: RunSummary) -> dict[str, Any]:
    """Return the report as plain data."""
    return data_of(REPORT, summary)


def report_schema() -> dict[str, Any]:
    """Return the JSON schema of report.json."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema_of(REPORT)}
