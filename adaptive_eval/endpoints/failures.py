"""Classifies failed requests as transient or permanent, and extracts the server's message.

Everything here is a pure function of the response, so that the mapping is tested as a table.
"""

import errno
import json
import math
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from typing import Any

from adaptive_eval.endpoints.redaction import Redactor, shorten
from adaptive_eval.endpoints.transport import BodyTooLarge, Undecodable
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError

_SAID = 120
"""Characters shown of a body that came instead of an answer."""

_TRANSIENT = {408: "timeout", 409: "server", 425: "server", 429: "rate_limit"}
_PERMANENT = {401: "auth", 402: "auth", 403: "auth", 404: "not_found", 405: "not_found", 410: "not_found"}

_UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_RESET = re.compile(r"(?P<prefix>.*?)ratelimit(?P<before>-.+)?-reset(?P<after>-.+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT.*(Z|[+-]\d\d:\d\d)$")
_DELAY_IN_BODY = re.compile(r'"retryDelay"\s*:\s*"(\d{1,6}(?:\.\d{1,9})?)s"')
"""The text in which Gemini states how long to wait."""
_LONGEST_RESET = 200
"""Characters of the name and the value of a reset header."""
_EPOCH = 1e9
"""A reset header above this many seconds is a point in time, not a delay."""


def at(data: Any, *names: str) -> Any:
    """Return the value under these names in JSON from outside; None if it has another form.

    Examples
    --------
    >>> at({"error": {"code": 404}}, "error", "code"), at({"error": "no"}, "error", "code")
    (404, None)
    """
    for name in names:
        if isinstance(data, dict):
            data = data.get(name)
        else:
            data = None
    return data


def from_status(
    status: int, headers: Mapping[str, str], body: str, *, now: float, redact: Redactor
) -> EndpointError:
    """Map an HTTP error response to the error to raise.

    Examples
    --------
    >>> error = from_status(429, {"retry-after": "7"}, "", now=0.0, redact=Redactor([]))
    >>> error.kind, error.retry_after, str(error)
    ('rate_limit', 7.0, 'HTTP 429 Too Many Requests')
    """
    text = f"HTTP {_named(status)}"
    said = shorten(redact(server_message(body)))
    if said:
        text = f"{text}: {said}"
    if 300 <= status < 400:
        target = shorten(redact(headers.get("location", "an unnamed place")))
        text = f"{text}; the server redirects to {target}: put the address it serves into the config"
    if status == 429 and _spent(body):
        return _refused(text, "rate_limit", status, cause=("credit",))
    kind = _TRANSIENT.get(status) or ("server" if status >= 500 else None)
    if kind is not None:
        wait = retry_after(headers, now=now)
        in_body = _DELAY_IN_BODY.search(body[:20_000]) if wait is None else None
        if in_body is not None:
            wait = float(in_body[1])
        return TransientEndpointError(text, kind=kind, status=status, retry_after=wait)
    return _refused(text, _PERMANENT.get(status, "bad_request"), status, said=said)


def _refused(
    text: str, kind: str, status: int | None = None, *, said: str = "", cause: tuple[str, ...] = ()
) -> PermanentEndpointError:
    """Return the error for a refusal, with its cause and what to change."""
    from adaptive_eval.endpoints.causes import advice, cause_of  # the table is for refusals alone

    if status is not None:
        cause = cause or cause_of(status, said)
    words = "; ".join(filter(None, (text, advice(cause))))
    return PermanentEndpointError(words, kind=kind, status=status, cause=cause)


def web_page(content: bytes, *, redact: Redactor) -> PermanentEndpointError | None:
    """Return the error for a web page that came with HTTP 200 in place of an answer; None for other content.

    Examples
    --------
    >>> page = b"<!doctype html><html><title>Welcome</title></html>"
    >>> str(web_page(page, redact=Redactor([])))
    "a web page came ('Welcome'); a web page is no API: is the address right, and does it end in /v1?"
    >>> web_page(b'{"choices": []}', redact=Redactor([])) is None
    True
    """
    text = content[:20_000].decode("utf-8", "replace").strip()
    if not re.match(r"<(!doctype html|html)\b", text, re.IGNORECASE):
        return None
    said = shorten(redact(_plain(text)), _SAID)
    return _refused(f"a web page came ({said!r})", "not_found", cause=("page",))


