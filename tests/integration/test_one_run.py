"""The command line and Python calls run by one function: none of them can lose a part of it."""

import asyncio
import itertools
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import mimic_config
from run_examples import reseal

import adaptive_eval
from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.results import StopVerdict, to_json
from adaptive_eval.engine.independence import IndependenceAudit
from adaptive_eval.errors import EndpointsUnusable, RunDamaged, RunLocked, UsageError
from adaptive_eval.run.execution import RunOptions, execute
from adaptive_eval.store.codec import unpack
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, Usage

ROWS = [{"input": f"{n} + {n}?", "target": str(2 * n)} for n in range(12)]
NUMBERS = itertools.count()
MODELS = {
    "right": lambda prompt: f"{next(NUMBERS) % 7 * ' '}{2 * int(prompt.split()[0])}",
    "wrong": lambda prompt: f"none {next(NUMBERS) % 7 * ' '} of them",
}


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Replace the audit's verdict by one that needs a single answer; return the models seen."""
    seen: set[str] = set()
    monkeypatch.setattr(IndependenceAudit, "observe", lambda self, model, *_: seen.add(model))
    monkeypatch.setattr(IndependenceAudit, "remarks", lambda self: ("copies",) if seen else ())
    return seen


def written(folder: Path, data: dict[str, object]) -> Path:
    (folder / "config.yaml").write_text(json.dumps(data), encoding="utf-8")
    return folder / "config.yaml"


def test_evaluate_audits_its_answers_and_warns(tmp_path, audited):
    with pytest.warns(adaptive_eval.EvaluationWarning, match="copies") as caught:
        found = adaptive_eval.evaluate(MODELS, ROWS, budget={"trials": 24}, out=tmp_path / "run")
    assert {warning.filename for warning in caught} == {__file__}
    assert audited == {"right", "wrong"}
    assert "copies" in found.results.warnings
    assert "copies" in (tmp_path / "run" / "report.md").read_text("utf-8")


def test_evaluate_takes_thresholds_from_an_earlier_run_and_tracks_rubrics(tmp_path):
    lengths = iter(range(10, 10_000))

    def counted(prompt: str) -> Completion:
        return Completion(str(2 * int(prompt.split()[0])), "stop", Usage(5, next(lengths)))

    models = {"one": counted, "two": counted}
    task = {"dataset": ROWS, "scorer": "numeric"}
    adaptive_eval.evaluate(models, task, "budget", budget={"trials": 24}, out=tmp_path / "earlier")
    rubric = {"schema": "efficiency-adjusted", "thresholds_from": str(tmp_path / "earlier")}
    task |= {"rubric": rubric, "track": ["binary"]}
    found = adaptive_eval.evaluate(models, task, "budget", budget={"trials": 48}, out=tmp_path / "run")
    assert found.results.trials == 48
    with RunReader(tmp_path / "run") as run:
        assert [record.name for record in run.scorings()] == ["binary"]
        assert "len_p33" in run.meta()["thresholds"]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("decisions", {"verdict": ["x"]}),
        ("snapshots", {"results": {"stop": "x"}}),
        ("outcomes", None),
    ],
)
def test_what_cannot_be_read_of_a_run_is_damage_to_whoever_continues_it(tmp_path, table, change):
    task = {"dataset": ROWS, "scorer": "numeric"}
    adaptive_eval.evaluate(MODELS, task, budget={"trials": 24}, out=tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "run.db", isolation_level=None)) as db:
        if change is None:
            db.execute("UPDATE outcomes SET response = -1 WHERE id = 3")
        else:
            ((body,),) = db.execute(f"SELECT body FROM {table} ORDER BY id DESC LIMIT 1")
            db.execute(f"UPDATE {table} SET body = ?", [json.dumps(json.loads(unpack(body)) | change)])
    reseal(tmp_path / "run")
    with pytest.raises(RunDamaged):
        adaptive_eval.evaluate(MODELS, task, budget={"trials": 48}, out=tmp_path / "run")


@pytest.mark.slow
def test_a_config_runs_and_continues_from_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = written(tmp_path, mimic_config())
    first = adaptive_eval.run_config(config, overrides=["budget.trials=20"])
    assert (first.stop.reason, first.results.trials) == ("budget", 20)
    assert first.directory == tmp_path / "runs" / "mimicked"
    second = adaptive_eval.resume_run(first.directory, overrides=["budget.trials=30"])
    assert second.results.trials == 30
    assert (first.directory / "report.html").exists()
    third = adaptive_eval.run_config(mimic_config(budget={"trials": 10}), new=True)
    assert third.results.trials == 10
    assert (tmp_path / "runs" / "mimicked-1" / "run.db").exists()
    with pytest.raises(UsageError, match="change the mapping"):
        adaptive_eval.run_config(mimic_config(), overrides=["budget.trials=1"])


@pytest.mark.parametrize(
    ("stop", "said"),
    [
        (None, EndpointsUnusable),
        ("interrupted", EndpointsUnusable),
        ("endpoints", EndpointsUnusable),
        ("budget", RunDamaged),  # the run may be complete, so that no server is needed
        ("resolved", RunDamaged),
    ],
)
def test_a_server_that_is_not_there_is_said_before_the_run_file_is_checked(tmp_path, stop, said):
    questions = tmp_path / "questions.jsonl"
    questions.write_text("\n".join(map(json.dumps, ROWS)), "utf-8")
    unreachable = "http://127.0.0.1:9/v1"
    config = {
        "name": "resumed",
        "models": [{"name": name, "endpoints": [unreachable]} for name in ("one", "two")],
        "tasks": [{"name": "sums", "dataset": str(questions), "scorer": "numeric"}],
    }
    built = build(config_from_data(config))
    session = built.session()
    (request, *_) = session.ask(2)
    verdict = None if stop is None else StopVerdict(stop)
    results = to_json(replace(session.results(), stop=verdict))
    with RunWriter.create(tmp_path / "run", meta=built.meta()) as writer:
        writer.launch([request], at=1.7e9)
        writer.outcome(TrialRecord(request, 1.7e9, Completion("4", "stop", Usage(5, 1)), Score(1, "4")))
        writer.snapshot(SnapshotRecord(1.7e9, 1.0, 1, results))
        writer.commit()
        with pytest.raises(RunLocked):
            asyncio.run(execute(built, tmp_path / "run", RunOptions()))
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as db, db:
        db.execute("UPDATE outcomes SET category = 0")  # its checksum is of 1
    with pytest.raises(said):
        asyncio.run(execute(built, tmp_path / "run", RunOptions()))
