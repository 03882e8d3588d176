"""Tables of the tail that a family needs: thresholds, pairs, ties, stored results, intervals under 5 %."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from decisions_boards import board
from decisions_options import Options, heading, mark, percent, row, split
from decisions_pairs import Pairs
from numpy.typing import NDArray

from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import GivenChances, Rate, simulate
from scorio.sequential.betting import ScoreBets
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import score_block
from scorio.sequential.evidence import MIN_TRIALS, log_evidence, log_tie_evidence
from scorio.sequential.moments import unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.reference import ReferenceReader
from scorio.sequential.trial_sequence import RunSequence
from scorio.study import biased_coins

LEVELS = (0.05, 0.005, 0.001, 1e-4)
PEAKS = ("pair", "tie", "stored", "difference", "score", "threshold")
PER_CELL = 20_000
"""Pairs of one cell at scale 1."""
THRESHOLDS = (
    (10, 100, 15, 0.05), (20, 1000, 2, 0.05), (50, 1000, 2, 0.05), (15, 300, 4, 0.97), (20, 30, 40, 0.5),
    (20, 200, 5, 0.005), (20, 200, 5, 0.995),
)  # fmt: skip
"""Models, questions, passes, value: all models score exactly the value."""


def thresholds(options: Options) -> None:
    heading(
        "All models exactly at the threshold, Holm: any called (target 5 %), and trials to a call off it",
        "models, questions x passes, value", "any model called", "called 3 points above", "trials to it", "",
    )  # fmt: skip
    for place, (models, questions, passes, value) in enumerate(THRESHOLDS):
        number = options.number(2000, 8)
        jobs = [
            partial(at_threshold, models, questions, passes, value, value, -(-number // 4), seed)
            for seed in options.seeds(4, 16, place)
        ]
        found = options.run(jobs)
        wrong = Rate(sum(one[0] for one in found), sum(one[1] for one in found))
        above = at_threshold(1, questions, passes, value, value + min(0.03, (1 - value) / 2), number, place)
        steps = f"{np.median(above[2]):,.0f}" if above[2].size else "–"
        name = f"{models}, {questions} x {passes}, {value}"
        row(name, percent(wrong), percent(Rate(above[0], above[1])), steps, mark(wrong, 0.05))


def at_threshold(
    models: int, questions: int, passes: int, value: float, score: float, runs: int, seed: int
) -> tuple[int, int, NDArray[np.int64]]:
    """Return the runs in which any model was called, their number, and the steps of the calls."""
    spec = SessionSpec(
        models=tuple(ModelSpec(f"m{number}") for number in range(models)),
        tasks=(TaskSpec("t", tuple(f"q{number}" for number in range(questions))),),
        goal=GoalSpec("threshold", value=value),
        stopping=StoppingSpec(max_passes=passes),
    )
    p = biased_coins((score,) * models, questions, seed=seed, concentration=8.0, correlation=0.0).p
    result = simulate(spec, GivenChances(p), runs, seed, in_flight=1, workers=1)
    called = np.abs(result.verdict) == 1
    return int(called.any(axis=1).sum()), runs, result.decided_at[called]


def tails(options: Options) -> None:
    heading(
        "Evidence against the truth at any time, per contrast, at far levels (target: the level)",
        "questions x passes, mean, what", *(f"α = {level:g}" for level in LEVELS),
    )  # fmt: skip
    for place, (questions, passes, margin) in enumerate(((30, 30, 0.1), (200, 4, 0.05), (1000, 2, 0.03))):
        for cell, mean in enumerate((0.005, 0.05, 0.5, 0.95, 0.995)):
            boards = split(options.number(PER_CELL, 200), 200)
            seeds = options.seeds(len(boards), 17, place, cell)
            jobs = [
                partial(peaks, size, questions, passes, mean, margin, seed)
                for size, seed in zip(boards, seeds, strict=True)
            ]
            found = options.run(jobs)
            for name in PEAKS:
                values = np.concatenate([one[name] for one in found], axis=1)
                rates = [Rate(int(one.sum()), one.size) for one in values]
                verdicts = [mark(rate, level) for rate, level in zip(rates, LEVELS, strict=True)]
                cells = [f"{rate.share:.3%} {said}" for rate, said in zip(rates, verdicts, strict=True)]
                row(f"{questions} x {passes}, {mean}, {name}", *cells)


def peaks(
    pairs: int, questions: int, passes: int, mean: float, margin: float, seed: int
) -> dict[str, NDArray[np.bool_]]:
    """Follow equal models, and models exactly a margin apart, to the end, with a look after every trial.

    Returned is whether the evidence against the truth ever reached 1/α, by what it speaks of, with the
    continuity term of each level; shape (levels, contrasts).
    """
    of_order, of_trials, *of_chances = np.random.SeedSequence(seed).spawn(4)
    rng = np.random.default_rng(of_trials)
    apart = np.clip(mean, margin / 2 + 1e-3, 1.0 - margin / 2 - 1e-3) - margin / 2
    equal, gapped = (
        Pairs(pairs, questions, *setting).chances(child)
        for setting, child in zip(((mean, 0.0), (apart, margin)), of_chances, strict=True)
    )
    stored = _stored_counts(equal[1::2], rng)
    p = np.concatenate([equal, gapped])
    order = np.random.default_rng(of_order).permutation(questions)
    run_sequence, p, stored = RunSequence([questions], seed=None), p[:, order], stored[:, order]
    live = np.arange(len(p))
    cells = Cells(run_sequence.sequences[0], unit_scores([0.0, 1.0]), len(p) + pairs)
    for model, counts in enumerate(stored, start=len(p)):
        cells.load(model, counts)
    rows, first, second = np.arange(pairs), live[: 2 * pairs : 2], live[1 : 2 * pairs : 2]
    bars = np.log(1.0 / np.array(LEVELS))
    readers = [
        (
            PairReader(cells, first, second, guard=bar),
            PairReader(cells, live[2 * pairs :: 2], live[2 * pairs + 1 :: 2], equivalence=margin, guard=bar),
            ReferenceReader(cells, first, len(p) + rows, np.ones(pairs), guard=bar),
        )
        for bar in bars.tolist()
    ]
    truth = np.concatenate([np.full(2 * pairs, mean), np.tile([apart + margin, apart], pairs)])[:, None]
    bets = ScoreBets([cells], run_sequence, [1.0], live[: 2 * pairs], np.full(2 * pairs, mean))
    sizes = dict.fromkeys(PEAKS, pairs) | {"score": live.size, "threshold": 2 * pairs}
    reached = {name: np.zeros((bars.size, size), dtype=bool) for name, size in sizes.items()}
    for start in range(0, questions * passes, 256):
        stop = min(start + 256, questions * passes)
        chance = p[:, cells.sequence.question(start, stop)]
        cells.absorb(live, (rng.random(chance.shape) < chance).astype(np.int64))
        path = cells.path(live, start, stop)
        counted = path.trials[:1] >= MIN_TRIALS
        bet = bets.read(live[: 2 * pairs], start, stop)
        for level, (bar, (pair, tie, against)) in enumerate(zip(bars.tolist(), readers, strict=True)):
            of_pair, of_tie, of_stored = (one.read(rows, stop) for one in (pair, tie, against))
            own = score_block(path, questions, guard=bar)
            found = {
                "pair": log_evidence(of_pair.difference, of_pair.variance),
                "tie": log_tie_evidence(of_tie.difference, of_tie.margin, margin),
                # What is stored is a sample of the model's answers: its own score there is not the truth.
                "stored": log_evidence(of_stored.difference, of_stored.variance),
                "difference": log_evidence(of_tie.difference - margin, of_tie.guarded),
                "score": log_evidence(own.difference - truth, own.variance),
                "threshold": bet,
            }
            for name, log_e in found.items():
                reached[name][level] |= (counted & (log_e >= bar)).any(axis=1)
        cells.forget(stop)
    return reached


def _stored_counts(chances: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return counts of eight stored trials a question."""
    right = rng.binomial(8, chances)
    return np.stack([8 - right, right], axis=2)


def spaced(options: Options) -> None:
    heading(
        "Nine models spaced exactly by the margin, Holm, 30 questions: any wrong tie (family: 5 %)",
        "ties, margin", "any wrong tie", "any wrong winner", "trials a run", "",
    )  # fmt: skip
    for place, margin in enumerate((0.05, 0.08)):
        means = tuple(np.round(0.5 + margin * np.arange(-4, 5), 6).tolist())
        for ties in ("pair", "family"):
            share = -(-options.number(2000, 8) // 4)
            stopping: dict[str, Any] = {"equivalence": margin, "ties": ties, "max_passes": 300}
            jobs = [
                partial(board, means, 30, share, seed, **stopping) for seed in options.seeds(4, 18, place)
            ]
            found = options.run(jobs)
            runs = sum(one.runs for one in found)
            tied = Rate(sum(one.runs_with_wrong_tie for one in found), runs)
            wrong = Rate(sum(one.any_wrong for one in found), runs)
            trials = sum(one.trials for one in found) / runs
            said = mark(tied, 0.05) if ties == "family" else ""
            row(f"{ties}, {margin}", percent(tied), percent(wrong), f"{trials:,.0f}", said)
