"""The answers of a run that are chosen for labels: at random, before anything is known about them.

A question in a pass is chosen with the answers of all models to it, by a number that is hashed from the run
and the place of the question in the order of asking. A call chooses those with the smallest numbers among
what is stored by then. So the choice is that of the run, and independent of what was answered, and a later
call with a larger share keeps what was chosen before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import UsageError
from adaptive_eval.interop.run_tables import RunDescription
from adaptive_eval.interop.stored_config import session_of_file
from adaptive_eval.store.cells import OutcomeColumns
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import AGAINST, ScoreRange, TrialKey
from adaptive_eval.views.files import write_files
from adaptive_eval.views.label_page import label_page
from adaptive_eval.views.trials import answer_text, prompt_text
from scorio.arrays import Bools, Floats, Ints

FILE, PAGE, CALLS = "labels.jsonl", "labels.html", "labels.calls.json"
"""Names of files in a run's folder: to be filled in, to fill it in with, and what each call chose from."""

_DIGITS = 6  # of a chance


@dataclass(frozen=True)
class LabelCall:
    """One choice: how many trials were stored, and how many questions were chosen, with earlier calls."""

    stored: int
    chosen: int


@dataclass(frozen=True)
class Chosen:
    """What was chosen by all calls together."""

    steps: Ints  # the steps that could be chosen, those of the last call
    marked: Bools  # which of them are
    own: Floats  # the chance at which each was chosen by its own call; 0 where it is not

    @property
    def chances(self) -> dict[int, float]:
        """The chosen steps with the chance of each."""
        steps = self.steps[self.marked]
        own = self.own[self.marked]
        return dict(zip(steps.tolist(), own.tolist(), strict=True))

    @property
    def chance(self) -> float:
        """The chance at which each was chosen by any call."""
        if self.marked.size:
            return float(self.marked.mean())
        return 1.0


@dataclass(frozen=True)
class LabelChoices:
    """The choices of a run."""

    spec: SessionSpec
    columns: OutcomeColumns
    key: bytes  # of the hashes
    calls: tuple[LabelCall, ...] = ()

    @classmethod
    def from_run(cls, reader: RunReader) -> LabelChoices:
        """Return the choices of the calls that were made so far."""
        meta = reader.meta()
        file = reader.directory / CALLS
        told = [meta.get(name, "") for name in ("identity", "seed", "name")]
        key = blake2b(json.dumps(told).encode(), digest_size=32).digest()
        calls: list[LabelCall] = []
        if file.exists():
            try:
                calls = [LabelCall(**call) for call in json.loads(file.read_text("utf-8"))]
            except (TypeError, ValueError):
                raise UsageError(
                    f"{file} is damaged; it says from what answers were chosen. Put it back"
                ) from None
        return cls(session_of_file(reader), reader.outcomes(), key, tuple(calls))

    def progress(self, stored: int) -> dict[str, int]:
        """Return by model how many steps were stored without a gap, of so many trials."""
        found = {}
        for number, name in enumerate(self.columns.models):
            steps = np.unique(self.columns.step[:stored][self.columns.model[:stored] == number])
            gaps = np.flatnonzero(steps != np.arange(steps.size))
            found[name] = int(gaps[0]) if gaps.size else steps.size
        return found

    def pool(self, stored: int) -> Ints:
        """Return the steps that can be chosen: all models are asked the same, and bets read them.

        Of a model's own rounds these are the steps that ask each question once.
        """
        last = max(self.progress(stored).values(), default=0)
        steps = np.arange(last)
        board = self._board
        early = np.ones(last, dtype=bool)
        task = board.run_sequence.task(0, last)
        for number, begin, end in board.run_sequence.spans(0, last):
            cells = board.cells[number]
            if cells.rounds is not None and end > begin:
                size = cells.sequence.questions * cells.sequence.samples_per_prompt
                early[task == number] = cells.rounds.since(begin, end) < size
        asked = np.full(last, -1)
        alike = np.ones(last, dtype=bool)
        here = self.columns.step[:stored] < last
        step = self.columns.step[:stored][here]
        question = self.columns.question[:stored][here]
        asked[step] = question
        np.logical_and.at(alike, step, asked[step] == question)
        return steps[early & alike & (asked >= 0)]

    @cached_property
    def _board(self) -> SessionAnswers:
        return SessionAnswers(self.spec)

    def number(self, text: str) -> float:
        """Return a number in [0, 1) for a text, the same at every call."""
        return int.from_bytes(self._hash(text, 8), "big") / 2.0**64

    def id(self, key: TrialKey) -> str:
        """Return the id of an answer, which says nothing about its model."""
        return self._hash(f"answer {key.index} {key.model}", 8).hex()

    def _hash(self, text: str, size: int) -> bytes:
        return blake2b(text.encode(), key=self.key, digest_size=size).digest()

    @cached_property
    def chosen(self) -> Chosen:
        """What all calls together have chosen."""
        steps = np.zeros(0, dtype=np.int64)
        marked = np.zeros(0, dtype=bool)
        own = np.zeros(0)
        for call in self.calls:
            before, was, chances = steps, marked, own
            steps = self.pool(call.stored)
            numbers = np.array([self.number(f"step {step}") for step in steps.tolist()])
            known = np.isin(steps, before)
            old = np.zeros(steps.size, dtype=bool)
            old[known] = was
            limit = np.sort(numbers)[call.chosen - 1]
            marked = old | (numbers <= limit)
            own = np.zeros(steps.size)
            own[known] = chances
            share = marked.mean()
            earlier = 0.0
            if was.size:
                earlier = was.mean()
            of_old = 0.0
            if earlier < 1.0:
                of_old = (share - earlier) / (1.0 - earlier)
            new = marked & ~old
            own[new] = np.where(known, of_old, share)[new]
        return Chosen(steps, marked, own.round(_DIGITS))

    def larger(self, share: float | None, number: int | None) -> LabelChoices:
        """Return the choices with one more call, for a share of the questions asked so far, or so many.

        Raises
        ------
        UsageError
            If there is nothing to choose from, or not so much, or as much was chosen before.
        """
        stored = len(self.columns)
        size = self.pool(stored).size
        if not size:
            raise UsageError("no question has been answered by a model yet; choose once the run has answers")
        wanted = number if number is not None else max(1, round((share or 0.0) * size))
        if wanted > size:
            raise UsageError(
                f"--label {wanted}: the run has asked {size:,} questions so far, repeats included"
            )
        had = int(self.chosen.marked.sum())
        if had and wanted <= had:
            raise UsageError(
                f"--label: {had:,} of {size:,} questions are chosen already ({had / size:.3g}); "
                "give a larger share, or a larger number"
            )
        calls = (*self.calls, LabelCall(stored, wanted))
        return LabelChoices(self.spec, self.columns, self.key, calls)


