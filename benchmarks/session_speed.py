"""Time the session itself: ask and tell, replay, simulated runs, memory.

    python benchmarks/session_speed.py [--profile] [--only ask-tell,ask,replay,simulate,memory]

CPU seconds of this process, so that a busy machine distorts little; the simulation is timed by the clock.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import resource
import time
import tracemalloc
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.executors.processes import available_cores
from adaptive_eval.simulate import BiasedCoins, simulate
from adaptive_eval.trial import TrialKey, TrialOutcome, TrialRequest
from scorio.study import PAPER_MEANS, biased_coins

CYCLE = 2500
"""Answers of each model that are drawn ahead."""


def make_spec(models: int, questions: int, **stopping: object) -> SessionSpec:
    return SessionSpec(
        tuple(ModelSpec(f"m{number}") for number in range(models)),
        (TaskSpec("t", tuple(f"q{number}" for number in range(questions))),),
        stopping=StoppingSpec(**stopping),  # type: ignore[arg-type]
    )


def ask_and_tell(
    spec: SessionSpec,
    answers: dict[str, list[int]],
    batch: int,
    slots: int,
    trials: int,
    calls: list[float] | None = None,
) -> int:
    """Drive a session as the engine does, with so many slots a model; return the trials that were told.

    The CPU seconds of each `ask` are added to `calls`.
    """
    session = Session(spec)
    free = {model.name: slots for model in spec.models}
    done, waiting = 0, deque[TrialRequest]()
    while session.stopped is None and done < trials:
        begin = time.process_time()
        issued = session.ask(free)
        if calls is not None:
            calls.append(time.process_time() - begin)
        waiting.extend(issued)
        ended = [waiting.popleft() for _ in range(min(batch, len(waiting)))]
        for one in issued:
            free[one.key.model] -= 1
        for one in ended:
            free[one.key.model] += 1
        session.tell([TrialOutcome(one.key, answers[one.key.model][one.key.index % CYCLE]) for one in ended])
        done += len(ended)
    return done


def ask_nobody(names: Sequence[str], answers: dict[str, list[int]], batch: int, trials: int) -> int:
    """Make the same requests and outcomes and count them, without a session: what the loop itself costs."""
    counts: Counter[tuple[str, int]] = Counter()
    done = 0
    while done < trials:
        numbers = range(done, done + batch)
        requests = [
            TrialRequest(TrialKey(names[one % len(names)], one // len(names)), "t", "q", 0, one)
            for one in numbers
        ]
        outcomes = [TrialOutcome(one.key, answers[one.key.model][one.key.index % CYCLE]) for one in requests]
        counts.update((one.key.model, one.category) for one in outcomes)
        done += batch
    return done


def micros(work: Callable[[], int]) -> float:
    """Return the CPU time of a trial, in microseconds."""
    gc.collect()
    begin = time.process_time()
    done = work()
    return 1e6 * (time.process_time() - begin) / done


def time_ask_tell() -> None:
    """Print the best of three: a busy machine can only take longer."""
    for models, batch, slots, trials, target in (
        (11, 64, 12, 12_000, 20),
        (50, 64, 12, 25_000, 20),
        (11, 1, 6, 3_000, 50),
        (50, 1, 6, 5_000, 50),
    ):
        spec = make_spec(models, 500, equivalence=0.03, max_passes=5)
        names, answers = [one.name for one in spec.models], drawn_answers(spec)
        nobody = partial(ask_nobody, names, answers, batch, trials)
        loop = min(micros(nobody) for _ in range(3))
        someone = partial(ask_and_tell, spec, answers, batch, slots, trials)
        taken = min(micros(someone) for _ in range(3))
        print(
            f"ask + tell, {models} models x 500 questions, batches of {batch}, {slots} slots a model: "
            f"{taken:.1f} µs a trial, {taken / loop:.1f} times a loop that only counts ({loop:.1f} µs; "
            f"target {target})"
        )


def time_ask() -> None:
    """Print what asking alone takes with 2,000 trials in flight, the best of three, and its longest call."""
    models, slots, trials = 100, 20, 20_000
    for questions, batch in ((100, 64), (500, 64), (100, 1)):
        spec = make_spec(models, questions, equivalence=0.03, max_passes=5)
        answers = drawn_answers(spec)
        nobody = partial(ask_nobody, [one.name for one in spec.models], answers, 64, trials)
        loop = min(micros(nobody) for _ in range(3))
        turns = []
        for _ in range(3):
            calls: list[float] = []
            done = ask_and_tell(spec, answers, batch, slots, trials if batch > 1 else 4_000, calls)
            turns.append((1e6 * sum(calls) / done, 1e3 * max(calls[1:])))
        taken, longest = min(turns)
        print(
            f"ask, {models} models x {questions} questions, {models * slots:,} in flight, batches of "
            f"{batch}: {taken:.0f} µs a trial, {taken / loop:.1f} times a loop that only counts "
            f"({loop:.1f} µs); longest call after the first {longest:.0f} ms (target 60 µs)"
        )


def drawn_answers(spec: SessionSpec) -> dict[str, list[int]]:
    """Return right or wrong answers of each model, in whose cycle every question has its chance."""
    means, questions = np.linspace(0.2, 0.8, len(spec.models)), spec.questions
    chances = biased_coins(means, questions, seed=1, correlation=0.5).p
    drawn = np.random.default_rng(1).random((means.size, CYCLE)) < np.tile(chances, CYCLE // questions)
    return {one.name: row.astype(int).tolist() for one, row in zip(spec.models, drawn, strict=True)}


def time_replay() -> None:
    """Replay 20 models x 30 questions x 80 trials on four benchmarks: the paper's 192,000 trials."""
    means = np.linspace(0.2, 0.8, 20)
    seconds, trials = 0.0, 0
    for benchmark in range(4):
        chances = biased_coins(means, 30, seed=benchmark, correlation=0.5).p
        session = Session(make_spec(20, 30, equivalence=0.03, max_passes=80))
        rng = np.random.default_rng(benchmark)
        questions = session.board.run_sequence.sequences[0].question(0, 2400)
        outcomes = (rng.random((20, 2400)) < chances[:, questions]).astype(int)
        log = [
            [
                TrialOutcome(TrialKey(f"m{model}", step), int(outcomes[model, step]))
                for step in range(start, start + 200)
                for model in range(20)
            ]
            for start in range(0, 2400, 200)
        ]
        begin = time.process_time()
        session.replay(log)
        seconds += time.process_time() - begin
        trials += outcomes.size
    print(
        f"replay of {trials:,} trials: {seconds:.1f} s, {1e6 * seconds / trials:.1f} µs a trial (target 10 s)"
    )


