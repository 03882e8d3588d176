"""What `validate --probe` finds out about servers that take parameters without a word and ignore them."""

import asyncio
import json

import pytest
from scripted_http import completion, reply, serving
from whole_mimic import WholeMimic

from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.endpoints.parameter_probe import (
    REQUESTS,
    TOKENS,
    judge_limit,
    judge_logprobs,
    judge_n,
    judge_seed,
    judge_stop,
    probe_parameters,
)
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError
from adaptive_eval.mimic.mimic_spec import MimicSpec, ModelSpec, TokenSpec
from adaptive_eval.trial import Completion, Usage

PARAMETERS = ("max_tokens", "stop", "logprobs", "seed", "n")
SETTLED = ("max_tokens", "stop", "logprobs", "n")
"""Those whose finding about a mimic follows from its seed. Without one, 32 tokens may be alike by chance."""


def model(name, **quirks):
    # Long enough to meet the limit, and of so many different lengths that no two answers are alike by chance.
    return ModelSpec(
        name=name, mean=0.5, tokens=TokenSpec(completion_median=5_000, completion_sigma=2.0), **quirks
    )


SPEC = MimicSpec(
    models=(
        model("honest"),
        *(model(f"no-{name}", ignores=(name,)) for name in SETTLED),
        model("cached", cached=True),
    ),
    seed=11,
)


@pytest.fixture(scope="module")
def url():
    with WholeMimic(SPEC) as mimic:
        yield mimic.base_url


def probed(url, name, api=OpenAIChat, **options):
    async def main():
        async with api(url, name, **options) as endpoint:
            return await probe_parameters(endpoint)

    return asyncio.run(main())


def verdicts(found):
    return {finding.parameter: finding.verdict for finding in found.findings}


@pytest.mark.parametrize("api", [OpenAIChat, OpenAICompletions], ids=["chat", "completions"])
def test_an_honest_server_honours_all(url, api):
    found = probed(url, "honest", api, sampling={"temperature": 0.8, "max_tokens": 30_000, "stop": ["Q:"]})
    assert verdicts(found) == dict.fromkeys(PARAMETERS, "honoured")
    assert found.requests == REQUESTS
    assert found.usage.completion_tokens <= (REQUESTS + 1) * TOKENS
    assert not any(finding.words for finding in found.findings)


@pytest.mark.parametrize("name", SETTLED)
def test_a_parameter_that_is_silently_ignored_is_found_and_no_other(url, name):
    found = verdicts(probed(url, f"no-{name}"))
    assert found.pop(name) == "ignored"
    assert set(found.values()) <= {"honoured", "unknown"}


def test_a_seed_that_is_silently_ignored_is_found():
    async def forgetful(request, writer):
        await reply(200, completion(f"river {len(server.requests)}"))(request, writer)

    async def main():
        nonlocal server
        async with serving(forgetful) as server, OpenAIChat(server.url, "tiny") as endpoint:
            return await probe_parameters(endpoint)

    server = None
    (seed,) = (finding for finding in asyncio.run(main()).findings if finding.parameter == "seed")
    assert seed.verdict == "ignored"
    assert "the same seed gave two different texts" in seed.words


def test_a_cache_is_found(url):
    found = probed(url, "cached")
    (seed,) = (finding for finding in found.findings if finding.parameter == "seed")
    assert seed.verdict == "ignored"
    assert "three seeds gave the same text" in seed.words


def test_greedy_answers_say_nothing_of_seed_and_n(url):
    found = probed(url, "honest", sampling={"temperature": 0})
    assert verdicts(found).keys() == {"max_tokens", "stop", "logprobs"}
    assert found.requests == 3


