"""A mimic with models of every kind, and what the tests ask it through the OpenAI client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, TypeVar

import httpx

from adaptive_eval.mimic.mimic_spec import (
    KnownQuestion,
    LatencySpec,
    MimicSpec,
    ModelSpec,
    TokenSpec,
)
from adaptive_eval.mimic.process import MimicProcess

T = TypeVar("T")

QUESTIONS = (
    KnownQuestion(
        id="sum", question="Ann has 17 apples and buys 25 more. How many apples does she have?", target="42"
    ),
    KnownQuestion(
        id="city",
        question="What is the capital of Peru?",
        target="B",
        choices=("Quito", "Lima", "La Paz", "Bogota"),
    ),
)
ASK = QUESTIONS[0].question
SPEC = MimicSpec(
    models=(
        ModelSpec(name="sage", mean=1.0),
        ModelSpec(name="fool", mean=0.0),
        ModelSpec(name="coin", mean=0.5, tokens=TokenSpec(prompt_overhead=5, completion_median=40)),
        ModelSpec(name="small", mean=0.5, context_length=64),
        ModelSpec(name="slow", mean=0.5, latency=LatencySpec(median=0.3, sigma=0.0)),
        ModelSpec(name="glacial", mean=0.5, latency=LatencySpec(median=3600.0, sigma=0.0)),
        ModelSpec(name="popular", mean=0.5, latency=LatencySpec(median=3600.0, sigma=0.0)),
        ModelSpec(
            name="talker",
            mean=0.5,
            tokens=TokenSpec(completion_median=20_000),
            latency=LatencySpec(median=600.0),
        ),
    ),
    questions=QUESTIONS,
    seed=7,
)


@asynccontextmanager
async def client_of(process: MimicProcess, **options: Any) -> AsyncIterator[Any]:
    from openai import AsyncOpenAI  # half a second to import: not while tests are collected

    options = {"api_key": "any", "max_retries": 0, "timeout": 120.0, **options}
    async with AsyncOpenAI(base_url=process.base_url, **options) as client:
        yield client


def ask(process: MimicProcess, use: Callable[[Any], Awaitable[T]], **options: Any) -> T:
    """Run `use` with a client of `process`."""

    async def run() -> T:
        async with client_of(process, **options) as client:
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


def set_faults(process: MimicProcess, *faults: dict[str, Any], model: str | None = None) -> None:
    body = {"faults": list(faults)} | ({} if model is None else {"model": model})
    httpx.post(f"{process.url}/mimic/faults", json=body).raise_for_status()


def wait_until(condition: Callable[[], bool]) -> None:
    """Ask again until `condition` holds; each question is a round trip to the server."""
    deadline = monotonic() + 60
    while not condition():
        assert monotonic() < deadline
