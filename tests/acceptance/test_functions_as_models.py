"""Functions of one's own as models of a config, from validate to resume."""

import asyncio
import sys
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from answering_server import two_models
from command_line import in_process, ran, trials, write_config

from adaptive_eval.endpoints import function
from adaptive_eval.endpoints.function import FunctionEndpoint
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError, UserCodeError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Message

MODELS = """
import asyncio

calls = []

async def good(prompt, messages, sampling, seed):
    assert messages[-1] == {"role": "user", "content": prompt}, messages
    assert sampling == {"max_tokens": 64}, sampling
    said = prompt.removeprefix("Say ").removesuffix(".")
    return f"With seed {seed}: {said}", {"prompt_tokens": 5, "completion_tokens": 7}

def bad(prompt, seed):
    calls.append(seed)
    if calls.count(seed) == 1 and seed % 4 == 0:
        raise ConnectionError("try me again")
    return f"With seed {seed}: -1"

def wrong(prompt):
    return {}[prompt]

def lies(prompt):
    return "-1"

def breaks_later(prompt):
    calls.append(prompt)
    if len(calls) > 5:
        raise RuntimeError("worn out")
    return "-1"

def nothing(prompt):
    return None

def leaves(prompt):
    raise SystemExit(0)

async def leaves_later(prompt):
    raise KeyboardInterrupt

async def cancels(prompt):
    raise asyncio.CancelledError

def finds_nothing(prompt):
    return next(iter(()))

async def finds_none(prompt):
    return next(one for one in () if one in prompt)

async def closes(prompt):
    raise GeneratorExit
"""


def config(folder: Path, *names: str, samples: int = 1, **more: Any) -> Path:
    """Write the functions, and a config with two of them, asked for so many answers at once."""
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models" / "mine.py").write_text(MODELS, "utf-8")
    data = two_models(folder, "http://unused.invalid/v1", **more)
    for model, name in zip(data["models"], names, strict=True):
        model |= {"endpoints": [f"python:models/mine.py:{name}"], "samples_per_request": samples}
    return write_config(folder, data)


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 3])
def test_functions_are_ranked_and_a_run_of_them_resumes(tmp_path, samples):
    path = config(tmp_path, "good", "bad", samples=samples, budget={"trials": 10})
    checked = in_process("validate", path, cwd=tmp_path, code=0)
    assert "python:models/mine.py:good is there; it was not called" in checked.out

    ran(path, code=3)
    more = config(tmp_path, "good", "bad", samples=samples)
    ran(more)
    records = trials(tmp_path / "run")
    good = [record for record in records if record.request.key.model == "good"]
    assert {record.usage.total_tokens for record in good} == {12}
    for record in records:
        assert record.completion is not None
        assert f"With seed {record.request.seed}:" in record.completion.text
        assert record.sent["max_tokens"] == 64
    assert all(record.score is not None and record.score.category == 1 for record in good)
    assert any(record.request.seed % 4 == 0 for record in records if record not in good)


@pytest.mark.parametrize("url", [None, "python:f.py:f"])
@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError, NotADirectoryError])
def test_a_file_that_a_function_cannot_read_is_a_mistake_and_no_failed_request(error, url):
    def answers(prompt):
        raise error("weights.bin")

    endpoint = FunctionEndpoint("f", answers, url=url)
    with pytest.raises(PermanentEndpointError if url else error, match=r"weights\.bin"):
        asyncio.run(endpoint.complete([Message("user", "?")], seed=None))


@pytest.mark.parametrize("answer", [TimeoutError("slow"), ConnectionError("gone"), 10**9, -1, 0.5])
def test_failures_that_may_pass_are_of_the_request_and_tokens_that_cannot_be_a_mistake(answer):
    def answers(prompt, seed):
        if isinstance(answer, OSError) and seed != 8:
            raise answer
        return "4", {"prompt_tokens": 1 if seed == 8 else answer}

    expected = TransientEndpointError if isinstance(answer, OSError) else UserCodeError
    endpoint, messages = FunctionEndpoint("f", answers), [Message("user", "?")]
    with pytest.raises(expected) as raised:
        asyncio.run(endpoint.complete(messages, seed=None))
    assert getattr(raised.value, "billed", False) is isinstance(answer, OSError)  # it may have answered
    # Of two answers at once the second comes; it does not count alone, as the other may have a price.
    with pytest.raises(expected):
        asyncio.run(endpoint.sample(messages, seed=7, n=2))


