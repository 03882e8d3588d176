"""A run on a terminal: the live view, remarks, the summary, and streams that may go away."""

import asyncio
import errno
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TextIO, cast

import click

from adaptive_eval.config import RunConfig
from adaptive_eval.core.label_record import LABELS
from adaptive_eval.core.results import StopVerdict, to_json
from adaptive_eval.engine.events import Decided, Draining, Event, Observer, Progress, Remarked
from adaptive_eval.errors import codes_of
from adaptive_eval.run.execution import RunEnd
from adaptive_eval.run.interrupts import stop_instead
from adaptive_eval.run.observers import Console
from adaptive_eval.stops import REACHED, STOPS
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.views.advice import refused_words
from adaptive_eval.views.budgets import chance_words, hopeless_words, more_passes, raised_budgets
from adaptive_eval.views.live_terminal import LiveView, make_console
from adaptive_eval.views.numbers import listing
from adaptive_eval.views.reading import Attachment, Seen
from adaptive_eval.views.summary import RunHeader, RunSummary
from adaptive_eval.views.terminal import render_summary

REDRAWN = ("full", "compact")
"""Displays that are redrawn in place."""


class Terminal(Console):
    """The console of ``adaptive-eval run``."""

    def __init__(self, display: str | None) -> None:
        output = sys.stdout
        self._console = make_console(output.stream if isinstance(output, ForgivingStream) else None)
        self._console.file = output
        self._display = display

    def show_remark(self, text: str) -> None:
        """Print a remark: above a view that is redrawn, else on standard error."""
        if LiveView(self._display, console=self._console).display in REDRAWN:
            self._console.print(text, highlight=False, markup=False)
        else:
            with suppress(OSError):
                click.echo(text, err=True)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Show a spinner if the display is redrawn."""
        if LiveView(self._display, console=self._console).display in REDRAWN:
            return self._console.status(text, spinner="line")
        return nullcontext()

    @contextmanager
    def stoppable(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` at SIGINT and SIGTERM, and once if the terminal or the reader of a pipe goes."""
        loop = asyncio.get_running_loop()
        gone: list[bool] = []

        def leave() -> None:
            # A closed terminal tells so twice, by a signal and by an error; that is no second Ctrl-C.
            if not gone:
                gone.append(True)
                stop()

        heeds_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN  # as under nohup
        if heeds_hangup:
            loop.add_signal_handler(signal.SIGHUP, leave)
        output = sys.stdout
        if isinstance(output, ForgivingStream):
            output.on_lost = lambda: loop.call_soon_threadsafe(leave)
        try:
            with stop_instead(lambda: loop.call_soon_threadsafe(stop)):
                yield
        finally:
            if isinstance(output, ForgivingStream):  # the loop is gone when the summary is written
                output.on_lost = lambda: None
            if heeds_hangup:
                loop.remove_signal_handler(signal.SIGHUP)

    @contextmanager
    def watch(self, name: str, started_at: float | None, past: Sequence[Decided]) -> Iterator[Observer]:
        """Show the live view."""
        with LiveView(self._display, console=self._console) as live:
            watcher = _Watcher(RunHeader(name, started_at), live, self.show_remark)
            for event in past:
                watcher(event)
            yield watcher

    def show_end(self, directory: Path, config: RunConfig, ended: RunEnd) -> int:
        """Print verdict, ranking, the report's place and how to continue; return the exit code."""
        reason = ended.verdict.reason
        if not ended.asked:
            click.echo(f"{directory} is complete already; run --new starts over and keeps it.")
        assert ended.reports is not None
        with RunReader(directory) as reader:
            view = Attachment(reader, time.time).summary()
        self._console.print(render_summary(view, ended.reports.html))
        hopeless = ""
        if reason in ("budget", "max_passes"):
            hopeless = hopeless_words(view.results)
        if hopeless and ended.results.exit_code != REACHED:
            self._console.print(hopeless)
        elif refused := ended.verdict.evidence.get("refused"):
            for line in refused_words(refused, config, directory):
                self._console.print(line, soft_wrap=True, markup=False)
        elif STOPS[reason].to_continue and ended.results.exit_code != REACHED:
            words, options = _continuing(view, config, ended.verdict)
            command = ["adaptive-eval", "run", str(directory), *options]
            self._console.print(f"{words}: {shlex.join(command)}", soft_wrap=True)
        return ended.results.exit_code


