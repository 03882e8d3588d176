"""Prometheus metrics of a run: on a port to be scraped, or in a file for a textfile collector."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self, TypeAlias

from prometheus_client import CollectorRegistry, start_http_server, write_to_textfile
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from adaptive_eval.core.results import Results, RunForecast
from adaptive_eval.errors import UsageError, without_home
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.budgets import BudgetUse
from adaptive_eval.views.column_types import Shown, Unit, selected
from adaptive_eval.views.columns import BUDGETS
from adaptive_eval.views.model_columns import MODELS, model_rows
from adaptive_eval.views.summary import open_pair

PREFIX = "adaptive_eval_"
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
        if file is None:
            self._file = None
        else:
            self._file = Path(file)
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
        latest = self._latest
        if latest is not None:
            of_run = {"goal": latest[2].goal, "rule": latest[2].rule}
        else:
            of_run = {}
        info = InfoMetricFamily(f"{PREFIX}run", "The run.")
        info.add_metric((), {"run": self.run, **of_run})
        yield info
        if latest is None:
            return
        families = {}
        for name, (kind, labels, words) in _FAMILIES.items():
            families[name] = kind(PREFIX + name, words, labels=labels.split())
        for name, values, figure in _figures(*latest):
            if figure is not None:
                families[name].add_metric(values, figure)
        yield from families.values()

    def _write(self) -> None:
        write_to_textfile(str(self._file), self._registry)

    def _close(self) -> None:
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()
            self._server = None


_GAUGE, _COUNTER = GaugeMetricFamily, CounterMetricFamily
_MODEL, _BUDGET, _ENDPOINT = "model", "budget scope owner", "model endpoint"
_MODELS, _BUDGETS = selected(MODELS, Shown.PROMETHEUS), selected(BUDGETS, Shown.PROMETHEUS)
_COUNTED = (Unit.COUNT, Unit.USD)
"""Units of what only grows."""

_FAMILIES: dict[str, tuple[type[GaugeMetricFamily | CounterMetricFamily], str, str]] = {
    "updated_at": (_GAUGE, "", "When these figures were taken."),
    "elapsed_seconds": (_GAUGE, "", "Running time, all sessions of the run together."),
    "stopped": (_GAUGE, "reason", "1, with the reason, once the run has stopped."),
    "loop_lag_seconds": (_GAUGE, "", "Most by which the event loop was late lately."),
    "model_waits": (_GAUGE, "model other", "1 if a model waits for another's answers."),
    "model_state": (_GAUGE, "model state", "1 for the state that the model is in."),
    "pairs": (_GAUGE, "verdict", "Pairs by verdict."),
    "pair_progress": (
        _GAUGE,
        "first second kind margin",
        "How near an open pair is to any verdict, from 0 to 1.",
    ),
    "forecast_resolved": (_GAUGE, "", "Probability that all pairs are resolved in budget."),
    "forecast_trials": (_GAUGE, "quantile", "Further trials: median and 80 % interval."),
    "forecast_tokens": (_GAUGE, "quantile", "Further tokens: median and 80 % interval."),
    "forecast_usd": (_GAUGE, "quantile", "Further usd: median and 80 % interval."),
    "endpoint_in_flight": (_GAUGE, _ENDPOINT, "Requests in flight."),
    "endpoint_limit": (_GAUGE, _ENDPOINT, "Most requests in flight."),
    "endpoint_requests_per_second": (_GAUGE, _ENDPOINT, "Requests a second, over the last minute."),
    "endpoint_tokens_per_second": (_GAUGE, _ENDPOINT, "Answer tokens a second, over the last minute."),
    "endpoint_usable": (_GAUGE, _ENDPOINT, "1 if requests are sent, 0 while it is out."),
    "endpoint_latency_seconds": (_GAUGE, f"{_ENDPOINT} quantile", "Latency over the last minute."),
    "endpoint_answers": (_COUNTER, _ENDPOINT, "Answers since this process started."),
    "endpoint_errors": (_COUNTER, f"{_ENDPOINT} kind", "Failed attempts since this process started."),
}
"""Kind, labels and meaning of every metric; those of models and budgets come from their columns."""

for _budget in _BUDGETS:
    _FAMILIES[f"budget_{_budget.key}"] = (_GAUGE, _BUDGET, _budget.meaning)
for _column in _MODELS:
    _FAMILIES[_column.key] = (_COUNTER if _column.unit in _COUNTED else _GAUGE, _MODEL, _column.meaning)

_VERDICTS = {"better": "separated", "worse": "separated", "tie": "tied", "open": "open"}

Figure: TypeAlias = tuple[str, tuple[str, ...], float | None]
"""A metric, the values of its labels, and its own."""


def _figures(
    at: float, elapsed: float, results: Results, endpoints: Sequence[EndpointHealth], lag: float
) -> Iterator[Figure]:
    yield "updated_at", (), at
    yield "elapsed_seconds", (), elapsed
    yield "loop_lag_seconds", (), lag
    if results.stop is not None:
        yield "stopped", (results.stop.reason,), 1.0
    for budget in results.budgets:
        use = BudgetUse(budget, None, None)
        labels = (budget.name, budget.scope, budget.owner)
        for spent in _BUDGETS:
            yield f"budget_{spent.key}", labels, spent.value(use)
    for row in model_rows(results):
        line = row.line
        for column in _MODELS:
            if column.unit not in _COUNTED or line.state != "reference":  # which costs nothing
                yield column.key, (line.model,), column.value(row)
        for other in line.waits_for:
            yield "model_waits", (line.model, other), 1.0
        yield "model_state", (line.model, line.state), 1.0
    verdicts = Counter(_VERDICTS[pair.verdict] for pair in results.pairs)
    for verdict in dict.fromkeys(_VERDICTS.values()):
        yield "pairs", (verdict,), verdicts[verdict]
    for pair in results.pairs:
        if pair.verdict == "open":
            margin = "" if pair.margin is None else f"{pair.margin:g}"
            contrast = (pair.first, pair.second, pair.kind, margin)
            yield "pair_progress", contrast, open_pair(pair).nearness
    if results.forecast is not None:
        yield from _ahead(results.forecast)
    for endpoint in endpoints:
        yield from _of_endpoint(endpoint)


def _ahead(forecast: RunForecast) -> Iterator[Figure]:
    yield "forecast_resolved", (), forecast.resolved_within_budget
    for name, span in (("trials", forecast.trials), ("tokens", forecast.tokens), ("usd", forecast.usd)):
        if span is not None:
            for quantile, value in (("0.1", span.low), ("0.5", span.median), ("0.9", span.high)):
                yield f"forecast_{name}", (quantile,), value


def _of_endpoint(one: EndpointHealth) -> Iterator[Figure]:
    labels = (one.model, without_home(one.endpoint))
    for name in ("in_flight", "limit", "requests_per_second", "tokens_per_second"):
        yield f"endpoint_{name}", labels, getattr(one, name)
    yield "endpoint_usable", labels, float(one.state in ("in", "probation"))
    for quantile, value in (("0.5", one.p50), ("0.95", one.p95)):
        yield "endpoint_latency_seconds", (*labels, quantile), value
    yield "endpoint_answers", labels, one.answered
    for kind, number in one.errors.items():
        yield "endpoint_errors", (*labels, kind), number
