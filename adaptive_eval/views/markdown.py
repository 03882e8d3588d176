"""The report as Markdown."""

from __future__ import annotations

from functools import cache

from jinja2 import Template

from adaptive_eval.views.escape import fenced, md
from adaptive_eval.views.page import environment, shared_context
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import pair_name


def to_markdown(summary: Summary) -> str:
    """Return the report as Markdown; every name, message and setting in it is escaped."""
    return _template().render(shared_context(summary)) + "\n"


@cache
def _template() -> Template:
    plain = environment().overlay(autoescape=False, finalize=None)
    plain.filters = {**plain.filters, "md": md}
    words = {"md": md, "fenced": fenced, "grouped": "{:,}".format, "pair_name": pair_name}
    return plain.get_template("report.md", globals=words)
