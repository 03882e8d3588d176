"""The columns of report.json: a run whole, its parts and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adaptive_eval.core.results import ChangedModel, Results
from adaptive_eval.errors import codes_of
from adaptive_eval.views.budgets import BudgetUse
from adaptive_eval.views.column_types import Column, Shown, Unit, data_of
from adaptive_eval.views.columns import (
    BUDGETS,
    DECISIONS,
    PAIRS,
    QUESTIONS,
    TASKS,
    DecisionRow,
    Tally,
    pair_rows,
)
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.headline import headline
from adaptive_eval.views.model_columns import MODELS, model_rows
from adaptive_eval.views.plots import shown_pairs
from adaptive_eval.views.promises import promises
from adaptive_eval.views.score_tables import agreement
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.verdicts import fixed_length, model_order, saved_cost, saving, tied_groups

JSON = Shown.JSON

SCHEMA = "adaptive-eval/report"
VERSION = 1

MOST_PAIRS, MOST_DECISIONS = 5_000, 2_000
"""Pairs and decisions that the file lists at most; pairs.csv and decisions.csv have all."""


def _stop(summary: RunSummary) -> Mapping[str, Any] | None:
    stop = summary.stop
    if stop is None:
        return None
    return {"reason": stop.reason, "text": describe(stop), "evidence": dict(stop.evidence)}


def counts(summary: RunSummary) -> dict[str, int]:
    """Count models, trials, and contrasts by verdict."""
    results = summary.results
    verdicts = [pair.verdict for pair in results.pairs if pair.kind in ("pair", "threshold")]
    claims = [pair.verdict for pair in results.pairs if pair.kind == "not-worse"]
    widths = [pair.verdict for pair in results.pairs if pair.kind == "width"]
    every = [pair.verdict for pair in results.pairs]
    return {
        "models": len(results.models),
        "questions": results.questions,
        "trials": results.trials,
        "stored": summary.whole_details.stored,
        "uncounted": summary.uncounted,
        "pairs": len(results.pairs),
        "separated": verdicts.count("better") + verdicts.count("worse"),
        "tied": verdicts.count("tie"),
        "measured": widths.count("tie"),
        "held": claims.count("better"),
        "failed": claims.count("worse"),
        "open": every.count("open"),
    }


def _saving(summary: RunSummary) -> Mapping[str, Any] | None:
    results = summary.results
    figures = saving(results)
    fixed = fixed_length(results)
    costs = saved_cost(results)
    if figures is None:
        return None
    found: dict[str, Any] = {"issued": figures[0], "uniform": figures[1], "fixed": None, "cost": None}
    if fixed is not None:
        found["fixed"] = fixed[1]
    if costs is not None:
        found["cost"] = {"spent": costs[0], "uniform": costs[1], "fixed": costs[2], "unit": results.spend}
    return found


def _forecast(summary: RunSummary) -> Mapping[str, Any] | None:
    forecast = summary.results.forecast
    if forecast is None:
        return None
    chances = [{"trials": one.trials, "resolved": one.resolved} for one in forecast.chances]
    return {"open_pairs": forecast.open_pairs, "chances": chances}


def _questions(summary: RunSummary) -> list[Tally] | None:
    questions = summary.whole_details.questions
    if questions is None:
        return None
    return list(map(Tally, questions))


def decision_rows(summary: RunSummary) -> list[DecisionRow]:
    """Return the decisions with their times, oldest first."""
    timed = zip(summary.times, summary.decisions, strict=True)
    return [DecisionRow(at, made) for at, made in timed]


def field(
    key: str, unit: Unit, meaning: str = "", *, optional: bool = False, columns: tuple[Column[Any], ...] = ()
) -> Column[Mapping[str, Any]]:
    """Return a column that is an entry of a mapping, only in JSON."""
    return Column(
        key=key,
        unit=unit,
        value=lambda row: row[key],
        meaning=meaning,
        optional=optional,
        columns=columns,
        outlets=JSON,
    )


STOP = (
    field(
        "reason",
        Unit.WORDS,
        "`resolved`, `partial`, `budget`, `max_passes`, `endpoints`, `unusable`, `lost`, `interrupted`",
    ),
    field("text", Unit.WORDS, "the same in words"),
    field(
        "evidence",
        Unit.DATA,
        "what ended it: `scope`, `owner` and `used` of a budget, the `goals` that are met, the "
        "models that stopped",
    ),
)

COUNTS = (
    field("models", Unit.COUNT, "in the run"),
    field("questions", Unit.COUNT, "in the run"),
    field("trials", Unit.COUNT, "counted trials of all models"),
    field("stored", Unit.COUNT, "outcomes in the run file"),
    field(
        "uncounted",
        Unit.COUNT,
        "of these, those in no figure here: they came after the last stored results, or wait "
        "for an earlier answer",
    ),
    field(
        "pairs",
        Unit.COUNT,
        "asked about; `separated`, `tied`, `measured`, `held`, `failed` and `open` add up to it",
    ),
    field("held", Unit.COUNT, "claims that hold"),
    field("failed", Unit.COUNT, "claims that fail"),
    field("separated", Unit.COUNT, "with a winner, or on one side of a number"),
    field("tied", Unit.COUNT, "declared tied"),
    field("measured", Unit.COUNT, "scores whose interval is as narrow as asked"),
    field("open", Unit.COUNT, "without a verdict"),
)

COST = (
    field("spent", Unit.NUMBER),
    field("uniform", Unit.NUMBER),
    field("fixed", Unit.NUMBER, optional=True),
    field("unit", Unit.WORDS, "`tokens` or `usd`"),
)

SAVING = (
    field("issued", Unit.COUNT, "trials that were issued"),
    field("uniform", Unit.COUNT, "trials of uniform allocation"),
    field("fixed", Unit.COUNT, "trials of a run of fixed length", optional=True),
    field(
        "cost",
        Unit.PART,
        "the same in what the run spends; null for `spend: trials`",
        optional=True,
        columns=COST,
    ),
)

CHANCES = (
    field("trials", Unit.NUMBER, "trials of the run in all"),
    field("resolved", Unit.SHARE, "probability that they reach the goal"),
)

FORECAST = (
    field("open_pairs", Unit.COUNT, "open pairs that the goal needs"),
    field("chances", Unit.ROWS, "numbers of trials for chances of 10, 50 and 80 %", columns=CHANCES),
)

RUN: tuple[Column[RunSummary], ...] = (
    Column(key="name", unit=Unit.NAME, value=lambda run: run.name, outlets=JSON, meaning="the run's name"),
    Column(
        key="started_at",
        unit=Unit.TIME,
        value=lambda run: run.started,
        optional=True,
        outlets=JSON,
        meaning="first start",
    ),
    Column(
        key="updated_at",
        unit=Unit.TIME,
        value=lambda run: run.updated,
        optional=True,
        outlets=JSON,
        meaning="time of the last stored results, from which this report is made",
    ),
    Column(
        key="elapsed_seconds",
        unit=Unit.SECONDS,
        value=lambda run: run.elapsed,
        outlets=JSON,
        meaning="running time, over all sessions",
    ),
    Column(
        key="finished",
        unit=Unit.FLAG,
        value=lambda run: run.stop is not None,
        outlets=JSON,
        meaning="whether the run has stopped",
    ),
    Column(
        key="stop",
        unit=Unit.PART,
        value=_stop,
        columns=STOP,
        optional=True,
        outlets=JSON,
        meaning="why; null while it has not",
    ),
)

RULE: tuple[Column[RunSummary], ...] = (
    Column(
        key="name",
        unit=Unit.WORDS,
        value=lambda run: run.results.rule,
        outlets=JSON,
        meaning="`anytime`, `exact`, `zscore`, or the name of an installed rule",
    ),
    Column(
        key="confidence",
        unit=Unit.SHARE,
        value=lambda run: run.results.confidence,
        outlets=JSON,
        meaning="such as 0.95",
    ),
    Column(
        key="family",
        unit=Unit.WORDS,
        value=lambda run: run.results.family,
        outlets=JSON,
        meaning="`holm`, `pair` or `top-set`: how the error rate is shared among pairs",
    ),
    Column(
        key="equivalence",
        unit=Unit.DIFFERENCE,
        value=lambda run: run.results.equivalence,
        optional=True,
        outlets=JSON,
        meaning="the margin within which models count as tied; null without one",
    ),
    Column(
        key="target",
        unit=Unit.WORDS,
        value=lambda run: run.whole_details.target,
        optional=True,
        outlets=JSON,
        meaning="what the verdicts are about: `benchmark`, these questions, or `population`, those they "
        "were drawn from; null if the run file has no config",
    ),
    Column(
        key="package",
        unit=Unit.WORDS,
        value=lambda run: None if run.results.rule_plugin is None else run.results.rule_plugin.package,
        optional=True,
        outlets=JSON,
        meaning="the package that offers the rule, with its version; null for our own rules",
    ),
    Column(
        key="ties",
        unit=Unit.WORDS,
        value=lambda run: run.results.ties,
        outlets=JSON,
        meaning="over what the error rate of ties holds: `pair` (each by itself) or `family` (all "
        "together, as `family` says)",
    ),
)

PROMISES = (
    field("holds", Unit.NAMES, "what the statistics promise"),
    field("limits", Unit.NAMES, "what they do not"),
)


def _promises(summary: RunSummary) -> Mapping[str, Any]:
    known = summary.whole_details
    found = promises(summary.results, known.target, known.together, known.judged, known.cut_off)
    return {"holds": list(found.holds), "limits": list(found.limits)}


CHANGES: tuple[Column[ChangedModel], ...] = (
    Column(key="model", unit=Unit.MODEL, value=lambda one: one.model, outlets=JSON, meaning="the model"),
    Column(
        key="server",
        unit=Unit.WORDS,
        value=lambda one: one.server,
        outlets=JSON,
        meaning="the server whose answers have changed; empty for all",
    ),
    Column(
        key="trials",
        unit=Unit.COUNT,
        value=lambda one: one.trials,
        outlets=JSON,
        meaning="trials before the change, about",
    ),
    Column(key="at", unit=Unit.TIME, value=lambda one: one.at, outlets=JSON, meaning="when"),
    Column(
        key="before",
        unit=Unit.SCORE,
        value=lambda one: one.before,
        outlets=JSON,
        meaning="mean category before",
    ),
    Column(key="after", unit=Unit.SCORE, value=lambda one: one.after, outlets=JSON, meaning="and after it"),
    Column(
        key="false_alarm",
        unit=Unit.SHARE,
        value=lambda one: one.false_alarm,
        outlets=JSON,
        meaning="its largest probability",
    ),
)

RANKED = tuple(
    column
    for column in MODELS
    if column.key in ("model", "rank", "rank_low", "rank_high", "score", "score_low", "score_high", "missing")
)

RANKINGS = (
    field("name", Unit.NAME, "what it is called"),
    field("trials", Unit.COUNT, "trials that count in it"),
    field("kendall_tau_b", Unit.NUMBER, "agreement with the run's own ranking, from −1 to 1", optional=True),
    field("models", Unit.ROWS, "the models, best first", columns=RANKED),
)


def _ranking(name: str, results: Results, first: Results) -> Mapping[str, Any]:
    ranked = model_rows(replace(results, models=model_order(results)))
    return {
        "name": name,
        "trials": results.trials,
        "kendall_tau_b": agreement(first, results),
        "models": ranked,
    }


def rankings_of(rankings: Sequence[tuple[str, Results]]) -> list[Mapping[str, Any]]:
    """Return the rankings as rows of :data:`RANKINGS`."""
    return [_ranking(name, results, rankings[0][1]) for name, results in rankings]


def rankings_data(rankings: Sequence[tuple[str, Results]]) -> list[dict[str, Any]]:
    """Return the rankings as JSON-able data."""
    return [data_of(RANKINGS, one) for one in rankings_of(rankings)]


JUDGE_ALONE: tuple[Column[Results], ...] = (
    Column(
        key="verdict",
        unit=Unit.WORDS,
        value=headline,
        outlets=JSON,
        meaning="its verdict in one sentence",
    ),
    Column(
        key="pairs",
        unit=Unit.ROWS,
        value=lambda results: pair_rows(shown_pairs(results, MOST_PAIRS).shown, results),
        columns=PAIRS,
        outlets=JSON,
        meaning="all pairs of models by its scores",
    ),
)

REPORT: tuple[Column[RunSummary], ...] = (
    Column(
        key="schema",
        unit=Unit.WORDS,
        value=lambda run: SCHEMA,
        outlets=JSON,
        meaning="the name of this schema",
    ),
    Column(key="version", unit=Unit.COUNT, value=lambda run: VERSION, outlets=JSON, meaning="its version"),
    Column(
        key="run",
        unit=Unit.PART,
        value=lambda run: run,
        columns=RUN,
        outlets=JSON,
        meaning="which run, and when",
    ),
    Column(
        key="verdict",
        unit=Unit.WORDS,
        value=lambda run: run.headline,
        outlets=JSON,
        meaning="the verdict in one sentence",
    ),
    Column(
        key="judge_alone",
        unit=Unit.PART,
        value=lambda run: run.results.judge_alone,
        columns=JUDGE_ALONE,
        optional=True,
        outlets=JSON,
        meaning="what the judge says without labels; null if labels do not decide",
    ),
    Column(
        key="goal",
        unit=Unit.WORDS,
        value=lambda run: run.results.goal,
        outlets=JSON,
        meaning="the goal in words",
    ),
    Column(
        key="rule",
        unit=Unit.PART,
        value=lambda run: run,
        columns=RULE,
        outlets=JSON,
        meaning="the stopping rule",
    ),
    Column(
        key="in_rounds",
        unit=Unit.NAMES,
        value=lambda run: run.results.in_rounds and list(run.results.in_rounds),
        optional=True,
        outlets=JSON,
        meaning="tasks whose questions are asked in rounds; null if the run file does not say",
    ),
    Column(
        key="counts",
        unit=Unit.PART,
        value=counts,
        columns=COUNTS,
        outlets=JSON,
        meaning="numbers of models, trials and pairs",
    ),
    Column(
        key="models",
        unit=Unit.ROWS,
        value=lambda run: model_rows(run.results, run.whole_details.models),
        columns=MODELS,
        outlets=JSON,
        meaning="the leaderboard: by rank interval, then by score; models with few answers last",
    ),
    Column(
        key="tasks",
        unit=Unit.ROWS,
        value=lambda run: run.results.tasks,
        columns=TASKS,
        outlets=JSON,
        meaning="the tasks, whose weights sum to 1; empty for a run of one task",
    ),
    Column(
        key="pairs",
        unit=Unit.ROWS,
        value=lambda run: pair_rows(shown_pairs(run.results, MOST_PAIRS).shown, run.results),
        columns=PAIRS,
        outlets=JSON,
        meaning="what the goal compares, each pair seen from its better model, in leaderboard order; at "
        "most 5,000: open ones first, then ties and the closest",
    ),
    Column(
        key="pairs_left_out",
        unit=Unit.COUNT,
        value=lambda run: max(0, len(run.results.pairs) - MOST_PAIRS),
        outlets=JSON,
        meaning="pairs that are only in `report/pairs.csv`",
    ),
    Column(
        key="ties",
        unit=Unit.DATA,
        value=lambda run: list(map(list, tied_groups(run.results))),
        outlets=JSON,
        meaning="lists of model names; in each list every pair was declared tied",
    ),
    Column(
        key="decisions",
        unit=Unit.ROWS,
        value=lambda run: decision_rows(run)[-MOST_DECISIONS:],
        columns=DECISIONS,
        outlets=JSON,
        meaning="the latest 2,000 decisions, oldest first",
    ),
    Column(
        key="decisions_left_out",
        unit=Unit.COUNT,
        value=lambda run: max(0, len(run.decisions) - MOST_DECISIONS),
        outlets=JSON,
        meaning="earlier decisions, which are only in `report/decisions.csv`",
    ),
    Column(
        key="budgets",
        unit=Unit.ROWS,
        value=lambda run: [BudgetUse(line, None, None) for line in run.results.budgets],
        columns=BUDGETS,
        outlets=JSON,
        meaning="every budget",
    ),
    Column(
        key="saving",
        unit=Unit.PART,
        value=_saving,
        columns=SAVING,
        optional=True,
        outlets=JSON,
        meaning="trials saved by stopping models early ([what each means](report.md#contents)); null "
        "unless the run reached its goal with all its models",
    ),
    Column(
        key="forecast",
        unit=Unit.PART,
        value=_forecast,
        columns=FORECAST,
        optional=True,
        outlets=JSON,
        meaning="what more trials would decide (simulated, approximate); null if nothing is open or "
        "nothing can be said",
    ),
    Column(
        key="promises",
        unit=Unit.PART,
        value=_promises,
        columns=PROMISES,
        outlets=JSON,
        meaning="sentences on what the statistics promise and what they do not",
    ),
    Column(
        key="warnings",
        unit=Unit.NAMES,
        value=lambda run: list(run.warnings),
        outlets=JSON,
        meaning="what the session warned of",
    ),
    Column(
        key="warning_codes",
        unit=Unit.DATA,
        value=lambda run: codes_of(run.warnings),
        outlets=JSON,
        meaning="the [code](troubleshooting.md#codes) of each of them; null for one of a run of an "
        "earlier version",
    ),
    Column(
        key="changes",
        unit=Unit.ROWS,
        value=lambda run: run.results.changes,
        columns=CHANGES,
        outlets=JSON,
        meaning="models whose outcomes on the same questions changed during the run",
    ),
    Column(
        key="prior",
        unit=Unit.WORDS,
        value=lambda run: run.results.prior,
        optional=True,
        outlets=JSON,
        meaning="which earlier trials are in Bayes@N, and where they come from; null for none",
    ),
    Column(
        key="rankings",
        unit=Unit.ROWS,
        value=lambda run: rankings_of(run.whole_details.rankings),
        columns=RANKINGS,
        outlets=JSON,
        meaning="the same answers ranked by other rubrics, the run's own ranking (`as run`) first; "
        "empty unless the config tracks further rubrics or `rescore` was used",
    ),
    Column(
        key="questions",
        unit=Unit.ROWS,
        value=_questions,
        columns=QUESTIONS,
        optional=True,
        outlets=JSON,
        meaning="one entry a question asked; null if scores are not simply the fraction correct",
    ),
    Column(
        key="meta",
        unit=Unit.DATA,
        value=lambda run: dict(run.whole_details.meta),
        outlets=JSON,
        meaning="the run file's own description: config text, hash, seed, versions; all values are "
        "text, paths of the machine are left out",
    ),
)
"""A whole run."""
