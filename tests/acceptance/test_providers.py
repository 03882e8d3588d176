"""Every config of docs/providers.md, at a local server that answers and refuses as the provider does."""

import json
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from answering_server import two_models
from command_line import ROOT, in_process, trials, write_config
from json_server import Replies, serving
from ruamel.yaml import YAML

from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.config.short_forms import PROVIDERS
from adaptive_eval.engine.clock import SystemClock
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import CANCELLED, SEED_TEST, WITHDRAWN

KEY = "a-key-of-this-test"
WAIT, HOLD = 42, 77
"""Seconds that servers ask for: with HTTP 429, and with the answer that uses a limit up."""

Headers = dict[str, str]


def documented() -> dict[str, list[dict[str, Any]]]:
    """Return the models of the first config of each section of the page."""
    sections = (ROOT / "docs" / "providers.md").read_text("utf-8").split("\n## ")[1:]
    found = {section.partition("\n")[0]: section.partition("```yaml\n")[2] for section in sections}
    yaml = YAML(typ="safe", pure=True)
    return {name: yaml.load(text.partition("```")[0])["models"] for name, text in found.items() if text}


def filled(written: Headers | None) -> Headers | None:
    """Return headers with the times that lie so many seconds ahead: ``<date 42>``, ``<milliseconds 42>``."""

    def time_of(found: re.Match[str]) -> str:
        at = time.time() + float(found[2])
        if found[1] == "milliseconds":
            return f"{at * 1000:.0f}"
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    pattern = r"<(date|milliseconds) (\d+)>"
    return written and {name: re.sub(pattern, time_of, value) for name, value in written.items()}


@dataclass(frozen=True)
class Provider:
    """What a provider's documentation says of it, as in ``tests/data/providers.json``.

    Parameters
    ----------
    refused : tuple
        A usual error that needs the user: its status, its body, its kind here, and a word of the message.
    busy : tuple
        Status and body of an answer to too many requests.
    limited, used_up : dict, optional
        Headers of that answer, and of one after which nothing is left of a limit. None: it names no time.
    waits : bool
        Whether the time to wait is in the answer to too many requests.
    thought : mapping
        Where its answers hold the reasoning.
    key : str
        The header of the key and what precedes it; empty for servers without.
    unauthorized : object
        Body of the answer to a wrong key.
    """

    refused: tuple[int, Any, str, str]
    busy: tuple[int, Any]
    limited: Headers | None = None
    used_up: Headers | None = None
    waits: bool = True
    thought: Mapping[str, Any] = field(default_factory=dict)
    key: str = "authorization: Bearer "
    unauthorized: Any = None


PROVIDED = {
    name: Provider(**fields)
    for name, fields in json.loads((ROOT / "tests" / "data" / "providers.json").read_text("utf-8")).items()
}
ELSEWHERE = {"LiteLLM's library"}
"""Run by test_functions_as_models.py, with a library of its own."""

MODELS = documented()


