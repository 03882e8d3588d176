"""A run written for other tools, whole and tidy; and files of other tools, as their schemas have them."""

import csv
import io
import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import zstandard
from recorded_runs import RUNS, stored
from run_examples import command, printed, read_summary

from adaptive_eval.build.describe import describe_run
from adaptive_eval.config.document import read_document
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import Found, ReadingOptions, checked
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_log, open_logs, read_recorded, sources
from adaptive_eval.interop.run_tables import (
    COLUMNS,
    parts_of,
    trial_rows,
    write_csv,
    write_parts,
)
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import ScoreRange


def imported(folder, **options):
    """Return a run of two models with texts of several lines, a missing trial and cut-off answers."""
    rng = np.random.default_rng(0)
    rows = []
    for model, mean in (("org/a", 0.9), ("b", 0.2)):
        for place in range(12):
            right = int(rng.random() < mean)
            row = {"model": model, "task": "sums", "question": f"q{place // 3}", "trial": place % 3}
            row |= {"category": right, "text": f'It is {right}.\n"quoted", so', "extracted": str(right)}
            row |= {"prompt": f"Question {place // 3}?", "target": "1", "truncated": place % 3 == 2}
            rows.append(
                {**row, "prompt_tokens": 9, "completion_tokens": 5, "latency": 0.5, "finished_at": 1.7e9}
            )
    rows[5] |= {"category": None, "missing": "error: timeout", "text": None}
    path = folder / "source.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    import_logs(open_logs([path], ReadingOptions()), folder / "run", **options)
    return folder / "run"


@pytest.fixture
def run(tmp_path):
    return imported(tmp_path)


def same(one, other):
    first, second = read_recorded([one]), read_recorded([other])
    assert first.models == second.models
    for place, question in enumerate(first.questions):
        there = second.questions.index(question)
        assert first.categories[:, place].tolist() == second.categories[:, there].tolist()


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t=", "\r=", " =", "＝"])
def test_no_text_of_a_table_is_a_formula_and_half_a_character_does_not_stop_it(start):
    file, number = io.StringIO(), {"step": -1, "text": "-0.5", "truncated": True}
    write_csv([{"model": f"{start}cmd|' /C calc'!A0", **number, "target": "half: \ud83d"}], file)
    file.seek(0)
    (row,) = csv.DictReader(file)
    assert row.pop("model").startswith("'")
    assert row == {"step": "-1", "text": "-0.5", "truncated": "true", "target": "half: ?"}


def test_no_text_of_a_table_acts_on_a_terminal_or_turns_a_line_around():
    file = io.StringIO()
    write_csv([{"answer": "\x1b[2J \x9b \u202e \u2067 one\r\n\ttwo, \u05d0"}], file)
    (row,) = csv.DictReader(io.StringIO(file.getvalue(), newline=""))
    assert row == {"answer": "␛[2J \\x9b \\u202e \\u2067 one\n\ttwo, \u05d0"}


def test_samples_of_a_filter_or_metric_that_is_not_named_are_refused(run, tmp_path):
    printed("export", run, "--format", "lm-eval", "--out", tmp_path / "out")
    (samples,) = (tmp_path / "out" / "org__a").glob("samples_sums_*.jsonl")
    (results,) = (tmp_path / "out" / "org__a").glob("results_*.json")
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    summary = json.loads(results.read_text(encoding="utf-8"))
    assert summary["model_name"] == "org/a"
    filtered = [{**row, "filter": name} for row in rows for name in ("strict", "loose")]
    samples.write_text("\n".join(map(json.dumps, filtered)), encoding="utf-8")
    assert read_recorded([samples], ReadingOptions(filter="loose")).trials == 11
    with pytest.raises(UsageError, match=r"several filters \(strict, loose\)"):
        read_recorded([samples])
    summary["higher_is_better"]["sums"]["score"] = False
    results.write_text(json.dumps(summary), encoding="utf-8")
    first = {**rows[0], "scores": None, "resps": [["4"]]}
    samples.write_text(json.dumps(first), encoding="utf-8")
    with pytest.raises(UsageError, match="a lower score is better"):
        read_recorded([samples])


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_table_of_a_run_is_read_back_with_its_weights(tmp_path, parquet, ending):
    run, out = imported(tmp_path, weights=(1.0, 0.0)), tmp_path / f"out.{ending}"
    printed("export", run, "--format", ending, "--out", out)
    same(run, out)
    again = import_logs(open_logs([out], ReadingOptions()), tmp_path / "again")
    renamed = import_logs(open_logs([run], ReadingOptions(task="other")), tmp_path / "renamed")
    scores = sorted((line.score, line.model) for line in read_summary(run).results.models)
    for other in (again, renamed):
        assert scores == sorted((line.score, line.model) for line in other.results.models)
    analyzed = command("analyze", out, "--json", "--replicates", 1, "--workers", 1)
    assert [(one["score"], one["model"]) for one in json.loads(analyzed.stdout)["models"]] == scores[::-1]


