"""Images, conversations and tools: from the dataset to the request, the run file, the views and the score."""

import csv
import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from answering_server import Answer, run_two
from command_line import categories, in_process, samples, trials

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
WAV = b"RIFF\0\0\0\0WAVE" + bytes(2000)
TOOLS = [{"name": "weather", "description": "Of a city.", "parameters": {"type": "object"}}]


def run(
    folder: Path, rows: list[dict[str, Any]], asked: list[Any], answer: Answer = lambda *_: {}, **task: Any
) -> None:
    """Ask two models a few trials of a task with these rows."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    tasks, budget = (
        [{"name": "t", "dataset": "rows.jsonl", "scorer": "exact", **task}],
        {"trials": 2 * len(rows)},
    )
    run_two(folder, answer, asked, tasks=tasks, goal="budget", budget=budget)


def test_images_and_sounds_reach_the_server_and_are_stored_by_their_digest(tmp_path):
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "a b.png").write_bytes(PNG)
    (tmp_path / "a.wav").write_bytes(WAV)
    uri = (tmp_path / "a b.png").as_uri()
    rows = [
        {"id": "1", "input": "Which?", "target": "x", "picture": uri, "voice": "a.wav"},
        {"id": "2", "input": "Who?", "target": "x", "picture": ["https://example.org/b.png", "a.png"]},
    ]
    asked: list[Any] = []
    run(tmp_path, rows, asked, prompt="Look: {picture}\n{input}", images="picture", audio="voice")
    uri = f"data:image/png;base64,{b64encode(PNG).decode()}"
    image = {"type": "image_url", "image_url": {"url": uri}}
    sound = {"type": "input_audio", "input_audio": {"data": b64encode(WAV).decode(), "format": "wav"}}
    sent = {json.dumps(body["messages"]) for body in asked}
    assert sent == {
        json.dumps([{"role": "user", "content": content}])
        for content in (
            [sound, text("Look: "), image, text("\nWhich?")],
            [
                text("Look: "),
                {**image, "image_url": {"url": "https://example.org/b.png"}},
                image,
                text("\nWho?"),
            ],
        )
    }
    stored = json.dumps([dict(record.sent) for record in trials(tmp_path / "run")])
    assert f"data:image/png;bytes={len(PNG)};sha256=" in stored
    assert "base64" not in stored
    assert "[image_url data:image/png;bytes=72" in in_process("samples", "run", cwd=tmp_path).out


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def test_tools_are_offered_and_their_calls_are_stored_shown_exported_and_scored(tmp_path):
    rows = [
        {"id": city, "input": city, "target": [{"name": "weather", "arguments": {"city": city}}]}
        for city in ("Oslo", "Rome")
    ]
    asked: list[Any] = []

    def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
        arguments = {"city": prompt if model == "good" else "Nowhere"}
        function = {"name": "weather", "arguments": json.dumps(arguments)}
        call = {"id": f"call-{number}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"message": message, "finish_reason": "tool_calls"}

    run(tmp_path, rows, asked, answer, tools=TOOLS, scorer="tool_calls")
    assert all(body["tools"] == [{"type": "function", "function": TOOLS[0]}] for body in asked)
    records = trials(tmp_path / "run")
    assert categories(tmp_path / "run") == {("good", 1), ("bad", 0)}
    assert not any("no_answer_tool_calls" in record.score.signals for record in records if record.score)
    shown = in_process("samples", "run", "--model", "good", cwd=tmp_path).out
    assert 'calls      weather({"city": "Oslo"})' in shown
    shown = [call["name"] for sample in samples(tmp_path / "run") for call in sample["tool_calls"]]
    assert {*shown} == {"weather"}
    assert in_process("export", "run", "--out", "run.csv", cwd=tmp_path).code == 0
    with (tmp_path / "run.csv").open(encoding="utf-8", newline="") as file:
        assert all("weather" in row["tool_calls"] for row in csv.DictReader(file))


@pytest.mark.parametrize("where", ["dataset", "config"])
def test_conversations_with_calls_and_parts_are_asked_as_written(tmp_path, where):
    (tmp_path / "a.png").write_bytes(PNG)
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
    talk = [
        {"role": "system", "content": "Be {brief}."},
        {"role": "user", "content": [text("This?"), {"type": "image_url", "image_url": {"url": "a.png"}}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "12 °C"},
    ]
    rows = [{"input": "Why?", "target": "x", "brief": "brief", "talk": talk}]
    asked: list[Any] = []
    task = {"prompt": talk} if where == "config" else {"fields": {"messages": "talk"}}
    run(tmp_path, rows, asked, tools=[], **task)
    uri = f"data:image/png;base64,{b64encode(PNG).decode()}"
    expected = json.loads(json.dumps(talk).replace("a.png", uri))
    if where == "config":
        expected[0]["content"] = "Be brief."
    assert asked[0]["messages"] == expected
