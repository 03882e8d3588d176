"""What a failed request means, as a table over what servers answer."""

import errno
import json
from pathlib import Path
from types import SimpleNamespace

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.endpoints.causes import advice
from adaptive_eval.endpoints.failures import (
    from_answer,
    from_connection,
    from_status,
    malformed,
    pause_after,
    retry_after,
    server_message,
)
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError

NO_SECRETS = Redactor([])
DATA = Path(__file__).parents[1] / "data"
VLLM = json.loads((DATA / "vllm_errors.json").read_text())
CASES = json.loads((DATA / "failed_requests.json").read_text())
TYPES = {"transient": TransientEndpointError, "permanent": PermanentEndpointError}


def fail(status, body="", headers=None, now=0.0, redact=NO_SECRETS):
    text = body if isinstance(body, str) else json.dumps(body)
    return from_status(status, headers or {}, text, now=now, redact=redact)


@pytest.mark.parametrize("case", VLLM, ids=lambda case: case["name"])
def test_what_vllm_answers(case):
    error = fail(case["status"], case["body"])
    expected = (TYPES[case["error"]], case["kind"], case["status"])
    assert (type(error), error.kind, error.status) == expected
    assert case["says"] in str(error)


@pytest.mark.parametrize(("status", "error", "kind"), CASES["statuses"])
def test_status_decides(status, error, kind):
    found = fail(status)
    assert (type(found), found.kind, found.status) == (TYPES[error], kind, status)
    assert str(status) in str(found)


def test_no_credit_is_not_a_rate_limit():
    body = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    error = fail(429, body, {"retry-after": "1"})
    assert isinstance(error, PermanentEndpointError)
    assert "exceeded your current quota" in str(error)
    assert (error.kind, fail(403, body).kind) == ("rate_limit", "auth")
    body = {"error": {"details": [{"retryDelay": "7s"}]}}  # as Gemini says it, where no header does
    assert [fail(429, body, said).retry_after for said in ({}, {"retry-after": "1"})] == [7.0, 1.0]


@pytest.mark.parametrize(
    "coded",
    [
        {"code": "insufficient_quota"},
        {"type": "billing_hard_limit_reached"},
        {"type": "exceeded_current_quota_error"},
    ],
)
def test_a_quota_that_is_spent_may_be_told_by_a_code_alone(coded):
    assert isinstance(fail(429, {"error": {"message": "Denied.", **coded}}), PermanentEndpointError)


@pytest.mark.parametrize(
    ("said", "spent"),
    [
        ("You exceeded your current quota, please check your plan and billing details.", True),
        ("litellm.RateLimitError: OpenAIException - You exceeded your current quota", True),
        ("Your credit balance is too low to access the Anthropic API.", True),
        ("You have reached your specified API usage limits. You will regain access on 2026-12-01.", True),
        ("Insufficient credits. Add more using https://openrouter.ai/settings/credits", True),
        ("Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 requests per day", True),
        ("Your team has either used all available credits or reached its monthly spending limit.", True),
        ("Your prepayment credits are depleted.", True),
        ("Insufficient balance or no resource package. Please recharge.", True),
        ("You exceeded your current quota. * Quota exceeded for metric: x, limit: 0", True),
        ("You exceeded your current quota. * Quota exceeded for x, limit: 15\nPlease retry in 7.2s.", False),
        ("Rate limit exceeded: free-models-per-min.", False),
        (
            "Rate limit reached for gpt-x on tokens per min (TPM): Limit 30000. Please try again in 6ms.",
            False,
        ),
        ("exceeded token rate limit of your current pricing tier. Please retry after 6 seconds.", False),
        ("Quota exceeded for aiplatform.googleapis.com/generate_content_requests_per_minute", False),
        (
            "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
            False,
        ),
        ("Requests rate limit exceeded", False),
        ("Resource exhausted. Please try again later.", False),
        ("", False),
    ],
)
def test_a_quota_that_is_spent_is_told_from_a_limit_that_is_waited_for(said, spent):
    error = fail(429, {"error": {"message": said, "type": "rate_limit_error"}})
    assert isinstance(error, PermanentEndpointError) == spent
    assert ("add credit" in str(error)) == spent


def test_a_quota_of_a_day_is_not_waited_for_though_a_delay_is_named():
    def of_gemini(quota):
        details = [{"violations": [{"quotaId": quota}]}, {"retryDelay": "7s"}]
        return fail(429, [{"error": {"message": "You exceeded your current quota", "details": details}}])

    assert of_gemini("GenerateRequestsPerMinutePerProjectPerModel-FreeTier").retry_after == 7.0
    assert of_gemini("GenerateRequestsPerDayPerProjectPerModel-FreeTier").cause == ("credit",)


