"""Answers chosen for labels: the files to fill in, and verdicts that rest on labels."""

import csv
import json
import re
import shutil
from collections import Counter

import numpy as np
import pytest
from command_line import ROOT, command, finished, in_process, mimic_config

from adaptive_eval.run.label_choice import LabelChoices
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import TrialKey
from scorio.sequential import label_bets

KEYS = ["id", "question", "prompt", "answer", "target", "pi", "score"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    mimics = {"sage": {"mean": 0.6}, "novice": {"mean": 0.5}}
    config = mimic_config(mimics=mimics, budget={"trials": 240}, goal="budget")
    return finished(tmp_path_factory.mktemp("labels"), config)


@pytest.fixture
def run(made):
    """A run without labels."""
    for file in made.glob("labels*"):
        file.unlink()
    return made


def rows_of(run):
    return [json.loads(line) for line in (run / "labels.jsonl").read_text("utf-8").splitlines()]


def write(run, rows):
    (run / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def test_chosen_answers_are_those_of_all_models_without_their_names(run):
    said = command("samples", run, "--label", "0.25", code=0).out
    rows = rows_of(run)
    assert f"{len(rows)} answers" in said
    assert all(list(row) == KEYS and row["score"] is None for row in rows)
    assert {row["pi"] for row in rows} == {0.25}
    with RunReader(run) as reader:
        records = list(reader.trials())
        models = reader.cells().models
    asked = len({one.request.key.index for one in records})
    assert len(rows) == round(0.25 * asked) * len(models)
    written = (run / "labels.jsonl").read_text() + (run / "labels.html").read_text()
    assert not re.search("sage|novice", written)
    times = Counter(row["question"] for row in rows)
    assert all(number % len(models) == 0 for number in times.values())


def test_the_choice_is_that_of_the_run_and_a_larger_share_keeps_what_is_filled_in(run):
    command("samples", run, "--label", 20, code=0)
    first = rows_of(run)
    for file in run.glob("labels*"):
        file.unlink()
    command("samples", run, "--label", 20, code=0)
    assert rows_of(run) == first
    first[3] |= {"score": "right"}
    write(run, first)
    command("samples", run, "--label", 50, code=0)
    rows = rows_of(run)
    assert rows[: len(first)] == first
    assert len({row["id"] for row in rows}) == len(rows) == 100
    assert {row["pi"] for row in rows[len(first) :]} == {0.3}  # 30 of the 100 that were left
    assert '"score": "right"' in (run / "labels.html").read_text()
    assert held(run, code=0)["labels"]["filled"] == 1  # rows of both calls are read, each with its own chance
    again = command("samples", run, "--label", 30, code=2).err
    assert "50 of 120 questions are chosen already" in again


def test_results_without_texts_are_not_offered(tmp_path):
    rows = "".join(f"{model},q{number},{number % 2}\n" for model in "ab" for number in range(40))
    (tmp_path / "table.csv").write_text(f"model,question,correct\n{rows}")
    command("analyze", tmp_path / "table.csv", "--write", tmp_path / "run")
    said = command("samples", tmp_path / "run", "--label", "0.5", code=2).err
    assert "keeps no texts" in said
    assert not list((tmp_path / "run").glob("labels*"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--label", "2.5"], "above 0 and up to 1.0"),
        (["--label", "1000"], "has asked 120 questions"),
        (["--label", "0.1", "--model", "sage"], "--model does not go with --label"),
    ],
)
def test_what_cannot_be_chosen_is_said(run, options, said):
    assert said in command("samples", run, *options, code=2).err
    assert not list(run.glob("labels*"))


# ------------------------------------------------------------------ verdicts


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """The example's run: two equal models, and a judge that is taken in by one of them."""
    folder = tmp_path_factory.mktemp("judged") / "examples"
    shutil.copytree(ROOT / "docs" / "examples", folder)
    done = in_process("run", "labels.yaml", "--out", "run", "--display", "none", cwd=folder, code=0)
    assert "polite is ahead of plain" in done.said
    return folder / "run"


@pytest.fixture
def labelled(judged):
    """Its answers with labels of a person for two fifths of the questions."""
    for file in judged.glob("labels*"):
        file.unlink()
    command("samples", judged, "--label", "0.4", code=0)
    rows = rows_of(judged)
    for row in rows:
        right = re.findall(r"\d+", row["answer"])[-1] == row["target"]
        row["score"] = "right" if right else "wrong"
    write(judged, rows)
    return judged


def held(run, *options, code=3):
    file = options[0] if options else run / "labels.jsonl"
    return json.loads(command("rescore", run, "--labels", file, "--json", *options[1:], code=code).out)


def table_of(run):
    """Return steps with what judge and labels say of both models, from the stored trials alone."""
    with RunReader(run) as reader:
        columns = reader.outcomes()
    steps = np.arange(min(columns.step[columns.model == model].max() for model in (0, 1)) + 1)
    judge = np.empty((2, columns.step.max() + 1))
    judge[columns.model, columns.step] = columns.category
    return columns.models, steps, judge[:, : steps.size]


def test_a_biased_judge_alone_names_a_winner_and_labels_do_not(labelled):
    data = held(labelled)
    (alone,), (pair,) = data["judge_alone"]["pairs"], data["results"]["pairs"]
    assert (alone["verdict"], pair["verdict"], data["exit_code"]) == ("worse", "open", 3)
    biases = {one["first"]: one for one in data["bias"]}
    assert biases["plain"]["bias"] == 0.0
    assert biases["plain"]["kappa"] == biases["plain"]["agreement"] == 1.0
    assert biases["polite"]["bias"] > 0.0
    (apart,) = data["bias_difference"]
    # one model may be a few answers ahead of the other when the run stops
    assert apart["bias"] == pytest.approx(-biases["polite"]["bias"], abs=0.05)
    assert apart["low"] < apart["bias"] < apart["high"]
    assert data["labels"]["filled"] == data["labels"]["rows"] == len(rows_of(labelled))
    assert {one["judge"] for one in data["next"]} == {0.0, 1.0}
    said = command("rescore", labelled, "--labels", labelled / "labels.jsonl", code=3).out
    assert data["verdict"] in said
    assert "The judge alone says: polite is ahead of plain" in said
    command("report", labelled, "--output", labelled.parent / "report", code=0)
    text = (labelled.parent / "report" / "report.md").read_text("utf-8")
    assert "corrects the judge by labels" in text


def test_the_verdict_is_that_of_bets_on_the_corrected_scores(labelled):
    models, steps, judge = table_of(labelled)
    score = {row["id"]: row["score"] == "right" for row in rows_of(labelled)}
    label = np.full(judge.shape, np.nan)
    with RunReader(labelled) as reader:
        choices = LabelChoices.from_run(reader)
    for row, model in enumerate(models):
        for step in steps.tolist():
            label[row, step] = score.get(choices.id(TrialKey(model, step)), np.nan)
    data = held(labelled)
    (pair,) = data["results"]["pairs"]
    bets = label_bets(judge, label, data["labels"]["questions"] / data["labels"]["of"])
    low, high = bets.interval(0.05)
    assert pair["evidence"] == pytest.approx(max(bets.last(), 0.0), abs=1e-9)
    assert (pair["difference_low"], pair["difference_high"]) == pytest.approx((low, high), abs=1e-6)
    assert pair["difference"] == pytest.approx(bets.estimate)


def test_a_real_difference_is_decided_by_labels_and_rows_left_blank_hinder_it(labelled):
    rows = rows_of(labelled)
    for row in rows:
        row["score"] = int("certain" not in row["answer"])
    write(labelled, rows)
    data = held(labelled, code=0)
    (pair,) = data["results"]["pairs"]
    assert (pair["verdict"], data["exit_code"]) == ("better", 0)  # against what the judge says
    assert "plain is ahead of polite" in data["verdict"]
    for row in rows[: len(rows) // 2]:
        row["score"] = None
    write(labelled, rows)
    (hindered,) = held(labelled)["results"]["pairs"]
    assert hindered["evidence"] < pair["evidence"]


@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_a_dry_run_changes_nothing_of_a_run_and_says_what_it_would_store(labelled, json_):
    def kept():
        with RunReader(labelled) as reader:
            stored = [one.name for one in reader.scorings()]
        return stored, {path: path.read_bytes() for path in labelled.rglob("*") if path.is_file()}

    before = kept()
    for line, code in ((("--labels", labelled / "labels.jsonl"), 3), (("--scorer", "numeric"), 0)):
        dry = command("rescore", labelled, *line, "--name", "again", "--dry-run", *json_, code=code).out
        assert kept() == before
        wet = command("rescore", labelled, *line, "--name", "again", *json_, code=code).out
        assert wet.startswith(dry)
        assert len(kept()[0]) == len(before[0]) + 1
        before = kept()


def test_labels_by_place_without_chances_say_what_the_judge_is_worth_and_give_no_verdict(labelled, tmp_path):
    _, steps, _ = table_of(labelled)
    file = tmp_path / "people.csv"
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["model", "trial", "score"])
        rows.writerows([model, step, 1] for model in ("plain", "polite") for step in steps[::7].tolist())
    data = held(labelled, file, code=0)
    assert data["verdict"] is data["results"] is None
    assert {one["labels"] for one in data["bias"]} == {len(steps[::7])}
    text = (
        file.read_text()
        .replace("score", "score,pi")
        .replace(",1\n", ",1,0.5\n")
        .replace(",1\r\n", ",1,0.5\r\n")
    )
    file.write_text(text)
    assert held(labelled, file)["results"]["pairs"][0]["verdict"] == "open"


def test_every_mistake_of_a_file_is_told_with_its_line(labelled):
    rows = rows_of(labelled)
    rows[0]["id"] = "nobody"
    rows[1]["score"] = 0.5
    rows[2]["pi"] = 1.5
    own = rows[3]["pi"]
    rows[3]["pi"] = own / 2
    del rows[4]["pi"]
    rows[6] = {**rows[5], "score": "wrong" if rows[5]["score"] == "right" else "right"}
    write(labelled, rows)
    with (labelled / "labels.jsonl").open("a") as file:
        file.write("{\n")
    said = command("rescore", labelled, "--labels", labelled / "labels.jsonl", code=2).err
    assert "7 mistakes" in said
    expected = {
        1: "'nobody'",
        2: "score 0.5 is not in the rubric of sums: wrong (0), right (1)",
        3: "pi is 1.5",
        4: f"was chosen at {own:g}",
        5: "pi is missing",
        7: "another score on line 6",
        len(rows) + 1: "no JSON object",
    }
    for line, words in expected.items():
        assert re.search(rf"line {line}: [^\n]*{re.escape(words)}", said), (line, words)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rounds", "two tasks", "population", "other worths", "not worse", "worse"])
def test_labels_decide_in_every_form_of_run(tmp_path, kind):
    novice = 0.75 if kind == "not worse" else 0.2
    config = mimic_config(mimics={"sage": {"mean": 0.95}, "novice": {"mean": novice}}, budget={"trials": 400})
    task = config["tasks"][0]
    config["goal"] = "budget" if kind == "rounds" else "ranking"
    if kind == "rounds":
        config["allocation"] = {"questions": "rounds"}
    if kind == "two tasks":
        config["tasks"] = [task, {**task, "name": "again", "prompt": task["prompt"] + " "}]
    if kind == "population":
        config["stopping"] = {"target": "population"}
    if kind == "other worths":
        task["rubric"] = {"weights": [0, 10]}
    if kind in ("not worse", "worse"):  # than the margin, which is half of a real difference or far above
        config["goal"] = {
            "kind": "not-worse",
            "model": "sage",
            "margin": 0.5 if kind == "not worse" else 0.35,
        }
    run = finished(tmp_path, config, code=5 if kind == "worse" else (0, 3))
    command("samples", run, "--label", "1.0", code=0)
    rows = rows_of(run)
    top = 10 if kind == "other worths" else 1
    for row in rows:
        row["score"] = top * (f"boxed{{{row['target']}}}" in row["answer"])
    write(run, rows)
    data = held(run, code=5 if kind == "worse" else (0, 3))
    scores = {one["model"]: one["score"] / top for one in data["results"]["models"]}
    assert scores["sage"] > scores["novice"]
    assert data["labels"]["agreement"] > 0.9
    assert data["labels"]["questions"] == data["labels"]["of"] > 10
    assert sum(one["labels"] for one in data["next"]) == data["labels"]["filled"]
    (pair,) = data["results"]["pairs"]
    if kind in ("not worse", "worse"):
        assert pair["difference"] < -0.1
        assert pair["verdict"] == ("worse" if kind == "worse" else "better")


# ------------------------------------------------------------------ labels that decide a run


@pytest.fixture
def decided(tmp_path):
    """The example with `labels`, asked once and not labelled yet."""
    folder = tmp_path / "examples"
    shutil.copytree(ROOT / "docs" / "examples", folder)
    config = folder / "labels.yaml"
    function = 'function: "labels:judge"'
    text = config.read_text("utf-8").replace(function, f"{function}, labels: run/labels.jsonl")
    config.write_text(text.replace("trials: 2000", "trials: 400"), "utf-8")
    assert asked(folder, code=3)["verdict"] == "open"
    return folder


def asked(folder, *options, code):
    """Run or continue the example; return its pair by labels, what the judge alone says, and the words."""
    done = in_process(
        "run", "labels.yaml", *options, "--out", "run", "--display", "none", cwd=folder, code=code
    )
    data = json.loads((folder / "run" / "report.json").read_text("utf-8"))
    (pair,) = data["pairs"]
    assert data["rule"]["name"] == "labels"
    ranks = {line["model"]: (line["rank"], line["rank_low"], line["rank_high"]) for line in data["models"]}
    alone, said = data["judge_alone"]["pairs"][0]["verdict"], " ".join(done.said.split())
    return {**pair, "alone": alone, "ranks": ranks, "said": said}


def label_all(run, share, score):
    command("samples", run, "--label", share, code=0)
    rows = rows_of(run)
    for row in rows:
        row["score"] = score(row)
    write(run, rows)


def is_right(row):
    return int(re.findall(r"\d+", row["answer"])[-1] == row["target"])


def test_a_run_with_labels_is_not_ended_by_its_judge_and_says_what_labels_would_decide(decided):
    run = decided / "run"
    with RunReader(run) as reader:
        assert reader.count() == 400  # the judge alone had a winner before
        assert not any(one.body["kind"] == "pair" for one in reader.decisions())
    label_all(run, "0.4", is_right)
    pair = asked(decided, code=3)
    assert (pair["verdict"], pair["alone"]) == ("open", "worse")
    assert "open by labels" in pair["said"]
    data = held(run, run / "labels.jsonl", "--dry-run")
    assert pair["evidence"] == pytest.approx(data["results"]["pairs"][0]["evidence"])
    assert data["judge_alone"]["pairs"][0]["verdict"] == "worse"
    command("validate", run, code=0)
    assert "undecided" in command("check", run, "--not-worse", "plain:polite", "--margin", "0.1", code=3).out


def test_labels_that_decide_end_the_continued_run_against_its_judge(decided):
    run = decided / "run"
    label_all(run, "1.0", lambda row: int("certain" not in row["answer"]))
    pair = asked(decided, "-o", "budget.trials=2000", code=0)
    assert (pair["verdict"], pair["alone"]) == ("better", "worse")
    assert pair["ranks"] == {"plain": (1, 1, 1), "polite": (2, 2, 2)}
    assert "plain is ahead of polite" in pair["said"]
    with RunReader(run) as reader:
        assert reader.count() == 400  # nothing more was asked
    assert asked(decided, "-o", "budget.trials=2000", code=0)["verdict"] == "better"
    command("validate", run, code=0)
    assert "holds" in command("check", run, "--not-worse", "plain:polite", "--margin", "0.1", code=0).out


@pytest.mark.slow
def test_a_run_goes_on_where_labels_leave_its_pairs_open(decided):
    asked(decided, "-o", "budget.trials=401", code=3)  # one model is a trial ahead
    label_all(decided / "run", "1.0", is_right)
    before = asked(decided, "-o", "budget.trials=401", code=3)
    asked(decided, "-o", "budget.trials=480", code=3)
    (after,) = held(decided / "run")["results"]["pairs"]
    for name in ("evidence", "difference", "difference_low", "difference_high"):
        assert after[name] == pytest.approx(before[name]), name
    with RunReader(decided / "run") as reader:
        assert reader.count() == 480
    command("validate", decided / "run", code=0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": "nobody"}, "line 1: id 'nobody' is of no answer of this run"),
        ({"score": 7}, "line 1: score 7 is not in the rubric of sums"),
        ({"pi": 0.9}, "line 1: pi is 0.9; this answer was chosen at {pi:g}"),
    ],
)
def test_a_mistake_in_the_labels_of_a_run_is_told_before_anything_is_asked(decided, change, said):
    run = decided / "run"
    label_all(run, "0.4", is_right)
    first, *others = rows_of(run)
    write(run, [{**first, **change}, *others])
    done = in_process("run", "labels.yaml", "--out", "run", "--display", "none", cwd=decided, code=2)
    assert said.format(**first) in done.said  # how many were asked by the end, and so pi, depends on the run


def test_labels_without_pi_and_those_of_another_run_decide_nothing(decided):
    run = decided / "run"
    label_all(run, "1.0", lambda row: int("certain" not in row["answer"]))
    done = in_process("run", "labels.yaml", "--out", "other", "--display", "none", cwd=decided, code=2)
    assert "this run has no answers yet" in done.said
    write(run, [{name: value for name, value in row.items() if name != "pi"} for row in rows_of(run)])
    pair = asked(decided, code=3)
    assert (pair["verdict"], pair["difference"]) == ("open", None)
    assert "have no pi" in pair["said"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["budget={}"], "the judge alone ends no run that labels decide; give budget.trials"),
        (["references=[{run: run, models: [old]}]"], "references have no answers here to be labelled"),
    ],
)
def test_what_does_not_go_with_labels_is_refused(decided, options, said):
    given = [part for option in options for part in ("-o", option)]
    done = in_process("validate", "labels.yaml", *given, cwd=decided, code=2)
    assert said in " ".join(done.said.split())
