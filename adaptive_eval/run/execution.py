"""One sitting of a run: start or continue it, show it, end it, write its report."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    nullcontext,
    suppress,
)
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

import click

from adaptive_eval.build.assembly import Built, continue_run
from adaptive_eval.build.scorers import resume_accounts
from adaptive_eval.build.server_discovery import Finder
from adaptive_eval.build.workplace import workplace_of
from adaptive_eval.cli.exit_codes import exit_code_of_stop
from adaptive_eval.core.results import Decision, StopVerdict, from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.engine.events import Decided, Draining, Event, Progress, Remarked
from adaptive_eval.engine.independence import IndependenceAudit
from adaptive_eval.engine.protocols import Endpoint
from adaptive_eval.engine.runner import Runner
from adaptive_eval.monitor.live import LiveView
from adaptive_eval.monitor.snapshot import RunHeader, run_view
from adaptive_eval.report import write_reports
from adaptive_eval.run.collector import frozen
from adaptive_eval.run.ending import show_end
from adaptive_eval.run.observers import MetricsOptions, Outlets
from adaptive_eval.run.output import Output, console_on
from adaptive_eval.run.pilot import RUN_FILE, resumed, with_pilot
from adaptive_eval.run.pilot_adoption import adopt_pilot, past_runs, pilot_elapsed
from adaptive_eval.run.probe import probe_all, require_usable
from adaptive_eval.run.tracked_rubrics import track
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.text.stored import decision_from, started_at
from adaptive_eval.text.withdrawn import still_valid, withdrawals

__all__ = ["sit"]

REDRAWN = ("full", "compact")
"""Displays that are redrawn in place."""

RATE_SPAN = 15.0
"""Seconds over which the live view takes rates."""


@dataclass(frozen=True)
class _Front:
    """Everything through which the outside follows a sitting."""

    live: LiveView
    output: Output
    outlets: Outlets


@dataclass
class _Watcher:
    """Turns the engine's events into what the live view shows, and passes them on."""

    header: RunHeader
    front: _Front
    decisions: list[Decision]
    snapshots: list[SnapshotRecord] = field(default_factory=list)
    draining: bool = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, Decided):
            self.decisions.extend(event.decisions)
        elif isinstance(event, Draining):
            self.draining = True
            if event.reason == "interrupted" and event.in_flight:
                self._say_stopping(event.in_flight)
        elif isinstance(event, Remarked):
            _say(self.front.live, event.text)
        elif isinstance(event, Progress):
            results = event.results
            record = SnapshotRecord(
                event.at, event.elapsed, results.trials, to_json(results), event.endpoints
            )
            self.snapshots.append(record)
            while len(self.snapshots) > 2 and self.snapshots[1].elapsed < event.elapsed - RATE_SPAN:
                self.snapshots.pop(0)
            earlier = self.snapshots[0] if len(self.snapshots) > 1 else None
            self.front.live.update(run_view(self.header, record, self.decisions, earlier=earlier))
        self.front.outlets(event)

    def _say_stopping(self, in_flight: int) -> None:
        noun = "answer" if in_flight == 1 else "answers"
        _say(self.front.live, f"Stopping after {in_flight} {noun} in flight; Ctrl-C again cancels them.")


def sit(built: Built, directory: Path, display: str | None, metrics: MetricsOptions) -> int:
    """Run or continue the run in `directory`, write its report, and return the exit code."""
    if (directory / RUN_FILE).exists():
        with RunReader(directory) as reader:
            built = replace(built, continued=reader.meta())
    session, past, writer = built.session(), _Past(None, []), None
    audit = built.audit()
    session.remarks = audit.warnings
    console, output = console_on()
    with ExitStack() as stack:
        outlets = stack.enter_context(Outlets(built.config, metrics))
        front = _Front(LiveView(display, console=console), output, outlets)
        for words in built.notices:
            _say(front.live, words)
        if (directory / RUN_FILE).exists():
            writer = stack.enter_context(continue_run(built, directory))
            built = resumed(built, directory)
            adopt_pilot(built, directory, writer)
            past = _replay(session, writer, audit)
        if session.stopped is None:
            verdict = asyncio.run(_run(built, directory, session, audit, writer, front, past, stack))
        else:
            assert writer is not None
            verdict = session.stopped
            _store_results(session, writer, past)
            click.echo(f"{directory} is complete already; run --new starts over and keeps it.")
    track(built, directory)
    show_end(console, directory, built.config, write_reports(directory), verdict.reason)
    return exit_code_of_stop(verdict.reason)


