"""Realistic results for tests of monitor and report: what a session would say at several moments.

:func:`example` draws results from true scores and steps walked with a plain interval formula (the figures
only need to be consistent with each other, not exact). The named moments below are the ones every view has
to survive.
"""

import io
import itertools
import math
from dataclasses import replace
from typing import Any

from rich.console import Console

from adaptive_eval.core.results import (
    BudgetLine,
    Decision,
    ModelResult,
    PairForecast,
    PairResult,
    Range,
    Results,
    RunForecast,
    StopVerdict,
    to_json,
)
from adaptive_eval.store.records import EndpointHealth, SnapshotRecord
from adaptive_eval.views.summary import RunHeader, RunSummary, summary_at
from adaptive_eval.views.terminal import leaderboard, run_display

STARTED = 1_750_000_000.0  # 2025-06-15T15:06:40Z
HEADER = RunHeader("aime-shootout", STARTED)

HOSTILE_NAMES = (
    "\x1b[2J\x1b[31mred-alert",
    "[red]markup[/red] | pipe",
    "user‮gnp.exe",
    "line\nbreak `tick` <script>alert(1)</script>",
    "very-long-" + "name-" * 60 + "end",
)

UNKNOWN = ("score", "score_low", "score_high", "bayes_mu", "bayes_sigma")
"""What is None of a model without an answer."""

QUICKSTART = {"oak": 0.86, "elm": 0.72, "ash": 0.71, "fir": 0.55, "yew": 0.31}


def example(
    scores: dict[str, float],
    steps: dict[str, int] | int,
    *,
    questions: int = 40,
    stop: StopVerdict | None = None,
    warnings: tuple[str, ...] = (),
    missing: str = "",
) -> Results:
    """Return results of models with these scores after these steps; model `missing` has lost two answers."""
    walked = steps if isinstance(steps, dict) else dict.fromkeys(scores, steps)
    pairs = tuple(_pair(a, b, scores, walked, questions) for a, b in itertools.combinations(scores, 2))
    lines = []
    for rank, name in enumerate(sorted(scores, key=lambda name: -scores[name]), start=1):
        mine = [pair for pair in pairs if name in (pair.first, pair.second)]
        line = _model(name, scores[name], walked[name], 2 * (name == missing), rank, mine)
        if stop is not None:
            line = replace(line, state="retired", issued=walked[name])
        lines.append(replace(line, questions=min(line.trials, questions)))
    trials = sum(line.trials for line in lines)
    budgets = BudgetLine("trials", trials, 24, 20_000), BudgetLine("tokens", 470 * trials, 9_000, 50_000_000)
    return Results(
        goal="rank all models",
        rule="anytime",
        confidence=0.95,
        family="holm",
        equivalence=0.05,
        questions=questions,
        models=tuple(lines),
        pairs=pairs,
        budgets=budgets,
        trials=trials,
        stop=stop,
        warnings=warnings,
    )


def _pair(a, b, scores, walked, questions):
    """Return a pair that is decided where its difference is large enough after the steps of both."""
    t, threshold = min(walked[a], walked[b]), 5.3
    if t == 0:
        return PairResult(a, b, "open", None, None, None, 0.0, threshold, None, 0, 0, None)
    difference, variance = scores[a] - scores[b], 0.3 / t
    radius, evidence = 2.8 * math.sqrt(variance), difference**2 / variance / 2 - 1.2
    margin = min(1.0, (0.025 - abs(difference)) / (variance * 60))
    verdict = "tie" if margin >= 1 else "open"
    if evidence >= threshold:
        verdict = "better" if difference > 0 else "worse"
    return PairResult(
        a, b, verdict, difference, difference - radius, difference + radius,
        evidence, threshold, margin, t, min(t, questions), None if verdict == "open" else t,
    )  # fmt: skip


