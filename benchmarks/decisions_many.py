"""Many pairs in rounds at once: the readers that decide a run, with sums that are kept from step to step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.spec import ModelSpec, SessionSpec, TaskSpec
from adaptive_eval.simulate import GivenChances
from scorio.sequential.cells import Cells, unit_scores
from scorio.sequential.contrasts import ENOUGH_NOISE
from scorio.sequential.pairs import PairReader
from scorio.sequential.rounds import Rounds
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import RunSequence, TrialSequence

Floats = NDArray[np.float64]
PIECE = 512


class ManyRounds(Rounds):
    """Rounds whose sums over questions are kept, not taken anew at each step; the same up to rounding.

    Only for answers without a hole, where all questions have one weight. u is not made, because it is read
    only of a model whose answers do not vary; for such a model, :class:`Rounds` reads the piece.
    """

    def _follow(self, number: int, models: Any, start: int, categories: Any, sums: Any, only: Any) -> Any:
        state = self.snapshots[number].of(models)
        weight = state.weight[:, :1]
        if only is not None or not ((state.weight == weight).all() and (weight > 0.0).all()):
            return super()._follow(number, models, start, categories, sums, only)
        prior = state.prior.columns()
        begun = sums
        r, s, s2 = (one.copy() for one in sums)
        many, has = np.maximum(r, 1.0), r > 0.0
        v = prior.variance(state.n + r, state.sx + s, state.sxx + s2)
        shared, total = self.sequence.questions, state.n + r
        kept = {
            "unit": (state.variance / many).sum(axis=1),
            "seen": np.where(has, state.score, 0.0).sum(axis=1),
            "mean": np.where(has, s / many, 0.0).sum(axis=1),
            "square": np.where(has, v * state.square, 0.0).sum(axis=1),
            "unseen": np.where(has, 0.0, v * state.square).sum(axis=1),
            "noise": np.where(has, v / many, 0.0).sum(axis=1),
            "g": (total * v).sum(axis=1),
            "r": np.maximum(total - 1.0, 0.0).sum(axis=1),
        }
        whole, weight = state.score.sum(axis=1), weight[:, 0]
        questions = self.sequence.of(models, start, start + categories.shape[1])
        path = np.empty((6, models.size, categories.shape[1]))
        rows, prior = np.arange(models.size), state.prior
        for step in range(categories.shape[1]):
            at = rows, questions[:, step]
            x, x2 = self._x[categories[:, step]], self._x2[categories[:, step]]
            n, old, base = r[at], v[at], state.square[at]
            first, before = n == 0.0, np.maximum(n, 1.0)
            in_all = state.n[at] + n
            after, mean = n + 1.0, s[at]
            r[at], s[at], s2[at] = after, mean + x, s2[at] + x2
            new = prior.variance(in_all + 1.0, state.sx[at] + s[at], state.sxx[at] + s2[at])
            v[at] = new
            kept["unit"] += state.variance[at] * (1.0 / after - 1.0 / before)
            kept["seen"] += np.where(first, state.score[at], 0.0)
            kept["mean"] += s[at] / after - np.where(first, 0.0, mean / before)
            kept["square"] += new * base - np.where(first, 0.0, old * base)
            kept["unseen"] -= np.where(first, old * base, 0.0)
            kept["noise"] += new / after - np.where(first, 0.0, old / before)
            kept["g"] += (in_all + 1.0) * new - in_all * old
            kept["r"] += in_all >= 1.0
            h = state.unit / kept["unit"]
            both = weight + h
            path[5, :, step] = (kept["seen"] + h * kept["mean"]) / both + (whole - kept["seen"]) / weight
            path[0, :, step] = (kept["square"] + h * h * kept["noise"]) / both**2 + kept["unseen"] / weight**2
            path[2, :, step], path[3, :, step] = kept["g"], kept["r"]
        if (path[2] < 2.0 * ENOUGH_NOISE).any():
            return super()._follow(number, models, start, categories, begun, only)
        path[0] /= shared
        path[1], path[4] = path[0], shared
        estimate = state.score / weight[:, None]
        centred = (estimate**2).sum(axis=1) - estimate.sum(axis=1) ** 2 / shared
        squares = centred[:, None] + path[5] ** 2 / shared
        return np.concatenate([path, squares[None]]), (r, s, s2)


def first_calls(
    weights: tuple[float, ...],
    chances: Floats,
    passes: int,
    seed: int,
    rounds: type[Rounds] | None = None,
    equivalence: float | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pairs of models (0, 1), (2, 3), … are called different, and which tied.

    What comes first counts. A look after every trial, by the readers and the rule of a run, each pair at its
    own level.
    """
    names, questions = (tuple(map(str, range(number))) for number in chances.shape[:2])
    spec = SessionSpec(tuple(map(ModelSpec, names)), (TaskSpec("t", questions, weights),))
    of_order, of_trials = np.random.SeedSequence(seed).spawn(2)
    size, models = spec.questions, np.arange(len(chances))
    own = None if rounds is None else int(of_order.generate_state(1)[0])
    sequence = TrialSequence(np.random.default_rng(of_order).permutation(size), own=own)
    stream = GivenChances(chances).begin(spec, RunSequence.of_task(sequence), of_trials)
    scores, rule = unit_scores(weights), Anytime(1.0 - spec.stopping.confidence, equivalence)
    cells = Cells(sequence, scores, models.size)
    if rounds is not None:
        cells.rounds = rounds(sequence, scores, models.size)
    rows, start = np.arange(models.size // 2), 0
    reader = PairReader(cells, models[::2], models[1::2], equivalence=equivalence)
    different, tied = np.zeros((2, rows.size), dtype=bool)
    while start < passes * size and rows.size:
        stop = min(start + PIECE, passes * size)
        if rounds is not None:
            stop = min(stop, *(int(sequence.laid_out(model)) for model in models.tolist()))
        cells.absorb(models, stream.take(models, start, stop))
        block = reader.read(rows, stop)
        won = rule.statistic(block, np.zeros(stop - start, dtype=bool)) >= np.log(1.0 / rule.alpha)
        tie = rule.tied(block)
        at = np.arange(rows.size), (won | tie).argmax(axis=1)
        different[rows], tied[rows] = won[at], tie[at] & ~won[at]
        cells.forget(stop - 1)
        start, rows = stop, np.flatnonzero(~(different | tied))
        if rounds is None:
            models = np.sort(np.concatenate([2 * rows, 2 * rows + 1]))
    return different, tied
