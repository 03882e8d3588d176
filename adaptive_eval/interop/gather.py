"""Gathering the trials of several logs in one table, on disk."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.core.discarded import redrawn_words
from adaptive_eval.engine.independence import IndependenceAudit
from adaptive_eval.errors import Coded, OutcomesError
from adaptive_eval.interop.found import RUN, Flaw, Found, Log, audited, checked, flawed
from adaptive_eval.interop.headings import listed
from adaptive_eval.interop.sequences import Ints, TrialCells, random_order
from adaptive_eval.trial import COPY_REASON, DiscardCause, ScoreRange
from adaptive_eval.trial import NOT_THERE as NOT_THERE

WORTH = "worth of the categories"

GATHERED = "gathered.db"
"""The table's file."""

FEWEST_AGAIN = 10
"""Rows of a table that repeat others, from which on it is no chance that each does so as often."""

MOST_NAMED = 5
"""Questions that a note names."""

_APART = "To compare two versions of a model, name each: --model NAME=FILE"

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, model INTEGER, question INTEGER, series INTEGER, number INTEGER,
    category INTEGER, score REAL, missing TEXT, lost INTEGER, answer INTEGER, repeats INTEGER, rest TEXT,
    UNIQUE (model, question, series, number)
);
CREATE TABLE prompts (question INTEGER PRIMARY KEY, prompt TEXT, target TEXT);
"""

_INSERT = """
INSERT INTO trials (model, question, series, number, category, score, missing, lost, answer, repeats, rest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_COUNTS = f"coalesce(missing, '') NOT IN ('{COPY_REASON}', '{NOT_THERE}')"
"""Condition of a trial that is there and no copy."""

_IS_THERE = f"coalesce(missing, '') != '{NOT_THERE}'"
"""Condition of a trial that a log has, and not only a run that was made of logs."""

_TEXT = "answer * max(repeats) OVER (PARTITION BY model, question, answer)"
"""What tells the texts of answers apart that may be copies of one another; 0 for other answers."""

_REST = (
    *("text", "finish_reason", "extracted", "reason", "tokens", "latency", "finished_at"),
    *("discarded", "redrawn"),
)


@dataclass(frozen=True)
class CombinedLogs:
    """The contents of several logs together."""

    models: tuple[str, ...]  # in the order of their first trial
    tasks: Mapping[str, tuple[str, ...]]  # the ids of each task's questions
    # categories named by each task's trials: the largest plus 1; 0 where the logs have scores
    categories: Mapping[str, int]
    scores: Mapping[str, tuple[float, ...]]  # the different scores of each task's trials, ascending
    weights: Mapping[str, tuple[float, ...]]  # what the logs themselves say the categories are worth
    rules: frozenset[str]  # the stopping rules of the runs that the trials come from
    clusters: Mapping[str, tuple[str, ...]]  # the group of each question of the tasks that have groups
    # what a person should know: copies, and questions that not all models were asked
    notes: tuple[str, ...]
    copies: int = 0  # answers that are copies of earlier ones; they are missing trials
    alike: bool = False  # whether every model has as many trials of each question as the others
    # causes of discarded draws for which another draw counts in every log
    redrawn: frozenset[DiscardCause] = frozenset()

    @property
    def most_scores(self) -> int:
        """Different scores of the task that has the most of them; 0 and 1 always count."""
        return max((len({0.0, 1.0, *found}) for found in self.scores.values()), default=0)


@dataclass
class _GatheredTask:
    """One task while logs are read."""

    questions: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    categories: int = 0
    scores: set[float] = field(default_factory=set)
    # version and weights, and by which log
    declared: dict[str, tuple[Any, Path]] = field(default_factory=dict)


class Gatherer:
    """Takes one log after another."""

    def __init__(self, folder: Path, scores: ScoreRange | None, *, independent: bool) -> None:
        self._range = scores
        self._audit = IndependenceAudit({}, independent=independent)
        self._db = sqlite3.connect(folder / GATHERED, isolation_level=None)
        self._db.executescript(_SCHEMA)
        self._models: dict[str, int] = {}
        self._tasks: dict[str, _GatheredTask] = {}
        self._questions: dict[tuple[str, str], int] = {}
        self._contents: dict[int, tuple[str, str, Path]] = {}
        self._worded: set[int] = set()  # questions that a run of ours asked in several wordings
        self._clusters: dict[int, str] = {}
        self._rules: set[str] = set()
        self._read: list[str] = []
        self._next: dict[tuple[int, int, int], int] = {}
        self._log_of: dict[tuple[int, int], int] = {}  # the first log with a model's trials of a question
        self._together: dict[str, None] = {}  # models whose trials of one question are in several logs
        self._uuids: dict[str, Path] = {}
        self._files: dict[tuple[bytes, ...], Path] = {}
        self._logs = 0
        self._first: dict[int, Path] = {}  # the first log with trials of a model
        self._copies = 0
        self._redrawn: Counter[str] = Counter()  # trials of each model in which another draw counts
        self._redrawn_causes: set[DiscardCause] = set()  # why draws of those were given up
        self._lost_causes: set[frozenset[DiscardCause]] = set()  # why draws of each other trial were
        self._repeats = False  # whether an answer may be a copy
        self._in_order = True

    def close(self) -> None:
        """Close the table."""
        self._db.close()

    def add(self, log: Log) -> int:
        """Take the trials of one log; return how many."""
        self._logs += 1
        self._read += log.notes
        self._in_order &= log.format == RUN
        series = 0 if log.numbered else self._logs
        of_tasks = {"version": log.versions, WORTH: log.weights, "weight in the score": log.shares}
        for kind, said in of_tasks.items():
            for task, value in said.items():
                self._require_same(log, kind, task, value)
        differing: list[Flaw] = []
        count, models = 0, set()
        self._db.execute("BEGIN")
        for found in checked(log):
            models.add(found.model)
            flaw = self._add(log, found, series)
            if flaw is not None:
                differing.append(flaw)
            count += 1
        self._db.execute("COMMIT")
        if differing:
            raise flawed(log.path, differing[:10], len(differing))
        if not count:
            raise OutcomesError(f"{log.path}: there are no trials in it")
        self._require_other_bytes(log.path, models)
        return count

    def _require_other_bytes(self, path: Path, models: set[str]) -> None:
        """Refuse a copy of an earlier file: its trials would count twice."""
        if not path.is_file():
            return
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        earlier = self._files.setdefault((digest, *sorted(name.encode() for name in models)), path)
        if earlier != path:
            raise OutcomesError(f"{path} has the same contents as {earlier}; give it once")

    def _add(self, log: Log, found: Found, series: int) -> Flaw | None:
        if found.uuid:
            earlier = self._uuids.setdefault(found.uuid, log.path)
            if earlier != log.path:
                raise OutcomesError(
                    f"{log.path}: {found.place} is in {earlier} too: one is a retry of the other; give only "
                    "the later one"
                )
        self._rules |= {log.rule, found.rule} - {""}
        if found.weights:
            self._require_same(log, WORTH, found.task, found.weights)
        task = self._tasks.setdefault(found.task, _GatheredTask())
        model = self._models.get(found.model)
        if model is None:
            model = self._models[found.model] = len(self._models)
            self._first[model] = log.path
            self._audit.watch(found.model)
        question = self._question(task, found)
        if self._range is not None and found.score is not None:
            found = replace(found, category=self._range.category(found.score), score=None)
        elif self._range is not None and found.category is not None:
            self._require_steps(log, found)
        if found.category is not None:
            task.categories = max(task.categories, found.category + 1)
        elif found.score is not None:
            task.scores.add(found.score)
        number = found.number
        if number is None:
            if self._log_of.setdefault((model, question), self._logs) != self._logs:
                self._together[found.model] = None
            number = self._next.get((model, question, series), 0)
            self._next[model, question, series] = number + 1
        repeats, answer = audited(self._audit, log, found)
        self._repeats |= repeats
        self._copies += found.missing == COPY_REASON
        rest = {name: value for name in _REST if (value := getattr(found, name))}
        if repeats:
            rest["repeats"] = True
        flaw = self._differing(log, found, question) or self._other_group(found, question)
        if question in self._worded:
            rest |= {"prompt": found.prompt, "target": found.target}
        self._redrawn[found.model] += found.redrawn
        lost = bool(found.discarded) and not found.redrawn
        if lost:
            self._lost_causes.add(frozenset(found.discarded))
        else:
            self._redrawn_causes.update(found.discarded)
        result = (found.category, found.score, found.missing, lost, answer, repeats, json.dumps(rest))
        try:
            self._db.execute(_INSERT, (model, question, series, number, *result))
        except sqlite3.IntegrityError:
            words = f"trial {number} of model {found.model!r} on question {found.question!r} appears twice"
            first = self._first[model]
            if first != log.path:
                words += f"; trials of that model are in {first} too. {_APART}"
            raise OutcomesError(f"{log.path}: {found.place}: {words}") from None
        return flaw

    def _other_group(self, found: Found, question: int) -> Flaw | None:
        """Say so if another trial puts the question into another group."""
        if found.cluster:
            known = self._clusters.setdefault(question, found.cluster)
        else:
            known = found.cluster
        if known == found.cluster:
            return None
        words = f"question {found.question!r} is in the group {found.cluster!r} here and in {known!r} before"
        return Flaw(found.place, f"{words}; a question has one group")

    def _require_steps(self, log: Log, found: Found) -> None:
        """Refuse a category that is no step of the range."""
        if log.weights.get(found.task) != self._range:
            raise OutcomesError(
                f"{log.path}: {found.place} has a category, and a range is of scores; name their column with "
                "--metric score, or leave the range out"
            )

    def _question(self, task: _GatheredTask, found: Found) -> int:
        known = self._questions.get((found.task, found.question))
        if known is not None:
            return known
        number = self._questions[found.task, found.question] = len(self._questions)
        task.questions.append(found.question)
        task.numbers.append(number)
        if found.prompt or found.target:
            row = (number, found.prompt, found.target)
            self._db.execute("INSERT INTO prompts (question, prompt, target) VALUES (?, ?, ?)", row)
        return number

    def _differing(self, log: Log, found: Found, question: int) -> Flaw | None:
        """Say so if an earlier log asks something else under this id."""
        if not found.content:
            return None
        known = self._contents.setdefault(question, (log.format, found.content, log.path))
        if known[0] != log.format or known[1] == found.content:
            return None
        if question in self._worded:
            return None
        where = "earlier in this file"
        if known[2] != log.path:
            where = f"in {known[2]}"
        elif found.of_run:
            self._worded.add(question)
            return None
        return Flaw(
            found.place,
            f"question {found.question!r} of task {found.task!r} is not what it is {where}: another revision "
            "of the dataset or prompt",
        )

    def _require_same(self, log: Log, kind: str, name: str, said: Any) -> None:
        """Refuse a log that says something else about a task than an earlier one."""
        known = self._tasks.setdefault(name, _GatheredTask()).declared.setdefault(kind, (said, log.path))
        if known[0] != said:
            raise OutcomesError(
                f"{log.path}: the {kind} of its task {name!r} is {said}, in {known[1]} it is {known[0]}: the "
                "results cannot be compared"
            )

    def gathered(self) -> CombinedLogs:
        """Return what all logs hold together."""
        self._require_single_rows()
        tasks = {name: task for name, task in self._tasks.items() if task.questions}
        questions = {name: tuple(task.questions) for name, task in tasks.items()}
        categories = {name: task.categories for name, task in tasks.items()}
        scores = {name: tuple(sorted(task.scores)) for name, task in tasks.items()}
        weights = {name: task.declared[WORTH][0] for name, task in tasks.items() if WORTH in task.declared}
        notes = (*self._read, *self._audit.remarks(), *self._notes(tasks))
        groups = {name: self._groups(name, task) for name, task in tasks.items() if self._clusters}
        told = weights, frozenset(self._rules), groups, notes, self._copies
        redrawn = frozenset(self._redrawn_causes)
        if any(redrawn >= causes for causes in self._lost_causes):
            redrawn = frozenset()  # some logs take for lost what others count
        return CombinedLogs(
            tuple(self._models), questions, categories, scores, *told, self._is_alike(), redrawn
        )

    def _is_alike(self) -> bool:
        """Tell whether the models have as many trials of each question; one that a model lacks is lost."""
        counts = np.zeros((len(self._models), len(self._questions)), dtype=np.int64)
        query = f"SELECT model, question, count(*) FROM trials WHERE {_COUNTS} GROUP BY model, question"  # noqa: S608
        for model, question, count in self._db.execute(query):
            counts[model, question] = count
        fewest = np.where(counts > 0, counts, counts.max(initial=0)).min(
            axis=1, initial=counts.max(initial=0)
        )
        whole = np.where(counts > 0, counts, fewest[:, None])
        return bool((whole == whole[:1]).all())

    def _groups(self, name: str, task: _GatheredTask) -> tuple[str, ...]:
        """Return the group of each question of a task; one without is refused."""
        for question, number in zip(task.questions, task.numbers, strict=True):
            if number not in self._clusters:
                raise OutcomesError(
                    f"question {question!r} of task {name!r} has no group, and others have; name the column "
                    "with --map cluster=COLUMN, or leave the groups out"
                )
        return tuple(self._clusters[number] for number in task.numbers)

    def _require_single_rows(self) -> None:
        """Refuse a table whose trials have no numbers if every row is there several times."""
        unnumbered = {(model, question) for model, question, series in self._next if series == 0}
        equal_rows = (
            "SELECT model, question, count(*) FROM trials WHERE series = 0 AND "
            "coalesce(category, score) IS NOT NULL GROUP BY model, question, category, score, rest"
        )
        rows = self._db.execute(equal_rows) if unnumbered else ()
        counts = [count for *cell, count in rows if tuple(cell) in unnumbered]
        times = gcd(*counts)
        again = sum(counts) - len(counts)
        if times > 1 and again >= FEWEST_AGAIN:
            raise OutcomesError(
                f"every row is there {times} times, or a multiple of that: {again:,} rows have the model, "
                "question and result of an earlier one, and a row that is there twice is no evidence. Give "
                "each once; of models that never vary, number the trials in a column (--map repeat=COLUMN)"
            )

    def _notes(self, tasks: Mapping[str, _GatheredTask]) -> Iterator[str]:
        """Yield whose other draws count, questions that a model was not asked, and how unequal counts are."""
        for model, redrawn in (+self._redrawn).items():
            yield Coded("warning/redrawn", f"{model}: {redrawn_words(redrawn)}")
        if self._together:
            yield Coded(
                "outcomes/together",
                "answers of several files to the same questions count as further trials of one model: "
                f"{listed(self._together)}. {_APART}",
            )
        for name, task in tasks.items():
            for model, number in self._models.items():
                rows = self._db.execute("SELECT DISTINCT question FROM trials WHERE model = ?", (number,))
                asked = {row[0] for row in rows}
                lacking = [
                    question
                    for question, place in zip(task.questions, task.numbers, strict=True)
                    if place not in asked
                ]
                if lacking:
                    named = ", ".join(lacking[:MOST_NAMED])
                    more = ""
                    if len(lacking) > MOST_NAMED:
                        more = f" and {len(lacking) - MOST_NAMED:,} more"
                    yield (
                        f"task {name!r}: model {model!r} has no trial of {len(lacking):,} of "
                        f"{len(task.questions):,} questions: {named}{more}"
                    )

    def cells(self) -> TrialCells:
        """Return where every trial of the logs belongs; questions are in the order of :meth:`gathered`."""
        return self._cells(_IS_THERE, any_order=True)[0]

    def answers(self, *, any_order: bool) -> tuple[TrialCells, Ints, Ints | None]:
        """Return where every trial but copies belongs, and its category or score as a whole number.

        It is −1 without an answer, and if another draw than the first has given it. If answers may be copies,
        a number above 0 tells their texts apart; it is 0 for others.
        """
        return self._cells(_COUNTS, any_order)

    def _cells(self, chosen: str, any_order: bool) -> tuple[TrialCells, Ints, Ints | None]:
        """Return chosen trials; of a cell in random order if `any_order`, as files may be sorted."""
        ordered = [number for task in self._tasks.values() for number in task.numbers]
        place = np.empty(len(ordered), dtype=np.int64)
        place[ordered] = np.arange(len(ordered))
        query = (
            "SELECT id, model, question, "  # noqa: S608
            "CASE WHEN lost THEN -1 ELSE CAST(coalesce(category, score, -1) AS INTEGER) END, "
            f"{_TEXT if self._repeats else 0} "
            f"FROM trials WHERE {chosen} ORDER BY model, question, series, number"
        )
        table = np.fromiter(self._db.execute(query), dtype=np.dtype("i8, i8, i8, i8, i8"))
        if any_order and not self._in_order:  # runs are in the order of their trials
            table = table[random_order(table["f1"], table["f2"])]
        rows, model, question, category, text = (
            table[name].astype(np.int64) for name in table.dtype.names or ()
        )
        starts = np.flatnonzero(np.r_[True, (np.diff(model) != 0) | (np.diff(question) != 0)])
        lengths = np.diff(np.r_[starts, rows.size])
        repeat = np.arange(rows.size) - np.repeat(starts, lengths)
        cells = TrialCells(rows, model, place[question], repeat)
        return cells, category, np.where(category < 0, 0, text) if self._repeats else None

    def trials(self, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Return the trials that are there, by row number: the fields of :class:`Found` that are known."""
        query = (
            "SELECT t.id, t.category, t.score, t.missing, t.rest, p.prompt, p.target FROM trials AS t "
            "LEFT JOIN prompts AS p ON p.question = t.question "
            "WHERE t.id IN (SELECT value FROM json_each(?))"
        )
        found = {}
        for row, category, score, missing, rest, prompt, target in self._db.execute(
            query, [json.dumps(rows)]
        ):
            result = {"category": category, "score": score, "missing": missing}
            found[row] = {**result, "prompt": prompt or "", "target": target or "", **json.loads(rest)}
        return found
