"""Tables of any format: a row a trial, as CSV, JSON or Parquet."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from zstandard import ZstdError

from adaptive_eval.errors import Coded, OutcomesError, in_words
from adaptive_eval.interop.column_maps import (
    VERDICTS,
    find,
    mapped,
    require_columns,
    rows_at,
    single_trials,
)
from adaptive_eval.interop.formats import (
    ANSWERS,
    FORMATS,
    METRIC,
    TABLE,
    Format,
    format_of_object,
    format_of_row,
)
from adaptive_eval.interop.found import (
    DEFAULT_TASK,
    Flaw,
    Found,
    Log,
    Piece,
    ReadingOptions,
    Rescorer,
    chosen_metric,
    cluster_in,
    content_of,
    in_range,
    json_object,
    json_value,
    reading,
)
from adaptive_eval.interop.headings import (
    SUMMARIES,
    Headings,
    listed,
    outside,
    plain_heading,
    read_headings,
    sample_of,
    verdict_of,
)
from adaptive_eval.interop.run_tables import parts_of
from adaptive_eval.interop.table_cells import (
    READ,
    category_of,
    causes_of,
    counting,
    is_true,
    listed_numbers,
    name_of,
    text_of,
)
from adaptive_eval.interop.verdict_rows import chosen_rows, of_metric, require_plain_category, require_range
from adaptive_eval.tasks.rows import Row, ending_of, opened, stream_rows, uncompressed
from adaptive_eval.tasks.sources import parquet_rows

_NEEDED = (
    "the columns needed are model, question and category (or correct, or score); name others with --map, "
    "such as --map model=MY_COLUMN"
)
_NO_ANSWER = "no answer in the file"
_MOST_MODELS = 1_000  # of a table with a column a model: half a million pairs


def table_log(path: Path, choices: ReadingOptions) -> Log:
    """Return the log in a table with a row a trial, or in a file of a format that the table of formats has.

    Our columns: ``model``, ``question``, and ``category``, ``correct`` or ``score``; optionally ``task``,
    ``trial``, ``missing`` (why there is no answer), ``truncated``, ``text``, ``extracted``, ``reason``,
    ``prompt``, ``target``, ``prompt_tokens``, ``completion_tokens``, ``latency``, ``finished_at``. Others are
    ignored. `choices.columns` maps these names to those that the file has.
    """
    data = json_object(path) if _holds_object(path) else None
    known = TABLE if choices.columns else _recognised(path, data)
    only = None
    if known is TABLE:
        rows = (row.values for row in _rows(path, data, choices.columns) if isinstance(row, Row))
        only = chosen_rows(path, rows, choices)
    if only is not None:
        choices = replace(choices, metric=None)
    identity = str((data or {}).get(known.identity) or "")
    headings = Headings({}) if known is not TABLE else _headings(path, data, choices, only)
    table = _Table(path, known, choices, headings, only)
    notes = (Coded("outcomes/columns", f"{path.name}: {headings.words}"),) if headings.words else ()
    return Log(path, known.name, lambda: table.pieces(data), identity, numbered=known is TABLE, notes=notes)


def _headings(
    path: Path, data: Mapping[str, Any] | None, choices: ReadingOptions, only: tuple[str, str] | None
) -> Headings:
    """Return what the columns of a table hold, and refuse one in which that cannot be told."""
    kept = of_metric(_rows(path, data, choices.columns), only)
    read = (row.values for row in kept if isinstance(row, Row))
    rows, given = sample_of(read), choices.columns
    if not rows:
        return Headings({})
    require_columns(path, given, rows[0])
    found = read_headings(rows, given, choices.range, named=choices.model is not None)
    if len(found.models) > _MOST_MODELS:
        raise OutcomesError(
            f"{path}: {len(found.models):,} columns hold verdicts and would be as many models; at most "
            f"{_MOST_MODELS:,} can be compared. Name the columns that are meant: --map score=COLUMN,…"
        )
    is_said = {*VERDICTS} & given.keys() or "after_stop" in rows[0] or found.by_subject
    if not (is_said or choices.range or choices.metric or choices.scorer):
        require_plain_category(path, rows, choices, found)
    here = {*rows[0], *found.columns, *given}
    if found.by_subject:
        here.discard("category")
    if choices.range is None and choices.metric is None and not here & {"category", "correct"}:
        require_range(path, rows, given.get("score") or found.columns.get("score") or "score")
    lacking = []
    if not (here & {*VERDICTS} or found.models or found.questions or choices.metric or choices.scorer):
        lacking.append("score")
    if not ("question" in here or found.models or found.questions or choices.question_id):
        lacking.append("question")
    if lacking and "model" not in here and choices.model is None:
        lacking.insert(0, "model")
    if lacking:
        options = ",".join(f"{ours}=COLUMN" for ours in lacking)
        numbers = []
        if choices.range is None:
            numbers = [name for name in rows[0] if outside(rows, name)]
        ranged = f". If the numbers of {listed(numbers)} are scores, say from where to where: --range 0,100"
        if "question" in lacking:
            ranged += "; averages over questions cannot be compared, give the answers to each question"
        more = ""
        if numbers:
            more = ranged
        raise OutcomesError(
            f"{path}: no column is known to hold the {' or the '.join(lacking)}. The columns are "
            f"{listed(rows[0])}; say which it is: --map {options}{more}"
        )
    return found


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder that are logs of a format with one reader for all."""
    for known in FORMATS:
        for pattern, word in known.files:
            for file in folder.rglob(pattern):
                instead = known.beside and file.with_name(known.beside).exists()
                if not instead and file.is_file() and word in begin_of(file) and _is(known, file):
                    yield file


