"""What a run shows: each figure stands under its own name everywhere, and is what its trials add up to."""

import csv
import json
from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest
import run_examples as runs
import standings_examples as examples

from adaptive_eval.config.document import read_document
from adaptive_eval.core.results import (
    BudgetLine,
    Decision,
    ModelResult,
    PairForecast,
    PairResult,
    Range,
    TaskResult,
    TaskScore,
)
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, Price, TaskSpec
from adaptive_eval.interop.eval_results import write_eval_results
from adaptive_eval.interop.every_eval import write_every_eval
from adaptive_eval.interop.export_logs import write_lm_eval
from adaptive_eval.interop.run_tables import RunDescription, trial_rows
from adaptive_eval.scoring.rubric import attempt_signals
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import EndpointHealth, TrialRecord
from adaptive_eval.trial import Completion, Score, Usage
from adaptive_eval.views import columns
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount
from adaptive_eval.views.budgets import BudgetUse
from adaptive_eval.views.column_types import Span
from adaptive_eval.views.files import write_reports
from adaptive_eval.views.model_columns import MODELS, ModelRow


def distinct(record, least=1, /, **given):
    """Return a record whose fields all hold another number, but for those that are given."""
    return record(**{one.name: least + place for place, one in enumerate(fields(record))} | given)


RESULTS = examples.finished()
LINE = distinct(ModelResult, model="oak", state="active", note="", waits_for=("elm", "yew"))
KINDS = {"missing": {"timeout": 3}, "errors": {"server": 4}, "no_answer": {"reasoning": 5}}
ACCOUNT = distinct(ModelAccount, 101, model="oak", categories=(7, 8), **KINDS)
ROW = ModelRow(LINE, RESULTS, "1–2", ACCOUNT)
SEEN = {"verdict": "better", "kind": "pair", "test": "t", "exact": True, "evidence_beyond": False}
PAIR = distinct(PairResult, first="oak", second="elm", tie_margin=0.4, evidence=2.0, threshold=5.0, **SEEN)
AHEAD = PairForecast("elm", "oak", 0.9, Range(500, 900, 4_000))
PAIR_ROW = columns.PairRow(PAIR, 0.05, AHEAD)
BUDGET = BudgetUse(BudgetLine("tokens", 30.0, 5.0, 120.0, "model", "oak", 7.0), 2.0, 45.0)
DECISION = Decision("pair", ("oak", "elm"), "better", 12, 34, "words", {"difference": 0.25})
QUESTION = QuestionAccount("trees", "q1", 9, 0.75, 0.125, ((4, 3), (5, 1)))
SCORE = TaskScore("oak", 0.5, 0.25, 0.75)
SERVER = EndpointHealth("oak", "http://a", 3, 8, 90, 1.5, 70.0, 0.25, 0.5, {"server": 2}, "out")
TABLES = {
    "models": (MODELS, ROW, (ACCOUNT, LINE)),
    "pairs": (columns.PAIRS, PAIR_ROW, (PAIR,)),
    "budgets": (columns.BUDGETS, BUDGET, (BUDGET, BUDGET.line)),
    "decisions": (columns.DECISIONS, columns.DecisionRow(99.0, DECISION), (DECISION,)),
    "task scores": (columns.TASK_SCORES, SCORE, (SCORE,)),
    "tasks": (columns.TASKS, TaskResult("trees", 4, 0.3, (SCORE,)), (TaskResult("trees", 4, 0.3, (SCORE,)),)),
    "questions": (columns.QUESTIONS, columns.Tally(QUESTION, "oak", 4, 3), (QUESTION,)),
    "servers": (columns.ENDPOINTS, SERVER, (SERVER,)),
}
"""The columns of each table, a row, and what has a field of the name of most columns."""
OTHERS = {
    "models": {
        "score_interval": Span(LINE.score_low, LINE.score, LINE.score_high),
        "bayes": (LINE.bayes_mu, LINE.bayes_sigma), "few_answers": True, "missing": LINE.missing,
        "missing_reasons": {"timeout": 3}, "score_if_missing": LINE.score_if_missing_wrong,
        "tokens": LINE.prompt_tokens + LINE.completion_tokens, "note": "",
    },
    "pairs": {
        "pair": PAIR, "words": "separated", "progress": 0.4, "tie": 0.4, "more_trials": AHEAD,
        "difference_interval": Span(PAIR.difference_low, PAIR.difference, PAIR.difference_high),
    },
    "budgets": {"budget": "tokens of oak", "used": 0.25, "per_second": 2.0},
    "decisions": {"at": 99.0, "first": "oak", "second": "elm", "text": "words"},
    "questions": {
        "question_correct": 0.75, "question_spread": 0.125, "model": "oak", "model_trials": 4,
        "model_correct": 3, "by_model": [[4, 3], [5, 1]],
    },
}  # fmt: skip
"""What columns hold that are made of several fields, or have another name."""
WORDS = {
    "models": {
        "rank": "1–2", "score_if_missing": f"{LINE.score_if_missing_wrong:.3f} / "
        f"{LINE.score_if_missing_right:.3f}", "missing_reasons": "timeout 3", "no_answer": "reasoning 5",
        "errors": "server 4", "few_answers": "few answers", "tokens": "33",
    },
    "pairs": {"more_trials": "900 (500–4,000)", "decided_at": "12", "progress": "40 %", "tie": "40 %"},
    "budgets": {"used": "25 %", "spent": "30", "reserved": "5", "limit": "120"},
    "servers": {"in_flight": "3/8"},
}  # fmt: skip


