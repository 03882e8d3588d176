"""Run files: opened, locked, and refused where they are damaged, or salvaged."""

import errno
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest
import run_examples as runs
from config_texts import plain

from adaptive_eval.build.describe import describe_run
from adaptive_eval.errors import RunDamaged, RunFileError, RunLocked, RunOfOtherVersion
from adaptive_eval.store import integrity, pending, run_files
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import Rescored, ScoringRecord, TrialRecord
from adaptive_eval.store.run_files import FILE_VERSION, holds_runs
from adaptive_eval.store.writer import RunWriter, WriterLock, salvage
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage
from adaptive_eval.views.reading import summarise

# Opening a run file: one version, its own tables only, and no query without an end.


def change(directory: Path, sql: str) -> None:
    with closing(sqlite3.connect(directory / "run.db")) as db:
        db.executescript(sql)


@pytest.fixture
def run(tmp_path) -> Path:
    RunWriter.create(tmp_path / "run", meta={"seed": "1"}).close()
    return tmp_path / "run"


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
@pytest.mark.parametrize("version", [1, FILE_VERSION - 1, FILE_VERSION + 1])
def test_a_file_of_another_version_is_refused_with_what_to_do(run, use, version):
    change(run, f"PRAGMA user_version = {version}")
    with pytest.raises(RunOfOtherVersion, match=rf"version {version}; .* {FILE_VERSION}\."):
        use(run)
    change(run, f"PRAGMA user_version = {FILE_VERSION}")
    use(run).close()  # nothing was changed, no lock was kept


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


@pytest.mark.parametrize("use", [RunWriter.open, RunReader, lambda run: salvage(run, run.with_name("new"))])
@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM outcomes; END",
        f"CREATE VIEW more AS {ENDLESS}",
        f"DROP TABLE attempts; CREATE VIEW attempts AS {ENDLESS}",
        "CREATE TABLE more (id)",
    ],
)
def test_a_file_with_foreign_tables_views_or_triggers_is_refused(run, use, sql):
    change(run, sql)
    with pytest.raises(RunDamaged, match="no run file has"):
        use(run)


def test_a_query_without_an_end_ends_with_an_error(run, monkeypatch):
    monkeypatch.setattr(run_files, "_LEAST_TICKS", 2)
    monkeypatch.setattr(run_files, "_TICK", 10_000)
    with RunReader(run) as reader:
        with pytest.raises(RunFileError):
            reader._rows(ENDLESS)
        assert reader.count() == 0  # the next statement has all its time again


def test_a_long_run_is_read_within_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(run_files, "_LEAST_TICKS", 0)
    monkeypatch.setattr(run_files, "_TICK", 1000)
    runs.make_run(tmp_path / "run", {"oak": 0.9, "elm": 0.3}, trials=2_000)
    with RunReader(tmp_path / "run") as reader:
        assert not reader.damage()
        assert sum(1 for _ in reader.trials()) == reader.count() == len(reader.outcomes())
        assert reader.cells().stored.sum() == reader.count()
        reader.error_counts(), reader.signals_named(""), reader.launched(), reader.unanswered()


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
@pytest.mark.parametrize("content", ["another program's", b"", b"name: first\nseed: 1234\n" * 50])
def test_what_is_no_run_file_is_refused_and_left_alone(tmp_path, use, content):
    file = tmp_path / "run.db"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        change(tmp_path, "CREATE TABLE theirs (id INTEGER)")
    before = file.read_bytes()
    with pytest.raises(RunDamaged, match="not a run file"):
        use(tmp_path)
    assert file.read_bytes() == before


def describe(folder, config, lacking=None):
    """Make a run that is described by `config`, but for an entry of the description."""
    meta = {"config": json.dumps(config), "source": "c.yaml", "base_dir": str(folder)}
    meta["identity"] = '{"tasks": {}}'
    runs.make_run(folder / "run", {"oak": 0.9, "elm": 0.3}, trials=8, meta=meta)
    with closing(sqlite3.connect(folder / "run" / "run.db")) as db, db:
        db.execute("DELETE FROM meta WHERE key = ?", (lacking,))
        run_files.seal(db)


def test_a_look_at_a_strangers_run_imports_none_of_its_files(tmp_path):
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\n")
    models = [{"name": name, "endpoints": ["python:theirs:model"]} for name in ("oak", "elm")]
    task = {"dataset": "python:theirs:rows", "scorer": {"kind": "python", "function": "theirs:f"}}
    describe(tmp_path, plain(task=task, models=models))
    with RunReader(tmp_path / "run") as reader:
        about = describe_run(reader)
        assert {about.target(record) for record in reader.trials()} == {None}
    assert not (tmp_path / "mark").exists()


# The lock: one writer at a time, wherever it runs.


