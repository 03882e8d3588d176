"""What a run that went through chaos must show: computed from its run file and the servers' bills."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

from adaptive_eval.build.replay import replay
from adaptive_eval.core.results import from_json
from adaptive_eval.core.spec import BudgetSpec, SessionSpec
from adaptive_eval.core.stored_spec import SESSION
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord

__all__ = ["Bill", "Books", "Figures"]


@dataclass
class Figures:
    """What the chaos suite prints: all but `faults`, `sessions` and `answers` must be zero."""

    faults: Counter[str] = field(default_factory=Counter)
    sessions: int = 0
    answers: int = 0
    lost: int = 0
    doubled: int = 0
    overrun: int = 0
    damaged: int = 0

    def __add__(self, other: Figures) -> Figures:
        numbers = ("sessions", "answers", "lost", "doubled", "overrun", "damaged")
        sums = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return Figures(self.faults + other.faults, **sums)

    def lines(self) -> list[str]:
        """Return the figures as they are printed."""
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(self.faults.items()))
        return [
            f"faults injected = {self.faults.total():,} ({kinds})",
            f"sessions = {self.sessions:,}, answers stored = {self.answers:,}",
            f"answers lost = {self.lost}",
            f"double counts = {self.doubled}",
            f"budget overruns = {self.overrun}",
            f"corrupted files = {self.damaged}",
        ]

    @property
    def harm(self) -> int:
        """What must be zero."""
        return self.lost + self.doubled + self.overrun + self.damaged

    def check(self) -> None:
        """Check that what must be zero is."""
        assert not self.harm, self.lines()


@dataclass
class Bill:
    """What servers have charged, apart from what the run knows of it.

    A request is charged at its worst when it goes out, and at what it has used once it is answered.
    """

    spec: SessionSpec
    prompt: Counter[tuple[str, str]] = field(default_factory=Counter)
    completion: Counter[tuple[str, str]] = field(default_factory=Counter)
    cached: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, model: str, task: str, prompt: int, completion: int, cached: int = 0) -> None:
        """Charge (or, with negative numbers, credit) tokens; `cached` of the prompt were in the cache."""
        self.prompt[model, task] += prompt
        self.completion[model, task] += completion
        self.cached[model, task] += cached

    def overruns(self) -> int:
        """Return how many limits of tokens and dollars are exceeded, of the run, of models and of tasks."""
        owners: list[tuple[str, str, BudgetSpec]] = [("", "", self.spec.budget)]
        owners += [(model.name, "", model.budget) for model in self.spec.models]
        owners += [("", task.name, task.budget) for task in self.spec.tasks]
        return sum(self._exceeded(model, task, budget) for model, task, budget in owners)

    def _exceeded(self, model: str, task: str, budget: BudgetSpec) -> int:
        places = [place for place in self.prompt if model in ("", place[0]) and task in ("", place[1])]
        prompt, completion = (
            sum(counts[place] for place in places) for counts in (self.prompt, self.completion)
        )
        usd = Fraction(0)
        for place in places:
            price = next(one.price for one in self.spec.models if one.name == place[0])
            if price is not None:
                usd += self.prompt[place] * Fraction(repr(price.input)) / 10**6
                usd += self.completion[place] * Fraction(repr(price.output)) / 10**6
                cached = price.input if price.cached_input is None else price.cached_input
                usd += self.cached[place] * (Fraction(repr(cached)) - Fraction(repr(price.input))) / 10**6
        limits = (
            (budget.tokens, Fraction(prompt + completion)),
            (budget.prompt_tokens, Fraction(prompt)),
            (budget.completion_tokens, Fraction(completion)),
            (budget.usd, usd),
        )
        return sum(limit is not None and spent > Fraction(repr(limit)) for limit, spent in limits)


class Books:
    """Looks into a run file after every session of the run, and counts what should not have happened.

    Parameters
    ----------
    run : Path
        The run's directory.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        self.figures = Figures()
        self._stored: list[TrialRecord] = []

    @property
    def records(self) -> list[TrialRecord]:
        """The trials that were stored at the last look."""
        return self._stored

    def look(self, run: Path | None = None) -> None:
        """Compare the run file with what it held at the last look."""
        self.run = run or self.run
        self.figures.sessions += 1
        if not (self.run / "run.db").exists():
            self.figures.lost += len(self._stored)
            return
        self.figures.damaged += self._damaged()
        with RunReader(self.run) as reader:
            stored = list(reader.trials())
            latest = reader.latest_snapshot()
            if stored and SESSION in reader.meta():
                self.figures.damaged += len(replay(reader).disagreements)
        kept = sum(now == before for now, before in zip(stored, self._stored, strict=False))
        self.figures.lost += len(self._stored) - kept
        times = Counter((record.request.key.model, record.request.key.index) for record in stored)
        self.figures.doubled += sum(number - 1 for number in times.values())
        if latest is not None and from_json(latest.results).stop is not None:
            self._compare(stored, latest.results)
        self._stored, self.figures.answers = stored, len(stored)

    def _compare(self, stored: list[TrialRecord], results: Mapping[str, object]) -> None:
        """Compare what the run says of itself with its rows: neither trials nor tokens count twice."""
        view = from_json(results)
        lines = {line.name: line for line in view.budgets if line.scope == "run"}
        tokens = sum(record.usage.total_tokens for record in stored)
        self.figures.doubled += view.trials != len(stored)
        self.figures.doubled += lines["tokens"].spent - lines["tokens"].presumed != tokens
        self.figures.overrun += sum(
            line.limit is not None and line.spent > line.limit
            for line in view.budgets
            if line.name != "wall_clock"
        )

    def _damaged(self) -> int:
        """Look at a copy: after a kill while the file was closed SQLite has to roll a journal back."""
        with TemporaryDirectory() as folder:
            for name in ("run.db", "run.db-wal", "run.db-journal"):
                if (self.run / name).exists():
                    shutil.copy(self.run / name, folder)
            with closing(sqlite3.connect(Path(folder) / "run.db")) as db:
                whole = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                return int(not whole) + len(db.execute("PRAGMA foreign_key_check").fetchall())
