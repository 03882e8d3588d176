"""The summary at the end of a run: verdict, ranking, cost, savings, path of the report."""

from __future__ import annotations

from os import PathLike, fspath

from rich.text import Text

from adaptive_eval.views import pairs, panels
from adaptive_eval.views.determinism import exact_pairs
from adaptive_eval.views.inert import inert
from adaptive_eval.views.leaderboard import leaderboard
from adaptive_eval.views.lines import HEADING, Drawn, wrapped
from adaptive_eval.views.outlook import chances_words
from adaptive_eval.views.run_words import spent_words
from adaptive_eval.views.snapshot import RunView
from adaptive_eval.views.verdicts import fixed_words, saved_words

_OPEN_PAIRS, _WARNINGS = 10, 10


def render_summary(view: RunView, report: str | PathLike[str] | None = None, *, bayes: bool = False) -> Drawn:
    """Return the summary of a run that has ended, for any width."""
    return Drawn(lambda width, _: _lines(view, "" if report is None else fspath(report), bayes, width))


def _lines(view: RunView, report: str, bayes: bool, width: int) -> list[Text]:
    results = view.results
    blocks = [
        [*panels.verdict_lines(view, width, 4), *wrapped(spent_words(results, view.elapsed), width)],
        leaderboard(view, width, len(view.models) + 1, bayes=bayes),
        [*pairs.open_pairs(view, width, _OPEN_PAIRS + 1), pairs.tally(view, width)] if results.pairs else [],
        [line for words in exact_pairs(results) for line in wrapped(inert(words), width)],
        wrapped(saved_words(results) or "", width),
        wrapped(fixed_words(results) or "", width),
        wrapped(chances_words(results) or "", width),
        panels.warning_lines(view, width, _WARNINGS, whole=True),
        [Text.assemble(("Report  ", HEADING), inert(report), overflow="fold")] if report else [],
    ]
    shown: list[Text] = []
    for block in filter(None, blocks):
        shown.extend([Text(), *block] if shown else block)
    return shown
