"""What many trials in flight cost in trials and in time: sessions in virtual time.

    python benchmarks/run_ahead.py --runs 3
    python benchmarks/run_ahead.py --board wide --in-flight 512 --spend time --slow 5

The same answers and the same seconds belong to a trial in all columns. `used` is the share of the slots that
hold a trial while more than two models are open, until the run's end; `list` is the time over that of a list
schedule, which gives each of the run's completed trials, as they were asked, the first free slot; `trials`
is over the trials of a run with one in flight; `of uniform` are time and trials over those of a run that
asks all models the same. With `--withheld` one answer of the first model never comes: `calls` are the pairs
of the other models without a verdict when nothing more is asked, and `asked` the trials over those of a run
in which it comes: of the other models and the most of one run, then of the first model. With
`--lost-after` it counts as lost, as after a timeout, so many seconds after it was asked for, with
`--comes-after` it comes. The session is told of overdue answers as by the engine, unless it is `--no-plan`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from heapq import heappop, heappush, heapreplace

import numpy as np

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import AllocationSpec, ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.engine.overdue import AnswerTimes
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome

BOARDS = {
    "five": ((0.3, 0.45, 0.5, 0.65, 0.8), 60, 60, 0.05),
    "two": ((0.55, 0.62), 30, 100, 0.04),
    "eight": ((0.25, 0.35, 0.42, 0.5, 0.55, 0.6, 0.72, 0.85), 200, 20, 0.05),
    "hundred": ((0.3, 0.42, 0.5, 0.57, 0.63, 0.7, 0.78, 0.86), 100, 50, 0.06),  # in rounds
    "alike": ((0.6, 0.6000001, 0.6000002), 60, 20, 0.08),  # nobody is better
    "wide": ((0.3, 0.42, 0.5, 0.57, 0.63, 0.7, 0.78, 0.86), 500, 10, 0.06),
}
"""Means of the models, questions, most passes, margin."""


@dataclass
class Run:
    """One session, its answers and its seconds in virtual time."""

    spec: SessionSpec
    seed: int
    sigma: float
    slow: float  # times that the first model takes longer
    withheld: int | None = None  # an index of the first model whose answer never comes
    lost_after: float | None = None  # seconds after which that counts as lost
    comes_after: float | None = None  # seconds after which it comes
    hanging: float = 0.0  # share of the wrong answers that hang like the one that is withheld
    plans: bool = True  # whether the session is told of overdue answers

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        spread = rng.normal(0.0, 1.2, self.spec.questions)
        logit = np.log(self.means / (1.0 - self.means))
        self.chance = 1.0 / (1.0 + np.exp(-(1.6 * logit[:, None] + spread)))
        most = (self.spec.stopping.max_passes or 1) * self.spec.questions
        self.luck = rng.random((len(self.means), most))
        self.seconds = rng.lognormal(0.0, self.sigma, self.luck.shape)
        self.seconds[0] *= self.slow
        if self.withheld is not None and self.comes_after is not None:
            self.seconds[0, self.withheld] = self.comes_after
            self.withheld = None
        self.names = list(self.spec.names)
        self.session = Session(self.spec)
        self.now, self.free_seconds, self.open_seconds = 0.0, 0.0, 0.0
        self.taken: list[tuple[int, float]] = []
        self.trials = 0
        self.asked_at = dict[TrialKey, float]()
        self.times = {name: AnswerTimes() for name in self.names}
        self.looked_at = 0.0

    @property
    def means(self) -> np.ndarray:
        """Means of the models."""
        return np.array([float(name) for name in self.spec.names])

    def go(self, slots: int) -> None:
        """Run to the end."""
        session, flying = self.session, list[tuple[float, int, TrialOutcome | Missing]]()
        waiting = 0
        while session.stopped is None:
            for request in session.ask(slots - len(flying) - waiting):
                model, index = self.names.index(request.key.model), request.key.index
                right = self.luck[model, index] < self.chance[model, int(request.question)]
                self.trials += 1
                self.asked_at[request.key] = self.now
                if model == 0 and index == self.withheld:
                    if self.lost_after is None:
                        waiting = 1
                    else:
                        lost = Missing(TrialKey(request.key.model, index), "timeout")
                        heappush(flying, (self.now + self.lost_after, self.trials, lost))
                    continue
                answer: TrialOutcome | Missing = TrialOutcome(request.key, int(right))
                seconds = float(self.seconds[model, index])
                if not right and self.luck[model, index] > 1.0 - self.hanging:
                    seconds = float(self.comes_after or self.lost_after or seconds)
                    if self.lost_after is not None:
                        answer = Missing(request.key, "timeout")
                heappush(flying, (self.now + seconds, self.trials, answer))
            if not flying:
                return
            then, number, outcome = heappop(flying)
            if len(session.comparison.members) > 2:
                self.open_seconds += then - self.now
                self.free_seconds += (then - self.now) * (slots - len(flying) - 1 - waiting)
            self.now = then
            model, index = self.names.index(outcome.key.model), outcome.key.index
            self.times[outcome.key.model].took(self.now - self.asked_at.pop(outcome.key))
            if isinstance(outcome, TrialOutcome):
                self.taken.append((number, float(self.seconds[model, index])))
            session.tell([outcome])
            if self.plans and session.stopped is None and self.now >= self.looked_at + 1.0:
                self.look()

    def look(self) -> None:
        """Tell the session which answers are overdue."""
        self.looked_at = self.now
        for name, times in self.times.items():
            awaited = {key: self.now - at for key, at in self.asked_at.items() if key.model == name}
            self.session.overdue(times.overdue(awaited))

    @property
    def of_first(self) -> int:
        """Trials of the first model."""
        return self.session.states.issued[0]

    @property
    def of_others(self) -> int:
        """Trials of the other models."""
        return sum(self.session.states.issued[1:])

    def used(self, slots: int) -> float:
        """Return the share of slots used while more than two models are open."""
        return 1.0 - self.free_seconds / max(slots * self.open_seconds, 1e-9)

    def listed(self, slots: int) -> float:
        """Return the time that a list schedule takes for the completed trials."""
        ends = [0.0] * slots
        for _, seconds in sorted(self.taken):
            heapreplace(ends, ends[0] + seconds)
        return max(ends)


def spec_of(board: str, questions: str, models: str = "round-robin", **settings: object) -> SessionSpec:
    """Return the models of a board on one task."""
    means, size, passes, margin = BOARDS[board]
    return SessionSpec(
        models=tuple(ModelSpec(f"{mean}") for mean in means),
        tasks=(TaskSpec("t", tuple(map(str, range(size)))),),
        stopping=StoppingSpec(equivalence=margin, max_passes=passes),
        allocation=AllocationSpec(models=models, questions=questions),  # type: ignore[arg-type]
        **settings,  # type: ignore[arg-type]
    )


def main() -> None:
    """Print a row for each number in flight and spread of seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64])
    parser.add_argument("--sigma", type=float, nargs="+", default=[1.0, 1.5])
    parser.add_argument("--questions", default="auto")
    parser.add_argument("--board", choices=BOARDS, default="eight")
    parser.add_argument("--spend", choices=["trials", "time"], default="trials")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--slow", type=float, default=1.0, help="times that the first model takes longer")
    parser.add_argument("--withheld", type=int, help="index whose answer never comes")
    parser.add_argument("--lost-after", type=float, help="seconds after which that is lost")
    parser.add_argument("--comes-after", type=float, help="seconds after which it comes")
    parser.add_argument(
        "--hanging", type=float, default=0.0, help="share of the answers that hang, all wrong"
    )
    parser.add_argument("--no-plan", dest="plans", action="store_false", help="tell of no overdue answer")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.runs)
    spec = spec_of(options.board, options.questions)
    for sigma in options.sigma:
        alone = [Run(replace(spec, seed=seed), seed, sigma, options.slow) for seed in seeds]
        for run in alone:
            run.go(1)
        least = sum(run.trials for run in alone)
        for slots in options.in_flight:
            runs = []
            for each in alone:
                own = replace(each.spec, spend=options.spend)
                late = options.withheld, options.lost_after, options.comes_after, options.hanging
                runs.append(Run(own, each.seed, sigma, options.slow, *late, options.plans))
            even = spec_of(options.board, options.questions, "uniform", spend="time")
            uniform = [Run(replace(even, seed=seed), seed, sigma, options.slow) for seed in seeds]
            for run in (*runs, *uniform):
                run.go(slots)
            time, trials = sum(run.now for run in runs), sum(run.trials for run in runs)
            used = np.mean([run.used(slots) for run in runs])
            print(
                f"{options.board} sigma {sigma} slow {options.slow:g} in flight {slots}: "
                f"used {used:.2f}, list {time / sum(run.listed(slots) for run in runs):.2f}, "
                f"trials {trials / least:.2f} ({trials / len(runs):.0f}), of uniform: "
                f"time {time / sum(run.now for run in uniform):.2f} "
                f"trials {trials / sum(run.trials for run in uniform):.2f}",
                flush=True,
            )
            if options.hanging:
                winners = sum(bool((abs(run.session.comparison.fold.verdict) == 1).any()) for run in runs)
                print(f"  runs in which a model is called better: {winners} of {len(runs)}")
            if options.withheld is not None:
                free = [Run(run.spec, run.seed, sigma, options.slow, plans=options.plans) for run in runs]
                for run in free:
                    run.go(slots)
                others = [run.of_others / of.of_others for run, of in zip(runs, free, strict=True)]
                first = [run.of_first / of.of_first for run, of in zip(runs, free, strict=True)]
                print(
                    f"  asked: others {np.mean(others):.2f} (most {max(others):.2f}), "
                    f"first {np.mean(first):.2f} ({min(first):.2f} to {max(first):.2f})"
                )
                for run in runs:
                    goal, fold = run.session.comparison.contrasts, run.session.comparison.fold
                    others = (goal.first != 0) & (goal.second != 0)
                    print(f"  calls missing {int((fold.verdict[others] == 0).sum())} of {others.sum()}")


if __name__ == "__main__":
    main()
