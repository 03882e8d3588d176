"""Where a model stands: its rank interval, or its verdict where the goal does not rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adaptive_eval.core.results import Results
from adaptive_eval.views.numbers import NOTHING, rank_interval, trimmed
from adaptive_eval.views.verdicts import flipped, is_single, is_width

_SCORE = "The score decides: the mean of the means of questions, of several tasks their weighted mean."
_RANKS = "A rank interval such as 2–3 says that the verdicts leave the model anywhere within it."
_PAIR = {"better": "better", "worse": "worse", "tie": "tied", "open": "open"}
_THRESHOLD = {"better": "above", "worse": "below", "tie": "tied", "open": "open"}
_WIDTH = {"tie": "measured", "open": "open"}


@dataclass(frozen=True)
class RankColumn:
    """The column of ranks, or of verdicts in its place."""

    head: str
    note: str  # how to read it
    of: Mapping[str, str]  # by model
    ranked: bool


def rank_column(results: Results) -> RankColumn:
    """Return rank intervals; with the goals ``baseline``, ``threshold`` and ``width`` the verdicts.

    These goals do not compare the models with each other, so most ranks would stay open for ever.

    Examples
    --------
    >>> run = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> rank_column(run).head
    'rank'
    """
    models = [line.model for line in results.models]
    values = {pair.second for pair in results.pairs}
    if is_single(results) and len(values) == 1 and len({pair.kind for pair in results.pairs}) == 1:
        words = _WIDTH if is_width(results) else _THRESHOLD
        found = {pair.first: words[pair.verdict] for pair in results.pairs}
        (value,) = values
        narrow = f"whether the score's interval is as narrow as {value}"
        what = narrow if is_width(results) else f"against {value}"
        about = f"Verdict: {what}. Models are not compared with each other and have no ranks."
        return _verdicts(results, found, about)
    baseline = _baseline(results, models)
    if baseline is None:
        of = {line.model: rank_interval(line.rank_low, line.rank_high) for line in results.models}
        return RankColumn("rank", f"{_RANKS} {_SCORE}", of, True)
    seen = [flipped(pair) if pair.first == baseline else pair for pair in results.pairs]
    found = {**{pair.first: _PAIR[pair.verdict] for pair in seen}, baseline: "baseline"}
    about = f"Verdict: against {baseline}. The others are not compared with each other and have no ranks."
    return _verdicts(results, found, about)


def _verdicts(results: Results, found: dict[str, str], about: str) -> RankColumn:
    margin = results.equivalence
    tied = f" Tied: within ±{trimmed(margin)}." if margin is not None and "tied" in found.values() else ""
    of = {line.model: found.get(line.model, NOTHING) for line in results.models}
    return RankColumn("verdict", f"{about}{tied} {_SCORE}", of, False)


def _baseline(results: Results, models: list[str]) -> str | None:
    """Return the model that all others are compared with, and only it; None with fewer than three models."""
    pairs = results.pairs
    if len(models) < 3 or len(pairs) != len(models) - 1 or any(pair.kind != "pair" for pair in pairs):
        return None
    common = set.intersection(*({pair.first, pair.second} for pair in pairs))
    return common.pop() if len(common) == 1 else None