def plain(value):
    return list(value) if isinstance(value, tuple) and not isinstance(value, Span) else value


@pytest.mark.parametrize("table", TABLES)
def test_every_column_holds_what_its_key_names(table):
    listed, row, sources = TABLES[table]
    others = OTHERS.get(table, {})
    for column in listed:
        if column.key in others:
            expected = others[column.key]
        else:
            (source, *_) = [one for one in sources if hasattr(one, column.key)]
            expected = getattr(source, column.key)
        assert plain(column.value(row)) == plain(expected), column.key
    written = {one.key: one.written(row) for one in listed if one.key in WORDS.get(table, {})}
    assert written == WORDS.get(table, {})


@pytest.mark.parametrize("needed", [True, False])
def test_an_open_pair_that_the_goal_does_not_need_is_no_unresolved_one(needed):
    row = columns.PairRow(replace(PAIR, verdict="open", needed=needed), 0.05, AHEAD)
    shown = {column.key: column for column in columns.PAIRS}
    said = shown["words"].value(row)
    assert said == shown["verdict"].written(row)
    assert ("needed" in said) != needed
    assert ("resolved" in said) == needed


# A run of two tasks with lost, late, cut off and empty answers, given up draws and answers after the stop.


SIZES, WEIGHTS = {"trees": 9, "shrubs": 5}, {"trees": 0.75, "shrubs": 0.25}


def spec_of_two_tasks():
    spec = runs.spec_of(runs.COINS)
    tasks = tuple(
        TaskSpec(task, tuple(f"{task[0]}{place}" for place in range(size)), weight=4 * WEIGHTS[task])
        for task, size in SIZES.items()
    )
    models = tuple(
        replace(model, price=Price(0.1 + place, 4.0, 0.05)) for place, model in enumerate(spec.models)
    )
    settings = {"goal": GoalSpec("baseline", model="oak"), "redrawn": frozenset({"killed"})}
    return replace(spec, tasks=tasks, models=models, budget=BudgetSpec(tokens=10**6), **settings)


def config_of_two_tasks():
    """Return the text of a config whose run the session might be of."""
    served = {"endpoints": ["http://127.0.0.1:8000/v1"]}
    tasks = [
        {
            "name": task,
            "dataset": f"hf:forest/{task}",
            "prompt": "{input}",
            "scorer": "numeric",
            "weight": weight,
        }
        for task, weight in WEIGHTS.items()
    ]
    models = [{"name": name, **served} for name in runs.COINS]
    return json.dumps({"name": "forest", "models": models, "tasks": tasks, "on": {"discarded": ["killed"]}})


