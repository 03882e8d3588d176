"""Mimic servers of crossed options under an owned clock: what each request gets, when, and the counts."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from course_facts import digest, text, together
from crossed_options import Case, Options, Refused
from owned_clock import run_owned

from adaptive_eval.mimic import delivery, requests, routes
from adaptive_eval.mimic.mimic_spec import spec_from_data

MIMICS: Options = {
    "n": ("one", "three", "five"),
    "seed": ("given", "none", "same", "minus-one", "low"),
    "fault": (
        "none", "status", "limited", "cut-off", "cut-short", "malformed", "drop", "at-once", "hang", "slow",
        "echo",
    ),
    "trigger": ("always", "probability", "first", "requests", "every", "attempts"),
    "of": ("model", "server", "both", "later"),
    "temperature": ("usual", "zero"),
    "limit": ("none", "short", "completion", "both", "one"),
    "stop": ("none", "word", "list"),
    "logprobs": ("none", "plain", "top"),
    "kind": ("number", "choice", "text", "unknown"),
    "chances": ("mean", "accuracies", "like"),
    "latency": ("none", "even", "uneven"),
    "answer": ("usual", "own"),
    "cached": ("no", "yes"),
    "ignores": ("none", "seed", "n", "max_tokens", "stop", "logprobs"),
    "context": ("long", "short"),
    "key": ("none", "right", "wrong"),
    "start": ("at-once", "slow"),
    "content": ("text", "parts"),
}  # fmt: skip
"""The options of mimic servers and of requests to them."""
MIMICS_REFUSED: Refused = (
    ("fault", "none", "trigger", "probability first requests every attempts"),
    ("fault", "none", "of", "server both later"),
    ("temperature", "zero", "n", "three five"),
)

FAULTS: Mapping[str, Mapping[str, Any]] = {
    "status": {"kind": "status", "status": 503},
    "limited": {"kind": "status", "status": 429, "retry_after": 2.5},
    "cut-off": {"kind": "cut_off"}, "cut-short": {"kind": "cut_off", "finish_reason": "length"},
    "malformed": {"kind": "malformed"}, "drop": {"kind": "drop"}, "at-once": {"kind": "drop", "after": 0},
    "hang": {"kind": "hang", "after": 1}, "slow": {"kind": "hang", "seconds": 3, "after": 0.2},
    "echo": {"kind": "echo_key"},
}  # fmt: skip
TRIGGERS: Mapping[str, Mapping[str, Any]] = {
    "probability": {"probability": 0.5}, "first": {"first": 3}, "requests": {"requests": [2, 5]},
    "every": {"every": 3}, "attempts": {"attempts": 1},
}  # fmt: skip
QUESTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "number": ({"target": "42"}, {"target": "0.25"}, {"target": "-3"}),
    "choice": (
        {"target": "B", "choices": ["red", "blue"]}, {"target": "red", "choices": ["red", "blue", "black"]},
        {"target": "(c)", "choices": ["1", "2", "3", "4"]},
    ),
    "text": ({"target": "Oslo"}, {"target": "Rome"}, {"target": "oslo"}),
    "unknown": ({"target": "1"}, {"target": "2"}, {"target": "3"}),
}  # fmt: skip
PATIENCE = 20.0
"""Seconds after which a client leaves."""


def mimic_of(case: Case) -> Any:
    """Return the specification of a case."""
    faults = []
    if case["fault"] != "none":
        faults = [{**FAULTS[case["fault"]], **TRIGGERS.get(case["trigger"], {})}]
    own: dict[str, Any] = {"cached": case["cached"] == "yes"}
    if case["ignores"] != "none":
        own["ignores"] = [case["ignores"]]
    if case["context"] == "short":
        own["context_length"] = 70
    if case["latency"] != "none":
        own["latency"] = {"median": 2.0, "sigma": 0.0, "correct_factor": 1.5}
        if case["latency"] == "uneven":
            own["latency"] = {"median": 1.0, "sigma": 0.8}
    chances: dict[str, Any] = {"mean": 0.6, "spread": 2.0}
    if case["chances"] == "accuracies":
        chances = {"accuracies": [0.2, 0.9, 0.5]}
    more = {"mean": 0.3, "like": "coin"} if case["chances"] == "like" else {"mean": 0.5}
    coin = {"name": "coin", **chances, **own, "tokens": {"completion_median": 25, "prompt_overhead": 3}}
    if case["of"] in ("model", "both"):
        coin["faults"] = faults
    data = {
        "models": [coin, {"name": "sage", **more}], "seed": 4, "correlation": 0.5,
        "questions": [
            {"id": f"q{place}", "question": f"How many are {place}?", **one}
            for place, one in enumerate(QUESTIONS[case["kind"]])
        ],
    }  # fmt: skip
    if case["of"] == "server":
        data["faults"] = faults
    elif case["of"] == "both":
        data["faults"] = [{"kind": "status", "status": 502, "every": 2}]
    if case["key"] != "none":
        data["api_key"] = "open"
    if case["start"] == "slow":
        data["slow_start"] = 1.0
    if case["answer"] == "own":
        data["answer"] = "So, ANSWER: {answer}"
    return spec_from_data(data)


def body_of(case: Case, model: str, place: int, turn: int) -> dict[str, Any]:
    """Return the body of a request."""
    asked = f"How many are {place if case['kind'] != 'unknown' else 'left'}? Think."
    if case["kind"] == "choice":
        asked += "\nA. red\nB. blue\nC. black"
    content: Any = asked
    if case["content"] == "parts":
        parts = [{"type": "text", "text": part} for part in (asked[:9], asked[9:])]
        content = [parts[0], {"type": "image_url"}, parts[1]]
    body: dict[str, Any] = {
        "model": model, "n": {"one": 1, "three": 3, "five": 5}[case["n"]],
        "messages": [{"role": "system", "content": "Count."}, {"role": "user", "content": content}],
    }  # fmt: skip
    seeds = {"given": 10 * place + turn, "same": 7, "minus-one": -1, "low": -50 + place}
    if case["seed"] in seeds:
        body["seed"] = seeds[case["seed"]]
    if case["temperature"] == "zero":
        body["temperature"] = 0
    limits: Mapping[str, Mapping[str, int]] = {
        "short": {"max_tokens": 12}, "completion": {"max_completion_tokens": 20}, "one": {"max_tokens": 1},
        "both": {"max_tokens": 9, "max_completion_tokens": 15},
    }  # fmt: skip
    body |= limits.get(case["limit"], {})
    if case["stop"] != "none":
        body["stop"] = {"word": "The", "list": ["so", ".", "S", "st"]}[case["stop"]]
    if case["logprobs"] != "none":
        body["logprobs"] = True
    if case["logprobs"] == "top":
        body["top_logprobs"] = 3
    return body


class Client:
    """Asks an application without a socket."""

    def __init__(self, app: Any, key: str | None) -> None:
        self.app = app
        self.headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[Any, ...]:
        """Return status, wait, body and end of an answer, and when its first and last byte came."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        left = asyncio.Event()
        sent = b"" if body is None else json.dumps(body).encode()
        parts = [sent[:20], sent[20:]]
        seen: dict[str, Any] = {"data": b"", "times": []}

        async def receive() -> dict[str, Any]:
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            seen["times"].append(loop.time() - began)
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                seen["headers"] = {name: value.decode() for name, value in message["headers"]}
            else:
                seen["data"] += message["body"]
                seen["whole"] = not message.get("more_body", False)

        scope = {
            "type": "http", "method": method, "path": path, "query_string": b"", "headers": self.headers,
            "extensions": {delivery.CLOSE_EXTENSION: {"close": left.set}},
        }  # fmt: skip
        leaving = loop.call_later(PATIENCE, left.set)
        await self.app(scope, receive, send)
        leaving.cancel()
        times = (seen["times"] or [-1.0])[:: max(1, len(seen["times"]) - 1)]
        promised = int(seen.get("headers", {}).get(b"content-length", 0)) or 1
        state = (seen.get("status"), seen.get("whole"), round(len(seen["data"]) / promised, 1), left.is_set())
        return state, seen.get("headers", {}).get(b"retry-after"), seen["data"], times


