"""Proxies and certificates come from the environment."""

import asyncio
import shutil
import ssl
import subprocess

import pytest
from scripted_http import ASK, completion, reply, serving

from adaptive_eval.build.model_clients import endpoints_of
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.endpoints.apis import OpenAIChat
from adaptive_eval.errors import EndpointError, PermanentEndpointError, UsageError

VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ssl_cert_file", "ssl_cert_dir")


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def ask(monkeypatch):
    """Return what asks a server, at `url` or through a proxy that `variables` name; it says what was sent."""

    def ask(handler, url="", variables=(), tls=None, **options):
        async def main():
            async with serving(handler, ssl=tls) as server:
                for name, value in dict(variables).items():
                    monkeypatch.setenv(name, value.format(port=server.port))
                own = server.url if tls is None else server.url.replace("http:", "https:")
                async with OpenAIChat(url or own, "tiny", **options) as chat:
                    try:
                        return await chat.complete(ASK, seed=1), server.requests
                    except EndpointError as error:
                        return error, server.requests

        return asyncio.run(main())

    return ask


VENDOR = "http://gpu1.cluster.invalid:8000/prefix/v1"
WITH_PASSWORD = "http://me:hunter2secret@127.0.0.1:{port}"


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_plain_request_goes_through_the_proxy(ask, variable):
    proxy = {variable: "http://127.0.0.1:{port}"}
    answer, (request,) = ask(reply(200, completion("by proxy")), VENDOR, proxy)
    assert answer.text == "by proxy"
    assert request.target == f"{VENDOR}/chat/completions"


def test_a_tls_request_asks_the_proxy_for_a_tunnel(ask):
    key = {"api_key_env": "KEY", "environ": {"KEY": "sk-12345678"}, "headers": {"x-team": "evals"}}
    proxy = {"HTTPS_PROXY": WITH_PASSWORD}
    error, (request,) = ask(reply(403, "no tunnels here"), "https://api.vendor.invalid/v1", proxy, **key)
    assert "the proxy opens no tunnel: HTTP 403" in str(error)
    assert "hunter2secret" not in str(error)
    assert (request.method, request.target) == ("CONNECT", "api.vendor.invalid:443")
    assert request.headers["proxy-authorization"] == "Basic bWU6aHVudGVyMnNlY3JldA=="
    assert not {"authorization", "x-team"} & set(request.headers), "what is for the server is not the proxy's"


def test_a_proxy_of_another_kind_is_refused_without_its_password(monkeypatch):
    monkeypatch.setenv("ALL_PROXY", "socks5://me:hunter2secret@127.0.0.1:9")
    with pytest.raises(UsageError, match="is no HTTP proxy") as raised:
        OpenAIChat("http://gpu1:8000/v1", "tiny")
    assert "hunter2secret" not in str(raised.value)


@pytest.mark.parametrize("exempt", ["127.0.0.1", "*"])
def test_hosts_that_are_exempt_are_asked_directly(ask, exempt):
    variables = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": exempt}
    assert ask(reply(200, completion("direct")), variables=variables)[0].text == "direct"


def test_a_proxys_password_is_in_no_error(ask):
    error, (request,) = ask(reply(407, "who are you?"), VENDOR, {"HTTP_PROXY": WITH_PASSWORD})
    assert (type(error), error.status) == (PermanentEndpointError, 407)
    assert "hunter2secret" not in str(error)
    assert request.headers["proxy-authorization"].startswith("Basic ")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that signs itself, for 127.0.0.1, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-subj", "/CN=private", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


@pytest.fixture
def answer_over_tls(ask, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return lambda **variables: ask(reply(200, completion("private")), "", variables, context)[0]


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
def test_an_own_certificate_authority_is_trusted_by_name(answer_over_tls, certificate, variable, tmp_path):
    place = certificate[0]
    if variable == "SSL_CERT_DIR":
        place = tmp_path
        command = ["openssl", "x509", "-hash", "-noout", "-in", str(certificate[0])]
        name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        shutil.copy(certificate[0], tmp_path / f"{name}.0")
    assert answer_over_tls(**{variable: str(place)}).text == "private"


def test_an_unknown_certificate_is_permanent(answer_over_tls):
    error = answer_over_tls()
    assert isinstance(error, PermanentEndpointError)
    assert "certificate is not accepted" in str(error)


def test_headers_come_from_the_config_and_from_variables(monkeypatch):
    monkeypatch.setenv("GATEWAY_KEY", "gw-12345678")

    def config(url):
        headers = {"X-Team": "evals", "X-Key": {"env": "GATEWAY_KEY"}}
        models = [{"name": name, "endpoints": [url], "headers": headers} for name in ("tiny", "other")]
        tasks = [{"name": "t", "dataset": "t.jsonl", "scorer": "exact"}]
        return config_from_data({"name": "demo", "models": models, "tasks": tasks})

    async def main():
        async with serving(reply(500, {"error": {"message": "bad key gw-12345678"}})) as server:
            ((endpoint,), _) = endpoints_of(config(server.url).models, None).values()
            async with endpoint:
                with pytest.raises(EndpointError) as raised:
                    await endpoint.complete(ASK, seed=1)
            return server.requests[0], str(raised.value)

    request, said = asyncio.run(main())
    assert request.headers["x-team"] == "evals"
    assert request.headers["x-key"] == "gw-12345678"
    assert "gw-12345678" not in said
    monkeypatch.delenv("GATEWAY_KEY")
    with pytest.raises(UsageError, match="header X-Key: the environment variable GATEWAY_KEY is not set"):
        endpoints_of(config("http://h/v1").models, None)