def answer(request, at, *, after_stop=False):
    """Return a trial, of which everything follows from its seed."""
    rng = np.random.default_rng(request.seed)
    fate, given_up, cut, empty, right, slow = rng.random(6)
    discarded = ()
    if given_up < 0.06:
        discarded = (("timeout",), ("killed",), ("killed", "timeout"))[int(50 * given_up)]
    elif fate < 0.02:
        discarded = ("timeout",)
    late = {"after_stop": after_stop, "discarded": discarded}
    if fate < 0.04:
        return TrialRecord(request, at, None, None, missing=("timeout", "dropped")[int(50 * fate)], **late)
    correct = int(right < runs.COINS[request.key.model])
    usage = Usage(int(80 + 40 * slow), int(30 + 100 * cut), int(20 * slow))
    text = "" if empty < 0.04 else f"It is {correct}."
    completion = Completion(text, "length" if cut < 0.1 else "stop", usage, latency=0.5 + slow)
    signals = {**attempt_signals(completion), "is_correct": bool(correct), "check_form": slow < 0.5}
    return TrialRecord(request, at, completion, Score(correct, str(correct), signals), **late)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return the directory of the run, its trials by model in their order, and its written report."""
    directory = tmp_path_factory.mktemp("figures") / "forest"
    session = Session(spec_of_two_tasks())
    described = {"name": "forest", "started_at": repr(runs.STARTED), "seed": "7"}
    described["config"] = config_of_two_tasks()
    runs.store_run(directory, described, session, answer, one_by_one=True, slots=7)
    trials = {}
    with RunReader(directory) as reader:
        for record in reader.trials():
            trials.setdefault(record.request.key.model, []).append(record)
    for records in trials.values():
        records.sort(key=lambda one: one.request.key.index)
    write_reports(directory)
    return directory, trials, json.loads((directory / "report.json").read_text("utf-8"))


def counts(record):
    """Say whether a trial has an answer whose draw is the first, or counts by the user's word."""
    return record.score is not None and set(record.discarded) <= {"killed"}


def by_question(records):
    """Return by task and question the scores of the trials that count, and how many are lost."""
    found = {(task, f"{task[0]}{place}"): ([], []) for task, size in SIZES.items() for place in range(size)}
    for record in records:
        scores, lost = found[record.request.task, record.request.question]
        (scores if counts(record) else lost).append(record.score.category if counts(record) else None)
    return found


def over_tasks(value_of, questions):
    """Return the mean of a value over the questions of each task that have one, weighted by task."""
    total = 0.0
    for task, weight in WEIGHTS.items():
        values = [value_of(*cell) for (of, _), cell in questions.items() if of == task]
        total += weight * np.mean([one for one in values if one is not None])
    return total


def expected_of(name, records, place):
    """Return the figures of a model, summed from its trials."""
    answers = [one for one in records if one.score is not None]
    kept = [one for one in records if counts(one)]
    questions = by_question(records)
    usage = [one.usage for one in records]
    none = Counter(one.completion.no_answer for one in answers if one.completion.no_answer)
    latencies = [one.completion.latency for one in answers]
    mu, variance = 0.0, 0.0
    for task, weight in WEIGHTS.items():
        for (of, _), (scores, _) in questions.items():
            if of == task:
                right, total = 1 + sum(scores), 2 + len(scores)
                share = right / total
                mu += weight / SIZES[task] * share
                variance += (weight / SIZES[task]) ** 2 * share * (1.0 - share) / (total + 1)
    bounds = [
        over_tasks(lambda scores, lost: np.mean(scores + [worth] * len(lost)) if scores + lost else None,  # noqa: B023
                   questions)
        for worth in (0, 1)
    ]  # fmt: skip
    cached = sum(one.cached_tokens for one in usage)
    fresh = sum(one.prompt_tokens for one in usage) - cached
    written = sum(one.completion_tokens for one in usage)
    return {
        "model": name,
        "trials": len(kept),
        "questions": sum(bool(scores) for scores, _ in questions.values()),
        "score": over_tasks(lambda scores, lost: np.mean(scores) if scores else None, questions),
        "bayes_mu": mu,
        "bayes_sigma": variance**0.5,
        "missing": sum(one.score is None for one in records),
        "missing_reasons": dict(Counter(one.missing for one in records if one.score is None)),
        "discarded_trials": sum("timeout" in one.discarded for one in answers),
        "redrawn_trials": sum(one.discarded == ("killed",) for one in answers),
        "score_if_missing_wrong": bounds[0],
        "score_if_missing_right": bounds[1],
        "no_answer": dict(none),
        "truncated": sum(one.completion.cut_off for one in answers),
        "after_stop": sum(one.after_stop for one in records),
        "categories": [sum(one.score.category == right for one in answers) for right in (0, 1)],
        "errors": {"timeout": sum(one.score is None for one in records)},
        "prompt_tokens": fresh + cached,
        "completion_tokens": written,
        "tokens": fresh + cached + written,
        "usd": ((0.1 + place) * fresh + 0.05 * cached + 4.0 * written) / 1e6,
        "latency_p50_seconds": float(np.quantile(latencies, 0.5)),
        "latency_p95_seconds": float(np.quantile(latencies, 0.95)),
    }


