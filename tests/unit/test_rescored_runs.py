"""Stored answers that are ranked again: what a run knows of its trials stays, task by task."""

import json
import shutil
import sqlite3
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import run_examples as runs

from adaptive_eval.build.assembly import build, config_of_run
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.errors import RunDamaged, UsageError
from adaptive_eval.options.task_options import RubricConfig
from adaptive_eval.run.each_question import each_question
from adaptive_eval.run.rescoring import rescore, stored_scoring
from adaptive_eval.run.rescoring_specs import RescoringSpec, read_rubric, read_scorer, tracked
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import SAME_TEXT, Completion, Score, Usage

SIZES = {"one": 9, "two": 6}
PARTS = {"number": "numeric", "whole": {"kind": "exact", "extract": "whole"}}
RUBRICS = {"one": {"weights": [0, 2]}, "two": {"weights": [2, 0]}}
"""The second task is one in which it is good to be wrong."""


def data_of(folder, **changes):
    """Write the datasets, and return the config's data."""
    tasks = []
    for name, size in SIZES.items():
        rows = [{"id": f"q{n}", "input": f"{name} {n}?", "target": str(n)} for n in range(size)]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        by = "any" if name == "one" else "all"
        checks = {"kind": "checks", "parts": PARTS, "by": by}
        task = {"name": name, "dataset": f"{name}.jsonl", "weight": 1 + 2 * (name == "two")}
        tasks.append({**task, "scorer": checks, "rubric": RUBRICS[name]})
    asked = {"endpoints": ["http://localhost:9/v1"], "sampling": {"max_tokens": 9}}
    data = {"name": "run", "models": [{"name": name, **asked} for name in ("a", "b")], "tasks": tasks}
    data |= {"stopping": {"equivalence": 0.3}, "budget": {"trials": 300}, "goal": "budget"}
    data["allocation"] = {"questions": "schedule"}
    return {**data, **changes}


def config_of(folder, **changes):
    return config_from_data(data_of(folder, **changes), folder)


def answering(built):
    """Return what answers: right in words or alone, wrong, cut off, lost, or without what a scorer needs."""
    seen = Counter()

    def answer(request, at, *, after_stop=False):
        place, number = [*SIZES].index(request.task), int(request.question[1:])
        name = request.key.model
        rng = np.random.default_rng([place, number, request.repeat, *name.encode()])
        fate = rng.random()
        given_up = ("timeout",) if rng.random() < (0.5 if fate < 0.1 else 0.02) else ()
        if fate < 0.05:
            return TrialRecord(request, at, None, None, "timeout", after_stop, discarded=given_up)
        good = rng.random() < (0.6 if name == "a" else 0.5)
        text = f"It is {number}." if rng.random() < 0.4 else str(number + (not good))
        end = "length" if fate > 0.93 else "stop"
        completion = Completion(text, end, Usage(9, int(rng.integers(2, 9))))
        if fate < 0.1:
            lacking = Score(None, None, {}, "the scorer failed")
            return TrialRecord(
                request, at, completion, lacking, "unscored: it failed", after_stop, discarded=given_up
            )
        score = built.scoring[request.task].score(completion, built.tasks[place].by_id[request.question])
        key = name, request.task, request.question, text
        if name == "b" and seen[key]:
            score = replace(score, signals={**score.signals, SAME_TEXT: True})
        seen[key] += 1
        return TrialRecord(request, at, completion, score, after_stop=after_stop, discarded=given_up)

    return answer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rescored")
    built = build(config_of(folder))
    runs.store_run(folder / "run", built.meta(), built.session(), answering(built))
    return folder / "run"


def again(run, *specs, task=None):
    with RunReader(run) as reader:
        return rescore(build(config_of_run(reader)), reader, specs, task)


def records(run):
    with RunReader(run) as reader:
        return list(reader.trials())


def worths(run, task, signal="is_correct"):
    """Return what each answer of a task is worth by a signal, 0 or 1, by model and question."""
    found = {}
    for one in records(run):
        if one.request.task == task and one.missing is None and not one.discarded:
            cut = one.completion.finish_reason == "length"
            right = bool(one.score.signals[signal]) and not cut
            found.setdefault((one.request.key.model, one.request.question), []).append(float(right))
    return found


def means(run, task, signal="is_correct"):
    """Return the mean of the means of questions by model."""
    cells = worths(run, task, signal)
    return {
        name: np.mean([np.mean(given) for (model, _), given in cells.items() if model == name])
        for name in ("a", "b")
    }


def scores(ranking, task):
    (found,) = [one for one in ranking.results.tasks if one.task == task]
    return {line.model: pytest.approx(line.score, abs=1e-9) for line in found.scores}


