"""One run: open or create, replay, audit, probe, check the disk, ask, watch and report.

``adaptive-eval run`` and :func:`adaptive_eval.evaluate` come here.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from adaptive_eval.build.anchors import resume_anchors
from adaptive_eval.build.assembly import PreparedRun, continue_run
from adaptive_eval.build.describe import targets_of
from adaptive_eval.build.grading import resume_accounts, scorer_endpoints
from adaptive_eval.build.rubrics import with_stored_thresholds
from adaptive_eval.build.server_discovery import Finder
from adaptive_eval.build.workplace import Workplace, workplace_of
from adaptive_eval.config import RunConfig
from adaptive_eval.config.label_checks import label_files
from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.results import Decision, Results, StopVerdict, from_json, to_json
from adaptive_eval.core.session import LOOKED_AT, Session
from adaptive_eval.engine.events import Decided, Event, Observer, Progress, Stopped
from adaptive_eval.engine.protocols import Endpoint
from adaptive_eval.errors import UsageError
from adaptive_eval.run import COLLECT_AFTER
from adaptive_eval.run.disk import room_warning
from adaptive_eval.run.observers import Console, MetricsOptions, Outlets
from adaptive_eval.run.probe import probe_all, require_usable
from adaptive_eval.store.file_errors import decoding
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import EndpointHealth, SnapshotRecord
from adaptive_eval.store.run_files import RUN_FILE, RunFiles
from adaptive_eval.store.writer import RunWriter, WriterLock
from adaptive_eval.views.reading import decision_from, started_at, still_valid, stored_results, withdrawals

if TYPE_CHECKING:  # what a report is written with is imported once there is one to write
    from adaptive_eval.views.files import ReportPaths


@dataclass(frozen=True)
class RunOptions:
    """The observers of a run, and the executor of its trials."""

    # what answers for each model, in place of the servers that the config names
    endpoints: Mapping[str, Sequence[Endpoint]] | None = None
    console: Console = field(default_factory=Console)  # shows the run to a person
    observer: Observer | None = None  # called with every event (:mod:`adaptive_eval.engine.events`)
    metrics: MetricsOptions = field(default_factory=MetricsOptions)  # where Prometheus metrics go
    disk_check: bool = True  # whether to refuse a run on a full disk, and to warn where it may not fit
    report: bool = True  # whether to write the report
    allow_missing: bool = False  # whether to go on without a model whose very first request is refused


@dataclass(frozen=True)
class RunEnd:
    """The end of a run."""

    verdict: StopVerdict  # why it ended
    results: Results  # ranking, pairs, intervals
    asked: bool  # false where the run was complete before and nothing was asked
    reports: ReportPaths | None  # the report; None where none was wanted


async def execute(built: PreparedRun, directory: Path, options: RunOptions | None = None) -> RunEnd:
    """Run or continue the run in `directory` to its end, and write its report."""
    options = options or RunOptions()
    say = options.console.show_remark
    if options.disk_check and (warning := room_warning(built, directory)):
        say(warning)
    async with AsyncExitStack() as stack:
        outlets = stack.enter_context(Outlets(built.config, options.metrics, say))
        run = _Run(built, directory, options, outlets, stack)
        asked = await run.finish()
        results = run.session.results()
    assert run.session.stopped is not None
    if any(task.track or task.scorer.has("checks") for task in built.config.tasks):
        from adaptive_eval.run.rescoring import track

        track(run.built, directory, say)
    reports = None
    if options.report:
        from adaptive_eval.views.files import write_reports

        # The writer has looked at all that was there when it opened the run, and has written the rest.
        reports = write_reports(
            directory, targets=lambda _: targets_of(built.tasks, built.config), checked=True
        )
    return RunEnd(run.session.stopped, results, asked, reports)


def set_aside(directory: Path) -> Path | None:
    """Rename a run's directory to NAME-1, -2, … and return where it is now; None if there is no run."""
    if not any((directory / name).exists() for name in (RUN_FILE, f"{RUN_FILE}.new")):
        return None
    if directory.name in ("", ".."):
        directory = directory.resolve()
    if Path.cwd().is_relative_to(directory.resolve()):
        raise UsageError(
            f"--new renames the directory of the previous run, {directory}, and you are in it; start the "
            "command somewhere else, or name another directory with --out"
        )
    if (directory / RUN_FILE).exists():
        RunWriter.open(directory).close()  # refuses while another process writes to it
    number = 1
    while (kept := directory.with_name(f"{directory.name}-{number}")).exists():
        number += 1
    try:
        directory.rename(kept)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be renamed to {kept.name}: {error.strerror}") from None
    return kept