@pytest.mark.parametrize(("status", "said", "cause"), CASES["causes"])
def test_the_cause_of_a_refusal_says_what_to_change(status, said, cause):
    error = fail(status, {"error": {"message": said}})
    assert [*error.cause] == cause
    assert advice(error.cause) in str(error)


def test_a_redirect_says_where_to():
    error = fail(308, "", {"location": "https://host/v1/chat/completions"})
    assert "https://host/v1/chat/completions" in str(error)
    assert "config" in str(error)


@pytest.mark.parametrize(("body", "words"), CASES["words"])
def test_the_servers_own_words(body, words):
    assert " ".join(server_message(body).split()) == words


NAMES = st.sampled_from(["error", "message", "detail", "loc", "msg", "code"])


def test_words_are_bounded_and_on_one_line():
    error = fail(500, "line one\nline two \x1b[31mred " + "x" * 100_000)
    assert "line one line two" in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 600


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=12,
    )
)
def test_any_json_gives_words(body):
    str(fail(500, json.dumps(body))).encode("utf-8")


SECRET = 'sk-a/b+"1234567890'


@pytest.mark.parametrize(
    "body",
    [
        f"Incorrect API key provided: {SECRET}.",
        {"error": {"message": f"bad key {SECRET}"}},
        {"error": f"bad key {SECRET}"},
        "see /login?key=sk-a%2Fb%2B%221234567890 for more",
        "<title>" + SECRET + "</title>",
        {"odd": SECRET},
        "y" * 490 + SECRET,
    ],
)
@pytest.mark.parametrize("status", [302, 401])
def test_a_key_is_hidden_however_the_server_echoes_it(status, body):
    error = fail(status, body, {"location": f"https://x/?key={SECRET}"}, redact=Redactor([SECRET]))
    assert "sk-a" not in str(error)
    assert "1234567890" not in str(error)


@pytest.mark.parametrize(("headers", "wait"), CASES["waits"])
def test_how_long_the_server_asks_to_wait(headers, wait):
    assert retry_after(headers, now=1_000_000.0) == (None if wait is None else pytest.approx(wait))


@pytest.mark.parametrize("reset", ["1795158430", "1795158430000"])
def test_a_reset_given_as_a_time(reset):
    assert retry_after({"x-ratelimit-reset": reset}, now=1795158410.0) == pytest.approx(20.0)


@pytest.mark.parametrize(("headers", "pause"), CASES["pauses"])
def test_what_an_answer_leaves_of_the_limits(headers, pause):
    assert pause_after(headers, tokens=100, now=0.0) == pause


def test_an_error_in_a_200_answer():
    for code, kind in ((429, "rate_limit"), (502, "server")):
        error = from_answer({"error": {"code": code, "message": "slow down"}}, redact=NO_SECRETS)
        assert (error.kind, error.status) == (kind, code)
    for said in ({"message": "upstream"}, {"message": "upstream", "code": 20015}):
        error = from_answer({"error": said}, redact=NO_SECRETS)
        assert error.kind == "malformed"
        assert "upstream" in str(error)
    assert from_answer({"error": None, "choices": []}, redact=NO_SECRETS) is None
    assert from_answer([], redact=NO_SECRETS) is None


def test_a_malformed_answer_is_worth_another_attempt():
    assert SECRET not in str(malformed("not JSON:", SECRET, redact=Redactor([SECRET])))
    error = malformed("x" * 2000, redact=NO_SECRETS)
    assert isinstance(error, TransientEndpointError)
    assert error.kind == "malformed"
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("number", "billed"),
    [
        (errno.EPIPE, True),
        (errno.ECONNRESET, True),
        (errno.ECONNREFUSED, False),
        (errno.EHOSTUNREACH, False),
        (errno.ENETUNREACH, False),
        (errno.EMFILE, False),
        (errno.EADDRNOTAVAIL, False),
        (errno.EIO, True),
    ],
)
def test_only_a_connection_that_was_open_may_have_been_billed(number, billed):
    failed = OSError(number, "as the system says")
    if number == errno.EADDRNOTAVAIL:  # one that only the client tells from that of an open connection
        failed = aiohttp.ClientConnectorError(SimpleNamespace(host="a", port=1, ssl=True), failed)
    error = from_connection(failed, url="http://a/v1", connect_timeout=1.0, redact=NO_SECRETS)
    assert isinstance(error, TransientEndpointError)
    assert error.billed is billed
