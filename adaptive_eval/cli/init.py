"""``adaptive-eval init``: a first config from a few questions, or from options alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import (
    COUNT,
    SHARE,
    NumberInRange,
    WholeNumber,
    asked_of,
    asking_options,
    flag,
    named,
    option,
)
from adaptive_eval.endpoints.server_info import not_served
from adaptive_eval.errors import UsageError

if TYPE_CHECKING:
    from adaptive_eval.core.spec import SessionSpec
    from adaptive_eval.run.new_config import Asked, Listed, Offer

_MARGIN = SHARE


@named(
    "init",
    "",
    "my.yaml --endpoint http://gpu1:8000/v1 --task gsm8k --margin 0.03",
    "my.yaml --model openai/gpt-5-mini --model openrouter/qwen/qwen3-8b --task gsm8k",
)
@click.argument(
    "file", default="adaptive-eval.yaml", type=click.Path(dir_okay=False, path_type=Path), metavar="[FILE]"
)
@option("--endpoint urls URL …", "A server. Repeatable.")
@option(
    "--model wanted ID …",
    "A model that a server lists (default: all); without --endpoint URL#NAME or PROVIDER/NAME. Repeatable.",
)
@option("--task task_name NAME", "A ready benchmark (adaptive-eval tasks) or a file.")
@option("--dataset FILE", "A local copy of the benchmark's dataset.")
@option(
    "--margin N",
    "Models closer than this count as tied; for one model, half the width of its interval. Default: by "
    "simulation.",
    _MARGIN,
)
@option("--trials N", "Budget in trials. Default: by simulation.", COUNT)
@asking_options
@flag("--force", "Replace FILE if it exists.")
def command(file: Path, **options: Any) -> None:
    """Write a first config to FILE (default: adaptive-eval.yaml), and its schema for editors next to it.

    Without an option, it asks for the value on a terminal. It asks the servers which models they list, checks
    the config, and shows some margins with the trials that each probably takes. Nothing is spent. Of one
    model alone, the score is measured; the config says how it is held against a number instead.
    """
    from adaptive_eval.run.new_config import SCHEMA_LINE, USUAL, check, config_text, schema_text, task_of

    folder = file.resolve().parent
    if file.exists() and not options["force"]:
        raise UsageError(f"{file} exists; name another file, or replace it with --force")
    if not folder.is_dir():
        raise UsageError(f"{file}: there is no folder {folder}")
    models, asked = _models_of(options)
    alone = len(models) == 1
    name = options["task_name"] or _asked("--task", "Ready benchmark or file", "gsm8k")[0]
    choose = None
    if sys.stdin.isatty():
        choose = _column
    task = task_of(
        name,
        folder,
        dataset=options["dataset"],
        scorer=options["scorer"],
        fields=options["fields"],
        choose=choose,
    )
    run_name = "first-run"
    if file.stem[:1].isalnum():
        run_name = file.stem
    written: dict[str, Any] = {
        "name": run_name,
        "models": models,
        "tasks": [task],
        "asked": asked,
    }
    margin = options["margin"]
    trials = options["trials"]
    about = ""
    draft = check(config_text(**written, margin=margin or USUAL, trials=None), folder)
    if margin is None or trials is None:
        margin, trials, about = _afforded(draft.spec, margin, trials, alone=alone)
    text = config_text(**written, margin=margin, trials=trials, about_trials=about)
    check(text, folder)
    schema = folder / "adaptive-eval.schema.json"
    schema.write_text(schema_text(), encoding="utf-8")
    file.write_text(SCHEMA_LINE + text, encoding="utf-8")
    if alone:
        many = "1 model"
        goal = f"interval {2 * margin:g} wide"
    else:
        many = f"{len(models)} models"
        goal = f"margin {margin:g}"
    click.echo(f"{file}: {many}, task {draft.tasks[0].name}, {goal}, budget {trials:,} trials. Next:")
    for step in ("validate", "plan", "run"):
        click.echo(f"  adaptive-eval {step} {file}")


def _models_of(options: Mapping[str, Any]) -> tuple[list[Listed], Asked]:
    """Return the models to compare, as named in full or as listed by servers, and how they are asked."""
    from adaptive_eval.run.new_config import list_models, named_models

    asked = asked_of(options)
    urls = options["urls"]
    wanted = options["wanted"]
    if wanted and not urls:
        return named_models(wanted, asked), asked
    urls = urls or _asked("--endpoint", "Servers, separated by spaces", "http://localhost:8000/v1")
    ask_key = None
    if sys.stdin.isatty():
        ask_key = _key
    listed, asked = list_models(urls, asked, wanted, say=partial(click.echo, err=True), ask_key=ask_key)
    return _chosen(listed, wanted), asked


def _key() -> str:
    """Return the variable that holds the servers' key, asked for at the terminal."""
    return _asked("--api-key-env", "Environment variable that holds the key", "OPENAI_API_KEY")[0]


