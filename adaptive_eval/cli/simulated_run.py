"""The session and the answers that ``adaptive-eval simulate`` simulates, from its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import choices_of
from adaptive_eval.cli.simulating import numbers
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import GoalSpec, SessionSpec, TaskSpec
    from adaptive_eval.simulate import Answers, RecordedAnswers

PAPER = "paper"
DEFAULT_MODELS = 5
DEFAULT_PASSES = 80
_SPEC_OPTIONS = (
    "models", "questions", "recorded", "only", "weights", "goal", "rule", "confidence", "family",
    "ties", "equivalence", "max_passes", "target", "policy", "order",
)  # fmt: skip
"""Options that a config answers itself."""


def what_to_run(options: Mapping[str, Any]) -> tuple[SessionSpec, Answers]:
    """Return the session and the answers that the command line asks for."""
    from adaptive_eval.core.spec import TaskSpec
    from adaptive_eval.simulate import BiasedCoins
    from adaptive_eval.simulate.assumptions import default_means
    from scorio.study import PAPER_MEANS

    means: tuple[float, ...] | None = None
    if options["means"] is not None:
        means = PAPER_MEANS if options["means"] == PAPER else numbers(options["means"], "--means")
    if options["config_file"] is not None:
        spec = _configured(options)
        means = means if means is not None else default_means(len(spec.models))
        return spec, BiasedCoins(means, options["spread"], options["correlation"])
    if options["recorded"]:
        if means is not None or options["models"] is not None:
            raise UsageError("--recorded brings its own models; use --only to choose among them")
        return replayed(options)
    number = options["models"]
    if means is not None and number not in (None, len(means)):
        raise UsageError(
            f"--models {number} and --means with {len(means)} numbers disagree; leave --models out"
        )
    means = means if means is not None else default_means(number or DEFAULT_MODELS)
    questions = tuple(f"q{index + 1}" for index in range(options["questions"]))
    names = tuple(f"m{index + 1}" for index in range(len(means)))
    spec = session_spec(options, names, (TaskSpec("simulated", questions, _weights(options)),))
    return spec, BiasedCoins(means, options["spread"], options["correlation"])


def _configured(options: Mapping[str, Any]) -> SessionSpec:
    from adaptive_eval.build.assembly import build
    from adaptive_eval.config import load_config

    context = click.get_current_context()
    for name in _SPEC_OPTIONS:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} and --config cannot be combined; change the config with --override")
    return build(load_config(options["config_file"], options["overrides"])).spec


def _weights(options: Mapping[str, Any]) -> tuple[float, ...]:
    from scorio.sequential.cells import unit_scores

    weights = (0.0, 1.0) if options["weights"] is None else numbers(options["weights"], "--weights")
    try:
        unit_scores(weights)
    except ValueError as error:
        raise UsageError(f"--weights: {error}") from None
    return weights


def session_spec(
    options: Mapping[str, Any],
    names: tuple[str, ...],
    tasks: tuple[TaskSpec, ...],
    *,
    early_repeats: bool = True,
) -> SessionSpec:
    """Return the session that the options for decisions ask for; one model alone is not ranked."""
    from adaptive_eval.core.spec import AllocationSpec, ModelSpec, SessionSpec, StoppingSpec

    confidence, margin = options["confidence"], options["equivalence"]
    if not 0.5 < confidence < 1.0:
        raise UsageError(f"--confidence must lie between 0.5 and 1, got {confidence:g}")
    if margin is not None and margin <= 0.0:
        raise UsageError(f"--equivalence must be positive, got {margin:g}")
    return SessionSpec(
        models=tuple(ModelSpec(name) for name in names),
        tasks=tasks,
        goal=_goal(options["goal"], names),
        stopping=StoppingSpec(
            rule=options["rule"],
            confidence=confidence,
            family=options["family"],
            ties=options["ties"],
            equivalence=margin,
            max_passes=options.get("max_passes") or (None if options["recorded"] else DEFAULT_PASSES),
            target=options.get("target", "benchmark"),
        ),
        allocation=AllocationSpec(
            options.get("policy", "round-robin"),
            options.get("order", "schedule"),
            early_repeats=early_repeats,
        ),
        seed=options["seed"],
    )


def _goal(text: str, names: tuple[str, ...]) -> GoalSpec:
    from adaptive_eval.core.spec import GoalSpec

    if " and " in text:
        return GoalSpec("all", goals=tuple(_goal(part.strip(), names) for part in text.split(" and ")))
    kind, _, value = text.partition("=")
    try:
        match kind:
            case "ranking" if not value:
                return GoalSpec("ranking" if len(names) > 1 else "budget")
            case "top-k" if 1 <= int(value or 1) < max(len(names), 2):
                return GoalSpec("top-k", k=int(value or 1))
            case "baseline" if value in names:
                return GoalSpec("baseline", model=value)
            case "threshold":
                return GoalSpec("threshold", value=float(value))
            case "width" if float(value) > 0.0:
                return GoalSpec("width", width=float(value))
    except ValueError:
        pass
    raise UsageError(
        f"--goal {text!r}: use ranking, top-k=K with K below the number of models, baseline=MODEL (one of "
        f"{', '.join(names)}), threshold=SCORE or width=WIDTH; several with `and`, or with `or`"
    )


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
    tasks = shared.task_specs(known or _weights(options))
    spec = session_spec(options, shared.models, tasks, early_repeats=shared.repeated)
    return spec, RecordedAnswers(shared)
