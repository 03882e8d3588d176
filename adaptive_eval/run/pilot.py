"""The pilot of a run: a few passes asked first, from which a rubric's thresholds are found and frozen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path

import click

from adaptive_eval.build.assembly import Built, continue_run
from adaptive_eval.build.rubrics import (
    observed_thresholds,
    rubrics_of,
    stored_signals,
    with_stored_thresholds,
)
from adaptive_eval.build.stored_answers import EarlierAnswers
from adaptive_eval.build.workplace import Workplace
from adaptive_eval.config import BudgetGoal, RubricConfig
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.engine.events import Event, Remarked
from adaptive_eval.engine.runner import Runner
from adaptive_eval.errors import EndpointsUnusable, UsageError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.text.decision_words import describe

__all__ = ["PILOT", "RUN_FILE", "pilot_passes", "resumed", "with_pilot"]

RUN_FILE = "run.db"

PILOT = "pilot"
"""Folder of the pilot's run file, inside that of the run."""


def pilot_passes(built: Built) -> int:
    """Return how many trials of every question and model the pilot asks; 0 where none is needed."""
    rubrics = (built.config.task(task.name).rubric for task in built.tasks)
    return max((rubric.pilot or 0 for rubric in rubrics), default=0)


async def with_pilot(
    built: Built,
    directory: Path,
    endpoints: Mapping[str, Sequence[OpenAIEndpoint]],
    workplace: Workplace,
    on_start: Callable[[Runner], None],
) -> Built:
    """Run the pilot where one is needed, and return the run with its thresholds frozen.

    The pilot asks the very trials that the run itself begins with (same steps, same seeds) and stores them
    in a run file of its own; the run adopts them (:mod:`adaptive_eval.run.pilot_adoption`). A pilot that was
    interrupted goes on.

    Parameters
    ----------
    built : Built
        The run, whose rubrics have open thresholds.
    directory : Path
        The run's directory.
    endpoints : mapping
        Servers of every model.
    workplace : Workplace
        Where the pilot is run.
    on_start : callable
        Called with the pilot's runner before it starts, to connect signals.

    Raises
    ------
    click.Abort
        If it is interrupted.
    UsageError
        If the budget ends before it, or its answers cannot give a threshold.
    EndpointsUnusable
        If the endpoints fail.
    """
    passes = pilot_passes(built)
    if not passes:
        return built
    folder = directory / PILOT
    click.echo(
        f"Pilot: {passes} trials of every question and model, to find the rubric's thresholds.", err=True
    )
    _require_complete(await _ask(_pilot_of(built, passes), folder, endpoints, workplace, on_start))
    frozen = {}
    with RunReader(folder) as reader:
        for task, rubric in built.rubrics.items():
            if rubric.open_thresholds:
                rubric = observed_thresholds(rubric, stored_signals(reader, task), task, "the pilot")
                values = ", ".join(f"{name} {value:.4g}" for name, value in rubric.thresholds.items())
                click.echo(f"Thresholds of {task}: {values}", err=True)
            frozen[task] = rubric
    return replace(built, rubrics=frozen, earlier=EarlierAnswers.read(folder))


def resumed(built: Built, directory: Path) -> Built:
    """Return the run as an earlier sitting has left it: its thresholds, and what its pilot was answered."""
    with RunReader(directory) as reader:
        rubrics = with_stored_thresholds(built.rubrics, reader.meta())
    folder = directory / PILOT
    earlier = EarlierAnswers.read(folder) if pilot_passes(built) and folder.exists() else None
    return replace(built, rubrics=rubrics, earlier=earlier)


def _pilot_of(built: Built, passes: int) -> Built:
    """Return the same run, asking every model `passes` times through the questions and deciding nothing."""
    config = built.config
    # Where a question is asked several times in a row, only whole blocks ask all questions equally often.
    passes = 1 + -(-(passes - 1) // built.in_a_row) * built.in_a_row
    config = config.model_copy(
        update={
            "goal": BudgetGoal(kind="budget"),
            "stopping": config.stopping.model_copy(update={"max_passes": passes}),
            "allocation": config.allocation.model_copy(update={"models": "uniform", "questions": "schedule"}),
            "references": (),
            "prior": None,
            "tasks": tuple(task.model_copy(update={"rubric": RubricConfig()}) for task in config.tasks),
        }
    )
    return replace(built, config=config, rubrics=rubrics_of(config), earlier=None, continued=None)


async def _ask(
    pilot: Built,
    folder: Path,
    endpoints: Mapping[str, Sequence[OpenAIEndpoint]],
    workplace: Workplace,
    on_start: Callable[[Runner], None],
) -> StopVerdict:
    session, elapsed = pilot.session(), 0.0
    with ExitStack() as stack:
        if (folder / RUN_FILE).exists():
            writer = stack.enter_context(continue_run(pilot, folder))
            with writer.reader() as reader:
                session.replay(chain(reader.log(), reader.log(after_stop=True)), reader.unanswered())
                latest = reader.latest_snapshot()
            elapsed = latest.elapsed if latest is not None else 0.0
            if session.stopped is not None:
                return session.stopped
        else:
            writer = stack.enter_context(RunWriter.create(folder, meta=pilot.meta()))
        async with workplace.executor(pilot) as executor:
            runner = pilot.runner(
                session, writer, endpoints, elapsed=elapsed, observer=_say_remarks, executor=executor
            )
            on_start(runner)
            return await runner.run()


def _say_remarks(event: Event) -> None:
    """Say what a person should know: a pilot shows nothing else while it runs."""
    if isinstance(event, Remarked):
        click.echo(event.text, err=True)


def _require_complete(verdict: StopVerdict) -> None:
    if verdict.reason == "interrupted":
        raise click.Abort
    if verdict.reason in ("endpoints", "partial"):
        raise EndpointsUnusable(f"the pilot could not be finished: {describe(verdict)}")
    if verdict.reason != "max_passes":
        raise UsageError(
            f"the budget ended before the pilot ({describe(verdict)}): raise it, lower rubric.pilot, or give "
            "the thresholds"
        )
