"""Metrics, notices and trackers: what they say, and never in the way of the run."""

import json
import re
import sys
import threading
import urllib.request
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import standings_examples as examples
from config_texts import plain
from json_server import Replies, serving
from prometheus_client.parser import text_string_to_metric_families
from standings_examples import finished

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core.results import Range, RunForecast, StopVerdict
from adaptive_eval.engine.events import Decided, Progress, Stopped
from adaptive_eval.errors import UsageError
from adaptive_eval.run import observers
from adaptive_eval.run.observers import MetricsOptions, Outlets
from adaptive_eval.run.trackers import Tracker, figures_of
from adaptive_eval.views.metrics import FILE_EVERY, RunMetrics
from adaptive_eval.views.notifications import DeliveryError, Notice, Notifier, command, webhook

# Notices: delivered by HTTP and by a program, and never in the way of the run.


NOTICE = Notice("stopped", "forest", 1.5, "goal reached \x1b[2J\u202e", 352, ("oak",), "resolved")
SECRET = "T0KEN-of-the-webhook"


@contextmanager
def receiver(status=200):
    """Serve a webhook; yield its URL and the list of what it got."""
    got = []

    class Handler(Replies):
        def do_POST(self):
            got.append((self.path, self.headers["Content-Type"], self.asked()))
            self.reply("", status)

    with serving(Handler) as address:
        yield f"{address}/{SECRET}", got


def test_a_webhook_gets_the_notice_as_json():
    with receiver() as (url, got):
        webhook(url)(NOTICE)
    ((path, kind, body),) = got
    assert (path, kind) == (f"/{SECRET}", "application/json")
    named = {"schema": "adaptive-eval/notice", "version": 1, "event": "stopped", "run": "forest", "at": 1.5}
    named |= {"trials": 352, "models": ["oak"], "verdict": "resolved"}
    assert body == {**named, "text": "forest: goal reached ␛[2J\\u202e"}


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_webhook_that_refuses_is_a_failure_without_its_address(status):
    with receiver(status) as (url, _), pytest.raises(DeliveryError, match=f"answered {status}") as failure:
        webhook(url)(NOTICE)
    assert SECRET not in str(failure.value)


def test_a_command_gets_the_notice_on_its_input(tmp_path):
    place = tmp_path / "$(touch here); x"
    command([sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())", str(place)])(
        NOTICE
    )
    assert json.loads(place.read_text())["event"] == "stopped"
    assert [path.name for path in tmp_path.iterdir()] == [place.name]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([sys.executable, "-c", "raise SystemExit(3)"], "ended with code 3"),
        (["/no/such/program"], "could not be started"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "took longer than 0.2 s"),
    ],
)
def test_a_command_that_fails_says_how(arguments, words):
    with pytest.raises(DeliveryError, match=words):
        command(arguments, timeout=0.2 if "sleep" in arguments[-1] else 60.0)(NOTICE)


def test_everything_told_is_delivered_in_order():
    got = []
    notifier = Notifier([got.append])
    notices = [Notice("pair_decided", "forest", float(i), str(i)) for i in range(50)]
    for notice in notices:
        notifier.tell(notice)
    assert notifier.close() is None
    assert got == notices


def test_a_channel_that_hangs_holds_up_nothing():
    released = threading.Event()
    notifier = Notifier([lambda _: released.wait() and None], most=3)
    for _ in range(10):
        notifier.tell(NOTICE)
    words = notifier.close(patience=0.05)
    assert words is not None
    assert words == "10 of 10 notices not delivered: they were still under way 0.05 s after the end"
    released.set()


def config_of(**notify):
    return config_from_data(plain("oak", "elm", name="forest", notify=notify))


def told(config, events):
    """Return what a webhook is told of these events."""
    with receiver() as (url, got), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOK", url)
        with suppress(ZeroDivisionError), Outlets(config, MetricsOptions()) as outlets:
            for event in events:
                outlets(event)
    return [body for _, _, body in got]


