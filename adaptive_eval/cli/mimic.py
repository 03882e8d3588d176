"""``adaptive-eval mimic``: serve biased coins."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adaptive_eval.cli.options import FROM_0, NOT_NEGATIVE, WholeNumber, named_mean, option, refuse_options
from adaptive_eval.errors import UsageError, in_words

if TYPE_CHECKING:
    from adaptive_eval.mimic.mimic_spec import MimicSpec

_DEFAULT_MODELS = ("expert=0.90", "student-a=0.72", "student-b=0.71", "novice=0.45", "guesser=0.25")
_SPEC_OPTIONS = ("datasets", "models", "seed", "latency", "api_key_env")


@click.command("mimic", short_help="Serve biased coins as an OpenAI-compatible endpoint.")
@option("--host ADDRESS", "Address to listen on.", default="127.0.0.1")
@option("--port N", "Port; 0 takes a free one.", WholeNumber(0, 65535), default=8000)
@option(
    "--dataset datasets FILE …",
    "Answer key: JSON Lines with question, answer and, for multiple choice, choices. Repeatable.",
)
@option(
    "--model models NAME=MEAN …",
    f"A model and its mean accuracy in [0, 1]. Repeatable. Default: {', '.join(_DEFAULT_MODELS)}.",
)
@option("--seed N", "Seed of every coin and latency.", FROM_0, default=0)
@option("--latency SECONDS", "Median latency, lognormal.", NOT_NEGATIVE, default=0.2)
@option("--api-key-env NAME", "Variable with the key that requests must carry.")
@option(
    "--spec spec_file FILE",
    "Everything in one JSON file, faults included, in place of the options above but host and port.",
)
def command(host: str, port: int, spec_file: str | None, **options: Any) -> None:
    """Serve biased coins as an OpenAI-compatible endpoint.

    Each model answers each question right with a fixed probability, and else plausibly wrong. Requests with
    the same seed get the same answer. Ctrl-C stops the server.

    While it runs, GET /mimic/stats shows what was served, and POST /mimic/faults makes it misbehave:
    {"faults": [{"kind": "status", "status": 429, "retry_after": 2, "probability": 0.1}]} with "model" for
    one model only. Kinds: status, hang, drop, malformed, cut_off, echo_key. When: probability, first,
    requests, every, attempts; always if none is given.
    """
    # uvicorn takes longer to import than everything else here, and a wrong option does not need it.
    from adaptive_eval.mimic.routes import create_app
    from adaptive_eval.mimic.serving import serve

    if spec_file is None:
        spec = _spec_from_options(options)
    else:
        refuse_options(_SPEC_OPTIONS, "and --spec cannot be combined; put it into the spec file")
        spec = _spec_from_file(spec_file)
    try:
        serve(create_app(spec), host=host, port=port, ready=lambda bound: _announce(spec, host, bound))
    except KeyboardInterrupt:
        click.echo("Stopped.")


def _spec_from_options(options: Mapping[str, Any]) -> MimicSpec:
    from adaptive_eval.mimic.mimic_spec import spec_from_data

    latency = options["latency"]
    key = options["api_key_env"]
    if not 0 <= latency < math.inf:
        raise UsageError(f"--latency {latency} is not a number of seconds from 0")
    models = []
    for text in options["models"] or _DEFAULT_MODELS:
        name, mean = named_mean("--model", text)
        models.append({"name": name, "mean": mean, "latency": {"median": latency}})
    data = {
        "models": models,
        "seed": options["seed"],
        "datasets": [{"path": path} for path in options["datasets"]],
        "api_key": key and _variable(key),
    }
    return spec_from_data(data, "options")


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"--api-key-env {name}: there is no such environment variable; set it to the key")
    return value


def _spec_from_file(path: str) -> MimicSpec:
    from adaptive_eval.mimic.mimic_spec import spec_from_json

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {in_words(error)}") from None
    return spec_from_json(text, path)


def _announce(spec: MimicSpec, host: str, port: int) -> None:
    named = host
    if ":" in host:
        named = f"[{host}]"
    base = f"http://{named}:{port}/v1"
    question = {"role": "user", "content": "Is this coin biased?"}
    body = json.dumps({"model": spec.models[0].name, "messages": [question], "seed": 1})
    key = ' -H "Authorization: Bearer $KEY"'
    if spec.api_key is None:
        key = ""
    click.echo(f"Base URL: {base}")
    click.echo(f"Models: {', '.join(model.name for model in spec.models)}")
    click.echo(
        f"Try:\n  curl {base}/chat/completions{key} -H 'Content-Type: application/json' \\\n    -d '{body}'"
    )
    click.echo("Ctrl-C stops.")
