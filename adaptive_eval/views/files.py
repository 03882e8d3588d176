"""Writes reports: of a run next to its run file, and of several as a static site."""

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count as counted_up
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from adaptive_eval.config.run_config import difference
from adaptive_eval.core.discarded import rest_on_words
from adaptive_eval.core.results import ModelResult
from adaptive_eval.errors import RunFileError, UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.views.blocks import Block, PageSection, Para, Plots, Warn, WholePage, note
from adaptive_eval.views.column_types import Column, Row, Shown, Span, Unit, selected
from adaptive_eval.views.columns import DECISIONS, PAIRS, QUESTIONS, Tally, pair_rows
from adaptive_eval.views.inert import clipped, distinct_labels, inert, without_formula
from adaptive_eval.views.model_columns import MODELS, model_rows
from adaptive_eval.views.numbers import count
from adaptive_eval.views.page import render, to_html, to_markdown
from adaptive_eval.views.plain_data import json_text, picked
from adaptive_eval.views.plots import Axis, Plot, scale_over, series_plot
from adaptive_eval.views.reading import Replaying, summarise
from adaptive_eval.views.report_columns import SCHEMA, decision_rows
from adaptive_eval.views.report_json import to_json
from adaptive_eval.views.report_tables import LABEL, drawn
from adaptive_eval.views.score_tables import paper_latex, paper_markdown
from adaptive_eval.views.sentences import score_decimals
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.tables import NAME, Look, Table, column, table_of
from adaptive_eval.views.trials import no_targets
from adaptive_eval.views.verdicts import has_few, rank_column

Cell: TypeAlias = str | int | float | None


def models_csv(summary: RunSummary) -> str:
    """Return the leaderboard as CSV, one model a row."""
    return _csv(MODELS, model_rows(summary.results, summary.whole_details.models))


def pairs_csv(summary: RunSummary) -> str:
    """Return the pairs as CSV, one a row, each seen from its better model."""
    return _csv(PAIRS, pair_rows(summary.results.pairs, summary.results))


def decisions_csv(summary: RunSummary) -> str:
    """Return the decisions as CSV, one a row, oldest first."""
    return _csv(DECISIONS, decision_rows(summary))


def questions_csv(summary: RunSummary) -> str:
    """Return how every model did on every question as CSV, one question and model a row.

    Only the header if scores are not simply the fraction correct.
    """
    names = [line.model for line in summary.results.models]
    rows = []
    for question in summary.whole_details.questions or ():
        for name, (trials, right) in zip(names, question.by_model, strict=True):
            if trials:
                rows.append(Tally(question, name, trials, right))
    return _csv(QUESTIONS, rows)


def _csv(columns: Iterable[Column[Row]], rows: Iterable[Row]) -> str:
    shown = selected(columns, Shown.CSV)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.key for column in shown])
    for row in rows:
        writer.writerow([_cell(column.value(row)) for column in shown])
    return buffer.getvalue()


