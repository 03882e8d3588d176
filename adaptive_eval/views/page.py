"""The pages of a run, from templates that escape everything they are given.

The report is one self-contained file that loads nothing and runs nothing. The live page is the same report,
rendered again, with a script of ours that fetches it. Every text that a template prints goes through
:func:`shown` before the template's own escaping, so a name or a message can neither act nor fill the page.
"""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from adaptive_eval.core.results import PairForecast
from adaptive_eval.views.accounts import SEVERAL, hardest, most_apart, several_answers, suspect
from adaptive_eval.views.details import CONFIG, settings
from adaptive_eval.views.headline import headline
from adaptive_eval.views.inert import Block, clipped, distinct_labels, fenced, inert, md, md_with_code
from adaptive_eval.views.numbers import NOTHING
from adaptive_eval.views.plots import (
    MOST_DECISIONS,
    MOST_TIES,
    Scale,
    course_plots,
    histogram,
    pair_matrix,
    scale_over,
    shown_pairs,
)
from adaptive_eval.views.report_json import counts
from adaptive_eval.views.score_tables import paper_latex, paper_markdown, ranking_rows
from adaptive_eval.views.sentences import TEMPLATES, compiled_templates, environment, promises, said
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import of_kind

_TEXT, _NAME = 1_000, 200
_CONFIG_LINE, _CONFIG_LINES = 1_000, 2_000
_QUESTIONS = 2_000

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

    def trial(self, model: str, step: int) -> str:
        """Return the address of a trial's page."""
        return f"trials/{self.numbers[model]}/{step}"


def shown(value: Any) -> Any:
    r"""Return a value for the page: text inert and of bounded length, other values as they are.

    Examples
    --------
    >>> shown("a\x1b[2Jb"), shown(3), len(shown("x" * 1_000_000)) < 1_100
    ('a␛[2Jb', 3, True)
    """
    if value is None:
        return NOTHING
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _short(value) if len(value) <= _NAME else clipped(value, _TEXT)


_short = lru_cache(10_000)(inert)
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
    words: dict[str, Any] = {"md": md, "fenced": fenced, "grouped": "{:,}".format, "live": None, "label": {}}
    plain = environment()
    plain.filters |= {"md": md, "unordered": frozenset}
    plain.globals |= words | {"settings": settings}
    plain.globals |= {
        "style": style,
        "style_source": style_source,
        "brief": lru_cache(10_000)(partial(clipped, most=_NAME)),
        "lines_of": _lines,
        "block": _block,
        "with_code": _with_code,
        "md_with_code": md_with_code,
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
    results, details = summary.results, summary.known
    questions = details.questions or ()
    pairs, label = shown_pairs(results), distinct_labels((line.model for line in results.models), LABEL)
    verdict = headline(results, label) if results.models else summary.headline
    scores = [value for line in results.models for value in (line.low, line.score, line.high)]
    right = [one.correct for one in questions]
    drawn = (*pairs.shown, *(one.pair for one in summary.open_pairs[:MOST_OPEN]))
    compared = [pair for pair in drawn if pair.kind != "width"]
    differences = [value for pair in compared for value in (pair.difference, pair.low, pair.high)]
    truncated = sum(account.truncated for account in details.models)
    return {
        "summary": summary,
        "results": results,
        "details": details,
        "label": label,
        "verdict": verdict,
        "problems": said("run.problems", summary.state, results.models, summary.endpoints, truncated),
        "lines": list(zip(results.models, details.models, strict=True)),
        "empty": any(account.no_answer for account in details.models),
        "promises": promises(results, details.target, details.together, details.judged, details.cut_off),
        "most_ties": MOST_TIES,
        "pairs": pairs,
        "kinds": sorted({pair.kind for pair in results.pairs}),
        "matrix": pair_matrix(of_kind(results, "pair")),
        "scores": scale_over(scores),
        "differences": Scale.around_zero([*differences, results.equivalence]),
        "open_pairs": summary.open_pairs[:MOST_OPEN],
        "pair_forecasts": _pair_forecasts(summary),
        "counts": counts(summary),
        "plots": course_plots(summary),
        "recent": list(zip(summary.times, summary.decisions, strict=True))[-MOST_DECISIONS:],
        "asked": len(questions),
        "questions": questions[:_QUESTIONS],
        "histogram": histogram(right),
        "hard": hardest(questions),
        "apart": most_apart(questions),
        "suspects": suspect(questions),
        "answers_drawn": SEVERAL,
        "several": [] if details.together else several_answers(questions, results),
        "rankings": ranking_rows(details.rankings) if details.rankings else [],
        "paper_markdown": paper_markdown(summary),
        "paper_latex": paper_latex(summary),
        "config": details.meta.get(CONFIG),
    }


def _pair_forecasts(summary: Summary) -> dict[frozenset[str], PairForecast]:
    pairs = () if summary.outlook is None else summary.outlook.forecast.pairs
    return {frozenset((one.first, one.second)): one for one in pairs}


def _lines(text: str) -> Markup:
    """Return text of several lines, each inert and of bounded length, escaped for a ``pre`` block."""
    lines = text.splitlines()
    shown_lines = [clipped(line.expandtabs(4), _CONFIG_LINE) for line in lines[:_CONFIG_LINES]]
    if len(lines) > _CONFIG_LINES:
        shown_lines.append(f"… and {len(lines) - _CONFIG_LINES:,} more lines, in report.json")
    return Markup("\n").join(shown_lines)


def _block(value: Block) -> Markup:
    """Return the text of a block with its line ends; everything else in it is inert already."""
    return Markup("{}").format(value.text)


def _with_code(text: str) -> Markup:
    """Return a sentence of ours with text between backticks as code."""
    parts = []
    for place, part in enumerate(clipped(text, _TEXT).split("`")):
        parts.append(Markup("<code>{}</code>").format(part) if place % 2 else Markup.escape(part))
    return Markup().join(parts)
