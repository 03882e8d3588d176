"""One server of three hangs in the middle of a run, over HTTP: where seeds are honoured, no draw is lost."""

import random
from collections import Counter
from threading import Event, Lock

import pytest
from answering_server import number_in, two_models
from command_line import in_process, report, write_config
from json_server import Replies, serving

from adaptive_eval.store.reader import RunReader


def handler(honoured, asked, hangs, over):
    """Return a server that honours seeds, or ignores them, and that `hangs` after so many answers."""
    lock = Lock()

    class Handler(Replies):
        def do_GET(self):
            self.reply({"object": "list", "data": []})

        def do_POST(self):
            body = self.asked()
            prompt = body["messages"][-1]["content"]
            with lock:
                asked[hangs] += 1
                number = asked[hangs]
            if number > hangs:
                over.wait(60.0)
                self.close_connection = True
                return
            draw = random.Random(f"{body['seed']} {prompt}" if honoured else None).random()
            said = f"{draw}: {number_in(prompt) if draw < 0.5 else -1}"
            message = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 9, "completion_tokens": 2}
            self.reply({"id": said, "model": body["model"], "choices": [message], "usage": usage})

    return Handler


@pytest.mark.slow
@pytest.mark.parametrize("honoured", [True, False])
def test_a_server_that_hangs_loses_draws_only_where_seeds_are_ignored(tmp_path, honoured):
    asked, over = Counter(), Event()
    hangs = (10**9, 10**9 + 1, 80)
    with (
        serving(handler(honoured, asked, hangs[0], over)) as one,
        serving(handler(honoured, asked, hangs[1], over)) as two,
        serving(handler(honoured, asked, hangs[2], over)) as hung,
    ):
        data = two_models(tmp_path, "", budget={"trials": 300})
        for model in data["models"]:
            model |= {"concurrency": 16, "endpoints": [f"{url}/v1" for url in (one, two, hung)]}
        done = in_process(
            "run", write_config(tmp_path, data), "--out", "run", "--display", "none", cwd=tmp_path
        )
        over.set()
    assert done.code == 3, done.said
    with RunReader(tmp_path / "run") as reader:
        given_up = [one for one in reader.attempts() if one.error == "aborted"]
    assert {one.endpoint for one in given_up} == {f"{hung}/v1"}
    discarded = sum(line["discarded_trials"] for line in report(tmp_path / "run")["models"])
    assert discarded == (0 if honoured else len(given_up))
    in_process("validate", tmp_path / "run", cwd=tmp_path, code=0)