class _Watcher:
    """Turns the engine's events into views."""

    def __init__(self, header: RunHeader, live: LiveView, say: Callable[[str], None]) -> None:
        self._seen = Seen(header)
        self._live = live
        self._say = say

    def __call__(self, event: Event) -> None:
        if isinstance(event, Decided):
            self._seen.decide(event.at, event.decisions)
        elif isinstance(event, Draining) and event.in_flight:
            noun = "answers"
            if event.in_flight == 1:
                noun = "answer"
            if event.reason == "interrupted":
                self._say(f"Stopping after {event.in_flight} {noun} in flight; Ctrl-C again cancels them.")
            elif event.reason == "budget":
                self._say(f"A budget has ended; waiting for {event.in_flight} {noun}. Ctrl-C cancels them.")
        elif isinstance(event, Remarked):
            self._say(event.text)
        elif isinstance(event, Progress):
            self._progress(event)

    def _progress(self, event: Progress) -> None:
        results = event.results
        record = SnapshotRecord(event.at, event.elapsed, results.trials, to_json(results), event.endpoints)
        self._live.update(self._seen.summary(record))


def _continuing(view: RunSummary, config: RunConfig, stop: StopVerdict) -> tuple[str, list[str]]:
    """Return what to say before the command that continues a run, and the options that it takes."""
    results, reason = view.results, stop.reason
    if results.rule == LABELS and reason in ("budget", "max_passes"):
        return "Label answers, or raise the budget, and continue with", []
    if reason == "max_passes":
        return STOPS[reason].to_continue + chance_words(results), ["-o", more_passes(results, config)]
    raised = [part for setting in raised_budgets(results, view.decisions, config) for part in ("-o", setting)]
    if raised:
        return STOPS["budget"].to_continue + chance_words(results), raised
    if reason == "partial" and stop.evidence.get("sample"):
        return "For verdicts about these questions alone, continue with", ["-o", "stopping.target=benchmark"]
    unusable = stop.evidence.get("unusable")
    if reason == "partial" and unusable:
        return (
            f"Change how answers of {listing(unusable)} count or are scored, as the warnings say (what is "
            "sent changes in a new run alone), and continue with"
        ), []
    if reason == "lost" and "warning/content-filter" in codes_of(results.warnings):
        return (
            "Remove the cause, which is named above, and continue; or count answers that a filter withheld "
            "as wrong, in a new run, with"
        ), ["--new", "-o", "on.content_filter=wrong"]
    return STOPS[reason].to_continue, []


class ForgivingStream:
    """A stream that falls silent if writing fails.

    A pipe into ``head``, a closed terminal and a full disk do not end a run at once: the answers in flight
    are paid for, and are stored first.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._lost = False
        self.on_lost: Callable[[], object] = lambda: None

    def write(self, text: str) -> int:
        """Write `text`, if possible."""
        if not self._lost:
            try:
                return self.stream.write(text)
            except OSError as error:
                self._lose(error)
        return len(text)

    def flush(self) -> None:
        """Flush, if possible."""
        if not self._lost:
            try:
                self.stream.flush()
            except OSError as error:
                self._lose(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _lose(self, error: OSError) -> None:
        self._lost = True
        # What is still buffered must not fail at exit either.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.stream.fileno())
        os.close(nowhere)
        if error.errno != errno.ENOSPC:
            self.on_lost()


@contextmanager
def lasting_streams() -> Iterator[None]:
    """Let standard output and error be streams that fall silent, within this context."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", ForgivingStream(stream)) for stream in before)
    try:
        yield
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        sys.stdout, sys.stderr = before
