"""What it takes to measure a score to a width, over the fixed length that is right, and how often it misses.

    python benchmarks/widths.py [--data R.npz ...] [--runs 1000] [--only NAME]

Scores are read along the schedule, after every trial. A row gives the mean trials over the right fixed
length, which is the fewest trials after which 1.96 standard errors are half the width: with all looks alike
(the interval of :func:`scorio.sequential.evidence.confidence_radius` ends it), as it is, and with ten stored
models as references. The last columns are the runs whose interval misses the score at the look that ends
them, and at any look, without references and with them, in %. Stored models find the same questions hard,
the opposite ones, or others; with `--data` (arrays `correct` and `count`) they are other recorded models.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from scipy.stats import beta

from scorio.sequential.answers import Answers
from scorio.sequential.boards import Board
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import Contrasts
from scorio.sequential.evidence import MEASURED, confidence_radius
from scorio.sequential.families import family
from scorio.sequential.fold import Levels, Piece
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import RunSequence, TrialSequence

Floats = NDArray[np.float64]

ALPHA = 0.05
TOGETHER = 20
"""Runs with one order of the questions."""
REFERENCES = 10
STORED = 20
"""Answers of a stored model to each question."""
SHAPES = ((100, 0.7, 8.0), (100, 0.9, 8.0), (300, 0.5, 1e6), (1000, 0.6, 2.0), (1000, 0.95, 2.0))
"""Questions, mean score, and strength of the Beta distribution of the chances."""


@dataclass(frozen=True)
class Found:
    """Runs of one cell: trials, and whether the interval missed at the last look, and at any."""

    trials: Floats
    at_end: NDArray[np.bool_]
    ever: NDArray[np.bool_]


def right_length(chance: Floats, half: float) -> int:
    """Return the fewest trials after which 1.96 standard errors of a mean of all questions are `half`."""
    questions, within = chance.size, float((chance * (1.0 - chance)).mean())
    between = float(chance.var(ddof=1))
    trials = np.arange(1, 1_000_000)
    variance = np.where(trials < questions, (1.0 - trials / questions) * between / trials, 0.0)
    return int(trials[np.argmax(1.96 * np.sqrt(variance + within / trials) <= half)])


def measured(chance: Floats, old: Floats, width: float, seed: int) -> Iterator[tuple[int, bool, bool]]:
    """Measure a model, several times with one order of the questions, with stored models of chances `old`."""
    rng = np.random.default_rng(seed)
    sequence = TrialSequence(rng.permutation(chance.size))
    cells = Cells(sequence, np.array([0.0, 1.0]), TOGETHER + len(old))
    for row, one in enumerate(old, start=TOGETHER):
        right = rng.binomial(STORED, one)
        cells.load(row, np.stack([STORED - right, right], axis=1), None, None)
    own = np.arange(TOGETHER)
    none, single = np.full(TOGETHER, np.nan), np.full(TOGETHER, Contrasts.SINGLE)
    contrasts = Contrasts(own, single, np.zeros(TOGETHER), np.full(TOGETHER, width), none)
    each = family("pair")
    levels = Levels(each, each, 1, ALPHA, ALPHA)
    answers = Answers(
        RunSequence.of_task(sequence), [cells], TOGETHER, [1.0], "benchmark", None, np.log(1.0 / ALPHA)
    )
    board = Board(answers, contrasts, Anytime(ALPHA), levels)
    ever = np.zeros(TOGETHER, dtype=bool)
    truth, start = float(chance.mean()), 0
    while (board.fold.decided_at < 0).any():
        stop = start + 256
        question = np.array([sequence.at(step, 0) for step in range(start, stop)])
        answers.extend((rng.random((TOGETHER, stop - start)) < chance[question]).astype(np.int64))
        seen: list[Piece] = []
        board.read(seen)
        for piece in seen:
            end = board.fold.decided_at[piece.rows, None]
            before = (np.arange(start + 1, stop + 1) < end) | (end < 0)
            course = piece.course
            radius = confidence_radius(course.variance, ALPHA * (1.0 - MEASURED))
            missed = (np.abs(course.difference - truth) > radius) & (course.trials >= 10)
            ever[piece.rows] |= (missed & before).any(axis=1)
        start = stop
    low, high = board.interval()
    at_end = (truth < low) | (truth > high)
    yield from zip(board.fold.decided_at.tolist(), at_end.tolist(), (ever | at_end).tolist(), strict=True)


def all_looks_alike(chance: Floats, half: float, seed: int) -> Iterator[int]:
    """Measure a model by the interval that holds at all looks alike; return the trials."""
    rng = np.random.default_rng(seed)
    sequence = TrialSequence(rng.permutation(chance.size))
    own, none = np.arange(TOGETHER), np.full(TOGETHER, np.nan)
    single, width = np.full(TOGETHER, Contrasts.SINGLE), np.full(TOGETHER, 1e-9)
    alone = Contrasts(own, single, np.zeros(TOGETHER), width, none)
    board = Board.of_pairs(sequence, TOGETHER, Anytime(ALPHA), contrasts=alone)
    trials, start = np.zeros(TOGETHER, dtype=np.int64), 0
    while not trials.all():
        stop = start + 256
        question = np.array([sequence.at(step, 0) for step in range(start, stop)])
        board.answers.extend((rng.random((TOGETHER, stop - start)) < chance[question]).astype(np.int64))
        seen: list[Piece] = []
        board.read(seen)
        course = seen[0].course
        narrow = (confidence_radius(course.variance, ALPHA) <= half) & (course.trials >= 10)
        first = start + 1 + narrow.argmax(axis=1)
        trials = np.where((trials == 0) & narrow.any(axis=1), first, trials)
        start = stop
    yield from trials.tolist()


def shapes() -> Iterator[tuple[str, Floats, Floats]]:
    """Yield a name, the chances of a model, and those of stored ones."""
    rng = np.random.default_rng(1)
    for questions, mean, strength in SHAPES:
        place = (np.arange(questions) + 0.5) / questions
        chance = np.asarray(beta.ppf(place, strength * mean, strength * (1.0 - mean)))
        name = f"{questions} questions, {mean:g}, strength {strength:g}"
        easier = rng.normal(0.0, 0.5, REFERENCES)
        alike = np.array(
            [1.0 / (1.0 + np.exp(-logit(np.clip(chance, 1e-9, 1 - 1e-9)) - one)) for one in easier]
        )
        yield f"{name}, alike", chance, alike
        yield f"{name}, opposite", chance, alike[:, ::-1]
        yield f"{name}, unrelated", chance, np.array([rng.permutation(one) for one in alike])


def recorded(path: str) -> Iterator[tuple[str, Floats, Floats]]:
    """Yield three models of a recorded set, each with others as stored ones."""
    table = np.load(path)
    share = table["correct"] / np.maximum(table["count"], 1)
    mean = share.mean(axis=1)
    share = share[(mean >= 0.05) & (mean <= 0.95)]
    order = np.random.default_rng(1).permutation(len(share))
    for model in order[:3].tolist():
        others = [other for other in order.tolist() if other != model][:REFERENCES]
        yield f"{Path(path).stem}, {share[model].mean():.2f}", share[model], share[others]


def main() -> None:
    """Print a row for each cell and width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--widths", nargs="+", type=float, default=[0.1, 0.05])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    sets = (one for path in options.data for one in recorded(path)) if options.data else shapes()
    seeds = range(max(options.runs // TOGETHER, 1))
    print("set, width: right length; over it: all looks alike, now, with references; misses: last, any look")
    for name, chance, old in sets:
        if options.only not in name:
            continue
        for width in options.widths:
            right = right_length(chance, 0.5 * width)
            before = [used for seed in seeds[::10] for used in all_looks_alike(chance, 0.5 * width, seed)]
            ratios, misses = [np.mean(before) / right], []
            for stored in (old[:0], old):
                runs = np.array([run for seed in seeds for run in measured(chance, stored, width, seed)])
                ratios.append(runs[:, 0].mean() / right)
                misses += (100.0 * runs[:, 1:].mean(axis=0)).tolist()
            words = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            missed = ", ".join(f"{share:.1f}" for share in misses)
            print(f"{name}, {width:g}: {right}; {words}; {missed}", flush=True)


if __name__ == "__main__":
    main()
