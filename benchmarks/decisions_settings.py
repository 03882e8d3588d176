"""Tables of what else a config can hold: several tasks, graded scores, population, clusters, lost trials."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from decisions_options import Options, heading, mark, percent, row, split
from decisions_pairs import Pairs
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.spec import (
    AllocationSpec,
    GoalSpec,
    ModelSpec,
    SessionSpec,
    StoppingSpec,
    TaskSpec,
)
from adaptive_eval.options.decisions import QuestionPolicy
from adaptive_eval.simulate import GivenChances, Rate
from scorio.sequential.evidence import FLOOR, MIN_TRIALS, log_evidence
from scorio.sequential.moments import Mark

Floats = NDArray[np.float64]
PER_CELL = 4000
"""Pairs of one cell at scale 1."""
PIECE = 512
BAR = float(np.log(20.0))
Place = Literal["evenly", "in few", "unrelated", "in one task"]


@dataclass(frozen=True)
class Setting:
    """Pairs of models with a known gap, in a config.

    Parameters
    ----------
    name : str
        What is special about it.
    sizes : tuple of int
        Questions of each task.
    passes : int
        Passes that are watched.
    mean, margin : float
        Mean chance of the second model of a pair, and the equivalence margin.
    weights : tuple of float
        Of the categories, from 0 to 1; of a middle one too for graded scores.
    task_weights : tuple of float
        Factors on the tasks' equal weights.
    cluster : int
        Questions of a cluster, with the population target.
    missing : float
        Share of trials without an answer.
    greedy : float
        Share of questions that two models that repeat their answers answer differently; 0 for others.
    """

    name: str
    sizes: tuple[int, ...]
    passes: int
    mean: float = 0.5
    margin: float = 0.1
    weights: tuple[float, ...] = (0.0, 1.0)
    task_weights: tuple[float, ...] = ()
    target: Literal["benchmark", "population"] = "benchmark"
    cluster: int = 1
    samples: int = 1
    missing: float = 0.0
    order: QuestionPolicy = "schedule"
    greedy: float = 0.0
    rule: str = "anytime"

    def spec(self, pairs: int, seed: int) -> SessionSpec:
        """Return a session whose contrasts are the pairs, then all models' own scores."""
        names = tuple(f"m{number}" for number in range(2 * pairs))
        named = GoalSpec("pairs", pairs=tuple(zip(names[::2], names[1::2], strict=True)))
        goals = (named,) if self.rule != "anytime" else (named, GoalSpec("width", width=1e-6))
        factors = self.task_weights or (1.0,) * len(self.sizes)
        tasks = tuple(
            TaskSpec(
                f"t{number}",
                tuple(f"q{question}" for question in range(size)),
                self.weights,
                clusters=tuple(f"c{question // self.cluster}" for question in range(size))
                if self.cluster > 1
                else None,
                weight=factor,
            )
            for number, (size, factor) in enumerate(zip(self.sizes, factors, strict=True))
        )
        return SessionSpec(
            tuple(map(ModelSpec, names)),
            tasks,
            goal=GoalSpec("all", goals=goals),
            stopping=StoppingSpec(
                rule=self.rule,
                family="pair",
                equivalence=self.margin,
                max_passes=self.passes,
                target=self.target,
            ),
            allocation=AllocationSpec(questions=self.order),
            samples_per_prompt=self.samples,
            seed=seed,
        )

    def chances(self, gap: float, placed: Place, weights: Floats, rng: np.random.Generator) -> Floats:
        """Return the chances of the two models of a pair on the questions of all tasks."""
        parts = []
        for number, (size, weight) in enumerate(zip(self.sizes, weights, strict=True)):
            here = gap if placed != "in one task" else gap / weight if number == 0 else 0.0
            mean = self.mean - here / 2
            if self.greedy:
                parts.append(_greedy(size, self.greedy, here, rng))
            elif self.target == "population":
                clusters = size // self.cluster
                correlation = 0.0 if placed == "unrelated" else float(rng.choice((0.5, 0.9, 1.0)))
                drawn = _sampled(clusters, mean, here, correlation, rng)
                parts.append(np.repeat(drawn, self.cluster, axis=1))
            else:
                way = "evenly" if placed == "in one task" else placed
                parts.append(Pairs(1, size, mean, here, placed=way).pair(rng))
        p = np.concatenate(parts, axis=1)
        if len(self.weights) == 2:
            return p
        # The score is p whatever the middle is worth; half: two tries, of which none, one or both are right.
        middle = p * (1.0 - p) / (1.0 - self.weights[1])
        best = p - self.weights[1] * middle
        return np.stack([1.0 - middle - best, middle, best], axis=2)


