"""The report as JSON: a stable schema with a version, described in ``docs/report-schema.md``.

The keys are written out, so that a change of the classes inside never changes the file by
accident. Within one version keys are only added.
"""

from dataclasses import asdict
from typing import Any

from adaptive_eval.core.results import (
    Decision,
    Forecast,
    ModelResult,
    PairResult,
    Results,
    StopVerdict,
    TaskResult,
)
from adaptive_eval.core.results import to_json as results_to_json
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount
from adaptive_eval.views.plain_data import json_lines, json_text, picked
from adaptive_eval.views.plots import shown_pairs
from adaptive_eval.views.score_tables import rankings_data
from adaptive_eval.views.sentences import describe, note_words, promises
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import fixed_length, saved_cost, saving, tied_groups, verdict_words

MONITOR_SCHEMA = "adaptive-eval/monitor"
MONITOR_VERSION = 1


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
        "results": results_to_json(summary.results),
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


SCHEMA = "adaptive-eval/report"
VERSION = 1

MOST_PAIRS, MOST_DECISIONS = 5_000, 2_000
"""Pairs and decisions that the file lists at most; pairs.csv and decisions.csv have all."""

_MODEL = (
    "model state waits_for note rank rank_low rank_high score score_low score_high bayes_mu bayes_sigma "
    "early_rank transfer_mu transfer_sigma trials issued questions missing copies missing_reasons "
    "score_if_missing_wrong score_if_missing_right truncated no_answer after_stop categories errors "
    "prompt_tokens completion_tokens usd latency_p50_seconds latency_p95_seconds"
)
_PAIR = (
    "needed first second verdict kind words difference difference_low difference_high "
    "evidence threshold tie_margin trials_each questions decided_at exact population_low population_high"
)
_BUDGET = "name spent reserved limit scope owner presumed"


def to_json(summary: Summary) -> str:
    """Return the report as JSON text: ASCII only, no NaN or infinity, an item of a list on each line."""
    return json_lines(report_data(summary)) + "\n"


def report_data(summary: Summary) -> dict[str, Any]:
    """Return the report as plain data."""
    results = summary.results
    stop = results.stop
    timed = list(zip(summary.times, summary.decisions, strict=True))
    known = summary.known
    questions = known.questions
    pairs = shown_pairs(results, MOST_PAIRS).shown
    promised = promises(results, known.target, known.together, known.judged, known.cut_off)
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "run": {
            "name": summary.name,
            "started_at": summary.started,
            "updated_at": summary.updated,
            "elapsed_seconds": summary.elapsed,
            "finished": stop is not None,
            "stop": None if stop is None else _stop(stop),
        },
        "verdict": summary.headline,
        "goal": results.goal,
        "rule": {
            "name": results.rule,
            "confidence": results.confidence,
            "family": results.family,
            "equivalence": results.equivalence,
            "target": summary.known.target,
            "package": None if results.rule_plugin is None else results.rule_plugin.package,
            "ties": results.ties,
        },
        "in_rounds": None if results.in_rounds is None else list(results.in_rounds),
        "counts": counts(summary),
        "models": [
            model_data(line, account, results)
            for line, account in zip(results.models, summary.known.models, strict=True)
        ],
        "tasks": [_task(task) for task in results.tasks],
        "pairs": [_pair(pair, results) for pair in pairs],
        "pairs_left_out": len(results.pairs) - len(pairs),
        "ties": [list(group) for group in tied_groups(results)],
        "decisions": [_decision(at, one) for at, one in timed[-MOST_DECISIONS:]],
        "decisions_left_out": max(0, len(timed) - MOST_DECISIONS),
        "budgets": [picked(line, _BUDGET) for line in results.budgets],
        "saving": _saving(summary),
        "forecast": _forecast(results.forecast),
        "promises": {"holds": list(promised.holds), "limits": list(promised.limits)},
        "warnings": list(summary.warnings),
        "warning_codes": [getattr(text, "code", None) for text in summary.warnings],
        "changes": [asdict(change) for change in results.changes],
        "prior": results.prior,
        "rankings": rankings_data(summary.known.rankings) if summary.known.rankings else [],
        "questions": None if questions is None else [_question(one) for one in questions],
        "meta": dict(summary.known.meta),
    }


def counts(summary: Summary) -> dict[str, int]:
    """Count models, trials, and contrasts by verdict."""
    results = summary.results
    verdicts = [pair.verdict for pair in results.pairs if pair.kind != "width"]
    widths = [pair.verdict for pair in results.pairs if pair.kind == "width"]
    return {
        "models": len(results.models),
        "questions": results.questions,
        "trials": results.trials,
        "stored": summary.known.stored,
        "uncounted": summary.uncounted,
        "pairs": len(results.pairs),
        "separated": sum(verdict in ("better", "worse") for verdict in verdicts),
        "tied": verdicts.count("tie"),
        "measured": widths.count("tie"),
        "open": verdicts.count("open") + widths.count("open"),
    }


def model_data(
    line: ModelResult, account: ModelAccount, results: Results, keys: str = _MODEL
) -> dict[str, Any]:
    """Return the figures of a model under the keys of our files."""
    return picked(
        line,
        keys,
        waits_for=list(line.waits_for),
        note=note_words(line, results),
        missing_reasons=dict(account.missing),
        truncated=account.truncated,
        no_answer=dict(account.no_answer),
        categories=list(account.categories),
        errors=dict(account.errors),
        latency_p50_seconds=account.latency_p50_seconds,
        latency_p95_seconds=account.latency_p95_seconds,
    )


def _task(task: TaskResult) -> dict[str, Any]:
    scores = [picked(one, "model score score_low score_high") for one in task.scores]
    return picked(task, "task questions weight scores", scores=scores)


def _pair(pair: PairResult, results: Results) -> dict[str, Any]:
    return picked(pair, _PAIR, words=verdict_words(pair.verdict, results.equivalence, pair.kind))


def _decision(at: float, one: Decision) -> dict[str, Any]:
    return picked(
        one,
        "at trials kind models verdict step text evidence",
        at=at,
        models=list(one.models),
        text=describe(one),
        evidence=dict(one.evidence),
    )


def _stop(stop: StopVerdict) -> dict[str, Any]:
    return {"reason": stop.reason, "text": describe(stop), "evidence": dict(stop.evidence)}


def _forecast(forecast: Forecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    chances = [{"trials": one.trials, "resolved": one.resolved} for one in forecast.chances]
    return {"open_pairs": forecast.open_pairs, "chances": chances}


def _saving(summary: Summary) -> dict[str, Any] | None:
    results = summary.results
    figures, fixed, costs = saving(results), fixed_length(results), saved_cost(results)
    if figures is None:
        return None
    found = {"issued": figures[0], "uniform": figures[1], "fixed": None if fixed is None else fixed[1]}
    if costs is None:
        return found
    return {**found, "cost": dict(zip(("spent", "uniform", "fixed"), costs, strict=True), unit=results.spend)}


def _question(one: QuestionAccount) -> dict[str, Any]:
    tallies = [list(tally) for tally in one.by_model]
    return picked(one, "task question trials correct spread by_model", by_model=tallies)
