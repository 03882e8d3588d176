"""What views say of budgets, references, servers and results; and the command that continues a run."""

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import run_examples as runs
import standings_examples as examples
from rich.console import Console
from session_scripts import coin, drive, make_spec
from standings_examples import QUICKSTART, example, view_of
from test_monitor_notify import parsed

from adaptive_eval.config import parse_config
from adaptive_eval.config.document import apply_overrides, read_overrides
from adaptive_eval.core.results import BudgetLine, Chance, Decision, Range, RunForecast, StopVerdict
from adaptive_eval.core.session import Session
from adaptive_eval.views.budgets import (
    chance_words,
    hopeless_words,
    more_passes,
    raised_budgets,
    unbounded_words,
)
from adaptive_eval.views.live_terminal import PlainLines
from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.numbers import usd
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.promises import promises
from adaptive_eval.views.report_json import JsonLines
from adaptive_eval.views.run_sentences import (
    chances_words,
    presumed_words,
    problem_words,
    rankings_note,
    ranks_note,
)
from adaptive_eval.views.sentences import ceiling_words, note_words
from adaptive_eval.views.summary import RunHeader, budget_use, summary_at
from adaptive_eval.views.terminal import render_summary
from adaptive_eval.views.verdicts import rank_column

# Every view names every budget: of the run, of a model, of a task; and what of it is presumed.


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
    said = "\n".join(examples.drawn(view, 140, 60))
    assert all(words in said for words in EXPECTED)


def test_the_end_says_what_a_judge_took_and_what_is_presumed(view):
    judge = tuple(
        BudgetLine(name, spent, 0.0, None, "scorer", "judge of planks")
        for name, spent in (("requests", 80.0), ("tokens", 10_924.0), ("usd", 0.0297))
    )
    presumed = BudgetLine("usd", 1.5, 0.25, 9.0, presumed=0.2)
    models = tuple(replace(line, discarded_trials=7) for line in view.results.models)
    counted = sum(line.trials + line.missing + 7 for line in models)
    results = replace(
        view.results, models=models, trials=counted + 33, budgets=(*BUDGETS[:2], presumed, *judge)
    )
    console = Console(file=io.StringIO(), width=400, height=60)
    console.print(render_summary(replace(view, results=results), Path("report.html")))
    said = console.file.getvalue()
    assert "; the judge of planks 10.9k tokens, $0.0297" in said
    (of_run,) = presumed_words([presumed])
    assert presumed_words([presumed, replace(presumed, scope="model")]) == [of_run]
    lost = [replace(line, presumed=line.spent / 4) for line in judge[1:]]
    console.print(render_summary(replace(view, results=replace(results, budgets=tuple(lost))), Path("r")))
    assert "; the judge of planks 8,193 and at most 2,731 tokens, $0.0223 and at most $0.0074" in (
        console.file.getvalue()
    )
    billed, _, at_most = presumed_words([presumed, *lost])[0].partition("; ")
    assert re.findall(r"[\d.,]*\d", billed) == ["1.30", "8,193", "0.0223"]
    assert re.findall(r"[\d.,]*\d", at_most) == ["0.2000", "2,731", "0.0074"]
    assert "33 answers do not count yet: an earlier trial of the same model is still to come." in said
    assert f"of requests without an answer or usage, {usd(results.usd)} and at most $0.2000, " in said


def test_plain_lines_name_the_run_s_own(view):
    (progress,) = (line for line in PlainLines(every=0.0).lines(view, 1.0) if " progress " in line)
    assert "40k of 50k tokens, $1.50 of $9.00 USD" in progress
    assert "oak: " not in progress


def test_json_says_why_a_model_has_stopped_as_the_report_does(view):
    of_oak = next(number for number, line in enumerate(view.results.models) if line.model == "oak")
    models = list(view.results.models)
    models[of_oak] = replace(models[of_oak], state="stopped", note="")
    results = replace(view.results, models=tuple(models))
    shown = json.loads(JsonLines().line(replace(view, results=results)))["results"]["models"][of_oak]
    assert shown["note"] == note_words(models[of_oak], results) != ""


def test_json_and_metrics_tell_them_apart(view, tmp_path):
    owners = [line["owner"] for line in json.loads(JsonLines().line(view))["budgets"]]
    assert owners == ["", "", "", "oak", "planks"]
    record, page = snapshot(), tmp_path / "metrics.prom"
    with RunMetrics("demo", None, page) as metrics:
        metrics.update(record.at, record.elapsed, view.results, record.endpoints)
    samples = parsed(page.read_text())
    assert samples["budget_limit", ("budget", "trials"), ("owner", "planks"), ("scope", "task")] == 100
    assert samples["budget_presumed", ("budget", "tokens"), ("owner", ""), ("scope", "run")] == 1_200
    oak = [one.endpoint for one in record.endpoints if one.model == "oak"]
    assert [samples["endpoint_usable", ("endpoint", one), ("model", "oak")] for one in oak] == [1, 0, 0, 0, 0]


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