def _greedy(size: int, differ: float, gap: float, rng: np.random.Generator) -> Floats:
    """Return right-or-wrong answers of two models that differ on a share of the questions."""
    a = (rng.random(size) < 0.5).astype(np.float64)
    b, order = a.copy(), rng.permutation(size)
    plus, minus = round((differ + gap) / 2 * size), round((differ - gap) / 2 * size)
    a[order[:plus]], b[order[:plus]] = 1.0, 0.0
    a[order[plus : plus + minus]], b[order[plus : plus + minus]] = 0.0, 1.0
    return np.stack([a, b])


def _sampled(size: int, mean: float, gap: float, correlation: float, rng: np.random.Generator) -> Floats:
    """Return chances of questions that are drawn from a population with these means."""
    common, own = rng.standard_normal((1, size)), rng.standard_normal((2, size))
    place = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    centre = np.array([[mean + gap], [mean]])
    return np.asarray(betaincinv(8.0 * centre, 8.0 * (1.0 - centre), ndtr(place)))


SETTINGS = (
    Setting("two tasks", (30, 90), 25),
    Setting("two tasks, .9", (30, 200), 20, 0.9, 0.05),
    Setting("two tasks, .05", (40, 1000), 3, 0.08, 0.05),
    Setting("three tasks, weights 1, 2, .5", (20, 60, 200), 20, task_weights=(1.0, 2.0, 0.5)),
    Setting("two large tasks", (300, 2000), 1, 0.7, 0.06),
    Setting("two tasks, auto", (30, 60), 30, order="auto"),
    Setting("rounds and schedule, auto", (30, 200), 15, order="auto"),
    Setting("graded", (30,), 40, weights=(0.0, 0.5, 1.0), margin=0.06),
    Setting("graded", (200,), 8, weights=(0.0, 0.5, 1.0), margin=0.06),
    Setting("graded, .93", (500,), 3, 0.93, 0.05, weights=(0.0, 0.5, 1.0)),
    Setting("graded, skewed", (500,), 4, 0.4, 0.06, weights=(0.0, 0.1, 1.0)),
    Setting("graded", (2000,), 1, 0.5, 0.05, weights=(0.0, 0.5, 1.0)),
    Setting("graded, rounds", (30,), 40, weights=(0.0, 0.5, 1.0), margin=0.06, order="rounds"),
    Setting("two tasks, graded", (30, 200), 10, weights=(0.0, 0.5, 1.0), margin=0.06),
    Setting("population", (300,), 3, target="population", margin=0.15),
    Setting("population", (2000,), 1, target="population"),
    Setting("population, .9", (2000,), 1, 0.9, 0.06, target="population"),
    Setting("two tasks, population", (300, 1000), 2, target="population", margin=0.12),
    Setting("clusters of 5", (2000,), 1, target="population", cluster=5, margin=0.12),
    Setting("clusters of 20", (2000,), 1, target="population", cluster=20, margin=0.15),
    Setting("8 samples in a row", (30,), 57, samples=8),
    Setting("4 samples in a row", (127,), 17, samples=4),
    Setting("4 samples in a row, .9", (500,), 5, 0.9, 0.05, samples=4),
    Setting("16 samples in a row", (60,), 33, samples=16),
    Setting("a tenth missing", (30,), 45, missing=0.1),
    Setting("a third missing", (200,), 8, missing=0.33),
    Setting("a tenth missing, .95", (500,), 3, 0.95, 0.06, missing=0.1),
    Setting("a tenth missing, rounds", (30,), 45, missing=0.1, order="rounds"),
    Setting("greedy, differ on .3", (2000,), 1, greedy=0.3),
    Setting("greedy, differ on .1", (2000,), 1, greedy=0.1, margin=0.05),
    Setting("greedy, differ on .5", (14_000,), 1, greedy=0.5, margin=0.05),
    Setting("exact", (30,), 45, rule="exact"),
    Setting("half missing", (200,), 24, missing=0.5, margin=0.08),
    Setting("clusters of 50", (2000,), 1, target="population", cluster=50, margin=0.13),
)


@dataclass(frozen=True, slots=True)
class Watched:
    """Counts over pairs: ties, winners, intervals of differences and of scores that ever miss the truth."""

    pairs: int
    ties: int
    winners: int
    missed: int
    scores: int
    score_missed: int


