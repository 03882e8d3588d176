"""Rows to questions: fields mapped by name, ids made or checked, options and targets read."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from adaptive_eval.options.mistakes import nearest
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.tasks.messages import Unreadable, media_parts, read_messages, read_tools
from adaptive_eval.tasks.rows import Row
from adaptive_eval.trial import GIVEN, Question

Column: TypeAlias = str | tuple[str, ...]
"""A column of the dataset; for ``choices`` also a tuple of columns, one for each option."""

Columns: TypeAlias = Mapping[str, Column]
"""Name used here to the dataset's column."""

DEFAULT_FIELDS: Mapping[str, str] = MappingProxyType(
    {"id": "id", "input": "input", "target": "target", "choices": "choices"}
)
"""Columns looked for where the config maps none."""

USUAL_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "input": ("question", "problem", "input", "prompt", "text"),
        "target": ("answer", "target", "solution", "label", "expected"),
        "choices": ("choices", "options"),
    }
)
"""Columns that are probably the question, the right answer and the options, the likeliest first."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Labels of the options, in order."""

CONVERSATION = "messages"
"""Name to map to a column of conversations; they take the prompt's place."""

TOOLS_GIVEN = "tools as given"
"""The field of a question that holds its own tools: a name that no template can use."""

MAY_BE_EMPTY = "?"
"""Ending of a column in ``fields`` that may be empty, for a prompt: ``{starter: starter_code?}``."""

_LONGEST_ID = 200

_JSON_TARGETS = ("json", "tool_calls")
"""Scorers whose target may be an object or a list, which becomes its JSON text."""


@dataclass
class QuestionReader:
    """Turns rows into questions and collects everything that is wrong with them."""

    section: TaskConfig
    wanted: tuple[str, ...]  # fields that the prompt asks for
    folder: Path | None = None  # where the files of a row are looked for; None: it can name none
    problems: list[tuple[int, str]] = field(default_factory=list)

    def read(self, rows: Sequence[Row]) -> list[tuple[Row, Question]]:
        """Return a question for each row that gives one, with its row."""
        names = self._names(rows)
        if names is None:
            return []
        found: list[tuple[Row, Question]] = []
        line_of: dict[str, int] = {}
        for row in rows:
            question = self._question(row, names)
            if question is None:
                continue
            if question.id in line_of and self.section.duplicates == "skip":
                continue
            if question.id in line_of:
                first = line_of[question.id]
                same = "this very question is"
                if "id" in names:
                    same = f"the id {question.id!r} is"
                self.problems.append(
                    (row.line, f"{same} already on line {first}; every question needs its own")
                )
                continue
            line_of[question.id] = row.line
            found.append((row, question))
        return found

    def _names(self, rows: Sequence[Row]) -> dict[str, Column] | None:
        """Return the columns in use, or None when the dataset lacks one altogether."""
        present = dict.fromkeys(name for row in rows for name in row.values)
        names: dict[str, Column] = {name: name for name in self.section.media}
        names |= self.section.fields
        if isinstance(self.section.tools, str):
            names[TOOLS_GIVEN] = self.section.tools
        for name, column in DEFAULT_FIELDS.items():
            is_needed = name == "input" and CONVERSATION not in self.section.fields
            is_needed |= name == "target" and getattr(self.section.scorer, "against", None) is None
            if is_needed or column in present:
                names.setdefault(name, column)
        complete = True
        for name, columns in names.items():
            for column in (columns,) if isinstance(columns, str) else columns:
                if not any(_has(row.values, _bare(row.values, column)) for row in rows):
                    complete = False
                    words = f"no row has the column {column!r}{_near(column, present)}"
                    free = [one for one in USUAL_COLUMNS.get(name, ()) if one in present]
                    usual = next((one for one in free if one not in names.values()), "COLUMN")
                    advice = f"map it with fields: {{{name}: {usual}}}; columns: {', '.join(present)}"
                    self.problems.append((0, f"{words}; {advice}"))
        known = {**names, **present}
        for name in self.wanted:
            if name not in known:
                complete = False
                advice = f"for a brace in the text write {{{{{name}}}}}"
                words = f"the prompt asks for {{{name}}}, which is no field{_near(name, known)}"
                usable = ", ".join(field for field in known if field != "target")
                self.problems.append((0, f"{words}; fields: {usable}; {advice}"))
        if complete:
            return names
        return None

    def _question(self, row: Row, names: Columns) -> Question | None:
        values: dict[str, Any] = dict(row.values)
        media = self.section.media
        json_target = self.section.scorer.has(*_JSON_TARGETS)
        choices: tuple[str, ...] = ()
        labels: Sequence[str] = ()
        wrong: list[str] = []
        by_default = {name: name for name in self.wanted if name not in names}
        for name, column in {**names, **by_default}.items():
            try:
                if name == "choices":
                    choices, labels = _options(row.values, column)
                    values[name] = option_lines(choices)
                elif name == CONVERSATION:
                    values[GIVEN] = _conversation(_get(row.values, column), column, self.folder)
                elif name in media:
                    value = None
                    if _has(row.values, str(column)):
                        value = _get(row.values, column)
                    values[name] = media_parts(value, media[name], self.folder)
                elif name == TOOLS_GIVEN:
                    values[name] = read_tools(_get(row.values, column))
                elif name == "target" and json_target and not _is_plain(_get(row.values, column)):
                    values[name] = json.dumps(_get(row.values, column), ensure_ascii=False)
                elif isinstance(column, str) and column != (bare := _bare(row.values, column)):
                    value = _get(row.values, bare)
                    values[name] = "" if value in ("", None) else as_text(value, bare, lines=True)
                else:
                    values[name] = as_text(_get(row.values, column), column, lines=name not in DEFAULT_FIELDS)
            except Unreadable as error:
                wrong.append(str(error))
        target = values.get("target")
        if self.section.target_pattern is not None and isinstance(target, str):
            found = re.findall(self.section.target_pattern, target)
            if found:
                values["target"] = found[-1]
            else:
                wrong.append(f"target_pattern finds nothing in {target!r:.60}")
        if wrong:
            self.problems += [(row.line, words) for words in wrong]
            return None
        if "id" in names:
            identity = values["id"]
        else:
            identity = _content_id(row.values)
        if len(identity) > _LONGEST_ID or not identity.isprintable():
            words = f"the id must be printable and at most {_LONGEST_ID} characters long"
            self.problems.append((row.line, words))
            return None
        if values.setdefault("target", "") in labels:
            values["target"] = LETTERS[labels.index(values["target"])]
        return Question(self.section.name, identity, values["target"], values, choices)


