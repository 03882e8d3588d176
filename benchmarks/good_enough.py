"""Good enough is enough: trials of the goal top-k, and wrong claims, with and without the margin's claim.

    python benchmarks/good_enough.py --data R.npz ... --runs 20
    python benchmarks/good_enough.py --saturated --runs 20
    python benchmarks/good_enough.py --pairs --runs 60
    python benchmarks/good_enough.py --at-margin --runs 400

`--data` flips coins with the shares of right answers in recorded outcomes (arrays `correct` and `count`);
`--saturated` coins of ten models from 93 to 99 % right whose hard questions are alike, another board a run.
Columns: mean trials where every pair across the cut is decided ("decided"), with the claim that no other
model is better by more than the margin ("claim"), and with the claim where all models are asked the same
("uniform"). With k = 1 also those of others, with the same margin; all draw questions at random:

EB-TC        Jourdan et al. (2023); it stops by the heuristic threshold log((1 + log n)/δ) at the variance 1/4
LUCB         Kalyanakrishnan et al. (2012), LUCB1: promises its error rate
elimination  Even-Dar et al. (2006), successive elimination: promises its error rate
naive z      models in turn until z ≥ 1.645 separates the leader from all not within the margin, seen at
             every trial of each from the tenth on
fixed N      all models asked the same, at the length after which 95 % of runs choose well: a length that
             nobody knows before

`--pairs` holds two models against each other without a margin, with the same hard questions, in the schedule:
trials of each model to a winner.

`wrong`: a model left out is better by more than the margin. `--at-margin` flips coins: the last model is
better than every other by exactly the margin, so the choice of another is counted as wrong.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import log
from pathlib import Path

import numpy as np
from decisions_saturated import chances_of, decided
from numpy.typing import NDArray

from adaptive_eval.core.board import SessionAnswers
from adaptive_eval.core.goals import BestK
from adaptive_eval.core.spec import AllocationSpec, GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import GivenChances, drivers
from scorio.study import biased_coins

Floats = NDArray[np.float64]

PAIRS = (
    (0.97, 0.90, 60), (0.96, 0.93, 150), (0.98, 0.93, 100), (0.99, 0.95, 100), (0.95, 0.90, 60),
    (0.98, 0.95, 200),
)  # fmt: skip
"""Scores of two models, and questions."""


def spec_of(models: int, questions: int, margin: float, k: int, passes: int) -> SessionSpec:
    """Return the search for the best k models."""
    return SessionSpec(
        tuple(ModelSpec(f"m{number}") for number in range(models)),
        (TaskSpec("t", tuple(map(str, range(questions)))),),
        goal=GoalSpec("top-k", k=k),
        stopping=StoppingSpec(equivalence=margin, max_passes=passes),
        allocation=AllocationSpec(questions="auto"),
    )


def run(spec: SessionSpec, chance: Floats, seed: int, *, claims: bool) -> tuple[int, list[int], bool]:
    """Return the trials of a run, the models that it chooses, and whether it ends before its cap."""
    board = SessionAnswers(spec)
    stream = GivenChances(chance).begin(spec, board.run_sequence, np.random.SeedSequence(seed))
    one = drivers._LockstepRun(spec, board, stream)
    if not claims:
        levels = one.comparison.fold.levels
        one.comparison.fold.levels = replace(levels, claims=0)
    while (start := one.start) is not None:
        one.advance(start)
        board.forget(one.view.oldest)
    result, condition = one.outcome(scored=False), one.comparison.contrasts.condition
    assert isinstance(condition, BestK)
    chosen = np.flatnonzero(condition._cut(one.comparison.states)[0]).tolist()
    return int(result.trials.sum()), chosen, bool(one.comparison.met)


MOST = 1 << 20
"""Trials after which the others are ended."""


class Arms:
    """Models of which each trial asks a question at random."""

    def __init__(self, chance: Floats, seed: int) -> None:
        rng = np.random.default_rng([seed, 2])
        self._chance, self._rng = chance, rng
        self._asked, self._luck = rng.integers(chance.shape[1], size=MOST), rng.random(MOST)
        self.number = np.zeros(len(chance))
        self.won = np.zeros(len(chance))
        self.trials = 0
        for model in range(len(chance)):
            self.ask(model)

    @property
    def mean(self) -> Floats:
        """Means of the models."""
        return self.won / self.number

    def ask(self, *models: int) -> None:
        """Ask each of these models one question."""
        for model in models:
            place = self.trials % MOST
            self.won[model] += self._luck[place] < self._chance[model, self._asked[place]]
            self.number[model] += 1
            self.trials += 1


def eb_tc(chance: Floats, margin: float, alpha: float, seed: int) -> tuple[int, int]:
    """Return the trials of EB-TC with a margin, and the model that it chooses."""
    arms, coins = Arms(chance, seed), np.random.default_rng([seed, 4])
    while True:
        mean, number = arms.mean, arms.number
        leader = int(np.argmax(mean))
        cost = (mean[leader] - mean + margin) / np.sqrt(0.25 * (1.0 / number[leader] + 1.0 / number))
        cost[leader] = np.inf
        rival = int(np.argmin(cost))
        threshold = log((1.0 + log(arms.trials)) * (len(mean) - 1) / alpha)
        if arms.trials >= MOST or cost[rival] >= np.sqrt(2.0 * threshold):
            return arms.trials, leader
        arms.ask(leader if coins.random() < 0.5 else rival)


def lucb(chance: Floats, margin: float, alpha: float, seed: int) -> tuple[int, int]:
    """Return the trials of LUCB1, and the model that it chooses."""
    arms, models = Arms(chance, seed), len(chance)
    for turn in range(1, MOST):
        radius = np.sqrt(log(1.25 * models * turn**4 / alpha) / (2.0 * arms.number))
        leader = int(np.argmax(arms.mean))
        upper = arms.mean + radius
        upper[leader] = -np.inf
        rival = int(np.argmax(upper))
        if arms.trials >= MOST or upper[rival] - (arms.mean[leader] - radius[leader]) < margin:
            break
        arms.ask(leader, rival)
    return arms.trials, leader


def elimination(chance: Floats, margin: float, alpha: float, seed: int) -> tuple[int, int]:
    """Return the trials of successive elimination, and the model that it chooses."""
    arms, left = Arms(chance, seed), np.arange(len(chance))
    for turn in range(1, MOST):
        radius = np.sqrt(log(4.0 * len(chance) * turn**2 / alpha) / (2.0 * turn))
        mean = arms.mean[left]
        left = left[mean.max() - mean < 2.0 * radius]
        if arms.trials >= MOST or left.size == 1 or 2.0 * radius <= margin:
            break
        arms.ask(*left.tolist())
    return arms.trials, int(left[np.argmax(arms.mean[left])])


def naive_z(chance: Floats, margin: float, alpha: float, seed: int) -> tuple[int, int]:
    """Return the trials until z looks good enough, and the model that it chooses."""
    del alpha  # 1.645 is a one-sided 5 %
    arms, left = Arms(chance, seed), np.arange(len(chance))
    while True:
        mean = arms.mean
        leader = int(np.argmax(mean))
        error = np.sqrt(mean * (1.0 - mean) / arms.number)
        both = np.hypot(error, error[leader])
        worse = mean[leader] - mean >= 1.645 * both
        near = np.abs(mean[leader] - mean) + 1.645 * both <= margin
        done = (worse | near) & (arms.number >= 10)
        done[leader] = True
        left = np.flatnonzero(~done)
        if arms.trials >= MOST or left.size == 0:
            return arms.trials, leader
        arms.ask(*left.tolist(), leader)


def fixed_n(chance: Floats, margin: float, alpha: float, runs: int = 400) -> int:
    """Return the trials after which so many runs that ask all models the same choose well."""
    rng = np.random.default_rng(5)
    true, (models, questions) = chance.mean(axis=1), chance.shape
    is_wrong = true < true.max() - margin
    for number in np.unique(np.geomspace(1, 80 * questions, 120).astype(int)).tolist():
        passes, rest = divmod(number, questions)
        sums = rng.binomial(passes, chance, size=(runs, models, questions)).sum(axis=2) if passes else 0
        asked = rng.permuted(np.tile(np.arange(questions), (runs, 1)), axis=1)[:, :rest]
        sums = sums + (rng.random((models, runs, rest)) < chance[:, asked]).sum(axis=2).T
        chosen = (sums + rng.random((runs, models)) / 2).argmax(axis=1)  # ties by luck
        if is_wrong[chosen].mean() <= alpha:
            return int(models * number)
    return MOST


OTHERS = {"EB-TC": eb_tc, "LUCB": lucb, "elimination": elimination, "naive z": naive_z}


def chances(path: str) -> Floats:
    """Return the share of right answers of each model to each question, of models above 5 %."""
    recorded = np.load(path)
    share = recorded["correct"] / np.maximum(recorded["count"], 1)
    return np.asarray(share[share.mean(axis=1) >= 0.05])


def saturated(questions: int, seed: int) -> Floats:
    """Return chances of ten models that are right in 93 to 99 %."""
    means = tuple(np.linspace(0.93, 0.99, 10).tolist())
    return np.asarray(biased_coins(means, questions, seed=seed, concentration=4.0, correlation=0.8).p)


def at_margin(models: int, questions: int, margin: float, mean: float, seed: int) -> Floats:
    """Return chances of which the last model alone is best, all others worse by exactly the margin."""
    rng = np.random.default_rng([seed, 3])
    means = np.full(models, mean)
    means[-1] += margin
    low = rng.beta(4.0 * mean, 4.0 * (1.0 - mean), size=(models, questions))
    # Each row gets its mean exactly, by a mixture with 0 or with 1.
    now = low.mean(axis=1)
    down, up = means / now, (1.0 - means) / (1.0 - now)
    chance = np.where((down <= 1.0)[:, None], low * down[:, None], 1.0 - (1.0 - low) * up[:, None])
    return np.asarray(chance)


def _whatever_the_seed(chance: Floats, seed: int) -> Floats:
    del seed
    return chance


def pairs(runs: int) -> None:
    """Print what a winner of two models takes, and with other rules."""
    for better, worse, questions in PAIRS:
        chance = np.stack([chances_of(worse, questions), chances_of(better, questions)])
        ours = decided(np.tile(chance, (runs, 1)), 400, seed=7)
        median = np.median(np.where(np.abs(ours.verdict) == 1, ours.decided_at, MOST))
        print(f"{better}, {worse}, {questions} questions: {median:,.0f}, wrong {int(ours.wrong.sum())}")
        for name, other in OTHERS.items():
            found = [other(chance, 0.0, 0.05, seed) for seed in range(runs)]
            wrong, trials = sum(leader != 1 for _, leader in found), np.median([one for one, _ in found]) / 2
            print(f"  {name:12} {trials:9,.0f}, wrong {wrong}", flush=True)
        print(f"  {'fixed N':12} {fixed_n(chance, 0.0, 0.05) / 2:9,.0f}, wrong 5 %", flush=True)


def main() -> None:
    """Print a row for each set, or each board at the margin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--saturated", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--at-margin", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--margin", type=float, default=0.03)
    parser.add_argument("--models", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--k", type=int, default=1)
    options = parser.parse_args()
    if options.pairs:
        pairs(options.runs)
    boards: dict[str, Callable[[int], Floats]] = {
        Path(path).name: partial(_whatever_the_seed, chances(path)) for path in options.data
    }
    for questions in (30, 100, 200) if options.saturated else ():
        boards[f"93-99 % right, {questions} questions"] = partial(saturated, questions)
    for board, chance_of in boards.items():
        models, questions = chance_of(0).shape
        spec = spec_of(models, questions, options.margin, options.k, options.passes)
        uniform = replace(spec, allocation=AllocationSpec(models="uniform", questions="auto"))
        ours = {"decided": (spec, False), "claim": (spec, True), "uniform": (uniform, True)}
        found, length = dict[str, list[tuple[int, bool]]](), list[int]()
        for seed in range(options.runs):
            chance = chance_of(seed)
            true = chance.mean(axis=1)
            if options.k == 1 and (seed == 0 or options.saturated):
                length.append(fixed_n(chance, options.margin, 0.05))
            for name, (of_run, claims) in ours.items():
                trials, chosen, _ = run(replace(of_run, seed=seed), chance, seed, claims=claims)
                left = [model for model in range(len(true)) if model not in chosen]
                wrong = bool(true[left].max() > true[chosen].min() + options.margin)
                found.setdefault(name, []).append((trials, wrong))
            for name, other in OTHERS.items() if options.k == 1 else ():
                trials, leader = other(chance, options.margin, 0.05, seed)
                found.setdefault(name, []).append((trials, bool(true.max() > true[leader] + options.margin)))
        means = {name: np.mean(rows, axis=0).tolist() for name, rows in found.items()}
        if options.k == 1:
            means["fixed N"] = [float(np.mean(length)), 0.05]
        print(f"{board} {(models, questions)} margin {options.margin}")
        for name, (trials, missed) in means.items():
            share = trials / means["decided"][0]
            print(f"  {name:12} {trials:9,.0f} trials ({share:.2f}), wrong {missed:.3f}", flush=True)
    for models in options.models if options.at_margin else ():
        for questions, mean in ((30, 0.5), (100, 0.9), (400, 0.5)):
            spec = spec_of(models, questions, 0.05, options.k, options.passes)
            failed = 0
            for seed in range(options.runs):
                chance = at_margin(models, questions, 0.05, mean, seed)
                _, chosen, met = run(replace(spec, seed=seed), chance, seed, claims=True)
                failed += met and models - 1 not in chosen
            print(f"{models} models, {questions} questions, mean {mean}: wrong {failed / options.runs:.3f}")


if __name__ == "__main__":
    main()