def _cell(value: Cell) -> str | int | float | None:
    """Return a cell: an infinite number or NaN is left empty, a text is inert and never a formula.

    Examples
    --------
    >>> _cell("=HYPERLINK(1)"), _cell("-3"), _cell(float("nan"))
    ("'=HYPERLINK(1)", '-3', None)
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return None
    if isinstance(value, str):
        return _inert_cell(value)
    return value


@lru_cache(maxsize=8192)  # a name stands in the rows of all its pairs
def _inert_cell(text: str) -> str:
    return without_formula(inert(text))


TABLES = "report"


@dataclass(frozen=True, slots=True)
class ReportPaths:
    """The paths of the written reports."""

    # the report, to read, to pass on as text, to process
    html: Path
    markdown: Path
    json: Path
    # the folder of the tables: models, pairs, decisions and questions as CSV, and for a paper bayes.tex and
    # bayes.md
    tables: Path


def write_reports(
    directory: Path | str,
    output: Path | str | None = None,
    *,
    with_examples: bool = True,
    targets: Callable[[RunReader], TargetLookup] = no_targets,
    replay: Replaying | None = None,
    checked: bool = False,
) -> ReportPaths:
    """Read the run in `directory` and write ``report.html``, ``report.md``, ``report.json`` and the tables.

    ``report.html`` quotes a few questions and answers, unless `with_examples` is false, with the expected
    answers that `targets` looks up for the run. `replay` makes the results again from the trials. The
    checksums of trials are not looked at if this process has `checked` or written them itself. Each file
    appears whole or not at all: it is written under another name and renamed.
    """
    with RunReader(directory) as reader:
        if not checked:
            reader.require_undamaged()
        examples_with = targets(reader) if with_examples else None
        summary = summarise(reader, examples_with=examples_with, replay=replay)
    if output is None:
        folder = directory
    else:
        folder = output
    return _write_report(summary, Path(folder))


def _write_report(summary: RunSummary, folder: Path) -> ReportPaths:
    write_files(folder, _files(summary))
    return ReportPaths(folder / "report.html", folder / "report.md", folder / "report.json", folder / TABLES)


def _files(summary: RunSummary) -> dict[str, str]:
    return {
        "report.html": to_html(summary),
        "report.md": to_markdown(summary),
        "report.json": to_json(summary),
        f"{TABLES}/models.csv": models_csv(summary),
        f"{TABLES}/pairs.csv": pairs_csv(summary),
        f"{TABLES}/decisions.csv": decisions_csv(summary),
        f"{TABLES}/questions.csv": questions_csv(summary),
        f"{TABLES}/bayes.tex": paper_latex(summary) + "\n",
        f"{TABLES}/bayes.md": paper_markdown(summary) + "\n",
    }


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts under their names in `folder`, making missing folders; each whole or not at all."""
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as draft:
                draft.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise RunFileError(
            f"cannot write the report to {folder}: {error.strerror or error}. Choose another directory "
            "with --output",
            code="run/output",
        ) from error


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a path to write a file to, which takes its place when it is whole; a pipe is written to itself."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        yield draft
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


INDEX = "index.html"


class _Row(NamedTuple):
    """A model of one run."""

    summary: RunSummary
    folder: str  # of the run's report on the site
    line: ModelResult


@dataclass(frozen=True, slots=True)
class _Board:
    """Models of all runs that asked and scored the same questions in the same way, best score first."""

    title: str
    asked: Mapping[str, Any]  # what all its runs have in common
    rows: tuple[_Row, ...]
    scale: Axis
    series: Plot | None  # scores of checkpoints over their steps
    differs: tuple[str, ...] = ()  # how `asked` differs from that of the first board of the same tasks


@dataclass(frozen=True, slots=True)
class _Report:
    """A report on the site: its folder, the first and last change of the run, and its verdict."""

    folder: str
    started: float
    updated: float
    verdict: str


def runs_in(places: Sequence[Path]) -> list[Path]:
    """Return the runs among `places`, and in those that are folders of runs.

    Raises
    ------
    UsageError
        If a place is neither, or two runs have directories of one name.
    """
    runs: list[Path] = []
    for place in places:
        within = sorted(file.parent for file in place.glob(f"*/{RUN_FILE}"))
        if (place / RUN_FILE).exists():
            runs.append(place)
        elif within:
            runs += within
        else:
            raise UsageError(f"{place} is neither a run nor a folder of runs; a run has a file {RUN_FILE}")
    names = [run.resolve().name for run in runs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"two runs have directories named {twice[0]}, which the site would hold in one place; rename one"
        )
    return runs


def write_leaderboard(
    runs: Sequence[Path],
    site: Path,
    *,
    with_examples: bool = True,
    targets: Callable[[RunReader], TargetLookup] = no_targets,
    replay: Replaying | None = None,
) -> Path:
    """Write a page of all runs with their reports next to it, and return the page.

    Reports of other runs that `site` holds already stay, and are listed as earlier ones; if such a run has
    the name of one of `runs`, the folder of its report gets the date of the report after its name.
    """
    found: dict[str, RunSummary] = {}
    for run in runs:
        folder = run.resolve().name
        with RunReader(run) as reader:
            reader.require_undamaged()
            examples_with = targets(reader) if with_examples else None
            found[folder] = summarise(reader, examples_with=examples_with, replay=replay)
        if (site / folder / RUN_FILE).exists() and (site / folder).resolve() != run.resolve():
            raise UsageError(
                f"{site / folder} holds another run, whose report that of {run} would replace; choose "
                "another directory with --output"
            )
        _set_aside(site / folder, found[folder])
        _write_report(found[folder], site / folder)
    boards = _told_apart(list(_boards(found)))
    stored = (_stored(file.parent) for file in site.glob("*/report.json") if file.parent.name not in found)
    text = render(_index(found, boards, list(filter(None, stored))))
    write_files(site, {INDEX: text, "index.json": json_text(_data(boards), indent=2) + "\n"})
    return site / INDEX


