"""Clocks that jump: a laptop that sleeps, a machine that is suspended, a wall clock that is set."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event

import pytest
from owned_clock import OwnedClock, OwnedClockLoop, run_owned
from scene import Scene

from adaptive_eval.core.results import from_json
from adaptive_eval.engine.clock import LONGEST_PAUSE, Deadlines, Stopwatch, SystemClock
from adaptive_eval.engine.runner import RunnerOptions
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.views.summary import RunHeader, summary_at

NIGHT = 8 * 3600.0
TIMEOUT = 600.0


@dataclass
class Sleeper(OwnedClock):
    """A machine that goes to sleep for a night at second `after` of an owned clock, once.

    Its monotonic clock goes on meanwhile, or stands still; the clock on the wall goes on anyway. Connections
    are dead in the morning: what was out is never answered.
    """

    after: float
    monotonic: bool
    woken: bool = False

    def time(self) -> float:
        return super().time() + (NIGHT if self.woken and not self.monotonic else 0.0)

    async def sleep_through_the_night(self) -> None:
        await asyncio.sleep(self.after)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, OwnedClockLoop)
        self.woken = True
        if self.monotonic:
            loop.elapsed += NIGHT

    def let_connections_die(self, scene: Scene) -> None:
        """Let requests end with a timeout as a client's do, and those of the evening never be answered."""
        for endpoint in scene.endpoints.values():
            complete = endpoint.complete

            async def timed(messages, *, seed, complete=complete):
                evening = not self.woken
                try:
                    async with asyncio.timeout(TIMEOUT):
                        answer = await complete(messages, seed=seed)
                        while evening and self.woken:
                            await asyncio.sleep(TIMEOUT)
                        return answer
                except TimeoutError:
                    raise TransientEndpointError("no answer", kind="timeout") from None

            endpoint.complete = timed  # type: ignore[method-assign]


def asleep(scene: Scene, after: float, *, monotonic: bool) -> None:
    """Run a scene on a machine that falls asleep."""
    sleeper = Sleeper(after, monotonic)
    scene.clock = sleeper
    sleeper.let_connections_die(scene)

    async def main() -> None:
        sleeping = asyncio.create_task(sleeper.sleep_through_the_night())
        await scene.run()
        await sleeping

    run_owned(main())


@pytest.mark.parametrize("monotonic", [True, False], ids=["the clock goes on", "the clock stands still"])
def test_a_night_s_sleep_costs_an_attempt_and_no_running_time(monotonic):
    """What was out times out, at once or after its time; nothing is missing, no deadline is reached."""
    scene = Scene(
        dict.fromkeys("ab", 400),
        lambda step, attempt: 3.0 + step % 5,
        concurrency=16,
        options=RunnerOptions(deadlines=Deadlines(3600.0)),
        jitter=lambda: 0.5,
    )
    asleep(scene, 10.0, monotonic=monotonic)
    assert scene.verdict.reason == "resolved"
    assert not scene.missing()
    assert len(scene.recorder.outcomes) == 800
    attempts = [count for endpoint in scene.endpoints.values() for count in endpoint.attempts.values()]
    assert max(attempts) == 2
    assert 20 < attempts.count(2) <= 32
    last = scene.recorder.of("snapshot")[-1]
    assert 100.0 < last.elapsed < 250.0 + (0.0 if monotonic else TIMEOUT)


def test_the_deadline_is_held_after_the_night():
    options = RunnerOptions(deadlines=Deadlines(50.0))
    scene = Scene(10_000, options=options, jitter=lambda: 0.5)
    asleep(scene, 20.0, monotonic=True)
    assert list(scene.verdict.evidence["used"]) == ["wall_clock"]
    assert 50.0 <= scene.recorder.of("snapshot")[-1].elapsed < 55.0


class SteppedClock(OwnedClock):
    """A clock on the wall that is set at certain moments."""

    def __init__(self, steps: Callable[[float], float]) -> None:
        self.steps = steps

    def time(self) -> float:
        return super().time() + self.steps(self.now())


@pytest.mark.parametrize(
    "step", [-86_400.0, 86_400.0, -3600.0], ids=["a day back", "a day on", "an hour back"]
)
def test_a_wall_clock_that_is_set_changes_nothing_but_time_stamps(tmp_path, step):
    clock = SteppedClock(lambda now: step if now > 20.0 else 0.0)
    scene = Scene(200, clock=clock, options=RunnerOptions(deadlines=Deadlines(40.0)), jitter=lambda: 0.5)
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        scene.recorder = writer  # type: ignore[assignment]
        run_owned(scene.unchecked())
    assert list(scene.verdict.evidence["used"]) == ["wall_clock"]
    with RunReader(tmp_path / "run") as reader:
        stored = [outcome.key for batch in reader.log() for outcome in batch]
        latest = reader.latest_snapshot()
    assert sorted(stored, key=str) == sorted((outcome.key for outcome in scene.controller.told), key=str)
    assert latest is not None
    assert 40.0 <= latest.elapsed < 45.0
    assert from_json(latest.results).stop == scene.verdict
    assert summary_at(RunHeader("demo"), latest).state == "stopped"


class SetClock:
    seconds = 0.0

    def now(self) -> float:
        return self.seconds


def test_a_stopwatch_leaves_out_what_no_running_process_can_take():
    clock = SetClock()
    watch = Stopwatch(clock, elapsed=7.0)  # type: ignore[arg-type]
    clock.seconds += LONGEST_PAUSE
    assert watch.running_time() == 7.0 + LONGEST_PAUSE
    clock.seconds += LONGEST_PAUSE + 0.1
    assert watch.running_time() == 7.0 + LONGEST_PAUSE
    clock.seconds -= 1000.0
    assert watch.running_time() == 7.0 + LONGEST_PAUSE
    clock.seconds += 1.0
    assert watch.running_time() == 8.0 + LONGEST_PAUSE
    clock.seconds += 500.0
    watch.start()
    assert watch.running_time() == 8.0 + LONGEST_PAUSE


def test_a_stall_counts_and_a_sleep_does_not():
    clock, used, beats = SetClock(), [0.0], [0.0]
    watch = Stopwatch(clock, processor=lambda: used[0], heartbeat=lambda: beats[0])  # type: ignore[arg-type]
    clock.seconds += 3600.0
    assert (watch.running_time(), watch.longest_stall) == (0.0, 0.0)
    clock.seconds, used[0] = clock.seconds + 90.0, 80.0
    assert (watch.running_time(), watch.longest_stall) == (90.0, 90.0)
    clock.seconds, used[0] = clock.seconds + 90.0, 81.0  # woken for a moment
    assert watch.running_time() == 90.0
    clock.seconds, beats[0] = clock.seconds + 60.0, 55.0  # the loop waits for a disk, other threads run
    assert watch.running_time() == 150.0
    clock.seconds, beats[0] = clock.seconds + 3600.0, 56.0
    assert watch.running_time() == 150.0


def test_the_heartbeat_counts_while_the_main_thread_waits():
    heartbeat = Stopwatch(SystemClock()).heartbeat  # what a run uses
    before, waited = heartbeat(), Event()
    while heartbeat() == before:
        waited.wait(0.01)
    assert heartbeat() > before


def test_a_deadline_nearer_than_the_clock_can_tell_is_reached():
    """Sums of pauses and the clock differ in their last digits; after months no smaller step is a step."""
    scene = Scene(10_000, options=RunnerOptions(deadlines=Deadlines(10.1), elapsed=0.3))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.elapsed += 2.0**20 + 0.1
        await scene.run()

    run_owned(main())
    assert list(scene.verdict.evidence["used"]) == ["wall_clock"]
