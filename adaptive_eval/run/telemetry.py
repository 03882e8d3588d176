"""OpenTelemetry: a span for every trial and request, metrics, and events of scores.

The names are those of the GenAI semantic conventions, https://opentelemetry.io/docs/specs/semconv/gen-ai/.
An event is a log record with a name, in the context of the span of its request. Nothing here is imported
unless a config asks for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import ModelConfig
from adaptive_eval.engine.events import Attempted, Event, Finished
from adaptive_eval.errors import library, without_home
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.trial import TrialKey, score_of

_PROVIDERS = {
    "anthropic.com": "anthropic",
    "api.mistral.ai": "mistral_ai",
    "deepseek.com": "deepseek",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "groq.com": "groq",
    "openai.azure.com": "azure.ai.openai",
    "openai.com": "openai",
}
"""Names of the conventions; another server is named by its host."""
_SAMPLING = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""Buckets, as the conventions have them."""


class Telemetry:
    """Makes spans, metrics and log records of the events of a run; a context manager and an observer.

    A trial's span holds one for each of its requests. Prompts and answers are not sent.

    Parameters
    ----------
    config : RunConfig
        The run.
    tracers, meters, loggers : TracerProvider, MeterProvider, LoggerProvider of OpenTelemetry, optional
        Where spans, metrics and log records go; default: those that the process has set, else OTLP over HTTP,
        as ``OTEL_EXPORTER_OTLP_ENDPOINT`` and its like say.

    Raises
    ------
    UsageError
        If OpenTelemetry is not installed.
    """

    def __init__(
        self, config: RunConfig, tracers: Any = None, meters: Any = None, loggers: Any = None
    ) -> None:
        self._trace: Any = _library("opentelemetry.trace")
        self._run = config.name
        self._models = {model.name: model for model in config.models}
        self._tasks = {task.name: task for task in config.tasks}
        self._attempts: dict[TrialKey, list[AttemptRecord]] = defaultdict(list)
        self._own: list[Any] = []
        tracer = (tracers or self._tracers()).get_tracer("adaptive-eval")
        meter = (meters or self._meters()).get_meter("adaptive-eval")
        self._tracer = tracer
        self._logger = (loggers or self._loggers()).get_logger("adaptive-eval")
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", explicit_bucket_boundaries_advisory=_SECONDS
        )
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", explicit_bucket_boundaries_advisory=_TOKENS
        )

    def __enter__(self) -> Telemetry:
        return self

    def __exit__(self, *_: object) -> None:
        self.close(None)

    def close(self, error: Exception | None) -> str | None:
        """Send what has not been sent."""
        for provider in self._own:
            provider.shutdown()
        return None

    def __call__(self, event: Event) -> None:
        """Take an event; the exporter sends it in its own thread."""
        if isinstance(event, Attempted):
            for attempt in event.records:
                self._attempts[attempt.key].append(attempt)
        elif isinstance(event, Finished):
            for record in event.records:
                self._trial(record, self._attempts.pop(record.request.key, []))

    def _trial(self, record: TrialRecord, attempts: list[AttemptRecord]) -> None:
        """Make the spans of a trial, once all of it is known."""
        request = record.request
        model = self._models[record.request.key.model]
        begun = min((attempt.started_at for attempt in attempts), default=record.finished_at)
        attributes = {
            "adaptive_eval.run": self._run,
            "adaptive_eval.model": request.key.model,
            "adaptive_eval.task": request.task,
            "adaptive_eval.question": request.question,
            "adaptive_eval.repeat": request.repeat,
        }
        if record.score is not None and record.score.category is not None:
            attributes["adaptive_eval.category"] = record.score.category
        whole = self._tracer.start_span(
            f"trial {request.task}", start_time=_nanoseconds(begun), attributes=attributes
        )
        if record.missing is not None:
            whole.set_status(self._trace.StatusCode.ERROR, record.missing)
        context = self._trace.set_span_in_context(whole)
        answered = [attempt for attempt in attempts if attempt.error is None]
        usage = _usage_of(record)
        for attempt in attempts:
            asked = _asked(model, attempt)
            named = asked
            if attempt.error is not None:
                named = {**asked, "error.type": attempt.error}
            self._duration.record(attempt.latency, named)
            alone = usage
            if answered != [attempt]:
                alone = {}
            span = self._tracer.start_span(
                f"{asked['gen_ai.operation.name']} {model.model_id}",
                context=context,
                kind=self._trace.SpanKind.CLIENT,
                start_time=_nanoseconds(attempt.started_at),
                attributes={**named, **_sampling(model), **alone, "gen_ai.request.seed": request.seed},
            )
            if attempt.error is not None:
                span.set_status(self._trace.StatusCode.ERROR, attempt.message)
            elif attempt is answered[-1]:
                self._evaluation(span, record)
            span.end(_nanoseconds(attempt.started_at + attempt.latency))
        if len(answered) != 1:  # the calls of a solver are known together
            whole.set_attributes(usage)
        for kind in ("input", "output"):
            tokens = usage.get(f"gen_ai.usage.{kind}_tokens")
            if tokens is not None and answered:
                self._usage.record(tokens, {**_asked(model, answered[-1]), "gen_ai.token.type": kind})
        whole.end(_nanoseconds(max(record.finished_at, begun)))

    def _evaluation(self, span: Any, record: TrialRecord) -> None:
        """Emit the event of how a request's answer was scored, if it was, in the context of its span."""
        score = record.score
        answer = record.completion
        task = self._tasks.get(record.request.task)
        if score is None or score.category is None or task is None:
            return
        attributes: dict[str, Any] = {
            "gen_ai.evaluation.name": task.scorer.kind,
            "gen_ai.evaluation.score.value": score_of(task.rubric.category_weights, score.category),
        }
        right = score.signals.get("is_correct")
        if isinstance(right, bool):
            attributes["gen_ai.evaluation.score.label"] = "correct" if right else "incorrect"
        if answer is not None and answer.response_id:
            attributes["gen_ai.response.id"] = answer.response_id
        self._logger.emit(
            timestamp=_nanoseconds(record.finished_at),
            context=self._trace.set_span_in_context(span),
            event_name="gen_ai.evaluation.result",
            attributes=attributes,
        )

    def _tracers(self) -> Any:
        """Return the provider that the process has set, or one of our own."""
        found = self._trace.get_tracer_provider()
        sdk = _library("opentelemetry.sdk.trace")
        if isinstance(found, sdk.TracerProvider):
            return found
        exporter = _library("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
        made = sdk.TracerProvider(resource=_resource())
        made.add_span_processor(_library("opentelemetry.sdk.trace.export").BatchSpanProcessor(exporter))
        self._own.append(made)
        return made

    def _loggers(self) -> Any:
        found = _library("opentelemetry._logs").get_logger_provider()
        sdk = _library("opentelemetry.sdk._logs")
        if isinstance(found, sdk.LoggerProvider):
            return found
        exporter = _library("opentelemetry.exporter.otlp.proto.http._log_exporter").OTLPLogExporter()
        made = sdk.LoggerProvider(resource=_resource())
        processor = _library("opentelemetry.sdk._logs.export").BatchLogRecordProcessor(exporter)
        made.add_log_record_processor(processor)
        self._own.append(made)
        return made

    def _meters(self) -> Any:
        found = _library("opentelemetry.metrics").get_meter_provider()
        sdk = _library("opentelemetry.sdk.metrics")
        if isinstance(found, sdk.MeterProvider):
            return found
        exporter = _library("opentelemetry.exporter.otlp.proto.http.metric_exporter").OTLPMetricExporter()
        reader = _library("opentelemetry.sdk.metrics.export").PeriodicExportingMetricReader(exporter)
        made = sdk.MeterProvider([reader], resource=_resource())
        self._own.append(made)
        return made


def _resource() -> Any:
    return _library("opentelemetry.sdk.resources").Resource.create({"service.name": "adaptive-eval"})


def _asked(model: ModelConfig, attempt: AttemptRecord) -> dict[str, Any]:
    """Return what spans and metrics of a request share."""
    parts = urlsplit(attempt.endpoint)
    host = parts.hostname or without_home(attempt.endpoint)
    provider = next((name for end, name in _PROVIDERS.items() if f".{host}".endswith(f".{end}")), host)
    if parts.hostname:
        port = {"server.port": parts.port or {"https": 443, "http": 80}[parts.scheme]}
    else:
        port = {}
    return {
        "gen_ai.operation.name": "text_completion" if model.api == "completions" else "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model.model_id,
        "server.address": host,
        **port,
    }


def _sampling(model: ModelConfig) -> dict[str, Any]:
    sent = model.sampling.as_sent()
    found = {f"gen_ai.request.{name}": sent[name] for name in _SAMPLING if name in sent}
    limit = model.sampling.token_limit
    if limit is None:
        return found
    return {**found, "gen_ai.request.max_tokens": limit}


def _usage_of(record: TrialRecord) -> Mapping[str, Any]:
    """Return tokens that a trial was charged for, and the ending of its answer."""
    answer = record.completion
    if answer is None and not record.usage.total_tokens:
        return {}
    tokens = {
        "gen_ai.usage.input_tokens": record.usage.prompt_tokens,
        "gen_ai.usage.output_tokens": record.usage.completion_tokens,
    }
    if answer is None:  # a solver has paid for calls and found none
        return tokens
    return {
        **tokens,
        "gen_ai.response.model": answer.model,
        "gen_ai.response.id": answer.response_id,
        "gen_ai.response.finish_reasons": (answer.finish_reason,),
    }


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _library(module: str) -> Any:
    return library(module, "notify.otel", "opentelemetry-exporter-otlp-proto-http")
