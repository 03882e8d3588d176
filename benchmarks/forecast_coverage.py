"""Measure how often the forecast of a running session holds, on boards of coins and on recorded outcomes.

    python benchmarks/forecast_coverage.py [--data DIR] [--models 2 5 8 20] [--boards 40] [--top K]
        [--flips SHARE] [--seed 1]

Every board runs to its end, and is asked for its forecast at 10, 30 and 60 % of the trials that it then took.
Printed are the share of boards whose 80 % interval of further trials holds those that came, with its standard
error, the shares below and above it, the median of actual over forecast trials, and the median and longest
milliseconds of a forecast. With `--top` the goal is the best K models, with `--flips` coins are models at
temperature 0, of whose answers this share is another. DIR holds npz files with R: models x questions x trials
of 0 and 1, -1 for none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import thread_time

import numpy as np

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.trial import TrialOutcome
from scorio.study import biased_coins

SHARES = (0.1, 0.3, 0.6)
GROWTH = 1.12
"""Growth of a run's trials from one forecast to the next."""

Answer = Callable[[int, int, int], int]
"""From a model, a question and the number of earlier trials of both to a category."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", type=int, nargs="*", default=[2, 5, 8, 20])
    parser.add_argument("--boards", type=int, default=40)
    parser.add_argument("--top", type=int)
    parser.add_argument("--flips", type=float)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    goal = GoalSpec("ranking") if options.top is None else GoalSpec("top-k", k=options.top)
    print(f"{'board':26} {'at':>5} boards  holds          below above  actual/median   ms (median, longest)")
    for models in options.models:
        for questions, margin, passes in ((30, 0.1, 60), (300, 0.05, 10)):
            found = [
                coins(models, questions, margin, passes, options.seed + n, goal, options.flips)
                for n in range(options.boards)
            ]
            show(f"{models} coins, {questions} questions", found)
        if options.data is not None:
            for path in sorted(options.data.glob("*.npz")):
                table = np.load(path)["R"]
                if usable(table).size >= models:
                    found = [recorded(table, models, options.seed + n, goal) for n in range(options.boards)]
                    show(f"{models} of {path.stem}", found)


def coins(
    models: int,
    questions: int,
    margin: float,
    passes: int,
    seed: int,
    goal: GoalSpec,
    flips: float | None = None,
) -> list[tuple[float, ...]]:
    """Run a board of coins whose means are spread by chance."""
    rng = np.random.default_rng([seed, models, questions])
    means = rng.uniform(0.3, 0.8, models)
    chances = biased_coins(means, questions, seed=rng, correlation=0.5).p
    if flips is not None:
        chances = np.where(rng.random(chances.shape) < chances, 1.0 - flips, flips)

    def answer(model: int, question: int, number: int) -> int:
        return int(rng.random() < chances[model, question])

    return run(models, questions, margin, passes, seed, answer, goal, greedy=flips is not None)


def usable(table: np.ndarray) -> np.ndarray:
    """Return the models that have several trials of every question and are neither right nor wrong always."""
    mean = np.where(table < 0, np.nan, table)
    known = (table >= 0).sum(axis=2).min(axis=1) >= 4
    score = np.nanmean(mean, axis=(1, 2))
    return np.flatnonzero(known & (score > 0.05) & (score < 0.97))


def recorded(table: np.ndarray, models: int, seed: int, goal: GoalSpec) -> list[tuple[float, ...]]:
    """Run a board of recorded models over their trials in random order."""
    rng = np.random.default_rng([seed, models])
    chosen = rng.choice(usable(table), models, replace=False)
    counts = (table[chosen] >= 0).sum(axis=2)
    order = [[rng.permutation(n) for n in of_model] for of_model in counts.tolist()]
    passes = min(int(counts.min()), 60)

    def answer(model: int, question: int, number: int) -> int:
        return int(table[chosen[model], question, order[model][question][number]])

    return run(models, table.shape[1], 0.08, passes, seed, answer, goal)


def run(
    models: int,
    questions: int,
    margin: float,
    passes: int,
    seed: int,
    answer: Answer,
    goal: GoalSpec,
    *,
    greedy: bool = False,
) -> list[tuple[float, ...]]:
    """Return share of the trials, actual further trials, low, median, high and milliseconds at each look."""
    spec = SessionSpec(
        tuple(ModelSpec(f"m{model}", greedy=greedy) for model in range(models)),
        (TaskSpec("t", tuple(f"q{question}" for question in range(questions))),),
        goal,
        stopping=StoppingSpec(equivalence=margin, max_passes=passes),
        seed=seed,
    )
    session, asked = Session(spec), np.zeros((models, questions), dtype=np.int64)
    said, due = [], 20.0 * models
    while session.stopped is None:
        told = []
        for request in session.ask(2 * models):
            model, question = int(request.key.model[1:]), int(request.question[1:])
            told.append(TrialOutcome(request.key, int(answer(model, question, asked[model, question]))))
            asked[model, question] += 1
        session.tell(told)
        if session.stopped is None and session.budget.completed >= due:
            due *= GROWTH
            session.results()
            session._forecasts.due = 0
            began = thread_time()
            forecast = session.forecast()
            spent = 1000 * (thread_time() - began)
            if forecast is not None:
                more = forecast.trials
                said.append((session.budget.completed, more.low, more.median, more.high, spent))
    total = session.budget.completed
    found = []
    for share in SHARES:
        near = [one for one in said if 0.8 * share * total <= one[0] <= 1.25 * share * total]
        if near:
            at, *rest = min(near, key=lambda one: abs(one[0] - share * total))
            found.append((share, total - at, *rest))
    return found


def show(name: str, boards: list[list[tuple[float, ...]]]) -> None:
    for share in SHARES:
        rows = np.array([row for board in boards for row in board if row[0] == share])
        if rows.size == 0:
            continue
        _, actual, low, median, high, spent = rows.T
        held = ((low <= actual) & (actual <= high)).mean()
        error = np.sqrt(held * (1.0 - held) / len(rows))
        ratio = np.median(actual / np.maximum(median, 1.0))
        beyond = f"{(actual < low).mean():6.0%} {(actual > high).mean():5.0%}"
        cost = f"{np.median(spent):.0f}, {spent.max():.0f}"
        holds = f"{share:5.0%} {len(rows):6}  {held:5.0%} +- {error:4.0%}"
        print(f"{name:26} {holds}  {beyond}  {ratio:13.2f}   {cost}", flush=True)


if __name__ == "__main__":
    main()