def events_of(results):
    yield Progress(1.0, 1.0, results, ())
    yield Decided(1.0, examples.decisions_of(results))
    yield Stopped(results.stop or StopVerdict("interrupted", "interrupted by the user"))


def test_pairs_and_the_stop_are_told_in_words():
    results = examples.finished()
    bodies = told(config_of(webhook_env="HOOK"), events_of(results))
    pairs = [body for body in bodies if body["event"] == "pair_decided"]
    assert len(pairs) == sum(pair.verdict != "open" for pair in results.pairs)
    assert all(len(body["models"]) == 2 and body["verdict"] for body in pairs)
    assert [body["event"] for body in bodies][-1] == "stopped"
    assert bodies[-1]["verdict"] == "resolved"
    assert bodies[-1]["text"].startswith("forest: oak is ahead of all others;")
    assert bodies[-1]["text"].endswith("Stopped: goal reached: 10 pairs decided, 1 of them tied.")
    assert told(config_of(webhook_env="HOOK", on=["stopped"]), events_of(results))[0]["event"] == "stopped"
    (body,) = told(config_of(webhook_env="HOOK"), (1 / 0 for _ in "x"))
    assert (body["event"], body["text"]) == ("error", "forest: division by zero")
    assert MetricsOptions("9100").address() == ("127.0.0.1", 9100)


def test_a_pair_is_told_with_what_its_own_results_rest_on():
    before, decided = examples.midrun(), examples.finished()
    lines = [replace(line, redrawn_trials=2) for line in decided.models]
    after = replace(decided, models=tuple(lines))
    events = (
        Progress(1.0, 1.0, before, ()),
        Decided(2.0, examples.decisions_of(decided)),
        Progress(3.0, 3.0, after, ()),
        Progress(4.0, 4.0, before, ()),  # a notice waits for the next results alone
    )
    bodies = told(config_of(webhook_env="HOOK", on=["pair_decided"]), events)
    assert bodies
    assert all("(on.discarded)" in body["text"] for body in bodies)
    assert len(told(config_of(webhook_env="HOOK", on=["pair_decided"]), events[:2])) == len(bodies)


# Experiment trackers: they get the figures, and whatever they do, the run continues.


END = Stopped(StopVerdict("resolved", "goal reached"))


PROGRESS = Progress(0.0, 1.0, finished(), ())


class Written:
    """Remembers what it is sent."""

    def __init__(self):
        self.logged, self.summary = [], None

    def log(self, step, figures):
        self.logged.append((step, figures))

    def finish(self, summary):
        self.summary = summary


def test_figures_and_the_end_arrive():
    backend = Written()
    tracker = Tracker(lambda: backend)
    tracker(PROGRESS)
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
        tracker(PROGRESS)
        for sent in tracker._sent:
            sent.result(60)
    tracker.close()
    assert len(backend.logged) == 3


def test_a_slow_backend_is_not_waited_for():
    free = threading.Event()

    backend = Written()
    backend.log = lambda *_: free.wait(30) and backend.logged.append(_)
    tracker = Tracker(lambda: backend, every=0.0)
    for _ in range(50):
        tracker(PROGRESS)  # returns although nothing is taken
    tracker(END)
    assert "had not taken the last figures" in tracker.close(patience=0.01)
    free.set()
    for sent in tracker._sent:
        with suppress(CancelledError):
            sent.result(60)
    assert len(backend.logged) <= 1
    assert backend.summary is None, "it came too late"


@pytest.mark.parametrize("where", ["open", "log", "finish"])
def test_a_backend_that_fails_is_left_alone(where):
    def fail(*_):
        raise RuntimeError("no network")

    backend = Written()
    if where != "open":
        setattr(backend, where, fail)
    tracker = Tracker(fail if where == "open" else lambda: backend)
    tracker(PROGRESS)
    tracker(END)
    assert tracker.close() == "the tracker has failed: RuntimeError: no network"


