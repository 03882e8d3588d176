"""Tables of single pairs: errors at ties, rules, coverage, margins, trials to a call, stored results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from decisions_many import first_calls
from decisions_options import Options, below, heading, mark, percent, pooled, row, split
from decisions_pairs import PLACES, WEIGHTS, Pairs, Verdicts, against_stored, paths, verdicts
from numpy.typing import NDArray

from adaptive_eval.options.decisions import QuestionPolicy
from adaptive_eval.simulate import Rate

Floats = NDArray[np.float64]
PER_CELL = 4000
"""Pairs of one cell of a table at scale 1."""
SIZES = ((10, 100), (30, 100), (127, 40), (500, 8), (2000, 2), (14_000, 1))
"""Questions M, and the passes that are watched."""
MEANS = (0.05, 0.3, 0.6, 0.95)
SHAPES = (8.0, 0.5)
"""Concentration of the question chances: paper-like, bimodal."""
MARGINS = (
    (30, 0.5, 0.05, 400, 8.0), (30, 0.5, 0.1, 100, 0.5), (60, 0.02, 0.05, 60, 8.0),
    (100, 0.85, 0.08, 20, 8.0), (200, 0.9, 0.05, 20, 8.0), (200, 0.5, 0.05, 30, 0.5),
    (500, 0.5, 0.05, 25, 8.0), (2000, 0.9, 0.08, 2, 8.0), (2000, 0.5, 0.05, 6, 8.0),
    (14_000, 0.5, 0.05, 1, 8.0), (14_000, 0.95, 0.03, 1, 8.0),
)  # fmt: skip
"""Questions M, mean, margin, passes and concentration."""
STEADY = ((200, 0.08, 0.2), (300, 0.05, 0.14), (800, 0.03, 0.14), (800, 0.05, 0.3), (2000, 0.03, 0.1))
"""Questions M, margin, and the share of questions that one model always solves and the other never."""
EXTREMES = ((0.98, 0.05), (0.95, 0.08), (0.02, 0.05), (0.05, 0.08), (0.5, 0.1))
"""Mean of the two models, and the margin."""
EXTREME_SIZES = ((30, 300), (200, 40), (500, 16), (2000, 4), (14_000, 1))
"""Questions M, and the passes that are watched."""
IN_ROUNDS = (
    *MARGINS[:4],
    (30, 0.87, 0.08, 100, 8.0),
    *(
        (questions, mean, margin, 3000 // questions, 8.0)
        for questions in (30, 60, 100)
        for mean, margin in ((0.1, 0.05), (0.45, 0.1), (0.85, 0.1))
    ),
)


def ties(options: Options) -> None:
    heading(
        "Any winner at a true tie, a look after every trial (rule anytime, per pair; target 5 %)",
        "questions x passes, outcomes", "all means and shapes", "worst of 8 cells", "",
    )  # fmt: skip
    number = options.number(PER_CELL, 25)
    for place, (questions, passes) in enumerate(SIZES):
        for kind, outcome in enumerate(WEIGHTS):
            rates = []
            for cell, (mean, concentration) in enumerate(product(MEANS, SHAPES)):
                boards = split(number, 200 if questions < 1000 else 25)
                seeds = options.seeds(len(boards), 1, place, kind, cell)
                pairs = [Pairs(size, questions, mean, 0.0, concentration, outcome) for size in boards]
                jobs = [
                    partial(verdicts, one, passes, seed, {}) for one, seed in zip(pairs, seeds, strict=True)
                ]
                rates.append(pooled(options.run(jobs))[0])
            whole = Rate(sum(rate.count for rate in rates), sum(rate.total for rate in rates))
            worst = max(rates, key=lambda rate: rate.share)
            row(f"{questions} x {passes}, {outcome}", percent(whole), percent(worst), mark(whole, 0.05))


def rules(options: Options) -> None:
    heading(
        "The same by rule: 30 questions, mean 0.4, 100 passes; zscore is looked at after every pass",
        "rule", "any winner at a tie", "wrong sign at a gap of 5 points", "trials to it", "",
    )  # fmt: skip
    number = options.number(PER_CELL, 100)
    for place, rule in enumerate(("anytime", "exact", "zscore")):
        results = []
        for kind, gap in enumerate((0.0, 0.05)):
            boards = split(number, 100)
            seeds = options.seeds(len(boards), 2, place, kind)
            jobs = [
                partial(verdicts, Pairs(size, 30, 0.4, gap), 100, seed, {"rule": rule})
                for size, seed in zip(boards, seeds, strict=True)
            ]
            results.append(pooled(options.run(jobs)))
        (tied, _, _), (wrong, _, steps) = results
        promised = "no promise" if rule == "zscore" else mark(tied, 0.05)
        row(rule, percent(tied), percent(wrong), f"{np.mean(steps):,.0f}" if steps.size else "–", promised)


def coverage(options: Options) -> None:
    _coverage(options, "schedule", ((30, 40), (127, 10), (500, 4), (2000, 1)))


def coverage_in_rounds(options: Options) -> None:
    _coverage(options, "rounds", ((30, 40), (60, 20), (100, 12)))


def _coverage(options: Options, order: QuestionPolicy, sizes: tuple[tuple[int, int], ...]) -> None:
    heading(
        f"Watched all along ({order}): naive |z| ≥ 1.645 at a tie, and intervals that ever miss (target 5 %)",
        "questions x passes, mean, true gap", "naive z", "interval of difference", "interval of score", "",
    )  # fmt: skip
    number = options.number(PER_CELL, 60)
    for place, (questions, passes) in enumerate(sizes):
        if not options.wanted(questions):
            continue
        for cell, (mean, gap) in enumerate(((0.05, 0.0), (0.1, 0.0), (0.4, 0.1), (0.9, 0.0), (0.85, 0.1))):
            boards = split(number, 100)
            seeds = options.seeds(len(boards), 3, place, cell)
            jobs = [
                partial(paths, Pairs(size, questions, mean, gap, order=order), passes, seed)
                for size, seed in zip(boards, seeds, strict=True)
            ]
            found = options.run(jobs)
            pairs, scores = sum(one.pairs for one in found), sum(one.scores for one in found)
            difference = Rate(sum(one.difference_missed for one in found), pairs)
            score = Rate(sum(one.score_missed for one in found), scores)
            naive = f"{sum(one.naive for one in found) / pairs:.0%}" if gap == 0.0 else "–"
            marks = f"{mark(difference, 0.05)} {mark(score, 0.05)}"
            row(f"{questions} x {passes}, {mean}, {gap}", naive, percent(difference), percent(score), marks)


def margins(options: Options) -> None:
    _margins(options, "schedule", MARGINS)


def margins_in_rounds(options: Options) -> None:
    _margins(options, "rounds", IN_ROUNDS)


def _margins(options: Options, order: QuestionPolicy, rows: tuple[tuple[Any, ...], ...]) -> None:
    heading(
        f"Ties called at a true gap of exactly the margin ({order}, target 5 %), and where they belong",
        "questions, mean, margin, gap", "tie at gap = margin", "winner at gap = 0", "tie at gap = 0", "",
    )  # fmt: skip
    for place, (questions, mean, margin, passes, shape) in enumerate(rows):
        if not options.wanted(questions):
            continue
        for kind, placed in enumerate(PLACES):
            results = []
            for gap in (margin, 0.0) if placed == "evenly" else (margin,):
                boards = split(options.number(PER_CELL, 60), 100 if questions < 5000 else 20)
                seeds = options.seeds(len(boards), 4, place, kind, int(gap > 0))
                pairs = [
                    Pairs(size, questions, mean, gap, shape, placed=placed, order=order) for size in boards
                ]
                jobs = [
                    partial(verdicts, one, passes, seed, {"equivalence": margin})
                    for one, seed in zip(pairs, seeds, strict=True)
                ]
                results.append(pooled(options.run(jobs)))
            (_, false_ties, _), *equal = results
            cells, marks = ["–", "–"], mark(false_ties, 0.05)
            for wrong, right_ties, _ in equal:
                cells, marks = [percent(wrong), percent(right_ties)], f"{marks} {mark(wrong, 0.05)}"
            row(f"{questions}, {mean}, {margin} {placed}", percent(false_ties), *cells, marks)


def steady(options: Options) -> None:
    heading(
        "The same where answers hardly vary but questions differ: the first passes, noise known from repeats",
        "questions, margin, where the noise is", "tie at gap = margin", "",
    )  # fmt: skip
    for place, (questions, margin, disagreed) in enumerate(STEADY):
        for kind, way in enumerate((noise_in_few, rare_noise)):
            boards = split(options.number(PER_CELL, 60), 100)
            seeds = options.seeds(len(boards), 20, place, kind)
            jobs = [
                partial(_steady_ties, way, size, questions, margin, disagreed, seed)
                for size, seed in zip(boards, seeds, strict=True)
            ]
            rate = Rate(sum(options.run(jobs)), sum(boards))
            row(f"{questions}, {margin}, {way.__name__}", percent(rate), mark(rate, 0.05))


def extremes(options: Options) -> None:
    heading(
        "Ties called at a true gap of exactly the margin, scores near 0 and 100 % (schedule, target 5 %)",
        "questions, mean, margin", "gap spread evenly", "in few questions", "unrelated models", "",
    )  # fmt: skip
    for place, (questions, passes) in enumerate(EXTREME_SIZES):
        if not options.wanted(questions):
            continue
        for cell, (mean, margin) in enumerate(EXTREMES):
            low, rates = min(max(mean - margin / 2, 0.002), 0.998 - margin), []
            for kind, placed in enumerate(PLACES):
                boards = split(options.number(PER_CELL, 60), 100 if questions < 5000 else 50)
                seeds = options.seeds(len(boards), 23, place, cell, kind)
                pairs = [Pairs(size, questions, low, margin, placed=placed) for size in boards]
                jobs = [
                    partial(_ties_of, one, passes, seed, margin)
                    for one, seed in zip(pairs, seeds, strict=True)
                ]
                rates.append(Rate(sum(options.run(jobs)), sum(boards)))
            marks = " ".join(mark(rate, 0.05) for rate in rates)
            row(f"{questions}, {mean}, {margin}", *map(percent, rates), marks)


def _ties_of(pairs: Pairs, passes: int, seed: int, margin: float) -> int:
    of_chances, of_run = np.random.SeedSequence(seed).spawn(2)
    run = int(of_run.generate_state(1)[0])
    return int(first_calls((0.0, 1.0), pairs.chances(of_chances), passes, run, equivalence=margin)[1].sum())


def noise_in_few(
    rng: np.random.Generator, questions: int, margin: float, disagreed: float
) -> tuple[Floats, Floats]:
    """Return chances of two models that always, or never, solve all but a few questions; those by halves."""
    a = (rng.random(questions) < 0.5).astype(np.float64)
    b, order = a.copy(), rng.permutation(questions)
    noisy, gap = round(2 * 0.75 * margin * questions), round(margin * questions)
    a[order[:noisy]] = b[order[:noisy]] = 0.5
    half = (round(disagreed * questions) - gap) // 2
    others = order[noisy:]
    plus, minus = others[: half + gap], others[half + gap : 2 * half + gap]
    a[plus], b[plus], a[minus], b[minus] = 1.0, 0.0, 0.0, 1.0
    return a, b


def rare_noise(
    rng: np.random.Generator, questions: int, margin: float, disagreed: float
) -> tuple[Floats, Floats]:
    """Return chances of two models of which the second sometimes fails what it can solve: that is the gap."""
    a = (rng.random(questions) < 0.5).astype(np.float64)
    b, order, half = a.copy(), rng.permutation(questions), round(disagreed * questions) // 2
    plus, minus = order[:half], order[half : 2 * half]
    a[plus], b[plus], a[minus], b[minus] = 1.0, 0.0, 0.0, 1.0
    b[b == 1.0] -= margin * questions / (b == 1.0).sum()
    return a, b


def _steady_ties(
    way: Callable[..., tuple[Floats, Floats]],
    pairs: int,
    questions: int,
    margin: float,
    disagreed: float,
    seed: int,
) -> int:
    of_chances, of_run = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(of_chances)
    chances = np.concatenate([np.stack(way(rng, questions, margin, disagreed)) for _ in range(pairs)])
    run = int(of_run.generate_state(1)[0])
    return int(first_calls((0.0, 1.0), chances, 4, run, equivalence=margin)[1].sum())


def gaps(options: Options) -> None:
    heading(
        "Trials of each model to a call (pairs that are not called within the passes are left out)",
        "questions, gap, means and questions", "mean", "median", "called, wrong sign", "target",
    )  # fmt: skip
    everything = tuple(product((0.05, 0.3, 0.6, 0.75), SHAPES))
    for place, (questions, gap, passes, most) in enumerate(
        (
            (30, 0.1, 80, None), (30, 0.2, 40, None), (500, 0.05, 40, None), (500, 0.1, 10, None),
            (2000, 0.05, 8, 700), (2000, 0.1, 3, 250), (14_000, 0.1, 1, None),
        )
    ):  # fmt: skip
        number = options.number(PER_CELL // (8 if questions < 10_000 else 40), 6)
        results = []
        for cell, (mean, concentration) in enumerate(everything):
            boards = split(number, 50)
            seeds = options.seeds(len(boards), 5, place, cell)
            pairs = [Pairs(size, questions, mean, gap, concentration) for size in boards]
            jobs = [partial(verdicts, one, passes, seed, {}) for one, seed in zip(pairs, seeds, strict=True)]
            results.append(options.run(jobs))
        for name, chosen in (
            ("all", results),
            ("middle means, paper-like", results[2:6:2]),
            ("middle means, bimodal", results[3:6:2]),
        ):
            wrong, _, steps = pooled(one for cell in chosen for one in cell)
            called = f"{steps.size / wrong.total:.0%}, {percent(wrong)}"
            target = ""
            if most is not None and name == "all":
                target = f"≤ {most}: mean {below(steps.mean(), most)}, median {below(np.median(steps), most)}"
            row(
                f"{questions}, {gap}, {name}",
                f"{steps.mean():,.0f}",
                f"{np.median(steps):,.0f}",
                called,
                target,
            )


def stored(options: Options) -> None:
    heading(
        "A new model against stored results on all questions (unequal progress)",
        "questions, stored trials", "any winner at a tie", "trials at gap 0.1", "a fresh pair takes",
        "tie at margin 0.1, auto", "",
    )  # fmt: skip
    number = options.number(PER_CELL, 60)
    for place, (questions, depth, passes) in enumerate(((30, 80, 60), (500, 8, 6), (2000, 2, 2))):
        boards = split(number, 50)
        results = []
        for kind, (gap, way) in enumerate(((0.0, "stored"), (0.1, "stored"), (0.1, "fresh"))):
            seeds = options.seeds(len(boards), 6, place, kind)
            pairs = [Pairs(size, questions, 0.45, gap) for size in boards]
            jobs: list[Callable[[], Verdicts]] = [
                partial(against_stored, one, depth, passes, seed, {})
                if way == "stored"
                else partial(verdicts, one, passes, seed, {})
                for one, seed in zip(pairs, seeds, strict=True)
            ]
            results.append(pooled(options.run(jobs)))
        pairs = [Pairs(size, questions, 0.45, 0.1, placed="unrelated", order="auto") for size in boards]
        jobs = [
            partial(against_stored, one, depth, passes, seed, {"equivalence": 0.1})
            for one, seed in zip(pairs, options.seeds(len(boards), 6, place, 3), strict=True)
        ]
        _, false_ties, _ = pooled(options.run(jobs))
        (tied, _, _), (_, _, new), (_, _, fresh) = results
        row(
            f"{questions}, {depth}",
            percent(tied),
            f"{new.mean():,.0f}",
            f"{fresh.mean():,.0f}",
            percent(false_ties),
            f"{mark(tied, 0.05)} {mark(false_ties, 0.05)}",
        )