def answer(api: str, model: str, said: str, thought: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of 5 tokens to a prompt of 9, with its reasoning, in the shape of an API."""
    if api == "messages":
        content = [{"type": "thinking", "thinking": "why", "signature": "s"}, {"type": "text", "text": said}]
        usage = {"input_tokens": 9, "output_tokens": 5}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content,
                "stop_reason": "end_turn", "usage": usage}  # fmt: skip
    if api == "responses":
        reasoning = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "why"}]}
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}
        usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
        return {
            "id": "resp_1",
            "model": model,
            "status": "completed",
            "output": [reasoning, message],
            "usage": usage,
        }
    message = {"role": "assistant", "content": said, **thought}
    if "content" in thought:
        message["content"] = [*thought["content"], {"type": "text", "text": said}]
    usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


@contextmanager
def serve(name: str) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Play a provider, and yield its origin and the paths and bodies of the requests that it has answered.

    The first request of a model is one too many, and the answer to the second uses a limit up.
    """
    provider, asked, numbers = PROVIDED[name], list[tuple[str, Any]](), Counter[str]()
    header, _, before = provider.key.partition(": ")

    class Handler(Replies):
        def allowed(self) -> bool:
            sent = (self.headers.get(header), self.headers.get("api-key"))
            twice = "api-key" in self.headers and "authorization" in self.headers
            return not header or before + KEY in sent or (KEY in sent and not twice)

        def do_GET(self) -> None:
            if not self.allowed():
                self.reply(provider.unauthorized, 400 if name == "Gemini" else 401)
                return
            prefix = "models/" if name == "Gemini" else ""
            served = [prefix + model.get("model", model["name"]) for model in MODELS[name]]
            self.reply({"object": "list", "data": [{"id": one} for one in (*served, f"{prefix}gone")]})

        def do_POST(self) -> None:
            body = self.asked()
            model = body["model"]
            if not self.allowed():
                self.reply(provider.unauthorized, 401)
            elif model == "gone":
                self.reply(provider.refused[1], provider.refused[0])
            else:
                numbers[self.path] += 1
                number = numbers[self.path]
                if number == 1:
                    status, said = provider.busy
                    self.reply(said, status, filled(provider.limited))
                    return
                headers = filled(provider.used_up) if number == 2 else None
                asked.append((self.path, body))
                question = re.findall(r"Say (\d+)\.", json.dumps(body))[-1]
                api = MODELS[name][0].get("api") or ("messages" if name.startswith("Anthropic") else "chat")
                self.reply(answer(api, model, f"No. {number}: {question}", provider.thought), headers=headers)

    with serving(Handler) as origin:
        yield origin, asked


def at_origin(documented: Mapping[str, Any], origin: str, **more: Any) -> dict[str, Any]:
    """Return a model of the page with a local server in the place of its own."""
    preset = PROVIDERS.get(documented.get("provider", ""), {})
    (url,) = documented.get("endpoints") or preset["endpoints"]
    local = urlunsplit((*urlsplit(origin)[:2], *urlsplit(url)[2:]))
    return {**documented, "endpoints": [local], **more}


class Hurried(SystemClock):
    """Goes ahead of the machine's clock instead of sleeping, and remembers the long waits."""

    def __init__(self) -> None:
        self.ahead, self.waits = 0.0, list[float]()

    def now(self) -> float:
        return super().now() + self.ahead

    async def sleep(self, seconds: float) -> None:
        self.waits += [seconds] * (seconds > 5.0)
        await super().sleep(min(seconds, 0.02))
        self.ahead += max(0.0, seconds - 0.02)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {preset["api_key_env"] for preset in PROVIDERS.values() if "api_key_env" in preset}
    for name in {*variables, "AZURE_OPENAI_API_KEY", "LITELLM_MASTER_KEY"}:
        monkeypatch.setenv(name, KEY)


def test_every_provider_has_a_config_limits_and_errors():
    assert MODELS.keys() == PROVIDED.keys() | ELSEWHERE
    named = {model.get("provider") for models in MODELS.values() for model in models}
    assert PROVIDERS.keys() - {"litellm"} <= named
    page = (ROOT / "docs" / "providers.md").read_text("utf-8")
    for section in page.split("\n## ")[2:]:
        if not section.startswith("OpenAI's Responses"):  # which has those of OpenAI
            assert "\n- **Limits**: " in section, section
            assert "\n- **Errors**: " in section, section


@pytest.mark.slow
@pytest.mark.parametrize("name", PROVIDED)
def test_a_documented_config(tmp_path, name, monkeypatch):
    """It waits as long as the provider says, has answers with reasoning and usage, and repeats no refusal."""
    provider, clock = PROVIDED[name], Hurried()
    monkeypatch.setattr("adaptive_eval.engine.runner.SystemClock", lambda: clock)
    data = two_models(tmp_path, "", goal="budget", budget={"trials": 4 * len(MODELS[name])})
    with serve(name) as (origin, asked):
        data["models"] = [
            at_origin(model, origin, concurrency=1, name=f"{which}-{number}", **more)
            for number, model in enumerate(MODELS[name])
            for which, more in (
                ("asked", {"model": model.get("model", model["name"])}),
                ("refused", {"model": "gone"}),
            )
        ]
        config = write_config(tmp_path, data)
        options = ("--out", "run", "--display", "none", "--allow-missing")
        done = in_process("run", config, *options, cwd=tmp_path)
    assert done.code == 0, done.said

    answered = [record for record in trials(tmp_path / "run") if record.score is not None]
    assert {record.request.key.model for record in answered} == {
        model["name"] for model in data["models"] if model["model"] != "gone"
    }
    for record in answered:
        assert record.score is not None
        assert record.completion is not None
        assert (record.score.category, record.completion.usage.total_tokens) == (1, 14)
        assert record.completion.reasoning == ("why" if provider.thought or " API" in name else "")
    with RunReader(tmp_path / "run") as reader:
        # A 503 that came later than an answer ever did may have given up a draw: then seeds are tested.
        ended = (None, CANCELLED, WITHDRAWN, SEED_TEST)
        failures = [attempt for attempt in reader.attempts() if attempt.error not in ended]
    refused = [attempt for attempt in failures if attempt.key.model.startswith("refused")]
    status, _, kind, word = provider.refused
    assert {(attempt.status, attempt.error) for attempt in refused} == {(status, kind)}
    assert all(attempt.attempt == 1 and word in attempt.message for attempt in refused)
    busy = [attempt.status for attempt in failures if attempt not in refused]
    assert busy == [provider.busy[0]] * len(MODELS[name])

    expected = [WAIT] * provider.waits + [HOLD] * (provider.used_up is not None)
    for seconds in expected:
        assert any(seconds - 20 < wait < seconds + 2 for wait in clock.waits)
    assert expected or not clock.waits
    own = {"OpenAI's Responses API": "/responses", "Anthropic's Messages API": "/messages"}
    for path, body in asked:
        assert urlsplit(path).path.endswith(own.get(name, "/chat/completions"))
        assert ("seed" in body) == (name not in (*own, "Mistral"))


def test_a_wrong_key_is_found_before_anything_is_asked(tmp_path, monkeypatch):
    for name in [name for name, value in os.environ.items() if value == KEY]:
        monkeypatch.setenv(name, "wrong-key-of-this-test")
    data = two_models(tmp_path, "")
    with ExitStack() as stack:
        hosted = [(name, model) for name, one in PROVIDED.items() if one.key for model in MODELS[name]]
        data["models"] = [
            at_origin(model, stack.enter_context(serve(name))[0], name=f"m{number}", model="gone")
            for number, (name, model) in enumerate(hosted)
        ]
        done = in_process("validate", write_config(tmp_path, data), "--json", cwd=tmp_path)
    assert done.code == 4
    (problem,) = json.loads(done.out)["problems"]
    assert problem["code"] == "run/no-endpoint"
    assert all(f"  {model['name']}: " in problem["message"] for model in data["models"])
    assert "wrong-key" not in done.said


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_preset_brings_address_and_key(provider):
    task = {"name": "t", "dataset": "t.jsonl", "scorer": "exact"}
    models = [{"name": name, "provider": provider, "sampling": {"max_tokens": 64}} for name in ("a", "b")]
    config = config_from_data({"name": "demo", "models": models, "tasks": [task]}).models[0]
    preset = PROVIDERS[provider]
    assert (config.addresses, config.api_key_env) == (preset["endpoints"], preset.get("api_key_env"))
