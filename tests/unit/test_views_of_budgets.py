"""Every view names every budget: of the run, of a model, of a task; and what of it is presumed."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import run_examples as runs
import standings_examples as examples
from rich.console import Console

from adaptive_eval.core.results import BudgetLine
from adaptive_eval.views.live import PlainLines
from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.numbers import usd
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.report_json import JsonLines
from adaptive_eval.views.summary import budget_use
from adaptive_eval.views.terminal import render_summary, run_display

BUDGETS = (
    BudgetLine("trials", 500.0, 24.0, 20_000.0),
    BudgetLine("tokens", 40_000.0, 9_000.0, 50_000.0, presumed=1_200.0),
    BudgetLine("usd", 1.5, 0.25, 9.0),
    BudgetLine("prompt_tokens", 700.0, 0.0, 2_000.0, "model", "oak"),
    BudgetLine("trials", 90.0, 3.0, 100.0, "task", "planks"),
)
EXPECTED = (
    "tokens", "USD", "prompt tokens of oak", "trials of task planks", "$9.00", "2,000", "80 %", "90 %",
)  # fmt: skip


@pytest.fixture
def view():
    return examples.view_of(replace(examples.midrun(), budgets=BUDGETS))


def test_the_terminal(view):
    console = Console(file=io.StringIO(), width=140, height=60)
    console.print(run_display(view))
    said = console.file.getvalue()
    assert all(words in said for words in EXPECTED)


def test_the_end_says_what_a_judge_took_and_what_is_presumed(view):
    judge = tuple(
        BudgetLine(name, spent, 0.0, None, "scorer", "judge of planks")
        for name, spent in (("requests", 80.0), ("tokens", 10_924.0), ("usd", 0.0297))
    )
    presumed = BudgetLine("usd", 1.5, 0.25, 9.0, presumed=0.2)
    counted = sum(line.trials + line.missing for line in view.results.models)
    results = replace(view.results, trials=counted + 33, budgets=(*BUDGETS[:2], presumed, *judge))
    console = Console(file=io.StringIO(), width=400, height=60)
    console.print(render_summary(replace(view, results=results), Path("report.html")))
    said = console.file.getvalue()
    assert "; the judge of planks 10.9k tokens, $0.0297" in said
    assert "33 answers are in no score: they wait for an earlier one of the same model." in said
    assert f"of requests without an answer or usage, {usd(results.usd)} and at most $0.2000, " in said


def test_plain_lines_name_the_run_s_own(view):
    (progress,) = (line for line in PlainLines(every=0.0).lines(view, 1.0) if " progress " in line)
    assert "40k of 50k tokens, $1.50 of $9.00 USD" in progress
    assert "oak: " not in progress


def test_json_and_metrics_tell_them_apart(view):
    assert [line["owner"] for line in json.loads(JsonLines().line(view))["budgets"]] == [
        "",
        "",
        "",
        "oak",
        "planks",
    ]
    metrics = RunMetrics("forest")
    metrics.update(view.updated, 60.0, view.results, ())
    samples = {
        (sample.name, sample.labels["scope"], sample.labels["owner"], sample.labels["budget"]): sample.value
        for family in metrics.collect()
        for sample in family.samples
        if "scope" in sample.labels
    }
    assert samples["adaptive_eval_budget_limit", "task", "planks", "trials"] == 100
    assert samples["adaptive_eval_budget_presumed", "run", "", "tokens"] == 1_200


def test_each_has_its_own_rate():
    rates = [budget_use(line, 0.0, 10.0).rate for line in BUDGETS]
    assert rates == [line.spent / 10.0 for line in BUDGETS]


def with_budgets(summary, lines):
    uses = tuple(budget_use(line, 0.0, 10.0) for line in lines)
    results = replace(summary.results, budgets=lines)
    return replace(summary, results=results, rates=replace(summary.rates, budgets=uses))


def test_the_reports(tmp_path):
    summary = runs.summary_of(tmp_path / "forest")
    expected = (*EXPECTED, "Budgets", "presumed billed 1,200 tokens")
    limited = with_budgets(summary, BUDGETS)
    for text in (to_markdown(limited), to_html(limited)):
        assert all(words in text for words in expected)
    trials = BudgetLine("trials", 5.0, 0.0, None)
    free = with_budgets(summary, (trials,))
    assert all("Budgets" not in text for text in (to_markdown(free), to_html(free)))