def _model(name, score, t, missing, rank, pairs):
    """Return the line of a model after `t` steps, whose rank interval its pairs bound."""
    won = sum(pair.verdict == ("better" if pair.first == name else "worse") for pair in pairs)
    lost = sum(pair.verdict == ("worse" if pair.first == name else "better") for pair in pairs)
    state = "active" if any(pair.verdict == "open" for pair in pairs) else "retired"
    trials = max(0, t - missing)
    counts = {"trials": trials, "issued": t + 4, "missing": missing, "after_stop": 0, "questions": 0}
    tokens = {"prompt_tokens": 120 * trials, "completion_tokens": 350 * trials, "usd": 0.4 * 350e-6 * trials}
    ranks = {"rank": rank, "rank_low": 1 + lost, "rank_high": 1 + len(pairs) - won}
    if trials == 0:
        return ModelResult(name, state, **counts, **dict.fromkeys(UNKNOWN), **ranks | {"rank": 1}, **tokens)
    radius = 2.6 * math.sqrt(max(score * (1 - score), 0.01) / trials)
    low, high, mu = max(0.0, score - radius), min(1.0, score + radius), (score * trials + 1) / (trials + 2)
    known = dict(zip(UNKNOWN, (score, low, high, mu, radius / 2.6), strict=True))
    return ModelResult(name, state, **counts, **known, **ranks, **tokens)


RESOLVED = StopVerdict("resolved", evidence={"pairs": 10, "tied_pairs": 1})
MORE = RunForecast(
    0.91,
    Range(594, 1_056, 4_362),
    Range(83e3, 147e3, 609e3),
    Range(0.21, 0.4, 1.6),
    (PairForecast("oak", "elm", 0.95, Range(500, 900, 4_000)),),
)
"""What the moment midrun might foresee."""


def finished() -> Results:
    """Return the end of the quickstart: four models separated or tied, all pairs resolved."""
    steps = {"oak": 320, "elm": 2_400, "ash": 2_400, "fir": 410, "yew": 120}
    return example(QUICKSTART, steps, stop=RESOLVED)


def midrun() -> Results:
    """Return a run on its way: some pairs resolved, some open, two answers missing."""
    steps = {"oak": 160, "elm": 160, "ash": 160, "fir": 160, "yew": 90}
    return example(QUICKSTART, steps, missing="ash", warnings=("ash: 2 trials have no answer",))


def out_of_budget() -> Results:
    """Return a run that its trial budget ended with pairs unresolved."""
    return replace(
        midrun(), stop=StopVerdict("budget", "budget ended before the goal was reached: 728 of 730 trials")
    )


def one_model() -> Results:
    """Return a run of a single model: no pairs."""
    return example({"oak": 0.86}, 300)


def twenty_models() -> Results:
    """Return a run of 20 models with long names, most pairs resolved."""
    scores = {f"vendor-{i % 5}/model-{i:02d}-instruct-2507": 0.95 - 0.043 * i for i in range(20)}
    steps = {name: 60 + 37 * (i % 7) + 40 * (i % 3) for i, name in enumerate(scores)}
    return example(scores, steps, questions=500)


def no_trials() -> Results:
    """Return the very first results: nothing answered yet."""
    return example(QUICKSTART, 0)


def all_none() -> Results:
    """Return results in which everything that may be None is, with nothing limited."""
    base = example(QUICKSTART, 3)
    models = tuple(replace(line, usd=None, **dict.fromkeys(UNKNOWN)) for line in base.models)
    pairs = tuple(
        replace(
            pair,
            verdict="open",
            difference=None,
            difference_low=None,
            difference_high=None,
            tie_margin=None,
            decided_at=None,
        )
        for pair in base.pairs
    )
    budgets = tuple(replace(line, limit=None) for line in base.budgets)
    return replace(base, models=models, pairs=pairs, budgets=budgets, equivalence=None)


def hostile() -> Results:
    """Return a run whose model names, warnings and stop text try to act on the display."""
    scores = {name: 0.9 - 0.2 * i for i, name in enumerate(HOSTILE_NAMES)}
    base = example(scores, 200, warnings=("bad \x1b]0;title\x07 [bold]warning[/bold]\nsecond line",))
    return replace(base, stop=StopVerdict("interrupted", "stopped by \x1b[5m[blink]someone"))


