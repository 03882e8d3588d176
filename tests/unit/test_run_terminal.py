"""A run's terminal whose reader leaves."""

import asyncio
import os
import sys

import pytest

from adaptive_eval.cli.run_terminal import Stream, Terminal
from adaptive_eval.engine.events import Draining


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


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("interrupted", "Stopping after 2 answers in flight; Ctrl-C again cancels them.\n"),
        ("budget", "A budget has ended; waiting for 2 answers. Ctrl-C cancels them.\n"),
        ("resolved", ""),
    ],
)
def test_a_run_says_that_it_waits_for_answers_in_flight(reason, text, capsys):
    with Terminal("none").watch("run", None, []) as observer:
        observer(Draining(reason, 2))
        observer(Draining(reason, 0))
    assert capsys.readouterr().err == text
