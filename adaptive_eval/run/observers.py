"""Where a run reports: consoles, Prometheus, a webhook, a command, experiment trackers."""

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from adaptive_eval.config import RunConfig
from adaptive_eval.config.run_config import NotifyConfig
from adaptive_eval.core.results import Decision, Results, StopVerdict
from adaptive_eval.engine.events import Decided, Event, Observer, Progress, Stopped
from adaptive_eval.errors import UsageError
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.headline import headline
from adaptive_eval.views.notifications import Channel, Notice, NoticeKind, Notifier, command, webhook
from adaptive_eval.views.numbers import duration
from adaptive_eval.views.verdicts import resolved_words

if TYPE_CHECKING:
    from adaptive_eval.run.trackers import Tracker
    from adaptive_eval.views.metrics import RunMetrics


@dataclass(frozen=True)
class MetricsOptions:
    """Destinations of Prometheus metrics."""

    port: str | None = None
    file: Path | None = None

    def address(self) -> tuple[str, int] | None:
        """Return host and port, None where nothing is to be served.

        Examples
        --------
        >>> MetricsOptions("9100").address(), MetricsOptions("0.0.0.0:9100").address()
        (('127.0.0.1', 9100), ('0.0.0.0', 9100))
        """
        if self.port is None:
            return None
        host, _, port = self.port.rpartition(":")
        if not (port.isascii() and port.isdigit() and int(port) < 65_536):
            raise UsageError(f"--metrics-port is {self.port!r}: give a port such as 9100, or HOST:PORT")
        return host.strip("[]") or "127.0.0.1", int(port)


def channels_of(notify: NotifyConfig | None, environment: Mapping[str, str] = os.environ) -> list[Channel]:
    """Return the channels that a config asks for."""
    channels: list[Channel] = []
    if notify is not None and notify.webhook_env is not None:
        url = environment.get(notify.webhook_env, "")
        if not url:
            raise UsageError(
                f"notify.webhook_env: the environment variable {notify.webhook_env} is not set; set it to "
                "the webhook's URL, or leave the setting out"
            )
        channels.append(webhook(url))
    if notify is not None and notify.command is not None:
        channels.append(command(notify.command))
    return channels


class Outlets:
    """Passes the events of a run to observers; a context manager that opens and closes them.

    An error that leaves the context is sent too.
    """

    def __init__(
        self, config: RunConfig, metrics: MetricsOptions, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._say = say
        self._config = config
        self._options = metrics
        self._stack = ExitStack()
        self._metrics: RunMetrics | None = None
        self._notifier: Notifier | None = None
        self._results: Results | None = None
        self._trackers: list[Tracker] = []
        self._observers: list[Observer] = []

    def __enter__(self) -> Self:
        notify = self._config.notify
        channels = channels_of(notify)
        if notify is not None and (notify.wandb is not None or notify.mlflow is not None):
            from adaptive_eval.run.trackers import trackers_of

            self._trackers = trackers_of(self._config)
            self._observers += self._trackers
        if notify is not None and notify.otel:
            from adaptive_eval.run.telemetry import Telemetry

            self._observers.append(self._stack.enter_context(Telemetry(self._config)))
        address = self._options.address()
        if address is not None or self._options.file is not None:
            from adaptive_eval.views.metrics import RunMetrics

            metrics = RunMetrics(self._config.name, address, self._options.file)
            self._metrics = self._stack.enter_context(metrics)
        if channels:
            self._notifier = Notifier(channels)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            self._tell("error", str(error) or type(error).__name__)
        self._stack.close()
        for tracker in self._trackers:
            problem = tracker.close()
            if problem is not None:
                self._say(f"warning: {problem}")
        if self._notifier is not None:
            undelivered = self._notifier.close()
            if undelivered is not None:
                self._say(f"warning: {undelivered}")

    def __call__(self, event: Event) -> None:
        """Pass an event on; takes no time."""
        for observer in self._observers:
            observer(event)
        if isinstance(event, Progress):
            self._results = event.results
            if self._metrics is not None:
                self._metrics.update(event.at, event.elapsed, event.results, event.endpoints, event.lag)
        elif isinstance(event, Decided):
            for decision in event.decisions:
                self._decided(decision)
        elif isinstance(event, Stopped):
            self._stopped(event.verdict)

    def _decided(self, decision: Decision) -> None:
        if decision.kind == "pair":
            self._tell("pair_decided", describe(decision), decision.trials, decision.models, decision.verdict)
        elif decision.kind == "model_stopped":
            self._tell("error", describe(decision), decision.trials, decision.models)

    def _stopped(self, verdict: StopVerdict) -> None:
        results = self._results
        first = "" if results is None else f"{headline(results)} "
        trials = 0 if results is None else results.trials
        self._tell(
            "stopped", f"{first}Stopped: {describe(verdict).rstrip('.')}.", trials, verdict=verdict.reason
        )

    def _tell(
        self,
        event: NoticeKind,
        text: str,
        trials: int = 0,
        models: tuple[str, ...] = (),
        verdict: str | None = None,
    ) -> None:
        notify, name = self._config.notify, self._config.name
        if self._notifier is not None and notify is not None and event in notify.on:
            self._notifier.tell(Notice(event, name, time.time(), text, trials, models, verdict))


class Console:
    """Shows a run to a person; this one writes remarks to the logger ``adaptive_eval`` and nothing else."""

    _log = logging.getLogger("adaptive_eval")

    def say(self, text: str) -> None:
        """Show a remark."""
        self._log.info("%s", text)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Return a context that shows `text` while it lasts."""
        return nullcontext()

    def stoppable(self, stop: Callable[[], None]) -> AbstractContextManager[object]:
        """Return a context in which an interrupt calls `stop`, in the thread of the event loop."""
        return nullcontext()

    def watch(
        self, name: str, started_at: float | None, past: Sequence[Decided]
    ) -> AbstractContextManager[Observer]:
        """Return a context with an observer that shows the events of the run `name`."""
        return nullcontext(lambda event: None)


_WIDTH = 78


@contextmanager
def shown_progress(wanted: bool | None, observer: Observer | None) -> Iterator[Observer | None]:
    """Give an observer that also shows a line of progress, and clears it at the end.

    Parameters
    ----------
    wanted : bool or None
        None: where a person is watching, in a terminal or a notebook.
    observer : callable or None
        The caller's observer.
    """
    stream = _place(wanted)
    if stream is None:
        yield observer
        return

    def observe(event: Event) -> None:
        if observer is not None:
            observer(event)
        if isinstance(event, Progress):
            results = event.results
            words = f"{results.trials:,} trials, {resolved_words(results)}, {duration(event.elapsed)}"
            print(f"\r{words[:_WIDTH]:<{_WIDTH}}", end="", file=stream, flush=True)

    try:
        yield observe
    finally:
        print(f"\r{'':<{_WIDTH}}\r", end="", file=stream, flush=True)


def _place(wanted: bool | None) -> TextIO | None:
    """Return the stream for the line; None for no line."""
    if type(sys.stdout).__module__.startswith("ipykernel"):
        return None if wanted is False else sys.stdout
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    return sys.stderr if wanted else None
