"""OpenAI's Responses API, against a local server whose answers have the shapes of OpenAI's own client."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from answering_server import two_models
from command_line import ROOT, in_process, ran, trials, write_config
from json_server import Replies, serving
from ruamel.yaml import YAML

PAGE = (ROOT / "docs" / "providers.md").read_text("utf-8").partition("## OpenAI's Responses API")[2]
DOCUMENTED = YAML(typ="safe", pure=True).load(PAGE.split("```")[1].removeprefix("yaml"))["models"][0]
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "status": "completed"}
SHAPES = json.loads((ROOT / "tests" / "data" / "conversations.json").read_text("utf-8"))["responses"]
TALK, ASKED = SHAPES["talk"], SHAPES["asked"]


def response(model: str, city: str) -> dict[str, Any]:
    """Return a response: a thought, and a call by the model good, text by bad, which is cut off."""
    thought = {"type": "summary_text", "text": f"About {city}"}
    said = {"type": "output_text", "text": "It rains", "annotations": [], "logprobs": []}
    message = {"type": "message", "id": "m_1", "role": "assistant", "status": "incomplete", "content": [said]}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": model,
        "status": "completed" if model == "good" else "incomplete",
        "incomplete_details": None if model == "good" else {"reason": "max_output_tokens"},
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [thought]},
            {**CALL, "arguments": json.dumps({"city": city})} if model == "good" else message,
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 12, "cache_write_tokens": 0},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 123,
        },
    }
    from openai.types.responses import Response

    Response.model_validate(body)
    return body


@contextmanager
def responding() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Serve responses, whole or as events; a field that the API does not have is refused."""
    from openai.types.responses.response_create_params import ResponseCreateParamsBase

    known = {*ResponseCreateParamsBase.__annotations__, "stream"}
    asked: list[dict[str, Any]] = []

    class Handler(Replies):
        def do_GET(self) -> None:
            self.reply({"data": [{"id": "good"}, {"id": "bad"}]})

        def do_POST(self) -> None:
            body = self.asked()
            unknown = body.keys() - known
            if unknown or self.path != "/v1/responses":
                self.reply({"error": {"message": f"Unknown parameter: {unknown}"}}, 400)
                return
            asked.append(body)
            whole = response(body["model"], body["input"][-1]["content"])
            if not body.get("stream"):
                self.reply(whole)
                return
            last = {"type": f"response.{whole['status']}", "response": whole, "sequence_number": 9}
            begun = {"type": "response.created", "response": {**whole, "output": []}, "sequence_number": 0}
            piece = {"type": "response.output_text.delta", "delta": "It", "sequence_number": 1}
            lines = (f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in (begun, piece, last))
            self.reply("".join(lines))

    with serving(Handler) as origin:
        yield f"{origin}/v1", asked


def config(folder: Path, url: str, **model: Any) -> Path:
    """Write a config of two models that are asked by the Responses API."""
    rows = [
        {"input": city, "target": [{"name": "weather", "arguments": {"city": city}}]}
        for city in ("Oslo", "Rome")
    ]
    (folder / "cities.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    data = two_models(folder, url, goal="budget", budget={"trials": 4})
    tools = [{"name": "weather", "parameters": {"type": "object"}}]
    task = {"name": "t", "dataset": "cities.jsonl", "scorer": "tool_calls", "prompt": TALK, "tools": tools}
    for one in data["models"]:
        sampling = {**DOCUMENTED["sampling"], **model.get("sampling", {})}
        one.update({**DOCUMENTED, **model, "sampling": sampling, "model": one["name"], "name": one["name"]})
    return write_config(folder, {**data, "tasks": [task]})


@pytest.mark.parametrize("stream", [False, True])
def test_it_is_asked_and_read_as_documented(tmp_path, stream, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    with responding() as (url, asked):
        path = config(tmp_path, url, stream=stream)
        ran(path, code=3)
    for body in asked:
        assert body["input"][:-1] == ASKED
        assert body["tools"] == [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
        assert (body["max_output_tokens"], body["reasoning"]) == (8192, {"effort": "medium"})
        assert body["store"] is False
    for record in trials(tmp_path / "run"):
        answer, score = record.completion, record.score
        assert answer is not None
        assert score is not None
        good = record.request.key.model == "good"
        assert (answer.text, answer.finish_reason) == (("", "tool_calls") if good else ("It rains", "length"))
        assert (score.category, len(answer.tool_calls)) == ((1, 1) if good else (0, 0))
        assert answer.reasoning in ("About Oslo", "About Rome")
        assert (answer.usage.total_tokens, answer.usage.cached_tokens, answer.reasoning_tokens) == (
            123,
            12,
            64,
        )
    shown = in_process("samples", "run", cwd=tmp_path).out
    assert "12 °C" in shown
    assert "[input_image https://example.org/a.png]" in shown
