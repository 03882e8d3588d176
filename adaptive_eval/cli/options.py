"""Options that several commands share, and the session that a command without config asks for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from adaptive_eval.errors import UsageError
from adaptive_eval.interop.column_maps import read_map
from adaptive_eval.trial import FIXED, RIGHT_OR_WRONG, ScoreRange

if TYPE_CHECKING:  # numpy and all that is built on it; --help needs none of it
    from adaptive_eval.core.spec import SessionSpec, TaskSpec
    from adaptive_eval.interop.found import Log, ReadingOptions
    from adaptive_eval.run.new_config import Asked
    from adaptive_eval.simulate import RecordedAnswers

Command = TypeVar("Command", bound=Callable[..., Any])


def stacked(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds options to a command, the first on top."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


class NumberInRange(click.FloatRange):
    """A number in a range, which the help text shows."""

    name = "number"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return N."""
        return "N"


class WholeNumber(click.IntRange):
    """A whole number in a range, which the help text shows."""

    name = "whole number"
    get_metavar = NumberInRange.get_metavar


PATH, FOLDER = click.Path(path_type=Path), click.Path(file_okay=False, path_type=Path)
COUNT, FROM_0 = WholeNumber(min=1), WholeNumber(min=0)
POSITIVE, NOT_NEGATIVE = NumberInRange(min=0.0, min_open=True), NumberInRange(min=0.0)
SHARE = NumberInRange(min=0.0, max=1.0, min_open=True, max_open=True)


def option(
    words: str, says: str, kind: click.ParamType[Any] | None = None, **settings: Any
) -> Callable[[Any], Any]:
    """Return an option written as in a usage line, such as ``--rename OLD=NEW …``.

    The last word says what it takes; ``…`` after it lets the option be repeated.
    """
    repeated = words.endswith(" …")
    *names, takes = words.removesuffix(" …").split()
    return click.option(*names, metavar=takes, multiple=repeated, type=kind, help=says, **settings)


def flag(words: str, says: str) -> Callable[[Any], Any]:
    """Return an option that takes nothing, by its name and maybe that of its parameter."""
    return click.option(*words.split(), is_flag=True, help=says)


override_option = option(
    "-o --override overrides KEY=VALUE …",
    "Change a setting of the config, such as stopping.max_passes=8. Repeatable.",
)

display_option = click.option(
    "--display",
    type=click.Choice(["full", "compact", "plain", "none"]),
    help="How to show the run. Default: full on a terminal, plain lines elsewhere.",
)

disk_option = click.option(
    "--disk-check/--no-disk-check", default=True, help="Check first that the run has room on its disk."
)

metrics_options = stacked(
    option(
        "--metrics-port [HOST:]PORT",
        "Serve Prometheus metrics at http://127.0.0.1:PORT/metrics while running.",
    ),
    option(
        "--metrics-file FILE",
        "Keep Prometheus metrics in FILE, for a textfile collector.",
        click.Path(dir_okay=False, path_type=Path),
    ),
)


def given_options(names: Collection[str]) -> list[str]:
    """Return which of the options `names` the command line gives, as they are written there."""
    context = click.get_current_context()
    found = [option for option in context.command.params if option.name in names]
    written = click.core.ParameterSource.COMMANDLINE
    return [one.opts[0] for one in found if context.get_parameter_source(str(one.name)) is written]


def refuse_options(names: Collection[str], words: str) -> None:
    """Raise UsageError with `words` about the first of the options `names` that the command line gives."""
    for name in given_options(names):
        raise UsageError(f"{name} {words}")


def named_mean(option: str, text: str) -> tuple[str, float]:
    """Return name and mean of NAME=MEAN.

    Examples
    --------
    >>> named_mean("--model", "expert=0.9")
    ('expert', 0.9)
    """
    name, _, value = text.rpartition("=")
    with suppress(ValueError):
        if name and 0.0 <= float(value) <= 1.0:
            return name, float(value)
    raise UsageError(f"{option} {text!r} is not NAME=MEAN with a mean from 0 to 1, such as expert=0.9")


