"""The report as one HTML file that loads nothing and runs nothing.

The page has no script at all, and its content security policy forbids any. Every text that comes from outside
goes through :func:`shown` before the template's own escaping, so a name or a message can neither act nor fill
the page.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from adaptive_eval import __version__
from adaptive_eval.core.results import Results
from adaptive_eval.views import budgets, numbers, phrases
from adaptive_eval.views.accounts import hardest, most_apart
from adaptive_eval.views.charts import (
    MOST_DECISIONS,
    MOST_TIES,
    Scale,
    histogram,
    pair_matrix,
    rank_plot,
    scale_over,
    shown_pairs,
)
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.determinism import exact_pairs
from adaptive_eval.views.escape import clipped
from adaptive_eval.views.outlook import chances_words
from adaptive_eval.views.paper_tables import paper_latex, paper_markdown
from adaptive_eval.views.ranks import standings
from adaptive_eval.views.rubrics import ranking_rows
from adaptive_eval.views.stored import CONFIG
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import (
    fixed_words,
    is_single,
    of_kind,
    saved_words,
    saving,
    tie_words,
)

_TEXT, _NAME = 1_000, 200
_CONFIG_LINE, _CONFIG_LINES = 1_000, 2_000
_QUESTIONS = 2_000


def shown(value: Any) -> Any:
    r"""Return a value for the page: text inert and of bounded length, other values as they are.

    Examples
    --------
    >>> shown("a\x1b[2Jb"), shown(3), len(shown("x" * 1_000_000)) < 1_100
    ('a␛[2Jb', 3, True)
    """
    return clipped(value, _TEXT) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment() -> Environment:
    """Return the environment of this folder's templates, with the words and figures of reports."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(
        {
            **phrases.public(phrases),
            **phrases.public(numbers),
            **phrases.public(budgets),
            "describe": describe,
            "tie_words": tie_words,
            "standings": standings,
            "app_version": __version__,
            "lines_of": _lines,
            "with_code": _with_code,
            "brief": partial(clipped, most=_NAME),
        }
    )
    return made


def page(template: str, **context: Any) -> str:
    """Return a page of this folder's templates; the context may hold texts from outside as they are."""
    return environment().get_template(template).render(context)


def shared_context(summary: Summary) -> dict[str, Any]:
    """Return what the templates of the report show, as a page and as Markdown."""
    results = summary.results
    return {
        "summary": summary,
        "results": results,
        "lines": list(zip(results.models, summary.models, strict=True)),
        "title": phrases.pairs_title(results),
        "pairs": shown_pairs(results),
        "most_ties": MOST_TIES,
        "recent": summary.decisions[-MOST_DECISIONS:],
        "saved": saved_words(results),
        "fixed_length": fixed_words(results),
        "chances": chances_words(results),
        "asked": len(summary.questions or ()),
        "hard": hardest(summary.questions or ()),
        "apart": most_apart(summary.questions or ()),
        "rankings": ranking_rows(summary.rankings) if summary.rankings else [],
        "paper_markdown": paper_markdown(summary),
        "paper_latex": paper_latex(summary),
        "config": summary.meta.get(CONFIG),
    }


def to_html(summary: Summary) -> str:
    """Return the report as one self-contained HTML page."""
    results = summary.results
    questions = summary.questions or ()
    scores = [value for line in results.models for value in (line.low, line.score, line.high)]
    margin = results.equivalence or 0.0
    compared = [pair for pair in results.pairs if pair.kind != "width"]
    differences = [value for pair in compared for value in (pair.difference, pair.low, pair.high)]
    return page(
        "report.html",
        **shared_context(summary),
        single=is_single(results),
        exact=exact_pairs(results),
        empty=any(account.no_answer for account in summary.models),
        scores=scale_over(scores),
        differences=Scale.around_zero([*differences, margin]),
        matrix=pair_matrix(of_kind(results, "pair")),
        saving=saving(results),
        tallies=_tallies(results),
        questions=questions[:_QUESTIONS],
        histogram=histogram([one.correct for one in questions]),
        rank_plot=rank_plot(summary.rankings) if summary.rankings else None,
    )


def _tallies(results: Results) -> dict[str, int | None]:
    """Count the verdicts; None for contrasts that the goal does not need."""
    verdicts = [pair.verdict for pair in results.pairs if pair.kind != "width"]
    widths = [pair.verdict for pair in results.pairs if pair.kind == "width"]
    return {
        "separated": verdicts.count("better") + verdicts.count("worse") if verdicts else None,
        "tied": verdicts.count("tie") if verdicts else None,
        "measured": widths.count("tie") if widths else None,
        "open": sum(pair.verdict == "open" and pair.needed for pair in results.pairs),
    }


def _lines(text: str) -> Markup:
    """Return text of several lines, each inert and of bounded length, escaped for a ``pre`` block."""
    lines = text.splitlines()
    shown_lines = [clipped(line.expandtabs(4), _CONFIG_LINE) for line in lines[:_CONFIG_LINES]]
    if len(lines) > _CONFIG_LINES:
        shown_lines.append(f"… and {len(lines) - _CONFIG_LINES:,} more lines, in report.json")
    return Markup("\n").join(shown_lines)


def _with_code(text: str) -> Markup:
    """Return a sentence of ours with text between backticks as code."""
    parts = clipped(text, _TEXT).split("`")
    return Markup().join(
        Markup("<code>{}</code>").format(part) if place % 2 else Markup.escape(part)
        for place, part in enumerate(parts)
    )
