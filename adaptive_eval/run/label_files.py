"""Files of labels: JSONL or CSV, by people or by a dearer judge. All mistakes are told at once, by line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isclose, isfinite
from pathlib import Path
from typing import Any

from adaptive_eval.errors import UsageError
from adaptive_eval.trial import TrialKey

MOST_SHOWN = 20
"""Mistakes of a file that are told."""


@dataclass(frozen=True)
class KnownAnswer:
    """An answer that a label may be of."""

    task: str
    question: str
    chance: float | None  # at which a call of ``samples --label`` has chosen it; None for none


@dataclass(frozen=True)
class Label:
    """One row of a file: an answer that was chosen, and its score."""

    line: int
    key: TrialKey
    score: float | None  # in the units of the task; None where it is left blank
    chance: float | None
    by_id: bool


@dataclass(frozen=True)
class LabelFile:
    """Reads files of labels of one run."""

    ids: Mapping[str, TrialKey]
    answers: Mapping[TrialKey, KnownAnswer]
    allowed: Mapping[str, Any]  # by task, as :func:`adaptive_eval.run.label_choice.allowed_scores`

    def read(self, path: Path) -> list[Label]:
        """Return the labels of a file.

        Raises
        ------
        UsageError
            With every mistake and its line.
        """
        found: dict[TrialKey, Label] = {}
        problems: list[str] = []
        for line, row in _rows(path, problems):
            try:
                label = self._label(line, row)
            except ValueError as error:
                problems.append(f"line {line}: {error}")
                continue
            before = found.setdefault(label.key, label)
            if before.score is None:
                found[label.key] = label
            elif label.score is not None and label.score != before.score:
                problems.append(f"line {line}: this answer has another score on line {before.line}")
        with_chance = [one for one in found.values() if one.chance is not None]
        if with_chance and len(with_chance) < len(found):
            without = [one for one in found.values() if one.chance is None]
            problems += [f"line {one.line}: pi is missing, and other rows have one" for one in without]
        if not found and not problems:
            problems.append("it holds no row")
        if problems:
            shown = problems[:MOST_SHOWN]
            more = len(problems) - len(shown)
            if more:
                shown.append(f"and {more:,} more")
            raise UsageError(f"{path}: {_counted(len(problems))}\n  " + "\n  ".join(shown))
        return list(found.values())

    def _label(self, line: int, row: Mapping[str, Any]) -> Label:
        name = row.get("id")
        key = self._by_place(row) if name is None else self.ids.get(str(name))
        if key is None:
            raise ValueError(f"id {name!r} is of no answer of this run that was chosen for labels")
        known = self.answers[key]
        chance = _chance(row.get("pi"))
        if name is not None and chance is not None:
            own = known.chance
            if own is None or not isclose(chance, own, rel_tol=0.0, abs_tol=2e-6):
                raise ValueError(f"pi is {chance:g}; this answer was chosen at {own or 0.0:g}. Put it back")
        return Label(line, key, self._score(row.get("score"), known.task), chance, name is not None)

    def _by_place(self, row: Mapping[str, Any]) -> TrialKey:
        """Return the answer of a row without id: model, question and trial, as `samples --json` has them."""
        model = row.get("model")
        trial = row.get("trial", row.get("step"))
        if model is None or trial is None:
            raise ValueError("give id; or model, question and trial (the step, as samples --json has it)")
        try:
            key = TrialKey(str(model), int(trial))
        except (TypeError, ValueError):
            raise ValueError(f"trial {trial!r} is no whole number") from None
        known = self.answers.get(key)
        if known is None:
            raise ValueError(f"the run has no answer of {model!r} at trial {trial}")
        if row.get("question") is not None and str(row["question"]) != known.question:
            raise ValueError(f"trial {trial} of {model!r} asks {known.question!r}, not {row['question']!r}")
        return key

    def _score(self, given: Any, task: str) -> float | None:
        rule = self.allowed[task]
        if given is None or given == "":
            return None
        if isinstance(given, str) and isinstance(rule, Mapping) and given in rule:
            return float(rule[given])
        try:
            score = float(given)
        except (TypeError, ValueError):
            score = float("nan")
        if isinstance(rule, Mapping):
            if any(isclose(score, worth, abs_tol=1e-9) for worth in rule.values()):
                return score
            choices = ", ".join(f"{name} ({worth:g})" for name, worth in rule.items())
            raise ValueError(f"score {given!r} is not in the rubric of {task}: {choices}")
        if isfinite(score) and rule[0] <= score <= rule[1]:
            return score
        raise ValueError(f"score {given!r} is not in the rubric of {task}: from {rule[0]:g} to {rule[1]:g}")


def _counted(number: int) -> str:
    if number == 1:
        return "1 mistake"
    return f"{number:,} mistakes"


def _chance(given: Any) -> float | None:
    if given is None or given == "":
        return None
    try:
        chance = float(given)
    except (TypeError, ValueError):
        chance = float("nan")
    if not 0.0 < chance <= 1.0:
        raise ValueError(
            f"pi is {given!r}: give the chance at which the answer was chosen, above 0 and up to 1"
        )
    return chance


def _rows(path: Path, problems: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of a file with their lines; a line that is no row is a problem."""
    read = _json_rows
    if path.suffix.lower() == ".csv":
        read = _csv_rows
    try:
        yield from read(path, problems.append)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: this is no text in UTF-8") from None


def _csv_rows(path: Path, problem: Callable[[str], None]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        if not {"id", "model"} & {*(reader.fieldnames or ())}:
            problem("line 1: name the columns: id, or model, question and trial; score; pi")
            return
        for row in reader:
            yield reader.line_num, {name: value for name, value in row.items() if value not in (None, "")}


def _json_rows(path: Path, problem: Callable[[str], None]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with path.open(encoding="utf-8") as file:
        for line, text in enumerate(file, start=1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except ValueError:
                row = None
            if isinstance(row, dict):
                yield line, row
            else:
                problem(f"line {line}: this is no JSON object")