def _is(known: Format, path: Path) -> bool:
    """Tell whether a JSON file has a format that its object tells; other files are known by their names."""
    if not known.top:
        return True
    return _holds_object(path) and format_of_object(json_object(path), path) is known


def _recognised(path: Path, data: Mapping[str, Any] | None) -> Format:
    """Return the format of a file, or of the object in a JSON file."""
    known = None
    if data is not None:
        known = format_of_object(data, path)
    if known is not None:
        return known
    if data is not None and not format_of_row(data).whole:
        return format_of_row(data)  # a file of lines that has one
    rows = (row.values for row in _rows(path, data, {}) if isinstance(row, Row))
    return format_of_row(next(rows, {}))


def _rows(
    path: Path, data: Mapping[str, Any] | None, columns: Mapping[str, str]
) -> Iterator[Row | tuple[int, str]]:
    """Yield the rows of a file; in a JSON file they may be a list within an object."""
    if not path.exists():
        raise OutcomesError(f"{path}: there is no such file", code="outcomes/not-found")
    if path.is_dir() or path.suffix.lower() == ".parquet":
        for part in parts_of(path) if path.is_dir() else [path]:
            with reading(part, "Parquet"):
                yield from _numbered(parquet_rows(part))
    elif data is not None:
        yield from _numbered(rows_at(path, data, columns))
    else:
        yield from stream_rows(path)


def _numbered(rows: Iterable[Any]) -> Iterator[Row | tuple[int, str]]:
    for number, values in enumerate(rows, start=1):
        if isinstance(values, dict):
            yield Row(number, values)
        else:
            yield (number, "the row is no object")


def begin_of(path: Path) -> bytes:
    """Return the first bytes of a file."""
    try:
        with opened(path) as file:
            return file.read(4096)
    except (OSError, ZstdError) as error:
        raise OutcomesError(f"{path}: cannot be read: {in_words(error)}") from None