# References in the views: on the board, in no account of what was asked, and no cause for a warning.


@pytest.mark.parametrize("stop", [None, examples.RESOLVED])
def test_the_leaderboard_calls_them_references(stop):
    oak, *others = examples.midrun().models
    oak = replace(oak, state="reference", issued=0, trials=9_000, note="from runs/previous")
    results = replace(examples.midrun(), stop=stop, models=(oak, *others))
    rows = examples.board_lines(view_of(results), 100, 20)
    assert [row.split()[-1] == "reference" for row in rows if "oak" in row] == [True]


# A server that is out, comes or goes is seen in every view.


def snapshot():
    """Return a snapshot of a model with five servers: there, out, refusing the model, coming, gone."""
    record = examples.snapshot_of(examples.midrun())
    first, *rest = record.endpoints
    out = replace(first, endpoint="http://gpu2/v1", state="out", errors={"connection": 4}, in_flight=0)
    refusing = replace(first, endpoint="http://gpu3/v1", state="refused", errors={"not_found": 1})
    coming = replace(first, endpoint="http://gpu4/v1", state="joining", errors={}, in_flight=0)
    gone = replace(first, endpoint="http://gpu5/v1", state="left", errors={}, in_flight=2)
    return replace(record, endpoints=(first, out, refusing, coming, gone, *rest))


def view_of_servers():
    return summary_at(RunHeader("demo"), snapshot())


def test_in_the_terminal():
    said = examples.drawn(view_of_servers(), 149, 80)
    lines = said[next(place for place, line in enumerate(said) if line.startswith("endpoint of")) :]
    ends = {
        "gpu2": "does not answer, connection 4",
        "gpu3": "refuses the model, not_found 1",
        "gpu4": "has not answered yet",
        "gpu5": "removed",
    }
    for line in lines[1:5]:  # what needs attention is above the rest
        assert line.rstrip().endswith(next(end for name, end in ends.items() if name in line))
    (errors,) = [line for line in said if line.startswith("Endpoint errors: ")]
    assert "does not answer, connection 4; " in errors
    assert "removed" not in errors


def test_on_the_page():
    words = problem_words("running", view_of_servers().results.models, view_of_servers().endpoints, 0)
    model = snapshot().endpoints[0].model
    ends = {"gpu2": "does not answer", "gpu3": "refuses it", "gpu4": "does not answer"}
    for name, end in ends.items():
        assert any(f"The server http://{name}/v1 of {model} {end}" in line for line in words)
    assert not [line for line in words if "http://gpu5/v1" in line]


@pytest.mark.parametrize(
    ("how", "words"),
    [({"zero": ["t"]}, "lowest score"), ({"judged": ["t"]}, "as they are"), ({"zero": [], "judged": []}, "")],
)
def test_problems_say_how_cut_off_answers_count(how, words):
    (said,) = problem_words("stopped", (), [], 7, how)
    assert said.startswith("7 answers cut off")
    assert words in said
    assert words or ";" not in said


def test_an_answer_without_usage_is_no_failed_request():
    for errors in ({}, {"no_usage": 5}, {"impossible_usage": 2}, {"no_usage": 5, "impossible_usage": 2}):
        server = replace(snapshot().endpoints[0], errors=errors)
        assert problem_words("ended", (), [server], 0) == []
    failing = replace(server, errors={**server.errors, "timeout": 3})
    (words,) = problem_words("ended", (), [failing], 0)
    assert words.startswith("3 ")


def test_a_ranking_of_fewer_trials_than_the_run_has_is_named():
    results, words = examples.midrun(), "strict: computed at another number of trials; run rescore again"
    older = replace(results, trials=results.trials - 1)
    assert words not in rankings_note([("as run", results), ("strict", results)], results)
    assert words in rankings_note([("as run", results), ("strict", older)], results)


# The column of ranks: rank intervals, or verdicts where the goal does not rank.


MEANS = (0.95, 0.5, 0.5, 0.05)


@pytest.mark.parametrize(
    ("parts", "verdicts"),
    [
        ({"goal": "baseline", "model": "m1"}, ["better", "baseline", "tied", "worse"]),
        ({"goal": "baseline", "model": "m3"}, ["better", "better", "better", "baseline"]),
        ({"goal": "threshold", "value": 0.7}, ["above", "below", "below", "below"]),
        ({"goal": "width", "width": 0.3}, ["measured"] * 4),
    ],
    ids=str,
)
def test_a_goal_that_does_not_rank_shows_its_verdicts(parts, verdicts):
    spec = make_spec(4, 30, equivalence=0.2, max_passes=40, **parts)
    run = drive(Session(spec), coin(MEANS)).results()
    found = rank_column(run)
    assert [found.of[f"m{number}"] for number in range(4)] == verdicts
    assert (found.head, found.ranked) == ("verdict", False)
    assert str(run.pairs[0].second if parts["goal"] != "baseline" else parts["model"]) in ranks_note(run)
    assert not any("rank intervals" in words for words in promises(run).holds)
    first, *rest = run.pairs
    assert "open" in rank_column(replace(run, pairs=(replace(first, verdict="open"), *rest))).of.values()


