"""The Bayes@N table to paste into a paper, as Markdown and as LaTeX."""

from __future__ import annotations

import re

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.views.escape import md, table
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import NOTHING, fixed, interval
from adaptive_eval.views.phrases import level_words, score_decimals
from adaptive_eval.views.ranks import rank_column
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import family_words

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
    ranks = rank_column(summary.results)
    level = f"{level_words(summary.results)} interval"
    header = [ranks.head.capitalize(), "Model", "Bayes@N (%)", "avg@N (%)", level, "N"]
    rows = [
        [
            ranks.of[line.model],
            md(line.model),
            _bayes(line, summary, "±"),
            _average(line, summary),
            _interval(line, summary),
            f"{line.trials:,}",
        ]
        for line in summary.results.models
    ]
    if not _in_percent(summary):
        header[2:4] = ["Bayes@N", "avg@N"]
    return f"{table(header, rows, 'clrrrr')}\n\n{md(_caption(summary))}"


def paper_latex(summary: Summary) -> str:
    """Return the table as LaTeX for the package booktabs, names escaped."""
    ranks = rank_column(summary.results)
    unit = r" (\%)" if _in_percent(summary) else ""
    rows = [
        " & ".join(
            [
                tex(ranks.of[line.model]),
                tex(line.model),
                f"${_bayes(line, summary, chr(92) + 'pm')}$" if line.mu is not None else "--",
                tex(_average(line, summary)),
                tex(_interval(line, summary)),
                f"{line.trials:,}".replace(",", "{,}"),
            ]
        )
        + r" \\"
        for line in summary.results.models
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{tex(_caption(summary))}}}",
            r"  \begin{tabular}{clrrrr}",
            r"    \toprule",
            rf"    {ranks.head.capitalize()} & Model & Bayes@$N${unit} & avg@$N${unit} & "
            rf"{tex(level_words(summary.results))} interval & $N$ \\",
            r"    \midrule",
            *(f"    {row}" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


def _caption(summary: Summary) -> str:
    results = summary.results
    prior = "uniform prior" if results.prior is None else f"prior: {results.prior}"
    return (
        f"Bayes@N posterior mean ± standard deviation ({prior}) and mean score (avg@N) with its "
        f"{level_words(results)} anytime interval on {results.questions:,} questions. N: trials of the "
        f"model, all questions together. {_rank_words(results)}"
    )


def _rank_words(results: Results) -> str:
    by = f"rule {results.rule} ({family_words(results.family)})"
    ranks = rank_column(results)
    if ranks.ranked:
        return f"Rank: interval that the verdicts of {by} leave open."
    return f"{ranks.note} By {by}."


def _in_percent(summary: Summary) -> bool:
    """Whether scores are fractions, which papers give in per cent."""
    values = [
        value for line in summary.results.models for value in (line.low, line.high) if value is not None
    ]
    return all(0.0 <= value <= 1.0 for value in values)


def _scaled(value: float | None, summary: Summary) -> float | None:
    return value * 100 if value is not None and _in_percent(summary) else value


def _decimals(summary: Summary) -> int:
    return 2 if _in_percent(summary) else score_decimals(summary.results.models)


def _bayes(line: ModelResult, summary: Summary, sign: str) -> str:
    if line.mu is None:
        return NOTHING
    decimals = _decimals(summary)
    mu, sigma = _scaled(line.mu, summary), _scaled(line.sigma, summary)
    return f"{fixed(mu, decimals)} {sign} {fixed(sigma, decimals)}"


def _average(line: ModelResult, summary: Summary) -> str:
    return fixed(_scaled(line.score, summary), _decimals(summary))


def _interval(line: ModelResult, summary: Summary) -> str:
    return interval(_scaled(line.low, summary), _scaled(line.high, summary), _decimals(summary))
