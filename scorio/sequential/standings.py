"""Standings: what is known of several models, and the door that reads recorded outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import credibility
from scorio._named import Named, Outcomes, plotting
from scorio.arrays import Floats
from scorio.eval._inputs import Missing
from scorio.sequential._recorded import Order, Range, ScoreScale, lay_out, read_models
from scorio.sequential.boards import Board, strictest_level
from scorio.sequential.contrasts import Target
from scorio.sequential.courses import interval
from scorio.sequential.families import rank_intervals
from scorio.sequential.fold import VerdictCode
from scorio.sequential.rules import Anytime


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Standings(Named):
    """Results of several models and their order.

    Parameters
    ----------
    names : tuple of str
        The models.
    trials : tuple of int
        Trials of each model that count: those without a gap before them in its sequence.
    scores, low, high : ndarray, shape (L,)
        Mean scores after all trials; each interval holds on its own at every look.
    ranks : tuple of (int, int)
        Interval of each model's rank, all at once at the level of the family.
    verdicts : dict
        ``"i > j"`` names to the trials at which winner i was declared; ``"i = j"`` for ties.
    open : tuple of (str, str)
        Pairs without a verdict.
    difference : ndarray, shape (L, L)
        Row minus column, after all trials.
    p_values : ndarray, shape (L, L)
        Always-valid p-value of each pair on its own: 1 over the largest evidence until its verdict, or 1.
        The strictest level that the board reads says that it is as small or smaller: evidence is guarded down
        to this level only.
    confidence, family, equivalence
        As given.
    reading : str
        How the outcomes were read: as questions x trials, or as streams.
    """

    names: tuple[str, ...]
    trials: tuple[int, ...]
    scores: Floats
    low: Floats
    high: Floats
    ranks: tuple[tuple[int, int], ...]
    verdicts: dict[str, int]
    open: tuple[tuple[str, str], ...]
    difference: Floats
    p_values: Floats
    confidence: float
    family: str
    equivalence: float | None
    reading: str

    @property
    def active(self) -> tuple[str, ...]:
        """Models with an open pair: those worth a further trial."""
        wanted = {name for pair in self.open for name in pair}
        return tuple(name for name in self.names if name in wanted)

    @property
    def done(self) -> bool:
        """Whether no pair is open."""
        return not self.open

    def rows(self) -> Mapping[str, Any]:
        """Return one row a model, the best first."""
        order = np.argsort(-self.scores, kind="stable")
        best, worst = np.array(self.ranks).T
        return {
            "model": list(map(self.names.__getitem__, order)),
            "trials": list(map(self.trials.__getitem__, order)),
            "score": self.scores[order],
            "low": self.low[order],
            "high": self.high[order],
            "best_rank": best[order],
            "worst_rank": worst[order],
        }

    def __str__(self) -> str:
        """Show the models, the best first, with intervals of their scores and ranks."""
        width = max(len(name) for name in (*self.names, "model"))
        lines = [f"{'model':<{width}}   score  interval            rank"]
        for name, _, score, low, high, best, worst in zip(*self.rows().values(), strict=True):
            if best == worst:
                rank = f"{best}"
            else:
                rank = f"{best}-{worst}"
            lines.append(f"{name:<{width}}  {score:6.4f}  [{low:.4f}, {high:.4f}]    {rank}")
        lines.append(
            f"{len(self.open)} of {len(self.names) * (len(self.names) - 1) // 2} pairs are open; "
            f"{self.family} at {100 * self.confidence:g} %, valid at every look; {self.reading}"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Say the order of the models and the number of open pairs in a line."""
        order = ", ".join(self.rows()["model"])
        return f"<Standings: {order}; {len(self.open)} pairs open; {self.reading}>"

    def plot(self, axes: Any = None) -> Any:
        """Draw the scores with their intervals, the best on top; needs matplotlib."""
        axes = plotting(axes)
        table = self.rows()
        at = np.arange(len(self.names))[::-1]
        score = table["score"]
        axes.errorbar(score, at, xerr=[score - table["low"], table["high"] - score], fmt="o", capsize=3)
        axes.set_yticks(at, table["model"])
        axes.set_xlabel("mean score")
        return axes