def _holds_object(path: Path) -> bool:
    """Tell whether a file is JSON that begins with an object."""
    if ending_of(path) != ".json" or not path.is_file():
        return False
    begin = begin_of(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    line, _, more = begin.partition(b"\n")
    try:
        is_line = bool(more.strip()) and isinstance(json.loads(line), dict)
    except ValueError:
        is_line = False
    return begin.startswith(b"{") and not is_line  # else it holds an object a line


class _Table:
    """Reads the rows of one file of one format."""

    def __init__(
        self,
        path: Path,
        known: Format,
        choices: ReadingOptions,
        headings: Headings,
        only: tuple[str, str] | None = None,  # the column of metrics, and the one that is read
    ) -> None:
        self._path = path
        self._only = only
        self._known = known
        self._headings = headings
        self._columns = {**headings.columns, **(choices.columns or known.columns)}
        self._task_asks = self._columns.get("question") == "task"  # then a task is a question
        model, task = known.named(path)
        self._model = choices.model or model or choices.folder or uncompressed(path).stem
        self._is_named = known is not TABLE or choices.model is not None
        self._asked: set[tuple[str, str]] = set()  # of a table that names no model
        self._task = task or DEFAULT_TASK
        self._choices = choices
        self._task_of: dict[str, str] = {}  # the file's own, of each question
        if choices.scorer is None:
            self._rescorer = None
        else:
            self._rescorer = Rescorer(choices)

    def pieces(self, data: Mapping[str, Any] | None) -> Iterator[Piece]:
        """Yield the trials."""
        if self._known.rows:
            rows = self._made(data)
        else:
            rows = of_metric(_rows(self._path, data, self._columns), self._only)
        first = next(rows, None)
        if first is None:
            yield Flaw("", "the file has no rows")
            return
        for row in chain([first], rows):
            if isinstance(row, Row):
                yield from self._of_row(row)
            else:
                place = ""
                if row[0]:
                    place = f"line {row[0]}"
                yield Flaw(place, row[1])

    def _made(self, data: Mapping[str, Any] | None) -> Iterator[Row | tuple[int, str]]:
        """Yield the rows that the format makes of the whole file."""
        assert self._known.rows is not None
        whole = data
        if data is None and self._known.whole:
            whole = json_value(self._path)
        try:
            yield from _numbered(self._known.rows(whole, self._path, self._choices))
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            yield 0, f"is not as the tool writes it: {type(error).__name__}: {error}"

    def _of_row(self, row: Row) -> Iterator[Piece]:
        place = f"line {row.line}"
        try:
            values = row.values
            if self._known.convert:
                more = self._known.convert(values)
                values = {**mapped({**values, **more}, self._columns), **more}
            elif self._columns:
                values = mapped(values, self._columns)
            if self._headings.models and "question" not in values:
                values = {**values, "question": str(row.line)}
            if self._headings.models and plain_heading(str(values["question"])) in SUMMARIES:
                words = f"{str(values['question'])!r} sums up the other rows and is no question"
                yield Flaw(place, f"{words}; leave this row out")
                return
            if self._task_asks:
                values = {**values, "task": None}
            for one in self._headings.single(values):
                for trial in self._single(one):
                    yield self._piece(trial, place)
        except (ArithmeticError, AttributeError, LookupError, SyntaxError, TypeError) as error:
            yield Flaw(place, f"is not as the tool writes it: {type(error).__name__}: {error}")
        except ValueError as error:
            yield Flaw(place, str(error))

    def _single(self, values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return a row for each trial of a row."""
        if ANSWERS not in self._columns:
            return single_trials(values, *filter(None, [self._choices.metric]))
        answers = values[ANSWERS]
        if self._rescorer is None and len(answers) > 1:
            raise OutcomesError(
                f"{self._path}: it has several answers to a question but one score for all of them; score "
                "each with --scorer exact, numeric, math, …"
            )
        return [{**values, "text": str(text), "trial": number} for number, text in enumerate(answers)]

    def _piece(self, values: Mapping[str, Any], place: str) -> Piece:
        """Return a row's trial, or its flaw."""
        field = self._choices.question_id
        known = self._known
        model = name_of(values.get("model")) or self._model
        inner = field
        if known.ids:
            inner = f"{known.ids}.{field}"
        if inner is None or field is None:
            named = values.get("question")
        else:
            named = find(values, inner)[1]
        question = text_of(named)
        for column, given in (("model", model), (field or "question", question)):
            if not given:
                return Flaw(place, f"there is no {column}; {_NEEDED}")
        assert model is not None
        assert question is not None
        task = name_of(values.get("task")) or self._task
        if self._choices.task is not None and self._task_of.setdefault(question, task) != task:
            return Flaw(place, f"question {question!r} is in several tasks, which --task would take for one")
        asked = [values.get(name) or "" for name in known.asked]
        fields_of_dataset = None
        if known.ids:
            fields_of_dataset = find(values, known.ids)[1]
        cluster = cluster_in(self._choices.cluster, {**values, "task": task}, fields_of_dataset or {})
        if self._choices.cluster is None and known is TABLE:
            cluster = text_of(values.get("cluster")) or ""
        is_export = known is TABLE and "after_stop" in values  # of this package
        rule = None
        if is_export:
            rule = text_of(values.get("rule"))
        if not (self._is_named or name_of(values.get("model"))):
            if (task, question) in self._asked:
                return Flaw(
                    place,
                    "no column is known to hold the model, and questions are there several times; name the "
                    "column with --map model=COLUMN, or all answers' model with --model NAME",
                )
            self._asked.add((task, str(question)))
        fields: dict[str, Any] = {}
        for name, value in values.items():
            if name in READ and value is not None and value != "":
                fields[name] = READ[name](value, name)
        tokens = fields.pop("prompt_tokens", 0), fields.pop("completion_tokens", 0)
        if is_true(values, "truncated"):
            fields["finish_reason"] = "length"
        if is_export:
            fields["of_run"] = True
            fields["discarded"] = causes_of(values.get("discarded_cause"))
            fields["redrawn"], fields["repeats"] = is_true(values, "redrawn"), is_true(values, "repeats")
        fields |= self._result(values)
        weights = values.get("weights")
        if "category" in fields and isinstance(weights, str):
            fields["weights"] = listed_numbers(weights)
        content = ""
        if any(asked):
            content = content_of(*asked)
        return Found(
            self._choices.named(model, self._path),
            self._choices.task or task,
            question,
            place,
            counting(values.get("trial"), "trial"),
            content=content,
            tokens=tokens,
            cluster=cluster,
            rule=rule or "",
            **fields,
        )

    def _result(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return category, score or reason for neither."""
        missing = text_of(values.get("missing"))
        text = values.get("text")
        if missing and not text:
            return {"missing": missing}
        if self._rescorer is not None:
            if not isinstance(text, str):
                raise ValueError("there is no text that --scorer can score")
            fields = values
            if self._known.ids:
                fields = find(values, self._known.ids)[1]
            return self._rescorer.score(text, text_of(values.get("target")) or "", fields or {})
        if missing:
            return {"missing": missing}
        key, cell = self._verdict(values)
        value = verdict_of(cell, self._choices.range)
        if value is None:
            return {"missing": _NO_ANSWER}
        if key not in ("category", "correct"):
            return {"score": in_range(value, key, self._choices.range)}
        category = category_of(value, key)
        if category is None:
            return {"missing": _NO_ANSWER}
        return {"category": category}

    def _verdict(self, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the column or metric that says what a trial is worth, and its value."""
        metric = self._choices.metric
        metrics = self._known.metrics
        if metrics and (metric is not None or "score" not in values):
            scores = find(values, metrics)[1] or {}
            name = chosen_metric(self._path, metric or values.get(METRIC), scores)
            return name, scores[name]
        if metric is None:
            there = values
            if self._columns.keys() & {*VERDICTS}:
                there = self._columns
            order = VERDICTS if self._choices.range is None else VERDICTS[::-1]
            named = [name for name in order if name in there]
            valued = (name for name in named if values.get(name) not in (None, ""))
            first = None
            if named:
                first = named[0]
            metric = next(valued, first)
        if metric is None or metric not in values:
            raise ValueError(f"there is neither category nor correct nor score; {_NEEDED}")
        theirs = self._columns.get(metric, metric)
        if values[metric] is None and not find(values, theirs)[0]:
            raise ValueError(f"it has none of {theirs.replace('|', ', ')}")
        return metric, values[metric]
