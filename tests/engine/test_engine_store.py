"""The runner with a real store, real time and a thread for the commits."""

import asyncio
import threading

import pytest
from scripted import Prompts, ScoreByStep, ScriptedController, ScriptedEndpoint

from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.ledger import ThreadCommitter
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.runner import Runner
from adaptive_eval.store.writer import RunWriter


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
        clients = {"a": ModelClient([ScriptedEndpoint(0.001)], FixedConcurrency(20))}
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
