"""LiteLLM's library and proxy, as documented, before a server with the APIs of Anthropic, Bedrock and Gemini.

The library is installed by hand (``pip install litellm``); LITELLM names the proxy's command, which may be
in another environment (``pip install 'litellm[proxy]'``).
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import command, free_port, run_config, server_of, write_config
from json_server import Replies, serving
from ruamel.yaml import YAML

from adaptive_eval.store.reader import RunReader

# LiteLLM has warnings of its own.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

SECRET = "a-secret-of-this-test"
MODELS = ("claude", "bedrock", "gemini")
PAGE = (Path(__file__).parents[2] / "docs" / "providers.md").read_text("utf-8")


class Provider(Replies):
    """Answers as the providers document their APIs; every fourth request is one too many.

    https://docs.anthropic.com/en/api/messages, https://docs.aws.amazon.com/bedrock (Converse) and
    https://ai.google.dev/api/generate-content.
    """

    requests: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = self.asked()
        Provider.requests.append((self.path, body))
        number = len(Provider.requests)
        said = f"No. {number}: 4"
        if number % 4 == 0:
            words = f"Too many requests for {SECRET}"
            self.reply({"error": {"type": "rate_limit_error", "message": words}, "message": words}, 429)
        elif self.path.endswith("/converse"):
            thought = {"reasoningContent": {"reasoningText": {"text": "easy", "signature": "s"}}}
            message = {"role": "assistant", "content": [thought, {"text": said}]}
            usage = {"inputTokens": 12, "outputTokens": 5, "totalTokens": 17}
            ended = {"stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}
            self.reply({"output": {"message": message}, **ended})
        elif "generateContent" in self.path:
            parts = [{"text": "easy", "thought": True}, {"text": said}]
            answer = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
            counts = {"promptTokenCount": 12, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
            usage = {**counts, "totalTokenCount": 17}
            self.reply({"candidates": [answer], "usageMetadata": usage, "modelVersion": "gemini-x"})
        else:
            content = [
                {"type": "thinking", "thinking": "easy", "signature": "s"},
                {"type": "text", "text": said},
            ]
            usage = {"input_tokens": 12, "output_tokens": 5}
            ended = {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
            message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": content}
            self.reply({**message, "model": body["model"], **ended})


@pytest.fixture
def arguments(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, str]]]:
    """Start the server, and return what LiteLLM has to know of it for each model."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, SECRET)
    Provider.requests.clear()
    with serving(Provider) as at:
        yield {
            "claude": {"api_base": at},
            "bedrock": {"aws_region_name": "us-east-1", "aws_bedrock_runtime_endpoint": at},
            "gemini": {"api_base": at},
        }


def test_a_run_through_the_library(tmp_path, arguments):
    pytest.importorskip("litellm", reason="litellm is not installed")
    page = PAGE.partition("## LiteLLM's library")[2].partition("```yaml\n")[2].partition("```")[0]
    models = YAML(typ="safe", pure=True).load(page)["models"]
    models.append({"name": "claude", "model": "anthropic/claude-sonnet-4-5", "endpoints": ["litellm"]})
    for model in models:
        model["extra_body"] = {**model.get("extra_body", {}), **arguments[model["name"]]}
    check_run(tmp_path, models)
    seeded = {"seed" in body["generationConfig"] for path, body in Provider.requests if "gemini" in path}
    assert seeded == {True}  # the other two take none


def test_a_model_without_a_provider_is_named(tmp_path):
    pytest.importorskip("litellm", reason="litellm is not installed")
    config = config_of(tmp_path, [{"name": "m", "model": "no-such-model", "endpoints": ["litellm"]}])
    done = command("validate", write_config(tmp_path, config), code=2)
    assert "LiteLLM does not know the provider of 'no-such-model'" in done.err


@pytest.mark.skipif("LITELLM" not in os.environ, reason="LITELLM does not name the proxy's command")
def test_a_run_through_the_proxy(tmp_path, monkeypatch, arguments):
    monkeypatch.setenv("LITELLM_MASTER_KEY", "sk-of-this-test-only-0123456789")
    config, url = (
        json.loads(PAGE.partition("```json\n")[2].partition("```")[0]),
        f"http://127.0.0.1:{free_port()}",
    )
    for model in config["model_list"]:
        model["litellm_params"] |= arguments[model["model_name"]]
    (tmp_path / "proxy.yaml").write_text(json.dumps(config))
    address = ("--host", "127.0.0.1", "--port", url.rpartition(":")[2])
    quiet = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
    command = (os.environ["LITELLM"], "--config", "proxy.yaml", *address)
    with server_of(command, f"{url}/health/liveliness", tmp_path, quiet):
        more = {"endpoints": [f"{url}/v1"], "api_key_env": "LITELLM_MASTER_KEY"}
        check_run(tmp_path, [{"name": name, **more} for name in MODELS])


def config_of(folder: Path, models: list[dict[str, Any]]) -> dict[str, Any]:
    (folder / "q.jsonl").write_text('{"input": "2 + 2?", "target": "4"}\n')
    return {
        "name": "litellm",
        "models": [{**model, "sampling": {"max_tokens": 64}, "concurrency": 2} for model in models],
        "tasks": [{"name": "t", "dataset": "q.jsonl", "scorer": "numeric"}],
        "goal": "budget",
        "budget": {"trials": 18},
    }


def check_run(folder: Path, models: list[dict[str, Any]]) -> None:
    """See that a run has every answer with its reasoning and usage, counts the refusals and keeps secrets."""
    run, done = run_config(folder, config_of(folder, models))
    assert done.code == 3, done.err
    with RunReader(run) as reader:
        records, errors = list(reader.trials()), reader.error_counts()
    assert {
        (record.request.key.model, record.score and record.score.category, record.usage.total_tokens)
        for record in records
    } == {(name, 1, 17) for name in MODELS}
    assert {record.completion and record.completion.reasoning for record in records} == {"easy"}
    assert len(records) == 18
    assert {kind for kinds in errors.values() for kind in kinds} == {"rate_limit"}
    stored = [file.read_bytes() for file in run.rglob("*") if file.is_file()]
    assert "api_key_env" in models[0] or SECRET.encode() not in b"".join(stored) + done.err.encode()