FAILURES = {
    "wrong": ("wrong raised KeyError", "    return {}[prompt]"),
    "breaks_later": ("breaks_later raised RuntimeError: worn out", '        raise RuntimeError("worn out")'),
    "cancels": ("cancels raised CancelledError", "    raise asyncio.CancelledError"),
    "leaves": ("leaves raised SystemExit: 0", "    raise SystemExit(0)"),
    "finds_nothing": ("finds_nothing raised StopIteration", "    return next(iter(()))"),
    "finds_none": ("finds_none raised StopIteration", "    return next(one for one in () if one in prompt)"),
    "closes": ("closes raised GeneratorExit", "    raise GeneratorExit"),
    "nothing": ("nothing: model 'broken' returned None", None),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_mistake_in_one_function_stops_its_model_alone_and_names_the_line(tmp_path, name):
    path = config(tmp_path, "good", "lies", budget={"trials": 600})
    data = yaml.safe_load(path.read_text("utf-8"))
    data["models"].append(
        data["models"][0] | {"name": "broken", "endpoints": [f"python:models/mine.py:{name}"]}
    )
    ran(write_config(tmp_path, data), code=3)
    with RunReader(tmp_path / "run") as run:
        decisions = [one.body for one in run.decisions()]
    (stopped,) = [one for one in decisions if one["kind"] == "model_stopped"]
    words, line = FAILURES[name]
    assert stopped["models"] == ["broken"]
    assert words in stopped["text"]
    assert "EndedByUserCode" not in stopped["text"]
    assert line is None or f"(mine.py, line {MODELS.splitlines().index(line) + 1})" in stopped["text"]
    (called,) = [one for one in decisions if one["kind"] == "pair"]
    assert set(called["models"]) == {"good", "bad"}


def test_a_run_of_which_a_function_that_fails_leaves_no_pair_ends(tmp_path):
    done = ran(config(tmp_path, "good", "wrong"), code=4)
    assert "wrong raised KeyError" in " ".join(done.out.split())


LOADS = {
    "import sys\n\nsys.exit(3)\n": "SystemExit: 3 (loads.py, line 3)",
    "import sys\n\ndef f(:\n": "SyntaxError: invalid syntax (loads.py, line 3)",
    "import json\njson.loads('{')\n": "(loads.py, line 2)",
    "\n\nimport there_is_no_such_module\n": "(loads.py, line 3)",
}


@pytest.mark.parametrize("text", LOADS)
def test_a_file_of_functions_that_cannot_be_loaded_is_named_with_its_line(tmp_path, text):
    path = config(tmp_path, "good", "bad")
    (tmp_path / "models" / "loads.py").write_text(text, "utf-8")
    data = yaml.safe_load(path.read_text("utf-8"))
    data["models"][1]["endpoints"] = ["python:models/loads.py:f"]
    done = ran(write_config(tmp_path, data), code=2)
    assert LOADS[text] in done.err
    assert "EndedByUserCode" not in done.err
    assert not (tmp_path / "run").exists()


def litellm_config(folder: Path, **more: Any) -> Path:
    """Write a config with two models that LiteLLM reaches."""
    data = two_models(folder, "litellm", **more)
    for model in data["models"]:
        model |= {"model": f"bedrock/{model['name']}", "extra_body": {"aws_region_name": "us-east-1"}}
    return write_config(folder, data)


@pytest.mark.parametrize("name", ["leaves", "leaves_later", "finds_nothing", "closes"])
def test_a_function_that_ends_the_process_is_a_failure_named_with_its_line(tmp_path, name):
    done = in_process("run", config(tmp_path, "good", name), cwd=tmp_path)
    assert done.code not in (0, 3)
    assert "mine.py, line" in " ".join(done.out.split())


ENDS = ["raise SystemExit(0)", "import sys; sys.exit(3)", "raise KeyboardInterrupt", "raise ValueError('x')"]


@pytest.mark.parametrize("words", ENDS)
def test_a_dataset_that_fails_is_a_mistake_of_the_config(tmp_path, words):
    (tmp_path / "ends.py").write_text(f"def rows():\n    {words}\n", "utf-8")
    data = two_models(tmp_path, "http://unused.invalid/v1")
    data["tasks"][0]["dataset"] = "python:ends:rows"
    done = in_process("validate", write_config(tmp_path, data), cwd=tmp_path)
    assert (done.code, "ends.py, line 2" in done.err) == (2, True)


def test_litellm_asks_by_the_id_with_everything_said_and_nothing_repeated(tmp_path, monkeypatch):
    class Refused(Exception):
        status_code, message = 429, "too many for a-secret-key"

    async def ask(**asked: Any) -> Any:
        calls.append(asked)
        if len(calls) == 2:
            raise Refused
        message = {"content": str(len(calls)), "reasoning_content": "easy"}
        usage = {"prompt_tokens": 3, "completion_tokens": 4}
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        return SimpleNamespace(model_dump=lambda: body)

    calls: list[dict[str, Any]] = []
    library = SimpleNamespace(
        acompletion=ask,
        get_llm_provider=lambda model: model,
        get_supported_openai_params=lambda model: ["seed"] if model == "bedrock/good" else [],
        BadRequestError=ValueError,
    )
    monkeypatch.setitem(sys.modules, "litellm", library)
    monkeypatch.setenv("ANY_API_KEY", "a-secret-key")
    moments = count(1000.0, 0.25)
    clock = SimpleNamespace(perf_counter=lambda: next(moments), monotonic=time.monotonic, time=time.time)
    monkeypatch.setattr(function, "time", clock)
    path = litellm_config(tmp_path, goal="budget", budget={"trials": 6})
    ran(path, code=0)
    records = trials(tmp_path / "run")
    latencies = [record.completion.latency for record in records if record.completion]
    assert all(0.25 <= latency <= 0.25 * 20 for latency in latencies)
    assert {
        (record.completion.reasoning, record.usage.total_tokens) for record in records if record.completion
    } == {("easy", 7)}
    assert len(calls) == len(records) + 1
    assert {("seed" in asked, asked["model"]) for asked in calls} == {
        (True, "bedrock/good"),
        (False, "bedrock/bad"),
    }
    assert all((asked["num_retries"], asked["aws_region_name"]) == (0, "us-east-1") for asked in calls)
    stored = [file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert b"a-secret-key" not in b"".join(stored)


def test_what_keeps_litellm_from_asking_is_said_by_validate(tmp_path, monkeypatch):
    def provider_of(model: str) -> str:
        raise ValueError(model)

    knows_none = SimpleNamespace(get_llm_provider=provider_of, BadRequestError=ValueError)
    for library, words in ((None, "pip install litellm"), (knows_none, "the provider of 'bedrock/good'")):
        monkeypatch.setitem(sys.modules, "litellm", library)
        done = in_process("validate", litellm_config(tmp_path), cwd=tmp_path, code=2)
        assert words in done.err
