"""``adaptive-eval rescore`` killed at any moment, by a judge, by programs in a sandbox and by a rubric."""

from __future__ import annotations

import json
import random
import re
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from chaos_books import Books, Figures
from command_line import ARITHMETIC_TASK, adaptive_eval, started, write_config
from scripted_chat import Scripted

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import Rescored

TRIALS = 90
"""Stored answers, over two tasks."""

JUDGED = 60
"""Most requests to the judge in one session, less than there are answers to both tasks."""


def program(body: dict[str, object]) -> str:
    """Return an answer with a program and a number, which is right for some questions."""
    number = crc32(json.dumps(body).encode()) % 50
    return f"```python\nanswer = {number}\n```\n\\boxed{{{number}}}"


class RescoredOrdeal:
    """A run of two tasks that has ended, with its books, and the scorings that it holds."""

    def __init__(self, folder: Path, seed: int, models: Scripted, judge: Scripted) -> None:
        self.folder, self.run, self.judge = folder, folder / "run", judge
        self.random = random.Random(seed)
        self.books = Books(self.run)
        self.scorings: list[tuple[str, list[Rescored]]] = []
        task = {**ARITHMETIC_TASK, "limit": 20}
        config = {
            "name": "rescored",
            "seed": seed,
            "models": [{"name": name, "model": "wise", "endpoints": [models.url]} for name in ("one", "two")],
            "tasks": [{**task, "name": "first"}, {**task, "name": "second", "shuffle": True}],
            "goal": "budget",
            "budget": {"trials": TRIALS},
        }
        done = adaptive_eval("run", write_config(folder, config), "--out", self.run, cwd=folder)
        assert done.code == 0, done
        self.look()

    def options(self) -> tuple[str, ...]:
        """Return the options of one of the ways to score again."""
        judge = {"kind": "judge", "endpoint": self.judge.url, "model": "wise", "budget": {"requests": JUDGED}}
        code = {"kind": "code", "allow_execution": True, "code": "{answer}", "tests": "assert answer % 2"}
        ways = (
            ("--scorer", json.dumps(judge), "--task", "first"),
            ("--scorer", json.dumps(code)),
            ("--scorer", json.dumps(code), "--rubric", "binary"),
            ("--rubric", "format-aware", "--rubric", "strict-compliance"),
        )
        return self.random.choice(ways)

    def killed_after(self, seconds: float, *, of_its_end: bool = False) -> None:
        """Kill a rescoring that long after its start, or after the run file's log has been written to.

        The kill is counted by what is stored by then.
        """
        asked, before, log = len(self.judge.asked), len(self.scorings), self.log()
        with started("rescore", self.run, *self.options(), cwd=self.folder) as running:
            while of_its_end and self.log() in (log, None) and running.for_a_moment(0.001):
                pass
            is_killed = running.for_a_moment(seconds)
            if is_killed:
                running.process.kill()
                running.process.wait()
            else:
                done = running.finish()
                assert done.code == 0, done
        self.books.figures.overrun += len(self.judge.asked) - asked > JUDGED
        self.look()
        if is_killed:
            stage = "writing" if of_its_end else "scoring"
            if len(self.scorings) > before:
                stage = "the scoring stored"
            self.books.figures.faults[f"kill of rescore: {stage}"] += 1

    def log(self) -> tuple[int, int] | None:
        """Return the size of the run file's log, which a kill leaves behind, and when it was written."""
        with suppress(FileNotFoundError):
            found = (self.run / "run.db-wal").stat()
            return (found.st_size, found.st_mtime_ns) if found.st_size else None
        return None

    def look(self) -> None:
        """Look whether all earlier scorings are as they were, and each new one is whole."""
        self.books.look()
        with RunReader(self.run) as reader:
            found = [
                (record.name, record.body["tasks"], list(reader.rescored(number)))
                for number, record in enumerate(reader.scorings())
            ]
        kept = sum(
            before == (name, rows) for before, (name, _, rows) in zip(self.scorings, found, strict=False)
        )
        self.books.figures.lost += len(self.scorings) - kept
        for _, tasks, rows in found:
            due = [
                place
                for place, one in enumerate(self.books.records)
                if one.score is not None and one.request.task in tasks
            ]
            self.books.figures.lost += [row.outcome for row in rows] != due
        self.scorings = [(name, rows) for name, _, rows in found]

    def account(self) -> Figures:
        """Return the figures, once the run has been validated."""
        done = adaptive_eval("validate", self.run, cwd=self.folder)
        self.books.figures.damaged += not re.search("undamaged", done.out)
        return self.books.figures
