"""``run`` with metrics and notices: scraped while it runs, told when it stops, and never failed by either."""

import json
import sys
import time

import httpx
import pytest
from command_line import (
    PATIENCE,
    free_port,
    hold_back,
    in_process,
    mimic_spec,
    pair_decisions,
    port_of_ones_own,
    quickstart,
    report,
    set_faults,
    started,
    write_config,
)

from adaptive_eval.mimic.process import MimicProcess

LOG = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


@pytest.mark.slow
def test_it_is_scraped_while_it_runs_and_tells_what_happens(tmp_path):
    log, port = tmp_path / "notices.jsonl", port_of_ones_own()
    notify = {"notify": {"command": [sys.executable, "-c", LOG, str(log)]}}
    arguments = ("--metrics-port", port, "--metrics-file", "run.prom", "--display", "none")
    with MimicProcess(mimic_spec()) as mimic:
        config = write_config(tmp_path, quickstart(base_url=mimic.base_url) | notify)
        hold_back(mimic, 150, seconds=2.0)
        with started("run", config, *arguments, cwd=tmp_path) as running:
            page, deadline = "", time.monotonic() + PATIENCE
            while "adaptive_eval_trials_total{" not in page and time.monotonic() < deadline:
                try:
                    page = httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE).text
                except httpx.TransportError:
                    assert running.for_a_moment(), running.finish()
            set_faults(mimic)
            finished = running.finish()
    assert finished.code == 0, finished
    assert 'adaptive_eval_trials_total{model="sage"}' in page
    assert 'adaptive_eval_stopped{reason="resolved"} 1.0' in (tmp_path / "run.prom").read_text("utf-8")
    run = tmp_path / "runs" / "quickstart"
    notices = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert sum(notice["event"] == "pair_decided" for notice in notices) == len(pair_decisions(run)) == 10
    assert notices[-1]["event"] == "stopped"
    assert notices[-1]["trials"] == report(run)["counts"]["trials"]


def test_a_webhook_that_is_gone_is_said_and_fails_nothing(tmp_path, monkeypatch):
    url = f"http://127.0.0.1:{free_port()}/services/s3cr3t"
    data = quickstart() | {"notify": {"webhook_env": "HOOK", "on": ["stopped"]}}
    config = write_config(tmp_path, data)
    monkeypatch.setenv("HOOK", url)
    done = in_process("run", config, "-o", "budget.trials=20", "--display", "none", cwd=tmp_path, code=3)
    assert "warning: 1 of 1 notice not delivered: the webhook could not be reached" in done.err
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cr3t" not in stored + done.said.encode()


def test_a_run_that_ends_without_asking_tells_its_figures_and_what_is_new(tmp_path):
    """A changed rule decides at once and is told of; later the run is complete, and keeps its metrics."""
    log, metrics = tmp_path / "notices.jsonl", tmp_path / "run.prom"
    (tmp_path / "mine.py").write_text("def right(p): return p\ndef wrong(p): return 'no'\n", "utf-8")
    rows = "".join(json.dumps({"id": f"q{n}", "input": str(n), "target": str(n)}) + "\n" for n in range(12))
    (tmp_path / "rows.jsonl").write_text(rows, "utf-8")
    models = [{"name": name, "endpoints": [f"python:mine.py:{name}"]} for name in ("right", "wrong")]
    tasks = [{"name": "same", "dataset": "rows.jsonl", "scorer": "exact"}]
    data = {"name": "soon", "models": models, "tasks": tasks, "budget": {"trials": 24}}
    data["notify"] = {"command": [sys.executable, "-c", LOG, str(log)]}
    line = ("run", write_config(tmp_path, data), "--metrics-file", metrics, "--display", "none")

    def figures():
        rows = metrics.read_text("utf-8").splitlines()
        return [row for row in rows if "{model=" in row and "endpoint" not in row]

    told = []
    before = None
    for confidence, code, news in ((0.99999, 3, []), (0.6, 0, ["pair_decided"]), (0.6, 0, [])):
        changes = ("-o", f"stopping.confidence={confidence}")
        in_process(*line, *changes, cwd=tmp_path, code=code)
        told += [*news, "stopped"]
        assert [json.loads(one)["event"] for one in log.read_text("utf-8").splitlines()] == told
        if not news and before is not None:
            assert figures() == before
        before = figures()
        assert 'adaptive_eval_score{model="right"} 1.0' in before
    assert 'adaptive_eval_stopped{reason="resolved"} 1.0' in metrics.read_text("utf-8")
