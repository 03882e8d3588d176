"""Requests per second of the openai client over the HTTP clients it can use, and of the two ways to call it.

Every figure is a process of its own that keeps N requests in flight against a server in another process that
answers at once; the variants take turns and the median of the turns is shown. CPU is the client's only.

    python benchmarks/transport.py                    # about two minutes on two cores
    python benchmarks/transport.py --in-flight 16 64 --requests 2000 --turns 5
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from canned_server import canned_server

TRANSPORTS = ("aiohttp", "httpx2", "httpx")
CALLS = ("post", "create")
MESSAGES = [{"role": "user", "content": "What is 2 + 2? Put the answer into a box."}]


def http_client(transport: str, connections: int) -> Any:
    import httpx
    import httpx2
    import openai

    limits = {"max_connections": connections, "max_keepalive_connections": connections}
    if transport == "aiohttp":
        return openai.DefaultAioHttpClient(limits=httpx2.Limits(**limits), timeout=60)
    if transport == "httpx2":
        return httpx2.AsyncClient(limits=httpx2.Limits(**limits), timeout=60)
    return httpx.AsyncClient(limits=httpx.Limits(**limits), timeout=60)


def call(client: Any, how: str) -> Callable[[int], Awaitable[str]]:
    import httpx
    import httpx2

    legacy = isinstance(client._client, httpx.AsyncClient)
    response_type = httpx.Response if legacy else httpx2.Response

    async def create(seed: int) -> str:
        answer = await client.chat.completions.create(model="canned", messages=MESSAGES, seed=seed)
        return str(answer.choices[0].message.content)

    async def post(seed: int) -> str:
        body = {"model": "canned", "messages": MESSAGES, "seed": seed}
        response = await client.post("/chat/completions", cast_to=response_type, body=body)
        return str(json.loads(response.content)["choices"][0]["message"]["content"])

    return create if how == "create" else post


async def measure(url: str, transport: str, how: str, in_flight: int, requests: int) -> dict[str, float]:
    import openai

    latencies: list[float] = []
    async with openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=http_client(transport, in_flight)
    ) as client:
        ask = call(client, how)

        async def worker(count: int) -> None:
            for seed in range(count):
                started = time.perf_counter()
                await ask(seed)
                latencies.append(time.perf_counter() - started)

        async def workers(count: int) -> None:
            await asyncio.gather(*(worker(max(1, count // in_flight)) for _ in range(in_flight)))

        await workers(2 * in_flight)
        latencies.clear()
        cpu, wall = time.process_time(), time.perf_counter()
        await workers(requests)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    count = len(latencies)
    latencies.sort()
    return {
        "rate": count / wall,
        "cpu": 1000 * cpu / count,
        "p50": 1000 * latencies[count // 2],
        "p95": 1000 * latencies[int(0.95 * count)],
        "longest": 1000 * latencies[-1],
    }


def in_own_process(*arguments: Any) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--requests", type=int, default=2048)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        url, transport, how, in_flight, requests = options.one
        print(json.dumps(asyncio.run(measure(url, transport, how, int(in_flight), int(requests)))))
        return
    variants = [
        (transport, how, in_flight)
        for in_flight in options.in_flight
        for transport in TRANSPORTS
        for how in CALLS
    ]
    turns: dict[tuple[str, str, int], list[dict[str, float]]] = {variant: [] for variant in variants}
    with canned_server() as url:
        for _ in range(options.turns):
            for variant in variants:
                turns[variant].append(in_own_process(url, *variant, options.requests))
    print("in flight  transport  call      requests/s   CPU ms/request   p50 ms   p95 ms   longest ms")
    for (transport, how, in_flight), results in turns.items():
        figures = {name: statistics.median(result[name] for result in results) for name in results[0]}
        print(
            f"{in_flight:9d}  {transport:9}  {how:6} {figures['rate']:13.0f} {figures['cpu']:16.2f} "
            f"{figures['p50']:8.1f} {figures['p95']:8.1f} {figures['longest']:12.1f}"
        )


if __name__ == "__main__":
    main()