def test_the_same_scoring_has_the_results_of_the_run(run):
    """Also of answers that may be copies, that are lost, and whose first draws were given up."""
    with RunReader(run) as reader:
        built = build(config_of_run(reader))
        before = stored_scoring(built, reader).results
        (after,) = rescore(built, reader, [RescoringSpec("again")])
    known = records(run)
    assert any(SAME_TEXT in one.score.signals for one in known if one.score is not None)
    for kind in (lambda one: one.completion is None, lambda one: one.missing and one.completion):
        assert any(one.discarded for one in known if kind(one))
    for name in ("models", "pairs", "tasks", "budgets", "trials", "warnings"):
        assert getattr(after.results, name) == getattr(before, name), name
    assert sum(line.discarded_trials for line in before.models) > 0


def test_each_task_keeps_its_own_rubric_unless_it_has_another(run):
    other = RubricConfig(weights=(4.0, 0.0))
    plain, of_all, of_two, of_both = again(
        run,
        RescoringSpec("plain"),
        RescoringSpec("of all", rubric=RubricConfig(weights=(0.0, 4.0))),
        RescoringSpec("of two", by_task={"two": RubricConfig(weights=(0.0, 2.0))}),
        RescoringSpec("of both", rubric=RubricConfig(weights=(0.0, 4.0)), by_task={"two": other}),
    )
    one, two = means(run, "one"), means(run, "two")
    assert scores(plain, "one") == {name: 2 * mean for name, mean in one.items()}
    assert scores(plain, "two") == {name: 2 - 2 * mean for name, mean in two.items()}
    assert scores(of_all, "two") == {name: 4 * mean for name, mean in two.items()}
    assert scores(of_two, "one") == {name: 2 * mean for name, mean in one.items()}
    assert scores(of_two, "two") == {name: 2 * mean for name, mean in two.items()}
    assert scores(of_both, "one") == {name: 4 * mean for name, mean in one.items()}
    assert scores(of_both, "two") == {name: 4 - 4 * mean for name, mean in two.items()}
    for ranking in (plain, of_all, of_two, of_both):
        for line in ranking.results.models:
            parts = [scores(ranking, name)[line.model].expected for name in SIZES]
            assert line.score == pytest.approx(0.25 * parts[0] + 0.75 * parts[1])


@pytest.mark.parametrize("check", ["check_whole", "check_number"])
def test_a_check_judges_the_tasks_that_have_it_as_one(run, check):
    spec = RescoringSpec(check, by_task={"one": RubricConfig(weights=(0.0, 2.0))}, check=check)
    (found,) = again(run, spec)
    assert scores(found, "one") == {name: 2 * mean for name, mean in means(run, "one", check).items()}
    assert scores(found, "two") == {name: 2 - 2 * mean for name, mean in means(run, "two").items()}
    assert means(run, "two", "check_whole") != means(run, "two", "check_number")


def test_each_task_is_rescored_with_the_thresholds_that_the_run_froze_for_it(run, monkeypatch):
    frozen = {"two": {"len_p33": 0.125, "len_p66": 0.75}}
    meta = RunReader.meta
    monkeypatch.setattr(RunReader, "meta", lambda self: {**meta(self), "thresholds": json.dumps(frozen)})
    (found,) = again(run, RescoringSpec("length", rubric=RubricConfig(schema="efficiency-adjusted")))
    assert found.body["tasks"]["two"]["thresholds"] == frozen["two"]
    assert found.body["tasks"]["one"]["thresholds"] != frozen["two"]


def test_what_a_check_has_said_is_not_said_by_another_scorer(run):
    whole = {"name": "yes", "when": {"signal": "check_whole", "equals": 1}}
    schema = {"name": "c", "categories": [whole, {"name": "no", "when": "otherwise"}], "weights": [1, 0]}
    rubric = read_rubric(json.dumps({"schema": schema}))
    (kept,) = again(run, RescoringSpec("kept", rubric=rubric), task="one")
    assert kept.unscored < len(kept.rows)
    with pytest.raises(UsageError, match="has what the rubric needs"):
        again(run, RescoringSpec("lost", rubric=rubric, scorer=read_scorer("numeric")), task="one")


