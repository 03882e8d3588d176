"""Scripted scenes run to their end under an owned clock."""

import asyncio

from owned_clock import run_owned
from scripted import Scene

from adaptive_eval.core.results import StopVerdict


def run(scene: Scene) -> StopVerdict:
    """Run `scene` and return its verdict."""
    return run_owned(scene.run())


def elapsed(scene: Scene) -> tuple[StopVerdict, float]:
    """Run `scene`; return verdict and seconds."""

    async def main() -> tuple[StopVerdict, float]:
        async with asyncio.timeout(1e5):
            verdict = await scene.run()
        return verdict, asyncio.get_running_loop().time()

    return run_owned(main())


def interrupted(scene: Scene, *times: float) -> tuple[StopVerdict, float]:
    """Run `scene` with a request to stop at each of `times`; return verdict and seconds."""

    async def main() -> tuple[StopVerdict, float]:
        runner = scene.runner()
        loop = asyncio.get_running_loop()
        for at in times:
            loop.call_at(at, runner.request_stop)
        verdict = await runner.run()
        return verdict, loop.time()

    found = run_owned(main())
    scene.check()
    scene.check_all_ended()
    return found


def answered_once(scene: Scene, trials: int, stop_at: float | None) -> None:
    """Run `scene`, to `stop_at` at most; check that no model is stopped and each trial is answered once."""
    interrupted(scene, *(() if stop_at is None else (stop_at,)))
    assert not scene.missing()
    assert not scene.controller.stopped_models
    answered = [record.key for record in scene.recorder.of("attempt") if record.error is None]
    assert sorted(answered, key=str) == sorted(scene.recorder.outcomes, key=str)
    if stop_at is None:
        assert len(answered) == trials