_OF_ANSWERS = frozenset({"choices", "output", "content", "error"})
"""Keys of which every answer of the interfaces, and every error of theirs, has one."""


def other_json(body: Any, *, redact: Redactor) -> PermanentEndpointError | None:
    """Return the error for JSON that no model server answers with; None for other content.

    Examples
    --------
    >>> other_json({"status": "ok"}, redact=Redactor([])).kind
    'not_found'
    >>> other_json({"choices": []}, redact=Redactor([])) is None
    True
    """
    if not isinstance(body, dict) or not _OF_ANSWERS.isdisjoint(body):
        return None
    said = shorten(redact(json.dumps(body)), _SAID)
    return _refused(f"JSON of another kind came ({said!r})", "not_found", cause=("address",))


def from_answer(body: Any, *, redact: Redactor) -> EndpointError | None:
    """Find the error in a body that came with HTTP 200.

    Some gateways answer 200 and put the failure of the server behind them into the body, with its status
    as ``error.code``.

    Examples
    --------
    >>> error = from_answer({"error": {"code": 502, "message": "upstream died"}}, redact=Redactor([]))
    >>> error.kind, error.status
    ('server', 502)
    >>> from_answer({"error": "Unexpected endpoint or method. (POST /chat)"}, redact=Redactor([])).kind
    'not_found'
    >>> from_answer({"choices": []}, redact=Redactor([])) is None
    True
    """
    if not at(body, "error"):
        return None
    code = at(body, "error", "code")
    if isinstance(code, int) and 400 <= code < 600:
        return from_status(code, {}, json.dumps(body), now=0.0, redact=redact)
    said = server_message(json.dumps(body))
    if said.startswith("Unexpected endpoint"):  # LM Studio, asked at another path
        return _refused(shorten(redact(said)), "not_found", cause=("address",))
    return malformed("the answer holds an error:", said, redact=redact)


def malformed(problem: str, said: str = "", *, redact: Redactor) -> TransientEndpointError:
    """Return the error for an answer that is not a chat completion.

    Examples
    --------
    >>> str(malformed("no choices in the answer", redact=Redactor([])))
    'malformed answer: no choices in the answer'
    """
    words = f"{shorten(redact(problem))} {shorten(redact(said), _SAID)}".rstrip()
    return TransientEndpointError(f"malformed answer: {words}", kind="malformed")


def server_message(body: str) -> str:
    """Extract the server's error message from the shapes in use.

    Examples
    --------
    >>> server_message('{"error": {"message": "The model `nope` does not exist.", "code": 404}}')
    'The model `nope` does not exist.'
    >>> server_message('{"error": "Unauthorized"}')
    'Unauthorized'
    >>> server_message('<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>')
    '502 Bad Gateway'
    """
    try:
        data = json.loads(body)
        return _words(data)
    except (ValueError, RecursionError):  # not JSON, or nested beyond what any honest server sends
        return _plain(body)


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Read how long the server asks to wait.

    References
    ----------
    .. [1] RFC 9110, section 10.2.3.

    Examples
    --------
    >>> retry_after({"retry-after": "1.5"}, now=0.0)
    1.5
    >>> retry_after({"retry-after-ms": "250"}, now=0.0)
    0.25
    >>> date = "Thu, 01 Jan 1970 00:01:00 GMT"
    >>> retry_after({"retry-after": date}, now=50.0)
    10.0
    >>> retry_after({"x-ratelimit-reset-tokens": "1m30s"}, now=0.0)
    90.0
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None:
        return max(0.0, seconds)
    until = _date(asked)
    if until is not None:
        # The server's own clock, where it tells the time: ours may be wrong.
        current = _date(headers.get("date"))
        return max(0.0, until - (now if current is None else current))
    return _reset(headers, now)


