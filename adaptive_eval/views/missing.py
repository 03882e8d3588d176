"""The verdicts that missing trials could reverse."""

from __future__ import annotations

from collections.abc import Sequence

from adaptive_eval.core.results import ModelResult, PairResult, Results
from adaptive_eval.errors import Coded
from adaptive_eval.views.numbers import count, listing
from adaptive_eval.views.verdicts import oriented

_FEWEST, _SHARE = 5, 0.1
"""Answers that hold none, and their share, from which a view has a column of them."""


def often_without_answer(lines: Sequence[ModelResult]) -> bool:
    """Return whether answers that hold no answer are frequent for any model."""
    return any(line.no_answer >= max(_FEWEST, _SHARE * line.trials) for line in lines)


def undone_by_missing(results: Results) -> tuple[PairResult, ...]:
    """Return the verdicts that could be other ones, had the missing answers been right or wrong.

    The difference is moved by as much as the two scores can change: of the model ahead to its worst, of the
    other to its best. A winner is undone where the model ahead would then be no longer ahead, a tie where the
    difference would leave the equivalence margin.
    """
    down, up = {}, {}
    for line in results.models:
        if line.score is not None and line.worst is not None and line.best is not None:
            down[line.model], up[line.model] = line.score - line.worst, line.best - line.score
    if not down:
        return ()
    return tuple(
        pair for pair in map(oriented, results.pairs) if _undone(pair, down, up, results.equivalence)
    )


def _undone(
    pair: PairResult, down: dict[str, float], up: dict[str, float], equivalence: float | None
) -> bool:
    if pair.verdict == "open" or pair.kind == "width" or pair.difference is None:
        return False
    fall = down.get(pair.first, 0.0) + up.get(pair.second, 0.0)
    rise = up.get(pair.first, 0.0) + down.get(pair.second, 0.0)
    if pair.verdict == "tie":
        worst = max(rise + pair.difference, fall - pair.difference)
        return equivalence is not None and rise + fall > 0 and worst > equivalence
    return fall >= pair.difference if pair.verdict == "better" else rise >= -pair.difference


def missing_warnings(results: Results) -> tuple[str, ...]:
    """Return a warning that names the verdicts that the missing trials could undo; empty where none could."""
    undone = undone_by_missing(results)
    if not undone:
        return ()
    concerned = {name for pair in undone for name in (pair.first, pair.second)}
    losses = [
        f"{line.model} ({line.missing:,} of {line.trials + line.missing:,})"
        for line in results.models
        if line.missing and line.model in concerned
    ]
    words = {"tie": "tied with", "better": "ahead of", "worse": "below"}
    named = [
        f"{pair.first} "
        f"{'above' if pair.kind == 'threshold' and pair.verdict == 'better' else words[pair.verdict]} "
        f"{pair.second}"
        for pair in undone
    ]
    more = f" and {len(named) - 5:,} more" if len(named) > 5 else ""
    said = (
        f"{count(len(undone), 'verdict')} could be wrong if answers were lost for being right or wrong: "
        f"{', '.join(named[:5])}{more}. Trials without an answer: {listing(losses, 5)}"
    )
    return (Coded("warning/missing-answers", said),)