def _index(
    found: Mapping[str, RunSummary], boards: Sequence[_Board], earlier: Sequence[_Report]
) -> WholePage:
    """Return the first page of a site."""
    words = "Runs that asked the same questions and scored them in the same way share a table."
    sections = [_board_section(number, board) for number, board in enumerate(boards, start=1)]
    between = (
        "Ranks and verdicts are decided within a run, at equal progress on the same questions. Between runs, "
        "compare intervals: each holds at its run's confidence, so two that do not overlap differ."
    )
    listed = []
    for folder, summary in found.items():
        times = summary.started or 0.0, summary.updated or 0.0
        listed.append(_Report(folder, *times, summary.headline))
    runs = _reports("Runs, the latest first", listed)
    sections.append(PageSection("runs", "Runs", [note(between), runs]))
    if earlier:
        held = _reports("Reports that this site held before, the latest first", earlier)
        sections.append(PageSection("earlier", "Earlier reports", [held]))
    intro = [Para(f"{count(len(found), 'run')}. {words}")]
    return WholePage(title="Leaderboard", intro=intro, sections=sections, is_front=True)


def _board_section(number: int, board: _Board) -> PageSection:
    blocks: list[Block] = []
    if board.differs:
        differences = "; ".join(board.differs[:5])
        blocks.append(note(f"Not comparable with the first table of these tasks, where: {differences}."))
    columns: list[Column[_Row]] = [
        column("model", lambda row: row.line.model, Unit.MODEL),
        column("run", lambda row: row.folder),
        column("mean of questions or tasks", lambda row: row.line.score, Unit.SCORE),
        column("anytime interval", _span, Unit.INTERVAL),
        column("rank or verdict", _standing, Unit.NUMBER),
        column("trials", lambda row: row.line.trials, Unit.COUNT, spare=True),
    ]
    if any(has_few(row.line) for row in board.rows):
        columns.append(column("answers", lambda row: "few answers" if has_few(row.line) else ""))
    names = distinct_labels((row.line.model for row in board.rows), LABEL)
    digits = score_decimals([row.line for row in board.rows])
    look = Look(digits=digits, scale=board.scale, names=names)
    table = table_of(f"Models by score: {clipped(board.title, NAME)}", columns, board.rows, look)
    rows = []
    for row, (model, run, *cells) in zip(board.rows, table.rows, strict=True):
        rows.append([model, replace(run, link=_address(row.folder)), *cells])
    blocks.append(replace(table, rows=rows))
    blocks += [Warn(f"{folder}: {words}") for folder, words in _rest_on(board).items()]
    if board.series is not None:
        blocks.append(Plots([drawn(board.series, names)]))
    return PageSection(f"board{number}", board.title, blocks)


def _rest_on(board: _Board) -> dict[str, str]:
    """Return what verdicts of the runs rest on in which another draw than the first counts."""
    found: dict[str, str] = {}
    for row in board.rows:
        if words := rest_on_words(row.summary.results):
            found[row.folder] = words
    return found


def _span(row: _Row) -> Span:
    return Span(row.line.score_low, row.line.score, row.line.score_high)


def _standing(row: _Row) -> str:
    return rank_column(row.summary.results).of[row.line.model]


def _address(folder: str) -> str:
    return f"{quote(folder, safe='')}/report.html"


