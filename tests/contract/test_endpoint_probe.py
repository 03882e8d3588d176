"""What is found out about servers: which there are, and what each says before and while it is asked."""

import asyncio

import pytest
from scripted_http import asked, completion, hang, refusing, reply, reset
from whole_mimic import WholeMimic

from adaptive_eval.build.server_discovery import Finder
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.endpoints import parameter_probe as judges
from adaptive_eval.endpoints import server_info
from adaptive_eval.endpoints.apis import OpenAIChat, OpenAICompletions
from adaptive_eval.endpoints.parameter_probe import REQUESTS, TOKENS, probe_parameters
from adaptive_eval.engine.limits import AdaptiveConcurrency, Server
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError, UsageError
from adaptive_eval.mimic.mimic_spec import MimicModelSpec, MimicSpec, TokenSpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.trial import Completion, Message, Usage

# What an endpoint finds out about a server before it is asked anything, over real HTTP on loopback.


MODELS = {"object": "list", "data": [{"id": "tiny"}, {"id": "tiny-lora"}]}


def probe(handler, **options):
    return asked(handler, OpenAIChat.probe, **options)[0]


def test_probe_lists_what_is_served_and_names_the_model_that_was_meant():
    found = probe(reply(200, MODELS))
    assert (found.models, found.note) == (("tiny", "tiny-lora"), "")
    assert 0.0 < found.latency < 60.0
    error = probe(reply(200, MODELS), model="tiny-lorra")
    assert (type(error), error.kind) == (PermanentEndpointError, "not_found")
    words = "does not serve 'tiny-lorra'. Did you mean 'tiny-lora'? It serves: tiny, tiny-lora."
    assert words in str(error)


@pytest.mark.parametrize(
    ("card", "length"),
    [
        ({"max_model_len": 512}, 512),
        ({"context_length": 8192}, 8192),
        ({"context_window": 100, "max_model_len": None}, 100),
        ({"meta": {"n_ctx": 4096}}, 4096),
        ({"max_model_len": "512", "meta": 3}, None),
        ({"max_model_len": True}, None),
        ({"max_model_len": 0, "context_window": 64}, 64),
        ({}, None),
    ],
)
def test_probe_says_how_long_the_context_is(card, length):
    listed = {"data": [{"id": "other", "max_model_len": 1}, {"id": "tiny", **card}]}
    assert probe(reply(200, listed)).context_length == length


def test_more_tokens_than_the_context_holds_are_not_believed():
    async def both(request, writer):
        said = completion("4", usage={"prompt_tokens": 600, "completion_tokens": 1})
        listed = {"data": [{"id": "tiny", "max_model_len": 512}]}
        await reply(200, listed if request.method == "GET" else said)(request, writer)

    async def use(chat):
        await chat.probe()
        return await chat.complete([Message("user", "?")], seed=None)

    answer, _ = asked(both, use)
    assert (answer.usage, answer.impossible_usage) == (Usage(), True)


def test_a_key_among_the_models_that_a_server_lists_is_hidden(monkeypatch):
    monkeypatch.setenv("KEY", "sk-12345678")
    error = probe(reply(200, {"data": [{"id": "sk-12345678"}]}), api_key_env="KEY")
    assert isinstance(error, PermanentEndpointError)
    assert "It serves: [redacted]" in str(error)


async def lists_nothing(request, writer):
    await reply(404 if request.method == "GET" else 400, {"detail": "no"})(request, writer)


async def allows_no_list(request, writer):
    await reply(405 if request.method == "GET" else 400, {"detail": "no"})(request, writer)


async def knows_no_such_model(request, writer):
    words = "Not Found" if request.method == "GET" else "The model `None` does not exist."
    await reply(404, {"error": {"message": words}})(request, writer)


@pytest.mark.parametrize(
    "handler",
    [
        lists_nothing,
        allows_no_list,
        knows_no_such_model,
        *(reply(200, body) for body in ({"data": []}, {"object": "list"}, [])),
    ],
)
def test_probe_passes_a_server_that_lists_nothing_and_says_so(handler):
    found = probe(handler)
    assert found.models == ()
    assert "'tiny'" in found.note
    assert 0.0 < found.latency < 60.0


