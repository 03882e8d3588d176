"""What a server that hangs costs a run: the engine and a session in virtual time, with scripted servers.

    python benchmarks/hung_server.py
    python benchmarks/hung_server.py --answers 0.3 0.7 --begins 0 3 --rates 0.3 0.5 0.7

One of five servers accepts requests and answers none, from the start or from a later moment on. A row: the
time over that of the same run without it, on the average and at most, and the attempts that failed, each of
which has lost a draw.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.trial import Completion, Score, TrialRequest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "engine"))
SERVERS, QUESTIONS, IN_FLIGHT = 5, 200, 16
TIMEOUT = 600.0


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


def played(rates: list[float], answers: tuple[float, float], seed: int, begins: float | None) -> Any:
    """Return the scene of a run whose last server hangs from `begins` on."""
    names = [f"model {number}" for number in range(len(rates))]
    scene = import_module("scene").Scene(dict.fromkeys(names, 0), concurrency=IN_FLIGHT)
    questions = tuple(map(str, range(QUESTIONS)))
    scene.controller = Session(
        SessionSpec(
            models=tuple(ModelSpec(name) for name in names),
            tasks=(TaskSpec("task", questions),),
            stopping=StoppingSpec(equivalence=0.05, max_passes=20),
            seed=seed,
        )
    )
    scene.scoring = Coins(dict(zip(names, rates, strict=True)), seed)

    def seconds(number: int, attempt: int) -> float:
        return random.Random(number).uniform(*answers)

    def hung(number: int, attempt: int) -> object:
        if begins is None or asyncio.get_running_loop().time() < begins:
            return seconds(number, attempt)
        return TIMEOUT, TransientEndpointError("no answer", kind="timeout")

    server = import_module("scripted").ScriptedEndpoint
    scripts = [seconds] * (SERVERS - 1) + [hung]
    pools = {
        name: [server(script, f"http://gpu{number}/v1") for number, script in enumerate(scripts)]
        for name in names
    }
    scene.pool = pools.__getitem__

    async def main() -> None:
        await scene.unchecked()
        scene.seconds = asyncio.get_running_loop().time()

    import_module("owned_clock").run_owned(main())
    return scene


def main() -> None:
    """Print a row for each moment at which the server begins to hang."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--answers", type=float, nargs=2, default=[3.0, 7.0], help="seconds, least and most")
    parser.add_argument("--begins", type=float, nargs="+", default=[0.0, 30.0], help="seconds")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.42, 0.5, 0.58], help="of right answers")
    options = parser.parse_args()
    seeds = range(1, options.runs + 1)
    free = [played(options.rates, options.answers, seed, None) for seed in seeds]
    without = np.array([scene.seconds for scene in free])
    for begins in options.begins:
        scenes = [played(options.rates, options.answers, seed, begins) for seed in seeds]
        times = np.array([scene.seconds for scene in scenes])
        failed = np.mean([len(scene.failed) for scene in scenes])
        print(
            f"hangs from {begins:g} s: time {times.sum() / without.sum():.2f} (most "
            f"{(times / without).max():.2f}; {without.mean():.1f} s without), {failed:.1f} attempts failed",
            flush=True,
        )


if __name__ == "__main__":
    main()
