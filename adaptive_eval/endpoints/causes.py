"""Causes of refused requests: what servers say of each, and what to change."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause for which a server refuses a request."""

    pattern: re.Pattern[str] | None  # what servers say; its group `named` holds a parameter or a number
    change: str  # what to change, with {named} for the group
    kept: bool  # whether a run keeps the setting, which is part of what a trial is


def _cause(said: str, change: str, *, kept: bool) -> Cause:
    pattern = None
    if said:
        pattern = re.compile(said, re.IGNORECASE | re.DOTALL)
    return Cause(pattern, change, kept)


_REFUSED = r"(?:not supported|unsupported|deprecated|not allowed|not permitted|not accepted)"
_QUOTED = r"[`'\"](?P<{name}>\w+)[`'\"]"
_PARAMETER = (
    r"temperature|top_?[kp]|min_p|top_logprobs|logprobs|(?:presence|frequency|repetition)_penalty|stop|seed|n"
    r"|reasoning_effort"
)

_TOKENS = r"\b(?:max(?:_completion|_new)?_tokens|maxOutputTokens)\b"

_API = r"(?:only supported in|mean to use) v1/(?P<named>responses|completions)\b"

CAUSES: Mapping[str, Cause] = MappingProxyType(
    {
        "api": _cause(
            _API,
            "the model is asked by another API: set api: {named}",
            kept=True,
        ),
        "renamed": _cause(
            r"\b(?:use|try)\b.{0,9}max_completion_tokens",
            "write max_completion_tokens in place of max_tokens under sampling",
            kept=True,
        ),
        "system": _cause(
            rf"\bsystem\b[ '`\"]*(?:role|message|prompt|instruction)s?\b.{{0,20}}{_REFUSED}"
            r"|not support.{0,9}\bsystem\b|only user and assistant roles"
            r"|developer instruction is not enabled|roles must alternate",
            "the model takes no system message: leave system out, and put its text into prompt",
            kept=True,
        ),
        "context": _cause(
            rf"{_TOKENS}.{{0,160}}?(?:at most|less than or equal to|context length is|<=|>|\[1,)\W{{0,3}}"
            r"(?P<most>\d+(?:,\d{3})*)"
            r"|context (?:length|window|size)[^\d]{0,60}(?P<named>\d+(?:,\d{3})*)?|exceed\w* .{0,20}context"
            rf"|{_TOKENS}.{{0,90}}(?:too large|too high|exceed|less than|supported range)"
            r"|maximum (?:allowed )?number of output tokens|prompt (?:is )?too long"
            r"|exceed\w* model token limit\D{0,3}(?P<limit>\d+(?:,\d{3})*)?",
            "prompt and answer together are above what the model takes: lower max_tokens under sampling",
            kept=True,
        ),
        "credit": _cause(
            r"quota|billing|credit|insufficient (?:balance|funds)|payment required|usage limits?\b"
            r"|budget has been exceeded|key limit exceeded|account is in good standing",
            "the key's account has no credit or quota left: add credit, or name another key in api_key_env",
            kept=False,
        ),
        "parameter": _cause(
            rf"{_QUOTED.format(name='a')}.{{0,60}}{_REFUSED}|{_REFUSED}.{{0,60}}?{_QUOTED.format(name='b')}"
            rf"|value\W{{0,3}}{_QUOTED.format(name='c')} does not support"
            rf"|does not support (?P<h>{_PARAMETER})\b"
            rf"|(?:not supported on this model:|not allowed to request|does not support parameters?:?) "
            rf"\[?['\"]?(?P<g>\w+)"
            rf"|(?:unrecognized|unknown(?! variant)|unexpected|extra).{{0,60}}?[`'\":] ?[`'\"]?"
            r"(?:body\.)?(?P<d>\w+)"
            rf"|\b(?P<e>[a-z]+_[a-z_]+|temperature|seed|stop|logprobs)\b:? .{{0,20}}{_REFUSED}"
            r"|(?:body\.)?(?P<f>\w+): extra inputs",
            "the server does not take {named}: leave it out",
            kept=True,
        ),
        "value": _cause(
            rf"\b(?P<named>{_PARAMETER})\b[^.]{{0,40}}(?:must be|may only be|should be|cannot both|range\b)"
            rf"|invalid [`'\"]?(?P<b>{_PARAMETER})\b|sample (?P<a>logprobs) of",
            "the server does not take this value of {named}: change it, or leave it out",
            kept=True,
        ),
        "limit": _cause(
            r"max_tokens\W{1,4}(?:field required|is required)|missing .{0,20}max_tokens",
            "the server wants a limit on the answer: set max_tokens under sampling",
            kept=True,
        ),
        "template": _cause(
            r"chat template|template not found|template error",
            "the server has no chat template for the model: start it with one, or set api: completions",
            kept=False,
        ),
        "model": _cause(
            r"\binvalid model\b|not a valid model|unable to access (?:non-serverless )?model"
            r"|\bmodels?\b.{0,80}\b(?:decommissioned|not exist|not found|not supported by any|"
            r"identifier is invalid)|deployment\b.{0,40}not exist|no models? (?:is |are )?loaded"
            r"|no endpoints found for|^model: ",
            "the server does not have this model: is its name right?",
            kept=True,
        ),
        "page": _cause(
            "",
            "a web page is no API: is the address right, and does it end in /v1?",
            kept=False,
        ),
        "key": _cause(r"api key (?:is )?(?:not valid|invalid)|(?:invalid|incorrect) api key", "", kept=False),
        "address": _cause(
            "",
            "the server has no such address or model: is the address right, does it end in /v1, and is the "
            "model's name one of the server's?",
            kept=False,
        ),
    }
)
"""The causes by name; the first whose pattern fits counts. Those without one follow from the status."""

