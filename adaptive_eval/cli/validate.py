"""``adaptive-eval validate``: a config, its data and its endpoints, without spending anything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adaptive_eval.cli.exit_codes import RESOLVED, exit_code_of
from adaptive_eval.cli.options import config_options
from adaptive_eval.errors import AdaptiveEvalError, Coded, ConfigError, Problem

if TYPE_CHECKING:
    from adaptive_eval.config import RunConfig


@click.command("validate")
@config_options
@click.option("--offline", is_flag=True, help="Do not contact the endpoints.")
@click.option(
    "--probe",
    is_flag=True,
    help="Find out which parameters a server ignores: 7 requests of 32 tokens to each model.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: problems and warnings with their codes.")
def command(
    config_file: Path, overrides: tuple[str, ...], offline: bool, probe: bool, as_json: bool
) -> int | None:
    """Check the config CONFIG, its datasets and its endpoints.

    Every mistake of the config is reported at once. Nothing that costs anything is asked, except with
    --probe.
    """
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
    code = RESOLVED
    try:
        _check(config_file, overrides, offline, probe, lines.append, warnings)
    except AdaptiveEvalError as error:
        code = exit_code_of(error)
        one = Problem("", str(error), code=error.code)
        problems = error.problems if isinstance(error, ConfigError) else (one,)
    found = {
        "schema": "adaptive-eval/validate",
        "version": 1,
        "valid": not problems,
        "problems": [asdict(problem) for problem in problems],
        "warnings": [{"code": text.code, "message": text} for text in warnings],
        "lines": lines,
    }
    click.echo(json_text(found))
    return code


def unpinned(config: RunConfig) -> Iterator[Coded]:
    """Warn once of all tasks whose dataset may have other questions in a later run."""
    from adaptive_eval.tasks.sources import LM_EVAL, is_pinned

    tasks = [task for task in config.tasks if not is_pinned(task.dataset, task.revision)]
    if tasks:
        can = any(not task.dataset.startswith(LM_EVAL) for task in tasks)
        yield Coded(
            "warning/not-pinned",
            f"{', '.join(task.name for task in tasks)}: the dataset is not pinned; a later run may get other "
            f"questions{'. Set revision to a commit of it' if can else ''}",
        )


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
    from adaptive_eval.core.spec_checks import spec_warnings
    from adaptive_eval.run.observers import channels_of
    from adaptive_eval.scoring.sample_check import check_sample
    from adaptive_eval.views.budgets import ceiling_words, unbounded_words
    from adaptive_eval.views.verdicts import questions_words

    config = load_config(config_file, overrides)
    channels_of(config.notify)
    built = build(config)
    say(f"config     {config_file}: fine")
    for task in built.tasks:
        asked = questions_words([task.name] if task.name in built.spec.tasks_in_rounds else [], 1)
        say(f"task       {task.name}: {len(task.questions)} questions from {task.source}, {asked}")
    warnings += [*spec_warnings(built.spec), *unpinned(config)]
    for task in built.tasks:
        warnings += check_sample(built.scorers[task.name], task.questions[0])
    for words in (*built.notices, *warnings):
        say(f"notice     {words}")
    if (ceiling := ceiling_words(built.spec)) is not None:
        say(f"ceiling    {ceiling}")
    if (unbounded := unbounded_words(built.spec)) is not None:
        say(f"warning    {unbounded}")
        warnings.append(unbounded)
    for reference in built.spec.references:
        trials = sum(int(counts.sum()) for counts in reference.counts.values())
        say(f"reference  {reference.name}: {trials:,} trials {reference.source}")
    if built.spec.prior is not None:
        say(f"prior      {built.spec.prior.source}")
    if not offline:
        from adaptive_eval.run.probe import report_endpoints

        with ExitStack() as stack:
            asyncio.run(report_endpoints(built, built.start_mimic(stack), say, spend=probe))
