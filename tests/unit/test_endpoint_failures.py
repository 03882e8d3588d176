"""What a failed request means, as a table over what servers answer."""

import json
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.endpoints.failures import (
    from_answer,
    from_status,
    malformed,
    pause_after,
    retry_after,
    server_message,
)
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError

NO_SECRETS = Redactor([])
VLLM = json.loads((Path(__file__).parents[1] / "data" / "vllm_errors.json").read_text())
TYPES = {"transient": TransientEndpointError, "permanent": PermanentEndpointError}


def fail(status, body="", headers=None, now=0.0, redact=NO_SECRETS):
    text = body if isinstance(body, str) else json.dumps(body)
    return from_status(status, headers or {}, text, now=now, redact=redact)


@pytest.mark.parametrize("case", VLLM, ids=lambda case: case["name"])
def test_what_vllm_answers(case):
    error = fail(case["status"], case["body"])
    assert type(error) is TYPES[case["error"]]
    assert error.kind == case["kind"]
    assert error.status == case["status"]
    assert case["says"] in str(error)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (300, "permanent", "bad_request"),
        (307, "permanent", "bad_request"),
        (400, "permanent", "bad_request"),
        (401, "permanent", "auth"),
        (402, "permanent", "auth"),
        (403, "permanent", "auth"),
        (404, "permanent", "not_found"),
        (405, "permanent", "not_found"),
        (408, "transient", "timeout"),
        (409, "transient", "server"),
        (410, "permanent", "not_found"),
        (413, "permanent", "bad_request"),
        (418, "permanent", "bad_request"),
        (422, "permanent", "bad_request"),
        (425, "transient", "server"),
        (429, "transient", "rate_limit"),
        (451, "permanent", "bad_request"),
        (500, "transient", "server"),
        (502, "transient", "server"),
        (503, "transient", "server"),
        (504, "transient", "server"),
        (520, "transient", "server"),
        (529, "transient", "server"),
    ],
)
def test_status_decides(status, error, kind):
    found = fail(status)
    assert type(found) is TYPES[error]
    assert found.kind == kind
    assert found.status == status
    assert str(status) in str(found)


def test_no_credit_is_not_a_rate_limit():
    body = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
    error = fail(429, body, {"retry-after": "1"})
    assert isinstance(error, PermanentEndpointError)
    assert "exceeded your current quota" in str(error)


def test_a_redirect_says_where_to():
    error = fail(308, "", {"location": "https://host/v1/chat/completions"})
    assert "https://host/v1/chat/completions" in str(error)
    assert "config" in str(error)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "no", "type": "x"}}', "no"),
        ('{"error": "Unauthorized"}', "Unauthorized"),
        ('{"error": {"error": {"message": "deep"}}}', "deep"),
        (
            '{"detail": [{"loc": ["body", "seed"], "msg": "not an int"}, {"msg": "b"}]}',
            "body.seed: not an int; b",
        ),
        ('{"message": "plain field"}', "plain field"),
        ('{"errors": [{"message": "one"}, {"message": "two"}]}', "one; two"),
        ('[{"error": {"message": "in a list"}}]', "in a list"),
        ('{"weird": 1}', '{"weird": 1}'),
        ("service down", "service down"),
        ("<html><body><h1>Bad</h1></body></html>", "Bad"),
        ("<!doctype html><TITLE >413 Too Large</TITLE>", "413 Too Large"),
        ("", ""),
    ],
)
def test_the_servers_own_words(body, words):
    assert " ".join(server_message(body).split()) == words


def test_words_are_bounded_and_on_one_line():
    error = fail(500, "line one\nline two \x1b[31mred " + "x" * 100_000)
    assert "line one line two" in str(error)
    assert str(error).isprintable()
    assert len(str(error)) < 600


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["error", "message", "detail", "loc", "msg", "code"]), inner, max_size=4
            )
        ),
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
        "y" * 480 + SECRET,
    ],
)
@pytest.mark.parametrize("status", [302, 401])
def test_a_key_is_hidden_however_the_server_echoes_it(status, body):
    error = fail(status, body, {"location": f"https://x/?key={SECRET}"}, redact=Redactor([SECRET]))
    assert "sk-a" not in str(error)
    assert "1234567890" not in str(error)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        # The server's own clock counts where it tells the time.
        ({"retry-after": formatdate(500_030, usegmt=True), "date": formatdate(500_000, usegmt=True)}, 30.0),
        ({"x-ratelimit-reset": "20"}, 20.0),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-reset-tokens": "1s"}, 360.0),
        (
            {
                "x-ratelimit-reset-requests": "6m0s",
                "x-ratelimit-remaining-requests": "5",
                "x-ratelimit-reset-tokens": "1.5s",
                "x-ratelimit-remaining-tokens": "0",
            },
            1.5,
        ),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-reset": "1s" * 100}, None),  # 8,000 digits would take 1.3 s to parse
        ({"ratelimit-reset": "7"}, 7.0),
        ({"anthropic-ratelimit-tokens-reset": "1970-01-12T13:46:50Z"}, 10.0),
        (
            {
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": "1970-01-12T13:46:42Z",
                "anthropic-ratelimit-tokens-remaining": "9",
                "anthropic-ratelimit-tokens-reset": "1970-01-12T13:46:50Z",
            },
            2.0,
        ),
        ({"anthropic-ratelimit-tokens-reset": "1970-01-12T99:01:00Z"}, None),
        ({"retry-after": "1", "x-ratelimit-reset": "20"}, 1.0),
    ],
)
def test_how_long_the_server_asks_to_wait(headers, wait):
    assert retry_after(headers, now=1_000_000.0) == (None if wait is None else pytest.approx(wait))


@pytest.mark.parametrize("reset", ["1795158430", "1795158430000"])
def test_a_reset_given_as_a_time(reset):
    assert retry_after({"x-ratelimit-reset": reset}, now=1795158410.0) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, 0.0),
        ({"x-ratelimit-reset-requests": "20s"}, 0.0),
        ({"x-ratelimit-remaining-requests": "3", "x-ratelimit-reset-requests": "20s"}, 0.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}, 20.0),
        ({"x-ratelimit-remaining-tokens": "99", "x-ratelimit-reset-tokens": "1m"}, 60.0),
        ({"x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "1m"}, 0.0),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "7"}, 7.0),
        (
            {
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-requests": "250ms",
                "x-ratelimit-remaining-tokens": "0",
                "x-ratelimit-reset-tokens": "2s",
            },
            2.0,
        ),
        ({"x-ratelimit-remaining-requests": "none", "x-ratelimit-reset-requests": "20s"}, 0.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "soon"}, 0.0),
        (
            {
                "anthropic-ratelimit-tokens-remaining": "99",
                "anthropic-ratelimit-tokens-reset": "1970-01-01T00:00:05Z",
            },
            5.0,
        ),
    ],
)
def test_what_an_answer_leaves_of_the_limits(headers, pause):
    assert pause_after(headers, tokens=100, now=0.0) == pause


def test_an_error_in_a_200_answer():
    for code, kind in ((429, "rate_limit"), (502, "server")):
        error = from_answer({"error": {"code": code, "message": "slow down"}}, redact=NO_SECRETS)
        assert (error.kind, error.status) == (kind, code)
    error = from_answer({"error": {"message": "upstream"}}, redact=NO_SECRETS)
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
