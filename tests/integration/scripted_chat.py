"""A chat server whose replies a function writes, from the request's body: a judge or verifier for tests."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from json_server import Replies, serving

__all__ = ["Scripted", "answer_is_right", "labelled", "scripted_chat"]


class Scripted:
    """The server; `say` returns a reply's text, or text and log-probabilities, or a status to fail with.

    Where it returns None, the connection is dropped without a word.
    """

    def __init__(self, say: Callable[[dict[str, Any]], Any]) -> None:
        self.reports_usage = True
        self.usage: dict[str, Any] | None = None
        self.refusal = "no"
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.headers: list[Mapping[str, str]] = []
        server = self

        class Handler(Replies):
            def do_GET(self) -> None:
                models = [{"id": "wise", "object": "model", "created": 1, "owned_by": "test"}]
                self.reply({"object": "list", "data": models})

            def do_POST(self) -> None:
                body = self.asked()
                server.asked.append(body)
                server.keys.append(self.headers["Authorization"])
                server.headers.append(dict(self.headers))
                said = say(body)
                if said is None:
                    self.close_connection = True
                    return
                if isinstance(said, int):
                    self.reply({"error": {"message": server.refusal}}, said)
                    return
                found = completion(body, *(said if isinstance(said, tuple) else (said, None)))
                if server.usage is not None:
                    found["usage"] = server.usage
                if not server.reports_usage:
                    del found["usage"]
                self.reply(found)

        self.handler = Handler
        self.url = ""

    def content(self, number: int) -> str:
        """Return the last message of a request."""
        content: str = self.asked[number]["messages"][-1]["content"]
        return content


def completion(body: Mapping[str, Any], text: str, top: Mapping[str, float] | None) -> dict[str, Any]:
    logprobs = None
    if top is not None:
        alternatives = [{"token": token, "logprob": value, "bytes": None} for token, value in top.items()]
        entry = {"token": text, "logprob": max(top.values(), default=0.0), "bytes": None}
        logprobs = {"content": [{**entry, "top_logprobs": alternatives}], "refusal": None}
    message = {"role": "assistant", "content": text}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [{"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def labelled(a: float, b: float, c: float) -> tuple[str, dict[str, float]]:
    """Return a reply with these probabilities of the labels A, B and C."""
    return "A", {token: math.log(p) for token, p in (("A", a), ("B", b), ("C", c)) if p > 0.0}


def answer_is_right(body: Mapping[str, Any]) -> bool:
    """Tell whether the boxed answer that a judge or verifier is shown is the reference answer."""
    prompt = body["messages"][-1]["content"]
    reference = re.search(r"^Reference answer:\n(.*?)\n\n", prompt, re.MULTILINE | re.DOTALL)
    return reference is not None and re.findall(r"\\boxed\{(.*?)\}", prompt)[-1] == reference[1]


@contextmanager
def scripted_chat() -> Iterator[Callable[[Callable[[dict[str, Any]], Any]], Scripted]]:
    """Give a function that starts servers; they end with the block."""
    with ExitStack() as stack:

        def make(say: Callable[[dict[str, Any]], Any]) -> Scripted:
            made = Scripted(say)
            made.url = f"{stack.enter_context(serving(made.handler))}/v1"
            return made

        yield make
