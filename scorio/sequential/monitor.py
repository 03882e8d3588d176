"""A comparison that takes outcomes one by one: for a loop that is not adaptive-eval's."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from scorio._named import Named
from scorio.eval._arguments import credibility, whole
from scorio.sequential._recorded import Order, interval, read_margin, read_weights, sequence_of
from scorio.sequential.cells import MISSING, Cells
from scorio.sequential.contrasts import Target, score_block
from scorio.sequential.families import rank_intervals
from scorio.sequential.fold import OPEN, TIE, WORSE, Piece, course_of, fold_of_pairs, moments
from scorio.sequential.pairs import PairReader, cluster_spread
from scorio.sequential.rules import Anytime


@dataclass(frozen=True, slots=True, eq=False)
class MonitorState(Named):
    """Results after an update.

    Parameters
    ----------
    names : tuple of str
        The models.
    trials : tuple of int
        Trials of each model that count: those without a gap before them in its sequence.
    waiting : tuple of int
        Outcomes of each model that came before their turn and count once the gap is closed.
    scores, low, high : tuple of float
        Mean scores and their intervals, each valid at every look.
    verdicts : dict
        ``"i > j"`` for declared winners and ``"i = j"`` for ties, with the trials at which they fell.
    open : tuple of (str, str)
        Pairs without a verdict.
    active : tuple of str
        Models with an open pair: those worth a further trial.
    ranks : tuple of (int, int)
        Rank interval of each model.
    done : bool
        Whether no pair is open.
    """

    names: tuple[str, ...]
    trials: tuple[int, ...]
    waiting: tuple[int, ...]
    scores: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    verdicts: dict[str, int]
    open: tuple[tuple[str, str], ...]
    active: tuple[str, ...]
    ranks: tuple[tuple[int, int], ...]
    done: bool

    def rows(self) -> Mapping[str, Any]:
        """Return one row a model."""
        best, worst = zip(*self.ranks, strict=True)
        return {
            "model": self.names,
            "trials": self.trials,
            "score": self.scores,
            "low": self.low,
            "high": self.high,
            "best_rank": best,
            "worst_rank": worst,
        }


class Monitor:
    """Compare models while their outcomes arrive, with an error rate that holds after every one.

    Ask :meth:`next` which question a model should answer, and hand its outcome to :meth:`update`. Outcomes
    may arrive in any order: a model's outcomes count along one shared random order of the questions, so that
    which of them arrive first decides nothing.

    Parameters
    ----------
    models : sequence of str
        Names of at least two models.
    questions : int or sequence
        Number of questions M, or their ids.
    confidence, family, equivalence, target, clusters, order, weights
        As in :func:`scorio.sequential.board`.

    Raises
    ------
    ValueError
        If an argument is malformed; the message names it and the value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor, chance = Monitor(["new", "old"], questions=100), {"new": 0.9, "old": 0.5}
    >>> while not monitor.state.done:
    ...     for model in monitor.state.active:
    ...         question = monitor.next(model)
    ...         _ = monitor.update(model, question, rng.random() < chance[model])
    >>> monitor.state.verdicts, monitor.state.trials
    ({'new > old': 45}, (45, 45))
    """

    def __init__(
        self,
        models: Sequence[str],
        questions: int | Sequence[Hashable],
        *,
        confidence: float = 0.95,
        family: str = "holm",
        equivalence: float | None = None,
        target: Target = "benchmark",
        clusters: ArrayLike | None = None,
        order: Order = 0,
        weights: ArrayLike | None = None,
    ) -> None:
        self.names = tuple(str(name) for name in models)
        if len(self.names) < 2 or len(set(self.names)) < len(self.names):
            raise ValueError(f"models must be at least two different names; got {list(models)}")
        ids = range(whole("questions", questions)) if isinstance(questions, (int, np.integer)) else questions
        self._ids = tuple(ids)
        self._index = {name: number for number, name in enumerate(self._ids)}
        if len(self._index) < len(self._ids) or not self._ids:
            raise ValueError("questions must be different ids, at least one")
        self._scores, self._lowest, self._scale = read_weights(weights)
        self._alpha = 1.0 - credibility(confidence)
        self._rule = Anytime(self._alpha, read_margin(equivalence, self._scale))
        self._sequence = sequence_of(order, len(self._ids))
        count = len(self.names)
        self._target: Target = target
        self._cells = Cells(self._sequence, self._scores, count)
        self._pairs = np.array(list(combinations(range(count), 2)))
        first, second = self._pairs[:, 0], self._pairs[:, 1]
        margin = self._rule.equivalence
        self._clusters = clusters
        self._fold = fold_of_pairs(len(self._pairs), family, self._alpha)
        guard = self._fold.levels.guard
        self._reader = PairReader(self._cells, first, second, target, clusters, margin, guard)
        self._verdicts: dict[str, int] = {}
        self._told = 0
        self._reached: list[list[int]] = [[] for _ in self.names]  # log positions of each model's steps
        self._counted = np.zeros((count, len(self._ids)), dtype=np.int64)
        self._waiting: list[dict[int, tuple[int, int]]] = [{} for _ in self.names]
        self._asked = [0] * count

    def next(self, model: str) -> Any:
        """Return the question that `model` should answer next; each call moves on by one."""
        row = self._row(model)
        while self._asked[row] in self._waiting[row] or self._asked[row] < self._cells.progress[row]:
            self._asked[row] += 1
        step = self._asked[row]
        self._asked[row] += 1
        return self._ids[self._sequence.at(step)]

    def update(self, model: str, question: Hashable, outcome: int | bool | None) -> MonitorState:
        """Add one outcome and return the results.

        Parameters
        ----------
        model : str
            Name of the model.
        question : hashable
            Id (or number) of the question.
        outcome : int, bool or None
            0 or 1, or a category with `weights`; None for a trial that stays without an answer.

        Raises
        ------
        ValueError
            If the model or question is unknown or the outcome is no category.
        """
        row = self._row(model)
        if question not in self._index:
            raise ValueError(f"question must be one of the {len(self._ids)} given; got {question!r}")
        category = MISSING if outcome is None else int(outcome)
        if (category != outcome and outcome is not None) or not MISSING <= category < self._scores.size:
            raise ValueError(
                f"outcome must be None or a category in 0..{self._scores.size - 1}; got {outcome!r}"
            )
        number = self._index[question]
        self._told += 1
        self._waiting[row][self._step(number, int(self._counted[row, number]))] = category, self._told
        self._counted[row, number] += 1
        self._absorb(row)
        self._decide()
        return self.state

    @property
    def state(self) -> MonitorState:
        """The present results."""
        spread = cluster_spread(self._cells, self._clusters)
        questions, guard = self._sequence.questions, log(1.0 / self._alpha)
        means = score_block(self._cells.latest(), questions, self._target, spread, guard=guard)
        low, high = interval(means, self._alpha)
        verdict = self._fold.verdict
        openness = verdict == OPEN
        active = np.unique(self._pairs[openness])
        better = [
            (i, j) if sign == 1 else (j, i)
            for (i, j), sign in zip(self._pairs.tolist(), verdict.tolist(), strict=True)
            if abs(sign) == 1
        ]
        values = (means.difference[:, 0], np.clip(low[:, 0], 0.0, 1.0), np.clip(high[:, 0], 0.0, 1.0))
        scores, lows, highs = (tuple((self._lowest + self._scale * value).tolist()) for value in values)
        return MonitorState(
            names=self.names,
            trials=tuple(self._cells.progress.tolist()),
            waiting=tuple(len(waiting) for waiting in self._waiting),
            scores=scores,
            low=lows,
            high=highs,
            verdicts=dict(self._verdicts),
            open=tuple((self.names[i], self.names[j]) for i, j in self._pairs[openness].tolist()),
            active=tuple(self.names[row] for row in active.tolist()),
            ranks=tuple(rank_intervals(len(self.names), better)),
            done=not openness.any(),
        )

    def _row(self, model: str) -> int:
        if model not in self.names:
            raise ValueError(f"model must be one of {', '.join(self.names)}; got {model!r}")
        return self.names.index(model)

    def _step(self, question: int, repeat: int) -> int:
        """Return the index in the trial sequence of a question's trial number `repeat`."""
        stop = (repeat + 1) * self._sequence.questions + self._sequence.questions
        return int(self._sequence.steps_of(question, stop)[repeat])

    def _absorb(self, row: int) -> None:
        waiting, start = self._waiting[row], int(self._cells.progress[row])
        ready: list[int] = []
        while start + len(ready) in waiting:
            category, told = waiting.pop(start + len(ready))
            ready.append(category)
            self._reached[row].append(max([told, *self._reached[row][-1:]]))
        if ready:
            self._cells.absorb(np.array([row]), np.array([ready]))

    def _decide(self) -> None:
        """Read the open pairs as far as both models are, and call those that may be called."""
        pieces = []
        for pair in np.flatnonzero(self._fold.verdict == OPEN):
            first, second = self._pairs[pair]
            start = int(self._reader.progress[pair])
            stop = int(self._cells.progress[[first, second]].min())
            if stop > start:
                position = np.maximum(self._reached[first][start:stop], self._reached[second][start:stop])
                block = self._reader.read(np.array([pair]), stop)
                course = course_of(self._rule, block, self._sequence.complete(start, stop))
                pieces.append(Piece(np.array([pair]), start, moments(position[None], start), course))
        for event in self._fold.read(pieces):
            first, second = (self.names[model] for model in self._pairs[event.contrast])
            better, other = (second, first) if event.verdict == WORSE else (first, second)
            self._verdicts[f"{better} {'=' if event.verdict == TIE else '>'} {other}"] = event.step
