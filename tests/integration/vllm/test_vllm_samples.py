"""Several answers with one request against a real vLLM: the same trials, one prompt, and its prefix cache."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from vllm_server import VllmServer

from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.trial import Message

REPEATS, MANY = 4, 40


def prompts(salt: str) -> list[list[Message]]:
    """Return prompts of some ten blocks of the cache each, none of which begins like another."""
    return [
        [Message("user", f"{salt} {number} is what this question is about. " * 16)] for number in range(MANY)
    ]


async def pass_by_pass(chat: OpenAIChat) -> None:
    asked = prompts("apart")
    for repeat in range(REPEATS):
        for start in range(0, MANY, 4):
            await asyncio.gather(*(chat.complete(one, seed=repeat) for one in asked[start : start + 4]))


async def close_together(chat: OpenAIChat) -> None:
    for one in prompts("close"):
        await asyncio.gather(*(chat.complete(one, seed=repeat) for repeat in range(REPEATS)))


async def in_one_request(chat: OpenAIChat) -> None:
    for one in prompts("shared"):
        await chat.sample(one, seed=0, n=REPEATS)


def found_in_cache(server: VllmServer, ask: Callable[[OpenAIChat], Awaitable[None]], **options: Any) -> float:
    """Return the share of prompt tokens that vLLM finds in its prefix cache."""

    async def main() -> None:
        async with OpenAIChat(server.base_url, server.model, **options) as chat:
            await ask(chat)

    before = server.prefix_cache()
    asyncio.run(main())
    after = server.prefix_cache()
    return (after[1] - before[1]) / (after[0] - before[0])


def test_the_prefix_cache_finds_the_questions_that_are_asked_close_together(crowded):
    sampling = {"temperature": 1.0, "max_tokens": 2}
    shares = {
        ask.__name__: found_in_cache(crowded, ask, sampling=sampling)
        for ask in (pass_by_pass, close_together, in_one_request)
    }
    print("share of prompt tokens found in vLLM's prefix cache:", shares)
    assert shares["pass_by_pass"] < 0.05
    assert shares["close_together"] > 0.6
    assert shares["in_one_request"] > 0.6


def test_what_only_vllm_knows_is_passed_on(servers):
    async def main() -> Any:
        extra = {"prompt_logprobs": 1, "priority": 0, "min_tokens": 3, "top_k": 20}
        sampling = {"max_tokens": 3, "logprobs": True, "top_logprobs": 2}
        server = servers["tiny-1"]
        async with OpenAIChat(server.base_url, "tiny-1", sampling=sampling, extra_body=extra) as chat:
            return await chat.sample([Message("user", "What is 2 + 2?")], seed=1, n=2)

    answers = asyncio.run(main())
    assert len(answers) == 2
    for answer in answers:
        assert len(answer.logprobs["content"]) == 3
        assert all(len(token["top_logprobs"]) >= 2 for token in answer.logprobs["content"])
        assert len(answer.logprobs["prompt"]) == answer.usage.prompt_tokens
