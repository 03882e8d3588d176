"""A function that answers a question by several calls: one trial, under all limits, its calls in sight."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from answering_server import answering, two_models
from command_line import ROOT, Finished, categories, in_process, report, samples, trials, write_config

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SEED_TEST

PAGE = (ROOT / "docs" / "agent.md").read_text("utf-8")
LOOP = PAGE.partition("```python\n")[2].partition("```")[0]
TOOLS = [{"name": "add", "parameters": {"type": "object"}}]


def answer(model: str, prompt: Any, number: int) -> dict[str, Any]:
    """Call the tool, then say what it gave (good) or something else; the third request of a model fails."""
    if number == 3:
        return {"status": 503}
    details = {"reasoning_tokens": 4}
    usage = {"prompt_tokens": 30, "completion_tokens": 10, "completion_tokens_details": details}
    if prompt.startswith("Say "):
        arguments = json.dumps({"a": int(prompt.split()[1].rstrip(".")), "b": 1})
        call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return {"message": message, "finish_reason": "tool_calls", "usage": usage}
    said = f"{number}: The answer is {int(prompt) - 1 if model == 'good' else -1}"
    return {"message": {"role": "assistant", "content": said}, "usage": usage}


def run(folder: Path, asked: list[Any], code: str = LOOP) -> Finished:
    """Run two models on a task with the solver of the docs."""
    (folder / "agent.py").write_text(code, "utf-8")
    with answering(answer, asked) as url:
        data = two_models(folder, url, goal="budget", budget={"trials": 16})
        data["tasks"][0] |= {"solver": "python:agent.py:solve", "tools": TOOLS}
        data |= {"retry": {"max_seconds": 1}, "servers": [{"url": url, "concurrency": 4}]}
        return in_process("run", write_config(folder, data), "--out", "run", "--display", "none", cwd=folder)


def test_a_tool_loop_is_one_trial_and_its_calls_are_seen(tmp_path):
    asked: list[Any] = []
    done = run(tmp_path, asked)
    assert done.code == 0, done.said
    records = trials(tmp_path / "run")
    assert len(records) == 16
    with RunReader(tmp_path / "run") as reader:
        tests = Counter(one.key for one in reader.attempts() if one.error == SEED_TEST)
        assert dict(reader.unanswered()) == tests  # what the calls have cost is known, but for tests of seeds
    assert categories(tmp_path / "run") == {("good", 1), ("bad", 0)}
    # A call that is tried again keeps its seed; two requests of a test of seeds have the same.
    assert 32 <= len({body["seed"] for body in asked}) <= 32 + tests.total() / 2
    for record in records:
        assert record.completion is not None
        assert (record.usage.total_tokens, record.completion.reasoning_tokens) == (80, 8)
        first, second = record.completion.calls
        assert [message["role"] for message in first["messages"]] == ["user"]
        assert first["tool_calls"][0]["name"] == "add"
        assert [message["role"] for message in second["messages"]] == ["assistant", "tool"]
        assert second["text"] == record.completion.text
    shown = in_process("samples", "run", "--model", "good", cwd=tmp_path).out
    assert "call 1     user: Say " in shown
    assert 'add({"a": ' in shown
    assert {len(sample["calls"]) for sample in samples(tmp_path / "run")} == {2}
    assert sum(model["errors"].get("server", 0) for model in report(tmp_path / "run")["models"]) > 0


MISTAKES = {
    "def solve(model, messages): pass": (2, "write async def"),
    "async def solve(model, messages): return 1": (4, "returned 1: return a text"),
    "async def solve(model, messages): return {}['x']": (4, "raised KeyError: 'x' (agent.py, line 1)"),
    "async def solve(model, messages): raise SystemExit(0)": (4, "raised SystemExit: 0 (agent.py, line 1)"),
    "async def solve(model, messages): await model(messages, top_k=1)": (
        4,
        "a call takes messages and tools",
    ),
}


@pytest.mark.parametrize("code", MISTAKES)
def test_a_mistake_in_a_solver_is_named(tmp_path, code):
    done = run(tmp_path, [], code)
    exit_code, words = MISTAKES[code]
    assert done.code == exit_code, done.said
    assert words in " ".join(done.said.split())


def test_a_solver_that_fails_on_the_answers_of_one_model_stops_this_model_alone(tmp_path):
    code = f"""{LOOP.replace("def solve", "def loop")}

async def solve(model, messages):
    answer = await loop(model, messages)
    return {{}}["x"] if "is -1" in str(answer) else answer
"""
    run(tmp_path, [], code)
    with RunReader(tmp_path / "run") as reader:
        (stopped,) = [one.body for one in reader.decisions() if one.body["kind"] == "model_stopped"]
    assert stopped["models"] == ["bad"]
    assert (
        f"KeyError: 'x' (agent.py, line {code[: code.index('return {}')].count(chr(10)) + 1})"
        in stopped["text"]
    )
