"""Both endpoints against a real vLLM: what the scripted servers of the contract tests imitate."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from vllm_server import VllmServer

from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.endpoints.parameter_probe import REQUESTS, TOKENS, probe_parameters
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError
from adaptive_eval.trial import Completion, Message

ASK = (
    Message(
        "user", "Which of these numbers is prime?\n\nA. 51\nB. 53\nC. 57\nD. 87\n\nAnswer with a letter."
    ),
)
LETTERS = {"structured_outputs": {"choice": ["A", "B", "C", "D"]}}

Result = TypeVar("Result")


@pytest.fixture(scope="module")
def server(servers: dict[str, VllmServer]) -> VllmServer:
    return servers["tiny-1"]


APIS = pytest.mark.parametrize("api", [OpenAIChat, OpenAICompletions], ids=["chat", "completions"])


def with_chat(
    server: VllmServer,
    use: Callable[[OpenAIEndpoint], Awaitable[Result]],
    *,
    api: type[OpenAIEndpoint] = OpenAIChat,
    **options: Any,
) -> Result:
    """Return what `use` makes of an endpoint at the server."""

    async def main() -> Result:
        async with api(server.base_url, options.pop("model", server.model), **options) as chat:
            return await use(chat)

    return asyncio.run(main())


def ask(server: VllmServer, *, seed: int | None = 7, messages: Any = ASK, **options: Any) -> Completion:
    return with_chat(server, lambda chat: chat.complete(messages, seed=seed), **options)


def ask_each(server: VllmServer, seeds: range, **options: Any) -> list[str]:
    """Return the answers with these seeds, asked all at once."""

    async def use(chat: OpenAIEndpoint) -> list[str]:
        answers = await asyncio.gather(*(chat.complete(ASK, seed=seed) for seed in seeds))
        return [answer.text for answer in answers]

    return with_chat(server, use, **options)


@APIS
def test_an_answer_and_what_it_cost(server, api):
    before = server.counters()
    sampling = {"temperature": 1.0, "max_tokens": 4}
    answer = ask(server, api=api, sampling=sampling, extra_body=LETTERS)
    counted = server.counters() - before
    assert answer.text in "ABCD"
    assert len(answer.text) == 1
    assert answer.finish_reason == "stop"
    assert answer.model == "tiny-1"
    assert answer.response_id.startswith("chatcmpl-" if api is OpenAIChat else "cmpl-")
    assert 0.0 < answer.latency < 60.0
    assert counted.finished == 1
    assert answer.usage.prompt_tokens == counted.prompt_tokens > 32
    assert answer.usage.completion_tokens == counted.generation_tokens > 0


@APIS
def test_several_answers_of_one_request_are_those_of_neighbouring_seeds(server, api):
    """What the spacing of the trials' seeds rests on, and what one request for several answers saves."""
    sampling = {"temperature": 1.0, "max_tokens": 12}
    options = {"api": api, "sampling": sampling, "extra_body": {"ignore_eos": True}}
    singly = [ask(server, seed=seed, **options) for seed in range(40, 44)]
    before = server.counters()
    together = with_chat(server, lambda chat: chat.sample(ASK, seed=40, n=4), **options)
    counted = server.counters() - before
    assert [answer.text for answer in together] == [answer.text for answer in singly]
    assert sum(answer.paid.completion_tokens for answer in together) == 48 == counted.generation_tokens
    assert sum(answer.paid.prompt_tokens for answer in together) == singly[0].usage.prompt_tokens


def test_tokens_found_in_the_prefix_cache_are_reported(server):
    question = (Message("user", "How many times has this very question been asked before? " * 8),)
    first, second = (ask(server, messages=question, sampling={"max_tokens": 1}) for _ in range(2))
    assert first.usage.cached_tokens < 32
    assert second.usage.prompt_tokens == first.usage.prompt_tokens
    assert 32 <= second.usage.cached_tokens < second.usage.prompt_tokens


def test_the_same_seed_gives_the_same_answer_however_requests_are_batched(server):
    sampling = {"temperature": 1.0, "max_tokens": 24}
    together = ask_each(server, range(16), sampling=sampling, concurrency=16)
    assert len(set(together)) > 8
    assert [ask(server, seed=seed, sampling=sampling).text for seed in range(4)] == together[:4]


def test_logprobs_are_kept_when_asked_for(server):
    answer = ask(server, sampling={"max_tokens": 3, "logprobs": True, "top_logprobs": 2})
    assert len(answer.logprobs["content"]) == answer.usage.completion_tokens
    assert all(len(token["top_logprobs"]) >= 2 for token in answer.logprobs["content"])
    assert ask(server, sampling={"max_tokens": 3}).logprobs is None


def test_the_probe_costs_no_request(server):
    before = server.counters()
    probe = with_chat(server, lambda chat: chat.probe())
    assert probe.models == ("tiny-1",)
    assert probe.note == ""
    assert server.counters() == before
    assert probe.context_length is not None


@APIS
def test_an_examination_finds_that_vllm_honours_all(server, api):
    before = server.counters()
    found = with_chat(server, probe_parameters, api=api, sampling={"temperature": 1.0})
    counted = server.counters() - before
    verdicts = {finding.parameter: finding.verdict for finding in found.findings}
    assert {name: verdict for name, verdict in verdicts.items() if name != "max_tokens"} == dict.fromkeys(
        ("stop", "logprobs", "seed", "n"), "honoured"
    )
    assert found.requests == REQUESTS
    assert counted.generation_tokens == found.usage.completion_tokens <= (REQUESTS + 1) * TOKENS


@pytest.mark.parametrize(
    ("options", "status", "kind", "words"),
    [
        ({"model": "nope"}, 404, "not_found", "The model `nope` does not exist"),
        ({"sampling": {"temperature": -1.0}}, 400, "bad_request", "temperature must be"),
        ({"sampling": {"max_tokens": 0}}, 400, "bad_request", "max_tokens must be at least 1"),
        ({"extra_body": {"top_k": -5}}, 400, "bad_request", "top_k must be"),
        ({"messages": (Message("user", "again " * 20_000),)}, 400, "bad_request", "maximum context length"),
    ],
    ids=["unknown-model", "temperature", "max-tokens", "top-k", "prompt-too-long"],
)
def test_a_refusal_is_permanent_and_keeps_the_servers_words(server, options, status, kind, words):
    with pytest.raises(PermanentEndpointError, match=words) as caught:
        ask(server, **options)
    assert (caught.value.status, caught.value.kind) == (status, kind)


def test_a_request_given_up_is_given_up_by_the_server(server):
    """Thirty-two long answers keep it busy for half a minute; busy cores can delay a timer by seconds."""
    before = server.counters()
    options = {"sampling": {"max_tokens": 16_000}, "extra_body": {"ignore_eos": True}, "total_timeout": 1.0}
    with pytest.raises(TransientEndpointError, match=r"no answer within 1 s") as caught:
        with_chat(server, lambda chat: chat.sample(ASK, seed=40, n=32), **options)
    assert caught.value.kind == "timeout"
    counted = server.wait_until_idle() - before
    assert counted.finished == 0
    assert counted.generation_tokens < 32 * 16_000