def test_the_expected_answers_of_a_run_are_in_its_exports(tmp_path):
    run = stored({name: values[0] for name, values in RUNS.items()}, tmp_path)
    for form in ("lm-eval", "eee"):
        printed("export", run, "--format", form, "--out", tmp_path / form)
    files = [*tmp_path.glob("lm-eval/*/samples_*"), *tmp_path.glob("eee/**/*_samples.jsonl")]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    told = [
        (row["doc"]["id"], row["target"]) if "doc" in row else (row["sample_id"], *row["input"]["reference"])
        for row in rows
    ]
    assert set(told) == {(f"q{number}", str(2 * number)) for number in range(11)}


def test_names_that_would_be_one_file_keep_their_own(tmp_path):
    names = ("org/m", "org__m", "..")
    rows = [f"{model},{task},q{n},1" for model in names for task in ("a/b", "a_b") for n in range(3)]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["model,task,question,correct", *rows]))
    import_logs(open_logs([table], ReadingOptions()), tmp_path / "run")
    result = command("export", tmp_path / "run", "--format", "lm-eval", "--out", tmp_path / "out")
    assert len({*result.output.splitlines()}) == len(names) * 3
    folders = {one.name for one in (tmp_path / "out").iterdir()}
    assert folders == {"org__m", "org__m-2", "_."}, "none is outside"


HUB_CONFIG = """name: sums
models:
- {name: org/a, model: owner/a, endpoints: [http://localhost/v1]}
- {name: b, endpoints: [http://localhost/v1]}
tasks: [{name: sums, dataset: "hf:owner/sums", subset: easy, prompt: "{input}", scorer: exact}]
"""


def test_results_for_the_hub_name_dataset_interval_rule_and_trials(run, tmp_path):
    place = tmp_path / "results"
    refused = command("export", run, "--format", "eval-results", "--out", place)
    assert isinstance(refused.exception, UsageError)
    assert "no task of this run has a dataset of the Hugging Face Hub" in str(refused.exception)
    assert not place.exists()
    with RunWriter.open(run) as writer:
        writer.set_meta("config", HUB_CONFIG)
    printed("export", run, "--format", "eval-results", "--out", place)
    (path,) = (place / "owner__a" / ".eval_results").iterdir()
    (entry,) = read_document(path.read_text("utf-8")).data
    line = next(one for one in read_summary(run).results.models if one.model == "org/a")
    assert entry["dataset"] == {"id": "owner/sums", "task_id": "easy"}
    assert entry["value"] == pytest.approx(line.score, abs=1e-4)
    assert f"{line.trials} trials" in entry["notes"]
    assert f"{line.score_low:.4f}" in entry["notes"]
    assert entry.keys() == {"dataset", "value", "date", "source", "notes"}


SCHEMAS = Path(__file__).parents[1] / "data" / "every_eval_ever"


def test_every_eval_ever_fits_its_schemas_and_holds_the_interval(run, tmp_path):
    printed("export", run, "--format", "eee", "--out", tmp_path / "eee")
    whole, each = (
        jsonschema.Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")))
        for name in ("eval", "instance_level_eval")
    )
    lines = {line.model: line for line in read_summary(run).results.models}
    aggregates = list((tmp_path / "eee" / "data").rglob("*.json"))
    assert len(aggregates) == len(lines)
    for path in aggregates:
        data = json.loads(path.read_text("utf-8"))
        whole.validate(data)
        line = lines[data["model_info"]["name"]]
        (result,) = data["evaluation_results"]
        spread = result["score_details"]["uncertainty"]
        assert result["score_details"]["score"] == line.score
        ends = {"lower": line.score_low, "upper": line.score_high, "confidence_level": 0.95}
        assert ends.items() <= spread["confidence_interval"].items()
        assert spread["standard_error"]["value"] >= 0.0
        detailed = data["detailed_evaluation_results"]
        samples = (tmp_path / "eee" / detailed["file_path"]).read_text("utf-8").splitlines()
        assert len(samples) == detailed["total_rows"] == 12
        rows = list(map(json.loads, samples))
        for row in rows:
            each.validate(row)
        total = sum(float(row["metadata"]["weight"]) * row["evaluation"]["score"] for row in rows)
        assert total == pytest.approx(line.score)
        with RunReader(run) as reader:
            stored = [one for one in reader.trials() if one.request.key.model == line.model]
        seconds = sum(one.completion.latency for one in stored if one.completion)
        assert sum(row["performance"]["latency_ms"] for row in rows) == pytest.approx(1000.0 * seconds)
        tokens = sum(one.usage.total_tokens for one in stored)
        assert sum(row["token_usage"]["total_tokens"] for row in rows) == tokens