def test_the_figures_of_a_model_are_those_of_its_trials(told):
    directory, trials, report = told
    for figure in ("missing", "discarded_trials", "redrawn_trials", "truncated", "after_stop"):
        assert sum(line[figure] for line in report["models"]) > 0, "else it was not crossed"
    shown = {line["model"]: line for line in report["models"]}
    with (directory / "report" / "models.csv").open(encoding="utf-8") as file:
        tabled = {row["model"]: row for row in csv.DictReader(file)}
    for place, name in enumerate(runs.COINS):
        expected = expected_of(name, trials[name], place)
        for key, value in expected.items():
            same = value if isinstance(value, dict | list | str) else pytest.approx(float(value))
            assert shown[name][key] == same, (name, key)
            if key in tabled[name]:
                assert type(value)(tabled[name][key]) == same, (name, key)


def of_task(records, task):
    """Return by question the scores of a task's trials that count."""
    return {name: scores for (of, name), (scores, _) in by_question(records).items() if of == task and scores}


def test_the_figures_of_a_question_are_those_of_its_trials(told):
    directory, trials, report = told
    names = [line["model"] for line in report["models"]]
    with (directory / "report" / "questions.csv").open(encoding="utf-8") as file:
        tabled = {(row["task"], row["question"], row["model"]): row for row in csv.DictReader(file)}
    assert len(report["questions"]) == sum(SIZES.values())
    for line in report["questions"]:
        cells = [by_question(trials[name])[line["task"], line["question"]][0] for name in names]
        assert line["by_model"] == [[len(scores), sum(scores)] for scores in cells]
        assert line["trials"] == sum(map(len, cells))
        asked = [scores for scores in cells if scores]
        assert line["question_correct"] == pytest.approx(np.mean([np.mean(scores) for scores in asked]))
        shrunk = [(sum(scores) + 1) / (len(scores) + 2) for scores in asked]
        assert line["question_spread"] == pytest.approx(np.std(shrunk))
        for name, scores in zip(names, cells, strict=True):
            row = tabled[line["task"], line["question"], name]
            assert [int(row["model_trials"]), int(row["model_correct"])] == [len(scores), sum(scores)]
            assert float(row["question_correct"]) == pytest.approx(line["question_correct"])
            assert float(row["question_spread"]) == pytest.approx(line["question_spread"])


