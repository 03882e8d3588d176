"""The output of ``adaptive-eval plan``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from adaptive_eval.cli.simulating import per_cent, print_table
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.simulate.result import Rate, SimulationResult
from adaptive_eval.views.verdicts import questions_words

WORST_PAIRS = 5
"""Pairs listed that were called wrongly."""


def show_result(spec: SessionSpec, result: SimulationResult, others: Mapping[str, float]) -> None:
    """Print a simulation's results as tables."""
    stopping = spec.stopping
    margin = "no margin" if stopping.equivalence is None else f"margin {stopping.equivalence:g}"
    asked = questions_words(spec.tasks_in_rounds, len(spec.tasks))
    click.echo(
        f"{spec.goal.text}: {len(spec.models)} models, {spec.questions} questions ({asked}), "
        f"rule {stopping.rule} at {stopping.confidence:g}, family {stopping.family}, {margin}, "
        f"{spec.allocation.models}"
    )
    warning = Session(spec).results().warnings
    for line in warning:
        click.echo(f"warning: {line}")
    click.echo()
    print_table(("<", "<"), _summary(result, others))
    print_table(
        ("<model", "true score", "mean trials", "most trials"),
        [
            (row["model"], f"{row['truth']:.4g}", f"{row['mean_trials']:,.0f}", f"{row['most_trials']:,}")
            for row in result.to_rows("models")
        ],
    )
    wrong = sorted(result.to_rows("pairs"), key=lambda row: -row["wrong"])[:WORST_PAIRS]
    if any(row["wrong"] for row in wrong):
        print_table(
            ("<most often called wrongly", "<", "true gap", "wrong", "tie", "open"),
            [
                (row["first"], row["second"], f"{row['gap']:+.4g}", *(per_cent(row[key], 1) for key in
                 ("wrong", "tie", "open")))
                for row in wrong if row["wrong"]
            ],
        )  # fmt: skip


def _summary(result: SimulationResult, others: Mapping[str, float]) -> list[tuple[str, str]]:
    total = float(result.total.mean())
    reasons = ", ".join(f"{per_cent(n / result.replicates, 1)} {why}" for why, n in result.reasons.items())
    rows = [
        ("runs", f"{result.replicates:,}: {reasons}"),
        ("any wrong winner in a run", str(result.family_wise)),
        ("wrong winners among pairs", str(result.wrong_calls)),
        ("wrong ties among pairs a margin apart", str(result.wrong_ties)),
        ("pairs with a winner", per_cent(result.share("decided"), 1)),
        (_tied_words(result), per_cent(result.share("tie"), 1)),
        ("pairs undecided", per_cent(result.share("open"), 1)),
        (
            "trials of a run",
            f"{total:,.0f} on average; 80 % of runs "
            f"{result.trials_quantile(0.1):,.0f} to {result.trials_quantile(0.9):,.0f}",
        ),
        ("time", f"{result.time.mean():,.1f} on average (seconds, or rounds of answers without a latency)"),
    ]
    for name, value in others.items():
        if name.startswith("fixed:"):
            rows.append((name, per_cent(value, 1)))
        else:
            rows.append((f"against {name}", f"{value:,.0f} trials: {total / value:.2f} of them"))
    if result.exhausted.any():
        share = result.exhausted.any(axis=1).mean()
        rows.append(
            ("recorded trials ran out", f"in {per_cent(share, 1)} of runs, for a model that was still needed")
        )
    return rows


def _tied_words(result: SimulationResult) -> str:
    """Return the definition of a tie."""
    return "pairs tied, or scores measured" if any(gap != gap for gap in result.gap) else "pairs tied"


def result_data(spec: SessionSpec, result: SimulationResult, others: Mapping[str, float]) -> dict[str, Any]:
    """Return a simulation's results as JSON-able data."""

    def rate(value: Rate) -> dict[str, Any]:
        low, high = value.interval()
        return {"count": value.count, "total": value.total, "low": low, "high": high}

    return {
        "goal": spec.goal.text,
        "rule": spec.stopping.rule,
        "policy": spec.allocation.models,
        "replicates": result.replicates,
        "reasons": result.reasons,
        "any_wrong_winner": rate(result.family_wise),
        "wrong_winners": rate(result.wrong_calls),
        "wrong_ties": rate(result.wrong_ties),
        "decided": result.share("decided"),
        "tied": result.share("tie"),
        "undecided": result.share("open"),
        "mean_trials": float(result.total.mean()),
        "mean_time": float(result.time.mean()),
        "compared": dict(others),
        "models": result.to_rows("models"),
        "pairs": result.to_rows("pairs"),
    }
