"""The table of scores to paste into a paper, as Markdown and as LaTeX."""

from __future__ import annotations

import re

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.views.inert import inert, md, table
from adaptive_eval.views.numbers import NOTHING, fixed, interval
from adaptive_eval.views.phrases import level_words, score_decimals, score_name
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import family_words, rank_column

_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a row's end, a bare one would be read as a length
    "]": "{]}",
    "–": "--",
    "±": r"$\pm$",
}


def tex(text: str) -> str:
    r"""Return `text` as LaTeX that prints the same text and runs no command.

    Examples
    --------
    >>> print(tex(r"qwen_3 & \input{x} 50 %"))
    qwen\_3 \& \textbackslash{}input\{x\} 50 \%
    """
    return re.sub(r"[\\{}$&#%_^~<>|\[\]–±]", lambda found: _TEX[found.group()], inert(text))


def paper_markdown(summary: Summary) -> str:
    """Return the table as Markdown, with a caption that says what its figures are."""
    table_of = _Figures(summary.results)
    rows = []
    for line in summary.results.models:
        place, name, *figures = table_of.row(line)
        rows.append([place, md(name), *figures, f"{line.trials:,}"])
    return f"{table(table_of.header(), rows, 'clrrrr')}\n\n{md(_caption(summary.results))}"


def paper_latex(summary: Summary) -> str:
    """Return the table as LaTeX for the package booktabs, names escaped."""
    table_of = _Figures(summary.results)
    rows = []
    for line in summary.results.models:
        cells = [tex(cell) for cell in table_of.row(line)]
        trials = f"{line.trials:,}".replace(",", "{,}")
        rows.append("    " + " & ".join([*cells, trials]) + r" \\")
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{tex(_caption(summary.results))}}}",
            r"  \begin{tabular}{clrrrr}",
            r"    \toprule",
            "    " + " & ".join(tex(head) for head in table_of.header()) + r" \\",
            r"    \midrule",
            *rows,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


class _Figures:
    """The cells of the table: the score that ranks, its interval, and Bayes@N."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._ranks = rank_column(results)
        ends = [value for line in results.models for value in (line.low, line.high) if value is not None]
        # Scores that are fractions are given in per cent, as papers do.
        self._percent = all(0.0 <= value <= 1.0 for value in ends)
        self._decimals = 2 if self._percent else score_decimals(results.models)

    def header(self) -> list[str]:
        unit = " (%)" if self._percent else ""
        level = f"{level_words(self._results)} interval"
        name = score_name(self._results).capitalize()
        return [self._ranks.head.capitalize(), "Model", f"{name}{unit}", level, f"Bayes@N{unit}", "N"]

    def row(self, line: ModelResult) -> list[str]:
        """Return the cells of a model, all but its trials, not yet escaped."""
        low, high = self._scaled(line.low), self._scaled(line.high)
        bayes = NOTHING
        if line.mu is not None:
            mu, sigma = self._scaled(line.mu), self._scaled(line.sigma)
            bayes = f"{fixed(mu, self._decimals)} ± {fixed(sigma, self._decimals)}"
        score = fixed(self._scaled(line.score), self._decimals)
        place = self._ranks.of[line.model]
        return [place, line.model, score, interval(low, high, self._decimals), bayes]

    def _scaled(self, value: float | None) -> float | None:
        return value * 100 if value is not None and self._percent else value


def _caption(results: Results) -> str:
    prior = "uniform prior" if results.prior is None else f"prior: {results.prior}"
    return (
        f"{score_name(results).capitalize()} on {results.questions:,} questions, which ranks, with its "
        f"{level_words(results)} anytime interval; Bayes@N: posterior mean ± standard deviation ({prior}), "
        f"for reference. N: trials of the model, all questions together. {_rank_words(results)}"
    )


def _rank_words(results: Results) -> str:
    by = f"rule {results.rule} ({family_words(results.family)})"
    ranks = rank_column(results)
    if ranks.ranked:
        return f"Rank: interval that the verdicts of {by} leave open."
    return f"{ranks.note} By {by}."