def mimic_facts(written: Case) -> list[str]:
    """Return what a server answers, and what it has counted."""
    case = {name: written.get(name, values[0]) for name, values in MIMICS.items()}
    own = SimpleNamespace(time=lambda: 1e9, monotonic=lambda: asyncio.get_running_loop().time())
    with ExitStack() as stack:
        stack.enter_context(patch.object(delivery, "monotonic", own.monotonic))
        stack.enter_context(patch.object(routes, "time", own))
        drawn = random.Random(3)
        stack.enter_context(patch.object(requests.random, "SystemRandom", lambda: drawn))
        facts: list[str] = []
        run_owned(_asked(case, facts))
    return facts


async def _asked(case: Case, facts: list[str]) -> None:
    key = {"none": None, "right": "open", "wrong": "Open"}[case["key"]]
    client = Client(routes.create_app(mimic_of(case)), key)
    for turn in range(3):
        await asyncio.sleep(0.6)
        if turn == 1:
            client.headers = Client(client.app, None if case["key"] == "none" else "open").headers
        if turn == 1 and case["of"] == "later":
            fault = {**FAULTS[case["fault"]], **TRIGGERS.get(case["trigger"], {})}
            told: Any = (
                {"faults": [fault], "model": "coin"},
                {"faults": fault},
                {"faults": [], "model": "x"},
            )
            states = [(await client.ask("POST", "/mimic/faults", one))[0][0] for one in told]
            facts.append(f"set {text(states)}")
        asked = [("coin", 0), ("coin", 1), ("coin", 2), ("sage", turn)]
        if turn == 2:
            asked.append(("nobody", 0))
        bodies = [body_of(case, model, place, min(turn, 1)) for model, place in asked]
        paths = [client.ask("POST", "/v1/chat/completions", body) for body in bodies]
        facts += answer_facts(await asyncio.gather(*paths))
    paths = ("/health", "/v1/models", "/v1/models/coin", "/v1/models/none", "/v1/other")
    known = [await client.ask("GET", path) for path in paths]
    facts.append(f"others {text([one[0][0] for one in known])} {digest(one[2] for one in known)}")
    _, _, data, _ = await client.ask("GET", "/mimic/stats")
    facts.append(f"stats {text(json.loads(data))}")


def answer_facts(answers: Any) -> Iterator[str]:
    """Yield what some requests have got, those of a turn together."""
    states, said, figures, tokens, ids = Counter(), [], [], [], set()
    for state, wait, data, times in answers:
        states[f"{state[0]}{'' if state[1] else '-part'}{'-left' if state[3] else ''}"] += 1
        said.append((state[2], wait))
        figures += times
        try:
            body = json.loads(data)
        except ValueError:
            said.append(bool(data))
            continue
        if "error" in body:
            said.append([body["error"][name] for name in ("type", "param", "code")])
            continue
        usage = body["usage"]
        ids.add(body["id"])
        tokens.append((usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]))
        for choice in body["choices"]:
            entries = (choice["logprobs"] or {}).get("content") or []
            likely = [one for entry in entries for one in (entry, *entry["top_logprobs"])]
            figures += [one["logprob"] for one in likely]
            said.append([choice["index"], choice["message"], choice["finish_reason"], choice["stop_reason"]])
            said.append([(one["token"], len(one["bytes"])) for one in likely])
        said.append((body["model"], body["object"], body["created"]))
    counts = f"{text(states)} ids={len(ids)} tokens={text(tokens)}"
    yield f"answers {counts} {digest(said)} {text(together(figures))}"