def test_a_refused_parameter_is_told_in_the_servers_words():
    async def picky(request, writer):
        body = json.loads(request.body)
        refused = [name for name in ("n", "logprobs") if name in body]
        if refused:
            error = {"error": {"message": f"{refused[0]} is not supported"}}
            await reply(400, error)(request, writer)
        else:
            await reply(200, completion("river stone"))(request, writer)

    async def main():
        async with serving(picky) as server, OpenAIChat(server.url, "tiny") as endpoint:
            return await probe_parameters(endpoint)

    findings = {finding.parameter: finding for finding in asyncio.run(main()).findings}
    for name in ("n", "logprobs"):
        assert findings[name].verdict == "refused"
        assert findings[name].words == f"HTTP 400 Bad Request: {name} is not supported"


def test_without_a_first_answer_there_is_nothing_to_find_out():
    async def main():
        async with serving(reply(401, {"error": "Unauthorized"})) as server:
            async with OpenAIChat(server.url, "tiny") as endpoint:
                with pytest.raises(PermanentEndpointError, match="401"):
                    await probe_parameters(endpoint)
            return len(server.requests)

    assert asyncio.run(main()) == 1


def test_what_would_spoil_the_examination_is_not_sent():
    extra = {"structured_outputs": {"choice": ["A"]}, "top_k": 5}
    sampling = {"max_completion_tokens": 9_000, "stop": ["x"], "top_logprobs": 5, "logprobs": True}

    async def main():
        async with serving(reply(200, completion("a b"))) as server:
            async with OpenAIChat(server.url, "tiny", sampling=sampling, extra_body=extra) as endpoint:
                await probe_parameters(endpoint)
            return [request.json for request in server.requests]

    bodies = asyncio.run(main())
    assert len(bodies) <= REQUESTS
    for body in bodies:
        assert (body["max_completion_tokens"], body["top_k"]) == (TOKENS, 5)
        assert not {"max_tokens", "structured_outputs", "top_logprobs"} & body.keys()
        assert body.get("stop") != ["x"]


def said(text, *, tokens=TOKENS, finish="length", logprobs=None):
    return (Completion(text, finish, Usage(9, tokens), logprobs=logprobs),)


BUSY = TransientEndpointError("busy", kind="server")


@pytest.mark.parametrize(
    ("finding", "verdict"),
    [
        (judge_limit(said("a b")[0]), "honoured"),
        (judge_limit(said("a b", tokens=TOKENS + 1)[0]), "ignored"),
        (judge_limit(said("x" * 2_000, tokens=0)[0]), "ignored"),
        (judge_limit(said("a b", tokens=3, finish="stop")[0]), "unknown"),
        (judge_stop("a river", said("")), "honoured"),
        (judge_stop("a river", said("a river")), "ignored"),
        (judge_stop("", said("")), "unknown"),
        (judge_stop("a river", BUSY), "unknown"),
        (judge_logprobs(said("a", logprobs={"content": [{}]})), "honoured"),
        (judge_logprobs(said("a")), "ignored"),
        (judge_seed("a", said("a"), [said("b"), said("c")]), "honoured"),
        (judge_seed("a", said("a"), [said("a"), said("c")]), "honoured"),
        (judge_seed("a", said("b"), [said("b"), said("c")]), "ignored"),
        (judge_seed("a", said("a"), [said("a"), said("a")]), "ignored"),
        (judge_seed("", said(""), [said(""), said("")]), "unknown"),
        (judge_seed("a", said("a"), [BUSY, said("c")]), "unknown"),
        (judge_n(said("a") + said("b"), varied=True), "honoured"),
        (judge_n(said("a") + said("a"), varied=True), "ignored"),
        (judge_n(said("a") + said("a"), varied=False), "honoured"),
        (judge_n(said("a"), varied=True), "ignored"),
        (judge_n(said("a", tokens=16) + said("b", tokens=16), varied=True), "ignored"),
        (judge_n(said("a", tokens=0) + said("b", tokens=0), varied=True), "honoured"),
        (judge_n(PermanentEndpointError("no", kind="bad_request"), varied=True), "refused"),
    ],
)
def test_what_answers_prove(finding, verdict):
    assert finding.verdict == verdict
    assert bool(finding.words) == (verdict != "honoured")
