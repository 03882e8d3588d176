"""The ways in which a mimic misbehaves when it is told to, as the OpenAI client sees them."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import openai
import pytest
from mimic_client import ASK, SPEC, answer, ask, chat, collect, set_faults, stats, texts, wait_until
from openai import AsyncOpenAI

from adaptive_eval.mock_server.mock_spec import MockServerSpec
from adaptive_eval.mock_server.process import MockServerProcess


def test_a_rate_limit_says_when_to_come_back(mimic: MockServerProcess, faulty: Callable[..., None]) -> None:
    faulty({"kind": "status", "status": 429, "retry_after": 1.5, "first": 1})
    with pytest.raises(openai.RateLimitError) as caught:
        answer(mimic)
    assert caught.value.response.headers["retry-after"] == "1.5"
    assert caught.value.code == "rate_limit_exceeded"
    assert answer(mimic).choices


@pytest.mark.parametrize("after", [0.0, 0.5])
def test_a_hang_lasts_until_the_client_leaves(
    mimic: MockServerProcess, faulty: Callable[..., None], after: float
) -> None:
    faulty({"kind": "hang", "after": after})
    before = stats(mimic)["models"]["coin"]["answers"]
    with pytest.raises(openai.APITimeoutError):
        ask(mimic, chat, timeout=0.2)
    faulty()
    wait_until(lambda: stats(mimic)["in_flight"] == 0)
    assert stats(mimic)["models"]["coin"]["answers"] == before


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0])
def test_a_dropped_connection_is_an_error(
    mimic: MockServerProcess, faulty: Callable[..., None], after: float
) -> None:
    faulty({"kind": "drop", "after": after, "first": 1})

    async def use(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.APIConnectionError):
            await chat(client)
        assert (await chat(client)).choices

    ask(mimic, use)


def test_a_stream_can_break_in_the_middle(mimic: MockServerProcess, faulty: Callable[..., None]) -> None:
    faulty({"kind": "drop", "after": 0.5})

    async def use(client: AsyncOpenAI) -> None:
        chunks = aiter(await chat(client, stream=True))
        for _ in range(4):
            await anext(chunks)
        with pytest.raises(openai.APIConnectionError):
            await collect(chunks)

    ask(mimic, use)


@pytest.mark.parametrize("stream", [False, True])
def test_malformed_json_cannot_be_read(
    mimic: MockServerProcess, faulty: Callable[..., None], stream: bool
) -> None:
    faulty({"kind": "malformed"})
    body = {"model": "coin", "messages": [{"role": "user", "content": ASK}], "stream": stream}
    response = httpx.post(f"{mimic.base_url}/chat/completions", json=body)
    assert response.status_code == 200
    lines = response.text.split("\n\n") if stream else [response.text]
    payloads = [line.removeprefix("data: ") for line in lines if line and line != "data: [DONE]"]
    assert sum(not is_json(payload) for payload in payloads) == 1

    async def use(client: AsyncOpenAI) -> None:
        answered = await chat(client, stream=stream)
        if stream:
            await collect(answered)

    # The client passes the parser's error on as it is.
    with pytest.raises(json.JSONDecodeError):
        ask(mimic, use)


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


@pytest.mark.parametrize("reason", ["abort", "length"])
def test_an_answer_can_be_cut_off(mimic: MockServerProcess, faulty: Callable[..., None], reason: str) -> None:
    whole = answer(mimic, seed=1)
    faulty({"kind": "cut_off", "finish_reason": reason})
    half = answer(mimic, seed=1)
    assert half.choices[0].finish_reason == reason
    assert texts(whole)[0].startswith(texts(half)[0])
    assert half.usage.completion_tokens == whole.usage.completion_tokens // 2


def test_a_careless_error_repeats_the_key(mimic: MockServerProcess, faulty: Callable[..., None]) -> None:
    faulty({"kind": "echo_key"})
    with pytest.raises(openai.InternalServerError) as caught:
        ask(mimic, chat, api_key="sk-very-secret")
    assert "sk-very-secret" in caught.value.message


def test_faults_of_one_model_leave_the_others_alone(mimic: MockServerProcess) -> None:
    set_faults(mimic, {"kind": "status", "status": 500}, model="fool")
    with pytest.raises(openai.InternalServerError):
        answer(mimic, "fool")
    assert answer(mimic, "sage").choices
    assert stats(mimic)["models"]["fool"]["faults"] == {"status": 1}
    set_faults(mimic, model="fool")
    assert answer(mimic, "fool").choices


def test_attempts_are_counted_for_each_request(mimic: MockServerProcess, faulty: Callable[..., None]) -> None:
    faulty({"kind": "status", "status": 503, "attempts": 2})

    async def use(client: AsyncOpenAI) -> list[bool]:
        fates = []
        for seed in (1, 1, 2, 1, 2, 2):
            try:
                await chat(client, seed=seed)
                fates.append(True)
            except openai.InternalServerError:
                fates.append(False)
        return fates

    assert ask(mimic, use) == [False, False, False, True, False, True]


def test_a_slow_start_answers_503_and_then_serves() -> None:
    body = {"model": "coin", "prompt": "x"}
    never, soon = (MockServerSpec(models=SPEC.models, slow_start=seconds) for seconds in (3600.0, 0.5))
    with httpx.Client() as client, MockServerProcess(never) as starting:
        assert client.get(f"{starting.url}/health").status_code == 503
        assert client.get(f"{starting.base_url}/models").status_code == 503
        assert client.post(f"{starting.base_url}/completions", json=body).status_code == 503
    with httpx.Client() as client, MockServerProcess(soon) as starting:
        wait_until(lambda: client.get(f"{starting.url}/health").status_code == 200)
        assert client.post(f"{starting.base_url}/completions", json=body).status_code == 200
