"""Tables of whole leaderboards: errors, concurrency and policies, savings, rounds, recorded outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import product
from operator import add
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from decisions_boards import (
    BOARDS,
    NEVER,
    BoardResult,
    board,
    fixed_board,
    random_board,
    ranking_tau,
    replay,
    replay_means,
)
from decisions_options import Options, below, heading, mark, percent, row

from adaptive_eval.core.spec import GoalSpec
from adaptive_eval.simulate import Latency, Rate
from scorio.study import PAPER_MEANS

Values: TypeAlias = tuple[tuple[int, ...], ...]
POLICIES = ("round-robin", "uniform")
RUNS = 6000
"""Runs of one board at scale 1."""


def boards(options: Options) -> None:
    heading(
        "Leaderboards, Holm, margin 0.05, 30 questions, at most 80 passes: any wrong winner (target 5 %)",
        "board", "any wrong winner", "wrong ties per pair", "decided / tied / open", "",
    )  # fmt: skip
    for place, (name, means) in enumerate(BOARDS.items()):
        number = options.number(RUNS // (2 if len(means) == 20 else 1))
        seeds = options.seeds(8, 7, place)
        share = -(-number // 8)
        jobs = [partial(board, means, 30, share, seed, equivalence=0.05) for seed in seeds]
        found: BoardResult = reduce(add, options.run(jobs))
        wrong = Rate(found.any_wrong, found.runs)
        left = found.contrasts - found.decided - found.ties
        shares = " / ".join(f"{count / found.contrasts:.0%}" for count in (found.decided, found.ties, left))
        row(name, percent(wrong), percent(Rate(found.wrong_ties, found.apart)), shares, mark(wrong, 0.05))
    seeds = options.seeds(2, 8)
    number = options.number(RUNS)
    for name, means in (("the paper's", PAPER_MEANS), ("all tied", (0.4,) * 11)):
        count, total = fixed_board(means, 30, 80, number, seeds[0])
        row(f"11 models, {name}, fixed N = 80, one look", percent(Rate(count, total)), "", "z ≥ 1.645")


def concurrency(options: Options) -> None:
    heading(
        "Policies, concurrency, latency by outcome: means 0.65, 0.5, 0.5, 0.35, margin 0.1",
        "goal, family, order, policy, in flight, right answers take", "trials a run", "against 1 in flight",
        "no call differs", "nor its step", "any wrong winner",
    )  # fmt: skip
    number, seed = options.number(RUNS // 20, 6), options.seeds(1, 9)[0]
    run = partial(board, (0.65, 0.5, 0.5, 0.35), 30, equivalence=0.1, max_passes=100)
    ways = ((1, 1.0), (64, 0.2), (64, 5.0), (512, 1.0), (512, 5.0))
    kinds = (*((one, "schedule") for one in POLICIES), ("round-robin", "rounds"))
    for goal, family in product((GoalSpec(), GoalSpec("top-k", k=1)), ("holm", "pair")):
        for policy, order in kinds:
            parts = {"goal": goal, "family": family, "policy": policy, "order": order}
            jobs = [partial(run, number, seed, **parts)]
            for in_flight, factor in ways[1:]:
                latency = Latency(1.0, 0.6, factor, tick=0.1)
                jobs.append(partial(run, number, seed, in_flight=in_flight, latency=latency, **parts))
            first, *others = options.run(jobs)
            for (in_flight, factor), found in zip(ways, (first, *others), strict=True):
                row(
                    f"{goal.kind}, {family}, {order}, {policy}, {in_flight}, x{factor:g}",
                    f"{found.trials / found.runs:,.0f}",
                    f"{found.trials / first.trials:.2f}",
                    f"{alike(found, first, found.verdicts, first.verdicts):.0%}",
                    f"{alike(found, first, found.steps, first.steps):.0%}",
                    percent(Rate(found.any_wrong, found.runs)),
                )


def alike(one: BoardResult, other: BoardResult, of_one: Values, of_other: Values) -> float:
    """Return the share of runs with the same values for every pair that is called in both."""
    both = (np.array(one.verdicts) != 0) & (np.array(other.verdicts) != 0)
    same = np.array(of_one) == np.array(of_other)
    return float((~both | same).all(axis=1).mean())


def budget(options: Options) -> None:
    heading(
        "Ranking for a fixed budget, no stopping, the 11 coins: mean Kendall tau-b with the true ranking",
        "passes' worth of trials", "uniform", "top-two",
    )  # fmt: skip
    number, seed = options.number(RUNS // 20, 6), options.seeds(1, 15)[0]
    for passes in (10, 27, 65, 80):
        jobs = [
            partial(ranking_tau, PAPER_MEANS, 30, passes, number, seed, policy)
            for policy in ("uniform", "top-two")
        ]
        row(str(passes), *(f"{tau:.3f}" for tau in options.run(jobs)))


def savings(options: Options) -> None:
    heading(
        "Trials against uniform allocation at the same rule and verdicts (anytime, Holm, 30 questions)",
        "board, goal, margin", "adaptive", "uniform", "ratio", "target",
    )  # fmt: skip
    number = options.number(RUNS // 4, 8)
    best = GoalSpec("top-k", k=1)
    paper = partial(board, PAPER_MEANS, 30)
    twenty = partial(random_board, 20, 30)
    against = {name: GoalSpec("baseline", model=name) for name in ("m0", "m10", "m5", "m19")}
    rows: list[tuple[str, Callable[..., BoardResult], dict[str, Any], float]] = [
        ("11 coins, ranking, 0.05", paper, {"equivalence": 0.05}, 0.6),
        ("11 coins, ranking, 0.03", paper, {"equivalence": 0.03}, 0.6),
        ("20 drawn, ranking, 0.05", twenty, {"equivalence": 0.05}, 0.6),
        ("11 coins, best, 0.05", paper, {"equivalence": 0.05, "goal": best}, 0.35),
        ("20 drawn, best, 0.05", twenty, {"equivalence": 0.05, "goal": best}, 0.35),
        ("11 coins, against the worst, 0.05", paper, {"equivalence": 0.05, "goal": against["m0"]}, 0.4),
        ("11 coins, against the middle, 0.05", paper, {"equivalence": 0.05, "goal": against["m5"]}, 0.4),
        ("11 coins, against the best, 0.05", paper, {"equivalence": 0.05, "goal": against["m10"]}, 0.4),
        ("20 drawn, against the middle, 0.05", twenty, {"equivalence": 0.05, "goal": against["m10"]}, 0.4),
        ("20 drawn, against the best, 0.05", twenty, {"equivalence": 0.05, "goal": against["m19"]}, 0.4),
    ]
    for place, (name, job, parts, most) in enumerate(rows):
        _saving(options, name, [partial(job, max_passes=NEVER, **parts)], number, most, 10, place)
    every = [
        partial(paper, max_passes=NEVER, equivalence=0.05, goal=GoalSpec("baseline", model=f"m{model}"))
        for model in range(11)
    ]
    _saving(options, "11 coins, against each in turn, 0.05", every, number, 0.4, 14)


def _saving(
    options: Options,
    name: str,
    ways: Sequence[Callable[..., BoardResult]],
    number: int,
    most: float,
    *place: int,
) -> None:
    """Print adaptive and uniform trials of some boards together."""
    seeds = options.seeds(4, *place)
    jobs = [partial(way, runs=-(-number // 4), seed=seed) for way in ways for seed in seeds]
    found: BoardResult = reduce(add, options.run(jobs))
    assert found.uniform is not None
    ratio = found.trials / found.uniform
    row(
        name,
        f"{found.trials / found.runs:,.0f}",
        f"{found.uniform / found.runs:,.0f}",
        f"{ratio:.2f}",
        f"≤ {most}: {below(ratio, most)}",
    )


def recorded(options: Options) -> None:
    if options.replay is None:
        print("\nRecorded outcomes: not run; name a directory of npz files with --replay")
        return
    for path in sorted(options.replay.glob("*.npz")):
        heading(
            f"Recorded outcomes of {path.stem}, shuffled; wrong: against the all-trial means",
            "what", "wrong winners", "passes or trials", "of what was recorded", "verdicts",
        )  # fmt: skip
        _recorded_pairs(options, path)
        _recorded_boards(options, path)


def _recorded_pairs(options: Options, path: Path) -> None:
    means = replay_means(path)
    names, number = list(means), options.number(300, 3)
    for place, (low, high) in enumerate(((0.0, 0.03), (0.03, 0.06), (0.06, 0.12), (0.12, 0.25), (0.25, 1.0))):
        chosen = [
            (b, a) for i, a in enumerate(names) for b in names[i + 1 :] if low <= means[b] - means[a] < high
        ]
        if not chosen:
            continue
        rng = np.random.default_rng([options.seed, place])
        some = [chosen[index] for index in rng.permutation(len(chosen))[:24]]
        seeds = options.seeds(len(some), 12, place)
        jobs = [
            partial(replay, path, pair, number, seed, family="pair")
            for pair, seed in zip(some, seeds, strict=True)
        ]
        found = options.run(jobs)
        passes = [value for one in found for value in one.passes_to_call]
        contrasts = sum(one.contrasts for one in found)
        row(
            f"pairs {100 * low:.0f} to {100 * high:.0f} points apart ({len(chosen)})",
            percent(Rate(sum(one.wrong for one in found), contrasts)),
            f"{np.median(passes):.2f} passes" if passes else "–",
            f"{sum(one.trials for one in found) / sum(one.recorded for one in found):.0%}",
            f"{len(passes) / contrasts:.0%} called",
        )


def _recorded_boards(options: Options, path: Path) -> None:
    means = replay_means(path)
    names, number = list(means), options.number(200, 4)
    spaced = [
        names[index] for index in np.linspace(0, len(names) - 1, min(10, len(names))).round().astype(int)
    ]
    for label, chosen in ((f"{len(spaced)} spaced models", spaced), (f"all {len(names)} models", names)):
        jobs = [
            partial(replay, path, tuple(chosen), -(-number // 4), seed, equivalence=0.03)
            for seed in options.seeds(4, 13, len(chosen))
        ]
        found = options.run(jobs)
        contrasts, runs = sum(one.contrasts for one in found), sum(one.runs for one in found)
        trials, whole = sum(one.trials for one in found), sum(one.recorded for one in found)
        decided, tied = sum(one.decided for one in found), sum(one.ties for one in found)
        left = contrasts - decided - tied
        row(
            f"{label}, margin 0.03, Holm",
            percent(Rate(sum(one.wrong for one in found), contrasts)),
            f"{trials / runs:,.0f} trials",
            f"{trials / whole:.0%}",
            " / ".join(f"{count / contrasts:.0%}" for count in (decided, tied, left)),
        )
