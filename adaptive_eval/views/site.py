"""Several runs on one page: a static site with their reports, and with those that it held before."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from adaptive_eval.config.run_config import difference
from adaptive_eval.core.results import ModelResult
from adaptive_eval.errors import RunFileError, UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.store.run_files import RUN_FILE
from adaptive_eval.views.files import write_files, write_reports
from adaptive_eval.views.page import page
from adaptive_eval.views.plain_data import json_text, picked
from adaptive_eval.views.plots import Scale, scale_over
from adaptive_eval.views.reading import summarise
from adaptive_eval.views.report_json import SCHEMA
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.trials import no_targets

INDEX = "index.html"


@dataclass(frozen=True, slots=True)
class _Board:
    """Models of all runs that asked and scored the same questions in the same way, best score first."""

    title: str
    asked: Mapping[str, Any]  # what all its runs have in common
    rows: tuple[tuple[Summary, str, ModelResult], ...]  # run, its folder on the site, line
    scale: Scale
    differs: tuple[str, ...] = ()  # how `asked` differs from that of the first board of the same tasks


@dataclass(frozen=True, slots=True)
class _Earlier:
    """A report that the site held before."""

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
) -> Path:
    """Write a page of all runs with their reports next to it, and return the page.

    Reports of other runs that `site` holds already stay, and are listed as earlier ones; where such a run has
    the name of one of `runs`, the folder of its report gets the date of the report after its name.
    """
    found: dict[str, Summary] = {}
    for run in runs:
        folder = run.resolve().name
        with RunReader(run) as reader:
            reader.require_undamaged()
            found[folder] = summarise(reader)
        if (site / folder / RUN_FILE).exists() and (site / folder).resolve() != run.resolve():
            raise UsageError(
                f"{site / folder} holds another run, whose report that of {run} would replace; choose "
                "another directory with --output"
            )
        _set_aside(site / folder, found[folder])
        write_reports(run, site / folder, with_examples=with_examples, targets=targets)
    boards = _told_apart(list(_boards(found)))
    stored = (_stored(file.parent) for file in site.glob("*/report.json") if file.parent.name not in found)
    earlier = sorted(filter(None, stored), key=lambda one: -one.updated)
    text = page(
        "leaderboard.html",
        boards=boards,
        earlier=earlier,
        runs=sorted(found.items(), key=lambda one: -one[1].updated),
    )
    write_files(site, {INDEX: text, "index.json": json_text(_data(boards), indent=2) + "\n"})
    return site / INDEX


def _set_aside(report: Path, summary: Summary) -> None:
    """Rename the folder of a report on another run of the same name."""
    earlier = _stored(report)
    if earlier is None or earlier.started == summary.started:
        return
    date = datetime.fromtimestamp(earlier.updated, UTC).strftime("%Y-%m-%dT%H%M%SZ")
    names = (f"{report.name}@{date}{f'-{number}' if number > 1 else ''}" for number in count(1))
    report.rename(next(place for place in map(report.with_name, names) if not place.exists()))


def _boards(found: Mapping[str, Summary]) -> Iterator[_Board]:
    groups: dict[str, list[tuple[Summary, str, ModelResult]]] = {}
    shared: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder, summary in found.items():
        title, asked = _asked(summary, folder)
        key = json.dumps(asked, sort_keys=True)
        shared.setdefault(key, (title, asked))
        lines = [line for line in summary.results.models if line.state != "reference"]
        groups.setdefault(key, []).extend((summary, folder, line) for line in lines)
    for key, rows in groups.items():
        rows.sort(key=lambda row: -1.0 if row[2].score is None else row[2].score, reverse=True)
        ends = [end for _, _, line in rows for end in (line.low, line.score, line.high)]
        yield _Board(*shared[key], tuple(rows), scale_over(ends))


def _told_apart(boards: Sequence[_Board]) -> list[_Board]:
    """Name boards of the same tasks for their runs as well, and say how they differ."""
    apart = []
    for board in boards:
        alike = [one for one in boards if one.title == board.title]
        if len(alike) > 1:
            runs = ", ".join(dict.fromkeys(folder for _, folder, _ in board.rows))
            board = replace(
                board,
                title=f"{board.title}: {runs}",
                differs=tuple(difference(alike[0].asked, board.asked)),
            )
        apart.append(board)
    return apart


def _asked(summary: Summary, folder: str) -> tuple[str, dict[str, Any]]:
    """Return the tasks in words, and what must be equal for scores to be compared."""
    try:
        identity, scoring = (
            json.loads(summary.known.meta["identity"]),
            json.loads(summary.known.meta["scoring"]),
        )
        tasks = identity["tasks"]
    except (KeyError, ValueError):
        return summary.name, {"run": folder}  # the run file does not say: a board of its own
    title = f"{', '.join(tasks)} ({summary.results.questions:,} questions)"
    return title, {"tasks": tasks, "scoring": scoring, "target": summary.known.target}


def _stored(report: Path) -> _Earlier | None:
    """Read when and with which verdict a report was written; None where the folder holds none."""
    file = report / "report.json"
    if not (file.exists() and (report / "report.html").exists()):
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["schema"] != SCHEMA:
            return None
        run = data["run"]
        return _Earlier(report.name, float(run["started_at"]), float(run["updated_at"]), str(data["verdict"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFileError(f"{file} is no report of this program; move it out of {report.parent}") from error


def _data(boards: Sequence[_Board]) -> dict[str, Any]:
    return {
        "schema": "adaptive-eval/leaderboard",
        "version": 1,
        "boards": [
            {
                "tasks": board.title,
                "models": [
                    picked(
                        line,
                        "run model score low high confidence rank_low rank_high trials",
                        run=folder,
                        confidence=summary.results.confidence,
                    )
                    for summary, folder, line in board.rows
                ],
            }
            for board in boards
        ],
    }
