"""Is a server there? Asked over real HTTP: servers with and without a ``/health``, sick, silent and gone."""

import asyncio

import pytest
from scripted_http import hang, refusing, reply, reset, serving

from adaptive_eval.endpoints import server_info
from adaptive_eval.endpoints.apis import OpenAIChat


def alive(handler, prefix=""):
    """Ask a server with `handler`; return the answer and the paths it was asked for."""

    async def main():
        async with serving(handler) as server:
            url = f"http://127.0.0.1:{server.port}{prefix}/v1"
            async with OpenAIChat(url, "tiny") as chat:
                return await chat.alive(), [request.target for request in server.requests]

    return asyncio.run(main())


def by_path(**handlers):
    """Return a handler that answers ``/health`` and ``/models`` differently."""

    async def handler(request, writer):
        await handlers[request.target.rpartition("/")[2]](request, writer)

    return handler


def test_health_is_asked_beside_the_api():
    assert alive(reply(200, b"")) == (True, ["/health"])
    assert alive(reply(200, b""), "/team/proxy") == (True, ["/team/proxy/health"])


@pytest.mark.parametrize("status", [401, 404, 405])
def test_without_a_health_its_models_are_asked(status):
    handler = by_path(health=reply(status, {}), models=reply(200, {"data": []}))
    assert alive(handler) == (True, ["/health", "/v1/models"])


@pytest.mark.parametrize("status", [401, 404, 429])
def test_being_refused_is_an_answer(status):
    assert alive(by_path(health=reply(404, {}), models=reply(status, {})))[0]


@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_error_of_the_server_is_none(status):
    assert not alive(reply(status, {}))[0]
    assert not alive(by_path(health=reply(404, {}), models=reply(status, {})))[0]


def test_a_connection_that_breaks_is_none():
    assert not alive(reset)[0]


def test_silence_is_none_and_is_not_waited_out(monkeypatch):
    """As long as a request may take, which is an hour: a tenth of that would be a failure of the test."""
    monkeypatch.setattr(server_info, "PATIENCE", 0.2)
    assert not alive(hang)[0]


def test_nothing_listens():
    async def main(port):
        async with OpenAIChat(f"http://127.0.0.1:{port}/v1", "tiny") as chat:
            return await chat.alive()

    with refusing() as port:
        assert not asyncio.run(main(port))
