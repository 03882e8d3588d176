"""What an endpoint finds out about a server before it is asked anything, over real HTTP on loopback."""

import asyncio

import pytest
from scripted_http import refusing, reply, serving

from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError

MODELS = {"object": "list", "data": [{"id": "tiny"}, {"id": "tiny-lora"}]}


def probe(handler, model="tiny"):
    async def main():
        async with serving(handler) as server, OpenAIChat(server.url, model) as chat:
            return await chat.probe()

    return asyncio.run(main())


def test_probe_lists_what_is_served():
    found = probe(reply(200, MODELS))
    assert found.models == ("tiny", "tiny-lora")
    assert found.latency > 0.0
    assert found.note == ""


@pytest.mark.parametrize(
    ("card", "length"),
    [
        ({"max_model_len": 512}, 512),
        ({"context_length": 8192}, 8192),
        ({"context_window": 100, "max_model_len": None}, 100),
        ({"meta": {"n_ctx": 4096}}, 4096),
        ({"max_model_len": "512", "meta": 3}, None),
        ({"max_model_len": True}, None),
        ({}, None),
    ],
)
def test_probe_says_how_long_the_context_is(card, length):
    assert (
        probe(
            reply(200, {"data": [{"id": "other", "max_model_len": 1}, {"id": "tiny", **card}]})
        ).context_length
        == length
    )


def test_probe_names_the_model_that_was_meant():
    with pytest.raises(PermanentEndpointError) as raised:
        probe(reply(200, MODELS), model="tiny-lorra")
    assert raised.value.kind == "not_found"
    assert "does not serve 'tiny-lorra'. Did you mean 'tiny-lora'? It serves: tiny, tiny-lora." in str(
        raised.value
    )


async def lists_nothing(request, writer):
    await reply(404 if request.method == "GET" else 400, {"detail": "no"})(request, writer)


def test_probe_of_an_address_where_nothing_is():
    with pytest.raises(PermanentEndpointError) as found:
        probe(reply(404, {"detail": "Not Found"}))
    assert found.value.kind == "not_found"


@pytest.mark.parametrize(
    "handler",
    [
        lists_nothing,
        reply(200, {"data": []}),
        reply(200, {"object": "list"}),
        reply(200, []),
    ],
)
def test_probe_passes_a_server_that_lists_nothing_and_says_so(handler):
    found = probe(handler)
    assert found.models == ()
    assert "'tiny'" in found.note


def test_probe_of_a_server_that_wants_a_key():
    with pytest.raises(PermanentEndpointError, match="401"):
        probe(reply(401, {"error": "Unauthorized"}))


def test_probe_of_a_server_that_is_down():
    async def main(url):
        async with OpenAIChat(url, "tiny") as chat:
            await chat.probe()

    with refusing() as port:
        url = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(TransientEndpointError) as raised:
            asyncio.run(main(url))
    assert str(raised.value) == f"{url}: connection refused; is the server running?"
