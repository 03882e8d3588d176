"""Many pairs at once, by the readers that decide a run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.spec import ModelSpec, SessionSpec, TaskSpec
from adaptive_eval.simulate import GivenChances
from scorio.sequential.cells import Cells
from scorio.sequential.moments import unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import RunSequence, TrialSequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
PIECE = 512


def first_calls(
    weights: tuple[float, ...],
    chances: Floats,
    passes: int,
    seed: int,
    equivalence: float | None = None,
    *,
    rounds: bool = False,
    costs: Callable[[Floats, Ints, NDArray[np.int64]], Floats] | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pairs of models (0, 1), (2, 3), … are called different, and which tied.

    What comes first counts. A look after every trial, by the readers and the rule of a run, each pair at its
    own level. `costs` gives what trials cost, from models' chances, the questions and the answers.
    """
    names, questions = (tuple(map(str, range(number))) for number in chances.shape[:2])
    spec = SessionSpec(tuple(map(ModelSpec, names)), (TaskSpec("t", questions, weights),))
    of_order, of_trials = np.random.SeedSequence(seed).spawn(2)
    size, models = spec.questions, np.arange(len(chances))
    own = None if not rounds else int(of_order.generate_state(1)[0])
    sequence = TrialSequence(np.random.default_rng(of_order).permutation(size), own=own)
    stream = GivenChances(chances).begin(spec, RunSequence.of_task(sequence), of_trials)
    scores, rule = unit_scores(weights), Anytime(1.0 - spec.stopping.confidence, equivalence)
    cells = Cells(sequence, scores, models.size)
    rows, start = np.arange(models.size // 2), 0
    reader = PairReader(cells, models[::2], models[1::2], equivalence=equivalence)
    different, tied = np.zeros((2, rows.size), dtype=bool)
    while start < passes * size and rows.size:
        stop = min(start + PIECE, passes * size)
        if rounds:
            stop = min(stop, *(int(sequence.laid_out(model)) for model in models.tolist()))
        answers = stream.draw(models, start, stop)
        asked = sequence.questions_of(models, start, stop)
        paid = None if costs is None else costs(chances[models[:, None], asked], asked, answers)
        cells.absorb(models, answers, paid)
        block = reader.read(rows, stop)
        won = rule.statistic(block, np.zeros(stop - start, dtype=bool)) >= np.log(1.0 / rule.alpha)
        tie = rule.tied(block)
        at = np.arange(rows.size), (won | tie).argmax(axis=1)
        different[rows], tied[rows] = won[at], tie[at] & ~won[at]
        cells.forget(stop - 1)
        start, rows = stop, np.flatnonzero(~(different | tied))
        if not rounds:
            models = np.sort(np.concatenate([2 * rows, 2 * rows + 1]))
    return different, tied