def option_lines(choices: Sequence[str]) -> str:
    r"""Return options as the lines a prompt shows: ``A. first``, ``B. second``.

    Examples
    --------
    >>> option_lines(("red", "blue"))
    'A. red\nB. blue'
    """
    return "\n".join(f"{letter}. {text}" for letter, text in zip(LETTERS, choices, strict=False))


def _conversation(value: Any, column: Column, folder: Path | None) -> list[dict[str, Any]]:
    """Return chat messages as they are sent."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _parsed(value, str(column))
    try:
        return read_messages(value, folder)
    except Unreadable as error:
        raise Unreadable(f"the field {column!r} {error}") from None


def _has(values: Mapping[str, Any], column: str) -> bool:
    try:
        _get(values, column)
    except Unreadable:
        return False
    return True


def _get(values: Mapping[str, Any], column: Column) -> Any:
    """Return a column; ``a.b.0`` reaches into objects and lists if no column has that very name."""
    if not isinstance(column, str):
        raise Unreadable("only choices can be mapped to a list of columns")
    if column in values:
        return values[column]
    value: Any = values
    for part in column.split("."):
        if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
            continue
        if not isinstance(value, Mapping) or part not in value:
            raise Unreadable(f"the field {column!r} is missing (there are: {', '.join(values)})")
        value = value[part]
    return value


def _bare(values: Mapping[str, Any], column: str) -> str:
    """Return a column's name without the mark that it may be empty, which may also be part of its name."""
    if column in values:
        return column
    return column.removesuffix(MAY_BE_EMPTY)


def _is_plain(value: Any) -> bool:
    return not isinstance(value, Mapping | list)


def as_text(value: Any, column: Column, *, lines: bool = False) -> str:
    """Return a value as text if it has one obvious text; with `lines` also a list of texts."""
    if lines and isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if isinstance(value, bool):
        if value:
            return "true"
        return "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise Unreadable(f"the field {column!r} is not a finite number")
    if isinstance(value, int | float):
        return str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise Unreadable(f"the field {column!r} is empty")
    if isinstance(value, str):
        return value
    kind = "a list"
    if isinstance(value, Mapping):
        kind = "an object"
    raise Unreadable(f"the field {column!r} is {kind} and not text")


def _options(values: Mapping[str, Any], column: Column) -> tuple[tuple[str, ...], Sequence[str]]:
    """Return the options' texts and the dataset's own labels for them, if it has any."""
    labels: list[Any] = []
    if isinstance(column, tuple):
        found = [(name, _get(values, name)) for name in column]
        while found and found[-1][1] in (None, ""):
            found.pop()  # this question has fewer options than others
        # One that is left out in between would give those behind it other letters than the target's.
        options = [as_text(value, name) for name, value in found]
    else:
        options = _get(values, column)
        if isinstance(options, str) and options.lstrip().startswith("["):
            options = _parsed(options, column)
        if isinstance(options, Mapping):
            is_table = set(options) == {"text", "label"}
            listed = options
            if is_table:
                listed = options["label"]
            labels = list(listed)
            if is_table:
                options = options["text"]
            else:
                options = list(options.values())
    if not isinstance(options, list):
        raise Unreadable(f"the field {column!r} is not a list of options")
    texts = tuple(as_text(option, column) for option in options)
    if not 2 <= len(texts) <= len(LETTERS):
        raise Unreadable(
            f"the field {column!r} has {len(texts)} options; from 2 to {len(LETTERS)} can be lettered"
        )
    return texts, list(map(str, labels))


def _parsed(text: str, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable(f"the field {column!r} begins like a JSON list and is none") from None


def _content_id(values: Mapping[str, Any]) -> str:
    """Return an id that is the same for the same row in any order of rows and fields."""
    content = json.dumps(values, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _near(word: str, known: Iterable[str]) -> str:
    near = nearest(word, known)
    if near:
        return f" (did you mean {near!r}?)"
    return ""
