"""A server that is out, comes or goes is seen in every view."""

import io
from dataclasses import replace

import standings_examples as examples
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from adaptive_eval.views.metrics import RunMetrics
from adaptive_eval.views.sentences import said
from adaptive_eval.views.summary import RunHeader, summary_at
from adaptive_eval.views.terminal import run_display


def snapshot():
    """Return a snapshot of a model with five servers: there, out, refusing the model, coming, gone."""
    record = examples.snapshot_of(examples.midrun())
    first, *rest = record.endpoints
    out = replace(first, endpoint="http://gpu2/v1", state="out", errors={"connection": 4}, in_flight=0)
    refusing = replace(first, endpoint="http://gpu3/v1", state="refused", errors={"not_found": 1})
    coming = replace(first, endpoint="http://gpu4/v1", state="joining", errors={}, in_flight=0)
    gone = replace(first, endpoint="http://gpu5/v1", state="left", errors={}, in_flight=2)
    return replace(record, endpoints=(first, out, refusing, coming, gone, *rest))


def view():
    return summary_at(RunHeader("demo"), snapshot())


def test_in_the_terminal():
    console = Console(file=io.StringIO(), width=149, height=80)
    console.print(run_display(view()))
    said = console.file.getvalue().splitlines()
    lines = said[next(place for place, line in enumerate(said) if line.startswith("endpoint of")) :]
    (out,) = [text for text in lines if "http://gpu2/v1" in text]
    assert out.rstrip().endswith("does not answer, connection 4")
    (refusing,) = [text for text in lines if "http://gpu3/v1" in text]
    assert refusing.rstrip().endswith("refuses the model, not_found 1")
    (coming,) = [text for text in lines if "http://gpu4/v1" in text]
    assert coming.rstrip().endswith("has not answered yet")
    (gone,) = [text for text in lines if "http://gpu5/v1" in text]
    assert gone.rstrip().endswith("removed")
    # What needs attention stands above the rest.
    assert {lines.index(text) for text in (out, refusing, coming, gone)} == {1, 2, 3, 4}
    (errors,) = [line for line in said if line.startswith("Endpoint errors: ")]
    assert "does not answer, connection 4; " in errors
    assert "removed" not in errors


def test_on_the_page():
    words = said("run.problems", "running", view().results.models, view().endpoints, 0)
    model = snapshot().endpoints[0].model
    assert f"The server http://gpu2/v1 of {model} does not answer; requests are repeated." in words
    assert f"The server http://gpu3/v1 of {model} refuses it." in words
    assert f"The server http://gpu4/v1 of {model} does not answer; requests are repeated." in words
    assert not [line for line in words if "http://gpu5/v1" in line]


def test_in_the_metrics(tmp_path):
    record, page = snapshot(), tmp_path / "metrics.prom"
    with RunMetrics("demo", None, page) as metrics:
        metrics.update(record.at, record.elapsed, examples.midrun(), record.endpoints)
    usable = {
        sample.labels["endpoint"]: sample.value
        for family in text_string_to_metric_families(page.read_text())
        for sample in family.samples
        if sample.name == "adaptive_eval_endpoint_usable"
    }
    assert usable["http://127.0.0.1:8000/v1"] == 1
    assert [usable[f"http://gpu{number}/v1"] for number in (2, 3, 4, 5)] == [0, 0, 0, 0]
