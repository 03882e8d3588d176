"""Tables of scores: one to paste into a paper, as Markdown and as LaTeX, and one of rankings by rubric."""

import re
from collections.abc import Sequence

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.views.inert import inert, md, table
from adaptive_eval.views.numbers import NOTHING, decimals_for, fixed, rank_interval
from adaptive_eval.views.run_sentences import caption_words
from adaptive_eval.views.sentences import level_words, score_decimals, score_name
from adaptive_eval.views.summary import Summary
from adaptive_eval.views.verdicts import rank_column

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
    head, *rows = _paper_table(summary.results)
    shown = [[place, md(name), *figures] for place, name, *figures in rows]
    return f"{table(head, shown, 'clrrrr')}\n\n{md(caption_words(summary.results))}"


def paper_latex(summary: Summary) -> str:
    """Return the table as LaTeX for the package booktabs, names escaped."""
    lines = []
    for *cells, trials in _paper_table(summary.results):
        shown = [*map(tex, cells), trials.replace(",", "{,}")]
        lines.append("    " + " & ".join(shown) + r" \\")
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{tex(caption_words(summary.results))}}}",
            r"  \begin{tabular}{clrrrr}",
            r"    \toprule",
            lines[0],
            r"    \midrule",
            *lines[1:],
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )


def _paper_table(results: Results) -> list[list[str]]:
    """Return a head and a row for each model, not yet escaped: its score, the interval, and Bayes@N."""
    ranks, is_fraction = rank_column(results), results.scale in (None, (0.0, 1.0))
    scale, unit = (100.0, " (%)") if is_fraction else (1.0, "")  # fractions in per cent, as papers do
    decimals = 2 if is_fraction else score_decimals(results.models)

    def figure(value: float | None) -> str:
        return fixed(None if value is None else value * scale, decimals)

    name, level = score_name(results).capitalize(), f"{level_words(results)} interval"
    rows = [[ranks.head.capitalize(), "Model", f"{name}{unit}", level, f"Bayes@N{unit}", "N"]]
    for line in results.models:
        bayes = NOTHING if line.bayes_mu is None else f"{figure(line.bayes_mu)} ± {figure(line.bayes_sigma)}"
        span = (
            NOTHING
            if None in (line.score_low, line.score_high)
            else f"[{figure(line.score_low)}, {figure(line.score_high)}]"
        )
        rows.append([ranks.of[line.model], line.model, figure(line.score), span, bayes, f"{line.trials:,}"])
    return rows


def ranking_rows(rankings: Sequence[tuple[str, Results]]) -> list[list[str]]:
    """Return a table of models by rankings, row by row: a head, the models, and Kendall's τ_b.

    A cell has the rank interval, the score, and the places moved from the first ranking.
    """
    first = _by_rank(rankings[0][1])
    rows = [["model", *(name for name, _ in rankings)]]
    for base in first:
        row = [base.model]
        for place, (_, results) in enumerate(rankings):
            line = _line(results, base.model)
            digits = decimals_for(model.score for model in results.models)
            score = NOTHING if line.score is None else fixed(line.score, digits)
            moved = _moved(base, line) if place else ""
            row.append(f"{rank_interval(line.rank_low, line.rank_high)}  {score}{moved}")
        rows.append(row)
    taus = [agreement(rankings[0][1], results) for _, results in rankings[1:]]
    if any(tau is not None for tau in taus):
        shown = (NOTHING if tau is None else f"{tau:.2f}" for tau in taus)
        rows.append(["Kendall τ_b", "", *shown])
    return rows


def agreement(first: Results, second: Results) -> float | None:
    """Return Kendall's τ_b between two rankings, over the models that both have scored."""
    from scorio.rank import kendall_tau_b

    ranks = {line.model: line.rank for line in first.models if line.score is not None}
    pairs = [(ranks[line.model], line.rank) for line in second.models if line.model in ranks]
    if len(pairs) < 2:
        return None
    before, after = zip(*pairs, strict=True)
    return float(kendall_tau_b(before, after))


def _by_rank(results: Results) -> list[ModelResult]:
    return sorted(results.models, key=lambda line: (line.rank, line.model))


def _line(results: Results, model: str) -> ModelResult:
    return next(line for line in results.models if line.model == model)


def _moved(before: ModelResult, now: ModelResult) -> str:
    places = before.rank - now.rank
    arrow = "▲" if places > 0 else "▼"
    return f" {arrow}{abs(places)}" if places else ""