def board(
    R: Outcomes,
    *,
    family: str = "holm",
    equivalence: float | None = None,
    confidence: float = 0.95,
    target: Target = "benchmark",
    clusters: ArrayLike | None = None,
    order: Order = 0,
    weights: ArrayLike | None = None,
    range: Range = None,
    missing: Missing = None,
    names: Sequence[str] | None = None,
) -> Standings:
    """Compare all pairs of several models, with one error rate for the whole board at every look.

    Parameters
    ----------
    R : mapping of names to outcomes (M, N) or (N,), frame, or array_like of shape (L, M, N)
        Outcomes of L models on the same M questions, or a stream of each, as in :func:`compare`. The keys of
        a mapping, the columns of a frame (a question a row) and the labels of the first axis of an
        xarray.DataArray become the names.
    family : {'holm', 'pair'}
        What `confidence` promises: no wrong winner on the board, or no wrong winner in a given pair.
    equivalence, confidence, target, clusters, order, weights, range, missing
        As in :func:`compare`. Models with unequal numbers of trials are padded and `missing` marks the rest.
    names : sequence of str, optional
        Names of the models.

    Returns
    -------
    Standings
        Rank intervals, scores with intervals, declared winners and ties, and the open pairs.

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> chances = {"small": 0.3, "medium": 0.5, "large": 0.8}
    >>> outcomes = {name: rng.random((300, 2)) < p for name, p in chances.items()}
    >>> print(board(outcomes))
    model    score  interval            rank
    large   0.8050  [0.7541, 0.8559]    1
    medium  0.4883  [0.4246, 0.5521]    2
    small   0.3217  [0.2630, 0.3803]    3
    0 of 3 pairs are open; holm at 95 %, valid at every look; 300 questions x 2 trials
    """
    given = read_models(R, weights, missing, range)
    scale = given.scale
    models = len(given.models)
    if models < 2:
        raise ValueError(f"R must have at least two models; got {models}")
    labels = names or given.names or _numbered(models)
    if len(labels) != models:
        raise ValueError(f"names must have one name a model, {models}; got {len(labels)}")
    if len(set(labels)) < models:
        raise ValueError(f"names must differ; got {list(labels)}")
    sequence, categories, made = lay_out(given.trials(), given.order(order))
    rule = Anytime(1.0 - credibility(confidence), scale.margin(equivalence))
    told = Board.of_pairs(
        sequence,
        models,
        rule,
        family,
        scale.scores,
        given.target(target),
        clusters,
        numbers=scale.numbers,
    )
    told.tell_all(categories, made)
    settings = Settings(tuple(map(str, labels)), scale, confidence, family, equivalence, given.reading)
    return standings(told, settings)


def _numbered(models: int) -> list[str]:
    return [f"model {number}" for number in range(models)]


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """What a board was asked: names, scale and promise, and how its outcomes were read."""

    names: tuple[str, ...]
    scale: ScoreScale
    confidence: float
    family: str
    equivalence: float | None
    reading: str


def standings(told: Board, settings: Settings) -> Standings:
    """Return the standings of a board of all pairs, on the caller's scale."""
    names, scale = settings.names, settings.scale
    fold = told.fold
    first = told.contrasts.first
    second = told.contrasts.second
    means = told.answers.scores()
    low, high = interval(means, told.alpha)
    models = len(names)
    score = scale.lowest + scale.width * means.difference[:, 0]
    p_values = np.ones((models, models))
    least = strictest_level(told)
    p_values[first, second] = np.maximum(np.exp(-np.maximum(fold.latest.statistic, 0.0)), least)
    better = []
    verdicts = {}
    undecided = []
    for pair in np.argsort(fold.decided_at, kind="stable").tolist():
        said = int(fold.verdict[pair])
        i = int(first[pair])
        j = int(second[pair])
        if said == VerdictCode.WORSE:
            i, j = j, i
        if said == VerdictCode.OPEN:
            undecided.append((names[i], names[j]))
            continue
        sign = ">"
        if said == VerdictCode.TIE:
            sign = "="
        verdicts[f"{names[i]} {sign} {names[j]}"] = int(fold.decided_at[pair])
        if said != VerdictCode.TIE:
            better.append((i, j))
    return Standings(
        names=names,
        trials=tuple(told.answers.progress.tolist()),
        scores=score,
        low=scale.lowest + scale.width * np.clip(low[:, 0], 0.0, 1.0),
        high=scale.lowest + scale.width * np.clip(high[:, 0], 0.0, 1.0),
        ranks=tuple(rank_intervals(models, better)),
        verdicts=verdicts,
        open=tuple(undecided),
        difference=score[:, None] - score,
        p_values=np.minimum(p_values, p_values.T),
        confidence=settings.confidence,
        family=settings.family,
        equivalence=settings.equivalence,
        reading=settings.reading,
    )
