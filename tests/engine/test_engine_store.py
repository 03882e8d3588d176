"""The runner with a real store, real time and a thread for the commits; once also over real HTTP."""

import asyncio
import threading
from contextlib import AsyncExitStack

import pytest
from scripted import Prompts, ScoreByStep, ScriptedController, ScriptedEndpoint

from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.ledger import ThreadCommitter
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.engine.runner import Runner, RunnerOptions
from adaptive_eval.mimic.mimic_spec import (
    FaultSpec,
    KnownQuestion,
    LatencySpec,
    MimicSpec,
    ModelSpec,
)
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Message, Missing

QUICK = RetryPolicy(attempts=4, base=0.001, cap=0.01)


def run(directory, controller, clients, **changes):
    parts = {"prompts": Prompts(), "executor": InProcess(ScoreByStep()), **changes}

    async def main(writer):
        return await Runner(controller, writer, clients, **parts).run()

    with RunWriter.create(directory, meta={}) as writer:
        return asyncio.run(main(writer))


def test_the_event_loop_goes_on_while_the_disk_works(tmp_path):
    class SlowDisk:
        """A recorder whose commits are not done before the event loop has gone on."""

        def __init__(self, writer):
            self.launch, self.attempt, self.outcome = writer.launch, writer.attempt, writer.outcome
            self.decision, self.snapshot = writer.decision, writer.snapshot
            self._commit = writer.commit

        def commit(self):
            gone_on.clear()
            commits.append(gone_on.wait(60.0))
            return self._commit()

    gone_on, commits = threading.Event(), []

    async def main(writer):
        async def watch():
            while True:
                await asyncio.sleep(0.001)
                gone_on.set()

        controller = ScriptedController({"a": 40}, [])
        clients = {"a": ModelClient([ScriptedEndpoint(lambda step, attempt: 0.001)], FixedConcurrency(20))}
        runner = Runner(
            controller, SlowDisk(writer), clients, prompts=Prompts(), executor=InProcess(ScoreByStep())
        )
        watching = asyncio.create_task(watch())
        await runner.run()
        watching.cancel()

    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        asyncio.run(main(writer))
    assert len(commits) > 1
    assert all(commits), "a commit has held up the loop"


def test_a_cancelled_commit_is_waited_for():
    async def main():
        done, begun, go_on = [], threading.Event(), threading.Event()

        def commit():
            begun.set()
            done.append(go_on.wait(60.0))
            return 0

        committer = ThreadCommitter()
        task = asyncio.create_task(committer.commit(commit))
        await asyncio.to_thread(begun.wait, 60.0)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        committer.close()
        return done

    assert asyncio.run(main()) == [True]


def cows(step):
    return f"A farmer has {step % 30} cows and buys 4 more. How many has he now?"


class CowPrompts:
    def messages(self, request):
        return [Message("user", cows(request.key.index))]


@pytest.mark.slow
def test_over_http_against_servers_that_misbehave(tmp_path):
    faults = (
        FaultSpec(kind="status", probability=0.05, status=503),
        FaultSpec(kind="drop", probability=0.05, after=0.5),
        FaultSpec(kind="malformed", probability=0.05),
        FaultSpec(kind="status", probability=0.05, status=429, retry_after=0.01),
        FaultSpec(kind="cut_off", probability=0.05, finish_reason="abort"),
    )
    quick = LatencySpec(median=0.002)
    spec = MimicSpec(
        models=(
            ModelSpec(name="rough", mean=0.5, faults=faults, latency=quick),
            ModelSpec(name="calm", mean=0.5, latency=quick),
            ModelSpec(name="closed", mean=0.5, faults=(FaultSpec(kind="status", status=401),)),
        ),
        questions=tuple(
            KnownQuestion(id=f"q{step}", question=cows(step), target=str(step + 4)) for step in range(30)
        ),
        seed=11,
    )
    controller = ScriptedController({"rough": 200, "calm": 200, "closed": 200}, [])

    async def main(url, writer):
        async with AsyncExitStack() as connections:
            clients = {}
            for name in controller.steps:
                chat = await connections.enter_async_context(OpenAIChat(url, name, concurrency=16))
                clients[name] = ModelClient([chat], FixedConcurrency(16), QUICK)
            return await Runner(
                controller,
                writer,
                clients,
                prompts=CowPrompts(),
                executor=InProcess(ScoreByStep()),
                options=RunnerOptions(allow_missing=True),
            ).run()

    with MimicProcess(spec) as mimic, RunWriter.create(tmp_path / "run", meta={}) as writer:
        verdict = asyncio.run(main(mimic.base_url, writer))
    assert verdict.reason == "resolved"
    assert set(controller.stopped_models) == {"closed"}
    assert "401" in controller.stopped_models["closed"]
    assert not any(isinstance(outcome, Missing) for outcome in controller.told)
    with RunReader(tmp_path / "run") as reader:
        stored = {(t.request.key.model, t.request.key.index) for t in reader.trials()}
        assert stored == {(name, step) for name in ("rough", "calm") for step in range(200)}
        kinds = {attempt.error for attempt in reader.attempts() if attempt.key.model == "rough"}
        assert {"server", "dropped", "malformed", "rate_limit", "aborted", None} == kinds
        texts = [t.completion.text for t in reader.trials()]
        assert all(texts)