@dataclass(frozen=True)
class _Past:
    """Earlier sittings: the last snapshot, and what was decided."""

    latest: SnapshotRecord | None
    decisions: list[Decision]
    before: float = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of running time; before the first snapshot those of the pilot."""
        return self.latest.elapsed if self.latest is not None else self.before


def _replay(session: Session, writer: RunWriter, audit: IndependenceAudit) -> _Past:
    """Rebuild the session from the run file; return what earlier sittings have left."""
    with writer.reader() as reader:
        log = chain(reader.log(), reader.log(after_stop=True))
        replayed = session.replay(log, reader.unanswered())
        decisions = [decision_from(record.body) for record in reader.decisions()]
        latest = reader.latest_snapshot()
        audit.read(reader)
    valid = still_valid(decisions)
    stored = {_fingerprint(decision) for decision in valid}
    # A changed rule may decide otherwise, and the last decisions may be lost with the process that made them.
    news = [*withdrawals(valid, replayed), *(one for one in replayed if _fingerprint(one) not in stored)]
    for decision in news:
        writer.decision(time.time(), decision.trials, asdict(decision))
        decisions.append(decision)
    return _Past(latest, decisions)


def _store_results(session: Session, writer: RunWriter, past: _Past) -> None:
    """Bring the snapshot up to date that reports are drawn from.

    It is not where a process died between its last answer and its last snapshot, and where the stopping rule
    has been changed since.
    """
    results, latest = session.results(), past.latest
    if latest is None or from_json(latest.results) != results:
        endpoints = latest.endpoints if latest is not None else ()
        body = to_json(results)
        writer.snapshot(SnapshotRecord(time.time(), past.elapsed, results.trials, body, endpoints))
        writer.commit()


def _fingerprint(decision: Decision) -> tuple[object, ...]:
    return decision.kind, decision.models, decision.verdict, decision.step


async def _run(
    built: Built,
    directory: Path,
    session: Session,
    audit: IndependenceAudit,
    writer: RunWriter | None,
    front: _Front,
    past: _Past,
    stack: ExitStack,
) -> StopVerdict:
    """Run to the end; a new run file is made only once the endpoints have answered."""
    async with AsyncExitStack() as connections:
        with _saying(front.live, "Asking the endpoints whether they are there"):
            mimic_url = built.start_mimic(stack)
            built = built.connected(mimic_url)
            finder = await connections.enter_async_context(Finder(built.config))
            built = replace(built, discoveries=finder.discoveries)
            endpoints, scorers = built.endpoints(mimic_url), built.scorer_endpoints()
            for endpoint in chain.from_iterable((*endpoints.values(), *scorers.values())):
                await connections.enter_async_context(endpoint)
            absent = require_usable(await probe_all({**endpoints, **scorers}))
            resume_accounts(built.scorers, past_runs(built, directory))
        workplace = stack.enter_context(workplace_of(built, partial(_say, front.live)))
        for words in absent:
            click.echo(f"{words}; the run begins without it and asks whether it is back", err=True)
        if writer is None:
            built = await with_pilot(built, directory, endpoints, workplace, _install_signals)
            writer = stack.enter_context(RunWriter.create(directory, meta=built.meta()))
            adopt_pilot(built, directory, writer)
            past = replace(_replay(session, writer, audit), before=pilot_elapsed(built, directory))
        with writer.reader() as reader:
            header = RunHeader(built.config.name, started_at(reader.meta()))
        watcher = _Watcher(header, front, past.decisions)
        asked: Mapping[str, Sequence[Endpoint]] = endpoints
        if built.drives_inspect:
            asked = await connections.enter_async_context(_inspect(built, directory, mimic_url))
        executor = await connections.enter_async_context(workplace.executor(built))
        runner = built.runner(
            session,
            writer,
            asked,
            elapsed=past.elapsed,
            observer=watcher,
            audit=audit,
            executor=executor,
        )
        _install_signals(runner)
        _stop_when_left(runner, watcher)
        with front.live, frozen():
            return await runner.run()


def _inspect(
    built: Built, directory: Path, mimic_url: str | None
) -> AbstractAsyncContextManager[Mapping[str, Sequence[Endpoint]]]:
    """Return Inspect as the one who asks, with its logs in the run's directory."""
    from adaptive_eval.interop.inspect_driver import LOGS, InspectDriver

    addresses = {
        model.name: mimic_url if model.uses_mimic and mimic_url is not None else model.addresses[0]
        for model in built.config.models
    }
    return InspectDriver(built.config, directory / LOGS, addresses)


def _say(live: LiveView, words: str) -> None:
    """Tell a person something while the run goes on."""
    if live.display in REDRAWN:
        live.console.print(words, highlight=False, markup=False)  # above the view
    else:
        with suppress(OSError):  # the terminal that is told may be the one that has gone
            click.echo(words, err=True)


def _saying(live: LiveView, words: str) -> AbstractContextManager[object]:
    """Return a context that shows `words` on a terminal, where a person would wonder what is going on."""
    return live.console.status(words, spinner="line") if live.display in REDRAWN else nullcontext()


def _install_signals(runner: Runner) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, runner.request_stop)


def _stop_when_left(runner: Runner, watcher: _Watcher) -> None:
    """Stop as Ctrl-C does when the terminal is closed or the reader of a pipe goes.

    A terminal that is closed tells so twice, by a signal and by refusing what is written; that must not
    count as the second Ctrl-C.
    """

    def stop() -> None:
        if not watcher.draining:
            runner.request_stop()

    watcher.front.output.on_lost = stop
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop)