def pause_after(headers: Mapping[str, str], *, tokens: int, now: float) -> float:
    """Read from the headers of an answer for how long no further request is allowed.

    Examples
    --------
    >>> headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12ms"}
    >>> pause_after(headers, tokens=900, now=0.0)
    0.012
    >>> headers = {"x-ratelimit-remaining-tokens": "500", "x-ratelimit-reset-tokens": "6m0s"}
    >>> pause_after(headers, tokens=900, now=0.0), pause_after(headers, tokens=400, now=0.0)
    (360.0, 0.0)
    """
    waits = [0.0]
    for _, what, left, value in _resets(headers):
        if left is not None and left < (max(1, tokens) if "token" in what else 1):
            waits.append(_delay(value, now) or 0.0)
    return max(waits)


def _resets(headers: Mapping[str, str]) -> Iterator[tuple[str, str, float | None, str]]:
    """Yield prefix, kind, remainder and reset of every limit, as in ``x-ratelimit-reset-tokens``.

    Anthropic writes ``anthropic-ratelimit-tokens-reset``.
    """
    for name, value in headers.items():
        # A longer one is none, and would take seconds to parse.
        found = None
        if len(name) + len(value) <= _LONGEST_RESET:
            found = _RESET.fullmatch(name)
        if found is not None:
            what = found["after"] or found["before"] or ""
            named = f"{found['prefix']}ratelimit"
            left = (f"{named}-remaining{what}", f"{named}{what}-remaining")
            yield found["prefix"], what, _number(headers.get(left[0], headers.get(left[1]))), value


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """Return the longest wait among exhausted limits; among all limits if none is."""
    waits: list[float] = []
    used_up: list[float] = []
    for prefix, _, left, value in _resets(headers):
        wait = None
        if prefix in ("", "x-", "anthropic-"):
            wait = _delay(value, now)
        if wait is None:
            continue
        waits.append(wait)
        if left == 0:
            used_up.append(wait)
    return max(used_up or waits, default=None)


def _delay(value: str, now: float) -> float | None:
    """Read one reset header: ``90``, ``1m30s``, a Unix time in seconds or milliseconds, or a date."""
    number = _number(value)
    if number is None and _DATE.match(value):
        try:
            return max(0.0, datetime.fromisoformat(value).timestamp() - now)
        except (ValueError, OverflowError):
            return None
    if number is None:
        parts = _DURATION.findall(value)
        if not parts or _DURATION.sub("", value).strip():
            return None
        return sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    if number > _EPOCH * 1000:
        number /= 1000
    return max(0.0, number - now if number > _EPOCH else number)


def _number(value: str | None) -> float | None:
    try:
        if value is not None:
            number = float(value)
        else:
            number = math.nan
    except ValueError:
        return None
    if math.isfinite(number):
        return number
    return None


def _date(value: str | None) -> float | None:
    try:
        if value is not None:
            return parsedate_to_datetime(value).timestamp()
        return None
    except (ValueError, OverflowError):
        return None


def _spent(body: str) -> bool:
    """Tell whether a 429 says, by its code or in words, that the account has nothing left."""
    from adaptive_eval.endpoints.causes import is_spent

    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    said = [at(data, "error", "code"), at(data, "error", "type"), server_message(body)]
    return is_spent(body, " ".join(map(str, said)))


