"""What a cap on run-ahead saves, and what it costs in time: simulated runs in virtual time.

    python benchmarks/run_ahead.py --runs 12
    python benchmarks/run_ahead.py --board eight --seed 11
    python benchmarks/run_ahead.py --oracles --questions schedule --in-flight 512

The cap was chosen on the board ``five``: five models on 60 questions (means .3 to .8, margin .05). ``two``
and ``eight`` were not used for it. Questions are asked as runs do by default (``auto``: in rounds, up to 100
questions) and in one order (``schedule``). `excess` is the trials of a run less one flight, against a run
with one trial in flight; `time` is virtual seconds against unlimited run-ahead, for which predictions know
only the common prefix. The same answers are drawn for all columns. With ``right 7x`` right answers take seven
times as long.

``--oracles`` adds two rules that no run can follow. ``path`` knows the step at which each contrast will be
called, and issues nothing beyond. ``rates`` predicts contrasts as the capped run does, but knows the true
chance of every answer; it does not know the answers in flight.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core import drain
from adaptive_eval.core.board import Board
from adaptive_eval.core.compare import Comparison
from adaptive_eval.core.foresight import POINTS, Foresight
from adaptive_eval.core.spec import AllocationSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.simulate import BiasedCoins, GivenChances, SimulationResult, simulate
from adaptive_eval.simulate.coins import Stream
from adaptive_eval.simulate.virtual_time import Latency
from scorio.sequential.trial_sequence import RunSequence
from scorio.study import biased_coins

BOARDS = {
    "five": ((0.3, 0.45, 0.5, 0.65, 0.8), 60, 60, 0.05),
    "two": ((0.55, 0.62), 30, 100, 0.04),
    "eight": ((0.25, 0.35, 0.42, 0.5, 0.55, 0.6, 0.72, 0.85), 200, 20, 0.05),
}
"""Means of the models, questions, most passes, margin."""
SMALL_FLIGHT = drain.SMALL_FLIGHT


@dataclass(frozen=True)
class Exponential(Latency):
    """Exponential seconds; `median` is their mean."""

    def draw(self, model: int, score: float, rng: np.random.Generator) -> float:
        """Return the seconds that one answer takes."""
        return float(rng.exponential(1.0))


LATENCIES = {
    "exponential": Exponential(tick=0.02),
    "sigma 1.5": Latency(1.0, 1.5, tick=0.02),
    "right 7x": Latency(1.0, 0.5, 7.0, tick=0.02),
}


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CALLED: dict[int, Comparison] = {}
"""The latest run of each seed."""
CHANCES: dict[int, Floats] = {}
"""The true chance of a right answer by seed: of each model, to each question."""


class ToldCoins(BiasedCoins):
    """Coins that tell their chances to the oracles."""

    def begin(self, spec: SessionSpec, run_sequence: RunSequence, seed: np.random.SeedSequence) -> Stream:
        """Return the answers of one replicate."""
        coins, trials = seed.spawn(2)
        (seed,) = coins.spawn(1)  # the task's, so that its coins are those of the parent class
        chances = biased_coins(self.means, spec.questions, seed=seed, concentration=self.concentration).p
        CHANCES[spec.seed] = chances
        return GivenChances(chances).begin(spec, run_sequence, trials)


class Remembered(drain.Drain):
    """The landed rule; leaves what it looks at for the oracles."""

    def __init__(self, comparison: Comparison, *, capped: bool) -> None:
        super().__init__(comparison, capped=capped)
        CALLED[comparison.spec.seed] = comparison


class KnownPath(drain.Drain):
    """Closes a contrast when its last trial is issued."""

    def __init__(self, comparison: Comparison, *, capped: bool) -> None:
        super().__init__(comparison, capped=capped)
        self._last = CALLED[comparison.spec.seed].decided_at

    def closed(self, issued: Sequence[int]) -> Ints:
        """Return the contrasts that need no further trials."""
        goal = self._comparison.goal
        reach = np.minimum(np.array(issued)[goal.first], np.array(issued)[goal.second])
        return np.flatnonzero(self._comparison.fold.needed & (self._last > 0) & (reach >= self._last))


class KnownRates(drain.Drain):
    """Predicts from the true chances."""

    def __init__(self, comparison: Comparison, *, capped: bool) -> None:
        super().__init__(comparison, capped=capped)
        self._foresight = TrueForesight(comparison.board, comparison.fold.levels.guard)


class TrueForesight(Foresight):
    """Pairs of models when the trials issued so far are complete, as the true chances have them."""

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self.available = True

    def read(
        self, first: Ints, second: Ints, reach: Ints, start: int, difference: Floats
    ) -> tuple[Floats, Floats, Ints]:
        """Return difference, variance and questions, as :meth:`Foresight.read` does."""
        board, sequence = self._board, self._board.cells[0].sequence
        chance = CHANCES[board.spec.seed]
        models, questions = chance.shape
        issued = np.zeros(models, dtype=np.int64)
        np.maximum.at(issued, first, reach)
        np.maximum.at(issued, second, reach)
        width = -(-(issued.max() - start) // POINTS)
        ends = [int(issued.max()), *range(start + width, start + POINTS * width, width)]
        score, noise = np.zeros((2, models, len(ends)))
        counts = np.zeros((models, len(ends)), dtype=np.int64)
        for model in range(models):
            asked = sequence.of(np.array([model]), 0, int(issued[model]))[0]
            answers = board.answers[model, : asked.size]
            luck = np.zeros(asked.size)
            luck[: answers.size] = np.where(answers >= 0, answers - chance[model, asked[: answers.size]], 0.0)
            for column, end in enumerate(ends):
                times = np.bincount(asked[:end], minlength=questions)
                seen = times > 0
                of_question = np.bincount(asked[:end], luck[:end], minlength=questions)[seen] / times[seen]
                score[model, column] = (chance[model, seen] + of_question).sum() / max(seen.sum(), 1)
                noise[model, column] = (chance[model] * (1 - chance[model]))[seen] @ (1 / times[seen])
                counts[model, column] = seen.sum()
        both = np.minimum(counts[first], counts[second])
        known = chance * (1 - chance)
        gap = ((chance[first] - chance[second]) ** 2 + known[first] + known[second]).mean(axis=1)
        variance = (noise[first] + noise[second]) / np.maximum(both, 1) ** 2
        variance = np.where(both < questions, gap[:, None] / np.maximum(both, 1), variance)
        mean = score[first] - score[second]
        late = np.array(ends) > reach[:, None]  # beyond what is issued: as at the end
        return np.where(late, mean[:, :1], mean), np.where(late, variance[:, :1], variance), both[:, 0]


RULES = {"auto": Remembered, "path": KnownPath, "rates": KnownRates}


def spec_of(board: str, questions: str, run_ahead: str | None) -> SessionSpec:
    """Return the models of a board on one task."""
    means, size, passes, margin = BOARDS[board]
    return SessionSpec(
        models=tuple(ModelSpec(f"m{number}") for number in range(len(means))),
        tasks=(TaskSpec("t", tuple(f"q{number}" for number in range(size))),),
        stopping=StoppingSpec(equivalence=margin, max_passes=passes),
        allocation=AllocationSpec(questions=questions, run_ahead=run_ahead),  # type: ignore[arg-type]
    )


def run(
    spec: SessionSpec,
    coins: BiasedCoins,
    options: argparse.Namespace,
    in_flight: int,
    latency: Latency | None,
    rule: str = "auto",
) -> SimulationResult:
    """Simulate some runs."""
    drain.SMALL_FLIGHT = math.inf if spec.allocation.run_ahead is None else SMALL_FLIGHT
    with patch("adaptive_eval.core.issuing.Drain", RULES[rule]):
        return simulate(spec, coins, options.runs, options.seed, in_flight, latency, workers=1)


def main() -> None:
    """Print a row for each way of asking, number in flight and latency."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 512, 2000])
    parser.add_argument("--questions", nargs="+", default=["auto", "schedule"])
    parser.add_argument("--board", choices=BOARDS, default="five")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--latency", choices=LATENCIES, nargs="+", default=list(LATENCIES))
    parser.add_argument("--oracles", action="store_true", help="add rules that know what no run knows")
    options = parser.parse_args()
    coins = ToldCoins(BOARDS[options.board][0])
    rules = list(RULES) if options.oracles else ["auto"]
    for questions in options.questions:
        free, capped = (spec_of(options.board, questions, run_ahead) for run_ahead in (None, "auto"))
        alone = run(free, coins, options, 1, None).trials.sum() / options.runs
        print(f"{questions}, one in flight: {alone:.0f} trials a run")
        print("in flight  latency      unlimited" + "".join(f"{rule:>8}  excess   time" for rule in rules))
        for in_flight in options.in_flight:
            for name in options.latency:
                latency = LATENCIES[name]
                most = run(free, coins, options, in_flight, latency)
                print(f"{in_flight:9}  {name:11} {most.trials.sum() / options.runs:10.0f}", end="")
                for rule in rules:
                    fewer = run(free if rule == "path" else capped, coins, options, in_flight, latency, rule)
                    trials = fewer.trials.sum() / options.runs
                    assert np.array_equal(fewer.verdict, most.verdict)
                    print(
                        f"{trials:8.0f} {(trials - in_flight) / alone:6.2f}x "
                        f"{fewer.time.mean() / most.time.mean():5.2f}x",
                        end="",
                        flush=True,
                    )
                print()


if __name__ == "__main__":
    main()
