"""``adaptive-eval validate``: a config, its data and its endpoints, or a run file; nothing is spent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import PATH, flag, named, option, override_option
from adaptive_eval.cli.run import is_run
from adaptive_eval.errors import AdaptiveEvalError, Coded, ConfigError, Problem, RunDamaged, RunOfOtherVersion
from adaptive_eval.stops import REACHED, UNEXPECTED
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Completion

if TYPE_CHECKING:
    from adaptive_eval.config import RunConfig


@named(
    "validate",
    "my.yaml",
    "runs/aime --salvage runs/aime-2",
    "--schema > schema.json",
)
@click.argument("source", type=PATH, metavar="[CONFIG|RUN]", required=False)
@override_option
@flag("--offline", "Do not contact the endpoints.")
@flag(
    "--probe",
    "Find out which parameters a server ignores: 7 requests of 32 tokens to each model. Each judge or "
    "verifier scores one answer.",
)
@flag("--json as_json", "Print JSON: problems and warnings with their codes.")
@option(
    "--salvage target DIR",
    "Copy the undamaged trials of RUN to a new run in DIR. `run DIR` continues it.",
    PATH,
)
@flag("--schema", "Print the JSON schema of a config, for editors.")
def command(source: Path | None, schema: bool, target: Path | None, **options: Any) -> int | None:
    """Check the config CONFIG, its datasets and its endpoints, or the run file in the directory RUN.

    All mistakes of the config are reported at once. Nothing is spent, except with --probe. Of a run file the
    structure and the checksums of its rows are checked, and its results are made again from its trials.
    Exit codes: 0 fine, or salvaged; 2 a mistake in the config; 1 a damaged run file.

    An editor with a YAML language server completes and checks a config that begins with
    "# yaml-language-server: $schema=FILE"; --schema prints that file.
    """
    if schema:
        from adaptive_eval.config.config_schema import json_schema

        click.echo(json.dumps(json_schema(), indent=2))
        return None
    if source is None:
        raise click.UsageError("name a config or the directory of a run")
    if is_run(source):
        return _check_file(source, target)
    if target is not None:
        raise click.UsageError(f"--salvage is for a run, and {source} is a config")
    return _check_config(source, **options)


def _check_file(run: Path, target: Path | None) -> int:
    """Check the run file, or copy what is undamaged to `target`."""
    from adaptive_eval.store.writer import salvage

    if target is not None:
        damage = salvage(run, target)
        kept = damage.trials - damage.lost
        click.echo(f"{kept:,} of {damage.trials:,} trials copied to {target}.")
        if damage:
            click.echo(f"Left out: {damage.in_words()}.")
        return REACHED
    from adaptive_eval.build.replay import replay
    from adaptive_eval.views.reading import DISAGREE

    try:
        with RunReader(run) as reader:
            damage = reader.damage()
            if damage.trials and not damage:
                found = replay(reader).disagreements
            else:
                found = ()
    except RunOfOtherVersion as error:
        click.echo(str(error))
        return UNEXPECTED
    except RunDamaged as error:
        click.echo(str(error))
        return UNEXPECTED
    if damage:
        click.echo(f"{run}: damaged. {damage.in_words()}.")
    for words in found:
        click.echo(f"{run}: {DISAGREE}. {words}.")
    if damage or found:
        click.echo(f"Copy the undamaged trials: adaptive-eval validate {run} --salvage NEW")
        return UNEXPECTED
    click.echo(f"{run}: undamaged. {damage.trials:,} trials match their checksums, and lead to its results.")
    return REACHED


def _check_config(
    config_file: Path, overrides: tuple[str, ...], offline: bool, probe: bool, as_json: bool
) -> int | None:
    if offline and probe:
        raise click.UsageError("--probe asks the endpoints and --offline forbids that; give one of the two")
    if not as_json:
        _check(config_file, overrides, offline, probe, click.echo, [])
        return None
    return _as_json(config_file, overrides, offline, probe)


def _as_json(config_file: Path, overrides: tuple[str, ...], offline: bool, probe: bool) -> int:
    """Print what is found as JSON, described in docs/report-schema.md; return the exit code."""
    from adaptive_eval.views.plain_data import json_text

    lines: list[str] = []
    warnings: list[Coded] = []
    problems: tuple[Problem, ...] = ()
    code = REACHED
    try:
        _check(config_file, overrides, offline, probe, lines.append, warnings)
    except AdaptiveEvalError as error:
        code = error.exit_code
        one = Problem("", str(error), code=error.code)
        if isinstance(error, ConfigError):
            problems = error.problems
        else:
            problems = (one,)
    found = {
        "schema": "adaptive-eval/validate",
        "version": 1,
        "valid": not problems,
        "problems": list(map(asdict, problems)),
        "warnings": [{"code": text.code, "message": text} for text in warnings],
        "lines": lines,
    }
    click.echo(json_text(found))
    return code


def unpinned(config: RunConfig) -> Iterator[Coded]:
    """Warn once of all tasks whose dataset may have other questions in a later run."""
    from adaptive_eval.options.section import LM_EVAL
    from adaptive_eval.tasks.sources import is_pinned

    tasks = [task for task in config.tasks if not is_pinned(task.dataset, task.revision)]
    if tasks:
        names = ", ".join(task.name for task in tasks)
        words = f"{names}: the dataset is not pinned; a later run may get other questions"
        if not all(task.dataset.startswith(LM_EVAL) for task in tasks):
            words += ". Set revision to a commit of it"
        yield Coded("warning/not-pinned", words)


def _check(
    config_file: Path,
    overrides: tuple[str, ...],
    offline: bool,
    probe: bool,
    say: Callable[[str], None],
    warnings: list[Coded],
) -> None:
    """Check all that there is to check, and say what is found line by line; `warnings` gets the warnings."""
    from adaptive_eval.build.assembly import build
    from adaptive_eval.config import load_config
    from adaptive_eval.core.spec_checks import check_budgets, spec_warnings
    from adaptive_eval.run.observers import channels_of
    from adaptive_eval.scoring.model_graded import grader_of
    from adaptive_eval.scoring.registry import WRONG, check_sample
    from adaptive_eval.views.budgets import unbounded_words
    from adaptive_eval.views.sentences import ceiling_words
    from adaptive_eval.views.verdicts import questions_words

    config = load_config(config_file, overrides)
    channels_of(config.notify)
    built = build(config).with_stored_answers()
    say(f"config     {config_file}: fine")
    for task in built.tasks:
        if task.name in built.spec.tasks_in_rounds:
            in_rounds = [task.name]
        else:
            in_rounds = []
        asked = questions_words(in_rounds, 1)
        say(f"task       {task.name}: {len(task.questions)} questions from {task.source}, {asked}")
    check_budgets(built.spec)
    warnings += [*spec_warnings(built.spec), *unpinned(config)]
    for task in built.tasks:
        warnings += check_sample(built.scorers[task.name], task.questions[0])
    for words in (*built.notices, *warnings):
        say(f"notice     {words}")
    if ceiling := ceiling_words(built.spec):
        say(f"ceiling    {ceiling}")
    if (unbounded := unbounded_words(built.spec)) is not None:
        say(f"warning    {unbounded}")
        warnings.append(unbounded)
    for task in built.tasks:
        if task.against:
            stored = sum(map(len, task.against.values()))
            say(f"against    task {task.name}: {stored:,} stored answers")
    for reference in built.spec.references:
        trials = sum(int(counts.sum()) for counts in reference.counts.values())
        say(f"reference  {reference.name}: {trials:,} trials {reference.source}")
    if built.spec.prior is not None:
        say(f"prior      {built.spec.prior.source}")
    if not offline:
        from adaptive_eval.run.probe import report_endpoints

        with ExitStack() as stack:
            asyncio.run(report_endpoints(built, built.start_mimic(stack), say, spend=probe))
    for task in built.tasks if probe else ():
        scorer = grader_of(built.scorers[task.name])
        if scorer is not None:
            question = task.asked(task.questions[0], 0)
            words = scorer.score(Completion(WRONG, "stop"), question).reason
            say(f"probe      {scorer.kind} of {task.name}: {WRONG!r} to question {question.id}: {words}")