def _reports(caption: str, reports: Iterable[_Report]) -> Table:
    """Return reports with links to them, the latest first."""
    latest = sorted(reports, key=lambda one: -one.updated)
    columns: list[Column[_Report]] = [
        column("run", lambda one: one.folder, Unit.NAME),
        column("last change", lambda one: one.updated, Unit.TIME, spare=True),
        column("verdict", lambda one: one.verdict, Unit.TEXT),
    ]
    table = table_of(caption, columns, latest)
    rows = []
    for report, (run, *cells) in zip(latest, table.rows, strict=True):
        rows.append([replace(run, link=_address(report.folder)), *cells])
    return replace(table, rows=rows)


def _set_aside(report: Path, summary: RunSummary) -> None:
    """Rename the folder of a report on another run of the same name."""
    earlier = _stored(report)
    if earlier is None or earlier.started == summary.started:
        return
    date = datetime.fromtimestamp(earlier.updated, UTC).strftime("%Y-%m-%dT%H%M%SZ")
    place = report.with_name(f"{report.name}@{date}")
    for number in counted_up(2):
        if not place.exists():
            break
        place = report.with_name(f"{report.name}@{date}-{number}")
    report.rename(place)


def _boards(found: Mapping[str, RunSummary]) -> Iterator[_Board]:
    groups: dict[str, list[_Row]] = {}
    shared: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder, summary in found.items():
        title, asked = _asked(summary, folder)
        key = json.dumps(asked, sort_keys=True)
        shared.setdefault(key, (title, asked))
        lines = [line for line in summary.results.models if line.state != "reference"]
        groups.setdefault(key, []).extend(_Row(summary, folder, line) for line in lines)
    for number, (key, rows) in enumerate(groups.items()):
        rows.sort(key=_place)
        lines = [row.line for row in rows]
        ends = [end for line in lines for end in (line.score_low, line.score, line.score_high)]
        by_start = sorted(rows, key=lambda row: row.summary.started or 0.0)
        series = series_plot(f"series-{number}", (row.line for row in by_start))
        yield _Board(*shared[key], tuple(rows), scale_over(ends), series)


def _place(row: _Row) -> tuple[bool, float]:
    score = row.line.score
    return has_few(row.line), math.inf if score is None else -score


def _told_apart(boards: Sequence[_Board]) -> list[_Board]:
    """Name boards of the same tasks for their runs as well, and say how they differ."""
    apart = []
    for board in boards:
        alike = [one for one in boards if one.title == board.title]
        if len(alike) > 1:
            runs = ", ".join(dict.fromkeys(row.folder for row in board.rows))
            board = replace(
                board,
                title=f"{board.title}: {runs}",
                differs=tuple(difference(alike[0].asked, board.asked)),
            )
        apart.append(board)
    return apart


def _asked(summary: RunSummary, folder: str) -> tuple[str, dict[str, Any]]:
    """Return the tasks in words, and what must be equal for scores to be compared."""
    tasks = summary.whole_details.tasks
    scoring = summary.whole_details.entry("scoring")
    if tasks is None or scoring is None:
        return summary.name, {"run": folder}  # the run file does not say: a board of its own
    title = f"{', '.join(tasks)} ({summary.results.questions:,} questions)"
    return title, {"tasks": tasks, "scoring": scoring, "target": summary.whole_details.target}


def _stored(report: Path) -> _Report | None:
    """Read when and with which verdict a report was written; None if the folder holds none."""
    file = report / "report.json"
    if not (file.exists() and (report / "report.html").exists()):
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            return None
        run = data["run"]
        return _Report(report.name, float(run["started_at"]), float(run["updated_at"]), str(data["verdict"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFileError(f"{file} is no report of this program; move it out of {report.parent}") from error


def _data(boards: Sequence[_Board]) -> dict[str, Any]:
    found = [{"tasks": board.title, "models": list(map(_row_data, board.rows))} for board in boards]
    return {"schema": "adaptive-eval/leaderboard", "version": 1, "boards": found}


def _row_data(row: _Row) -> dict[str, Any]:
    keys = "run model score score_low score_high confidence rank_low rank_high trials redrawn_trials"
    return picked(row.line, keys, run=row.folder, confidence=row.summary.results.confidence)
