"""Experiment trackers: they get the figures, and whatever they do, the run goes on."""

import sys
import threading

import pytest
from config_texts import MINIMAL
from standings_examples import finished

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.events import Progress, Stopped
from adaptive_eval.errors import UsageError
from adaptive_eval.run.trackers import Tracker, figures_of, trackers_of

END = Stopped(StopVerdict("resolved", "goal reached"))


class Written:
    """Remembers what it is sent."""

    def __init__(self):
        self.logged, self.summary = [], None

    def log(self, step, figures):
        self.logged.append((step, figures))

    def finish(self, summary):
        self.summary = summary


def progress():
    return Progress(0.0, 1.0, finished(), ())


def test_figures_and_the_end_arrive():
    backend = Written()
    tracker = Tracker(lambda: backend)
    tracker(progress())
    tracker(END)
    assert tracker.close() is None
    assert backend.logged[-1] == (finished().trials, figures_of(finished()))
    assert backend.summary["stopped"] == "resolved"
    best = min(finished().models, key=lambda line: line.rank).model
    assert backend.summary["ranking"].startswith(best)
    assert f"{best}/score" in backend.logged[-1][1]


def test_reports_keep_their_distance():
    backend, now = Written(), [0.0]
    tracker = Tracker(lambda: backend, every=10.0, clock=lambda: now[0])
    for second in range(25):
        now[0] = float(second)
        tracker(progress())
        for sent in tracker._sent:
            sent.result(60)
    tracker.close()
    assert len(backend.logged) == 3


def test_a_slow_backend_is_not_waited_for():
    free = threading.Event()

    class Slow(Written):
        def log(self, step, figures):
            free.wait(30)
            super().log(step, figures)

    backend = Slow()
    tracker = Tracker(lambda: backend, every=0.0)
    for _ in range(50):
        tracker(progress())  # returns although nothing is taken
    assert "had not taken the last figures" in tracker.close(patience=0.01)
    free.set()
    assert len(backend.logged) <= 1


@pytest.mark.parametrize("where", ["open", "log", "finish"])
def test_a_backend_that_fails_is_left_alone(where):
    class Broken(Written):
        def __init__(self):
            super().__init__()
            if where == "open":
                raise RuntimeError("no network")

        def log(self, step, figures):
            if where == "log":
                raise RuntimeError("no network")

        def finish(self, summary):
            if where == "finish":
                raise RuntimeError("no network")

    tracker = Tracker(Broken)
    tracker(progress())
    tracker(END)
    assert tracker.close() == "the tracker has failed: RuntimeError: no network"


@pytest.mark.parametrize("tracker", ["wandb", "mlflow"])
def test_a_missing_library_is_named_before_anything_is_spent(tracker, monkeypatch):
    monkeypatch.setitem(sys.modules, tracker, None)
    config = config_from_data({**MINIMAL, "notify": {tracker: "project"}})
    with pytest.raises(UsageError, match=f"pip install {tracker}"):
        trackers_of(config)
