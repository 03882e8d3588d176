"""The pages of a run, from templates that escape everything they are given.

The report is one self-contained file that loads nothing and runs nothing. The live page is the same report,
rendered again, with a script of ours that fetches it. Every text that a template prints goes through
:func:`shown` before the template's own escaping, so a name or a message can neither act nor fill the page.
"""

import base64
import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from markupsafe import Markup

from adaptive_eval import __version__
from adaptive_eval.trial import TrialKey
from adaptive_eval.views import (
    accounts,
    budgets,
    details,
    inert,
    numbers,
    one_look_sentences,
    plots,
    run_sentences,
    score_tables,
    sentences,
    trials,
    verdicts,
)
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.numbers import NOTHING
from adaptive_eval.views.promises import promises
from adaptive_eval.views.report_columns import counts
from adaptive_eval.views.summary import Summary

TEMPLATES = Path(__file__).parent / "templates"


def compiled_templates(kind: str) -> BytecodeCache:
    """Return where an environment keeps its compiled templates: beside Python's, if that may be written."""
    from jinja2 import FileSystemBytecodeCache
    from jinja2 import __version__ as version

    class Kept(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with suppress(OSError):
                super().dump_bytecode(bucket)

    return Kept(str(TEMPLATES.parent / "__pycache__"), f"%s.{kind}.jinja-{version}")


@cache
def _environment() -> Environment:
    """Return the environment of all templates, with the figures and words of the views."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(  # noqa: S701 - pages are made by an overlay that escapes
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        optimized=False,  # it takes longer than it saves: a template is filled once or twice
        bytecode_cache=compiled_templates("text"),
    )
    for module in (numbers, verdicts, budgets, sentences, run_sentences, one_look_sentences):
        made.globals.update(public(module))
    made.globals.update(app_version=__version__, describe=describe)
    return made


def public(module: ModuleType) -> dict[str, Any]:
    """Return the functions, texts and numbers that a module has for others, by name."""
    found = {}
    for name, value in vars(module).items():
        own = isinstance(value, str | int | tuple) or getattr(value, "__module__", "") == module.__name__
        if own and not name.startswith("_"):
            found[name] = value
    return found


_TEXT, _NAME = 1_000, 200
_CONFIG_LINE, _CONFIG_LINES = 1_000, 2_000

MOST_OPEN = 20
"""Open pairs that a page lists with their progress."""

LABEL = 32
"""Cells that a model's name takes at most; all of it appears on hover, and in report.json."""


@dataclass(frozen=True, slots=True)
class Live:
    """What a page has beyond the report while a server shows it."""

    root: str  # from the page to the start
    listed: bool = False  # whether there is a page of several runs
    numbers: Mapping[str, int] = field(default_factory=dict)  # of models, in the addresses of their trials

    def trial(self, key: TrialKey) -> str:
        """Return the address of a trial's page."""
        return f"trials/{self.numbers[key.model]}/{key.index}"


def shown(value: Any) -> Any:
    r"""Return a value for the page: text inert and of bounded length, other values as they are.

    Examples
    --------
    >>> shown("a\x1b[2Jb"), shown(3), len(shown("x" * 1_000_000)) < 1_100
    ('a␛[2Jb', 3, True)
    """
    if value is None:
        return NOTHING
    if isinstance(value, inert.Block):
        return Markup.escape(value.text)
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _short(value) if len(value) <= _NAME else inert.clipped(value, _TEXT)


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


@cache
def _pages() -> tuple[Environment, Environment]:
    """Return the environments of pages and of Markdown: the one of all templates, which the first escapes."""
    plain = _environment()
    for module in (accounts, details, inert, plots, score_tables, trials):
        plain.globals |= public(module)
    plain.filters |= {"md": inert.md, "unordered": frozenset}
    plain.globals |= {
        "live": None,
        "label": {},
        "counts": counts,
        "grouped": "{:,}".format,
        "style": style,
        "style_source": style_source,
        "brief": lru_cache(10_000)(partial(inert.clipped, most=_NAME)),
        "lines_of": _lines,
        "with_code": _with_code,
    }
    return plain.overlay(autoescape=True, finalize=shown, bytecode_cache=compiled_templates("html")), plain


def page(template: str, **context: Any) -> str:
    """Return a page; the context may hold texts from outside as they are."""
    form = {"outline": "base.html", "form": "macros.html", "html": True, "contents": []}
    return _pages()[0].get_template(template).render(context | form)


def render_markdown(template: str, **context: Any) -> str:
    """Return a page as Markdown; the macros of its form escape every name, message and setting."""
    form = {"outline": "base.md", "form": "macros.md", "html": False, "contents": []}
    return _pages()[1].get_template(template).render(context | form).strip("\n") + "\n"


def to_markdown(summary: Summary) -> str:
    """Return the report as Markdown."""
    return render_markdown("report.jinja", **_context(summary) | {"verdict": summary.headline})


def to_html(summary: Summary, live: Live | None = None) -> str:
    """Return the report as one self-contained HTML page, or as the live page."""
    return page("report.jinja", **_context(summary) | {"live": live})


def _context(summary: Summary) -> dict[str, Any]:
    """Return what the report shows."""
    results, known = summary.results, summary.known
    pairs, open_pairs = plots.shown_pairs(results), summary.open_pairs[:MOST_OPEN]
    scores = [value for line in results.models for value in (line.score_low, line.score, line.score_high)]
    differences = [results.equivalence]
    for pair in (*pairs.shown, *(one.pair for one in open_pairs)):
        if pair.kind != "width":
            differences += pair.difference, pair.difference_low, pair.difference_high
    forecasts = () if summary.outlook is None else summary.outlook.forecast.pairs
    return {
        "summary": summary,
        "results": results,
        "details": known,
        "questions": known.questions or (),
        "label": summary.labels(LABEL),
        "verdict": summary.headline_within(LABEL),
        "lines": list(zip(results.models, known.models, strict=True)),
        "promises": promises(results, known.target, known.together, known.judged, known.cut_off),
        "pairs": pairs,
        "kinds": sorted({pair.kind for pair in results.pairs}),
        "scores": plots.scale_over(scores),
        "differences": plots.Scale.around_zero(differences),
        "open_pairs": open_pairs,
        "pair_forecasts": {frozenset((one.first, one.second)): one for one in forecasts},
        "decisions": list(zip(summary.times, summary.decisions, strict=True)),
    }


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
        parts.append(Markup("<code>{}</code>").format(part) if place % 2 else Markup.escape(part))
    return Markup().join(parts)
