"""The command that a run ends with, where a budget or a cap has ended it: one that can be given as it is."""

from dataclasses import replace

import pytest
import standings_examples as examples
from run_examples import make_run
from session_scripts import make_spec

from adaptive_eval.config import parse_config
from adaptive_eval.config.document import apply_overrides, read_overrides
from adaptive_eval.core.results import BudgetLine, Chance, Decision, Forecast, Range, StopVerdict
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.budgets import more_passes, raised_budgets, unbounded_words
from adaptive_eval.views.reading import Attachment
from adaptive_eval.views.sentences import ceiling_words, say

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
        return Attachment(reader, lambda: 1_750_000_000.0).summary()


def ended(view, stop, *lines, stopped=()):
    """Return results and decisions of a run that has ended so; `stopped` models by their own budgets."""
    models = tuple(
        replace(view.results.models[0], model=name, state="stopped" if name in stopped else "active")
        for name in NAMES
    )
    results = replace(view.results, stop=stop, budgets=tuple(lines), models=models)
    decisions = tuple(Decision("model_stopped", (name,), "budget", 9, 9, "", {}) for name in stopped)
    return results, decisions


def spent(scope, owner=""):
    """Return the stop of a budget."""
    return StopVerdict("budget", evidence={"scope": scope, "owner": owner, "used": {}})


@pytest.mark.parametrize(
    ("lines", "setting"),
    [
        ([BudgetLine("trials", 60, 0, 60), BudgetLine("tokens", 59, 0, 1000)], "budget.trials=120"),
        # what is left of the trials is none's fault: the next answer might have been too long
        ([BudgetLine("trials", 7, 0, 10), BudgetLine("tokens", 600, 0, 1000)], "budget.tokens=2k"),
        ([BudgetLine("tokens", 10, 0, None), BudgetLine("usd", 0.2, 0, 0.25)], "budget.usd=0.5"),
        ([BudgetLine("tokens", 10, 0, 100), BudgetLine("wall_clock", 61, 0, 60)], "budget.wall_clock=2m"),
        ([BudgetLine("trials", 7, 0, 9), BudgetLine("trials", 5, 0, 5, "model", "oak")], "budget.trials=18"),
        ([BudgetLine("trials", 230, 0, 9)], "budget.trials=460"),  # it has been lowered below what is spent
    ],
)
def test_it_is_the_limit_that_has_ended_the_run(view, config, lines, setting):
    stop = spent("run")
    assert raised_budgets(*ended(view, stop, *lines), config) == [setting]


@pytest.mark.parametrize("owner", ["sums", "trees"])
def test_it_is_the_limit_of_the_task_that_has_ended_the_run(view, config, owner):
    lines = [BudgetLine("trials", 9, 0, limit, "task", name) for name, limit in (("sums", 9), ("trees", 10))]
    settings = raised_budgets(*ended(view, spent("task", owner), *lines), config)
    assert [one.partition(".")[2] for one in settings] == [f"budget.trials={18 if owner == 'sums' else 20}"]


@pytest.mark.parametrize(("budget", "most"), [(None, 720), (900, 720), (700, 700)])
def test_a_run_takes_so_many_trials_at_most(budget, most):
    spec = make_spec(3, 40, max_passes=4, trials=budget)
    tasks = (spec.tasks[0], replace(spec.tasks[0], name="u", questions=spec.tasks[0].questions[:20]))
    assert ceiling_words(replace(spec, tasks=tasks)).startswith(f"at most {most} trials: ")
    tied = replace(spec, stopping=replace(spec.stopping, equivalence=0.05))
    found = [unbounded_words(one) for one in (spec, tied)]
    assert [one is not None for one in found] == [budget is None, False]


@pytest.mark.parametrize(
    "stop", [spent("models"), StopVerdict("partial", evidence={"open": 1, "silent": [], "spent": ["oak"]})]
)
def test_every_model_whose_own_budget_has_ended_is_named_so_that_its_place_is_found(view, config, stop):
    lines = [BudgetLine("usd", 0.9, 0, 1.0, "model", name) for name in NAMES]
    settings = raised_budgets(*ended(view, stop, *lines, stopped=NAMES), config)
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


def test_a_model_that_its_own_budget_has_stopped_is_named_with_the_run_s(view, config):
    lines = [BudgetLine("usd", 3.0, 0, 3.0), BudgetLine("usd", 1.0, 0, 1.0, "model", "oak")]
    results, decisions = ended(view, spent("run"), *lines, stopped=["oak"])
    assert raised_budgets(results, decisions, config) == ["budget.usd=6", "models[oak].budget.usd=2"]
    results, _ = ended(view, spent("run"), *lines)  # its budget has been raised since
    assert raised_budgets(results, decisions, config) == ["budget.usd=6"]


def test_twice_as_many_passes_where_nothing_is_foreseen(view, config):
    assert (
        more_passes(view.results, config) == f"stopping.max_passes={2 * (config.stopping.max_passes or 80)}"
    )


def test_the_raised_limit_is_one_that_will_probably_do(view, config):
    """Likely: the first number of trials with a chance of half or more."""
    results, decisions = ended(view, spent("run"), BudgetLine("trials", 480, 0, 480))
    chances = (Chance(520, 0.05), Chance(10_000, 0.65))
    forecast = Forecast(0.0, Range(1, 2, 3), Range(1, 2, 3), None, (), 1, chances)
    results = replace(results, trials=480, forecast=forecast)
    assert raised_budgets(results, decisions, config) == ["budget.trials=10k"]
    # Answers after the stop are in the forecast, and in no verdict: the pairs say what is open.
    words = say("run.chances", replace(results, pairs=examples.midrun().pairs))
    assert words.startswith("3 pairs are open")
    assert "5 % at 520 trials, 65 % at 10,000" in words
