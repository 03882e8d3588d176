"""What a server that hangs, or pauses, costs a run: engine and session in virtual time, scripted servers.

    python benchmarks/hung_server.py
    python benchmarks/hung_server.py --answers 0.3 0.7 --begins 0 3 --rates 0.3 0.5 0.7
    python benchmarks/hung_server.py --answers 0.3 0.7 --begins --pauses 0 6 --least 10 5

One of five servers accepts requests and answers none, from the start or from a later moment on. With
`--pauses` all servers are healthy, and each stands still now and then for so many seconds. `--least` gives
the fewest seconds after which a server counts as silent; the same runs are made with each.

A row: the time over that of the same run where nothing hangs or pauses, on the average and at most; the times
that a server was called silent; the attempts that failed, each of which has lost a draw and is asked twice;
the trials over those of that run; the pairs with a wrong winner.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.engine.pool import Silence
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.store.records import SEED_TEST
from adaptive_eval.trial import Completion, Score, TrialRequest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engine"))
SERVERS, QUESTIONS, IN_FLIGHT = 5, 200, 16
TIMEOUT = 600.0
LONGEST = 20_000.0
"""Seconds after which no server pauses any more."""


@dataclass
class Coins:
    """Scores by what a model would answer at this step, whoever answered and whenever."""

    rates: dict[str, float]
    seed: int

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        """Return the score of an answer."""
        key = request.key
        shift = random.Random(f"{self.seed} {request.question}").gauss(0.0, 0.15)
        luck = random.Random(f"{self.seed} {key.model} {key.index}").random()
        return Score(int(luck < self.rates[key.model] + shift), completion.text)


@dataclass
class Pauses:
    """When a server stands still."""

    every: float  # seconds between two, on the average
    seconds: float
    rng: random.Random
    starts: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        at = 0.0
        while self.seconds > 0.0 and at < LONGEST:
            at += self.rng.expovariate(1.0 / self.every)
            self.starts.append(at)
            at += self.seconds

    def took(self, now: float, seconds: float) -> float:
        """Return what a request of so many seconds takes from now on."""
        end = now + seconds
        for start in self.starts:
            if start >= end:
                break
            if start + self.seconds > now:
                end += start + self.seconds - max(start, now)
        return end - now


@dataclass(frozen=True)
class Servers:
    """How long the answers of each server take."""

    answers: tuple[float, float]
    sigma: float  # of the logarithm of these seconds, about their mean; 0: all between the two alike
    slow: float  # times that the first server takes longer
    every: float
    together: bool

    def scripts(self, seed: int, pause: float, begins: float | None) -> list[Callable[[int, int], object]]:
        """Return the scripts of servers that pause, and of which the last hangs from `begins` on."""

        def seconds(number: int) -> float:
            rng = random.Random(number)
            if self.sigma > 0.0:
                return sum(self.answers) / 2.0 * rng.lognormvariate(0.0, self.sigma)
            return rng.uniform(*self.answers)

        def script(server: int, pauses: Pauses, number: int, attempt: int) -> object:
            now = asyncio.get_running_loop().time()
            if server == SERVERS - 1 and begins is not None and now >= begins:
                return TIMEOUT, TransientEndpointError("no answer", kind="timeout")
            times = self.slow if server == 0 else 1.0
            return pauses.took(now, times * seconds(number))

        found: list[Callable[[int, int], object]] = []
        for server in range(SERVERS):
            rng = random.Random(f"{seed} {0 if self.together else server}")
            found.append(partial(script, server, Pauses(self.every, pause, rng)))
        return found


@dataclass
class Played:
    """A run that has ended."""

    seconds: float
    silent: int
    failed: int
    trials: int
    wrong: int


def played(
    rates: list[float], servers: Servers, seed: int, least: float, *, pause: float, begins: float | None
) -> Played:
    """Return the figures of a run."""
    names = [f"model {number}" for number in range(len(rates))]
    scene = import_module("scene").Scene(dict.fromkeys(names, 0), concurrency=IN_FLIGHT)
    questions = tuple(map(str, range(QUESTIONS)))
    scene.controller = session = Session(
        SessionSpec(
            models=tuple(ModelSpec(name) for name in names),
            tasks=(TaskSpec("task", questions),),
            stopping=StoppingSpec(equivalence=0.05, max_passes=20),
            seed=seed,
        )
    )
    scene.scoring = Coins(dict(zip(names, rates, strict=True)), seed)
    server = import_module("scripted").ScriptedEndpoint
    scripts = servers.scripts(seed, pause, begins)
    pools = {
        name: [server(script, f"http://gpu{number}/v1") for number, script in enumerate(scripts)]
        for name in names
    }
    scene.pool = pools.__getitem__
    fleet: Any = import_module("adaptive_eval.engine.fleet")
    answers = 10**9 if least == LONGEST else Silence().answers  # nothing counts as silent there
    fleet.Silence = partial(Silence, least=least, answers=answers)

    async def main() -> float:
        await scene.unchecked()
        return asyncio.get_running_loop().time()

    seconds: float = import_module("owned_clock").run_owned(main())
    silent = sum(": silent for" in text for text in scene.remarks)
    wrong = 0
    results = session.results()
    for pair in results.pairs:
        better = scene.scoring.rates[pair.first] - scene.scoring.rates[pair.second]
        wrong += (pair.verdict == "better" and better <= 0.0) or (pair.verdict == "worse" and better >= 0.0)
    failed = sum(attempt.error != SEED_TEST for attempt in scene.failed)
    return Played(seconds, silent, failed, results.trials, wrong)


def main() -> None:
    """Print a row for each moment at which the server begins to hang, and for each pause."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--answers", type=float, nargs=2, default=[3.0, 7.0], help="seconds, least and most")
    parser.add_argument("--sigma", type=float, default=0.0, help="of the log of these seconds")
    parser.add_argument("--slow", type=float, default=1.0, help="times that the first server takes longer")
    parser.add_argument("--begins", type=float, nargs="*", default=[0.0, 30.0], help="seconds")
    parser.add_argument("--pauses", type=float, nargs="*", default=[], help="seconds of each")
    parser.add_argument("--every", type=float, default=60.0, help="seconds between two, on the average")
    parser.add_argument("--together", action="store_true", help="all servers pause at the same time")
    parser.add_argument("--least", type=float, nargs="+", default=[Silence().least], help="seconds")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.42, 0.5, 0.58], help="of right answers")
    options = parser.parse_args()
    servers = Servers(options.answers, options.sigma, options.slow, options.every, options.together)
    seeds = range(1, options.runs + 1)

    def all_of(least: float, pause: float, begins: float | None) -> list[Played]:
        return [played(options.rates, servers, seed, least, pause=pause, begins=begins) for seed in seeds]

    free = all_of(LONGEST, 0.0, None)
    without = np.array([one.seconds for one in free])
    print(f"nothing hangs or pauses: {without.mean():.1f} s, {sum(one.wrong for one in free)} wrong")
    scenes: list[tuple[str, float, float | None]] = []
    scenes += [(f"hangs from {begins:g} s", 0.0, begins) for begins in options.begins]
    scenes += [(f"pauses of {pause:g} s", pause, None) for pause in options.pauses]
    for words, pause, begins in scenes:
        for least in options.least:
            found = all_of(least, pause, begins)
            times = np.array([one.seconds for one in found])
            trials = sum(one.trials for one in found) / sum(one.trials for one in free)
            print(
                f"{words}, {least:g} s: time {times.sum() / without.sum():.2f} (most "
                f"{(times / without).max():.2f}), silent {np.mean([one.silent for one in found]):.1f}, "
                f"{np.mean([one.failed for one in found]):.1f} attempts failed, trials {trials:.3f}, "
                f"{sum(one.wrong for one in found)} wrong",
                flush=True,
            )


if __name__ == "__main__":
    main()
