"""Measure how well ``plan --from`` forecasts the trials of a run, on recorded outcomes that it has not seen.

    python benchmarks/plan_coverage.py DIR [--pairs 12] [--replicates 60] [--seed 1] [--margin 0.05]

DIR holds npz files with R: models x questions x trials of 0 and 1, -1 for none. For each of some random pairs
of models, the forecast is made from the first trials of every question and compared with a run over the
others. Printed are quantiles of actual to forecast trials, and how often the 80 % interval holds the actual
ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from adaptive_eval.core.forecast import range_of
from adaptive_eval.core.spec import ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import RecordedAnswers, RecordedOutcomes, simulate
from adaptive_eval.simulate.assumptions import assumed_answers

LONGEST = 80  # passes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--margin", type=float, default=0.05)
    options = parser.parse_args()
    print(f"{'data':22} pairs  actual/median: 10 %, median, 90 %  80 % interval holds")
    for path in sorted(options.data.glob("*.npz")):
        ratios, held = [], []
        for spec, history, held_out in pairs_of(np.load(path)["R"], options):
            actual = simulate(spec, RecordedAnswers(held_out, shuffled=False), 1, options.seed).total[0]
            answers = assumed_answers(spec, {}, history)
            spread = range_of(simulate(spec, answers, options.replicates, options.seed).total)
            ratios.append(actual / spread.median)
            held.append(spread.low <= actual <= spread.high)
        shares = "  ".join(f"{value:.2f}" for value in np.quantile(ratios, (0.1, 0.5, 0.9)))
        print(f"{path.stem:22} {len(held):5}  {shares:>32}  {np.mean(held):19.0%}", flush=True)


def pairs_of(
    outcomes: np.ndarray, options: argparse.Namespace
) -> Iterator[tuple[SessionSpec, RecordedOutcomes, RecordedOutcomes]]:
    """Yield the config of a pair, the first trials of its questions, and the others."""
    rng = np.random.default_rng(options.seed)
    full = (outcomes >= 0).sum(axis=2).min(axis=1)
    depth = max(1, min(10, int(full.max()) // 3))
    usable = np.flatnonzero(full >= 2 * depth)
    for _ in range(options.pairs):
        pair = rng.choice(usable, 2, replace=False)
        known = int(full[pair].min())
        names = tuple(f"m{model}" for model in pair)
        questions = tuple(("t", f"q{place}") for place in range(outcomes.shape[1]))
        task = TaskSpec("t", tuple(name for _, name in questions))
        passes = min(LONGEST, known - depth)
        stopping = StoppingSpec(equivalence=options.margin, max_passes=passes)
        spec = SessionSpec(tuple(map(ModelSpec, names)), (task,), stopping=stopping, seed=options.seed)
        trials = outcomes[pair].astype(np.int16)
        history = RecordedOutcomes(names, questions, trials[:, :, :depth])
        yield spec, history, RecordedOutcomes(names, questions, trials[:, :, depth : depth + passes])


if __name__ == "__main__":
    main()
