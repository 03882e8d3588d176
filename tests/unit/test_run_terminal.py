"""A run's terminal whose reader leaves."""

import asyncio
import os
import sys

import pytest
import standings_examples as examples

from adaptive_eval.cli.run_terminal import Stream, Terminal
from adaptive_eval.engine.events import Decided, Draining, Progress


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


def test_decisions_of_earlier_sessions_keep_their_times(capsys):
    first, *others = examples.decisions_of(examples.finished())
    with Terminal("plain").watch("run", None, [Decided(60.0, (first,))]) as observer:
        observer(Decided(120.0, tuple(others)))
        observer(Progress(180.0, 20.0, examples.finished(), ()))
    lines = capsys.readouterr().out.splitlines()
    times = [line.split()[0] for line in lines if " decision " in line]
    assert times == ["1970-01-01T00:01:00Z", *["1970-01-01T00:02:00Z"] * len(others)]
