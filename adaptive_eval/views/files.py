"""Writes the reports of a run next to its run file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaptive_eval.errors import RunFileError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.views.csv_tables import decisions_csv, models_csv, pairs_csv, questions_csv
from adaptive_eval.views.examples import no_targets
from adaptive_eval.views.page import to_html, to_markdown
from adaptive_eval.views.paper_tables import paper_latex, paper_markdown
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import to_json
from adaptive_eval.views.summary import Summary

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
