"""Good enough is enough: trials of the goal top-k, and wrong claims, with and without the margin's claim.

    python benchmarks/good_enough.py --data R.npz ... --runs 20
    python benchmarks/good_enough.py --at-margin --runs 400

`--data` replays recorded outcomes (arrays `R` (L, M, N): 1, 0, -1 for no trial). Columns: mean trials where
every pair across the cut is decided ("decided"), with the claim that no other model is better by more than
the margin ("claim"), and of EB-TC with the same margin (Jourdan et al., 2023), which draws its questions at
random and stops by the heuristic threshold log((1 + log n)/δ) at the variance 1/4 of a bounded score.
`wrong`: a model left out is better by more than the margin. `--at-margin` flips coins: the last model is
better than every other by exactly the margin, so the choice of another is counted as wrong.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import BestK
from adaptive_eval.core.spec import AllocationSpec, GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import GivenChances, drivers

Floats = NDArray[np.float64]


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
    board = Board(spec)
    stream = GivenChances(chance).begin(spec, board.run_sequence, np.random.SeedSequence(seed))
    one = drivers._Run(spec, board, stream)
    if not claims:
        levels = one.comparison.fold.levels
        one.comparison.fold.levels = replace(levels, claims=0)
    while (start := one.start) is not None:
        one.advance(start)
        board.forget(one.view.oldest)
    result, condition = one.outcome(scored=False), one.comparison.contrasts.condition
    assert isinstance(condition, BestK)
    chosen = np.flatnonzero(condition._cut(one.comparison.known)[0]).tolist()
    return int(result.trials.sum()), chosen, bool(one.comparison.met)


def eb_tc(chance: Floats, margin: float, alpha: float, seed: int) -> tuple[int, int]:
    """Return the trials of EB-TC with a margin, and the model that it chooses."""
    rng = np.random.default_rng([seed, 2])
    models, questions = chance.shape
    won, number = (rng.random(models) < chance[:, 0]).astype(float), np.ones(models)
    leaders = np.zeros((models, models))
    luck, asked = rng.random(1 << 18), rng.integers(questions, size=1 << 18)
    for trials in range(models, 1 << 18):
        mean = won / number
        leader = int(np.argmax(mean))
        cost = (mean[leader] - mean + margin) / np.sqrt(0.25 * (1.0 / number[leader] + 1.0 / number))
        cost[leader] = np.inf
        rival = int(np.argmin(cost))
        if cost[rival] >= np.sqrt(2.0 * log((1.0 + log(trials)) * (models - 1) / alpha)):
            return trials, leader
        leaders[leader, rival] += 1
        chosen = leader if rng.random() < 0.5 else rival
        won[chosen] += luck[trials] < chance[chosen, asked[trials]]
        number[chosen] += 1
    return 1 << 18, leader


def chances(path: str) -> Floats:
    """Return the share of right answers of each model to each question, of models above 5 %."""
    recorded = np.load(path)
    share = recorded["correct"] / np.maximum(recorded["count"], 1)
    return np.asarray(share[share.mean(axis=1) >= 0.05])


def at_margin(models: int, questions: int, margin: float, mean: float, seed: int) -> Floats:
    """Return chances of which the last model alone is best, all others worse by exactly the margin."""
    rng = np.random.default_rng([seed, 3])
    means = np.full(models, mean)
    means[-1] += margin
    low = rng.beta(4.0 * mean, 4.0 * (1.0 - mean), size=(models, questions))
    # Each row gets its mean exactly, by a mixture with 0 or with 1.
    now = low.mean(axis=1)
    down, up = means / now, (1.0 - means) / (1.0 - now)
    return np.where((down <= 1.0)[:, None], low * down[:, None], 1.0 - (1.0 - low) * up[:, None])


def main() -> None:
    """Print a row for each set, or each board at the margin."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--at-margin", action="store_true")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--margin", type=float, default=0.03)
    parser.add_argument("--models", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--k", type=int, default=1)
    options = parser.parse_args()
    for path in options.data:
        chance = chances(path)
        spec = spec_of(*chance.shape, options.margin, options.k, options.passes)
        true, found = chance.mean(axis=1), []
        for seed in range(options.runs):
            row: list[float] = []
            for claims in (False, True):
                trials, chosen, _ = run(replace(spec, seed=seed), chance, seed, claims=claims)
                left = [model for model in range(len(true)) if model not in chosen]
                row += [trials, bool(true[left].max() > true[chosen].min() + options.margin)]
            if options.k == 1:
                trials, leader = eb_tc(chance, options.margin, 0.05, seed)
                row += [trials, bool(true.max() > true[leader] + options.margin)]
            found.append(row)
        mean = np.mean(found, axis=0)
        shares = ", ".join(
            f"{name} {trials:,.0f} ({trials / mean[0]:.2f}) wrong {wrong:.3f}"
            for name, trials, wrong in zip(
                ("decided", "claim", "EB-TC"), mean[::2].tolist(), mean[1::2].tolist(), strict=False
            )
        )
        print(f"{path.rsplit('/', 1)[-1]} {chance.shape} margin {options.margin}: {shares}", flush=True)
    for models in options.models if options.at_margin else ():
        for questions, mean in ((30, 0.5), (100, 0.9), (400, 0.5)):
            spec = spec_of(models, questions, 0.05, options.k, options.passes)
            wrong = 0
            for seed in range(options.runs):
                chance = at_margin(models, questions, 0.05, mean, seed)
                _, chosen, met = run(replace(spec, seed=seed), chance, seed, claims=True)
                wrong += met and models - 1 not in chosen
            print(f"{models} models, {questions} questions, mean {mean}: wrong {wrong / options.runs:.3f}")


if __name__ == "__main__":
    main()
