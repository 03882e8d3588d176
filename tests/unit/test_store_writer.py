"""The writer on a file system that does not cooperate."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_store_looking import trial

from adaptive_eval.errors import RunExists, RunFileError, RunLocked, RunNotFound
from adaptive_eval.store import run_files
from adaptive_eval.store.pending import add_scoring
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, Rescored, ScoringRecord, SnapshotRecord
from adaptive_eval.store.run_files import RunFiles, open_for_writing
from adaptive_eval.store.writer import RunWriter


def stored(run: Path) -> list[int]:
    with RunReader(run) as reader:
        return [record.request.key.index for record in reader.trials()]


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def writer(run):
    """Return the writer of a run that holds a trial, not yet committed."""
    with RunWriter.create(run, meta={}) as writer:
        writer.outcome(trial(0))
        yield writer


# Creation


def test_a_creation_that_was_interrupted_is_no_run_and_can_be_repeated(run):
    run.mkdir()
    draft = RunFiles(run).draft
    draft.write_bytes(b"half a database")
    draft.with_name("run.db.new-journal").write_bytes(b"and its journal")
    for use in (RunReader, RunWriter.open):
        with pytest.raises(RunNotFound, match="Its creation was interrupted: start it again"):
            use(run)
    RunWriter.create(run, meta={"seed": "1"}).close()
    assert sorted(path.name for path in run.iterdir()) == ["run.db", "run.lock"]


def test_the_log_of_a_vanished_run_is_not_replayed_into_a_new_one(run):
    with RunWriter.create(run, meta={}) as first:
        first.outcome(trial(0))
        first.commit()
        log = RunFiles(run).wal.read_bytes()
    RunFiles(run).database.unlink()
    RunFiles(run).wal.write_bytes(log)
    with pytest.raises(RunExists, match=r"belongs to a run whose run\.db is gone"):
        RunWriter.create(run, meta={})
    RunFiles(run).wal.unlink()
    RunWriter.create(run, meta={}).close()
    assert stored(run) == []


def test_a_file_system_without_a_log_for_writing_ahead_is_refused(tmp_path):
    with closing(sqlite3.connect(":memory:")) as db, pytest.raises(RunFileError, match="write-ahead log"):
        run_files._use_wal(db, tmp_path)


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_sets_when_sqlite_waits_for_the_disk(run, durability, level):
    RunWriter.create(run, meta={}).close()
    with closing(open_for_writing(RunFiles(run), durability)) as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (level,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with RunReader(run) as reader:
        assert reader._db.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_a_run_is_on_the_disk_before_it_can_be_seen(run, monkeypatch):
    synced = []
    monkeypatch.setattr(
        run_files, "_sync", lambda path: synced.append((path.name, RunFiles(run).database.exists()))
    )
    RunWriter.create(run, meta={}).close()
    assert synced == [("run.db.new", False), ("run", True), (run.parent.name, True)]


# Commits that fail


def test_a_commit_that_is_interrupted_is_undone_and_made_whole_by_the_next(run, writer, monkeypatch):
    write = writer._pending.write

    def interrupted():
        write()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(writer._pending, "write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.commit()
    assert stored(run) == []
    writer.outcome(trial(1))
    assert writer.commit() == 2
    assert stored(run) == [0, 1]


def test_a_commit_that_counts_although_it_failed_is_repeated_without_harm(run, writer):
    writer._db.execute("BEGIN")
    writer._pending.write()
    writer._db.execute("COMMIT")  # and the answer is lost
    assert writer.commit() == 1
    assert stored(run) == [0]


def test_a_scoring_that_fails_in_the_middle_leaves_nothing(writer):
    def rows():
        yield Rescored(1, 1, None, "")
        raise KeyboardInterrupt

    writer.commit()
    with pytest.raises(KeyboardInterrupt):
        add_scoring(writer._db, ScoringRecord("first", 0.0, {}), rows())
    assert add_scoring(writer._db, ScoringRecord("second", 0.0, {}), []) == 0
    assert [one.name for one in writer.reader().scorings()] == ["second"]


def test_a_program_that_holds_the_database_is_named_as_the_cause(run, writer):
    writer._db.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(run / "run.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RunLocked, match="another program holds the database's lock"):
            writer.commit()
    assert writer.commit() == 1
    assert stored(run) == [0]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_deleted_under_the_writer_is_noticed(run, replaced):
    writer = RunWriter.create(run, meta={})
    writer.outcome(trial(0))
    if replaced:
        shutil.copy(run / "run.db", run / "copy")
        (run / "copy").rename(run / "run.db")
    else:
        (run / "run.db").unlink()
    with pytest.raises(RunFileError, match="was replaced or deleted while this process writes to it"):
        writer.commit()
    with pytest.raises(RunFileError, match="was replaced or deleted"):
        writer.close()


def test_a_log_deleted_under_the_writer_is_noticed_and_nothing_committed_is_lost(run):
    with RunWriter.create(run, meta={}) as writer:
        writer.outcome(trial(0))
        writer.commit()
        (run / "run.db-wal").unlink()
        writer.outcome(trial(1))
        with pytest.raises(RunFileError, match=r"run\.db-wal was deleted .* merged into run\.db"):
            writer.commit()
        shutil.copytree(run, run.with_name("copy"))  # as after a kill
        with pytest.raises(RunFileError, match="was deleted"):
            writer.close()
    with RunWriter.open(run.with_name("copy")) as writer:
        assert not writer.outcome(trial(0))
        assert writer.outcome(trial(1))


# Readers beside a writer


def test_a_reader_in_the_middle_of_a_result_neither_blocks_nor_sees_the_writer(run):
    with RunWriter.create(run, meta={}) as writer:
        for step in range(300):
            writer.outcome(trial(step))
        writer.commit()
        with writer.reader() as reader:
            trials = reader.trials()
            first = next(trials)
            for step in range(300, 600):
                writer.outcome(trial(step))
                writer.commit()
            # no read transaction is open between batches, so the log can be merged whole
            assert writer._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
            found = [record.request.key.index for record in (first, *trials)]
            assert found == list(range(300))
            assert reader.count() == 600


def test_a_closed_run_is_one_file_and_reading_leaves_nothing_behind(run, writer):
    writer.close()
    before = (run / "run.db").read_bytes()
    assert stored(run) == [0]
    assert (run / "run.db").read_bytes() == before
    assert sorted(path.name for path in run.iterdir()) == ["run.db", "run.lock"]


def test_a_reader_follows_a_run_that_is_closed_and_continued(run):
    RunWriter.create(run, meta={}).close()
    with RunReader(run) as reader:
        for sitting in range(3):
            with RunWriter.open(run) as writer:
                writer.outcome(trial(sitting))
                writer.commit()
                assert reader.count() == sitting + 1
            assert reader.count() == sitting + 1
    assert stored(run) == [0, 1, 2]


def test_running_time_goes_up_to_the_last_event_after_the_last_snapshot(run):
    """A process that is killed loses what it did since then, and no more."""
    request = trial(0).request
    with RunWriter.create(run, meta={}) as writer:
        with writer.reader() as reader:
            assert reader.running_time() == 0.0
        writer.snapshot(SnapshotRecord(1_000.0, 50.0, 0, {}, ()))
        writer.commit()
        attempt = AttemptRecord(request.key, 1, "http://x/v1", 1_003.0, 1.5)
        for at, seconds in ((990.0, 50.0), (1_003.5, 54.5), (9_000.0, 50.0)):  # before, after, a night after
            writer.launch([request], at)
            if at > 1_000.0:
                writer.attempt(attempt)
            writer.commit()
            with writer.reader() as reader:
                assert reader.running_time() == seconds
