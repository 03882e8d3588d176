"""Claims of the goal not-worse: how often they are wrong at the margin, and what they take elsewhere.

    python benchmarks/not_worse.py --pairs 400
    python benchmarks/not_worse.py --pairs 100 --rows "two tasks"

Pairs of models with a known difference, read by the board that decides a run, each pair at a level of 5 % and
with a look after every trial. A rate of 5 % of so many pairs has the standard error that is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from decisions_settings import PIECE, SETTINGS, Place, Setting
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionAnswers, SessionContrasts
from adaptive_eval.core.goals import AllDecided, Goal
from adaptive_eval.simulate import GivenChances
from scorio.sequential.fold import VerdictCode
from scorio.sequential.parts import Mark

OTHERS = tuple(one for one in SETTINGS if one.rule == "anytime" and not one.greedy)
AT_MARGIN = (
    Setting("M 30", (30,), 60, margin=0.05),
    Setting("M 30, .9", (30,), 60, 0.9, 0.05),
    Setting("M 30, rounds", (30,), 60, margin=0.05, order="rounds"),
    Setting("M 100", (100,), 20, margin=0.05),
    Setting("M 100, rounds", (100,), 20, margin=0.05, order="rounds"),
    Setting("M 200, .95", (200,), 15, 0.95, 0.03),
    Setting("M 500", (500,), 6, 0.7, 0.05),
    Setting("M 2000", (2000,), 1, 0.7, 0.05),
    *OTHERS,
)
"""Pairs whose difference is the margin."""


@dataclass(frozen=True)
class Found:
    """Verdicts of the claims that the second model of each pair is not worse than the first."""

    verdict: NDArray[np.int64]
    trials: NDArray[np.float64]  # of each model, until the verdict

    @property
    def words(self) -> tuple[str, str, str]:
        """The shares that hold and that fail, and the median of the trials."""
        held, failed = ((self.verdict == side).mean() for side in (VerdictCode.BETTER, VerdictCode.WORSE))
        called = self.trials[self.verdict != VerdictCode.OPEN]
        return f"{held:.1%}", f"{failed:.1%}", f"{np.median(called):,.0f}" if called.size else "-"


def claims(setting: Setting, gap: float, pairs: int, seed: int, placed: Place = "evenly") -> Found:
    """Follow pairs whose second model is worse by `gap`; the claim of each has the setting's margin."""
    of_chances, of_run, of_holes = np.random.SeedSequence(seed).spawn(3)
    spec = setting.spec(pairs, int(of_run.generate_state(1)[0]))
    weights = np.array(spec.task_weights)
    children = of_chances.spawn(pairs)
    chances = [setting.chances(gap, placed, weights, np.random.default_rng(one)) for one in children]
    board, holes = SessionAnswers(spec), np.random.default_rng(of_holes)
    models, none = np.arange(2 * pairs), np.full(pairs, np.nan)
    margins = np.full(pairs, setting.margin)
    all_claims = AllDecided(np.arange(pairs), "claims")
    goal = Goal(models[1::2], models[::2], np.zeros(pairs), none, margins, all_claims)
    comparison = SessionContrasts(spec, board, goal)
    stream = GivenChances(np.concatenate(chances)).begin(spec, board.run_sequence, of_run)
    start, steps = 0, setting.passes * spec.questions
    while start < steps:
        stop = int(min(start + PIECE, steps, *map(board.run_sequence.laid_out, models.tolist())))
        given = stream.draw(models, start, stop)
        if setting.missing:
            given[holes.random(given.shape) < setting.missing] = Mark.MISSING
        board.extend(given, models)
        comparison.read()
        start = stop
    fold = comparison.fold
    return Found(fold.verdict, np.where(fold.verdict == VerdictCode.OPEN, np.inf, fold.decided_at))


def rows(pairs: int, named: str) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row."""
    for number, setting in enumerate(AT_MARGIN):
        if named in setting.name:
            found = claims(setting, setting.margin, pairs, 100 + number)
            yield f"{setting.name}, margin {setting.margin:g}: at the margin", *found.words
    several = (Setting("M 100", (100,), 20, margin=0.05), Setting("M 100", (100,), 20, margin=0.02))
    for setting, gap in ((several[0], 0.0), (several[0], 0.1), (several[1], 0.1), (several[0], 0.4)):
        if named in setting.name:
            found = claims(setting, gap, pairs, 200)
            yield f"{setting.name}, margin {setting.margin:g}: worse by {gap:g}", *found.words


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--rows", default="", help="only rows with this in their name")
    given = parser.parse_args()
    error = (0.05 * 0.95 / given.pairs) ** 0.5
    print(f"{given.pairs} pairs a row; standard error of 5 %: {error:.1%}")
    print(f"{'setting':<62}{'holds':>8}{'fails':>8}{'trials':>10}")
    for name, held, failed, trials in rows(given.pairs, given.rows):
        print(f"{name:<62}{held:>8}{failed:>8}{trials:>10}", flush=True)


if __name__ == "__main__":
    main()