MISSING = {name: f"pip install {name}" for name in ("wandb", "mlflow")} | {"webhook_env": "HOOK is not set"}


@pytest.mark.parametrize(("setting", "words"), MISSING.items())
def test_a_missing_library_or_variable_is_named_before_anything_is_spent(setting, words, monkeypatch):
    monkeypatch.setitem(sys.modules, setting, None)
    with pytest.raises(UsageError, match=words), Outlets(config_of(**{setting: "HOOK"}), MetricsOptions()):
        pass


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
    still_open = next(pair for pair in results.pairs if pair.verdict == "open")
    claims = [replace(still_open, kind="not-worse", margin=margin) for margin in (0.1, 0.05)]
    results = replace(results, pairs=(*results.pairs, *claims))
    with RunMetrics("forest", ("127.0.0.1", 0)) as metrics:
        updated(metrics, results, failing=True)
        samples = scraped(metrics)
    info = (("goal", "rank all models"), ("rule", "anytime"), ("run", "forest"))
    assert samples[("run_info", *info)] == 1
    for line in results.models:
        label = ("model", line.model)
        assert samples[("missing_total", label)] == line.missing
        assert samples[("usd_total", label)] == line.usd
        assert samples[("score_low", label)] == line.score_low
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
    assert samples[("elapsed_seconds",)] == 60
    assert sum(value for name, value in samples.items() if name[0] == "endpoint_errors_total") == 15
    endpoint = (("endpoint", "http://127.0.0.1:8000/v1"), ("model", "oak"))
    assert samples[("endpoint_latency_seconds", *endpoint, ("quantile", "0.95"))] == 1.7
    assert not [name for name in samples if name[0] == "stopped"]


def test_the_dashboard_asks_for_what_is_there():
    """Every metric, and every label of it, that a panel of docs/examples/grafana.json names."""
    forecast = RunForecast(0.8, Range(10, 20, 30), Range(100, 200, 300), None, ())
    labels = {}
    with RunMetrics("forest", ("127.0.0.1", 0)) as metrics:
        for results in (examples.midrun(), replace(examples.out_of_budget(), forecast=forecast)):
            updated(metrics, results, failing=True)
            samples = scraped(metrics)
            for name, *pairs in samples:
                labels.setdefault(name, {"job"}).update(label for label, _ in pairs)
    assert samples[("stopped", ("reason", "budget"))] == 1
    assert samples[("forecast_resolved",)] == 0.8
    assert samples[("forecast_trials", ("quantile", "0.9"))] == 30
    assert "forecast_usd" not in labels
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
        assert parsed(file.read_text())[("updated_at",)] == 100
        updated(metrics, results, at=100.0 + FILE_EVERY / 2)
        assert parsed(file.read_text())[("updated_at",)] == 100, "not at every update"
        updated(metrics, results, at=100.0 + FILE_EVERY)
        assert parsed(file.read_text())[("updated_at",)] == 105
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


def test_a_file_that_cannot_be_written_ends_the_server_that_was_started_before_it(tmp_path):
    metrics = RunMetrics("forest", ("127.0.0.1", 0), file=tmp_path / "none" / "run.prom")
    with pytest.raises(UsageError, match="metrics cannot be written to"), metrics:
        pass
    with pytest.raises(OSError, match="refused"):
        scraped(metrics)


def test_an_outlet_is_told_every_event_the_error_and_what_it_reports_at_the_end(monkeypatch):
    told, said = [], []

    class Own:
        def __call__(self, event):
            told.append(event)

        def close(self, error):
            told.append(error)
            return "two were lost"

    monkeypatch.setattr(observers, "OUTLETS", (lambda config, options: [Own()],))
    error = ZeroDivisionError("no")
    config = config_of(command=["true"])
    with suppress(ZeroDivisionError), Outlets(config, MetricsOptions(), said.append) as outlets:
        outlets("event")
        raise error
    assert told == ["event", error]
    assert said == ["warning: two were lost"]