@pytest.mark.parametrize(
    "run", [example(QUICKSTART, 900), example({"a": 0.9, "b": 0.1}, 900)], ids=("5", "2")
)
def test_models_that_are_compared_have_ranks(run):
    found = rank_column(run)
    assert (found.head, found.ranked) == ("rank", True)
    assert [*found.of] == [line.model for line in run.models]


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
def stored(tmp_path):
    return runs.summary_of(tmp_path / "run")


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
        # no trial is at fault: the next answer might have been too long
        ([BudgetLine("trials", 7, 0, 10), BudgetLine("tokens", 600, 0, 1000)], "budget.tokens=2k"),
        ([BudgetLine("tokens", 10, 0, None), BudgetLine("usd", 0.2, 0, 0.25)], "budget.usd=0.5"),
        ([BudgetLine("tokens", 10, 0, 100), BudgetLine("wall_clock", 61, 0, 60)], "budget.wall_clock=2m"),
        ([BudgetLine("trials", 7, 0, 9), BudgetLine("trials", 5, 0, 5, "model", "oak")], "budget.trials=18"),
        ([BudgetLine("trials", 9, 0, 9), BudgetLine("wall_clock", 60, 0, 60)], "budget.trials=18"),
        ([BudgetLine("trials", 230, 0, 9)], "budget.trials=460"),  # it has been lowered below what is spent
    ],
)
def test_it_is_the_limit_that_has_ended_the_run(stored, config, lines, setting):
    stop = spent("run")
    assert raised_budgets(*ended(stored, stop, *lines), config) == [setting]


@pytest.mark.parametrize("owner", ["sums", "trees"])
def test_it_is_the_limit_of_the_task_that_has_ended_the_run(stored, config, owner):
    lines = [BudgetLine("trials", 9, 0, limit, "task", name) for name, limit in (("sums", 9), ("trees", 10))]
    settings = raised_budgets(*ended(stored, spent("task", owner), *lines), config)
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
    "stop",
    [
        spent("models"),
        StopVerdict("partial", evidence={"open": 1, "open_models": 0, "silent": [], "spent": ["oak"]}),
    ],
)
def test_every_model_whose_own_budget_has_ended_is_named_so_that_its_place_is_found(stored, config, stop):
    lines = [BudgetLine("usd", 0.9, 0, 1.0, "model", name) for name in NAMES]
    settings = raised_budgets(*ended(stored, stop, *lines, stopped=NAMES), config)
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


def test_a_model_that_its_own_budget_has_stopped_is_named_with_the_run_s(stored, config):
    lines = [BudgetLine("usd", 3.0, 0, 3.0), BudgetLine("usd", 1.0, 0, 1.0, "model", "oak")]
    results, decisions = ended(stored, spent("run"), *lines, stopped=["oak"])
    assert raised_budgets(results, decisions, config) == ["budget.usd=6", "models[oak].budget.usd=2"]
    results, _ = ended(stored, spent("run"), *lines)  # its budget has been raised since
    assert raised_budgets(results, decisions, config) == ["budget.usd=6"]
    assert more_passes(stored.results, config) == f"stopping.max_passes={2 * 80}"


def test_the_raised_limit_is_one_that_will_probably_do(stored, config):
    """Likely: the first number of trials with a chance of four fifths or more."""
    results, decisions = ended(stored, spent("run"), BudgetLine("trials", 480, 0, 480))
    chances = (Chance(520, 0.05), Chance(5_000, 0.7), Chance(10_000, 0.81))
    forecast = RunForecast(0.0, Range(1, 2, 3), Range(1, 2, 3), None, (), 1, chances)
    results = replace(results, trials=480, forecast=forecast)
    assert raised_budgets(results, decisions, config) == ["budget.trials=10k"]
    assert hopeless_words(results) == ""
    assert "81 %" in chance_words(results)
    none = replace(results, forecast=replace(forecast, chances=chances[:2]))
    assert "No budget for up to 1,000 passes" in hopeless_words(none)
    # Answers after the stop are in the forecast, and in no verdict: the pairs say what is open.
    (words,) = chances_words(replace(results, pairs=examples.midrun().pairs))
    assert words.startswith("3 pairs are open")
    assert "5 % at 520 trials, 70 % at 5,000, 81 % at 10,000" in words
