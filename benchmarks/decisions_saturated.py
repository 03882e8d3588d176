"""Tables of boards near 0 or 1, and of large differences that are rare."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
from decisions_options import Options, heading, mark, percent, row, split
from numpy.typing import NDArray
from scipy.special import betaincinv

from adaptive_eval.core.spec import (
    AllocationSpec,
    GoalSpec,
    ModelSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.options.decisions import QuestionPolicy
from adaptive_eval.simulate import GivenChances, Rate, SimulationResult, simulate
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import ClusterSums
from scorio.sequential.contrasts import Target, score_block
from scorio.sequential.courses import Courses
from scorio.sequential.evidence import MIN_TRIALS, log_evidence
from scorio.sequential.moments import unit_scores
from scorio.sequential.pairs import PairReader
from scorio.sequential.rules import Anytime
from scorio.sequential.trial_sequence import TrialSequence

Floats = NDArray[np.float64]
PASSES = 400
"""Passes that no pair with a gap comes to."""
APART = (
    (0.98, 0.93, 100), (0.99, 0.95, 100), (0.995, 0.97, 200), (0.95, 0.85, 30), (0.8, 0.2, 100),
    (0.9, 0.5, 100), (0.6, 0.5, 500),
)  # fmt: skip
"""Scores of two models, and questions."""
NULLS = ((30, 20), (100, 6), (300, 3))
"""Questions and passes of equal models."""
PROFILES = ("the same", "opposite", "one chance", "unrelated")
ELSEWHERE = ((60, 10, 0.95), (150, 5, 0.96), (40, 15, 0.97))
"""Questions, passes and score of further equal models."""
IN_ROUNDS = (
    (0.98, 0.93, 100, None), (0.99, 0.95, 60, None), (0.95, 0.90, 60, None), (0.95, 0.85, 30, None),
    (0.98, 0.98, 100, 0.05), (0.95, 0.95, 50, 0.05),
)  # fmt: skip
"""Scores of two models, questions, and the margin of ties."""
FEW_QUESTIONS = ((0.95, 0.2), (0.9, 0.3), (0.9, 0.4), (0.5, 0.5))
"""Scores of two models on 12 questions that are a sample."""


def chances_of(mean: float, questions: int, strength: float = 8.0) -> Floats:
    """Return chances at the quantiles of a Beta distribution."""
    place = (np.arange(questions) + 0.5) / questions
    return np.asarray(betaincinv(strength * mean, strength * (1.0 - mean), place))


def equal(mean: float, questions: int, profile: str, rng: np.random.Generator) -> Floats:
    """Return the chances of two models with one mean."""
    first = chances_of(mean, questions)
    if profile == "one chance":
        first = np.full(questions, mean)
    second = first[::-1] if profile == "opposite" else first
    return np.stack([first, rng.permutation(first) if profile == "unrelated" else second])


def decided(
    chances: Floats,
    passes: int,
    seed: int,
    *,
    bets: bool = True,
    order: QuestionPolicy = "schedule",
    stopping: StoppingSpec | None = None,
) -> SimulationResult:
    """Decide pairs of models (0, 1), (2, 3), …, each at its own level, with a look after every trial."""
    names, questions = (tuple(map(str, range(number))) for number in chances.shape)
    spec = SessionSpec(
        tuple(map(ModelSpec, names)),
        (TaskSpec("t", questions),),
        goal=GoalSpec("pairs", pairs=tuple(zip(names[::2], names[1::2], strict=True))),
        stopping=stopping or StoppingSpec(family="pair", max_passes=passes),
        allocation=AllocationSpec(questions=order),
        seed=seed,
    )
    run = partial(simulate, spec, GivenChances(chances), 1, seed, in_flight=1, workers=1)
    if bets:
        return run()
    with patch.object(Courses, "_with_bets", lambda self, bets, rows, block, start, stop: block):
        return run()


def saturated(options: Options) -> None:
    heading(
        "Median trials of each model to a winner, the schedule (wrong winners in brackets)",
        "scores, questions", "without bets on answers", "with them",
    )  # fmt: skip
    for place, (better, worse, questions) in enumerate(APART):
        pairs = np.stack([chances_of(better, questions), chances_of(worse, questions)])
        chances = np.tile(pairs, (options.number(120), 1))
        (seed,) = options.seeds(1, 31, place)
        jobs = [partial(decided, chances, PASSES, seed, bets=bets) for bets in (False, True)]
        cells = []
        for result in options.run(jobs):
            won = np.abs(result.verdict) == 1
            cells.append(f"{np.median(result.decided_at[won]):,.0f} ({int(result.wrong.sum())})")
        row(f"{better}, {worse}, {questions}", *cells)
    _equal_models(options)
    _equal_elsewhere(options)
    _in_rounds(options)
    _few_questions(options)


def _equal_models(options: Options) -> None:
    """Print how often equal models are called different."""
    heading("Equal models called different", "questions x passes, score, profile", "at 5 %", "at 1 %", "")
    for place, (questions, passes) in enumerate(NULLS):
        for cell, (mean, profile) in enumerate((mean, one) for mean in (0.5, 0.9, 0.98) for one in PROFILES):
            number = options.number(2000, 20)
            seeds, rates = options.seeds(1 + -(-number // 200), 32, place, cell), []
            rng = np.random.default_rng(seeds.pop())
            boards = [
                np.concatenate([equal(mean, questions, profile, rng) for _ in range(size)])
                for size in split(number, 200)
            ]
            for confidence in (0.95, 0.99):
                stopping = StoppingSpec(family="pair", max_passes=passes, confidence=confidence)
                jobs = [
                    partial(decided, chances, passes, seed, stopping=stopping)
                    for chances, seed in zip(boards, seeds, strict=True)
                ]
                called = sum(int((np.abs(one.verdict) == 1).sum()) for one in options.run(jobs))
                rates.append(Rate(called, number))
            marks = " ".join(mark(rate, level) for rate, level in zip(rates, (0.05, 0.01), strict=True))
            row(f"{questions} x {passes}, {mean}, {profile}", *map(percent, rates), marks)


def _equal_elsewhere(options: Options) -> None:
    """Print how often equal models are called different in other cells and settings."""
    heading("Equal models called different elsewhere", "setting", "at 5 %", "")
    number = options.number(1000, 20)
    (seed,) = options.seeds(1, 37)
    rng = np.random.default_rng(seed)

    def pairs_of(mean: float, questions: int, profile: str) -> Floats:
        return np.concatenate([equal(mean, questions, profile, rng) for _ in range(number)])

    jobs = {}
    for questions, passes, mean in ELSEWHERE:
        for profile in PROFILES:
            name = f"{questions} x {passes}, {mean}, {profile}"
            jobs[name] = partial(decided, pairs_of(mean, questions, profile), passes, seed)
    opposite = pairs_of(0.95, 60, "opposite")
    jobs["rounds, 60 x 12, 0.95, opposite"] = partial(decided, opposite, 12, seed, order="rounds")
    sample = StoppingSpec(family="pair", max_passes=4, target="population")
    drawn = rng.beta(8.0 * 0.95, 8.0 * 0.05, (2 * number, 80))
    jobs["a sample, 80 x 4, 0.95"] = partial(decided, drawn, 4, seed, stopping=sample)
    chance = pairs_of(0.95, 100, "unrelated")
    grades = np.stack([(1.0 - chance) ** 2, 2.0 * chance * (1.0 - chance), chance**2], axis=2)
    three = (TaskSpec("t", tuple(map(str, range(100))), (0.0, 0.5, 1.0)),)
    jobs["three grades, 100 x 5, 0.95, unrelated"] = partial(_of_tasks, three, grades, 5, seed)
    gap = np.repeat([0.97, 0.93], 60)
    two = tuple(TaskSpec(name, tuple(map(str, range(60)))) for name in "tu")
    crossed = np.tile(np.stack([gap, gap[::-1]]), (number, 1))
    jobs["two tasks of 60 x 6, gaps of 0.04 and -0.04"] = partial(_of_tasks, two, crossed, 6, seed)
    for name, found in zip(jobs, options.run(list(jobs.values())), strict=True):
        rate = Rate(int((np.abs(found.verdict) == 1).sum()), number)
        row(name, percent(rate), mark(rate, 0.05))
    boards = options.number(200, 20)
    ten = [
        _ranked(np.concatenate([equal(0.96, 80, "unrelated", rng) for _ in range(5)]), board)
        for board in range(boards)
    ]
    wrong = sum(bool((np.abs(one.verdict) == 1).any()) for one in options.run(ten))
    row("ten models, 80 x 6, 0.96, any winner", percent(Rate(wrong, boards)), mark(Rate(wrong, boards), 0.05))


def _of_tasks(tasks: tuple[TaskSpec, ...], chances: Floats, passes: int, seed: int) -> SimulationResult:
    """Decide pairs of models (0, 1), (2, 3), … on these tasks, each at its own level."""
    names = tuple(map(str, range(len(chances))))
    pairs = tuple(zip(names[::2], names[1::2], strict=True))
    stopping = StoppingSpec(family="pair", max_passes=passes)
    order = AllocationSpec(questions="schedule")
    models = tuple(map(ModelSpec, names))
    spec = SessionSpec(models, tasks, GoalSpec("pairs", pairs=pairs), stopping, allocation=order, seed=seed)
    return simulate(spec, GivenChances(chances), 1, seed, in_flight=1, workers=1)


def _ranked(chances: Floats, seed: int) -> Callable[[], SimulationResult]:
    """Return what ranks models on one task in six passes."""
    models, questions = (tuple(map(str, range(number))) for number in chances.shape)
    spec = SessionSpec(
        tuple(map(ModelSpec, models)), (TaskSpec("t", questions),), stopping=StoppingSpec(max_passes=6)
    )
    return partial(simulate, spec, GivenChances(chances), 1, seed, in_flight=1, workers=1)


def _in_rounds(options: Options) -> None:
    """Print the mean trials of rounds over those of the schedule."""
    heading("Mean trials, rounds over schedule", "scores, questions, margin", "strength 8", "strength .5")
    for place, (better, worse, questions, margin) in enumerate(IN_ROUNDS):
        cells = []
        for strength in (8.0, 0.5):
            pairs = np.stack([chances_of(score, questions, strength) for score in (better, worse)])
            chances = np.tile(pairs, (options.number(240), 1))
            stopping = StoppingSpec(family="pair", max_passes=PASSES, equivalence=margin)
            (seed,) = options.seeds(1, 33, place, int(strength))
            orders: tuple[QuestionPolicy, ...] = ("rounds", "schedule")
            jobs = [
                partial(decided, chances, PASSES, seed, order=order, stopping=stopping) for order in orders
            ]
            own, shared = (float(one.total.sum()) for one in options.run(jobs))
            cells.append(f"{own / shared:.2f}")
        row(f"{better}, {worse}, {questions}, {margin or 'none'}", *cells)


def _few_questions(options: Options) -> None:
    """Print how many pairs are decided on 12 questions that are a sample, in 8 passes."""
    heading("Twelve questions that are a sample", "scores", "decided", "median trials of each")
    stopping = StoppingSpec(family="pair", max_passes=8, target="population")
    for place, scores in enumerate(FEW_QUESTIONS):
        number = options.number(200 if scores[0] != scores[1] else 2000)
        (seed,) = options.seeds(1, 34, place)
        rng = np.random.default_rng(seed)
        chances = np.concatenate(
            [rng.beta(8.0 * score, 8.0 * (1.0 - score), (1, 12)) for _ in range(number) for score in scores]
        )
        (result,) = options.run([partial(decided, chances, 8, seed, stopping=stopping)])
        won = np.abs(result.verdict) == 1
        median = f"{np.median(result.decided_at[won]):,.0f}" if won.any() else "–"
        row(f"{scores[0]}, {scores[1]}", percent(Rate(int(won.sum()), number)), median)


# ------------------------------------------------------------------ large differences that are rare

LEVELS = (0.05, 0.01, 0.001, 1e-4)
ALWAYS = (0.02, 0.05, 0.10)
"""Grades that one model always gets; the other gets 1 so often, else 0."""
BY_CLUSTER = ((0.05, (20,) * 30), (0.1, (20,) * 15), (0.1, (6,) * 100))
"""Chance of a cluster that one model solves as a whole, and of a question that the other solves; sizes."""
IN_CLUSTERS = ((40, 10), (20, 20))
"""Clusters, and questions of each."""
SCORED = ((50,) * 6, (100,) * 5 + (2,) * 40, (300,) + (10,) * 30, (20, 20, 10, 10, 5))


def guard(options: Options) -> None:
    heading(
        "Equal models called different in the first pass, where large differences are rare",
        "setting", *(f"α = {level:g}" for level in LEVELS),
    )  # fmt: skip
    for place, grade in enumerate(ALWAYS):
        number = options.number(80_000, 200)
        boards = split(number, 1000)
        seeds = options.seeds(len(boards), 35, place)
        jobs = [partial(rare_grades, grade, size, seed) for size, seed in zip(boards, seeds, strict=True)]
        called = np.sum(options.run(jobs), axis=0)
        row(f"graded, always {grade:g}, or 1 with that chance", *_shares(called, number))
    for place, (chance, sizes) in enumerate(BY_CLUSTER):
        number = options.number(8000, 100)
        boards = split(number, 500)
        seeds = options.seeds(len(boards), 36, place)
        jobs = [
            partial(rare_clusters, chance, sizes, size, seed)
            for size, seed in zip(boards, seeds, strict=True)
        ]
        called = np.sum(options.run(jobs), axis=0)
        row(f"{len(sizes)} clusters of {sizes[0]}, {chance:g}", *_shares(called, number))
    for place, sizes in enumerate(SCORED):
        number = options.number(4000, 100)
        (seed,) = options.seeds(1, 37, place)
        (missed,) = options.run([partial(missed_scores, 0.1, sizes, number, seed)])
        several = ", ".join(f"{sizes.count(one)} of {one}" for one in dict.fromkeys(sizes))
        row(f"interval of a score: {several}", *_shares(missed, number))
    _by_bets(options)


def _by_bets(options: Options) -> None:
    """Print what passes decide of pairs at .7 and .5 in clusters, by the estimate and with bets."""
    heading("Pairs at .7 and .5 in clusters, decided", "clusters, passes", "by the estimate", "with bets")
    for place, clusters in enumerate(IN_CLUSTERS):
        number = options.number(200, 20)
        (seed,) = options.seeds(1, 38, place)
        (found,) = options.run([partial(won_in_clusters, *clusters, number, seed)])
        for passes, decided_by in enumerate(found.tolist(), start=1):
            name = f"{clusters[0]} clusters of {clusters[1]}, {passes}"
            row(name, *(percent(Rate(one, number)) for one in decided_by))


def won_in_clusters(clusters: int, size: int, pairs: int, seed: int) -> NDArray[np.int64]:
    """Return how many pairs the first pass and two passes decide, by the estimate and with bets on clusters.

    Answers of a cluster have the correlation .1.
    """
    rng, names = np.random.default_rng(seed), np.repeat(np.arange(clusters), size)
    steps, rows = 2 * names.size, np.arange(pairs)
    sequence = TrialSequence(rng.permutation(names.size), early_repeats=False)
    means = np.repeat([0.7, 0.5], pairs)[:, None]
    chances = rng.beta(9.0 * means, 9.0 * (1.0 - means), (2 * pairs, clusters))[:, names]
    cells = Cells(sequence, unit_scores([0.0, 1.0]), 2 * pairs)
    answers = rng.random((2 * pairs, steps)) < chances[:, sequence.question(0, steps)]
    cells.absorb(np.arange(2 * pairs), answers.astype(np.int64))
    reader = PairReader(cells, rows, pairs + rows, target="population", clusters=names)
    block, rule, ends = reader.read(rows, steps), Anytime(0.05), sequence.complete(0, steps)
    alone = block._replace(bets=np.full(block.bets.shape, -np.inf), staked=np.zeros(block.staked.shape))
    found = []
    for read in (alone, block):
        won = rule.statistic(read, ends) >= np.log(20.0)
        found.append([int(won[:, : names.size].any(axis=1).sum()), int(won.any(axis=1).sum())])
    return np.array(found).T


def _shares(called: NDArray[np.int64], number: int) -> list[str]:
    rates = [Rate(one, number) for one in called.tolist()]
    return [
        f"{100 * rate.share:.3g} % {mark(rate, level)}" for rate, level in zip(rates, LEVELS, strict=True)
    ]


def rare_grades(grade: float, pairs: int, seed: int, steps: int = 600) -> NDArray[np.int64]:
    """Return how many pairs are ever called, by level: one always gets a grade, the other 1 as rarely."""
    rng = np.random.default_rng(seed)
    first, second = np.arange(pairs), pairs + np.arange(pairs)
    cells = Cells(TrialSequence(np.arange(steps)), unit_scores([0.0, grade, 1.0]), 2 * pairs)
    cells.absorb(first, np.ones((pairs, steps), dtype=np.int64))
    cells.absorb(second, 2 * (rng.random((pairs, steps)) < grade))
    return _called(cells, first, second, steps)


def _clustered(
    chance: float, sizes: tuple[int, ...], pairs: int, seed: int
) -> tuple[Cells, NDArray[np.int64], int]:
    """Return the answers of models of which the first half solves whole clusters, and the clusters."""
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(len(sizes)), sizes)
    steps = names.size
    cells = Cells(TrialSequence(rng.permutation(steps)), unit_scores([0.0, 1.0]), 2 * pairs)
    asked = cells.sequence.question(0, steps)
    by_cluster = (rng.random((pairs, len(sizes))) < chance)[:, names]
    by_question = rng.random((pairs, steps)) < chance
    answers = np.concatenate([by_cluster, by_question])[:, asked].astype(np.int64)
    cells.absorb(np.arange(2 * pairs), answers)
    return cells, names, steps


def rare_clusters(chance: float, sizes: tuple[int, ...], pairs: int, seed: int) -> NDArray[np.int64]:
    """Return how many pairs are ever called, by level: one solves whole clusters, the other questions."""
    cells, names, steps = _clustered(chance, sizes, pairs, seed)
    rows = np.arange(pairs)
    return _called(cells, rows, pairs + rows, steps, names)


def missed_scores(chance: float, sizes: tuple[int, ...], models: int, seed: int) -> NDArray[np.int64]:
    """Return how many intervals of scores ever miss the truth, by level, of models that solve clusters."""
    cells, names, steps = _clustered(chance, sizes, models, seed)
    path, rows = cells.path(np.arange(models), 0, steps), np.arange(models)
    asked = cells.sequence.question(0, steps)
    change = path.after - np.where(path.fresh, 0.0, path.before)
    found = []
    for level in LEVELS:
        sums = ClusterSums(names, steps, models, centred=True)
        spread = sums.add(rows, asked, change, path.fresh)
        score = score_block(path, steps, "population", spread, guard=-np.log(level))
        missed = log_evidence(score.difference - chance, score.variance) >= -np.log(level)
        found.append(int((missed & (score.trials >= MIN_TRIALS)).any(axis=1).sum()))
    return np.array(found)


def _called(
    cells: Cells,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    steps: int,
    clusters: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    found, ends = [], cells.sequence.complete(0, steps)
    for level in LEVELS:
        bar = -np.log(level)
        target: Target = "benchmark" if clusters is None else "population"
        reader = PairReader(cells, first, second, target=target, clusters=clusters, guard=bar)
        statistic = Anytime(level).statistic(reader.read(np.arange(first.size), steps), ends)
        found.append(int((statistic >= bar).any(axis=1).sum()))
    return np.array(found)
