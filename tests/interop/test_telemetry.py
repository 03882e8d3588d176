"""The real OpenTelemetry SDK and exporter take what we send, by the names of the GenAI conventions."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import adaptive_eval
from json_server import Replies, serving
from ruamel.yaml import YAML

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.engine.events import Attempted, Finished
from adaptive_eval.mimic.mimic_spec import FaultSpec, MimicModelSpec, MimicSpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.run.telemetry import Telemetry
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SEED_TEST, AttemptRecord, TrialRecord
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

pytestmark = pytest.mark.interop
INSTALL = "OpenTelemetry is not installed; run ./scripts/interop, which installs it"
pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason=INSTALL)

TASK = {"name": "t", "dataset": "q.jsonl", "scorer": "numeric"}
MODEL = {
    "model": "gpt-5-mini",
    "endpoints": ["https://api.openai.com/v1"],
    "sampling": {"max_tokens": 64, "temperature": 0.5},
}
URL = MODEL["endpoints"][0]
PAGE = Path(__file__).parents[2] / "docs" / "interop.md"
SECTION = PAGE.read_text("utf-8").partition("## OpenTelemetry")[2]
DOCUMENTED = YAML(typ="safe", pure=True).load(SECTION.split("```")[1].removeprefix("yaml"))["notify"]


def test_a_trial_becomes_spans_metrics_and_an_event():
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as names
    from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

    exporter, reader, tracers = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    logs, loggers = InMemoryLogRecordExporter(), LoggerProvider()
    loggers.add_log_record_processor(SimpleLogRecordProcessor(logs))
    config = config_from_data(
        {"name": "run", "models": [{"name": "a", **MODEL}, {"name": "b", **MODEL}], "tasks": [TASK]}
    )
    key = TrialKey("a", 0)
    answer = Completion("4", "stop", Usage(12, 5), 2.0, model="gpt-5-mini-1", response_id="r1")
    with Telemetry(config, tracers, MeterProvider([reader]), loggers) as telemetry:
        attempts = (
            AttemptRecord(key, 1, URL, 100.0, 0.5, 500, "server", "HTTP 500"),
            AttemptRecord(key, 2, URL, 101.0, 2.0),
        )
        telemetry(Attempted(attempts))
        telemetry(Finished((TrialRecord(TrialRequest(key, "t", "q1", 0, 7), 103.5, answer, Score(1)),)))
    failed, asked, trial = exporter.get_finished_spans()
    where = trial.attributes
    assert (trial.name, where["adaptive_eval.question"], where["adaptive_eval.category"]) == (
        "trial t",
        "q1",
        1,
    )
    assert (asked.events, failed.events, trial.events) == ((), (), ())  # events of spans are deprecated
    (emitted,) = logs.get_finished_logs()
    event = emitted.log_record
    assert (event.event_name, event.timestamp) == ("gen_ai.evaluation.result", 103_500_000_000)
    assert (event.trace_id, event.span_id) == (asked.context.trace_id, asked.context.span_id)
    assert event.attributes == {
        "gen_ai.evaluation.name": "numeric",
        "gen_ai.evaluation.score.value": 1.0,
        "gen_ai.response.id": "r1",
    }
    assert {failed.parent.span_id, asked.parent.span_id} == {trial.context.span_id}
    assert asked.name == "chat gpt-5-mini"
    assert (asked.start_time, asked.end_time) == (101_000_000_000, 103_000_000_000)
    assert {
        names.GEN_AI_OPERATION_NAME: "chat",
        names.GEN_AI_PROVIDER_NAME: "openai",
        names.GEN_AI_REQUEST_MODEL: "gpt-5-mini",
        names.GEN_AI_REQUEST_MAX_TOKENS: 64,
        names.GEN_AI_REQUEST_TEMPERATURE: 0.5,
        names.GEN_AI_REQUEST_SEED: 7,
        names.GEN_AI_RESPONSE_MODEL: "gpt-5-mini-1",
        names.GEN_AI_RESPONSE_FINISH_REASONS: ("stop",),
        names.GEN_AI_USAGE_INPUT_TOKENS: 12,
        names.GEN_AI_USAGE_OUTPUT_TOKENS: 5,
        "server.address": "api.openai.com",
        "server.port": 443,
    }.items() <= asked.attributes.items()
    assert (failed.attributes["error.type"], failed.status.description) == ("server", "HTTP 500")
    assert names.GEN_AI_USAGE_INPUT_TOKENS not in failed.attributes
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    found = {metric.name: list(metric.data.data_points) for metric in scope.metrics}
    durations = found[gen_ai_metrics.GEN_AI_CLIENT_OPERATION_DURATION]
    assert sorted((point.sum, point.attributes.get("error.type", "")) for point in durations) == [
        (0.5, "server"),
        (2.0, ""),
    ]
    tokens = found[gen_ai_metrics.GEN_AI_CLIENT_TOKEN_USAGE]
    assert {point.attributes[names.GEN_AI_TOKEN_TYPE]: point.sum for point in tokens} == {
        "input": 12,
        "output": 5,
    }


def sent(got: list[Any], kind: str, records: str) -> list[Any]:
    """Return the records of a kind in what a collector got."""
    resources = [resource for one in got for resource in getattr(one, f"resource_{kind}", ())]
    scopes = [scope for resource in resources for scope in getattr(resource, f"scope_{kind}")]
    return [record for scope in scopes for record in getattr(scope, records)]


@contextmanager
def collector() -> Iterator[tuple[str, list[Any]]]:
    """Serve as a collector of OTLP over HTTP; yield its address and what it got."""
    from gzip import decompress

    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kinds = {
        "/v1/traces": ExportTraceServiceRequest,
        "/v1/metrics": ExportMetricsServiceRequest,
        "/v1/logs": ExportLogsServiceRequest,
    }
    got: list[Any] = []

    class Handler(Replies):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            data = decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
            got.append(kinds[self.path].FromString(data))
            self.reply("")

    with serving(Handler) as url:
        yield url, got


def test_a_run_sends_them_to_a_collector(tmp_path, monkeypatch):
    (tmp_path / "q.jsonl").write_text('{"input": "2 + 2?", "target": "4"}\n', "utf-8")
    faults = (FaultSpec(kind="status", status=500, requests=(1, 1)),)
    models = tuple(MimicModelSpec(name=name, mean=0.5) for name in ("a", "b"))
    with (
        collector() as (address, got),
        MimicProcess(MimicSpec(models=models, faults=faults)) as mimic,
    ):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        config = {
            "name": "told",
            "models": [{"name": name, "endpoints": [mimic.base_url]} for name in ("a", "b")],
            "tasks": [TASK],
            "goal": "budget",
            "budget": {"trials": 6},
            "notify": DOCUMENTED,
        }
        (tmp_path / "run.yaml").write_text(json.dumps(config), "utf-8")
        done = adaptive_eval("run", "run.yaml", "--display", "none", cwd=tmp_path)
    assert done.code == 0, done
    spans = sent(got, "spans", "spans")
    assert [span.name for span in spans].count("trial t") == 6
    events = sent(got, "logs", "log_records")
    assert [event.event_name for event in events] == ["gen_ai.evaluation.result"] * 6
    assert {event.span_id for event in events} <= {span.span_id for span in spans if span.parent_span_id}
    with RunReader(tmp_path / "runs" / "told") as reader:
        tests = sum(one.error == SEED_TEST for one in reader.attempts())  # of seeds, after the failure
    assert len(spans) == 6 + 7 + tests  # one request failed
    metrics = {
        metric.name
        for one in got
        for resource in getattr(one, "resource_metrics", ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= metrics
