"""Writes the reports of a run next to its run file."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from adaptive_eval.errors import RunFileError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.views.inert import inert, without_formula
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.paper_tables import paper_latex, paper_markdown
from adaptive_eval.views.plain_data import picked
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import to_json
from adaptive_eval.views.sentences import describe
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.trials import no_targets

Cell: TypeAlias = str | int | float | None


def models_csv(summary: Summary) -> str:
    """Return the leaderboard as CSV, one model a row."""
    keys = (
        "model state rank rank_low rank_high score score_low score_high bayes_mu bayes_sigma trials issued "
        "questions missing score_if_missing_wrong score_if_missing_right truncated after_stop prompt_tokens "
        "completion_tokens usd latency_p50_seconds latency_p95_seconds"
    )
    rows = (
        picked(
            line,
            keys,
            truncated=account.truncated,
            latency_p50_seconds=account.latency_p50,
            latency_p95_seconds=account.latency_p95,
        )
        for line, account in zip(summary.results.models, summary.known.models, strict=True)
    )
    return _csv(keys, (row.values() for row in rows))


def pairs_csv(summary: Summary) -> str:
    """Return the pairs as CSV, one a row, each seen from its better model."""
    keys = (
        "first second kind verdict difference difference_low difference_high evidence threshold tie_margin "
        "trials_each questions decided_at"
    )
    return _csv(keys, (picked(pair, keys).values() for pair in summary.results.pairs))


def decisions_csv(summary: Summary) -> str:
    """Return the decisions as CSV, one a row, oldest first."""
    keys = "at trials kind first second verdict step text"
    rows = []
    for at, one in zip(summary.times, summary.decisions, strict=True):
        first, second = (*one.models, "", "")[:2]
        rows.append((at, one.trials, one.kind, first, second, one.verdict, one.step, describe(one)))
    return _csv(keys, rows)


def questions_csv(summary: Summary) -> str:
    """Return how every model did on every question as CSV, one question and model a row.

    Only the header where scores are not simply the fraction correct.
    """
    keys = "task question question_correct question_spread model trials correct"
    names = [line.model for line in summary.results.models]
    rows = (
        (one.task, one.question, one.correct, one.spread, name, trials, correct)
        for one in summary.known.questions or ()
        for name, (trials, correct) in zip(names, one.by_model, strict=True)
        if trials
    )
    return _csv(keys, rows)


def _csv(keys: str, rows: Iterable[Iterable[Cell]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(keys.split())
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: Cell) -> str | int | float | None:
    """Return a cell: an infinite number or NaN is left empty, a text is inert and never a formula.

    Examples
    --------
    >>> _cell("=HYPERLINK(1)"), _cell("-3"), _cell(float("nan"))
    ("'=HYPERLINK(1)", '-3', None)
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, str):
        return value
    return without_formula(inert(value))


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
) -> ReportPaths:
    """Read the run in `directory` and write ``report.html``, ``report.md``, ``report.json`` and the tables.

    ``report.html`` quotes a few questions and answers, unless `with_examples` is false, with the expected
    answers that `targets` looks up for the run. Each file appears whole or not at all: it is written under
    another name and renamed.
    """
    with RunReader(directory) as reader:
        reader.require_undamaged()
        summary = summarise(reader, examples_with=targets(reader) if with_examples else None)
    folder = Path(directory if output is None else output)
    write_files(folder, _files(summary))
    return ReportPaths(folder / "report.html", folder / "report.md", folder / "report.json", folder / TABLES)


def _files(summary: Summary) -> dict[str, str]:
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
    """Write texts under their names in `folder`, making folders where missing; each whole or not at all."""
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
