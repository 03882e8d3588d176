"""How soon each ranking finds the true order, and which rankings agree, on coins and on recorded answers.

    python benchmarks/rank_agreement.py [--replicates 200] [--seed 1] [--replay DIR]

Coins are the paper's 11 models on 30 questions, with the true order by their stated means. ``--replay`` names
a directory of recorded outcomes, ``NAME.npz`` with an array ``R`` of shape (L, M, N), -1 where a trial is
missing; trials of the models that solve at least 5 % are drawn with replacement, and the order by all
recorded trials is taken as true. Printed: mean Kendall's tau-b to the true ranking after N trials, the trials
that reach what avg@N has after 16, and the mean tau-b between methods at N = 16. ``rasch_2pl_map``, which
fits two parameters a question, is left out where there are more than 100 questions.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scorio import rank
from scorio.study import PAPER_MEANS, biased_coins

TRIALS = (1, 2, 4, 8, 16, 32, 64)
AT = 16
MOST_QUESTIONS = {"rasch_2pl_map": 100}
Method = Callable[[NDArray[np.integer]], NDArray[np.number]]

METHODS: dict[str, Method] = {
    "avg": rank.avg,
    "bayes, quantile 0.05": lambda R: rank.bayes(R, quantile=0.05),
    "pass_at_k, k = 4": lambda R: rank.pass_at_k(R, min(4, R.shape[2])),
    "pass_hat_k, k = 4": lambda R: rank.pass_hat_k(R, min(4, R.shape[2])),
    "mg_pass_at_k, k = 4": lambda R: rank.mg_pass_at_k(R, min(4, R.shape[2])),
    "bradley_terry_map": rank.bradley_terry_map,
    "bradley_terry_davidson_map": rank.bradley_terry_davidson_map,
    "rasch_map": lambda R: rank.rasch_map(informative(R)),
    "rasch_2pl_map": lambda R: rank.rasch_2pl_map(informative(R), max_iter=20_000, reg_discrimination=1.0),
    "elo": rank.elo,
    "win_rate": rank.win_rate,
    "borda": rank.borda,
    "copeland": rank.copeland,
    "schulze": rank.schulze,
    "pagerank": rank.pagerank,
    "rank_centrality": rank.rank_centrality,
}


def informative(R: NDArray[np.integer]) -> NDArray[np.integer]:
    """Leave out questions that all models have always right, or always wrong."""
    totals = R.sum(axis=(0, 2))
    return R[:, (totals > 0) & (totals < R.shape[0] * R.shape[2])]


def study(
    title: str, draw: Callable[[int, np.random.Generator], NDArray[np.integer]], true: NDArray[np.floating],
    replicates: int, seed: int,
) -> None:  # fmt: skip
    """Print the tables of one source of outcomes."""
    rng = np.random.default_rng(seed)
    truth = rank.rank_scores(true, "avg")
    questions = draw(1, rng).shape[1]
    methods = {
        name: method for name, method in METHODS.items() if questions <= MOST_QUESTIONS.get(name, questions)
    }
    tau = np.zeros((len(methods), len(TRIALS)))
    agreement = np.zeros((len(methods), len(methods)))
    for _ in range(replicates):
        R = draw(TRIALS[-1], rng)
        for column, trials in enumerate(TRIALS):
            ranks = np.array([method(R[:, :, :trials]) for method in methods.values()])
            tau[:, column] += rank.kendall_tau_b(ranks, truth)
            if trials == AT:
                agreement += rank.kendall_tau_b(ranks[:, None], ranks)
    tau, agreement = tau / replicates, agreement / replicates
    print(f"\n{title}, {replicates} replicates: mean tau-b to the true ranking")
    print(f"{'ranking':<28}" + "".join(f"N={n:<6}" for n in TRIALS) + f"  as avg at {AT}")
    target = tau[0, TRIALS.index(AT)]
    for name, row in zip(methods, tau, strict=True):
        needed = np.interp(target, np.maximum.accumulate(row), np.log2(TRIALS), right=np.inf)
        reached = f"{2**needed:.0f}" if np.isfinite(needed) else f"> {TRIALS[-1]}"
        print(f"{name:<28}" + "".join(f"{value:<8.3f}" for value in row) + f"  {reached}")
    print(f"\nmean tau-b between rankings at N = {AT}, with avg, pass_at_k, bradley_terry_map and borda")
    names = list(methods)
    shown = [names.index(name) for name in ("avg", "pass_at_k, k = 4", "bradley_terry_map", "borda")]
    for name, row in zip(names, agreement, strict=True):
        print(f"{name:<28}" + "".join(f"{row[other]:<8.3f}" for other in shown))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replay", type=Path, metavar="DIR")
    options = parser.parse_args()

    def coins(trials: int, rng: np.random.Generator) -> NDArray[np.integer]:
        return np.asarray(biased_coins(seed=rng).sample(trials, seed=rng), dtype=np.int64)

    study(
        "11 coins of the paper, 30 questions", coins, np.array(PAPER_MEANS), options.replicates, options.seed
    )
    for file in sorted(options.replay.glob("*.npz")) if options.replay else ():
        recorded = np.load(file)["R"]
        made = recorded >= 0
        chance = (recorded == 1).sum(axis=2) / np.maximum(made.sum(axis=2), 1)
        chance = chance[(chance.mean(axis=1) >= 0.05) & made.any(axis=2).all(axis=1)]

        def resampled(
            trials: int, rng: np.random.Generator, p: NDArray[np.floating] = chance
        ) -> NDArray[np.integer]:
            return (rng.random((*p.shape, trials)) < p[:, :, None]).astype(np.int64)

        title = f"{file.stem}, {len(chance)} models, {chance.shape[1]} questions"
        study(title, resampled, chance.mean(axis=1), options.replicates, options.seed)


if __name__ == "__main__":
    main()