HOLD_AND_FORK = """
import os, sys
from pathlib import Path
from adaptive_eval.store.writer import WriterLock
lock = WriterLock.acquire(Path(sys.argv[1]))
if os.fork() == 0:
    print("forked", os.getpid(), flush=True)
    sys.stdin.read()
    os._exit(0)
os.wait()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.lock"


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks_is_refused_with_what_to_do(path, monkeypatch, code):
    def flock(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(RunFileError, match=r"has no locks.* Put the run on a local disk"):
        WriterLock.acquire(path)


def test_a_forked_child_does_not_keep_it_after_the_holder_was_killed(path):
    command = [sys.executable, "-c", HOLD_AND_FORK, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        said, child = holder.stdout.readline().split()
        assert said == "forked"
        with pytest.raises(RunLocked):
            WriterLock.acquire(path)
        holder.kill()
        holder.wait()
        os.kill(int(child), 0)  # the child is alive
        WriterLock.acquire(path).release()


def test_it_holds_within_one_process_too_and_can_be_taken_again(path):
    for said, holder in ((None, f"process {os.getpid()}"), ("", "another process")):
        lock = WriterLock.acquire(path)
        assert json.loads(path.read_text())["pid"] == os.getpid()
        if said is not None:
            path.write_text(said)  # as a holder leaves it that has not said yet who it is
        with pytest.raises(RunLocked, match=f"is being written by {holder}"):
            WriterLock.acquire(path)
        lock.release()
        lock.release()
        assert path.read_text() == ""


# Damage to a run file: random bit flips are never a traceback and never unnoticed in a stored answer.


FLIPS = 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "TALLY_EVERY", 20)
        runs.make_run(directory, {"oak": 0.9, "elm": 0.3}, missing=0.1, truncated=0.1, trials=60, whole=True)
    return directory


def trials_of(directory: Path) -> list[TrialRecord]:
    with RunReader(directory) as reader:
        return list(reader.trials())


def put(directory: Path, data: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for left in directory.iterdir():
        left.unlink()
    (directory / "run.db").write_bytes(data)
    return directory


@pytest.fixture
def copy(whole, tmp_path) -> Path:
    return put(tmp_path / "run", (whole / "run.db").read_bytes())


def flipped(data: bytes, rng: random.Random) -> bytes:
    bits, used = bytearray(data), [place for place, byte in enumerate(data) if byte]
    for _ in range(rng.choice((1, 1, 1, 8, 64))):
        bits[rng.choice(used)] ^= 1 << rng.randrange(8)
    return bytes(bits)


def test_random_bit_flips_are_noticed_wherever_they_change_an_answer(whole, tmp_path):
    """Seed 2026; no false alarm is possible: an answer that differs, or an error of another kind, fails."""
    rng, data, stored = random.Random(2026), (whole / "run.db").read_bytes(), trials_of(whole)
    found: Counter[str] = Counter()
    for number in range(FLIPS):
        damaged = flipped(data, rng)
        run = put(tmp_path / "run", damaged)
        try:
            with RunReader(run) as reader:
                with suppress(RunFileError):
                    summarise(reader)  # unchecked, as monitors read
                damage = reader.damage()
            found["damaged" if damage else "undamaged"] += 1
            if not damage:
                assert trials_of(run) == stored
            RunWriter.open(run, durability="normal").close()
            assert not damage
        except RunFileError:
            found["refused"] += 1
        if number % 10:
            continue
        new = tmp_path / f"new {number}"
        try:
            salvage(put(tmp_path / "run", damaged), new)
        except RunFileError:
            continue
        assert all(record in stored for record in trials_of(new))
    assert found["damaged"] > FLIPS // 10


def test_trials_whose_answers_are_gone_at_the_end_are_lost_too(copy):
    change(copy, "DELETE FROM answers WHERE outcome > 57")
    with RunReader(copy) as reader:
        assert reader.damage().first == [58, 59]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE outcomes SET category = 1 - category WHERE id = 7",
        "UPDATE outcomes SET completion_tokens = 41 WHERE id = 7",
        "UPDATE answers SET text = text || '.' WHERE outcome = 7",
        "UPDATE outcomes SET answer = answer + 1 WHERE id = 7",
        "UPDATE answers SET checksum = x'00' WHERE outcome = 7",
        "DELETE FROM answers WHERE outcome = 7",
        "DELETE FROM outcomes WHERE id = 7",
    ],
)
def test_a_changed_trial_is_named_and_the_others_are_salvaged(whole, copy, tmp_path, sql):
    change(copy, sql)
    with RunReader(copy) as reader:
        damage = reader.damage()
    assert (damage.lost, damage.first) == (1, [7])
    with pytest.raises(RunDamaged, match=r"1 of 60 stored trials .*numbers 7.*validate"):
        RunWriter.open(copy)
    assert salvage(copy, tmp_path / "new").lost == 1
    stored = trials_of(whole)
    assert trials_of(tmp_path / "new") == stored[:7] + stored[8:]
    with RunReader(whole) as before, RunReader(tmp_path / "new") as after:
        assert list(after.attempts()) == list(before.attempts()) != []
        assert [one.key for one in after.launched()] == [stored[7].request.key]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE scorings SET name = 'kinder'",
        "UPDATE scorings SET at = at + 1",
        "UPDATE scorings SET body = replace(body, '3', '4')",
        "UPDATE rescored SET category = 1 WHERE outcome = 7",
        "UPDATE rescored SET reason = 'right' WHERE outcome = 3",
        "DELETE FROM rescored WHERE outcome = 7",
    ],
)
def test_a_changed_scoring_is_named(copy, sql):
    rows = (Rescored(7, 0, "4" * 600, "wrong"), Rescored(3, None, None, "unscored"))
    with RunWriter.open(copy, durability="normal") as writer:
        number = writer.scoring(ScoringRecord("strict", 1.5e9, {"results": 3}), rows)
    with RunReader(copy) as reader:
        assert not reader.damage()
    change(copy, sql)
    with RunReader(copy) as reader:
        assert reader.damage().structure == [f"scoring {number} does not match its checksum"]


def test_damaged_reasoning_is_found(tmp_path):
    request = TrialRequest(TrialKey("a", 0), "t", "q", 0, 1)
    call = {"id": "1", "name": "add", "arguments": "{}"}
    answer = Completion("4", "stop", Usage(9, 7), reasoning="2 + 2", reasoning_tokens=5, tool_calls=(call,))
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        writer.outcome(TrialRecord(request, 1.0, answer, Score(1, "4")))
    (stored,) = trials_of(tmp_path / "run")
    assert stored.completion == answer
    for damage in (
        "UPDATE answers SET details = replace(details, 'add', 'sub')",
        "UPDATE answers SET details = replace(details, '2 + 2', '2 + 3')",
        "UPDATE answers SET details = NULL",
    ):
        change(tmp_path / "run", damage)
        with RunReader(tmp_path / "run") as reader:
            assert reader.damage().lost == 1


def test_the_command_checks_and_salvages(copy, tmp_path):
    run, new = copy, tmp_path / "new"
    assert "60 trials" in runs.printed("validate", run)
    change(run, "UPDATE outcomes SET prompt_tokens = prompt_tokens + 1 WHERE id IN (3, 5)")
    assert "2 of 60" in runs.command("validate", run, code=1).output
    assert "58 of 60" in runs.printed("validate", run, "--salvage", new)
    assert len(trials_of(new)) == 58


@pytest.mark.parametrize("lacking", ["config", "source", "base_dir", "identity"])
def test_a_description_that_lacks_an_entry_is_named_and_the_run_can_be_read(tmp_path, lacking):
    (tmp_path / "d.jsonl").write_text('{"input": "1", "target": "2"}\n')
    config = plain("oak", "elm", name="forest", task={"dataset": str(tmp_path / "d.jsonl")})
    describe(tmp_path, config, lacking)
    done = runs.command("run", tmp_path / "run")
    assert isinstance(done.exception, RunDamaged), done.exception
    assert f"lacks '{lacking}'" in str(done.exception)
    if lacking == "config":
        assert isinstance(runs.command("samples", tmp_path / "run").exception, RunDamaged)
    with RunReader(tmp_path / "run") as reader:
        assert reader.latest_snapshot() is not None


def test_rows_are_read_one_by_one_after_a_readable_part_however_much_was_lost_before(monkeypatch):
    """64 rows of each 128 are unreadable, more of them in all than are given up for lost in succession."""
    batches = 2 * (integrity._PATIENCE // integrity._AT_ONCE + 2)
    last = range(batches * integrity._AT_ONCE, (batches + 1) * integrity._AT_ONCE)

    def between(self, query, filters, numbers):
        whole = len(numbers) > 1
        if numbers[0] in last:
            return None if whole or numbers[0] == last[0] else [(numbers[0],)]
        odd = numbers[0] // integrity._AT_ONCE % 2
        return None if odd else [(number,) for number in numbers]

    monkeypatch.setattr(integrity.RunContents, "_between", between)
    monkeypatch.setattr(integrity.RunContents, "_end", lambda self, table: last[-1])
    contents = object.__new__(integrity.RunContents)
    assert [number for (number,) in contents._rows("", "outcomes")][-63:] == list(last[1:])


def test_a_folder_holds_runs_if_it_is_none_itself(tmp_path):
    run = tmp_path / "runs" / "one"
    assert not holds_runs(tmp_path / "runs")
    RunWriter.create(run, meta={}).close()
    assert holds_runs(tmp_path / "runs")
    assert not holds_runs(run)
    assert not holds_runs(tmp_path)
    RunWriter.create(run / "in it", meta={}).close()
    assert not holds_runs(run)
