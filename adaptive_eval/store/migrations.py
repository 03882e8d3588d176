"""The versions of the run file: which script makes which version, and what to do with another one's file.

A file's ``user_version`` is the number of scripts applied to it. A new file is made by applying all of them
to an empty one, so a new file and an upgraded one have the same schema. To change the schema, add a script;
a script that has been released is never edited.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from adaptive_eval.errors import RunDamaged, RunTooNew

APPLICATION_ID = 0x41455652
"""``AEVR``: marks a SQLite file as a run file (see ``file(1)`` and ``PRAGMA application_id``)."""


_NAMES = (
    "schema.sql",
    "scorings.sql",
    "dictionaries.sql",
    "tallies.sql",
    "checksums.sql",
    "answer_digests.sql",
    "reasoning.sql",
    "tool_calls.sql",
    "row_checksums.sql",
)

SCRIPTS = tuple(files("adaptive_eval.store").joinpath(name).read_text(encoding="utf-8") for name in _NAMES)
"""The SQL of each numbered step of the schema, in order; applying the first n gives version n."""

READABLE_FROM = 1
"""Files from this version on are read as they are: later scripts add tables and columns only, which older
files do without."""


def file_version(db: sqlite3.Connection, path: Path, known: int = len(SCRIPTS)) -> int:
    """Return the version of an existing run file."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise RunDamaged(f"{path} is a SQLite file, but not a run file of adaptive-eval. Is the path right?")
    if version > known:
        raise RunTooNew(
            f"{path} has file version {version}; this adaptive-eval reads versions up to {known}. "
            "Upgrade adaptive-eval"
        )
    return int(version)


def migrate(db: sqlite3.Connection, scripts: Sequence[str] = SCRIPTS) -> None:
    """Bring a file to version ``len(scripts)``, each step in its own transaction.

    Examples
    --------
    >>> db = sqlite3.connect(":memory:", isolation_level=None)
    >>> migrate(db)
    >>> db.execute("PRAGMA user_version").fetchone() == (len(SCRIPTS),)
    True
    """
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, script in enumerate(scripts[version:], start=version + 1):
        try:
            db.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
