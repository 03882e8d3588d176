"""A run written for other tools: whole, tidy, and read back as it was."""

import csv
import io
import json

import numpy as np
import pytest
from click.testing import CliRunner
from run_examples import read_summary

from adaptive_eval.build.describe import describe_run
from adaptive_eval.cli.main import cli
from adaptive_eval.config.document import read_document
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.found import Choices
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, read_recorded, sources
from adaptive_eval.interop.run_tables import (
    COLUMNS,
    parts_of,
    trial_rows,
    write_csv,
    write_parts,
)
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter


def command(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


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
    import_logs(open_logs([path], Choices()), folder / "run", **options)
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


def test_lm_eval_samples_have_every_answer_of_a_question(run, tmp_path):
    result = command("export", run, "--format", "lm-eval", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    (samples,) = (tmp_path / "out" / "org__a").glob("samples_sums_*.jsonl")
    (results,) = (tmp_path / "out" / "org__a").glob("results_*.json")
    rows = [json.loads(line) for line in samples.read_text(encoding="utf-8").splitlines()]
    assert {row["doc"]["id"] for row in rows} == {"q0", "q1", "q2", "q3"}
    assert all(len(row["resps"][0]) == len(row["scores"]) for row in rows)
    means = [np.mean(row["scores"]) for row in rows]
    summary = json.loads(results.read_text(encoding="utf-8"))
    assert summary["results"]["sums"]["score,none"] == pytest.approx(np.mean(means))
    assert (summary["model_name"], summary["results"]["sums"]["missing"]) == ("org/a", 1)
    import_logs(open_logs([tmp_path / "out"], Choices(question_id="id")), tmp_path / "again")
    before, after = read_recorded([run]), read_recorded([tmp_path / "again"])
    for place, question in enumerate(before.questions):
        there = after.questions.index(question)
        order = [after.models.index(name) for name in before.models]
        assert before.answered[:, place].tolist() == after.answered[order, there].tolist()
        assert before.scores()[:, place].tolist() == after.scores()[order, there].tolist()
    filtered = [{**row, "filter": name} for row in rows for name in ("strict", "loose")]
    samples.write_text("\n".join(map(json.dumps, filtered)), encoding="utf-8")
    assert read_recorded([samples], Choices(filter="loose")).trials == 11
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
    assert command("export", run, "--format", ending, "--out", out).exit_code == 0
    same(run, out)
    again = import_logs(open_logs([out], Choices()), tmp_path / "again")
    renamed = import_logs(open_logs([run], Choices(task="other")), tmp_path / "renamed")
    scores = sorted((line.score, line.model) for line in read_summary(run).results.models)
    for other in (again, renamed):
        assert scores == sorted((line.score, line.model) for line in other.results.models)
    analyzed = command("analyze", out, "--json", "--replicates", 1, "--workers", 1)
    assert [(one["score"], one["model"]) for one in json.loads(analyzed.stdout)["models"]] == scores[::-1]


def test_names_that_would_be_one_file_keep_their_own(tmp_path):
    names = ("org/m", "org__m", "..")
    rows = [f"{model},{task},q{n},1" for model in names for task in ("a/b", "a_b") for n in range(3)]
    table = tmp_path / "rows.csv"
    table.write_text("\n".join(["model,task,question,correct", *rows]))
    import_logs(open_logs([table], Choices()), tmp_path / "run")
    result = command("export", tmp_path / "run", "--format", "lm-eval", "--out", tmp_path / "out")
    assert len({*result.output.splitlines()}) == len(names) * 3
    folders = {one.name for one in (tmp_path / "out").iterdir()}
    assert folders == {"org__m", "org__m-2", "_."}, "none is outside"


def test_the_model_card_is_yaml_with_the_score_of_the_report(run):
    result = command("export", run, "--format", "model-card")
    card = read_document(result.output).data
    entry = card["model-index"][0]
    assert entry["name"] == "org/a"
    metric = entry["results"][0]["metrics"][0]
    assert metric["args"]["trials"] > 0
    assert metric["args"]["interval"][0] <= metric["value"] <= metric["args"]["interval"][1]


NAMES = {"x.csv": "csv", "X.JSONL": "jsonl", "x.y.tex": "latex", "x.md": "markdown"}
NAMES |= {"card.yaml": "model-card"}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_the_file_says_what_to_write(run, tmp_path, name):
    assert command("export", run, "--out", tmp_path / name).exit_code == 0
    written = (tmp_path / name).read_bytes()
    assert written.decode() == command("export", run, "--format", NAMES[name]).stdout_bytes.decode()


TRIALS = 2 * 12


@pytest.fixture
def parquet():
    pytest.importorskip("pyarrow", reason="this test is for where Parquet can be written")


def exported(run, out, part_rows):
    done = command("export", run, "--format", "parquet", "--out", out, "--part-rows", part_rows)
    assert done.exit_code == 0, done.output
    return done.output.split()


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