@pytest.mark.parametrize(("status", "kind"), [(404, "not_found"), (401, "auth")])
def test_where_nothing_is_or_a_key_is_wanted_there_is_nothing_to_find_out(status, kind):
    for use in (OpenAIChat.probe, probe_parameters):
        error, server = asked(reply(status, {"error": "no"}), use)
        assert (type(error), error.status, error.kind) == (PermanentEndpointError, status, kind)
        assert status == 401 or "address or model" in str(error)
    assert len(server.requests) == 1


def test_nothing_listens():
    async def main(url):
        async with OpenAIChat(url, "tiny") as chat:
            assert not await chat.alive()
            await chat.probe()

    with refusing() as port:
        url = f"http://127.0.0.1:{port}/v1"
        with pytest.raises(TransientEndpointError) as raised:
            asyncio.run(main(url))
    assert str(raised.value) == f"{url}: connection refused; is the server running?"


# Is a server there? Asked over real HTTP: servers with and without a ``/health``, sick, silent and gone.


def alive(handler, path="/v1"):
    """Ask a server with `handler`; return the answer and the paths it was asked for."""
    found, server = asked(handler, OpenAIChat.alive, path=path)
    return found, [request.target for request in server.requests]


def by_path(**handlers):
    """Return a handler that answers ``/health`` and ``/models`` differently."""

    async def handler(request, writer):
        await handlers[request.target.rpartition("/")[2]](request, writer)

    return handler


def test_health_is_asked_beside_the_api():
    assert alive(reply(200, b"")) == (True, ["/health"])
    assert alive(reply(200, b""), "/team/proxy/v1") == (True, ["/team/proxy/health"])


@pytest.mark.parametrize("status", [401, 404, 405])
def test_without_a_health_its_models_are_asked(status):
    handler = by_path(health=reply(status, {}), models=reply(200, {"data": []}))
    assert alive(handler) == (True, ["/health", "/v1/models"])


@pytest.mark.parametrize(("status", "there"), [(401, True), (429, True), (500, False), (503, False)])
def test_being_refused_is_an_answer_and_an_error_of_the_server_is_none(status, there):
    assert alive(by_path(health=reply(404, {}), models=reply(status, {})))[0] == there
    assert there or not alive(reply(status, {}))[0]


def test_silence_is_none_and_is_not_waited_out(monkeypatch):
    """As long as a request may take, which is an hour: a tenth of that would be a failure of the test."""
    monkeypatch.setattr(server_info, "PATIENCE", 0.2)
    assert not alive(hang)[0]
    assert not alive(reset)[0]


# What `validate --probe` finds out about servers that take parameters without a word and ignore them.


PARAMETERS = ("max_tokens", "stop", "logprobs", "seed", "n")
SETTLED = ("max_tokens", "stop", "logprobs", "n")
"""Those whose finding about a mimic follows from its seed. Without one, 32 tokens may be alike by chance."""


