"""Options for goal, rule and error rate of commands without a config, and the session they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import choices_of, override_option, stacked
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.simulate import RecordedAnswers

decision_options = stacked(
    click.option("--only", metavar="NAMES", help="Only these of the recorded models, separated by commas."),
    click.option("--weights", metavar="LIST", help="Weight of each category of the rubric. Default: 0,1."),
    click.option(
        "--goal",
        metavar="GOAL",
        help="ranking, top-k=K, baseline=MODEL, threshold=SCORE, width=WIDTH, or several with `and`. "
        "Default: ranking.",
    ),
    click.option("--confidence", metavar="N", help="1 minus the error rate. Default: 0.95."),
    click.option(
        "--equivalence",
        metavar="E",
        help="Equivalence margin, in score units: models within it are tied. Default: no ties.",
    ),
    override_option,
)
"""The settings that are asked for most; ``-o`` takes every other of goal, stopping and allocation."""


def numbers(text: str, option: str) -> tuple[float, ...]:
    """Return comma-separated numbers.

    Examples
    --------
    >>> numbers("0.3, 0.5", "--means")
    (0.3, 0.5)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a list of numbers such as 0.3,0.5", param_hint=option
        ) from None


def session_spec(
    options: Mapping[str, Any],
    names: tuple[str, ...],
    tasks: tuple[TaskSpec, ...],
    *,
    early_repeats: bool = True,
) -> SessionSpec:
    """Return the session that the options ask for, checked as a config is; one model alone is not ranked."""
    from adaptive_eval.build.session_spec import decided_spec
    from adaptive_eval.config.load_config import decisions_from_data

    data: dict[str, Any] = {"allocation": {"questions": "schedule"}}
    shorthands = {"goal": "goal", "confidence": "stopping.confidence", "equivalence": "stopping.equivalence"}
    given = [f"{key}={options[name]}" for name, key in shorthands.items() if options[name] is not None]
    if len(names) == 1:
        data["goal"] = "budget"
    weights = [task.weights for task in tasks]
    settings = [*given, *options["overrides"]]
    decisions = decisions_from_data(data, names, weights, settings, "the options")
    capped = not options.get("recorded")
    return decided_spec(decisions, names, tasks, options["seed"], capped=capped, early_repeats=early_repeats)


def weights_of(options: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the weights of the categories."""
    from scorio.sequential.parts import unit_scores

    weights = (0.0, 1.0) if options["weights"] is None else numbers(options["weights"], "--weights")
    try:
        unit_scores(weights)
    except ValueError as error:
        raise UsageError(f"--weights: {error}") from None
    return weights


def replayed(options: Mapping[str, Any]) -> tuple[SessionSpec, RecordedAnswers]:
    """Return the session and the answers of recorded outcomes."""
    from adaptive_eval.interop.recorded_files import copies_words, read_recorded, recorded_weights
    from adaptive_eval.simulate import RecordedAnswers

    recorded = read_recorded(options["recorded"], choices_of(options))
    if recorded.copies:
        click.echo(f"note: {copies_words(recorded.copies)}", err=True)
    if options["only"] is not None:
        recorded = recorded.only([name.strip() for name in options["only"].split(",")])
    shared = recorded.answered_by_all()
    left_out = len(recorded.questions) - len(shared.questions)
    if left_out:
        click.echo(f"note: {left_out} questions are left out that not all models have answered", err=True)
    known = recorded_weights(options["recorded"]) if options["weights"] is None else None
    tasks = shared.task_specs(known or weights_of(options))
    spec = session_spec(options, shared.models, tasks, early_repeats=shared.repeated)
    return spec, RecordedAnswers(shared)
