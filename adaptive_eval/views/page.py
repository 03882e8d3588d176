"""The pages of a run, from templates that escape everything they are given.

The report is one self-contained file that loads nothing and runs nothing. The live page is the same report,
rendered again, with a script of ours that fetches it. Every text that a template prints goes through
:func:`shown` before the template's own escaping, so a name or a message can neither act nor fill the page.
"""

import base64
import hashlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from markupsafe import Markup

from adaptive_eval import __version__
from adaptive_eval.views import inert
from adaptive_eval.views.blocks import Para, WholePage, to_text
from adaptive_eval.views.numbers import NOTHING, count
from adaptive_eval.views.report_page import report_page
from adaptive_eval.views.summary import RunSummary

TEMPLATES = Path(__file__).parent / "templates"


def compiled_templates() -> BytecodeCache:
    """Return where compiled templates are kept: beside Python's files, if that may be written."""
    from jinja2 import FileSystemBytecodeCache
    from jinja2 import __version__ as version

    class Kept(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    return Kept(str(TEMPLATES.parent / "__pycache__"), f"%s.jinja-{version}")


@cache
def _environment() -> Environment:
    """Return the environment of the templates, which escapes all that they print."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # it takes longer than it saves: a template is filled once or twice
        bytecode_cache=compiled_templates(),
    )
    made.globals |= {
        "app_version": __version__,
        "count": count,
        "lines_of": _lines,
        "policy": policy,
        "style": style,
        "with_code": _with_code,
    }
    return made


_TEXT, _NAME = 1_000, 200
_CONFIG_LINE, _CONFIG_LINES = 1_000, 2_000


@dataclass(frozen=True, slots=True)
class Live:
    """What a page has beyond the report while a server shows it."""

    root: str  # from the page to the start
    listed: bool = False  # whether there is a page of several runs
    follows: bool = True  # whether it is fetched again and again, or asks for other answers


def shown(value: Any) -> Any:
    r"""Return a value for the page: text inert and of bounded length, other values as they are.

    Examples
    --------
    >>> shown("a\x1b[2Jb"), shown(3), len(shown("x" * 1_000_000)) < 1_100
    ('a␛[2Jb', 3, True)
    """
    if value is None:
        return NOTHING
    if isinstance(value, inert.InertBlock):
        return Markup.escape(value.text)
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if len(value) <= _NAME:
        return _short(value)
    return inert.clipped(value, _TEXT)


_short = lru_cache(10_000)(inert.inert)
"""Names and figures, which stand in many places of a page."""


@cache
def style() -> Markup:
    """Return the style sheet of every page."""
    return Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - our own file


@cache
def style_source() -> str:
    """Return the style sheet as a content security policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()}'"


def policy(script: str = "'none'") -> Markup:
    """Return the content security policy of a file: nothing is loaded, and only this script of ours runs."""
    parts = (
        "default-src 'none'",
        f"script-src {script}",
        f"style-src {style_source()}",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return Markup("; ".join(parts))  # noqa: S704 - our own words


def filled(template: str, **context: Any) -> str:
    """Return a filled template; the context may hold texts from outside as they are."""
    return _environment().get_template(template).render(context)


def render(page: WholePage, live: Live | None = None) -> str:
    """Return a page as HTML."""
    return filled("page.html", page=page, live=live)


def problem(title: str, words: str, live: Live) -> str:
    """Return a page that says why there is none."""
    return render(WholePage(title=title, window=f"{title}: adaptive-eval", intro=[Para(words)]), live)


def to_markdown(summary: RunSummary) -> str:
    """Return the report as Markdown."""
    return to_text(report_page(summary, html=False))


def to_html(summary: RunSummary, live: Live | None = None) -> str:
    """Return the report as one self-contained HTML page, or as the live page."""
    samples = "samples"
    if live is None:
        samples = ""
    return render(report_page(summary, samples), live)


def _lines(text: str) -> Markup:
    """Return text of several lines, each inert and of bounded length, escaped for a ``pre`` block."""
    lines = text.splitlines()
    shown_lines = [inert.clipped(line.expandtabs(4), _CONFIG_LINE) for line in lines[:_CONFIG_LINES]]
    if len(lines) > _CONFIG_LINES:
        shown_lines.append(f"… and {len(lines) - _CONFIG_LINES:,} more lines, in report.json")
    return Markup("\n").join(shown_lines)


def _with_code(text: str) -> Markup:
    """Return a sentence of ours with text between backticks as code."""
    parts = []
    for place, part in enumerate(inert.clipped(text, _TEXT).split("`")):
        if place % 2:
            parts.append(Markup("<code>{}</code>").format(part))
        else:
            parts.append(Markup.escape(part))
    return Markup().join(parts)
