"""Errors and trials of single pairs: many independent pairs share one board.

With the family ``pair`` no pair's threshold depends on another's, so a board of 2R models with R named pairs
is R sessions of two models that share array operations. Every pair draws its own question chances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.spec import (
    AllocationSpec,
    GoalSpec,
    ModelSpec,
    ReferenceSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.options.decisions import QuestionPolicy
from adaptive_eval.simulate import GivenChances, simulate
from adaptive_eval.simulate.coins import ReplicateAnswers, to_score_units
from scorio.arrays import Floats
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import score_block
from scorio.sequential.evidence import MIN_TRIALS, log_evidence
from scorio.sequential.moments import unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.trial_sequence import RunSequence, TrialSequence
from scorio.study import biased_coins

CORRELATIONS = (0.0, 0.5, 0.9, 1.0)
"""Drawn anew for each pair; at 1 and equal means two models are the same model."""
ALPHA = 0.05
NAIVE = 1.645

Placed = Literal["evenly", "in few", "unrelated"]
PLACES: tuple[Placed, ...] = get_args(Placed)
Outcome = Literal["binary", "graded", "skewed"]
WEIGHTS: dict[Outcome, tuple[float, ...]] = {
    "binary": (0.0, 1.0),
    "graded": (1.0, -1.0, 0.0),  # best, worst, half: in any order, negative
    "skewed": (0.0, 20.0, 1.0),  # a rare answer is worth twenty common ones
}


@dataclass(frozen=True)
class Pairs:
    """A number of pairs of models with known chances.

    Parameters
    ----------
    pairs, questions : int
        Pairs R and questions M.
    mean, gap : float
        Mean chance of the second model of each pair, and by how much the first one's is higher.
    concentration : float
        8 is paper-like, 0.5 bimodal.
    outcome : {'binary', 'graded', 'skewed'}
        Kind of outcome made of the chances; with a gap, binary.
    placed : {'evenly', 'in few', 'unrelated'}
        Whether the gap is spread over the questions, or in a few that only the first model can answer, or the
        models find different questions hard.
    order : {'schedule', 'rounds'}
        How questions are chosen.
    """

    pairs: int
    questions: int
    mean: float
    gap: float = 0.0
    concentration: float = 8.0
    outcome: Outcome = "binary"
    placed: Placed = "evenly"
    order: QuestionPolicy = "schedule"

    def chances(self, seed: np.random.SeedSequence) -> NDArray[np.float64]:
        """Return the chances of models 2r (first) and 2r + 1 (second) of each pair r."""
        return np.concatenate([self.pair(np.random.default_rng(child)) for child in seed.spawn(self.pairs)])

    def pair(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the chances of one pair."""
        if self.placed == "in few":
            few = rng.permutation(self.questions)[: max(1, round(1.25 * self.gap * self.questions))]
            others = (self.mean - self.gap / 2 * few.size / self.questions, self.questions - few.size)
            of_others = biased_coins((others[0],), others[1], seed=rng, concentration=self.concentration).p
            p = np.tile(np.insert(of_others, np.sort(few) - np.arange(few.size), 0.5, axis=1), (2, 1))
            p[:, few] += np.array([[0.5], [-0.5]]) * self.gap * self.questions / few.size
            return p
        correlation = 0.0 if self.placed == "unrelated" else float(rng.choice(CORRELATIONS))
        p = biased_coins(
            (self.mean + self.gap, self.mean),
            self.questions,
            seed=rng,
            concentration=self.concentration,
            correlation=correlation,
        ).p
        if self.outcome == "binary":
            return p
        if self.outcome == "graded":
            # Two tries each: both right, none right, one right.
            return np.stack([p * p, (1.0 - p) ** 2, 2.0 * p * (1.0 - p)], axis=2)
        # The rare answer is the one that matters; its mean is exact whatever else is drawn.
        rare = 0.06 * p
        return np.stack([0.5 - 0.5 * rare, rare, 0.5 - 0.5 * rare], axis=2)

    def spec(self, passes: int, **stopping: Any) -> SessionSpec:
        """Return a session that decides these pairs, each at its own level, and ends after `passes`."""
        names = tuple(f"m{number}" for number in range(2 * self.pairs))
        return SessionSpec(
            models=tuple(ModelSpec(name) for name in names),
            tasks=(
                TaskSpec("t", tuple(f"q{number}" for number in range(self.questions)), WEIGHTS[self.outcome]),
            ),
            goal=GoalSpec("pairs", pairs=tuple(zip(names[::2], names[1::2], strict=True))),
            stopping=replace(StoppingSpec(family="pair", max_passes=passes), **stopping),
            allocation=AllocationSpec(questions=self.order),
        )

    # The protocol of a source of answers.

    def truth(self, spec: SessionSpec) -> Floats:
        """Return the true scores; where outcomes are not binary, equal numbers for equal models."""
        return to_score_units(spec, np.tile([self.mean + self.gap, self.mean], self.pairs))

    def begin(
        self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence
    ) -> ReplicateAnswers:
        """Draw the chances and the answers of one board."""
        of_chances, of_trials = seed.spawn(2)
        return GivenChances(self.chances(of_chances)).begin(spec, run_sequence, of_trials)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts of many pairs: counts, and the steps of those with a winner."""

    pairs: int
    wrong: int
    ties: int
    winner_steps: NDArray[np.int64]


def verdicts(pairs: Pairs, passes: int, seed: int, stopping: dict[str, Any]) -> Verdicts:
    """Decide one board of pairs."""
    result = simulate(pairs.spec(passes, **stopping), pairs, 1, seed, in_flight=1, workers=1)
    won = np.abs(result.verdict) == 1
    return Verdicts(
        result.verdict.size, int(result.wrong.sum()), int((result.verdict == 2).sum()), result.decided_at[won]
    )


@dataclass(frozen=True, slots=True)
class Paths:
    """What happened anywhere along the paths of many pairs, a look after every trial."""

    pairs: int
    naive: int
    difference_missed: int
    scores: int
    score_missed: int


def paths(pairs: Pairs, passes: int, seed: int) -> Paths:
    """Follow pairs without stopping.

    Counts the pairs whose |D|/√V reaches 1.645 at any time, and the anytime intervals of differences and
    scores that miss the truth at any time.
    """
    of_chances, of_trials, of_order = np.random.SeedSequence(seed).spawn(3)
    spec = pairs.spec(passes)
    own = int(of_order.generate_state(1)[0]) if pairs.order == "rounds" else None
    sequence = TrialSequence(np.random.default_rng(of_order).permutation(pairs.questions), own=own)
    stream = GivenChances(pairs.chances(of_chances)).begin(spec, RunSequence.of_task(sequence), of_trials)
    models = np.arange(2 * pairs.pairs)
    cells = Cells(sequence, unit_scores(WEIGHTS[pairs.outcome]), models.size)
    rows = np.arange(pairs.pairs)
    reader = PairReader(cells, models[::2], models[1::2])
    truth = np.tile([pairs.mean + pairs.gap, pairs.mean], pairs.pairs)[:, None]
    naive, missed = np.zeros(rows.size, dtype=bool), np.zeros(rows.size, dtype=bool)
    score_missed, bar = np.zeros(models.size, dtype=bool), np.log(1.0 / ALPHA)
    steps, piece = passes * pairs.questions, 512
    start = 0
    while start < steps:
        stop = int(min(start + piece, steps, *map(sequence.laid_out, models.tolist())))
        cells.absorb(models, stream.draw(models, start, stop))
        block = reader.read(rows, stop)
        enough = block.trials >= MIN_TRIALS
        naive |= (enough & (np.abs(block.difference) >= NAIVE * np.sqrt(block.variance))).any(axis=1)
        missed |= (enough & (log_evidence(block.difference - pairs.gap, block.guarded) >= bar)).any(axis=1)
        alone = score_block(cells.path(models, start, stop), pairs.questions)
        off = log_evidence(alone.difference - truth, alone.variance) >= bar
        score_missed |= (off & (alone.trials >= MIN_TRIALS)).any(axis=1)
        cells.forget(stop)
        start = stop
    return Paths(rows.size, int(naive.sum()), int(missed.sum()), models.size, int(score_missed.sum()))


def against_stored(pairs: Pairs, stored: int, passes: int, seed: int, stopping: dict[str, Any]) -> Verdicts:
    """Decide new models against finished results with `stored` trials a question.

    The first of each pair is new, the second a reference, so a gap is in the new model's favour.
    """
    of_chances, of_trials, of_run = np.random.SeedSequence(seed).spawn(3)
    chances, rng = pairs.chances(of_chances), np.random.default_rng(of_trials)
    whole = pairs.spec(passes, **stopping)
    references = []
    for number in range(pairs.pairs):
        right = rng.binomial(stored, chances[2 * number + 1])
        references.append(ReferenceSpec(f"old{number}", {"t": np.stack([stored - right, right], axis=1)}))
    models = whole.models[::2]
    named = tuple((model.name, old.name) for model, old in zip(models, references, strict=True))
    spec = replace(whole, models=models, references=tuple(references), goal=GoalSpec("pairs", pairs=named))
    answers = GivenChances(chances[::2])
    result = simulate(spec, answers, 1, int(of_run.generate_state(1)[0]), in_flight=1, workers=1)
    won = np.abs(result.verdict) == 1
    wrong = won if pairs.gap == 0.0 else result.verdict == -1
    ties = int((result.verdict == 2).sum())
    return Verdicts(result.verdict.size, int(wrong.sum()), ties, result.decided_at[won])