def time_simulation() -> None:
    runs = 1000
    spec = make_spec(11, 30, equivalence=0.03, max_passes=80)
    begin = time.perf_counter()
    result = simulate(spec, BiasedCoins(PAPER_MEANS), runs, seed=1, in_flight=1)
    seconds = time.perf_counter() - begin
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{runs} runs of the 11 coins ({result.total.mean():,.0f} trials each): {seconds:.0f} s by the "
        f"clock, {used.ru_utime + used.ru_stime:.0f} CPU seconds on {available_cores()} cores "
        "(target 120 s on 2)"
    )
    begin_cpu = time.process_time()
    simulate(spec, BiasedCoins(PAPER_MEANS), 5, seed=1, in_flight=64, workers=1)
    print(f"one such run with 64 in flight, asked and told: {(time.process_time() - begin_cpu) / 5:.2f} s")


def measure_memory() -> None:
    """Replay one trial of every cell of 100 models x 14,000 questions, as a run file hands them out."""
    models, questions, steps = 100, 14_000, 40
    rng = np.random.default_rng(1)

    def log() -> Iterator[list[TrialOutcome]]:
        for start in range(0, questions, steps):
            outcomes = rng.integers(0, 2, (steps, models)).tolist()
            yield [
                TrialOutcome(TrialKey(f"m{model}", start + step), outcomes[step][model])
                for step in range(steps)
                for model in range(models)
            ]

    tracemalloc.start()
    session = Session(make_spec(models, questions, equivalence=0.001, max_passes=80))
    start_up, _ = tracemalloc.get_traced_memory()
    session.replay(log())
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"state at {models} models x {questions:,} questions: {start_up / 1e6:.0f} MB at the start, "
        f"{now / 1e6:.0f} MB after {session.budget.completed:,} trials (target 50); "
        f"with temporary arrays at most {peak / 1e6:.0f} MB"
    )


SECTIONS: dict[str, Callable[[], None]] = {
    "ask-tell": time_ask_tell,
    "ask": time_ask,
    "replay": time_replay,
    "simulate": time_simulation,
    "memory": measure_memory,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    given = parser.parse_args(arguments)
    profile = cProfile.Profile() if given.profile else None
    for name in given.only.split(","):
        if name not in SECTIONS:
            parser.error(f"--only {name}: choose from {', '.join(SECTIONS)}")
        if profile is not None:
            profile.runcall(SECTIONS[name])
        else:
            SECTIONS[name]()
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