class _Command(click.Command):
    """A command that says how a setting of the config is given, when somebody gives it as an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            setting = _setting(error.option_name)
            if setting is None or all(option.name != "overrides" for option in self.params):
                raise
            words = (
                f"there is no option {error.option_name}; settings of the config are given so: -o {setting}="
            )
            raise click.UsageError(words, ctx) from None


def _setting(option: str) -> str | None:
    """Return the setting that an option seems to mean, such as budget.trials; None if none has its name."""
    from adaptive_eval.config import RunConfig
    from adaptive_eval.options.wording import fields_of, section_with

    key = option.lstrip("-").replace("-", "_")
    of_run = fields_of(RunConfig)
    if key in of_run:
        return key
    holder = section_with(key, RunConfig)
    if holder:
        return f"{holder}.{key}"
    return None


def named(name: str, *examples: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Return the decorator of a command whose help ends with examples of its arguments."""
    lines = ["\b", "Examples:", *(f"  adaptive-eval {name} {arguments}".rstrip() for arguments in examples)]
    return click.command(name, _Command, epilog="\n".join(lines), **settings)


log_options = stacked(
    option(
        "--model NAME[=FILE] …",
        "Name of the model in files that name none. With =FILE, read FILE too, and call its only model NAME. "
        "Repeatable.",
    ),
    option("--task NAME", "Name of the task, in place of the files' own."),
    option("--rename OLD=NEW …", "Rename a model. Repeatable."),
    option("--id question_id FIELD", "The dataset's field that names a question."),
    option(
        "--map mapped OURS=THEIRS,…",
        "Which columns of a table hold what: question=task_id,model=agent,score=passed,repeat=trial. A "
        "dot leads into an object; rows=PATH names the list of rows in a JSON file. cluster=COLUMN, also "
        "a field of lm-eval's documents or Inspect's metadata, groups questions that depend on each other.",
    ),
    option(
        "--range LO,HI",
        "Lowest and highest score: scores are kept as numbers. Default: 0,1. --write makes categories of up "
        "to 16 different scores.",
        callback=lambda *given: score_range(given[-1]),
    ),
    option("--metric NAME", "Metric or scorer to take, if the log has several."),
    option("--filter NAME", "Filter to take, if the log has several (lm-eval)."),
    option(
        "--scorer SCORER", "Score the answers again: a scorer's kind, or a mapping with kind and options."
    ),
    flag("--incomplete", "Take logs of unfinished evaluations too."),
)


class _Temperature(NumberInRange):
    """A temperature, or none for a request without one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; ``none`` as it is."""
        if value == NO_TEMPERATURE:
            return value
        return super().convert(value, param, ctx)


NO_TEMPERATURE = "none"


