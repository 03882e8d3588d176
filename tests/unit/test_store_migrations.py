from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from adaptive_eval.errors import RunDamaged, RunTooNew
from adaptive_eval.store.migrations import APPLICATION_ID, SCRIPTS, file_version, migrate
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter

NEXT = """
ALTER TABLE launches ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
"""
BROKEN = "CREATE TABLE half_done (id INTEGER PRIMARY KEY); SELECT no_such_column;"


def connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def tables(db: sqlite3.Connection) -> set[str]:
    return {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


@pytest.fixture
def run(tmp_path) -> Path:
    RunWriter.create(tmp_path / "run", meta={"seed": "1"}).close()
    return tmp_path / "run"


@pytest.fixture
def db(run):
    db = connect(run / "run.db")
    yield db
    db.close()


@pytest.fixture
def older(tmp_path) -> Path:
    """A file of version 0: marked as ours, with something in it that an upgrade must keep."""
    directory = tmp_path / "older"
    directory.mkdir()
    db = connect(directory / "run.db")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("CREATE TABLE kept (text TEXT)")
    db.execute("INSERT INTO kept VALUES ('paid for')")
    db.close()
    return directory


def test_a_new_file_is_marked_and_numbered(db):
    assert db.execute("PRAGMA application_id").fetchone() == (int.from_bytes(b"AEVR", "big"),)
    assert db.execute("PRAGMA user_version").fetchone() == (len(SCRIPTS),)


def test_a_later_script_upgrades_a_file_and_keeps_its_rows(run, db):
    migrate(db, (*SCRIPTS, NEXT))
    newer = len(SCRIPTS) + 1
    assert file_version(db, run, known=newer) == newer
    assert "notes" in tables(db)
    assert db.execute("SELECT key, value FROM meta").fetchall() == [("seed", "1")]
    migrate(db, (*SCRIPTS, NEXT))  # again: nothing left to do


def test_a_script_that_fails_changes_nothing(db):
    before = tables(db)
    with pytest.raises(sqlite3.OperationalError, match="no_such_column"):
        migrate(db, (*SCRIPTS, BROKEN))
    assert tables(db) == before
    assert db.execute("PRAGMA user_version").fetchone() == (len(SCRIPTS),)
    with pytest.raises(sqlite3.OperationalError, match="no_such_column"):
        migrate(db, (*SCRIPTS, NEXT, BROKEN))
    assert db.execute("PRAGMA user_version").fetchone() == (len(SCRIPTS) + 1,)


def test_an_upgraded_file_has_the_schema_of_a_new_one(run, db):
    fresh = connect(Path(":memory:"))
    migrate(fresh, (*SCRIPTS, NEXT))
    migrate(db, (*SCRIPTS, NEXT))
    schema = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert db.execute(schema).fetchall() == fresh.execute(schema).fetchall()
    fresh.close()


def test_writing_upgrades_an_older_file(older):
    with RunWriter.open(older) as writer:
        writer.set_meta("seed", "1")
    db = connect(older / "run.db")
    assert db.execute("PRAGMA user_version").fetchone() == (len(SCRIPTS),)
    assert db.execute("SELECT text FROM kept").fetchall() == [("paid for",)]
    db.close()


def test_reading_an_older_file_leaves_it_as_it_is(older):
    before = hashlib.sha256((older / "run.db").read_bytes()).digest()
    with RunReader(older) as reader:
        assert (reader.count(), reader.meta(), list(reader.trials())) == (0, {}, [])
    assert hashlib.sha256((older / "run.db").read_bytes()).digest() == before


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
def test_a_newer_file_is_refused_with_what_to_do(run, db, use):
    db.execute(f"PRAGMA user_version = {len(SCRIPTS) + 1}")
    versions = rf"version {len(SCRIPTS) + 1}; .* up to {len(SCRIPTS)}\."
    with pytest.raises(RunTooNew, match=f"{versions} Upgrade adaptive-eval"):
        use(run)
    db.execute(f"PRAGMA user_version = {len(SCRIPTS)}")
    use(run).close()  # nothing was changed, no lock was kept


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
def test_another_programs_database_is_refused_and_left_alone(tmp_path, use):
    db = connect(tmp_path / "run.db")
    db.execute("CREATE TABLE theirs (id INTEGER)")
    with pytest.raises(RunDamaged, match="not a run file of adaptive-eval"):
        use(tmp_path)
    assert tables(db) == {"theirs"}
    assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    db.close()


@pytest.mark.parametrize("use", [RunWriter.open, RunReader])
@pytest.mark.parametrize("content", [b"", b"name: first\nseed: 1234\n" * 50])
def test_a_file_that_is_no_database_is_refused(tmp_path, use, content):
    (tmp_path / "run.db").write_bytes(content)
    with pytest.raises(RunDamaged, match="not a run file"):
        use(tmp_path)
    assert (tmp_path / "run.db").read_bytes() == content