def watch(setting: Setting, gap: float, placed: Place, pairs: int, seed: int) -> Watched:
    """Follow pairs to the end with a look after every trial, by the readers and the rule of a run.

    Of ties and winners, what comes first counts. A pair may be called in a run only once; here it is read on.
    """
    of_chances, of_run, of_holes = np.random.SeedSequence(seed).spawn(3)
    spec = setting.spec(pairs, int(of_run.generate_state(1)[0]))
    weights = np.array(spec.task_weights)
    children = of_chances.spawn(pairs)
    chances = np.concatenate(
        [setting.chances(gap, placed, weights, np.random.default_rng(one)) for one in children]
    )
    board, answers, holes = SessionAnswers(spec), GivenChances(chances), np.random.default_rng(of_holes)
    comparison = SessionContrasts(spec, board)
    stream = answers.begin(spec, board.run_sequence, of_run)
    models, rows = np.arange(2 * pairs), np.arange(comparison.fold.progress.size)
    truth = np.full(rows.size, gap)
    if setting.target == "population":
        truth[pairs:] = np.tile([setting.mean + gap / 2, setting.mean - gap / 2], pairs)[: rows.size - pairs]
    else:
        truth[pairs:] = answers.truth(spec)[: rows.size - pairs] / spec.scale[1]
        truth[:pairs] = -np.diff(answers.truth(spec).reshape(-1, 2))[:, 0] / spec.scale[1]
    for cells in board.cells:
        cells.exact[:] = setting.greedy > 0.0
    tied, won, missed = np.zeros((3, rows.size), dtype=bool)
    start, steps = 0, setting.passes * spec.questions
    while start < steps:
        stop = int(min(start + PIECE, steps, *map(board.run_sequence.laid_out, models.tolist())))
        given = stream.draw(models, start, stop)
        if setting.missing:
            given[holes.random(given.shape) < setting.missing] = Mark.MISSING
        task = board.run_sequence.task(start, stop)
        for index, cells in enumerate(board.cells):
            cells.absorb(models, given[:, task == index])
        board.progress[models] = stop
        block = comparison.courses._estimate(rows, start, stop)
        complete = board.run_sequence.complete(start, stop)
        known = block.guarded <= 2.0 * FLOOR  # exact on these questions: no chance in it
        enough = (block.trials >= MIN_TRIALS) & ~known
        error = block.difference - truth[:, None]
        outside = [log_evidence(error[:pairs], block.guarded[:pairs], setting.margin) >= BAR]
        outside.append(log_evidence(error[pairs:], block.guarded[pairs:]) >= BAR)
        missed |= (np.concatenate(outside) & enough).any(axis=1)
        statistic = (comparison.rule.statistic(block, complete) >= BAR) & enough
        if setting.rule == "exact":
            statistic = np.zeros_like(statistic)
        tie = comparison.rule.tied(block) & enough
        # What comes first counts; of both at one step, the winner.
        open_, at = ~(tied | won), (np.arange(rows.size), (statistic | tie).argmax(axis=1))
        won |= open_ & statistic[at]
        tied |= open_ & tie[at] & ~statistic[at]
        board.forget(stop)
        start = stop
    return Watched(
        pairs=pairs,
        ties=int(tied[:pairs].sum()),
        winners=int(won[:pairs].sum()),
        missed=int(missed[:pairs].sum()),
        scores=rows.size - pairs,
        score_missed=int(missed[pairs:].sum()),
    )


def settings(options: Options) -> None:
    heading(
        "Other configs: ties at a gap of exactly the margin, winners at none, intervals that ever miss (5 %)",
        "config, questions, gap", "tie at gap = margin", "interval of difference", "interval of score",
        "winner at gap = 0", "tie at gap = 0", "",
    )  # fmt: skip
    for place, setting in enumerate(SETTINGS):
        several: tuple[Place, ...] = ("evenly", "in few", "unrelated", "in one task")
        places = several if len(setting.sizes) > 1 else several[:3]
        if setting.greedy:
            places = ("evenly",)
        elif setting.target == "population":
            places = ("evenly", "unrelated")
        for kind, placed in enumerate(places):
            name = f"{setting.name}, {'+'.join(map(str, setting.sizes))}, {placed}"
            if options.rows not in name:
                continue
            sums: list[Any] = []
            for gap in (setting.margin, 0.0) if kind == 0 else (setting.margin,):
                boards = split(options.number(PER_CELL, 40), 100 if sum(setting.sizes) < 5000 else 20)
                seeds = options.seeds(len(boards), 24, place, kind, int(gap > 0))
                jobs = [
                    partial(watch, setting, gap, placed, size, seed)
                    for size, seed in zip(boards, seeds, strict=True)
                ]
                found = options.run(jobs)
                sums.append({key: sum(getattr(one, key) for one in found) for key in Watched.__slots__})
            at = sums[0]
            rates = [
                Rate(at["ties"], at["pairs"]),
                Rate(at["missed"], at["pairs"]),
                Rate(at["score_missed"], at["scores"]),
                *(Rate(one["winners"], one["pairs"]) for one in sums[1:]),
            ]
            marks = " ".join(mark(rate, 0.05) for rate in rates if rate.total)
            tail = [percent(Rate(one["ties"], one["pairs"])) for one in sums[1:]] or ["–", "–"]
            row(name, *map(percent, rates), *tail, marks)