def against_a_number() -> Results:
    """Return a run that holds every model against 0.6: the second name of a pair is the number."""
    base = example(QUICKSTART, 200)
    verdicts = {"oak": "better", "elm": "better", "ash": "open", "fir": "tie", "yew": "worse"}
    pairs = tuple(
        PairResult(
            name, "0.6", verdict, score - 0.6, score - 0.68, score - 0.52, 4.0, 5.3, 0.4, 200, 40,
            None if verdict == "open" else 180, "threshold",
        )
        for (name, score), verdict in zip(QUICKSTART.items(), verdicts.values(), strict=True)
    )  # fmt: skip
    models = tuple(replace(line, rank_low=1, rank_high=5) for line in base.models)
    return replace(base, goal="say of every model whether it is above 0.6", models=models, pairs=pairs)


def to_a_width() -> Results:
    """Return a run that measures every model to a width: a tie means measured."""
    base, pairs = against_a_number(), []
    for pair in base.pairs:
        measured = {"second": "width 0.1", "kind": "width", "evidence": 0.0, "tie_margin": None}
        pairs.append(replace(pair, **measured, verdict="open" if pair.verdict == "open" else "tie"))
    goal = "every model's interval no wider than 0.1"
    return replace(base, goal=goal, equivalence=None, pairs=tuple(pairs))


def of_several_goals() -> Results:
    """Return a run that ranks, holds every model against a number and measures it, each partly done."""
    base, number, width = midrun(), against_a_number(), to_a_width()
    goal = f"{base.goal}, and {number.goal}, and {width.goal}"
    return replace(base, goal=goal, pairs=(*base.pairs, *number.pairs, *width.pairs))


MOMENTS = {
    build.__name__: build
    for build in (
        finished, midrun, out_of_budget, one_model, twenty_models, no_trials, all_none, hostile,
        against_a_number, to_a_width, of_several_goals,
    )
}  # fmt: skip


def decisions_of(results: Results) -> tuple[Decision, ...]:
    """Return the decisions a session would have told on its way to these results."""
    told = []
    for pair in sorted(results.pairs, key=lambda pair: pair.decided_at or 0):
        if pair.decided_at is not None:
            evidence = {
                "difference": pair.difference,
                "low": pair.difference_low,
                "high": pair.difference_high,
                "margin": 0.05,
            }
            evidence |= {"statistic": pair.evidence, "threshold": pair.threshold}
            of = (pair.first, pair.second), pair.verdict, pair.decided_at, 2 * pair.decided_at
            told.append(Decision("pair", *of, evidence=evidence))
    if results.stop is not None:
        stop = results.stop
        told.append(Decision("stop", (), stop.reason, 0, results.trials, stop.text, stop.evidence))
    return tuple(told)


def endpoints_of(results: Results, *, failing: bool = False) -> tuple[EndpointHealth, ...]:
    """Return the health of one endpoint a model."""
    return tuple(
        EndpointHealth(
            model=line.model,
            endpoint=f"http://127.0.0.1:80{i:02d}/v1",
            in_flight=3 if line.state == "active" else 0,
            limit=8,
            answered=line.trials,
            requests_per_second=7.5,
            tokens_per_second=2_600.0,
            p50=0.42,
            p95=1.7,
            errors={"timeout": 3, "rate_limit": 12} if failing and i == 1 else {},
        )
        for i, line in enumerate(results.models)
    )


def snapshot_of(results: Results, elapsed: float = 154.0, *, failing: bool = False) -> SnapshotRecord:
    """Return `results` as the snapshot a running process stores."""
    endpoints = endpoints_of(results, failing=failing)
    return SnapshotRecord(STARTED + elapsed, elapsed, results.trials, to_json(results), endpoints)


def view_of(
    results: Results | str, elapsed: float = 154.0, *, failing: bool = False, **options: Any
) -> RunSummary:
    """Return the view of results, or of a moment by its name."""
    results = MOMENTS[results]() if isinstance(results, str) else results
    return summary_at(
        HEADER, snapshot_of(results, elapsed, failing=failing), decisions_of(results), **options
    )


def drawn(view: RunSummary, width: int, height: int) -> list[str]:
    """Return the lines of the live view of a terminal, which leaves one free for the cursor."""
    console = Console(file=io.StringIO(), width=width, height=height + 1)
    console.print(run_display(view))
    return console.file.getvalue().splitlines()


def board_lines(view: RunSummary, width: int, rows: int) -> list[str]:
    """Return the leaderboard as a terminal shows it."""
    console = Console(file=io.StringIO(), width=width)
    console.print(leaderboard(view, width, rows))
    return console.file.getvalue().splitlines()