def test_exported_trials_are_the_stored_ones_and_add_up_to_the_scores(told):
    directory, trials, report = told
    worth = dict.fromkeys(SIZES, (0.0, 1.0))
    redrawn = frozenset({"killed"})
    about = RunDescription(tuple(trials), {}, worth, lambda record: "t", "anytime", redrawn=redrawn)
    with RunReader(directory) as reader:
        rows = list(trial_rows(reader, about))
    sums = Counter()
    for row in rows:
        record = trials[row["model"]][row["step"]]
        usage, answer, score = record.usage, record.completion, record.score
        said = {"score": None, "category": None, "check_form": None, "latency": None, "truncated": False}
        if score is not None:
            said = {"score": float(score.category), "category": score.category, "latency": answer.latency}
            said |= {"check_form": float(score.signals["check_form"]), "truncated": answer.cut_off}
        said |= {
            "task": record.request.task, "question": record.request.question, "trial": record.request.repeat,
            "seed": record.request.seed, "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens, "cached_tokens": usage.cached_tokens,
            "finished_at": record.finished_at, "after_stop": record.after_stop, "missing": record.missing,
            "discarded": len(record.discarded), "redrawn": record.discarded == ("killed",), "target": "t",
            "discarded_cause": ",".join(record.discarded) or None, "repeats": False, "rule": "anytime",
        }  # fmt: skip
        assert {key: row[key] for key in said} == said
        assert (row["weight"] > 0.0) == counts(record)
        sums[row["model"]] += row["weight"] * (row["score"] or 0.0)
    assert len(rows) == sum(map(len, trials.values()))
    assert sums == pytest.approx({line["model"]: line["score"] for line in report["models"]})


def test_the_files_for_other_tools_hold_the_scores_of_each_task(told, tmp_path):
    directory, trials, report = told
    about = RunDescription(tuple(trials), {}, dict.fromkeys(SIZES, (0.0, 1.0)), lambda record: "t", "anytime")
    with RunReader(directory) as reader:
        write_lm_eval(reader, about, tmp_path / "lm")
        write_every_eval(reader, about, runs.read_summary(directory), tmp_path / "every")
        write_eval_results(reader, runs.read_summary(directory), tmp_path / "hub")
    lines = {line["model"]: line for line in report["models"]}
    spans = {(task["task"], one["model"]): one for task in report["tasks"] for one in task["scores"]}
    for name, records in trials.items():
        (path,) = (tmp_path / "lm" / name).glob("results_*.json")
        of_harness = json.loads(path.read_text("utf-8"))["results"]
        (path,) = (tmp_path / "every").rglob(f"{name}/*.json")
        (path_of_hub,) = (tmp_path / "hub" / name / ".eval_results").iterdir()
        on_hub = {one["dataset"]["id"]: one for one in read_document(path_of_hub.read_text("utf-8")).data}
        listed = json.loads(path.read_text("utf-8"))["evaluation_results"]
        of_schema = {one["evaluation_name"]: one for one in listed}
        for task in SIZES:
            scores, mine = of_task(records, task), [one for one in records if one.request.task == task]
            mean, span = np.mean([np.mean(one) for one in scores.values()]), spans[task, name]
            assert span["score"] == pytest.approx(mean)
            assert of_harness[task]["score,none"] == pytest.approx(mean)
            assert of_harness[task]["missing"] == sum(one.score is None for one in mine)
            assert of_harness[task]["n"] == sum(one.score is not None for one in mine)
            hub = on_hub[f"forest/{task}"]
            assert hub["value"] == pytest.approx(mean, abs=1e-4)
            assert f"[{span['score_low']:.4f}, {span['score_high']:.4f}]" in hub["notes"]
            told_of = of_schema[task]["score_details"]
            assert told_of["score"] == pytest.approx(mean)
            interval = told_of["uncertainty"]["confidence_interval"]
            assert [interval["lower"], interval["upper"]] == [span["score_low"], span["score_high"]]
            details = {"trials": str(lines[name]["trials"]), "task_weight": f"{WEIGHTS[task]:g}"}
            details["redrawn_trials"] = str(lines[name]["redrawn_trials"])
            assert told_of["details"].items() >= details.items()
        lines_of = path.with_name(f"{path.stem}_samples.jsonl").read_text("utf-8").splitlines()
        samples = list(map(json.loads, lines_of))
        assert len(samples) == len(records)
        usage = [(one["token_usage"]["input_tokens"], one["token_usage"]["output_tokens"]) for one in samples]
        stored = [(one.usage.prompt_tokens, one.usage.completion_tokens) for one in records]
        assert sorted(usage) == sorted(stored)
        weights = Counter(float(one["metadata"]["weight"]) > 0.0 for one in samples)
        assert weights[True] == lines[name]["trials"]