def test_output_items_of_openai_evals_are_read_in_both_forms(tmp_path):
    items = []
    for place, right in enumerate((1.0, 0.0, 1.0)):
        sample = {
            "model": "gpt",
            "input": [{"role": "user", "content": f"{place}?"}],
            "finish_reason": "stop",
        }
        sample |= {
            "output": [{"role": "assistant", "content": "4"}],
            "usage": {"prompt_tokens": 5},
            "error": None,
        }
        graded = [{"name": "match", "type": "string_check", "passed": bool(right), "score": right}]
        items.append({"object": "eval.run.output_item", "eval_id": "sums", "datasource_item_id": place})
        items[-1] |= {
            "id": f"item-{place}",
            "datasource_item": {"n": place},
            "results": graded,
            "sample": sample,
        }
    items.append({**items[0], "datasource_item_id": 3, "results": []})
    items[-1]["sample"] = {**sample, "error": {"code": "500", "message": "no answer"}, "output": []}
    lines, listed = tmp_path / "items.jsonl", tmp_path / "listed.json"
    lines.write_text("".join(json.dumps(item) + "\n" for item in items), "utf-8")
    listed.write_text(json.dumps({"object": "list", "data": items, "has_more": False}), "utf-8")
    for path in (lines, listed):
        found = [piece for piece in open_log(path, ReadingOptions()).read() if isinstance(piece, Found)]
        assert [(one.model, one.task, one.score) for one in found[:3]] == [
            ("gpt", "sums", score) for score in (1.0, 0.0, 1.0)
        ]
        assert "no answer" in found[3].missing
        assert (found[0].prompt, found[0].text, found[0].tokens[0]) == ("0?", "4", 5)


NAMES = {"x.csv": "csv", "X.JSONL": "jsonl", "x.y.tex": "latex", "x.md": "markdown"}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_the_file_says_what_to_write(run, tmp_path, name):
    printed("export", run, "--out", tmp_path / name)
    written = (tmp_path / name).read_bytes()
    assert written.decode() == command("export", run, "--format", NAMES[name]).stdout_bytes.decode()


TRIALS = 2 * 12


@pytest.fixture
def parquet():
    pytest.importorskip("pyarrow", reason="this test is for where Parquet can be written")


def exported(run, out, part_rows):
    return printed("export", run, "--format", "parquet", "--out", out, "--part-rows", part_rows).split()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("part_rows", "parts"), [(1, TRIALS), (7, 4), (12, 2), (TRIALS, 1), (10**6, 1)])
def test_the_parts_are_one_table_with_the_run_s_trials(run, tmp_path, parquet, part_rows, parts):
    pandas = pytest.importorskip("pandas")
    out = tmp_path / "trials"
    written = exported(run, out, part_rows)
    names = [f"part-{number:05d}.parquet" for number in range(parts)]
    assert sorted(path.name for path in out.iterdir()) == names
    assert written == [str(out / name) for name in names]
    table = pandas.read_parquet(out)
    assert list(table.columns) == list(COLUMNS)
    with RunReader(run) as reader:
        expected = pandas.DataFrame(list(trial_rows(reader, describe_run(reader))))
    for column in COLUMNS:
        wanted = [None if pandas.isna(value) else value for value in expected[column]]
        assert [None if pandas.isna(value) else value for value in table[column]] == wanted, column
    for name in names:
        assert len(pandas.read_parquet(out / name)) <= part_rows


def test_the_parts_are_read_back_as_one_log_and_replaced_whole(run, tmp_path, parquet):
    out = tmp_path / "trials"
    for part_rows, parts in ((3, 8), (20, 2)):
        exported(run, out, part_rows)
        assert sources(out) == [out]
        assert len(parts_of(out)) == parts
        same(run, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "source.jsonl", "trials"]


