"""Rounds of each model's own: true ties that are called, and trials against the trial sequence."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from decisions_many import first_calls
from decisions_options import Options, heading, mark, percent, row, split
from numpy.typing import NDArray

from adaptive_eval.core.spec import (
    ROUNDS_AT_MOST,
    AllocationSpec,
    ModelSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.interop.recorded_files import read_recorded
from adaptive_eval.options.decisions import QuestionPolicy
from adaptive_eval.simulate import GivenChances, Rate, simulate
from scorio.sequential.evidence import MIN_TRIALS, log_evidence, log_tie_evidence
from scorio.sequential.trial_sequence import first_pass

Floats = NDArray[np.float64]
PAIRS = 6000
"""Pairs of one profile at scale 1."""
SIZES = ((30, 40), (60, 20), (100, 12), (200, 20))
"""Questions and passes."""


def with_mean(chances: Floats, mean: float) -> Floats:
    """Shift chances on the logit scale to a mean."""
    logit = np.log(np.clip(chances, 1e-9, 1 - 1e-9)) - np.log1p(-np.clip(chances, 1e-9, 1 - 1e-9))
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2.0
        low, high = (middle, high) if (1 / (1 + np.exp(-(logit + middle)))).mean() < mean else (low, middle)
    return np.asarray(1.0 / (1.0 + np.exp(-(logit + low))))


def profiles(questions: int) -> dict[str, tuple[Floats, Floats]]:
    """Return the chances of two models with equal means, by name."""
    rng, few = np.random.default_rng(7), questions // 5
    base, bimodal = rng.beta(3.2, 4.8, questions), with_mean(rng.beta(0.2, 0.3, questions), 0.4)
    half = rng.random(questions // 2)
    opposed = np.concatenate([half, 1.0 - half, [0.5] * (questions % 2)])
    hard = np.where(np.arange(questions) < few, 0.15, 1.0)
    other = np.where(np.arange(questions) < few, 0.5, (hard.sum() - 0.5 * few) / (questions - few))
    noisy = np.where(np.arange(questions) < few, 0.5, 1.0)
    flat = {mean: np.full(questions, mean) for mean in (0.05, 0.5, 0.95)}
    return {
        "same": (base, base),
        "independent": (base, with_mean(rng.beta(3.2, 4.8, questions), float(base.mean()))),
        "opposed": (opposed, 1.0 - opposed),
        "few hard": (hard, other),
        "few easy": (1.0 - hard, 1.0 - other),
        "few noisy, others": (noisy, noisy[::-1]),
        "bimodal": (bimodal, bimodal),
        "bimodal, independent": (bimodal, rng.permutation(bimodal)),
        "bimodal and flat": (bimodal, np.full(questions, bimodal.mean())),
        **{f"flat at {mean:g}": (chances, chances) for mean, chances in flat.items()},
    }


def graded(chances: Floats) -> Floats:
    """Return the chances of none, one and both of two tries being right."""
    return np.stack([(1 - chances) ** 2, 2 * chances * (1 - chances), chances**2], axis=-1)


def called_ties(
    two: tuple[Floats, Floats],
    passes: int,
    weights: tuple[float, ...],
    pairs: int,
    seed: int,
    *,
    priced: bool = False,
) -> NDArray[np.bool_]:
    """Return which of `pairs` equal models are called different, looked at after every trial."""
    chances = np.tile(np.stack(two), (pairs, 1))
    chances = chances if len(weights) == 2 else graded(chances)
    costs = dear if priced else None
    return first_calls(weights, chances, passes, seed, rounds=True, costs=costs)[0]


def dear(chances: Floats, questions: NDArray[np.int32], answers: NDArray[np.int64]) -> Floats:
    """Return costs that are higher for hard questions, and ten times as high for wrong answers."""
    hard = chances[..., 0] if chances.ndim > 2 else 1.0 - chances
    return np.asarray(np.exp(2.0 * hard + 0.1 * (questions % 7)) * np.where(answers > 0, 1.0, 10.0))


def rounds(options: Options) -> None:
    heading(
        "Rounds: true ties called, by how questions differ, a look after every trial (target 5 %)",
        "questions x passes, profile", "right or wrong", "graded", "by cost", "",
    )  # fmt: skip
    for place, (questions, passes) in enumerate(SIZES):
        if not options.wanted(questions):
            continue
        number = options.number(PAIRS, 60)
        for cell, (name, two) in enumerate(profiles(questions).items()):
            shares = []
            binary, grades = (0.0, 1.0), (0.0, 0.5, 1.0)
            for kind, weights in enumerate((binary, grades, binary)):
                called = partial(called_ties, two, passes, weights, priced=kind == 2)
                boards = split(number, 100)
                seeds = options.seeds(len(boards), 11, place, cell, kind)
                jobs = [partial(called, size, seed) for size, seed in zip(boards, seeds, strict=True)]
                shares.append(Rate(sum(int(one.sum()) for one in options.run(jobs)), number))
            marks = " ".join(mark(share, 0.05) for share in shares)
            row(f"{questions} x {passes}, {name}", *(percent(share) for share in shares), marks)


def _trials(chances: Floats, margin: float, runs: int, seed: int, order: QuestionPolicy) -> tuple[float, int]:
    """Return the trials of runs to their end, and the wrong winners."""
    models, questions = chances.shape
    spec = SessionSpec(
        models=tuple(ModelSpec(f"m{number}") for number in range(models)),
        tasks=(TaskSpec("t", tuple(f"q{number}" for number in range(questions))),),
        stopping=StoppingSpec(equivalence=margin, max_passes=3000),
        allocation=AllocationSpec(questions=order),
    )
    result = simulate(spec, GivenChances(chances), runs, seed, in_flight=1, workers=1)
    return float(result.total.sum()), int(result.wrong.sum())


def noise_known(a: Floats, b: Floats, margin: float, runs: int, seed: int, passes: int = 6) -> float:
    """Return mean trials of a pair along the schedule by the present boundaries, if its noise were known.

    Not a number where more than one run in a hundred is not decided within `passes`.
    """
    rng, size = np.random.default_rng(seed), a.size
    order = rng.permuted(np.tile(np.arange(size), (runs, 1)), axis=1)
    within, between = (a * (1 - a) + b * (1 - b)).mean(), (a - b).var()
    c, sums, found = np.arange(1.0, size + 1), np.zeros((runs, size)), []
    for number in range(passes):
        new = (rng.random(order.shape) < a[order]).astype(float) - (rng.random(order.shape) < b[order])
        if number == 0:
            found.append((new.cumsum(axis=1) / c, between * (1 / c - 1 / size) + within / c))
        else:
            old = sums / number
            change = (sums + new) / (number + 1) - old
            variance = within * ((size - c) / number + c / (number + 1)) / size**2
            found.append(((old.sum(axis=1)[:, None] + change.cumsum(axis=1)) / size, variance))
        sums += new
    difference, variance = (np.concatenate(one, axis=-1) for one in zip(*found, strict=True))
    bar = np.log(20.0)
    won = log_evidence(difference, variance, margin) >= bar
    called = won | (log_tie_evidence(difference, variance, margin) >= bar)
    called[:, : MIN_TRIALS - 1] = False
    if not called.any(axis=1).mean() > 0.99:
        return float("nan")
    called[:, -1] = True
    steps = called.argmax(axis=1)
    # The calibration repeats that a run makes up to there cost the same.
    positions = first_pass(size)
    fresh = np.flatnonzero(np.isin(np.arange(positions.size), np.unique(positions, return_index=True)[1]))
    return 2.0 * float(np.where(steps < size, fresh[np.minimum(steps, size - 1)], steps).mean() + 1.0)


def allocation(options: Options) -> None:
    if options.replay is None:
        print("\nRounds on recorded sets: not run; name a directory of npz files with --replay")
        return
    for path in sorted(options.replay.glob("*.npz")):
        _allocation(options, path)


def _allocation(options: Options, path: Path) -> None:
    recorded = read_recorded([path])
    chances = np.nan_to_num(recorded.scores())
    chances = chances[(recorded.counts.min(axis=1) > 0) & (chances.mean(axis=1) >= 0.05)]
    means, number = chances.mean(axis=1), options.number(200, 4)
    heading(
        f"Trials along the schedule and by auto; chances are the recorded means of {path.stem}, margin 0.03",
        "what", "schedule", "auto", "wrong winners",
    )  # fmt: skip
    rng = np.random.default_rng(options.seed)
    near = [
        (a, b) for a in range(means.size) for b in range(a + 1, means.size) if abs(means[a] - means[b]) < 0.03
    ]
    ways: tuple[QuestionPolicy, ...] = ("schedule", "auto")
    for label, groups in (
        ("pairs within 3 points", [near[index] for index in rng.permutation(len(near))[:16]]),
        ("boards of 8", [rng.permutation(means.size)[:8] for _ in range(8)] if means.size >= 8 else []),
    ):
        found = []
        for order in ways if chances.shape[1] <= ROUNDS_AT_MOST else ways[:1]:
            seeds = options.seeds(len(groups), 16)
            jobs = [
                partial(_trials, chances[list(group)], 0.03, number, seed, order)
                for group, seed in zip(groups, seeds, strict=True)
            ]
            found.append(options.run(jobs))
        if groups:
            trials = [sum(count for count, _ in one) / len(one) / number for one in found]
            shares = [f"{one:,.0f}: {one / trials[0]:.2f}" for one in trials[1:]]
            wrong = sum(count for _, count in found[-1])
            row(label, f"{trials[0]:,.0f}", *shares, *["–"] * (1 - len(shares)), f"{wrong}")
        if groups and label.startswith("pairs"):
            known = [
                partial(noise_known, chances[pair[0]], chances[pair[1]], 0.03, 40 * number, seed)
                for pair, seed in zip(groups, options.seeds(len(groups), 21), strict=True)
            ]
            oracle = float(np.mean(options.run(known)))
            cell = f"{oracle:,.0f}: {oracle / trials[0]:.2f}" if np.isfinite(oracle) else "not in 6 passes"
            row("the same, if their noise were known", "", cell)
