"""The real Weights & Biases (offline) and MLflow (as the extra installs it) take what we log.

MLFLOW names the command of a whole MLflow, whose server is started then; it may be in another environment.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest
from command_line import free_port
from standings_examples import finished

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.events import Progress, Stopped
from adaptive_eval.run.trackers import tracker as tracker_of

pytestmark = pytest.mark.interop

END = Stopped(StopVerdict("resolved", "goal reached"))
PATIENCE = 120.0
"""Seconds after which a file counts as not written."""
INSTALL = "run ./scripts/interop, which installs it in an environment of its own"


def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason=f"mlflow is not installed; {INSTALL}")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    tracker = tracker_of("mlflow", "ours", "nightly")
    tracker(Progress(0.0, 1.0, finished(), ()))
    tracker(END)
    assert tracker.close() is None
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (found,) = client.search_runs([client.get_experiment_by_name("ours").experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.tags["stopped"] == "resolved"
    best = finished().models[0]
    assert found.data.metrics[f"{best.model}/score"] == best.score


@contextmanager
def mlflow_server(folder):
    """Start MLflow's server on a database, and yield its address."""
    port = free_port()
    command = [os.environ["MLFLOW"], "server", "--host", "127.0.0.1", "--port", str(port)]
    command += [
        "--backend-store-uri",
        "sqlite:///mlflow.db",
        "--artifacts-destination",
        "artifacts",
        "--workers",
        "1",
    ]
    url = f"http://127.0.0.1:{port}"
    with (
        (folder / "server.log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as server,
    ):
        try:
            deadline = monotonic() + 3 * PATIENCE
            while server.poll() is None and monotonic() < deadline:
                try:
                    if httpx.get(f"{url}/health").status_code == 200:
                        break
                except httpx.HTTPError:
                    sleep(0.2)
            yield url
        finally:
            server.terminate()


@pytest.mark.skipif("MLFLOW" not in os.environ, reason="MLFLOW does not name the command of a whole MLflow")
def test_a_run_arrives_at_a_server_of_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow", reason=f"mlflow is not installed; {INSTALL}")
    (tmp_path / "q.jsonl").write_text(
        "\n".join(f'{{"input": "{n}?", "target": "{n}"}}' for n in range(20)), "utf-8"
    )
    (tmp_path / "mine.py").write_text(
        "def right(prompt):\n    return prompt\n\n\ndef wrong(prompt):\n    return '-1'\n"
    )
    config = {
        "name": "nightly",
        "models": [
            {"name": name, "endpoints": [f"python:mine.py:{name}"], "deterministic": True}
            for name in ("right", "wrong")
        ],
        "tasks": [{"name": "t", "dataset": "q.jsonl", "scorer": "numeric"}],
        "goal": "ranking",
        "budget": {"trials": 80},
        "seed": 3,
        "notify": {"mlflow": "ours"},
    }
    text = json.dumps(config)
    (tmp_path / "c.yaml").write_text(text)
    with mlflow_server(tmp_path) as url:
        command = [
            sys.executable,
            "-m",
            "adaptive_eval",
            "run",
            "c.yaml",
            "--out",
            "run",
            "--display",
            "none",
        ]
        seen = {**os.environ, "MLFLOW_TRACKING_URI": url}
        done = subprocess.run(command, cwd=tmp_path, env=seen, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        client = mlflow.MlflowClient(url)
        (found,) = client.search_runs([client.get_experiment_by_name("ours").experiment_id])
        assert found.info.status == "FINISHED"
        assert (found.info.run_name, found.data.tags["ranking"]) == ("nightly", "right, wrong")
        assert found.data.metrics["right/score"] == 1.0
        assert found.data.metrics["pairs/open"] == 0.0
        assert found.data.params == {"goal": "ranking", "seed": "3", "models": "right, wrong", "tasks": "t"}
        kept = client.download_artifacts(found.info.run_id, "config.yaml", str(tmp_path))
    assert Path(kept).read_text("utf-8") == text


def test_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason=f"wandb is not installed; {INSTALL}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    tracker = tracker_of("wandb", "ours", "nightly")
    tracker(Progress(0.0, 1.0, finished(), ()))
    tracker(END)
    assert tracker.close() is None
    (log,) = tmp_path.rglob("run-*.wandb")
    deadline = monotonic() + PATIENCE  # a process of the library writes it, in its own time
    while f"{finished().models[0].model}/score".encode() not in log.read_bytes():
        assert monotonic() < deadline
