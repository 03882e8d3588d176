"""Tables of scores: one to paste into a paper, as Markdown and as LaTeX, and one of rankings by rubric."""

import re
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.views.column_types import Shown, shown_to_people
from adaptive_eval.views.inert import inert, md
from adaptive_eval.views.model_columns import MODELS, model_rows
from adaptive_eval.views.numbers import NOTHING, decimals_for, fixed, rank_interval
from adaptive_eval.views.run_sentences import caption_words
from adaptive_eval.views.sentences import level_words, score_decimals, score_name
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.tables import Look, Table, latex_table, markdown_table, table_of
from adaptive_eval.views.verdicts import model_order, rank_column

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
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
}


def tex(text: str) -> str:
    r"""Return `text` as LaTeX that prints the same text and runs no command.

    Examples
    --------
    >>> print(tex(r"qwen_3 & \input{x} 50 %"))
    qwen\_3 \& \textbackslash{}input\{x\} 50 \%
    """
    return re.sub(r"[\\{}$&#%_^~<>|\[\]–±μσ]", lambda found: _TEX[found.group()], inert(text))


def paper_markdown(summary: RunSummary) -> str:
    """Return the table as Markdown, with a caption that says what its figures are."""
    return f"{markdown_table(paper_table(summary))}\n\n{md(caption_words(summary.results))}"


def paper_latex(summary: RunSummary) -> str:
    """Return the table as LaTeX for the package booktabs, names escaped."""
    return latex_table(paper_table(summary), caption_words(summary.results), tex)


def paper_table(summary: RunSummary) -> Table:
    """Return the models with score, interval and Bayes@N; fractions in per cent, as papers have them."""
    results = summary.results
    digits, unit = score_decimals(results.models), ""
    if results.scale in (None, (0.0, 1.0)):
        digits, unit = 2, " (%)"
        results = replace(results, models=tuple(map(_in_per_cent, results.models)))
    words = {
        "standing": rank_column(results).head,
        "score": score_name(results) + unit,
        "level": level_words(results),
        "interval": "interval",
    }
    rows = model_rows(results)
    columns = shown_to_people(MODELS, Shown.PAPER, rows)
    made = table_of("Scores", columns, rows, Look(digits=digits, words=words))
    heads = [replace(head, text=head.text[:1].upper() + head.text[1:]) for head in made.heads]
    return replace(made, heads=heads)


def _in_per_cent(line: ModelResult) -> ModelResult:
    keys = ("score", "score_low", "score_high", "bayes_mu", "bayes_sigma")
    known = {key: getattr(line, key) for key in keys}
    return replace(line, **{key: 100.0 * value for key, value in known.items() if value is not None})


def ranking_rows(rankings: Sequence[tuple[str, Results]]) -> list[list[str]]:
    """Return a table of models by rankings, row by row: a head, the models, and Kendall's τ_b.

    A cell has the rank interval, the score, and the places moved from the first ranking.
    """
    rows = [["model", *(name for name, _ in rankings)]]
    for base in model_order(rankings[0][1]):
        row = [base.model]
        for place, (_, results) in enumerate(rankings):
            line = _line(results, base.model)
            digits = decimals_for(model.score for model in results.models)
            score = NOTHING
            if line.score is not None:
                score = fixed(line.score, digits)
            moved = ""
            if place:
                moved = _moved(base, line)
            row.append(f"{rank_interval(line.rank_low, line.rank_high)}  {score}{moved}")
        rows.append(row)
    taus = [agreement(rankings[0][1], results) for _, results in rankings[1:]]
    if any(tau is not None for tau in taus):
        rows.append(["Kendall τ_b", "", *(fixed(tau, 2) for tau in taus)])
    return rows


def agreement(first: Results, second: Results) -> float | None:
    """Return Kendall's τ_b between two rankings, over the models that both have scored."""
    from scorio.rank import kendall_tau_b

    before, after = _scored(first), _scored(second)
    both = [model for model in before if model in after]
    if len(both) < 2:
        return None
    ranks = itemgetter(*both)
    return float(kendall_tau_b(ranks(before), ranks(after)))


def _scored(results: Results) -> dict[str, int]:
    """Return the ranks of the models that have a score."""
    return {line.model: line.rank for line in results.models if line.score is not None}


def _line(results: Results, model: str) -> ModelResult:
    return next(line for line in results.models if line.model == model)


def _moved(before: ModelResult, now: ModelResult) -> str:
    places = before.rank - now.rank
    arrow = "▲" if places > 0 else "▼"
    if places:
        return f" {arrow}{abs(places)}"
    return ""
