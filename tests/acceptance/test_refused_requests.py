"""A server that refuses the first request: what is said helps, and the command that is given works."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from answering_server import two_models
from command_line import in_process, report, write_config
from json_server import Replies, serving

Refusal = tuple[int, Any] | None

TEMPERATURE = "Unsupported value: 'temperature' does not support 0.7 with this model."
RENAMED = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
CONTEXT = "This model's maximum context length is 2048 tokens. However, you requested 4097 tokens."
PAGE = "<!doctype html><title>Welcome</title>"


@contextmanager
def refusing(refuses: Callable[[dict[str, Any]], Refusal]) -> Iterator[str]:
    """Serve answers, but where `refuses` gives a status with words, or a whole body with status 200."""

    class Handler(Replies):
        def do_GET(self) -> None:
            self.reply({"object": "list", "data": [{"id": "good"}, {"id": "bad"}]})

        def do_POST(self) -> None:
            body = self.asked()
            status, words = refuses(body) or (0, "")
            if status == 200:
                self.reply(words)
            elif status:
                self.reply({"error": {"message": words}}, status)
            else:
                text = body["messages"][-1]["content"].strip("Say .")
                message = {"role": "assistant", "content": text}
                choice = {"index": 0, "message": message, "finish_reason": "stop"}
                usage = {"prompt_tokens": 9, "completion_tokens": 2}
                self.reply({"id": "1", "model": body["model"], "choices": [choice], "usage": usage})

    with serving(Handler) as url:
        yield f"{url}/v1"


def of_bad(test: Callable[[dict[str, Any]], object], *refusal: Any) -> Callable[[dict[str, Any]], Refusal]:
    """Return a server that refuses requests of the model bad with a property."""
    return lambda body: refusal if body["model"] == "bad" and test(body) else None


def has_system(body: dict[str, Any]) -> bool:
    return body["messages"][0]["role"] == "system"


CASES = {
    "temperature": (of_bad(lambda body: "temperature" in body, 400, TEMPERATURE), "leave it out", True),
    "value": (of_bad(lambda body: "temperature" in body, 400, "temperature must be 1"), "change it", True),
    "renamed": (of_bad(lambda body: "max_tokens" in body, 400, RENAMED), "max_completion_tokens", True),
    "system": (of_bad(has_system, 400, "System role not supported"), "prompt", True),
    "context": (lambda body: (400, CONTEXT) if body["max_tokens"] > 2000 else None, "lower max_tokens", True),
    "credit": (of_bad(lambda body: True, 402, "Payment required"), "api_key_env", False),
    "page": (of_bad(lambda body: True, 200, PAGE), "address", False),
    "json": (of_bad(lambda body: True, 200, {"status": "ok"}), "address", False),
    "path": (of_bad(lambda body: True, 200, {"error": "Unexpected endpoint or method."}), "address", False),
    "unknown": (of_bad(lambda body: True, 400, "no"), "change the config", False),
}
"""What a server refuses, a word of the advice, and whether the run has to start again."""


@pytest.mark.slow
@pytest.mark.parametrize(("refuses", "advice", "again"), CASES.values(), ids=CASES)
def test_each_cause_has_its_advice_and_a_command_that_works(tmp_path, refuses, advice, again):
    with refusing(refuses) as url:
        data = two_models(tmp_path, url, budget={"trials": 20})
        for model in data["models"]:
            model |= {"system": "Be brief.", "sampling": {"temperature": 0.7, "max_tokens": 4096}}
        config = write_config(tmp_path, data)
        done = in_process("run", config, "--out", "run", "--display", "none", cwd=tmp_path, code=4)
        assert report(tmp_path / "run")["run"]["stop"]["evidence"]["refused"]
        said = done.out[done.out.index("Report ") :]
        assert advice in said
        line = said.splitlines()[-1].partition("adaptive-eval ")[2]
        assert ("--new" in line) == again
        if again:
            assert in_process(*shlex.split(line), cwd=tmp_path).code in (0, 3)
            assert (tmp_path / "run-1").is_dir()


def test_a_probe_sees_a_server_that_answers_with_a_web_page(tmp_path):
    with refusing(of_bad(lambda body: True, 200, PAGE)) as url:
        config = write_config(tmp_path, two_models(tmp_path, url))
        done = in_process("validate", config, "--probe", "--json", cwd=tmp_path, code=4)
    (problem,) = json.loads(done.out)["problems"]
    assert "bad" in problem["message"]
    assert "Welcome" in problem["message"]
