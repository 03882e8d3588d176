"""A long run as a folder of Parquet parts, and files that appear whole or not at all."""

from pathlib import Path

import pytest
from test_interop_export import command, same

from adaptive_eval.build.describe import describe_run
from adaptive_eval.interop.found import Choices
from adaptive_eval.interop.import_run import import_logs
from adaptive_eval.interop.recorded_files import open_logs, sources
from adaptive_eval.interop.run_tables import COLUMNS, parts_of, trial_rows, write_parts
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter

TRIALS = 2 * 5 * 7


@pytest.fixture(autouse=True)
def parquet():
    pytest.importorskip("pyarrow", reason="this test is for where Parquet can be written")


@pytest.fixture
def run(tmp_path) -> Path:
    """A run of two models, five questions and seven trials of each; the first has no answer."""
    lines = ["model,task,question,trial,category,missing,text,prompt"]
    for step in range(35):
        for model in ("org/a", "b"):
            value = (
                f",error: timeout,,{step // 7} + 1?"
                if not step
                else f"{step % 2},,It is {step}\u2026,{step // 7} + 1?"
            )
            lines.append(f"{model},sums,q{step // 7},{step % 7},{value}")
    source = tmp_path / "source.csv"
    source.write_text("\n".join(lines), encoding="utf-8")
    import_logs(open_logs([source], Choices()), tmp_path / "run")
    return tmp_path / "run"


def exported(run, out, part_rows):
    done = command("export", run, "--format", "parquet", "--out", out, "--part-rows", part_rows)
    assert done.exit_code == 0, done.output
    return done.output.split()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("part_rows", "parts"), [(1, TRIALS), (20, 4), (35, 2), (TRIALS, 1), (10**6, 1)])
def test_the_parts_are_one_table_with_the_run_s_trials(run, tmp_path, part_rows, parts):
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


def test_the_parts_are_read_back_as_one_log_and_replaced_whole(run, tmp_path):
    out = tmp_path / "trials"
    for part_rows, parts in ((9, 8), (40, 2)):
        exported(run, out, part_rows)
        assert sources(out) == [out]
        assert len(parts_of(out)) == parts
        same(run, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "source.csv", "trials"]


def test_an_export_that_breaks_off_leaves_the_earlier_one_and_nothing_half_written(run, tmp_path):
    out = tmp_path / "trials"
    exported(run, out, 9)
    before = [path.read_bytes() for path in parts_of(out)]

    def breaking():
        with RunReader(run) as reader:
            for number, row in enumerate(trial_rows(reader, describe_run(reader))):
                if number == 50:
                    raise KeyboardInterrupt
                yield row

    with pytest.raises(KeyboardInterrupt):
        write_parts(breaking(), out, 9)
    assert [path.read_bytes() for path in parts_of(out)] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "source.csv", "trials"]


def test_what_a_killed_export_left_is_cleared_away(run, tmp_path):
    (tmp_path / ".trials.new").mkdir()
    (tmp_path / ".trials.new" / "part-00000.parquet").write_bytes(b"PAR1")
    assert command("export", run, "--format", "parquet", "--out", tmp_path / "trials").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "source.csv", "trials"]


def test_a_folder_of_something_else_is_left_alone(run, tmp_path):
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
def test_a_file_whose_export_breaks_off_stays_as_it_was(run, tmp_path, form):
    out = tmp_path / f"trials.{form}"
    out.write_bytes(b"the earlier one")
    with RunWriter.open(run) as writer:  # an answer that cannot be read: the export ends in the middle
        writer._db.execute("UPDATE answers SET text = x'28B52FFD00' WHERE outcome = 40")
    done = command("export", run, "--format", form, "--out", out)
    assert "1 of 70 stored trials" in str(done.exception)
    assert out.read_bytes() == b"the earlier one"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["run", "source.csv", out.name])
