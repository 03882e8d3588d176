"""Sentences of the views, from templates of plain text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

TEMPLATES = Path(__file__).parent / "templates"


def sentences(template: str, **context: Any) -> list[str]:
    """Return the lines of a text template, without empty ones; views escape them as any other text."""
    lines = _environment().get_template(template).render(context).splitlines()
    return [line for line in lines if line]


@cache
def _environment() -> Environment:
    return Environment(  # noqa: S701 - no page is made of it
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
