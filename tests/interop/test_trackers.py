"""The real Weights & Biases (offline) and MLflow (as the extra installs it) take what we log."""

from time import monotonic

import pytest
from standings_examples import finished

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.events import Progress, Stopped
from adaptive_eval.run.trackers import tracker as tracker_of

pytestmark = pytest.mark.interop

PATIENCE = 120.0
"""Seconds after which a file counts as not written."""
INSTALL = "run ./scripts/interop, which installs it in an environment of its own"


def tell(kind):
    """Tell a tracker of the progress of a run and of its end."""
    tracker = tracker_of(kind, "ours", "nightly")
    tracker(Progress(0.0, 1.0, finished(), ()))
    tracker(Stopped(StopVerdict("resolved", "goal reached")))
    assert tracker.close() is None


def test_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason=f"mlflow is not installed; {INSTALL}")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.chdir(tmp_path)
    tell("mlflow")
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path}/mlflow.db")
    (found,) = client.search_runs([client.get_experiment_by_name("ours").experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.tags["stopped"] == "resolved"
    best = finished().models[0]
    assert found.data.metrics[f"{best.model}/score"] == best.score


def test_wandb(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason=f"wandb is not installed; {INSTALL}")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    tell("wandb")
    (log,) = tmp_path.rglob("run-*.wandb")
    deadline = monotonic() + PATIENCE  # a process of the library writes it, in its own time
    while f"{finished().models[0].model}/score".encode() not in log.read_bytes():
        assert monotonic() < deadline
