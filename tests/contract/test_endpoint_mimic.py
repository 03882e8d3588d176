"""Both endpoints against the mimic in its own process: the pair that the quickstart runs on."""

import asyncio

import pytest
from whole_mimic import WholeMimic

from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.errors import EndpointError, TransientEndpointError
from adaptive_eval.mimic.mimic_spec import FaultSpec, KnownQuestion, MimicSpec, ModelSpec
from adaptive_eval.trial import Message

QUESTION = "A farmer has 3 cows and buys 4 more. How many has he now?"
ASK = [Message("user", f"{QUESTION}\nPut the answer into a box.")]


def model(name, *faults, **changes):
    return ModelSpec(name=name, mean=0.5, faults=tuple(faults), **changes)


SPEC = MimicSpec(
    models=(
        model("steady"),
        model("limited", FaultSpec(kind="status", status=429, retry_after=1.5)),
        model("down", FaultSpec(kind="status", status=503)),
        model("dropping", FaultSpec(kind="drop", after=0.5)),
        model("mute", FaultSpec(kind="drop", after=0.0)),
        model("hanging", FaultSpec(kind="hang", after=0.3)),
        model("garbled", FaultSpec(kind="malformed")),
        model("aborting", FaultSpec(kind="cut_off", finish_reason="abort")),
        model("cutting", FaultSpec(kind="cut_off", finish_reason="length")),
        model("careless", FaultSpec(kind="echo_key")),
        model("small", context_length=10),
    ),
    questions=(KnownQuestion(id="cows", question=QUESTION, target="7"),),
    seed=7,
)


@pytest.fixture(scope="module")
def url():
    with WholeMimic(SPEC) as mimic:
        yield mimic.base_url


@pytest.fixture(params=[OpenAIChat, OpenAICompletions], ids=["chat", "completions"])
def api(request):
    return request.param


def ask(url, name, *, seeds=(1,), api=OpenAIChat, **options):
    async def main():
        async with api(url, name, **options) as chat:
            return [await chat.complete(ASK, seed=seed) for seed in seeds]

    return asyncio.run(main())


def failure(url, name, **options):
    with pytest.raises(EndpointError) as raised:
        ask(url, name, **options)
    return raised.value


def test_an_answer_with_honest_usage(url, api):
    (answer,) = ask(url, "steady", api=api, sampling={"max_tokens": 500})
    assert answer.text
    assert answer.finish_reason == "stop"
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.completion_tokens > 0
    assert answer.model == "steady"


@pytest.mark.parametrize("idle_timeout", [None, 30.0], ids=["whole", "streamed"])
def test_several_answers_with_one_request_are_those_of_neighbouring_seeds(url, api, idle_timeout):
    async def main():
        options = {"sampling": {"max_tokens": 500}, "idle_timeout": idle_timeout}
        async with api(url, "steady", **options) as chat:
            return await chat.sample(ASK, seed=20, n=4)

    together = asyncio.run(main())
    singly = ask(url, "steady", api=api, seeds=(20, 21, 22, 23), sampling={"max_tokens": 500})
    assert [answer.text for answer in together] == [answer.text for answer in singly]
    paid = [sum(answer.paid.completion_tokens for answer in answers) for answers in (together, singly)]
    assert paid[0] == paid[1]
    assert sum(answer.paid.prompt_tokens for answer in together) == singly[0].usage.prompt_tokens


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("limited", "rate_limit", 429),
        ("down", "server", 503),
        ("dropping", "dropped", None),
        ("mute", "dropped", None),
        ("garbled", "malformed", None),
        ("aborting", "aborted", None),
        ("careless", "server", 500),
    ],
)
def test_what_is_worth_another_attempt(url, api, name, kind, status):
    error = failure(url, name, api=api)
    assert isinstance(error, TransientEndpointError)
    assert (error.kind, error.status) == (kind, status)


def test_a_careless_server_does_not_give_the_key_away(url):
    error = failure(url, "careless", api_key_env="KEY", environ={"KEY": "sk-1234567890"})
    assert "1234567890" not in str(error)
    assert "[redacted]" in str(error)
