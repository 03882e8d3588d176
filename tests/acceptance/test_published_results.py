"""From a published file to a sentence with the winner, in one command: forms of tables, tools and groups."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Finished, in_process, started

QUICK = ("--replicates", "1", "--workers", "1")
QUESTIONS = 40
NEW = [int(number < 35) for number in range(QUESTIONS)]
OLD = [int(number * 7 % 40 < 22) for number in range(QUESTIONS)]
BOTH = list(zip([f"item {number}" for number in range(QUESTIONS)], NEW, OLD, strict=True))


def analyzed(folder: Path, *arguments: str, code: int = 0) -> Finished:
    return in_process("analyze", *arguments, *QUICK, cwd=folder, code=code)


def data_of(folder: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(analyzed(folder, *arguments, "--json").out)
    return found


def rows(*lines: str) -> str:
    return "\n".join(lines) + "\n"


LONG = [
    (model, item, value) for item, *pair in BOTH for model, value in zip(("new", "old"), pair, strict=True)
]
TABLES = {
    "two columns": rows("new,old", *(f"{a},{b}" for _, a, b in BOTH)),
    "a column a model": rows("Task ID,new,old,level", *(f"{q},{a},{b},{7}" for q, a, b in BOTH)),
    "words and a question that no heading names": rows(
        "which,new,old", *(f"{q},{'yes' if a else 'no'},{'Yes' if b else 'No'}" for q, a, b in BOTH)
    ),
    "a column a question": rows(
        ",".join(["Model", *(q for q, _, _ in BOTH)]),
        f"new,{','.join(map(str, NEW))}",
        f"old,{','.join(map(str, OLD))}",
    ),
    "capital headings": rows("Model,Task ID,Is Correct", *(f"{m},{q},{bool(v)}" for m, q, v in LONG)),
    "numbers of questions": rows("Model,QID,Passed", *(f"{m},{q},{v}" for m, q, v in LONG)),
    "tasks that are questions": rows("model,task,success", *(f"{m},{q},{v}" for m, q, v in LONG)),
    "index of a data frame": rows(",new,old", *(f"{n},{a},{b}" for n, (_, a, b) in enumerate(BOTH))),
}


@pytest.mark.parametrize("form", TABLES)
def test_a_table_ends_in_a_sentence_with_the_winner(form, tmp_path):
    (tmp_path / "table.csv").write_text(TABLES[form], "utf-8")
    data = data_of(tmp_path, "table.csv")
    assert data["sentence"].startswith(
        "new is ahead of old on these questions, if the number of answers was "
    )
    (pair,) = data["fixed"]
    assert (pair["test"], round(pair["p_value"], 4), pair["winner"]) == ("McNemar", 0.0044, "new")
    assert 0.0 < pair["difference_low"] < 0.325 < pair["difference_high"]
    assert [(line["model"], line["score"], line["trials"]) for line in data["models"]] == [
        ("new", 0.875, 40),
        ("old", 0.55, 40),
    ]


def test_a_file_a_model_is_named_for_its_file(tmp_path):
    for name, values in (("new", NEW), ("old", OLD)):
        (tmp_path / f"{name}.csv").write_text(
            rows("id,correct", *(f"{n},{v}" for n, v in enumerate(values))), "utf-8"
        )
    assert data_of(tmp_path, "new.csv", "old.csv")["sentence"].startswith("new is ahead of old")
    alone = analyzed(tmp_path, "new.csv").out
    assert "new scores 0.875 [0.731, 0.947] on these questions" in alone
    assert "needed" not in alone


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    for name, values in (("new", NEW), ("old", OLD)):
        place = tmp_path / "all" / name / "final"
        place.mkdir(parents=True)
        (place / "results.csv").write_text(
            rows("id,correct", *(f"{n},{v}" for n, v in enumerate(values))), "utf-8"
        )
    for given in (["all"], ["all/old/final/results.csv", "all/new/final/results.csv"]):
        assert data_of(tmp_path, *given)["sentence"].startswith("new is ahead of old")


def helm_run(folder: Path, model: str, values: list[int], metrics: list[str]) -> Path:
    """Write the files of a run of HELM as its site publishes them, without run_spec.json."""
    place = folder / f"suite:subject=all,model={model}"
    place.mkdir(parents=True)
    statistics: list[Any] = []
    shown: list[Any] = []
    for number, value in enumerate(values):
        answer = {"instance_id": f"id{number}", "train_trial_index": 0}
        for name, score in (*((name, value) for name in metrics), ("inference_runtime", 0.5)):
            stat = {"name": {"name": name, "split": "test"}, "count": 1, "sum": score}
            statistics.append({**answer, "stats": [stat, {**stat, "count": 0, "sum": 0}]})
        scores = {**dict.fromkeys(metrics, float(value)), "num_output_tokens": 3.0}
        shown.append({**answer, "predicted_text": "B", "base64_images": [], "stats": scores})
    (place / "per_instance_stats.json").write_text(json.dumps(statistics), "utf-8")
    (place / "display_predictions.json").write_text(json.dumps(shown), "utf-8")
    return place


def test_published_files_of_helm(tmp_path):
    for model, values in (("org_new", NEW), ("org_old", OLD)):
        helm_run(tmp_path / "one", model, values, ["quasi_exact_match"])
        helm_run(tmp_path / "several", model, values, ["harm_score", "judge_score"])
    refused = analyzed(tmp_path, "several", code=2)
    assert "--metric. There are: harm_score, judge_score [" in refused.err
    pages = sorted(str(page) for page in (tmp_path / "one").rglob("display_predictions.json"))
    for given in (["several", "--metric", "judge_score"], ["one"], pages):
        data = data_of(tmp_path, *given)
        assert data["sentence"].startswith("org_new is ahead of org_old")
        assert [line["trials"] for line in data["models"]] == [40, 40]


@pytest.mark.parametrize(
    ("headings", "option"),
    [
        ("who,what,ok", "--map model=COLUMN,score=COLUMN,question=COLUMN"),
        ("model,what,correct", "--map question=COLUMN"),
        ("who,question,correct", "--map model=COLUMN"),
    ],
)
def test_headings_that_say_nothing_are_listed_with_the_option(headings, option, tmp_path):
    (tmp_path / "table.csv").write_text(rows(headings, *(f"{m},{q},{v}" for m, q, v in LONG)), "utf-8")
    refused = analyzed(tmp_path, "table.csv", code=2)
    assert option in refused.err
    model, question, score = headings.split(",")
    columns = f"model={model},question={question},score={score}"
    assert data_of(tmp_path, "table.csv", "--map", columns)["fixed"][0]["winner"] == "new"


def test_a_leaderboard_of_averages_is_refused_with_what_to_give(tmp_path):
    table = '"name","win_rate\n(all)",avg_length\nnew,76.9,872\nold,50.1,900\n'
    (tmp_path / "leaderboard.csv").write_text(table, "utf-8")
    refused = analyzed(tmp_path, "leaderboard.csv", code=2)
    assert "win_rate (all), avg_length" in refused.err
    assert "averages over questions cannot be compared" in refused.err


def test_numbers_between_0_and_1_need_no_option(tmp_path):
    lines = (f"{q},{a * 0.9 + 0.05},{b * 0.7}" for q, a, b in BOTH)
    (tmp_path / "table.csv").write_text(rows("item,new,old", *lines), "utf-8")
    (pair,) = data_of(tmp_path, "table.csv")["fixed"]
    assert (pair["test"], pair["winner"]) == ("paired t", "new")


def test_unequal_numbers_of_answers_have_the_sequential_verdict_first(tmp_path):
    again = [line for line in LONG if line[0] == "new"]
    (tmp_path / "table.csv").write_text(
        rows("model,question,correct", *(f"{m},{q},{v}" for m, q, v in [*LONG, *again])), "utf-8"
    )
    data = data_of(tmp_path, "table.csv")
    assert (data["verdict"], data["fixed"]) == ("anytime", None)
    assert data_of(tmp_path, "table.csv", "--fixed")["verdict"] == "fixed"
    shown = analyzed(tmp_path, "table.csv").out
    assert "--fixed gives the verdict of one look" in shown
    assert "At any look" in shown


class TestGroups:
    """Forty questions of four texts: a group of ten is answered alike."""

    def grouped(self, folder: Path, groups: int) -> str:
        lines = []
        for number in range(QUESTIONS):
            of_new = int(number * groups // QUESTIONS < groups * 3 // 4)
            lines += [f"new,q{number},{of_new},t{number * groups // QUESTIONS}"]
            lines += [f"old,q{number},{1 - of_new},t{number * groups // QUESTIONS}"]
        (folder / "table.csv").write_text(rows("model,question,correct,text", *lines), "utf-8")
        return "table.csv"

    @pytest.mark.parametrize(("groups", "test"), [(4, "sign flips of groups"), (40, "cluster-robust t")])
    def test_a_column_of_groups_makes_it_a_statement_about_questions_like_these(self, groups, test, tmp_path):
        table = self.grouped(tmp_path, groups)
        assert data_of(tmp_path, table)["fixed"][0]["winner"] == "new"
        data = data_of(tmp_path, table, "--map", "cluster=text")
        (pair,) = data["fixed"]
        assert (pair["test"], data["target"]) == (test, "population")
        assert (pair["winner"] == "new") == (groups == 40)
        assert "on questions like these" in data["sentence"]
        assert "on questions like these" in analyzed(tmp_path, table, "--map", "cluster=text").out
        alone = data_of(tmp_path, table, "--map", "cluster=text", "--goal", "threshold=0.6")
        assert {one["test"] for one in alone["fixed"]} <= {"sign flips of groups", "Wilson, with groups"}

    def test_what_contradicts_groups_is_refused(self, tmp_path):
        table = self.grouped(tmp_path, 4)
        target = ("-o", "stopping.target=benchmark")
        assert "leave one" in analyzed(tmp_path, table, "--map", "cluster=text", *target, code=2).err
        assert "correct" in analyzed(tmp_path, table, "--map", "cluster=texts", code=2).err
        (tmp_path / "moved.csv").write_text(
            rows("model,question,correct,text", "a,q,1,t1", "b,q,0,t2", "a,r,1,t1", "b,r,0,t1"), "utf-8"
        )
        moved = analyzed(tmp_path, "moved.csv", "--map", "cluster=text", code=2)
        assert "a question has one group" in moved.err

    def test_a_run_has_the_groups_of_its_dataset(self, tmp_path):
        (tmp_path / "program.py").write_text(
            "def new(text): return str(int(text) % 12 < 10)\ndef old(text): return str(int(text) % 12 < 4)\n"
        )
        data = tmp_path / "data.jsonl"
        lines = (
            {"id": n, "input": str(n), "target": "True", "subject": f"s{n % 12}"} for n in range(QUESTIONS)
        )
        data.write_text(rows(*map(json.dumps, lines)), "utf-8")
        models = [{"name": name, "endpoints": [f"python:program.py:{name}"]} for name in ("new", "old")]
        task = {"name": "t", "dataset": "data.jsonl", "scorer": "exact", "fields": {"cluster": "subject"}}
        config = {"models": models, "tasks": [task], "budget": {"trials": 160}}
        for name, target in (("plain", "benchmark"), ("grouped", "population")):
            own = {"name": name, **config, "stopping": {"target": target}}
            (tmp_path / f"{name}.yaml").write_text(json.dumps(own), "utf-8")
            in_process("run", f"{name}.yaml", "--display", "none", cwd=tmp_path)
        mapped = ("--map", "cluster=subject")
        assert data_of(tmp_path, "runs/plain")["target"] == "benchmark"
        assert data_of(tmp_path, "runs/plain", *mapped)["target"] == "population"
        needed = analyzed(tmp_path, "runs/plain", "-o", "stopping.target=population", code=2)
        assert "--map cluster=subject" in needed.err
        assert "subject" in analyzed(tmp_path, "runs/plain", "--map", "cluster=topic", code=2).err
        compared = {"name": "compared", **config, "models": models[:1], "stopping": {"target": "population"}}
        compared["references"] = [{"run": "runs/grouped", "models": ["old"]}]
        for fields in (task["fields"], {"id": "id"}):
            compared["tasks"] = [{**task, "fields": fields}]
            (tmp_path / "compared.yaml").write_text(json.dumps(compared), "utf-8")
            found = in_process("run", "compared.yaml", "--new", "--display", "none", cwd=tmp_path)
            assert (found.code == 2) == ("fields: {cluster: COLUMN}" in found.err) == ("id" in fields)
        data.unlink()
        assert "put it back" in analyzed(tmp_path, "runs/plain", *mapped, code=2).err
        in_process("export", "runs/grouped", "--out", "table.csv", cwd=tmp_path, code=0)
        for source in ("runs/grouped", "table.csv"):
            assert data_of(tmp_path, source)["target"] == "population"

    def test_groups_of_lm_eval_and_helm(self, tmp_path):
        for model, values in (("new", NEW), ("old", OLD)):
            place = tmp_path / "lm" / model
            place.mkdir(parents=True)
            samples = []
            for number, value in enumerate(values):
                doc = {"id": number, "subject": f"s{number % 4}"}
                samples.append(
                    {"doc_id": number, "doc": doc, "target": "x", "arguments": {}, "resps": [["x"]],
                     "filtered_resps": ["x"], "filter": "none", "metrics": ["acc"], "acc": float(value)}
                )  # fmt: skip
            name = place / "samples_law_2025-01-01T00-00-00.000000.jsonl"
            name.write_text("\n".join(map(json.dumps, samples)), "utf-8")
        plain = data_of(tmp_path, "lm")
        assert (plain["fixed"][0]["winner"], plain["target"]) == ("new", "benchmark")
        data = data_of(tmp_path, "lm", "--map", "cluster=subject")
        assert (data["fixed"][0]["test"], data["target"]) == ("sign flips of groups", "population")
        assert "cluster" not in analyzed(tmp_path, "lm", "--map", "cluster=nothing", code=2).out


class TestRunsOfOneLook:
    """A run that is written keeps the verdict of one look, its condition and its groups in every view."""

    def written(self, folder: Path, *options: str) -> str:
        (folder / "table.csv").write_text(
            rows("model,question,correct,text", *(f"{m},{q},{v},t{q[-1]}" for m, q, v in LONG)), "utf-8"
        )
        return in_process("analyze", "table.csv", "--write", "run", *options, cwd=folder, code=0).out

    @pytest.mark.parametrize("options", [(), ("--map", "cluster=text")])
    def test_every_view_repeats_it(self, options, tmp_path):
        said = self.written(tmp_path, *options)
        shown = data_of(tmp_path, "table.csv", *options)
        assert shown["sentence"] in said
        in_process("report", "run", cwd=tmp_path, code=0)
        report = json.loads((tmp_path / "run" / "report.json").read_text("utf-8"))
        assert report["verdict"] == shown["sentence"]
        assert (report["rule"]["name"], report["rule"]["target"]) == ("fixed", shown["target"])
        for pair, expected in zip(report["pairs"], shown["fixed"], strict=True):
            assert pair["p_value"] == pytest.approx(expected["p_value"])
            assert pair["difference_low"] == pytest.approx(expected["difference_low"])
        for line, expected in zip(report["models"], shown["models"], strict=True):
            for key in ("score", "score_low", "score_high", "rank_low", "rank_high"):
                assert line[key] == pytest.approx(expected[key])
        page = (tmp_path / "run" / "report.md").read_text("utf-8")
        for words in ("anytime interval", "confidence sequence", "not fixed in advance", "every look"):
            assert words not in page
        checked = in_process("check", "run", "--not-worse", "new:old", "--margin", "0.02", cwd=tmp_path)
        assert checked.code == 0
        assert "if the number of answers was fixed before anybody looked" in checked.out
        assert in_process("validate", "run", cwd=tmp_path).code == 0
        assert "cannot be resumed" in in_process("run", "run", cwd=tmp_path, code=2).err
        in_process("export", "run", "--out", "again.csv", cwd=tmp_path, code=0)
        for again in ("again.csv", "run"):
            data = data_of(tmp_path, again)
            assert (data["sentence"], data["target"]) == (shown["sentence"], shown["target"])

    def test_several_claims_share_the_level(self, tmp_path):
        self.written(tmp_path)
        claims = ("--at-least", "new:0.7"), ("--at-least", "old:0.7"), ("--at-least", "old:0.5")
        ends = []
        for asked in (claims[:1], claims):
            (first, *_) = in_process("check", "run", *sum(asked, ()), cwd=tmp_path).out.splitlines()
            ends.append(float(first.rpartition("[")[2].partition(",")[0]))
        assert ends[1] < ends[0] - 0.01
        assert "say what is to be checked" in in_process("check", "run", cwd=tmp_path, code=2).err

    def test_the_replay_is_written_where_it_is_asked_for(self, tmp_path):
        self.written(tmp_path, "--sequential")
        assert data_of(tmp_path, "run")["verdict"] == "anytime"
        in_process("export", "run", "--out", "again.jsonl", cwd=tmp_path, code=0)
        assert data_of(tmp_path, "again.jsonl")["verdict"] == "anytime"
        assert data_of(tmp_path, "again.jsonl", "--fixed")["verdict"] == "fixed"

    def test_unequal_questions_and_lost_answers_are_as_in_the_analysis(self, tmp_path):
        lines = [f"{m},{q},{v}" for m, q, v in LONG]
        lines += [f"{m},{q},{1 - v}" for m, q, v in LONG[:20]]  # ten questions asked twice
        lines[3] = lines[3].rpartition(",")[0] + ","
        (tmp_path / "table.csv").write_text(rows("model,question,correct", *lines), "utf-8")
        shown = data_of(tmp_path, "table.csv")
        assert (shown["verdict"], shown["fixed"][0]["test"]) == ("fixed", "paired t")
        written = in_process("analyze", "table.csv", "--write", "run", cwd=tmp_path, code=0)
        assert shown["sentence"] in written.out

    def test_a_config_cannot_ask_by_it(self, tmp_path):
        (tmp_path / "table.csv").write_text(TABLES["two columns"], "utf-8")
        assert "anytime, exact" in analyzed(tmp_path, "table.csv", "-o", "stopping.rule=fixed", code=2).err
        both = analyzed(tmp_path, "table.csv", "--fixed", "--sequential", code=2)
        assert "leave one out" in both.err


def test_what_only_a_config_has_is_no_override(tmp_path):
    (tmp_path / "table.csv").write_text(TABLES["two columns"], "utf-8")
    refused = analyzed(tmp_path, "table.csv", "-o", "budget.trials=10", code=2)
    assert "budget is a setting of a config" in refused.err
    assert "top of the file" not in refused.err


def test_population_without_groups_says_so(tmp_path):
    (tmp_path / "table.csv").write_text(TABLES["two columns"], "utf-8")
    data = data_of(tmp_path, "table.csv", "--fixed", "-o", "stopping.target=population")
    assert data["target"] == "population"
    assert "on questions like these" in data["sentence"]


def test_an_array_with_many_models_and_groups_is_read_by_one_look(tmp_path):
    np.savez(tmp_path / "table.npz", R=np.random.default_rng(1).integers(0, 2, (3, 30, 2)))
    data = data_of(tmp_path, "table.npz")
    assert data["verdict"] == "fixed"
    assert len(data["fixed"]) == 3


def test_a_reader_that_goes_early_is_no_error(tmp_path):
    """``adaptive-eval analyze … | head -1``."""
    (tmp_path / "table.csv").write_text(TABLES["two columns"], "utf-8")
    with started("analyze", "table.csv", *QUICK, cwd=tmp_path) as running:
        assert running.process.stdout is not None
        running.process.stdout.close()
        running.process.stdout = None
        done = running.finish()
    assert (done.code, "error" in done.err, "Exception" in done.err) == (1, False, False)
