"""Prometheus metrics of a run: on a port to be scraped, or in a file for a textfile collector."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from prometheus_client import CollectorRegistry, start_http_server, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from adaptive_eval.core.results import ModelResult, PairResult, Results
from adaptive_eval.errors import UsageError
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.summary import open_pair

PREFIX = "adaptive_eval_"
_BUDGET_LABELS = "budget scope owner"
_BUDGET_FIGURES = {
    "spent": "Spent of a budget, with what is presumed billed.",
    "presumed": "Spent on requests without an answer that may have been billed, each at its worst case.",
    "reserved": "Reserved by trials in flight.",
    "limit": "Limit of a budget.",
}
FILE_EVERY = 5.0
"""Seconds between two writings of the file."""


class RunMetrics(Collector):
    """The metrics of one run, drawn from its latest results.

    A context manager: entering it opens the port and writes the file, leaving it closes the port.
    """

    def __init__(
        self, run: str, address: tuple[str, int] | None = None, file: Path | str | None = None
    ) -> None:
        self.run = run
        self.port: int | None = None
        self._address = address
        self._file = None if file is None else Path(file)
        self._written = float("-inf")
        self._latest: tuple[float, float, Results, tuple[EndpointHealth, ...], float] | None = None
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._server: Any = None

    def __enter__(self) -> Self:
        if self._address is not None:
            host, port = self._address
            try:
                self._server = start_http_server(port, addr=host, registry=self._registry)
            except (OSError, OverflowError) as error:
                words = error.strerror if isinstance(error, OSError) else "there is no such port"
                raise UsageError(f"metrics cannot be served on {host}:{port}: {words}") from None
            self.port = self._server[0].server_port
        if self._file is not None:
            try:
                self._write()
            except OSError as error:
                self._close()
                raise UsageError(f"metrics cannot be written to {self._file}: {error.strerror}") from None
        return self

    def __exit__(self, *exception: object) -> None:
        self._close()

    def update(
        self,
        at: float,
        elapsed: float,
        results: Results,
        endpoints: Sequence[EndpointHealth],
        lag: float = 0.0,
    ) -> None:
        """Take new results; a file that has become unwritable is tried again later."""
        self._latest = (at, elapsed, results, tuple(endpoints), lag)
        if self._file is not None and (results.stop is not None or at >= self._written + FILE_EVERY):
            self._written = at
            try:
                self._write()
            except OSError:
                return

    def collect(self) -> Iterator[Metric]:
        """Yield every metric, for the registry."""
        info = InfoMetricFamily(f"{PREFIX}run", "The run.")
        latest = self._latest
        if latest is None:
            info.add_metric((), {"run": self.run})
            yield info
            return
        at, elapsed, results, endpoints, lag = latest
        info.add_metric((), {"run": self.run, "goal": results.goal, "rule": results.rule})
        yield info
        yield from _run(at, elapsed, results)
        yield _gauge("loop_lag_seconds", "Most by which the event loop was late lately.", "", [((), lag)])
        yield from _models(results.models)
        yield from _pairs(results.pairs)
        yield from _outlook(results)
        yield from _endpoints(endpoints)

    def _write(self) -> None:
        write_to_textfile(str(self._file), self._registry)

    def _close(self) -> None:
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()
            self._server = None


def _family(
    kind: type[GaugeMetricFamily | CounterMetricFamily],
    name: str,
    words: str,
    labels: str,
    rows: Iterable[tuple[Sequence[str], float | None]],
) -> Metric:
    family = kind(PREFIX + name, words, labels=labels.split())
    for values, value in rows:
        if value is not None:
            family.add_metric(values, value)
    return family


_gauge, _counter = partial(_family, GaugeMetricFamily), partial(_family, CounterMetricFamily)


def _run(at: float, elapsed: float, results: Results) -> Iterator[Metric]:
    yield _gauge("snapshot_timestamp_seconds", "When these figures were taken.", "", [((), at)])
    yield _gauge("running_seconds", "Running time, all sessions of the run together.", "", [((), elapsed)])
    stopped = [((results.stop.reason,), 1.0)] if results.stop is not None else []
    yield _gauge("stopped", "1, with the reason, once the run has stopped.", "reason", stopped)
    limits = results.budgets
    for what, words in _BUDGET_FIGURES.items():
        figures = (((one.name, one.scope, one.owner), getattr(one, what)) for one in limits)
        yield _gauge(f"budget_{what}", words, _BUDGET_LABELS, figures)


_OF_MODELS = (
    (_counter, "trials", "trials", "Trials that count."),
    (_counter, "issued_trials", "issued", "Trials issued."),
    (_counter, "missing_trials", "missing", "Trials without an answer."),
    (_counter, "prompt_tokens", "prompt_tokens", "Prompt tokens charged."),
    (_counter, "completion_tokens", "completion_tokens", "Answer tokens charged."),
    (_counter, "cost_usd", "usd", "Cost in US dollars."),
    (_gauge, "score", "score", "Mean over questions, which decides."),
    (_gauge, "score_low", "low", "Lower end of the score's anytime interval."),
    (_gauge, "score_high", "high", "Upper end of the score's anytime interval."),
    (_gauge, "rank_low", "rank_low", "Best rank that the verdicts leave."),
    (_gauge, "rank_high", "rank_high", "Worst rank that the verdicts leave."),
)


def _models(lines: Sequence[ModelResult]) -> Iterator[Metric]:
    asked = [line for line in lines if line.state != "reference"]
    for family, name, field, words in _OF_MODELS:
        of = asked if family is _counter else lines
        yield family(name, words, "model", (((line.model,), getattr(line, field)) for line in of))
    states = (((line.model, line.state), 1.0) for line in lines)
    waits = (((line.model, other), 1.0) for line in lines for other in line.waits_for)
    yield _gauge("model_waits", "1 where a model waits for another's answers.", "model other", waits)
    yield _gauge("model_state", "1 for the state that the model is in.", "model state", states)


def _pairs(pairs: Sequence[PairResult]) -> Iterator[Metric]:
    verdicts = [pair.verdict for pair in pairs]
    counts = {
        "separated": verdicts.count("better") + verdicts.count("worse"),
        "tied": verdicts.count("tie"),
        "open": verdicts.count("open"),
    }
    yield _gauge("pairs", "Pairs by verdict.", "verdict", (((name,), n) for name, n in counts.items()))
    open_pairs = [(pair, open_pair(pair)) for pair in pairs if pair.verdict == "open"]
    yield _gauge(
        "pair_progress",
        "How near an open pair is to any verdict, from 0 to 1.",
        "first second",
        (((pair.first, pair.second), one.nearness) for pair, one in open_pairs),
    )


def _outlook(results: Results) -> Iterator[Metric]:
    forecast = results.forecast
    if forecast is None:
        return
    chance = forecast.resolved_within_budget
    yield _gauge(
        "forecast_resolved", "Probability that all pairs are resolved in budget.", "", [((), chance)]
    )
    for name, span in (("trials", forecast.trials), ("tokens", forecast.tokens), ("usd", forecast.usd)):
        if span is not None:
            words = f"Further {name}: median and 80 % interval."
            rows = ((("0.1",), span.low), (("0.5",), span.median), (("0.9",), span.high))
            yield _gauge(f"forecast_{name}", words, "quantile", rows)


_OF_ENDPOINTS = {
    "in_flight": "Requests in flight.",
    "limit": "Most requests in flight.",
    "requests_per_second": "Requests a second, over the last minute.",
    "tokens_per_second": "Answer tokens a second, over the last minute.",
}


def _endpoints(endpoints: Sequence[EndpointHealth]) -> Iterator[Metric]:
    for name, words in _OF_ENDPOINTS.items():
        rows = (((one.model, one.endpoint), getattr(one, name)) for one in endpoints)
        yield _gauge(f"endpoint_{name}", words, "model endpoint", rows)
    usable = (((one.model, one.endpoint), float(one.state in ("in", "probation"))) for one in endpoints)
    yield _gauge("endpoint_usable", "1 where requests are sent, 0 while it is out.", "model endpoint", usable)
    latency = (
        ((one.model, one.endpoint, quantile), value)
        for one in endpoints
        for quantile, value in (("0.5", one.p50), ("0.95", one.p95))
    )
    yield _gauge(
        "endpoint_latency_seconds", "Latency over the last minute.", "model endpoint quantile", latency
    )
    answered = (((one.model, one.endpoint), one.answered) for one in endpoints)
    yield _counter("endpoint_answers", "Answers since this process started.", "model endpoint", answered)
    errors = (((one.model, one.endpoint, kind), n) for one in endpoints for kind, n in one.errors.items())
    yield _counter(
        "endpoint_errors", "Failed attempts since this process started.", "model endpoint kind", errors
    )
