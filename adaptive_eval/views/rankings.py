"""Rankings of the same answers under several rubrics side by side: who moves, and how much they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.cells import cell_len

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import NOTHING, decimals_for, fixed, rank_interval
from adaptive_eval.views.plain_data import picked


def ranking_table(rankings: Sequence[tuple[str, Results]]) -> str:
    """Return a table of models by rankings: rank interval, score, and places moved from the first one."""
    rows = ranking_rows(rankings)
    return "\n".join(_aligned([[inert(cell) for cell in row] for row in rows]))


def ranking_rows(rankings: Sequence[tuple[str, Results]]) -> list[list[str]]:
    """Return the cells of :func:`ranking_table`, row by row: a head, the models, and Kendall's τ_b."""
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


def rankings_data(rankings: Sequence[tuple[str, Results]]) -> list[dict[str, Any]]:
    """Return the rankings as JSON-able data."""
    base = rankings[0][1]
    return [
        {
            "name": name,
            "trials": results.trials,
            "kendall_tau_b": agreement(base, results),
            "models": [
                picked(line, "model rank rank_low rank_high score low high") for line in _by_rank(results)
            ],
        }
        for name, results in rankings
    ]


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
    return "" if not places else f" {'▲' if places > 0 else '▼'}{abs(places)}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(cell_len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        yield "   ".join(padded).rstrip()