def test_an_export_that_breaks_off_leaves_the_earlier_one_and_nothing_half_written(run, tmp_path, parquet):
    out, left = tmp_path / "trials", tmp_path / ".trials.new"
    left.mkdir()
    (left / "part-00000.parquet").write_bytes(b"PAR1")  # of an export that was killed
    exported(run, out, 3)
    before = [path.read_bytes() for path in parts_of(out)]

    def breaking():
        with RunReader(run) as reader:
            for number, row in enumerate(trial_rows(reader, describe_run(reader))):
                if number == 17:
                    raise KeyboardInterrupt
                yield row

    with pytest.raises(KeyboardInterrupt):
        write_parts(breaking(), out, 3)
    assert [path.read_bytes() for path in parts_of(out)] == before != []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "source.jsonl", "trials"]


def test_a_folder_of_something_else_is_left_alone(run, tmp_path, parquet):
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter1.tex").write_text("years of work")
    done = command("export", run, "--format", "parquet", "--out", out)
    assert "thesis holds chapter1.tex, which is no part of an export; name a new folder" in str(
        done.exception
    )
    assert (out / "chapter1.tex").read_text() == "years of work"
    (tmp_path / "notes").write_text("a file")
    done = command("export", run, "--format", "parquet", "--out", tmp_path / "notes")
    assert "notes is a file; name a folder for the parts" in str(done.exception)


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_file_whose_export_breaks_off_stays_as_it_was(run, tmp_path, parquet, form):
    out = tmp_path / f"trials.{form}"
    out.write_bytes(b"the earlier one")
    with RunWriter.open(run) as writer:  # an answer that cannot be read: the export ends in the middle
        writer._db.execute("UPDATE answers SET text = x'28B52FFD00' WHERE outcome = 14")
    done = command("export", run, "--format", form, "--out", out)
    assert "1 of 24 stored trials" in str(done.exception)
    assert out.read_bytes() == b"the earlier one"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["run", "source.jsonl", out.name])


# lighteval, evalscope and promptfoo: files as their schemas have them, down to what is wrong with one.


def trials(path, **choices):
    return list(checked(open_log(path, ReadingOptions(**choices))))


def details(folder, rows, name="details_lighteval|sums|0_2026-01-02T03-04-05.123456.parquet"):
    """Write details as lighteval does, in a folder of the date in a folder of the model."""
    pyarrow = pytest.importorskip("pyarrow", reason="this test is for where Parquet can be read")
    from pyarrow import parquet

    place = folder / "details" / "org" / "sage" / "2026-01-02T03-04-05.123456"
    place.mkdir(parents=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), place / name)
    return place / name


def detail(number, texts, gold, metric):
    doc = {
        "query": f"Question {number}?",
        "choices": [gold],
        "gold_index": 0,
        "id": str(number),
        "task_name": "sums",
    }
    response = {
        "input": doc["query"],
        "text": texts,
        "logprobs": [],
        "input_tokens": [1],
        "output_tokens": [[2]],
    }
    return {"doc": doc, "metric": metric, "model_response": response}


def test_one_generation_of_lighteval_keeps_the_stored_metric(tmp_path):
    path = details(tmp_path, [detail(0, ["4"], "4", {"em": 1.0}), detail(1, ["5"], "6", {"em": 0.0})])
    found = trials(path)
    assert [(t.model, t.task, t.question, t.score, t.text) for t in found] == [
        ("sage", "lighteval|sums|0", "0", 1.0, "4"),
        ("sage", "lighteval|sums|0", "1", 0.0, "5"),
    ]


def test_several_generations_of_lighteval_are_scored_one_by_one(tmp_path):
    path = details(tmp_path, [detail(0, ["It is 4.", "5", "4"], "4", {"pass@k": 0.66})])
    assert [t.score for t in trials(path, scorer="numeric")] == [1.0, 0.0, 1.0]
    with pytest.raises(UsageError, match="score each with --scorer"):
        trials(path)


def test_a_score_in_a_range_is_that_of_the_scorer(tmp_path):
    path = tmp_path / "table.json"
    row = {"model": "a", "question": "q", "score": 0, "text": "It is 4.", "target": "4"}
    path.write_text(json.dumps([row]), "utf-8")
    numbers = {"scorer_options": {"range": (0, 1)}, "range": ScoreRange((0, 1))}
    assert [found.score for found in trials(path, scorer="f1", **numbers)] == [0.5]


