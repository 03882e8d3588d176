"""The ways in which a mimic misbehaves when it is told to, as the OpenAI client sees them."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import openai
import pytest
from mimic_client import SPEC, answer, ask, chat, wait_until
from openai import AsyncOpenAI

from adaptive_eval.mimic.mimic_spec import MimicSpec
from adaptive_eval.mimic.process import MimicProcess


def test_a_rate_limit_says_when_to_come_back(mimic: MimicProcess, faulty: Callable[..., None]) -> None:
    faulty({"kind": "status", "status": 429, "retry_after": 1.5, "first": 1})
    with pytest.raises(openai.RateLimitError) as caught:
        answer(mimic)
    assert caught.value.response.headers["retry-after"] == "1.5"
    assert caught.value.code == "rate_limit_exceeded"
    assert answer(mimic).choices


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0])
def test_a_dropped_connection_is_an_error(
    mimic: MimicProcess, faulty: Callable[..., None], after: float
) -> None:
    faulty({"kind": "drop", "after": after, "first": 1})

    async def use(client: AsyncOpenAI) -> None:
        with pytest.raises(openai.APIConnectionError):
            await chat(client)
        assert (await chat(client)).choices

    ask(mimic, use)


def test_a_slow_start_answers_503_and_then_serves() -> None:
    body = {"model": "coin", "messages": [{"role": "user", "content": "x"}]}
    never, soon = (MimicSpec(models=SPEC.models, slow_start=seconds) for seconds in (3600.0, 0.5))
    with httpx.Client() as client, MimicProcess(never) as starting:
        assert client.get(f"{starting.url}/health").status_code == 503
        assert client.get(f"{starting.base_url}/models").status_code == 503
        assert client.post(f"{starting.base_url}/chat/completions", json=body).status_code == 503
    with httpx.Client() as client, MimicProcess(soon) as starting:
        wait_until(lambda: client.get(f"{starting.url}/health").status_code == 200)
        assert client.post(f"{starting.base_url}/chat/completions", json=body).status_code == 200
