"""Two equal models, of which one gives its wrong answers too late or cut off: no winner, over HTTP.

If a later draw counted in place of an answer that did not come, this model would score nearly 1 against .6,
and win in every run. As lost answers they leave anything from .6 to 1. `benchmarks/discarded.py` keeps fewer
answers back and repeats the runs.
"""

import random
import time
from collections import Counter
from contextlib import suppress
from threading import Lock

import pytest
from answering_server import number_in, two_models
from command_line import in_process, report, samples, write_config
from json_server import Replies, serving

CAUSES = {"timeout": "timeout", "gateway": "server", "cut": "connection"}
DELAYS = {"timeout": 2.0, "gateway": 0.1, "cut": 0.1}
"""Seconds until the server fails: more than a request may take, or than its quickest answers do."""
SHARE = 0.9
"""Of the wrong answers of the model bad: so many do not come."""


def handler(way, kept_back):
    rng, lock = random.Random(11), Lock()

    class Handler(Replies):
        def do_GET(self):
            self.reply({"object": "list", "data": []})

        def do_POST(self):
            body = self.asked()
            with lock:
                right, coin, word = rng.random() < 0.6, rng.random(), rng.random()
            if not right and body["model"] == "bad" and coin < SHARE:
                with lock:
                    kept_back[way] += 1
                time.sleep(DELAYS[way])
                if way == "gateway":
                    self.reply({"error": {"message": "upstream timed out"}}, 504)
                    return
                if way == "cut":
                    self.send_response(200)
                    self.send_header("Content-Length", "1000")
                    self.end_headers()
                    self.wfile.write(b'{"id": "1"')
                    self.close_connection = True
                    return
            said = f"{word}: {number_in(body['messages'][-1]['content']) if right else -1}"
            message = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 9, "completion_tokens": 2}
            with suppress(OSError):  # the client has given up
                self.reply({"id": str(word), "model": body["model"], "choices": [message], "usage": usage})

    return Handler


@pytest.mark.slow
@pytest.mark.parametrize("way", CAUSES)
def test_a_model_that_keeps_back_wrong_answers_is_not_called_better(tmp_path, way):
    """Seeds 11 and 1; the slack of .3 or more leaves no chance of a winner worth a figure."""
    kept_back = Counter()
    with serving(handler(way, kept_back)) as url:
        data = two_models(tmp_path, f"{url}/v1", budget={"trials": 120}, retry={"attempts": 2})
        for model in data["models"]:
            model |= {"concurrency": 24, "timeout": {"total": 1.0 if way == "timeout" else 60}}
        done = in_process(
            "run", write_config(tmp_path, data), "--out", "run", "--display", "none", cwd=tmp_path
        )
    assert done.code in (3, 6), done.said
    found = report(tmp_path / "run")
    (pair,) = found["pairs"]
    assert pair["verdict"] == "open"
    good, bad = sorted(found["models"], key=lambda line: line["model"] == "bad")
    if way != "timeout":  # an answer that a busy machine delays is late too
        assert (good["discarded_trials"], good["missing"]) == (0, 0)
    discarded = [
        one["discarded"] for one in samples(tmp_path / "run") if "discarded" in one and one["model"] == "bad"
    ]
    assert len(discarded) == bad["discarded_trials"] + bad["missing"] >= 15
    assert {cause for causes in discarded for cause in causes} == {CAUSES[way]}
    assert way == "timeout" or sum(map(len, discarded)) <= kept_back[way]
    assert f"bad: {bad['discarded_trials']} trials were answered by a later draw" in " ".join(
        found["warnings"]
    )