def _words(value: Any) -> str:
    """Turn an error object of any shape into words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "; ".join(_words(item) for item in value)
    if isinstance(value, dict):
        for field in ("error", "message", "msg", "detail", "errors"):
            if value.get(field):
                place = value.get("loc")
                where = ""
                if isinstance(place, list):
                    where = f"{'.'.join(map(str, place))}: "
                return f"{where}{_words(value[field])}"
    return json.dumps(value, ensure_ascii=False)


def _plain(body: str) -> str:
    """Return the title of an HTML page, or the text itself."""
    title = re.search(r"<title[^>]*>([^<]*)</title>", body[:20_000], re.IGNORECASE)
    if title is not None:
        return title.group(1).strip()
    if body.lstrip().startswith("<"):
        return re.sub(r"<[^>]*>", " ", body[:20_000])
    return body


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


_PASSING_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError)
"""TLS failures that are only a connection lost during the handshake."""

_OS_WORDS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "the connection was reset",
    errno.EPIPE: "the server closed the connection",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "the network is unreachable",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n) or lower the concurrency",
}


_AFTER_SENDING = (errno.ECONNRESET, errno.EPIPE)
"""Failures of a connection that stood: the server may have read the request."""


def from_connection(
    error: BaseException, *, url: str, connect_timeout: float, redact: Redactor
) -> EndpointError:
    """Map an exception of the HTTP client to the error to raise.

    The client wraps the exceptions of the system and of TLS; so the whole chain of causes is read.

    Examples
    --------
    >>> no_secrets = Redactor([])
    >>> refused = ConnectionRefusedError(111, "Connect call failed")
    >>> error = from_connection(refused, url="http://gpu1:8000/v1", connect_timeout=10, redact=no_secrets)
    >>> error.kind, str(error)
    ('connection', 'http://gpu1:8000/v1: connection refused')
    """
    causes = tuple(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _PASSING_TLS):
            words = shorten(redact(f"TLS failed: {_tls_words(cause)}"))
            return PermanentEndpointError(f"{url}: {words}", kind="connection")
        for classes, kind, words in _client_failures():
            if isinstance(cause, classes):
                said = shorten(redact(words.format(cause=cause)))
                fails = PermanentEndpointError if kind == "bad_request" else TransientEndpointError
                return fails(f"{url}: {said}", kind=kind)
        if isinstance(cause, OSError) and cause.errno in _OS_WORDS:
            kind = "connection"
            if cause.errno in _AFTER_SENDING:
                kind = "dropped"
            return TransientEndpointError(f"{url}: {_OS_WORDS[cause.errno]}", kind=kind)
    if any(isinstance(cause, TimeoutError) for cause in causes):
        return TransientEndpointError(f"{url}: no connection within {connect_timeout:g} s", kind="connection")
    said = next(filter(None, map(str, causes)), type(error).__name__)
    unsent = any(isinstance(cause, _never_connected()) for cause in causes)
    kind = "connection" if unsent else "dropped"
    return TransientEndpointError(f"{url}: {shorten(redact(said))}", kind=kind)


@cache
def _client_failures() -> tuple[tuple[type[Exception], str, str], ...]:
    """Return what each exception of the client means: its kind and words; the first that fits counts."""
    import aiohttp

    return (
        (aiohttp.InvalidURL, "bad_request", "not an address that can be asked over HTTP"),
        (BodyTooLarge, "too_large", "{cause}; max_tokens sets the limit"),
        (Undecodable, "malformed", "the answer cannot be decoded: {cause}"),
        (aiohttp.ClientHttpProxyError, "connection", "the proxy opens no tunnel: HTTP {cause.status}"),
        (aiohttp.ClientResponseError, "malformed", "the answer is not HTTP: {cause.message}"),
        (aiohttp.ClientPayloadError, "dropped", "the connection was lost in the middle of the answer"),
        (aiohttp.ServerDisconnectedError, "dropped", "the server closed the connection without an answer"),
        (socket.gaierror, "connection", "the host name cannot be resolved: {cause.strerror}"),
    )


@cache
def _never_connected() -> type[Exception]:
    """Return the client's exception for a connection that could not be made."""
    import aiohttp

    return aiohttp.ClientConnectorError


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield `error` and what led to it, innermost first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        # aiohttp keeps the system's error of a failed connection in an attribute.
        inner = getattr(cause, "os_error", None)
        cause = cause.__cause__ or cause.__context__ or (inner if isinstance(inner, OSError) else None)
    return reversed(chain)


def _tls_words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted ({error.verify_message})"
    words = (error.reason or str(error)).replace("_", " ").lower()
    # What a server that speaks no TLS makes of it, by the words of OpenSSL 1.1 and 3.
    plain = any(
        sign in words for sign in ("wrong version number", "record layer failure", "unknown protocol")
    )
    if plain:
        return f"{words}; if the server speaks plain HTTP, write http:// for https://"
    return words
