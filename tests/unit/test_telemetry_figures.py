"""What OpenTelemetry is told of trials is what the run file says of them."""

from collections import Counter
from types import SimpleNamespace

import pytest

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.engine.events import Attempted, Finished
from adaptive_eval.run import telemetry
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

CONFIG = {
    "name": "told",
    "models": [
        {"name": "chat", "endpoints": ["http://here/v1"], "sampling": {"max_tokens": 64}},
        {
            "name": "text",
            "endpoints": ["https://there:8443/v1"],
            "api": "completions",
            "sampling": {"max_tokens": 8},
        },
    ],
    "tasks": [
        {"name": "t", "dataset": "q.jsonl", "scorer": "numeric"},
        {
            "name": "graded",
            "dataset": "q.jsonl",
            "scorer": "numeric",
            "rubric": {"schema": "exact-match", "weights": [0, 0.25, 1]},
        },
    ],
}
SERVERS = {"chat": "http://here/v1", "text": "https://there:8443/v1"}
RIGHT = Score(1, "4", {"is_correct": True})


class Heard:
    """Stands for the libraries and providers of OpenTelemetry, which the quick tests go without."""

    StatusCode = SimpleNamespace(ERROR="error")
    SpanKind = SimpleNamespace(CLIENT="client")

    def __init__(self):
        self.spans, self.events, self.metrics = [], [], Counter()

    def get_tracer(self, name):
        return self

    get_meter = get_logger = get_tracer

    def create_histogram(self, name, unit, **options):
        def record(value, attributes):
            kind = attributes.get("gen_ai.token.type", attributes.get("error.type", "answered"))
            self.metrics[kind] += value
            self.metrics[kind, "times"] += 1

        return SimpleNamespace(record=record)

    def set_span_in_context(self, span):
        return span

    def start_span(self, name, start_time, attributes, context=None, kind=None):
        span = SimpleNamespace(name=name, start=start_time, attributes=dict(attributes), of=context)
        span.said, span.set_attributes = None, span.attributes.update
        span.set_status = lambda code, words: setattr(span, "said", words)
        span.end = lambda at: setattr(span, "ended", at)
        self.spans.append(span)
        return span

    def emit(self, **event):
        self.events.append(SimpleNamespace(**event))


def told(monkeypatch, record, *errors):
    """Return what is heard of one trial whose requests end so, each after half a second."""
    heard = Heard()
    monkeypatch.setattr(telemetry, "_library", lambda module: heard)
    key = record.request.key
    attempts = tuple(
        AttemptRecord(key, number, SERVERS[key.model], 100.0 + number, 0.5, None, error, error or "")
        for number, error in enumerate(errors, start=1)
    )
    with telemetry.Telemetry(config_from_data(CONFIG), heard, heard, heard) as observer:
        for attempt in attempts:
            observer(Attempted((attempt,)))
        observer(Finished((record,)))
        observer(Finished((record,)))  # of another session: its requests are not told twice
    again = heard.spans.pop()
    assert again.name == f"trial {record.request.task}"
    assert again.attributes.get("gen_ai.usage.input_tokens", 0) == record.usage.prompt_tokens
    heard.events = heard.events[:1]
    return heard


def trial(answer, score=RIGHT, model="chat", task="t", **more):
    return TrialRecord(TrialRequest(TrialKey(model, 3), task, "q1", 2, 7), 109.0, answer, score, **more)


PLAIN = Completion("4", "stop", Usage(100, 5, 60), response_id="r1")
SHARED = Completion("4", "stop", Usage(100, 5), share=Usage(0, 5))
UNSCORED = Score(None, None, {}, "the scorer failed")
CASES = {
    "one answer, its prompt from a cache": (trial(PLAIN), [None]),
    "after failures": (trial(PLAIN), ["server", "timeout", None]),
    "one of several answers to a request": (trial(SHARED), [None]),
    "a solver": (trial(PLAIN, charged=Usage(400, 20)), [None, "server", None]),
    "a solver that goes without its last call": (trial(PLAIN, charged=Usage(9, 8)), [None, None, "server"]),
    "a solver's only call": (trial(PLAIN, charged=Usage(100, 5)), [None]),
    "a solver that found none": (trial(None, None, missing="gone", charged=Usage(40, 2)), [None, "server"]),
    "an answer without a score": (trial(PLAIN, UNSCORED, missing="unscored: it failed"), [None]),
    "no answer": (trial(None, None, missing="gone"), ["server", "server"]),
    "of texts, by another scorer's worths": (trial(PLAIN, model="text", task="graded"), [None]),
}


@pytest.mark.parametrize("case", CASES)
def test_telemetry_tells_the_figures_of_the_run_file(monkeypatch, case):
    record, errors = CASES[case]
    heard = told(monkeypatch, record, *errors)
    whole, *asked = heard.spans
    usage, answered = record.usage, [span for span in asked if span.said is None]
    tokens = {
        name: [span for span in heard.spans if f"gen_ai.usage.{name}_tokens" in span.attributes]
        for name in ("input", "output")
    }
    if usage.total_tokens:
        (of_input,), (of_output,) = tokens.values()
        assert of_input is of_output is (answered[0] if len(answered) == 1 else whole)
        assert of_input.attributes["gen_ai.usage.input_tokens"] == usage.prompt_tokens
        assert of_input.attributes["gen_ai.usage.output_tokens"] == usage.completion_tokens
    else:
        assert tokens == {"input": [], "output": []}
    assert (heard.metrics["input"], heard.metrics["output"]) == (usage.prompt_tokens, usage.completion_tokens)
    assert [span.said for span in asked] == errors
    for error in {*errors}:
        kind = error or "answered"
        assert heard.metrics[kind] == 0.5 * errors.count(error)
        assert heard.metrics[kind, "times"] == errors.count(error)
    assert {span.of is whole for span in asked} == {True}
    assert (whole.start, whole.ended, whole.said) == (101 * 10**9, 109 * 10**9, record.missing)
    assert None not in [value for span in heard.spans for value in span.attributes.values()]
    category = record.score.category if record.score else None
    assert whole.attributes.get("adaptive_eval.category") == category
    if category is None:
        assert not heard.events
    else:
        (event,) = heard.events
        worth = {"t": 1.0, "graded": 0.25}[record.request.task]
        assert event.context is answered[-1]
        assert event.attributes["gen_ai.evaluation.score.value"] == worth
        assert event.attributes["gen_ai.evaluation.score.label"] == "correct"
        assert event.attributes.get("gen_ai.response.id", "") == record.completion.response_id


def test_a_model_is_told_by_its_own_interface_server_and_limit(monkeypatch):
    names = ("gen_ai.operation.name", "server.address", "server.port", "gen_ai.request.max_tokens")
    found = []
    for model in SERVERS:
        span = told(monkeypatch, trial(PLAIN, model=model), None).spans[1]
        found.append([span.attributes.get(name) for name in names])
    assert found == [["chat", "here", 80, 64], ["text_completion", "there", 8443, 8]]
