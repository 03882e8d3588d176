"""A run's terminal whose reader leaves."""

import asyncio
import os
import sys

from adaptive_eval.cli.run_terminal import Stream, Terminal


def test_a_reader_that_leaves_while_the_summary_is_written_is_no_error(monkeypatch):
    reader, writer = os.pipe()
    stopped = []

    async def run() -> None:
        with Terminal("none").stoppable(lambda: stopped.append(True)):
            pass

    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", Stream(stream))
        asyncio.run(run())
        os.close(reader)
        print("the summary")
        sys.stdout.flush()
        monkeypatch.undo()
    assert not stopped
