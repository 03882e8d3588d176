"""The command that a run ends with, where a budget or a cap has ended it: one that can be given as it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from run_examples import make_run

from adaptive_eval.config import parse_config
from adaptive_eval.config.overrides import apply_overrides, read_overrides
from adaptive_eval.core.results import BudgetLine, Decision, StopVerdict
from adaptive_eval.monitor.attach import Attachment
from adaptive_eval.store import RunReader
from adaptive_eval.text.raised_limits import more_passes, raised_budgets

NAMES = ("oak", "qwen3-1.7b", "7")


@pytest.fixture
def config(tmp_path):
    models = ", ".join(f"{{name: '{name}', endpoints: [mimic]}}" for name in NAMES)
    means = ", ".join(f"'{name}': {{mean: 0.5}}" for name in NAMES)
    text = (
        f"name: forest\nmimic: {{models: {{{means}}}}}\nmodels: [{models}]\n"
        "tasks: [{name: sums, dataset: sums.jsonl, prompt: '{input}', scorer: exact}]\n"
    )
    (tmp_path / "sums.jsonl").write_text('{"input": "1 + 1", "target": "2"}\n', encoding="utf-8")
    return parse_config(text, "forest.yaml", tmp_path)


@pytest.fixture
def view(tmp_path):
    make_run(tmp_path / "run")
    with RunReader(tmp_path / "run") as reader:
        return Attachment(reader, lambda: 1_750_000_000.0).view()


def ended(view, reason, text, *lines, stopped=()):
    """Return the view of a run that has ended so, with these budgets; `stopped` models by their own."""
    models = tuple(
        replace(view.results.models[0], model=name, state="stopped" if name in stopped else "active")
        for name in NAMES
    )
    results = replace(view.results, stop=StopVerdict(reason, text), budgets=tuple(lines), models=models)
    decisions = tuple(Decision("model_stopped", (name,), "budget", 9, 9, "", {}) for name in stopped)
    return replace(view, results=results, decisions=decisions)


SPENT = "budget ended before the goal was reached: …; the next trial might exceed it"


@pytest.mark.parametrize(
    ("lines", "setting"),
    [
        ([BudgetLine("trials", 60, 0, 60), BudgetLine("tokens", 59, 0, 1000)], "budget.trials=120"),
        # what is left of the trials is none's fault: the next answer might have been too long
        ([BudgetLine("trials", 7, 0, 10), BudgetLine("tokens", 600, 0, 1000)], "budget.tokens=2k"),
        ([BudgetLine("tokens", 10, 0, None), BudgetLine("usd", 0.2, 0, 0.25)], "budget.usd=0.5"),
        ([BudgetLine("tokens", 10, 0, 100), BudgetLine("wall_clock", 61, 0, 60)], "budget.wall_clock=2m"),
        (
            [BudgetLine("trials", 7, 0, 9), BudgetLine("trials", 5, 0, 5, "model", "oak")],
            "budget.trials=18",
        ),
    ],
)
def test_it_is_the_limit_that_has_ended_the_run(view, config, lines, setting):
    assert raised_budgets(ended(view, "budget", SPENT, *lines), config) == [setting]


@pytest.mark.parametrize(
    "text",
    [
        "budget of task sums ended before the goal was reached: …",
        "budget of task sums is spent: …",
        "the wall clock limit of 3 s of task 'sums' is reached",
    ],
)
def test_it_is_the_task_s(view, config, text):
    name = "wall_clock" if "clock" in text else "trials"
    lines = [BudgetLine("trials", 9, 0, 9), BudgetLine(name, 3, 0, 3, "task", "sums")]
    twice = "6s" if name == "wall_clock" else "6"
    assert raised_budgets(ended(view, "budget", text, *lines), config) == [
        f"tasks[sums].budget.{name}={twice}"
    ]


def test_it_is_the_judge_s(view, config):
    text = "the budget of the judge of task 'sums' has no room for another answer: 9 of 10 requests"
    lines = [BudgetLine("trials", 9, 0, 9), BudgetLine("requests", 9, 0, 10, "scorer", "judge of sums")]
    assert raised_budgets(ended(view, "budget", text, *lines), config) == [
        "tasks[sums].scorer.budget.requests=20"
    ]


@pytest.mark.parametrize(
    ("reason", "text"),
    [("partial", "decided as far as possible: …"), ("budget", "the budgets of models ended before a pair …")],
)
def test_every_model_whose_own_budget_has_ended_is_named_so_that_its_place_is_found(
    view, config, reason, text
):
    lines = [BudgetLine("usd", 0.9, 0, 1.0, "model", name) for name in NAMES]
    settings = raised_budgets(ended(view, reason, text, *lines, stopped=NAMES), config)
    assert settings == [
        "models[oak].budget.usd=2",
        "models[qwen3-1.7b].budget.usd=2",
        "models[2].budget.usd=2",
    ]
    data = {"models": tuple({"name": name} for name in NAMES)}
    overrides, problems = read_overrides(settings, data)
    assert not problems
    raised = apply_overrides(data, overrides)["models"]
    assert [model["budget"] for model in raised] == [{"usd": 2}] * len(NAMES)


def test_nothing_is_to_be_raised_where_endpoints_have_gone(view, config):
    line = BudgetLine("trials", 5, 0, 9)
    assert raised_budgets(ended(view, "endpoints", "no pair can be decided …", line), config) == []
    assert raised_budgets(ended(view, "partial", "decided as far as possible: …", line), config) == []


def test_twice_as_many_passes(config):
    assert more_passes(config) == f"stopping.max_passes={2 * config.stopping.max_passes}"
