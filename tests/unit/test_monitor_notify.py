"""Notices: delivered by HTTP and by a program, and never in the way of the run."""

import json
import sys
import threading
from contextlib import contextmanager

import pytest
import standings_examples as examples
from config_texts import plain
from json_server import Replies, serving

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.run_config import NotifyConfig
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.events import Decided, Progress, Stopped
from adaptive_eval.errors import EndpointsUnusable, UsageError
from adaptive_eval.run.observers import MetricsOptions, Outlets, channels_of
from adaptive_eval.views.notifications import DeliveryError, Notice, Notifier, command, webhook

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
    assert body == {
        "schema": "adaptive-eval/notice",
        "version": 1,
        "event": "stopped",
        "run": "forest",
        "at": 1.5,
        "text": "forest: goal reached ␛[2J\\u202e",
        "trials": 352,
        "models": ["oak"],
        "verdict": "resolved",
    }


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


def told(config, events, error=None):
    """Return what a webhook is told of these events."""
    with receiver() as (url, got), pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOOK", url)
        try:
            with Outlets(config, MetricsOptions()) as outlets:
                for event in events:
                    outlets(event)
                if error is not None:
                    raise error
        except EndpointsUnusable:
            assert error is not None
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


def test_a_variable_that_is_not_set_is_named_before_anything_is_spent():
    with pytest.raises(UsageError, match="environment variable HOOK is not set"):
        channels_of(NotifyConfig(webhook_env="HOOK"), {})
    assert channels_of(None, {}) == []
