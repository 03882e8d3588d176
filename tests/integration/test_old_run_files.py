"""Runs of earlier versions of the package: read, continued, rescored and exported."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from mimic_runs import command, mimic_config, run_config, write_config
from old_run_files import as_version

from adaptive_eval.store import trainer
from adaptive_eval.store.migrations import SCRIPTS
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.scorings import ScoringRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest

EARLIER = range(1, len(SCRIPTS))


def text(step: int) -> str:
    return (
        f"Half \ud83d a character. The answer to {step} is {step * step}, since {step} times {step} is. " * 20
    )


def trial(step: int) -> TrialRecord:
    request = TrialRequest(TrialKey("a", step), "t", f"q{step}", 0, 7)
    return TrialRecord(request, 1000.0, Completion(text(step), "stop"), Score(1, "42"))


def store(writer: RunWriter, steps: range) -> None:
    for step in steps:
        writer.outcome(trial(step))


@pytest.mark.parametrize("version", EARLIER)
def test_a_file_of_an_earlier_version_is_read_as_it_is(tmp_path: Path, version: int) -> None:
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        store(writer, range(5))
    as_version(tmp_path / "run", version)
    before = (tmp_path / "run" / "run.db").read_bytes()
    with RunReader(tmp_path / "run") as reader:
        assert [record.completion.text for record in reader.trials()] == [text(step) for step in range(5)]
        assert (reader.count(), len(reader.outcomes()), reader.scorings()) == (5, 5, [])
        assert reader.cells().stored.sum() == 5
    assert (tmp_path / "run" / "run.db").read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["run.db", "run.lock"]


@pytest.mark.parametrize("version", EARLIER)
def test_a_file_of_an_earlier_version_is_continued_under_its_readers_eyes(tmp_path, version, monkeypatch):
    monkeypatch.setattr(trainer, "SAMPLE_BYTES", 150_000)
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        store(writer, range(5))
    as_version(tmp_path / "run", version)
    with RunReader(tmp_path / "run") as reader:
        assert len(list(reader.trials())) == 5
        with RunWriter.open(tmp_path / "run") as writer:
            store(writer, range(5, 150))
            writer.commit()
            store(writer, range(150, 170))  # these need a dictionary
            writer.scoring(ScoringRecord("later", 1.0, {}), [])
        assert [record.completion.text for record in reader.trials()] == [text(step) for step in range(170)]
        assert [record.name for record in reader.scorings()] == ["later"]
        assert reader.cells().stored.sum() == 170
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (len(SCRIPTS),)
        assert db.execute("SELECT count(*) FROM dictionaries").fetchone() == (1,)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    out, result = run_config(folder, mimic_config(budget={"trials": 40}))
    assert result.exit_code in (0, 3), result
    return out


@pytest.fixture(params=EARLIER)
def old(finished, tmp_path, request) -> Path:
    """Return a run of an earlier version, which used up its budget."""
    run = shutil.copytree(finished, tmp_path / "run")
    as_version(run, request.param)
    return run


def test_an_old_run_is_rescored_as_a_new_one_is(finished, old):
    arguments = ("--scorer", "exact", "--rubric", "format-aware", "--json", "--dry-run")
    expected = command("rescore", finished, *arguments)
    assert expected.exit_code == 0, expected
    assert command("rescore", old, *arguments) == expected
    assert command("rescore", old, "--rubric", "format-aware").exit_code == 0
    with RunReader(old) as reader:
        assert [record.name for record in reader.scorings()] == ["format-aware"]


def test_an_old_run_is_exported_as_a_new_one_is(finished, old):
    expected = command("export", finished, "--format", "csv")
    assert len(list(csv.DictReader(expected.output.splitlines()))) == 40
    assert command("export", old, "--format", "csv") == expected


def test_an_old_run_goes_on(finished, old, tmp_path):
    with RunReader(old) as reader:
        before = list(reader.trials())
    config = write_config(tmp_path, mimic_config(budget={"trials": 2000}))
    done = command("run", config, "--out", old, "--display", "none")
    assert done.exit_code in (0, 3), done
    with RunReader(old) as reader:
        after = list(reader.trials())
    assert after[: len(before)] == before
    assert len(after) > len(before) == 40
    assert json.loads((old / "report.json").read_text("utf-8"))
