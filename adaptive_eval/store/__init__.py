"""The run file: one SQLite database per run, one writer, any number of readers.

:class:`RunWriter` appends launches, attempts, outcomes, decisions and snapshots, and makes them durable in
groups; :class:`RunReader` reads them, from any process, during the run or after it. The rows are the
plain data of :mod:`adaptive_eval.store.records`.
"""

from adaptive_eval.errors import RunDamaged, RunDiskFull, RunNotWritable
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import (
    AttemptRecord,
    DecisionRecord,
    EndpointHealth,
    SnapshotRecord,
    TrialRecord,
)
from adaptive_eval.store.run_files import Durability
from adaptive_eval.store.scorings import Rescored, ScoringRecord
from adaptive_eval.store.writer import RunWriter

__all__ = [
    "AttemptRecord",
    "DecisionRecord",
    "Durability",
    "EndpointHealth",
    "Rescored",
    "RunDamaged",
    "RunDiskFull",
    "RunNotWritable",
    "RunReader",
    "RunWriter",
    "ScoringRecord",
    "SnapshotRecord",
    "TrialRecord",
]
