"""``adaptive-eval schema``: the grammar of a config, for editors."""

from __future__ import annotations

import json

import click


@click.command("schema")
def command() -> None:
    """Print the JSON schema of a config.

    An editor with a YAML language server completes and checks a config that begins with
    "# yaml-language-server: $schema=FILE".
    """
    from adaptive_eval.config.load_config import json_schema

    click.echo(json.dumps(json_schema(), indent=2))
