"""Metrics: what Prometheus reads is what the results say."""

import json
import re
import urllib.request
from dataclasses import replace
from pathlib import Path

import standings_examples as examples
from prometheus_client.parser import text_string_to_metric_families

from adaptive_eval.core.results import Forecast, Range
from adaptive_eval.views.metrics import FILE_EVERY, RunMetrics

ROOT = Path(__file__).parents[2]


def parsed(text):
    """Return every sample by name and labels."""
    return {
        (sample.name.removeprefix("adaptive_eval_"), *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scraped(metrics):
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=60) as answer:
        return parsed(answer.read().decode())


def updated(metrics, results, *, at=100.0, failing=False):
    metrics.update(at, 60.0, results, examples.endpoints_of(results, failing=failing))


def test_a_scrape_says_what_the_results_say():
    results = examples.midrun()
    with RunMetrics("forest", ("127.0.0.1", 0)) as metrics:
        updated(metrics, results, failing=True)
        samples = scraped(metrics)
    info = (("goal", "rank all models"), ("rule", "anytime"), ("run", "forest"))
    assert samples[("run_info", *info)] == 1
    for line in results.models:
        label = ("model", line.model)
        assert samples[("missing_trials_total", label)] == line.missing
        assert samples[("cost_usd_total", label)] == line.usd
        assert samples[("score_low", label)] == line.low
        for name in ("trials_total", "prompt_tokens_total", "score", "rank_high"):
            assert samples[(name, label)] == getattr(line, name.removesuffix("_total"))
        assert samples[("model_state", label, ("state", line.state))] == 1
    verdicts = [pair.verdict for pair in results.pairs]
    assert samples[("pairs", ("verdict", "open"))] == verdicts.count("open") > 0
    assert samples[("pairs", ("verdict", "tied"))] == verdicts.count("tie")
    progress = [value for name, value in samples.items() if name[0] == "pair_progress"]
    assert len(progress) == verdicts.count("open")
    assert all(0 <= value <= 1 for value in progress)
    assert samples[("budget_limit", ("budget", "trials"), ("owner", ""), ("scope", "run"))] == 20_000
    assert samples[("running_seconds",)] == 60
    assert sum(value for name, value in samples.items() if name[0] == "endpoint_errors_total") == 15
    endpoint = (("endpoint", "http://127.0.0.1:8000/v1"), ("model", "oak"))
    assert samples[("endpoint_latency_seconds", *endpoint, ("quantile", "0.95"))] == 1.7
    assert not [name for name in samples if name[0] == "stopped"]


def test_the_stop_and_the_forecast_are_there():
    forecast = Forecast(0.8, Range(10, 20, 30), Range(100, 200, 300), None, ())
    results = replace(examples.out_of_budget(), forecast=forecast)
    with RunMetrics("forest", ("127.0.0.1", 0)) as metrics:
        updated(metrics, results)
        samples = scraped(metrics)
    assert samples[("stopped", ("reason", "budget"))] == 1
    assert samples[("forecast_resolved",)] == 0.8
    assert samples[("forecast_trials", ("quantile", "0.9"))] == 30
    assert not [name for name in samples if name[0] == "forecast_usd"]


def test_the_dashboard_asks_for_what_is_there():
    """Every metric, and every label of it, that a panel of docs/examples/grafana.json names."""
    forecast = Forecast(0.8, Range(10, 20, 30), Range(100, 200, 300), None, ())
    labels = {}
    with RunMetrics("forest", ("127.0.0.1", 0)) as metrics:
        for results in (replace(examples.midrun(), forecast=forecast), examples.out_of_budget()):
            updated(metrics, results, failing=True)
            for name, *pairs in scraped(metrics):
                labels.setdefault(name, {"job"}).update(label for label, _ in pairs)
    board = json.loads((ROOT / "docs" / "examples" / "grafana.json").read_text("utf-8"))
    assert len(board["panels"]) > 10
    for panel in board["panels"]:
        for target in panel["targets"]:
            asked = re.findall(r"adaptive_eval_(\w+)(?:\{([^}]*)\})?", target["expr"])
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            for name, matchers in asked:
                assert {*re.findall(r"(\w+)=~", matchers), *shown} <= labels.get(name, set()), name
    queries = [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]
    for name in re.findall(r"adaptive_eval_(\w+)", " ".join(queries)):
        assert name in labels


def test_the_file_is_kept_up_to_date_and_whole(tmp_path):
    file = tmp_path / "run.prom"
    results = examples.midrun()
    with RunMetrics("forest", file=file) as metrics:
        assert "adaptive_eval_run_info" in file.read_text()
        updated(metrics, results, at=100.0)
        assert parsed(file.read_text())[("snapshot_timestamp_seconds",)] == 100
        updated(metrics, results, at=100.0 + FILE_EVERY / 2)
        assert parsed(file.read_text())[("snapshot_timestamp_seconds",)] == 100, "not at every update"
        updated(metrics, results, at=100.0 + FILE_EVERY)
        assert parsed(file.read_text())[("snapshot_timestamp_seconds",)] == 105
        updated(metrics, examples.finished(), at=106.0)
        assert parsed(file.read_text())[("stopped", ("reason", "resolved"))] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.prom"]


def test_a_file_that_becomes_unwritable_does_not_fail_the_run(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with RunMetrics("forest", file=folder / "run.prom") as metrics:
        (folder / "run.prom").unlink()
        folder.rmdir()
        updated(metrics, examples.finished())
    assert not folder.exists()
