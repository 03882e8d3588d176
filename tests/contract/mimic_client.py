"""A mimic of three models, and what the tests ask it through the OpenAI client."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, TypeVar

import httpx

from adaptive_eval.mimic.mimic_spec import KnownQuestion, LatencySpec, MimicModelSpec, MimicSpec, TokenSpec
from adaptive_eval.mimic.process import MimicProcess

T = TypeVar("T")

ASK = "Ann has 17 apples and buys 25 more. How many apples does she have?"
SPEC = MimicSpec(
    models=(
        MimicModelSpec(name="sage", mean=1.0),
        MimicModelSpec(name="coin", mean=0.5, tokens=TokenSpec(prompt_overhead=5, completion_median=40)),
        MimicModelSpec(name="popular", mean=0.5, latency=LatencySpec(median=3600.0, sigma=0.0)),
    ),
    questions=(KnownQuestion(id="sum", question=ASK, target="42"),),
    seed=7,
)


def ask(process: MimicProcess, use: Callable[[Any], Awaitable[T]], api_key: str = "any") -> T:
    """Run `use` with a client of `process`."""
    from openai import AsyncOpenAI  # half a second to import: not while tests are collected

    async def run() -> T:
        url = process.base_url
        async with AsyncOpenAI(base_url=url, api_key=api_key, max_retries=0, timeout=120.0) as client:
            return await use(client)

    return asyncio.run(run())


def chat(client: Any, model: str = "coin", content: str = ASK, **parameters: Any) -> Awaitable[Any]:
    messages: list[Any] = [{"role": "user", "content": content}]
    return client.chat.completions.create(model=model, messages=messages, **parameters)


def answer(process: MimicProcess, model: str = "coin", content: str = ASK, **parameters: Any) -> Any:
    return ask(process, lambda client: chat(client, model, content, **parameters))


def texts(response: Any) -> list[str]:
    return [choice.message.content for choice in response.choices]


def stats(process: MimicProcess) -> Any:
    return httpx.get(f"{process.url}/mimic/stats").json()


def set_faults(process: MimicProcess, *faults: dict[str, Any]) -> None:
    body = {"faults": list(faults)}
    httpx.post(f"{process.url}/mimic/faults", json=body).raise_for_status()


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask again until `condition` holds; each question is a round trip to the server."""
    deadline = monotonic() + 60
    while not condition():
        assert monotonic() < deadline