_LEFT_WITH_WORK = frozenset({"interrupted", "endpoints"})
"""Reasons to stop after which the same command asks for more; after the others it may only report."""


@dataclass
class _Past:
    """Previous sessions of a run: the last snapshot, the decisions, and seconds of running time."""

    latest: SnapshotRecord | None = None
    decisions: list[Decided] = field(default_factory=list)
    elapsed: float = 0.0


class _Run:
    """The steps of one run; everything it opens is closed with `stack`."""

    def __init__(
        self,
        built: PreparedRun,
        directory: Path,
        options: RunOptions,
        outlets: Observer,
        stack: AsyncExitStack,
    ) -> None:
        if (directory / RUN_FILE).exists():
            with RunReader(directory) as reader:
                built = replace(built, continued=reader.meta(), looked_at=reader.count())
                built = replace(built, labels=_labels(built.config, reader))
        else:
            built = replace(built, labels=_labels(built.config, None))
        built = built.with_stored_answers()
        self.built = built
        self.directory = directory
        self.options = options
        self._outlets, self._stack = outlets, stack
        self._watches, self._past = built.watches(), _Past()
        self.session: Session = built.session(self._watches.copies.remarks)

    async def finish(self) -> bool:
        """Run to the end; return whether anything was left to ask."""
        for words in self.built.notices:
            self.options.console.show_remark(words)
        async with AsyncExitStack() as connections:
            # Checking and replaying a long run take half a minute; a server that is not there is said before.
            connected = None
            if self._will_ask():
                connected = await self._connect(connections)
            writer = self._continue()
            if self.session.stopped is not None:
                assert writer is not None
                self._end_at_once(writer, self.session.stopped)
                return False
            servers, mimic_url = connected or await self._connect(connections)
            resume_accounts(self.built.tasks, self.built.scorers, self.directory)
            workplace = connections.enter_context(workplace_of(self.built, self.options.console.show_remark))
            if writer is None:
                writer = self._begin()
            if self.built.drives_inspect:
                servers = await connections.enter_async_context(self._inspect(mimic_url))
            await self.ask(writer, servers, workplace)
        return True

    async def ask(
        self, writer: RunWriter, servers: Mapping[str, Sequence[Endpoint]], workplace: Workplace
    ) -> StopVerdict:
        """Ask until the session stops."""
        console = self.options.console
        with writer.reader() as reader:
            since = started_at(reader.meta())
            resume_anchors(self.built.anchors, self.built.tasks, reader)
        with ExitStack() as stack:
            view = stack.enter_context(console.watch(self.built.config.name, since, self._past.decisions))
            observers = [view, self._outlets]
            if self.options.observer is not None:
                observers.append(self.options.observer)

            def observe(event: Event) -> None:
                for observer in observers:
                    observer(event)

            async with workplace(self.built) as executor:
                runner = self.built.runner(
                    self.session,
                    writer,
                    servers,
                    watches=self._watches,
                    elapsed=self._past.elapsed,
                    observer=observe,
                    executor=executor,
                    allow_missing=self.options.allow_missing,
                )
                with console.stoppable(runner.request_stop), collecting_little():
                    return await runner.run()

    def _will_ask(self) -> bool:
        """Tell whether trials are left to ask, as far as the stored results say it without a replay."""
        if not (self.directory / RUN_FILE).exists():
            return False
        with RunReader(self.directory) as reader:
            results = stored_results(reader)
        stop = None
        if results is not None:
            stop = results.stop
        if stop is not None and stop.reason not in _LEFT_WITH_WORK:
            return False
        WriterLock.acquire(RunFiles(self.directory).lock).release()  # refuses while a process writes to it
        return True

    def _continue(self) -> RunWriter | None:
        """Open the run file that there is and replay it; None for a new run."""
        if not (self.directory / RUN_FILE).exists():
            return None
        writer = self._stack.enter_context(continue_run(self.built, self.directory))
        with writer.reader() as reader:
            rubrics = with_stored_thresholds(self.built.rubrics, reader.meta())
        self.built = replace(self.built, rubrics=rubrics)
        self.replay(writer)
        return writer

    def _begin(self) -> RunWriter:
        writer = self._stack.enter_context(RunWriter.create(self.directory, meta=self.built.meta()))
        self.replay(writer)
        return writer

    def replay(self, writer: RunWriter) -> None:
        """Rebuild the session from the run file, and store the decisions that it lacks."""
        with writer.reader() as reader, decoding(self.directory / RUN_FILE):
            replayed = self.built.rebuild(self.session, reader, self._watches)
            past = [Decided(record.at, (decision_from(record.body),)) for record in reader.decisions()]
            latest = reader.latest_snapshot()
            elapsed = reader.running_time()
        valid = still_valid([event.decisions[0] for event in past])
        stored = {_fingerprint(decision) for decision in valid}
        # A changed rule may decide otherwise, and the last decisions may be lost with their process.
        news = [*withdrawals(valid, replayed), *(one for one in replayed if _fingerprint(one) not in stored)]
        for decision in news:
            event = Decided(time.time(), (decision,))
            past.append(event)
            writer.decision(event.at, decision.trials, asdict(decision))
            self._outlets(event)
        self._past = _Past(latest, past, elapsed)
        if self.built.labels is not None and self.session.board.answered:
            self.session.ask(0)  # a budget that is used up ends the run before any server is asked

    def _end_at_once(self, writer: RunWriter, stop: StopVerdict) -> None:
        """Bring the snapshot up to date that reports are drawn from, and tell the outlets of the end.

        It is older if a process died between its last answer and its last snapshot, and if the
        stopping rule has changed since.
        """
        built = self.built
        latest = self._past.latest
        elapsed = self._past.elapsed
        resume_accounts(built.tasks, built.scorers, self.directory)
        results = built.with_limits(self._watches.added_to(self.session.results()), elapsed)
        endpoints: tuple[EndpointHealth, ...] = ()
        if latest is not None:
            endpoints = latest.endpoints
        now = time.time()
        if latest is None or not _holds(from_json(latest.results), results):
            writer.snapshot(SnapshotRecord(now, elapsed, results.trials, to_json(results), endpoints))
            writer.commit()
        self._outlets(Progress(now, elapsed, results, endpoints))
        self._outlets(Stopped(stop))

    async def _connect(
        self, connections: AsyncExitStack
    ) -> tuple[Mapping[str, Sequence[Endpoint]], str | None]:
        """Return what answers for each model, probed if it is a server."""
        console = self.options.console
        with console.waiting("Asking the endpoints whether they are there"):
            mimic_url = self.built.start_mimic(connections)
            finder = await connections.enter_async_context(Finder(self.built.config))
            self.built = built = replace(self.built, discoveries=finder.discoveries)
            if self.options.endpoints is None:
                servers = built.endpoints(mimic_url, self.directory)
            else:
                servers = {}
            probed = {**servers, **scorer_endpoints(built.scorers)}
            for endpoint in chain.from_iterable(probed.values()):
                await connections.enter_async_context(endpoint)
            absent = require_usable(await probe_all(probed))
        for words in absent:
            console.show_remark(f"{words}; the run begins without it and asks whether it is back")
        return (servers if self.options.endpoints is None else self.options.endpoints), mimic_url

    def _inspect(
        self, mimic_url: str | None
    ) -> AbstractAsyncContextManager[Mapping[str, Sequence[Endpoint]]]:
        """Return Inspect as what answers, with its logs in the run's directory."""
        from adaptive_eval.interop.inspect_driver import LOGS, InspectDriver

        addresses = {}
        for model in self.built.config.models:
            mimic = mimic_url if model.uses_mimic else None
            addresses[model.name] = mimic or model.addresses[0]
        return InspectDriver(self.built.config, self.directory / LOGS, addresses)


def _labels(config: RunConfig, reader: RunReader | None) -> LabelRecord | None:
    """Return the labels that decide a run, if its config names a file of them."""
    if not any(label_files(config)):
        return None
    from adaptive_eval.run.labelled import labels_of_run

    return labels_of_run(config, reader)


def _holds(stored: Results, results: Results) -> bool:
    """Tell whether stored results are these, at most with warnings of the servers that answered then."""
    return replace(stored, warnings=results.warnings) == results and {*stored.warnings} >= {*results.warnings}


def _fingerprint(decision: Decision) -> tuple[object, ...]:
    place = None
    if decision.kind == "stop" and decision.verdict in LOOKED_AT:
        place = decision.trials
    return decision.kind, decision.models, decision.verdict, decision.step, place


@contextmanager
def collecting_little() -> Iterator[None]:
    """Collect seldom, and leave the objects that exist now, of libraries above all, out of it.

    A full collection looks at some 300,000 of them and holds up the event loop for about 100 ms.

    Examples
    --------
    >>> before = gc.get_threshold()
    >>> with collecting_little():
    ...     print(gc.get_threshold()[0], gc.get_freeze_count() > 0)
    20000 True
    >>> gc.get_threshold() == before
    True
    """
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