def _named_columns(context: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """Return the column of each field, of FIELD=COLUMN."""
    found = {}
    for text in texts:
        field, _, column = text.partition("=")
        if not field or not column:
            raise UsageError(f"--field {text!r} is not FIELD=COLUMN, such as input=question")
        found[field] = column
    return found


asking_options = stacked(
    option(
        "--api-key-env NAME", "A new config: the environment variable that holds the key of models at a URL."
    ),
    option(
        "--max-tokens N",
        "A new config: most tokens of an answer. Default: 4096, or half of a context that is shorter.",
        COUNT,
    ),
    option(
        "--temperature N",
        "A new config: the sampling temperature; none sends no temperature.",
        _Temperature(min=0.0, max=100.0),
        default="0.7",
    ),
    option("--system TEXT", "A new config: the system message; a text, or a .txt or .md file."),
    option(
        "--scorer SCORER",
        "A new config: a scorer's kind, or a mapping with kind and options. Default: chosen by the targets.",
    ),
    option(
        "--field fields FIELD=COLUMN …",
        "A new config: the column of the dataset that holds input, target, choices or id. Repeatable.",
        callback=_named_columns,
    ),
)
"""How the models of a config are asked that a command writes."""


def asked_of(options: Mapping[str, Any]) -> Asked:
    """Return how all models are asked, from the options of :data:`asking_options`."""
    from adaptive_eval.config.secret_checks import is_random_token
    from adaptive_eval.options.mistakes import looks_like_secret
    from adaptive_eval.run.new_config import Asked

    temperature = options["temperature"]
    variable = options["api_key_env"]
    if variable is not None and (looks_like_secret(variable) or is_random_token(variable)):
        raise UsageError("--api-key-env takes the name of a variable, and this looks like a key: export it")
    chosen = temperature
    if temperature == NO_TEMPERATURE:
        chosen = None
    return Asked(
        api_key_env=variable,
        max_tokens=options["max_tokens"],
        temperature=chosen,
        system=options["system"],
    )


def score_range(text: str | None) -> ScoreRange | None:
    """Return a range of scores.

    Examples
    --------
    >>> score_range("1,10")
    (1.0, 10.0)
    """
    if text is None:
        return None

    ends = numbers(text, "--range")
    if len(ends) != 2 or not -inf < ends[0] < ends[1] < inf:
        raise UsageError(f"--range {text}: write the lowest and the highest score, such as 0,1")
    return ScoreRange(ends)


def choices_of(options: Mapping[str, Any]) -> ReadingOptions:
    """Return the choices that the options hold; none for a command without these options."""
    from adaptive_eval.interop.found import ReadingOptions

    if "rename" not in options:
        return ReadingOptions(independent=_takes_copies_for_draws(options))

    model = None
    models = dict[Path, str]()
    for text in options["model"]:
        name, equals, file = text.rpartition("=")
        if equals and not Path(file).exists():
            raise UsageError(f"--model {text}: there is no file {file!r}")
        if equals:
            models[Path(file)] = name
        elif model is not None:
            raise UsageError(f"--model {model} and --model {text} name the same files; write NAME=FILE")
        else:
            model = text
    rename = {}
    for text in options["rename"]:
        old, _, new = text.rpartition("=")
        if not old or not new:
            raise UsageError(f"--rename {text!r} is not OLD=NEW")
        rename[old] = new
    scorer, scorer_options = None, {}
    if options["scorer"] is not None:
        from adaptive_eval.run.rescoring_specs import read_scorer

        section = read_scorer(options["scorer"])
        scorer, scorer_options = section.kind, section.options()
    columns = read_map(options["mapped"])
    cluster = columns.pop("cluster", None)
    as_given = ("task", "question_id", "metric", "filter", "range", "incomplete")
    return ReadingOptions(
        model=model,
        models=models,
        rename=rename,
        columns=columns,
        cluster=cluster,
        scorer=scorer,
        scorer_options=scorer_options,
        independent=_takes_copies_for_draws(options),
        **{name: options[name] for name in as_given},
    )


def _takes_copies_for_draws(options: Mapping[str, Any]) -> bool:
    """Return whether the options say that equal texts are draws of a sure model; mistakes are found later."""
    from adaptive_eval.config.document import apply_overrides, read_overrides

    given, _ = read_overrides(options.get("overrides", ()), {})
    said = apply_overrides({}, given).get("on")
    return isinstance(said, dict) and said.get("copies") == "independent"


decision_options = stacked(
    option("--only NAMES", "Only these of the recorded models, separated by commas."),
    option("--weights LIST", "Weight of each category of the rubric. Default: 0,1."),
    option(
        "--goal GOAL",
        "ranking, top-k=K, baseline=MODEL, threshold=SCORE, width=WIDTH, or several with `and`. "
        "Default: ranking.",
    ),
    option("--confidence N", "1 minus the error rate. Default: 0.95."),
    option(
        "--equivalence E", "Equivalence margin, in score units: models within it are tied. Default: no ties."
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
        return tuple(map(float, text.split(",")))
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
    rules: Collection[str] = (),
) -> SessionSpec:
    """Return the session that the options ask for, checked as a config is; one model alone is not ranked.

    Without other wish it has the rule of the runs that recorded answers come from.
    """
    from adaptive_eval.build.session_spec import decided_spec
    from adaptive_eval.config.load_config import decisions_from_data
    from adaptive_eval.options.decisions import RULE_GROUP, RULES, installed

    _require_decisions(options["overrides"])
    data: dict[str, Any] = {"allocation": {"questions": "schedule"}}
    shorthands = {"goal": "goal", "confidence": "stopping.confidence", "equivalence": "stopping.equivalence"}
    given = [f"{key}={options[name]}" for name, key in shorthands.items() if options[name] is not None]
    if len(names) == 1:
        data["goal"] = "budget"
    grouped = any(task.clusters is not None for task in tasks)
    data["stopping"] = {"target": "population"} if grouped else {}
    known = [rule for rule in rules if rule != FIXED]
    if len(known) == 1 and known[0] in (*RULES, *installed(RULE_GROUP)):
        data["stopping"]["rule"] = known[0]
    weights = [task.weights for task in tasks]
    settings = [*given, *options["overrides"]]
    decisions = decisions_from_data(data, names, weights, settings, "the options")
    if grouped and decisions.stopping.target != "population":
        raise UsageError(
            "-o stopping.target=benchmark: groups of questions (--map cluster=…) are for statements about "
            "questions like these; leave one of the two out"
        )
    capped = not options.get("recorded")
    return decided_spec(decisions, names, tasks, options["seed"], capped=capped, early_repeats=early_repeats)


def _require_decisions(overrides: Iterable[str]) -> None:
    """Refuse a setting that only a config has, such as a budget: recorded answers are all read."""
    from adaptive_eval.config import RunConfig
    from adaptive_eval.options.decisions import Decisions

    known = Decisions.model_fields
    for text in overrides:
        section = text.partition("=")[0].partition(".")[0].strip()
        if section in RunConfig.model_fields and section not in known:
            raise UsageError(
                f"-o {text}: {section} is a setting of a config, and there is none: answers are recorded or "
                f"simulated here. -o takes settings of {', '.join(known)}"
            )


def weights_of(options: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the weights of the categories, or the range of scores."""
    given: ScoreRange | None = options.get("range")
    if given is not None:
        if options["weights"] is not None:
            raise UsageError("--weights is for categories and --range for numbers; leave one out")
        return given
    from scorio.sequential.parts import unit_scores

    if options["weights"] is not None:
        weights = numbers(options["weights"], "--weights")
    else:
        weights = RIGHT_OR_WRONG
    try:
        unit_scores(weights)
    except ValueError as error:
        raise UsageError(f"--weights: {error}") from None
    return weights


def say_read_again(logs: Iterable[Log]) -> None:
    """Say of each run among logs that its verdicts are another matter."""
    from adaptive_eval.interop.found import RUN

    for log in logs:
        if log.format == RUN:
            click.echo(
                f"note: {log.path} is a run. Its answers are read in another order here, with the options of "
                "this command, so pairs that it decided may be open. Its own verdicts and Bayes@N: "
                f"adaptive-eval report {log.path}",
                err=True,
            )


def replayed(options: Mapping[str, Any]) -> tuple[SessionSpec, RecordedAnswers]:
    """Return the session and the answers of recorded outcomes."""
    from adaptive_eval.interop.found import require_independent, weighted
    from adaptive_eval.interop.recorded_files import (
        copies_words,
        logs_of_runs,
        read_recorded,
        recorded_weights,
    )
    from adaptive_eval.simulate import RecordedAnswers

    recorded = read_recorded(options["recorded"], choices_of(options), any_order=True)
    known = recorded_weights(recorded)
    if recorded.copies:
        click.echo(f"note: {copies_words(recorded.copies)}", err=True)
    for warning in recorded.warnings:
        click.echo(f"note: {warning}", err=True)
    if options["only"] is not None:
        recorded = recorded.only([name.strip() for name in options["only"].split(",")])
    shared = recorded.asked_of_all()
    if shared.lost:
        click.echo(
            f"note: {shared.lost:,} trials have no answer, or are absent: verdicts count each as anything, "
            "scores leave it out",
            err=True,
        )
    for task in recorded.tasks.keys() - shared.tasks.keys():
        click.echo(f"note: task {task} is left out: no question of it has answers of all models", err=True)
    runs = logs_of_runs(options["recorded"], choices_of(options).cluster)
    say_read_again(runs)
    fewest = int((recorded.counts > 0).sum(axis=1).min())
    for run in runs:
        if fewest < run.questions:
            click.echo(
                f"note: {run.path} has {run.questions:,} questions; a model is asked until its pairs are "
                "decided. Here what it was not asked counts as lost, what no model was asked is left out",
                err=True,
            )
    if isinstance(known, ScoreRange) and options["weights"] is not None:
        raise UsageError("--weights: scores of these runs are numbers, without categories; leave it out")
    if options["weights"] is not None or options.get("range") is not None:
        known = None
    tasks = weighted(shared.task_specs(known or weights_of(options)), runs)
    spec = session_spec(options, shared.models, tasks, early_repeats=shared.repeated, rules=recorded.rules)
    require_independent(spec, runs)
    return spec, RecordedAnswers(shared)
