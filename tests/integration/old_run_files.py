"""Run files as earlier versions of the package wrote them."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing
from pathlib import Path

from adaptive_eval.store.migrations import SCRIPTS, migrate
from adaptive_eval.store.zstd import decompress

WRITTEN_WITH_ZLIB = 2
"""The last version whose packed values are all zlib's, at level 1."""


def as_version(directory: Path, version: int) -> None:
    """Write a closed run, whose answers needed no dictionary, anew in the schema of an earlier version."""
    new, old = directory / "run.db", directory / "old.db"
    with closing(sqlite3.connect(old, isolation_level=None)) as db:
        migrate(db, SCRIPTS[:version])
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        db.execute("ATTACH ? AS new", (str(new),))
        if version <= WRITTEN_WITH_ZLIB:
            db.create_function("packed", 1, _as_zlib)
        else:
            db.create_function("packed", 1, lambda value: value)
        db.execute("BEGIN")
        for table in tables:
            columns = [name for _, name, *_ in db.execute(f"PRAGMA main.table_info({table})")]
            values = ", ".join("digest" if name == "digest" else f"packed({name})" for name in columns)
            db.execute(
                f"INSERT OR REPLACE INTO main.{table} ({', '.join(columns)}) SELECT {values} FROM new.{table}"
            )
        db.execute("COMMIT")
    old.replace(new)


def _as_zlib(value: object) -> object:
    return zlib.compress(decompress(value), 1) if isinstance(value, bytes) else value