_SPENT = re.compile(
    r"exceeded[ _](?:your[ _])?current[ _]quota|plan and billing|credit balance is too low|usage limits\b"
    r"|insufficient[ _](?:quota|credits?|balance|funds)|(?:out of|no|no more|all available) credits?\b"
    r"|credits? (?:are|is|have been|has been|limit) (?:depleted|exhausted|used up|exceeded|reached)"
    r"|(?:billing|spend|spending|spending hard|billing[ _]hard|credit)[ _]limit",
    re.IGNORECASE,
)
"""What providers say with a 429 if the account has nothing left."""

_FOR_LONG = re.compile(r"free-models-per-day|\"quotaId\": ?\"\w*PerDay|\blimit: 0(?![.\d])")
"""What OpenRouter and Gemini say of a quota that comes back the next day, or is none at all."""

_SOON = re.compile(r"(?:retry|try again) (?:in|after) [\d.]+ ?m?s|retryDelay", re.IGNORECASE)
"""What servers say of a limit that ends soon. Gemini says it with the words of a quota that is spent."""


def is_spent(body: str, said: str) -> bool:
    """Tell whether a 429 says that no credit or quota is left, so that no wait within a run helps.

    Examples
    --------
    >>> is_spent("", "Your credit balance is too low"), is_spent("", "Rate limit reached: try again in 2s")
    (True, False)
    """
    text = body[:20_000]
    if _FOR_LONG.search(text):
        return True
    return _SPENT.search(said[:2_000]) is not None and _SOON.search(text) is None


_BY_STATUS = {401: "key", 403: "key", 402: "credit", 404: "address", 405: "address", 410: "address"}

_SAID_WITH: Mapping[int, tuple[str, ...]] = {403: ("credit", "parameter"), 404: ("api", "model")}
"""Causes of which the words tell more than the status."""


def cause_of(status: int, said: str) -> tuple[str, ...]:
    """Return the cause of a refusal that no further attempt changes, and what it names; empty if unknown.

    Examples
    --------
    >>> cause_of(400, "Unsupported value: 'temperature' does not support 0.7 with this model.")
    ('parameter', 'temperature')
    >>> cause_of(404, "The model `nope` does not exist."), cause_of(404, ""), cause_of(400, "no")
    (('model',), ('address',), ())
    """
    known = _BY_STATUS.get(status)
    names = CAUSES if known is None else _SAID_WITH.get(status, ())
    for name in names:
        pattern = CAUSES[name].pattern
        found = None
        if pattern is not None:
            found = pattern.search(said[:2_000])
        if found is not None:
            return (name, *filter(None, found.groups()))
    if known is None:
        return ()
    return (known,)


def advice(cause: tuple[str, ...]) -> str:
    """Return what to change, as the end of a message; empty if only the config can tell.

    Examples
    --------
    >>> advice(("parameter", "temperature"))
    'the server does not take temperature: leave it out'
    """
    if cause:
        return CAUSES[cause[0]].change.format(named=cause[-1])
    return ""