FILE = Path(__file__).parents[1] / "data" / "published_verdicts.jsonl"
PUBLISHED = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case["of"])
def test_published_verdicts_are_read_as_trials(tmp_path, case):
    """A case names its file, what of it is asked for, and what its trials are or why it is refused."""
    path = tmp_path / case.get("path", "results.json")
    written(path, case["data"] if path.suffix == ".jsonl" else [case["data"]])
    choices = ReadingOptions(**case.get("choices", {"model": "mine"}))
    if "refused" in case:
        with pytest.raises(UsageError, match=case["refused"]):
            list(checked(open_log(path, choices)))
        return
    (log,) = open_logs([path], choices)
    found = list(checked(log))
    worth = [one.category if one.score is None else one.score for one in found]
    named = zip(found, worth, strict=True)
    assert [[one.model, one.question, value] for one, value in named] == case["verdicts"]
    assert [one.missing is not None for one in found] == [value is None for value in worth]
    named = {"task", "number", "tokens", "latency", "text", "missing", "finish_reason", "weights"}
    for name in named & case.keys():
        expected = [tuple(one) if isinstance(one, list) else one for one in case[name]]
        assert [getattr(one, name) for one in found] == expected, name


def test_an_evaluation_that_was_written_twice_is_refused(tmp_path):
    data = next(case["data"] for case in PUBLISHED if "evalId" in case["data"])
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for indent, path in enumerate(paths):
        path.write_text(json.dumps(data, indent=indent), "utf-8")
    with pytest.raises(UsageError, match=r"two\.json is the same evaluation as .*one\.json"):
        open_logs(paths, ReadingOptions())


def verdicts_in(*paths, **choices):
    found = [trial for log in open_logs(paths, ReadingOptions(**choices)) for trial in checked(log)]
    return {(trial.model, trial.task, trial.question): trial.category for trial in found}


def written(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = data if isinstance(data, list) else [data]
    path.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")


@pytest.mark.parametrize("group", ["", "non_live", "agentic/memory/kv"])
def test_files_of_failures_only_are_matched_over_the_models_of_their_folder(tmp_path, group):
    for model, failed in (("big", ["simple_2"]), ("small", ["simple_2", "simple_4"])):
        counts = {"accuracy": 0.0, "correct_count": 5 - len(failed), "total_count": 5}
        rows = [counts, *({"id": name, "valid": False, "error": "no call"} for name in failed)]
        written(tmp_path / "score" / model / group / "BFCL_v3_simple_score.json", rows)
    found = verdicts_in(tmp_path)
    task = "BFCL_v3_simple_score"
    assert (found["big", task, "simple_2"], found["big", task, "simple_4"]) == (0, 1)
    assert (found["small", task, "simple_2"], found["small", task, "simple_4"]) == (0, 0)
    assert sum(found.values()) == 4 + 3
    assert len(found) == 10


def test_sets_of_resolved_ids_are_counted_over_the_instances_of_their_split(tmp_path):
    for model, solved in (("one", ["a-1", "b-2"]), ("two", ["b-2"])):
        data = {"no_generation": [], "no_logs": [], "resolved": solved}
        written(tmp_path / "verified" / model / "results" / "results.json", data)
    found = verdicts_in(tmp_path)
    assert len(found) == 1000
    assert {key[0]: found[key] for key in found if key[2] == "a-1"} == {"one": 1, "two": 0}
    assert sum(found.values()) == 3


def test_a_compressed_answer_of_matharena_is_named_by_its_file(tmp_path):
    place = tmp_path / "outputs" / "aime_2025" / "lab" / "m"
    place.mkdir(parents=True)
    data = {"idx": 6, "gold_answer": "4", "answers": ["4", "5"], "correct": [True, False]}
    (place / "7.json.zst").write_bytes(zstandard.compress(json.dumps(data).encode()))
    (log,) = open_logs([tmp_path], ReadingOptions())
    assert [(t.model, t.task, t.question, t.category) for t in checked(log)] == [
        ("m", "aime_2025", "7", 1), ("m", "aime_2025", "7", 0),
    ]  # fmt: skip
    (place / "7.json.zst").write_bytes(b"no frame")
    with pytest.raises(UsageError, match="cannot be read"):
        open_logs([place / "7.json.zst"], ReadingOptions())
