"""A judge that compares answers with the stored ones of a model, in both orders, through whole runs."""

import json
import re
import shutil

import pytest
from command_line import ARITHMETIC, command, finished, mimic_config, trials, write_config
from scripted_chat import scripted_chat

from adaptive_eval.store.reader import RunReader

ROWS = [json.loads(line) for line in ARITHMETIC.read_text("utf-8").splitlines()]
TARGETS = {row["question"]: str(row["answer"]) for row in ROWS}


def boxes(text):
    return re.findall(r"\\boxed\{(.*?)\}", text)


def target_in(text):
    return next((target for question, target in TARGETS.items() if question in text), "")


def prefers_right_then_first(body):
    """Return which of two answers is better; of two right or two wrong ones the first."""
    prompt = body["messages"][-1]["content"]
    first, second = (box == target_in(prompt) for box in (*boxes(prompt), None, None)[:2])
    return json.dumps({"reason": "so it is", "verdict": "second" if second > first else "first"})


@pytest.fixture(scope="module")
def judge():
    with scripted_chat() as make:
        yield make(prefers_right_then_first)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Return a run with two answers or more of each model to every question."""
    folder = tmp_path_factory.mktemp("old")
    return finished(folder, mimic_config(goal="budget", budget={"trials": 200}))


def head_to_head(judge, old, model="novice", **sections):
    against = {"against": f"{old}#{model}", "second_votes": 0}
    scorer = {"kind": "judge", "endpoint": judge.url, "model": "wise", **against}
    return mimic_config({"scorer": scorer}, **{"goal": "budget", "budget": {"trials": 160}, **sections})


@pytest.mark.slow
def test_a_trial_is_won_lost_or_neither_and_all_models_meet_the_same_stored_answers(tmp_path, judge, old):
    with RunReader(old) as reader:
        texts = {record.completion.text for record in reader.trials(model="novice")}
    config = head_to_head(judge, old, seed=4)
    out = finished(tmp_path, config)
    met, scores = {}, set()
    records = trials(out)
    for record in records:
        signals, target = record.score.signals, target_in(record.sent["messages"][-1]["content"])
        ours, theirs = (boxes(text)[-1:] == [target] for text in (record.completion.text, signals["against"]))
        assert signals["score"] == (1 + ours - theirs) / 2
        assert signals["order_decided"] == (ours == theirs)
        met.setdefault((record.request.question, record.request.repeat), set()).add(signals["against"])
        scores.add(signals["score"])
    assert scores == {0.0, 0.5, 1.0}
    assert not any(record.missing for record in records)
    assert all(len(one) == 1 for one in met.values())
    assert {text for one in met.values() for text in one} <= texts
    assert len({text for one in met.values() for text in one}) > len(ROWS)  # repeats meet further answers
    report = json.loads((out / "report.json").read_text())
    assert report["models"][0]["score"] > 0.5 > report["models"][1]["score"] - 0.2
    assert "order of the two answers decided" in (out / "report.md").read_text()

    shown = command("samples", out, "--limit", "1", "--full").out
    assert re.search(r"^  against +\S", shown, re.MULTILINE)
    both = (records[0].completion.text, records[0].score.signals["against"])
    assert all(line in shown for text in both for line in text.splitlines())
    again = command("rescore", out, "--scorer", "numeric", "--dry-run", "--json")
    assert json.loads(again.out)[1]["models"][0]["score"] == pytest.approx(0.9, abs=0.1)  # of the targets


@pytest.mark.slow
def test_people_label_head_to_head_too(tmp_path, judge, old):
    out = finished(tmp_path, head_to_head(judge, old))
    command("samples", out, "--label", "0.5", code=0)
    file = out / "labels.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows:
        target = target_in(row["prompt"])
        ours, theirs = (boxes(text)[-1:] == [target] for text in (row["answer"], row["target"]))
        row["score"] = (1 + ours - theirs) / 2
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    data = json.loads(command("rescore", out, "--labels", file, "--json", code=(0, 3)).out)
    assert {row["score"] for row in rows} == {0.0, 0.5, 1.0}
    assert (data["labels"]["agreement"], data["labels"]["kappa"]) == (1.0, 1.0)
    assert data["results"]["models"][0]["score"] > data["results"]["models"][1]["score"]


def test_a_prompt_of_other_fields_is_compared_as_a_whole(tmp_path, judge, old):
    config = head_to_head(judge, old)
    rows = [{**row, "body": row["question"], "question": "none"} for row in ROWS]
    (tmp_path / "named.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config["tasks"][0]["dataset"] = "named.jsonl"
    config["tasks"][0]["fields"]["body"] = "body"
    config["tasks"][0]["prompt"] = config["tasks"][0]["prompt"].replace("{input}", "{body}")
    command("validate", write_config(tmp_path, config), "--offline", code=0)
    config["tasks"][0]["prompt"] += " Be brief."
    refused = command("validate", write_config(tmp_path, config), "--offline", code=2)
    assert "against" in refused.err
    assert "prompt" in refused.err


@pytest.mark.slow
def test_a_run_goes_on_with_the_stored_answers_it_began_with(tmp_path, judge, old):
    moved = tmp_path / "previous"
    shutil.copytree(old, moved)
    out = finished(tmp_path, head_to_head(judge, moved, budget={"trials": 80}))
    command("run", moved, "-o", "budget.trials=400", "--display", "none", code=(0, 3))  # more answers of each
    with RunReader(old) as reader:
        texts = {record.completion.text for record in reader.trials(model="novice")}
    command("run", out, "-o", "budget.trials=200", "--display", "none", code=(0, 3))
    shutil.rmtree(moved)
    command("run", out, "-o", "budget.trials=320", "--display", "none", code=(0, 3))
    records = trials(out)
    assert len(records) == 320
    assert {record.score.signals["against"] for record in records} <= texts
    assumed = ("--assume", "sage=0.9", "--assume", "novice=0.4", "--replicates", "10")
    for arguments in (
        ("rescore", out, "--scorer", "numeric", "--dry-run"),
        ("plan", tmp_path / "config.yaml", "-o", "goal=ranking", *assumed),
    ):
        command(*arguments, code=0)


def test_answers_are_rescored_against_those_of_a_run_named_from_the_current_folder(
    tmp_path, judge, old, monkeypatch
):
    shutil.copytree(old, tmp_path / "here")
    monkeypatch.chdir(tmp_path)
    scorer = {**head_to_head(judge, old)["tasks"][0]["scorer"], "against": "here # novice"}
    found = command("rescore", old, "--scorer", json.dumps(scorer), "--dry-run", "--json", code=0)
    sage, novice = json.loads(found.out)[1]["models"]
    assert sage["model"] == "sage"
    assert novice["score"] == pytest.approx(0.5)  # against itself, each answer once


def test_validate_judges_one_answer_when_it_may_spend(tmp_path, judge, old):
    config = head_to_head(judge, old)
    del config["tasks"][0]["fields"]["target"]  # nothing is compared with a target
    path = write_config(tmp_path, config)
    before = len(judge.asked)
    found = command("validate", path)
    assert (found.code, len(judge.asked)) == (0, before)
    assert "100 stored answers" in found.out
    found = command("validate", path, "--probe")
    assert (found.code, len(judge.asked)) == (0, before + 2)
    assert "judge of arithmetic" in found.out


@pytest.mark.slow
def test_a_run_whose_stored_answers_have_changed_is_not_continued(tmp_path, judge, old):
    out = finished(tmp_path, head_to_head(judge, old))
    more = command(
        "run", out, "-o", f"tasks[arithmetic].scorer.against={old}#sage", "--display", "none", code=2
    )
    assert "against" in more.err
