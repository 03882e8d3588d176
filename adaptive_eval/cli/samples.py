"""``adaptive-eval samples``: look at single trials of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import COUNT, FROM_0, PATH, flag, given_options, option, refuse_options
from adaptive_eval.errors import UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.views.inert import inert

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command("samples")
@click.argument("run", type=PATH, metavar="RUN")
@option("--model NAME", "Only this model.")
@option("--task NAME", "Only this task.")
@option("--question ID", "Only the question with this id.")
@option("--category K", "Only answers of category K.", FROM_0)
@click.option(
    "--compare",
    nargs=2,
    metavar="A B",
    help="The answers of models A and B to the same questions side by side, first those that differ.",
)
@option(
    "--label SHARE|N",
    "Choose a share of the questions asked so far, or N of them, at random, and write their answers to "
    "labels.jsonl and labels.html in RUN, to be labelled by people; then `rescore RUN --labels FILE`.",
)
@flag("--missing", "Only trials that got no answer or no category.")
@flag("--discarded", "Only trials of which earlier draws were given up.")
@option("--limit N", "At most N. Default: 10; with --json, all.", COUNT)
@flag("--newest", "The newest first.")
@flag("--full", "Show long texts whole.")
@flag("--json as_json", "Print one JSON object a line, with whole texts.")
def command(run: Path, compare: tuple[str, str] | None, as_json: bool, **options: Any) -> None:
    """Show trials of the run in the directory RUN: prompt, answer, extraction, category, and why.

    The run may still be running.
    """
    from adaptive_eval.build.describe import describe_run
    from adaptive_eval.views.trials import sample_data, sample_lines

    asked = {name: options[name] for name in ("model", "task", "question", "category")}
    if options["missing"] and asked["category"] is not None:
        raise UsageError(f"--category {asked['category']} and --missing: a missing trial has no category")
    if compare and given_options(("model", "category", "missing", "discarded", "newest")):
        raise UsageError("--compare goes with --task, --question, --limit, --full and --json only")
    if options["label"] is not None:
        _offer_labels(run, options["label"])
        return
    most = 10
    if options["limit"] is not None or as_json:
        most = options["limit"]
    with RunReader(run) as reader:
        about = describe_run(reader, for_people=not as_json)
        _known("model", asked["model"], list(about.models))
        _known("task", asked["task"], list(about.categories))
        for name in compare or ():
            _known("compare", name, list(about.models))
        missing = True if options["missing"] else None
        discarded = None
        if options["discarded"]:
            discarded = True
        asked |= {"missing": missing, "discarded": discarded}
        trials = reader.trials(**asked, newest_first=options["newest"], limit=most)
        rows: Iterable[tuple[TrialRecord, ...]] = ((one,) for one in trials)
        if compare:
            rows = _answer_pairs(reader, compare, asked["task"], asked["question"], most)
        shown = 0
        for records in rows:
            data, texts = [], []
            for record in records:
                known = about.categories.get(record.request.task, ()), about.target(record)
                data.append(sample_data(record, *known))
                texts.append("\n".join(sample_lines(record, *known, full=options["full"])))
            if as_json:
                click.echo(json.dumps(data if compare else data[0]))
            else:
                click.echo("\n" * (shown > 0) + _side_by_side(texts))
            shown += 1
    if not shown and not as_json:
        click.echo("No stored trial matches.", err=True)


def _offer_labels(run: Path, asked: str) -> None:
    """Write the files in which chosen answers are labelled, and say how to proceed."""
    from adaptive_eval.build.describe import describe_run
    from adaptive_eval.run.label_choice import offer_labels
    from adaptive_eval.views.label_sentences import offered

    refuse_options(_NOT_WITH_LABEL, "does not go with --label, which chooses at random among all answers")
    with RunReader(run) as reader:
        written = offer_labels(reader, describe_run(reader, for_people=True), asked)
    for line in offered(str(run), written.rows, written.new, written.filled, written.chance):
        click.echo(line)


_NOT_WITH_LABEL = (
    *("model", "task", "question", "category", "compare", "missing", "discarded", "limit", "newest", "full"),
    "as_json",
)


def _answer_pairs(
    reader: RunReader, models: tuple[str, str], task: str | None, question: str | None, most: int | None
) -> Iterator[tuple[TrialRecord, ...]]:
    """Yield the answers of two models to the same trial of a question, first those of unequal categories."""
    import numpy as np

    from adaptive_eval.store.trial_rows import id_of

    known = reader.outcomes()
    wanted = set()
    for number, (of_task, name) in enumerate(known.questions):
        if task in (None, of_task) and question in (None, name):
            wanted.add(number)
    columns = (known.question, known.repeat, known.category, known.step)
    found: list[dict[tuple[int, int], tuple[int, int]]] = []
    for model in models:
        rows = np.flatnonzero((known.model == id_of(known.models, model)) & (known.category >= 0))
        cells = zip(*(column[rows].tolist() for column in columns), strict=True)
        found.append({cell[:2]: cell[2:] for cell in cells if cell[0] in wanted})
    first, second = found
    shared = [place for place in first if place in second]
    shared.sort(key=lambda place: first[place][0] == second[place][0])
    for place in shared[:most]:
        steps = first[place][1], second[place][1]
        answers = [reader.trials(model=model, step=step) for model, step in zip(models, steps, strict=True)]
        pair = tuple(chain.from_iterable(answers))
        if len(pair) == len(models):  # all, if the file is whole
            yield pair


def _side_by_side(texts: Sequence[str]) -> str:
    """Return texts as columns of the terminal's width; one text as it is."""
    from rich.console import Console
    from rich.table import Table

    if len(texts) == 1:
        return texts[0]
    table = Table.grid(padding=(0, 2), expand=True)
    for _ in texts:
        table.add_column(ratio=1)
    table.add_row(*map(_indented, texts))
    console = Console()
    with console.capture() as capture:
        console.print(table)
    return capture.get().rstrip()


def _indented(text: str) -> RenderableType:
    """Return a sample whose lines keep the indent of their label if they are wrapped."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from adaptive_eval.views.trials import INDENT

    head, *lines = text.split("\n")
    body = Table.grid()
    body.add_column(width=INDENT)
    body.add_column(overflow="fold")
    for line in lines:
        body.add_row(Text(line[:INDENT]), Text(line[INDENT:]))
    return Group(Text(head), body)


def _known(option: str, name: str | None, names: list[str]) -> None:
    if name is not None and name not in names:
        raise UsageError(f"--{option} {name!r}: the run has {', '.join(map(inert, names))}")