def model(name, **quirks):
    # Long enough to meet the limit, and of so many different lengths that no two answers are alike by chance.
    return MimicModelSpec(
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
        answer = reply(200, completion("river stone"))
        for name in {"n", "logprobs"} & request.json.keys():
            answer = reply(400, {"error": {"message": f"{name} is not supported"}})
        await answer(request, writer)

    found, _ = asked(picky, probe_parameters)
    findings = {finding.parameter: finding for finding in found.findings}
    for name in ("n", "logprobs"):
        assert findings[name].verdict == "refused"
        assert findings[name].words.startswith(f"HTTP 400 Bad Request: {name} is not supported")


def test_what_would_spoil_the_examination_is_not_sent():
    extra = {"structured_outputs": {"choice": ["A"]}, "top_k": 5}
    sampling = {"max_completion_tokens": 9_000, "stop": ["x"], "top_logprobs": 5, "logprobs": True}

    answer = reply(200, completion("a b"))
    _, server = asked(answer, probe_parameters, sampling=sampling, extra_body=extra)
    bodies = [request.json for request in server.requests]
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
        (judges.judge_limit(said("a b")[0]), "honoured"),
        (judges.judge_limit(said("a b", tokens=TOKENS + 1)[0]), "ignored"),
        (judges.judge_limit(said("x" * 2_000, tokens=0)[0]), "ignored"),
        (judges.judge_limit(said("a b", tokens=3, finish="stop")[0]), "unknown"),
        (judges.judge_stop("a river", said("")), "honoured"),
        (judges.judge_stop("a river", said("a river")), "ignored"),
        (judges.judge_stop("", said("")), "unknown"),
        (judges.judge_stop("a river", BUSY), "unknown"),
        (judges.judge_logprobs(said("a", logprobs={"content": [{}]})), "honoured"),
        (judges.judge_logprobs(said("a")), "ignored"),
        (judges.judge_seed("a", said("a"), [said("b"), said("c")]), "honoured"),
        (judges.judge_seed("a", said("a"), [said("a"), said("c")]), "honoured"),
        (judges.judge_seed("a", said("b"), [said("b"), said("c")]), "ignored"),
        (judges.judge_seed("a", said("a"), [said("a"), said("a")]), "ignored"),
        (judges.judge_seed("", said(""), [said(""), said("")]), "unknown"),
        (judges.judge_seed("a", said("a"), [BUSY, said("c")]), "unknown"),
        (judges.judge_n(said("a") + said("b"), varied=True), "honoured"),
        (judges.judge_n(said("a") + said("a"), varied=True), "ignored"),
        (judges.judge_n(said("a") + said("a"), varied=False), "honoured"),
        (judges.judge_n(said("a"), varied=True), "ignored"),
        (judges.judge_n(said("a", tokens=16) + said("b", tokens=16), varied=True), "ignored"),
        (judges.judge_n(said("a", tokens=0) + said("b", tokens=0), varied=True), "honoured"),
        (judges.judge_n(PermanentEndpointError("no", kind="bad_request"), varied=True), "refused"),
    ],
)
def test_what_answers_prove(finding, verdict):
    assert finding.verdict == verdict
    assert bool(finding.words) == (verdict != "honoured")


# From a config to sources and clients: who shares what, and what real servers say to being found.


FILE = {"discover": "file", "path": "servers/*.txt"}


def config(*sections, **model):
    """Return a config with a model for each of the sections that say where its servers are."""
    named = zip("abc", sections, strict=False)
    models = [{"name": name, "endpoints": section, **model} for name, section in named]
    task = {"name": "t", "dataset": "t.jsonl", "scorer": "exact"}
    return config_from_data({"name": "demo", "models": models, "tasks": [task]})


def test_models_that_name_the_same_source_share_it():
    finder = Finder(config(FILE, {**FILE, "patience": 5}, {**FILE, "every": 1}))
    one, two, other = (finder.discoveries[name] for name in "abc")
    assert one.source is two.source
    assert one.source is not other.source
    assert (one.config.patience, two.config.patience) == (600.0, 5.0)


def test_each_server_has_limits_of_its_own():
    each = {"concurrency": "auto", "rate_limit": {"requests_per_minute": 60}}
    finder = Finder(config({**FILE, "each": each}, {"discover": "file", "path": "others.txt"}))
    limits = finder.discoveries["a"].config.each
    one, two = Server("http://one", limits), Server("http://two", limits)
    assert isinstance(one.concurrency, AdaptiveConcurrency)
    assert one.concurrency is not two.concurrency
    assert limits.rate_limit.requests_per_minute == 60
    assert Server("http://three", finder.discoveries["b"].config.each).concurrency is None


@pytest.mark.parametrize(
    "model", [{"api_key_env": "NO_SUCH_KEY"}, {"headers": {"X-Team": {"env": "NO_SUCH_KEY"}}}]
)
def test_a_key_that_is_not_set_is_told_before_any_server_is_found(monkeypatch, model):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(UsageError, match="NO_SUCH_KEY is not set"):
        Finder(config(FILE, FILE, **model))


def test_a_server_is_let_in_once_it_serves_the_model():
    async def main():
        async with Finder(config(FILE, FILE, FILE)) as finder:
            there, of_another, too_late = (finder.discoveries[name].connect for name in "abc")
            with MimicProcess(MimicSpec(models=(MimicModelSpec(name="a", mean=0.5),))) as process:
                url = process.base_url
                client = await there(url)
                assert (client.url, client.model) == (url, "a")
                assert await there(url) is client
                with pytest.raises(PermanentEndpointError, match="does not serve 'b'"):
                    await of_another(url)
            with pytest.raises(TransientEndpointError, match="is the server running"):
                await too_late(url)

    asyncio.run(main())