def _column(field: str, columns: list[str]) -> str:
    """Return the column that holds a field of the task, asked for at the terminal."""
    return str(click.prompt(f"Column of the {field}", type=click.Choice(columns)))


_TIED = "Models closer than this count as tied"
_MEASURED = "Half the width of the interval that the score shall have"


def _afforded(
    spec: SessionSpec, margin: float | None, trials: int | None, *, alone: bool
) -> tuple[float, int, str]:
    """Return a margin and a budget, asked for if there is a terminal, and a comment about the budget."""
    from adaptive_eval.run.new_config import MARGINS, offers, suggested

    click.echo("simulating the config for a margin and a budget …", err=True)
    offered = offers(spec, MARGINS if margin is None else [margin])
    _show(offered, alone=alone)
    chosen = suggested(offered, trials)
    if margin is None:
        margin = float(_number(_MEASURED if alone else _TIED, chosen.margin, _MARGIN))
        if trials is None and margin not in MARGINS:
            offered = offers(spec, [margin])
            _show(offered, alone=alone)
        chosen = next((offer for offer in offered if offer.margin == margin), chosen)
    if trials is not None:
        return margin, trials, ""
    trials = int(_number("Budget in trials", chosen.trials, COUNT))
    return margin, trials, chosen.words if trials == chosen.trials else ""


def _show(offered: list[Offer], *, alone: bool) -> None:
    from adaptive_eval.cli.simulating import per_cent, print_table
    from adaptive_eval.run.new_config import RUNS

    title = f"A ranking takes about (by {RUNS} simulated runs each, neighbours one margin apart)"
    if alone:
        title = f"An interval two margins wide takes about (by {RUNS} simulated runs each, a score of 0.5)"
    print_table(
        ("margin", "trials, half of runs", "9 of 10 runs", "resolved"),
        [
            (
                f"{offer.margin:g}",
                f"{offer.typical:,}",
                f"{offer.trials:,}",
                per_cent(offer.resolved / RUNS),
            )
            for offer in offered
        ],
        title=title,
    )


def _number(question: str, default: float, kind: NumberInRange | WholeNumber) -> float:
    """Return the number that is an answer; without a terminal the default."""
    if sys.stdin.isatty():
        return float(click.prompt(question, default=default, type=kind))
    return default


def _asked(option: str, question: str, default: str) -> list[str]:
    """Return the words of an answer; without a terminal, an error that names the option."""
    if sys.stdin.isatty():
        return str(click.prompt(question, default=default)).split() or [default]
    raise click.UsageError(f"{option} is missing, and there is no terminal to ask at")


def _chosen(listed: list[Listed], wanted: tuple[str, ...]) -> list[Listed]:
    """Return the models to compare: those named, else those chosen of the list, else all."""
    ids = [one.model for one in listed]
    if not wanted and len(listed) > 2 and sys.stdin.isatty():
        for number, one in enumerate(listed, start=1):
            click.echo(f"{number:3}  {one.model}  ({one.url})")
        picked = _asked(
            "--model", "Numbers of the models to compare", " ".join(map(str, range(1, len(ids) + 1)))
        )
        wrong = [word for word in picked if not (word.isdecimal() and 1 <= int(word) <= len(ids))]
        if wrong:
            raise UsageError(f"{wrong[0]!r} is not the number of a model; there are 1 to {len(ids)}")
        chosen = [listed[int(word) - 1] for word in dict.fromkeys(picked)]
    else:
        if missing := [one for one in wanted if one not in ids]:
            raise UsageError(
                not_served(" and ".join(dict.fromkeys(one.url for one in listed)), missing[0], ids)
            )
        chosen = [one for one in listed if not wanted or one.model in wanted]
    return chosen
