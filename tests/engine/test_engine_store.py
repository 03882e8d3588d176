"""The runner with a real store, real time and a thread for the commits."""

import asyncio
import threading

import pytest
from scene import Scene

from adaptive_eval.engine.ledger import ThreadCommitter
from adaptive_eval.store.writer import RunWriter


def test_the_event_loop_goes_on_while_the_disk_works(tmp_path, monkeypatch):
    """No commit is done before the event loop has gone on."""
    gone_on, commits, commit = threading.Event(), [], RunWriter.commit

    def slowly(writer):
        gone_on.clear()
        commits.append(gone_on.wait(60.0))
        return commit(writer)

    async def main(writer):
        async def watch():
            while True:
                await asyncio.sleep(0.001)
                gone_on.set()

        scene = Scene(40, 0.001, 20, committer=ThreadCommitter())
        scene.recorder = writer
        watching = asyncio.create_task(watch())
        await scene.unchecked()
        watching.cancel()

    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        monkeypatch.setattr(RunWriter, "commit", slowly)
        asyncio.run(main(writer))
        monkeypatch.undo()
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