def test_answers_that_were_cut_off_do_not_hide_that_all_others_lack_a_signal(tmp_path):
    """Cut-off answers are worth nothing by every rubric; the others have a number and nothing is right."""
    data = data_of(tmp_path)
    for task in data["tasks"]:
        task["scorer"] = {"kind": "python", "function": "stars:stars", "range": [0, 3]}
        del task["rubric"]
    (tmp_path / "stars.py").write_text("def stars(answer, question):\n    return 2.0\n", "utf-8")
    built = build(config_from_data(data, tmp_path))

    def answer(request, at, *, after_stop=False):
        end = "length" if request.key.index % 5 == 0 else "stop"
        completion = Completion("2", end, Usage(9, 5))
        scoring = built.scoring[request.task]
        score = scoring.categorised(Score(1, "2", {"score": 2.0}, ""), completion)
        return TrialRecord(request, at, completion, score, after_stop=after_stop)

    runs.store_run(tmp_path / "run", built.meta(), built.session(), answer)
    with pytest.raises(UsageError, match="no stored answer to task 'one' has what the rubric needs"):
        again(tmp_path / "run", RescoringSpec("binary", rubric=read_rubric("binary")))


def test_different_numbers_of_another_scorer_are_not_all_alike(tmp_path):
    built = build(config_of(tmp_path, budget={"trials": 80}))

    def answer(request, at, *, after_stop=False):
        text = request.question[1:]
        completion = Completion(text if request.key.index % 2 else f"It is {text}.", "stop", Usage(9, 5))
        question = built.tasks[[*SIZES].index(request.task)].by_id[request.question]
        score = built.scoring[request.task].score(completion, question)
        return TrialRecord(request, at, completion, score, after_stop=after_stop)

    runs.store_run(tmp_path / "run", built.meta(), built.session(), answer)
    words, numbers = (
        again(tmp_path / "run", RescoringSpec("f1", scorer=read_scorer(written)))[0].remarks
        for written in ("{kind: f1, right_from: 0.1}", "{kind: f1, range: [0, 1]}")
    )
    assert ([remark.code for remark in words], numbers) == (["warning/all-alike"] * 2, ())


def test_a_goal_that_names_a_reference_is_a_ranking_of_the_asked_models(run, tmp_path):
    earlier = [{"run": str(run), "models": ["b"]}]
    goal = {"kind": "baseline", "model": "b"}
    data = data_of(tmp_path)
    data["models"] = [{**data["models"][0], "name": name} for name in ("new", "other")]
    built = build(config_from_data({**data, "references": earlier, "goal": goal}, tmp_path))
    runs.store_run(tmp_path / "new", built.meta(), built.session(), answering(built))
    (found,) = again(tmp_path / "new", RescoringSpec("again"))
    assert [line.model for line in found.results.models] == ["new", "other"]
    assert found.results.goal == GoalSpec("ranking").text
    assert len(found.results.pairs) == 1


def test_checks_are_tracked_where_each_answer_is_scored_by_itself(tmp_path):
    data = data_of(tmp_path)
    config = config_from_data(data, tmp_path)
    assert [spec.name for spec in tracked(config)] == ["check_number", "check_whole"]
    assert all([*spec.by_task] == [*SIZES] for spec in tracked(config))
    data["tasks"][1]["answers"] = {"k": 3, "by": "majority"}
    together = tracked(config_from_data(data, tmp_path))
    assert [[*spec.by_task] for spec in together] == [["one"], ["one"]]


def test_an_answer_is_right_by_the_rubric_of_its_own_task(run):
    """Of the second task it is the wrong one that is worth most."""
    first = {}
    for one in sorted(records(run), key=lambda one: one.request.key.index):
        if one.request.key.model == "a":
            lost = one.missing is not None or bool(one.discarded)
            first.setdefault((one.request.task, one.request.question), None if lost else one.score.category)
    held = sum(category == (task == "one") for (task, _), category in first.items())
    assert 0 < held < len(first)
    assert each_question(run, "1 of 1", "a")[0].text.startswith(f"a: {held} of 15 questions have at least 1")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE tasks SET name = 'other' WHERE id = 0", "did not ask"),
        ("UPDATE questions SET name = 'other' WHERE id = 0", "did not ask"),
        ("UPDATE outcomes SET step = 1.5 WHERE id = 3", "hold no integer in step"),
        ("UPDATE outcomes SET question = 1 - question WHERE question < 2", "is not of question"),
        ("UPDATE outcomes SET step = step + 2000000", "trial 2,000,0.. of 'a' follows"),
    ],
)
def test_a_forged_run_ranks_nothing_though_its_checksums_fit(run, tmp_path, sql, words):
    shutil.copytree(run, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "run.db") as db:
        db.execute(sql)
    db.close()
    runs.reseal(tmp_path / "run")
    with pytest.raises(RunDamaged, match=words):
        again(tmp_path / "run", RescoringSpec("again"))
