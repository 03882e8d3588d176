"""``adaptive-eval rescore``: rank stored answers under another scorer or rubric."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import PATH, flag, named, option, refuse_options
from adaptive_eval.cli.simulating import print_json, print_table, progress_bar
from adaptive_eval.errors import UsageError
from adaptive_eval.stops import REACHED
from adaptive_eval.store.reader import RunReader

if TYPE_CHECKING:
    from adaptive_eval.options.task_options import RubricConfig
    from adaptive_eval.run.rescoring import Rescoring
    from adaptive_eval.run.rescoring_specs import RescoringSpec


@named(
    "rescore",
    "runs/aime --rubric format-aware --rubric strict-compliance",
    "runs/aime --scorer '{kind: numeric, tolerance: 0.01}'",
    "runs/essays --labels runs/essays/labels.jsonl",
)
@click.argument("run", type=PATH, metavar="RUN")
@option(
    "--rubric rubrics RUBRIC …", "A schema's name, or a rubric as in a config. Repeatable: one ranking each."
)
@option("--scorer SCORER", "A scorer's kind, or a mapping with kind and options.")
@option(
    "--labels FILE",
    "Correct the judge by labels of a random share of the answers (samples --label), JSONL or CSV: the "
    "verdict and the exit code are theirs.",
    click.Path(dir_okay=False, path_type=Path),
)
@option("--task NAME", "Score only this task. Default: all.")
@option("--name NAME", "Name of the ranking. Default: scorer and rubric.")
@flag("--dry-run", "Show the ranking and store nothing.")
@flag("--json as_json", "Print JSON.")
def command(run: Path, **options: Any) -> int:
    """Score the stored answers of the run in the directory RUN again and show the rankings.

    Nothing is asked. The new scoring is stored in addition to the one that decided the run.
    """
    from adaptive_eval.build.assembly import build, config_of_run
    from adaptive_eval.run.rescoring import rescore, stored_scoring
    from adaptive_eval.store.writer import RunWriter
    from adaptive_eval.views.inert import inert
    from adaptive_eval.views.report_columns import rankings_data
    from adaptive_eval.views.score_tables import ranking_rows

    if options["labels"] is not None:
        refuse_options(("rubrics", "scorer", "task"), "does not go with --labels; rescore once for each")
        return _hold_against_labels(run, options)
    specs = _specs(options["rubrics"], options["scorer"], options["name"])
    with RunReader(run) as reader, ExitStack() as stack:
        built = replace(build(config_of_run(reader)), continued=reader.meta())
        progress = partial(stack.enter_context(progress_bar()), "answers")
        results = rescore(built, reader, specs, options["task"], progress=progress)
        shown = [stored_scoring(built, reader), *results]
    if not options["dry_run"]:
        with RunWriter.open(run) as writer:
            for result in results:
                writer.scoring(result.record, result.rows)
    for result in results:
        for remark in result.remarks:
            click.echo(f"Warning: {result.name}: {remark}", err=True)
    rankings = [(result.name, result.results) for result in shown]
    if options["as_json"]:
        print_json(rankings_data(rankings))
    else:
        head, *rows = ranking_rows(rankings)
        columns = [f"<{inert(name)}" for name in head]
        print_table(columns, [list(map(inert, row)) for row in rows])
        _report(results, run, stored=not options["dry_run"])
    return REACHED


def _hold_against_labels(run: Path, options: Mapping[str, Any]) -> int:
    """Show the verdict by labels and what they say of the judge; return its exit code."""
    from adaptive_eval.build.describe import describe_run
    from adaptive_eval.run.labelled import hold_against
    from adaptive_eval.store.records import ScoringRecord
    from adaptive_eval.store.writer import RunWriter
    from adaptive_eval.views.label_report import labels_data, labels_lines

    with RunReader(run) as reader:
        held = hold_against(reader, describe_run(reader), options["labels"])
    if held.results is not None and not options["dry_run"]:
        record = ScoringRecord(options["name"] or "labels", time.time(), held.body)
        with RunWriter.open(run) as writer:
            writer.scoring(record, ())
    if options["as_json"]:
        print_json(labels_data(held))
    else:
        for line in labels_lines(held):
            click.echo(line)
    if held.results is None:
        return REACHED
    return held.results.exit_code


def _specs(rubrics: tuple[str, ...], scorer: str | None, name: str | None) -> list[RescoringSpec]:
    from adaptive_eval.run.rescoring_specs import RescoringSpec, read_rubric, read_scorer

    if not rubrics and scorer is None:
        raise UsageError("say what to score by: --rubric, --scorer, or both")
    section = None
    if scorer is not None:
        section = read_scorer(scorer)
    if name is not None and len(rubrics) > 1:
        raise UsageError(f"--name {name!r} names one ranking and there are {len(rubrics)}; leave it out")
    kind = ""
    if section is not None:
        kind = section.kind
    specs = []
    sections: list[RubricConfig | None] = list(map(read_rubric, rubrics))
    for rubric in sections or [None]:
        label = ""
        if rubric is not None:
            label = rubric.label
        parts = [kind, label]
        specs.append(RescoringSpec(name or " + ".join(filter(None, parts)), rubric, section))
    names = [spec.name for spec in specs]
    if len(set(names)) < len(names):
        raise UsageError(f"two rubrics are called {max(names, key=names.count)!r}; give own schemas a name")
    return specs


def _report(results: list[Rescoring], run: Path, *, stored: bool) -> None:
    for result in results:
        if result.unscored:
            click.echo(f"{result.name}: {result.unscored:,} answers lack what it needs and count as missing.")
    if stored:
        click.echo(f"Stored in {run}, in addition to the scoring that decided the run.")