@dataclass(frozen=True)
class Written:
    """What a call has written: the rows in the file, those that are new, and those that have a label."""

    directory: Path
    rows: int
    new: int
    filled: int
    chance: float  # of an answer to be in the file


def offer_labels(reader: RunReader, about: RunDescription, asked: str) -> Written:
    """Choose answers for labels, and write the files to fill in; what is filled in already is kept.

    Parameters
    ----------
    reader : RunReader
        The run.
    about : RunDescription
        Its models, categories and targets.
    asked : str
        A share of the questions asked so far, such as ``0.1``, or a whole number of them.
    """
    choices = LabelChoices.from_run(reader).larger(*_share_or_number(asked))
    chosen = choices.chosen
    own = chosen.chances
    found, tasks = [], {}
    for record in reader.trials():
        chance = own.get(record.request.key.index)
        if chance is not None and record.completion is not None:
            row = _row(record, choices.id(record.request.key), chance, about.target(record))
            found.append(row)
            tasks[row["id"]] = record.request.task
    directory = reader.directory
    if not any(row["prompt"] or row["answer"] for row in found):
        raise UsageError(
            f"{directory} keeps no texts of its answers, so there is nothing to read and label; labels that "
            "you have are read by rescore --labels with model, trial and pi"
        )
    kept = _kept(directory / FILE, tasks)
    new = [row for row in found if row["id"] not in kept]
    new.sort(key=lambda row: choices.number(f"order {row['id']}"))
    rows = [*kept.values(), *new]
    allowed = allowed_scores(about.weights, about.categories)
    page = label_page(reader.meta()["name"], rows, [tasks[row["id"]] for row in rows], allowed)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    calls = json.dumps(list(map(asdict, choices.calls))) + "\n"
    write_files(directory, {CALLS: calls, FILE: text, PAGE: page})
    filled = sum(row.get("score") is not None for row in rows)
    return Written(directory, len(rows), len(new), filled, chosen.chance)


def _share_or_number(asked: str) -> tuple[float | None, int | None]:
    """Return a share, or a whole number, of what was written.

    Examples
    --------
    >>> _share_or_number("0.1"), _share_or_number("40")
    ((0.1, None), (None, 40))
    """
    try:
        number = float(asked)
    except ValueError:
        number = 0.0
    if asked.isdecimal() and number >= 1:
        return None, int(asked)
    if 0.0 < number <= 1.0:
        return number, None
    raise UsageError(
        f"--label {asked}: give a share of the questions asked so far, above 0 and up to 1.0, such as 0.1, "
        "or a whole number of them, such as 40"
    )


def _kept(file: Path, known: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the rows of an earlier call by id, as they are filled in."""
    if not file.exists():
        return {}
    rows: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(file.read_text("utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            rows[row["id"]] = row
        except (KeyError, TypeError, ValueError):
            raise UsageError(f"{file}, line {number}: this is no row of labels; correct it first") from None
    strange = [name for name in rows if name not in known]
    if strange:
        raise UsageError(
            f"{file}: {len(strange)} rows are of no answer that this run has chosen, such as {strange[0]!r}; "
            "move the file away"
        )
    return rows


def _row(record: TrialRecord, name: str, chance: float, target: str | None) -> dict[str, Any]:
    """Return a row; its target is the answer that a head-to-head judge compares with, if there is one."""
    if record.score is not None and AGAINST in record.score.signals:
        target = str(record.score.signals[AGAINST])
    return {
        "id": name,
        "question": record.request.question,
        "prompt": prompt_text(record),
        "answer": answer_text(record.completion),
        "target": target,
        "pi": chance,
        "score": None,
    }


def allowed_scores(
    weights: Mapping[str, tuple[float, ...]], categories: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return by task what a label may be: the two ends of a range, or the worth of each category by name."""
    found: dict[str, Any] = {}
    for task, worth in weights.items():
        if isinstance(worth, ScoreRange):
            found[task] = list(worth)
        else:
            names = list(categories.get(task, ()))
            found[task] = dict(zip(names or [f"{value:g}" for value in worth], worth, strict=True))
    return found
