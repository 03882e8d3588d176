"""Where a run reports: consoles, Prometheus, a webhook, a command, experiment trackers."""

import logging
import os
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from adaptive_eval.config import RunConfig
from adaptive_eval.config.run_config import NotifyConfig
from adaptive_eval.core.discarded import rest_on_words
from adaptive_eval.core.results import Decision, Results, StopVerdict
from adaptive_eval.engine.events import Decided, Event, Observer, Progress, Stopped
from adaptive_eval.errors import UsageError
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.headline import headline
from adaptive_eval.views.notifications import Channel, Notice, NoticeKind, Notifier, command, webhook
from adaptive_eval.views.numbers import duration
from adaptive_eval.views.verdicts import resolved_words

if TYPE_CHECKING:
    from adaptive_eval.views.metrics import RunMetrics


@dataclass(frozen=True)
class MetricsOptions:
    """Destinations of Prometheus metrics."""

    port: str | None = None
    file: Path | None = None

    def address(self) -> tuple[str, int] | None:
        """Return host and port, None if nothing is to be served.

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


def channels_of(notify: NotifyConfig | None) -> list[Channel]:
    """Return the channels that a config asks for."""
    channels: list[Channel] = []
    if notify is not None and notify.webhook_env is not None:
        url = os.environ.get(notify.webhook_env, "")
        if not url:
            raise UsageError(
                f"notify.webhook_env: the environment variable {notify.webhook_env} is not set; set it to "
                "the webhook's URL, or leave the setting out"
            )
        channels.append(webhook(url))
    if notify is not None and notify.command is not None:
        channels.append(command(notify.command))
    return channels


class Outlet(Protocol):
    """Where a run reports: it is told every event, and closed at the end."""

    def __call__(self, event: Event) -> None:
        """Take an event; takes no time."""

    def close(self, error: Exception | None) -> str | None:
        """End, after an error if there was one; return a sentence on what did not arrive."""


class Notices:
    """Tells a webhook and a command of verdicts, errors and the end."""

    def __init__(self, config: RunConfig, channels: Sequence[Channel]) -> None:
        self._name = config.name
        if config.notify is not None:
            self._on: Collection[NoticeKind] = config.notify.on
        else:
            self._on = ()
        self._notifier = Notifier(channels)
        self._results: Results | None = None
        self._untold: list[Decision] = []  # until the results that say what they rest on

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, Progress):
            self._results = event.results
            self._tell_pairs()
        elif isinstance(event, Decided):
            for decision in event.decisions:
                self._decided(decision)
        elif isinstance(event, Stopped):
            self._tell_pairs()
            self._stopped(event.verdict)

    def close(self, error: Exception | None) -> str | None:
        """Tell of pairs and the error, and wait for what has not arrived."""
        self._tell_pairs()
        if error is not None:
            self._tell("error", str(error) or type(error).__name__)
        return self._notifier.close()

    def _decided(self, decision: Decision) -> None:
        if decision.kind == "pair":
            self._untold.append(decision)
        elif decision.kind == "model_stopped":
            self._tell("error", describe(decision), decision.trials, decision.models)

    def _tell_pairs(self) -> None:
        words = self._rest_on()
        for decision in self._untold:
            if words:
                text = f"{describe(decision)}. {words}"
            else:
                text = describe(decision)
            self._tell("pair_decided", text, decision.trials, decision.models, decision.verdict)
        self._untold.clear()

    def _stopped(self, verdict: StopVerdict) -> None:
        results = self._results
        first = ""
        trials = 0
        if results is not None:
            first = f"{headline(results)} "
            trials = results.trials
        words = f"{first}Stopped: {describe(verdict).rstrip('.')}. {self._rest_on()}".rstrip()
        self._tell("stopped", words, trials, verdict=verdict.reason)

    def _rest_on(self) -> str:
        if self._results is None:
            return ""
        return rest_on_words(self._results)

    def _tell(
        self,
        event: NoticeKind,
        text: str,
        trials: int = 0,
        models: tuple[str, ...] = (),
        verdict: str | None = None,
    ) -> None:
        if event in self._on:
            self._notifier.tell(Notice(event, self._name, time.time(), text, trials, models, verdict))


def _notices(config: RunConfig, options: MetricsOptions) -> Sequence[Outlet]:
    channels = channels_of(config.notify)
    if channels:
        return [Notices(config, channels)]
    return []


def _trackers(config: RunConfig, options: MetricsOptions) -> Sequence[Outlet]:
    notify = config.notify
    if notify is None or (notify.wandb is None and notify.mlflow is None):
        return []
    from adaptive_eval.run.trackers import trackers_of

    return trackers_of(config)


def _telemetry(config: RunConfig, options: MetricsOptions) -> Sequence[Outlet]:
    if config.notify is None or not config.notify.otel:
        return []
    from adaptive_eval.run.telemetry import Telemetry

    return [Telemetry(config)]


def _metrics(config: RunConfig, options: MetricsOptions) -> Sequence[Outlet]:
    address = options.address()
    if address is None and options.file is None:
        return []
    from adaptive_eval.views.metrics import RunMetrics

    return [PrometheusOutlet(RunMetrics(config.name, address, options.file))]


class PrometheusOutlet:
    """Serves and writes the metrics of a run."""

    def __init__(self, metrics: "RunMetrics") -> None:
        self._metrics = metrics.__enter__()

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, Progress):
            self._metrics.update(event.at, event.elapsed, event.results, event.endpoints, event.lag)

    def close(self, error: Exception | None) -> str | None:
        """Close the port."""
        self._metrics.__exit__()
        return None


OUTLETS: tuple[Callable[[RunConfig, MetricsOptions], Sequence[Outlet]], ...] = (
    _notices,
    _trackers,
    _telemetry,
    _metrics,
)
"""What opens the outlets that a config or a command asks for; one more outlet is one more of these."""


class Outlets:
    """Passes the events of a run to its outlets; a context manager that opens and closes them.

    An error that leaves the context is sent too.
    """

    def __init__(
        self, config: RunConfig, metrics: MetricsOptions, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._config = config
        self._options = metrics
        self._say = say
        self._open: list[Outlet] = []

    def __enter__(self) -> Self:
        try:
            for opened in OUTLETS:
                self._open += opened(self._config, self._options)
        except BaseException:
            self._close(None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        failure = None
        if isinstance(error, Exception):
            failure = error
        self._close(failure)

    def __call__(self, event: Event) -> None:
        """Pass an event on; takes no time."""
        for outlet in self._open:
            outlet(event)

    def _close(self, error: Exception | None) -> None:
        for outlet in self._open:
            remark = outlet.close(error)
            if remark is not None:
                self._say(f"warning: {remark}")


class Console:
    """Shows a run to a person; this one writes remarks to the logger ``adaptive_eval`` and nothing else."""

    _log = logging.getLogger("adaptive_eval")

    def show_remark(self, text: str) -> None:
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
        if wanted is False:
            return None
        return sys.stdout
    if wanted is None:
        wanted = sys.stderr is not None and sys.stderr.isatty()
    if wanted:
        return sys.stderr
    return None
