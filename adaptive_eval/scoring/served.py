"""Scorers that ask another model: how it is asked, what that may cost, and what a failure means."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

from adaptive_eval.endpoints.failures import from_status
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.errors import EndpointError, ScorerUnavailable, TransientEndpointError, UsageError
from adaptive_eval.scoring.account import AllowanceSpent, ScorerAccount, Spent
from adaptive_eval.scoring.text import answer_part
from adaptive_eval.trial import Question, Score, Signal, Usage

__all__ = ["LONGEST", "Bill", "CannotScore", "Reply", "ServedScorer", "fenced", "tail"]

LONGEST = 20_000
"""Bytes, from the end, of an answer that another model is shown."""

_MESSAGE_OVERHEAD = 64
"""Tokens that a chat template adds to a message at most."""

_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
"""A dropped connection or a busy server is tried once more, after so many seconds or as many as it asks for
up to the second number; the run itself waits and tries again."""

_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout"})
"""What the HTTP libraries call failures before anything was sent, for which no server sends a bill."""

_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
"""HTTP statuses that speak of this one answer, such as one that is too long, and not of the server."""


class CannotScore(Exception):
    """An answer that is there cannot be scored, now or later; the message says why."""


@dataclass(slots=True)
class Bill:
    """What the requests about one answer have cost."""

    spent: Spent = field(default_factory=Spent)

    def signals(self, kind: str) -> dict[str, Signal]:
        """Return it as signals of the answer, from which the account is put together again on resume."""
        return {
            f"{kind}_requests": self.spent.requests,
            f"{kind}_prompt_tokens": self.spent.prompt_tokens,
            f"{kind}_completion_tokens": self.spent.completion_tokens,
        }


@dataclass(frozen=True, slots=True)
class Reply:
    """The first choice of a reply: its text, and for each token what could have stood in its place."""

    text: str
    alternatives: tuple[tuple[tuple[str, float], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedScorer:
    """What judge and verifier have in common.

    Parameters
    ----------
    endpoint, model : str
        Base URL and model id of an OpenAI-compatible server.
    api_key_env : str, optional
        Name of the environment variable that holds its key.
    extra_body : mapping, optional
        Further fields of every request, such as ``chat_template_kwargs``.
    timeout : float
        Seconds that one request may take.
    concurrency : int
        Answers scored at once.
    strip_reasoning : bool
        Leave out ``<think>…</think>`` and its like.
    price : mapping of str to float, optional
        USD per million tokens, ``input`` and ``output``.
    budget : mapping of str to float, optional
        Most ``requests``, ``tokens`` and ``usd``, all tries included.
    """

    kind: ClassVar[str]

    endpoint: str
    model: str
    api_key_env: str | None = None
    extra_body: Mapping[str, Any] | None = None
    timeout: float = 120.0
    concurrency: int = 16
    strip_reasoning: bool = True
    price: Mapping[str, float] | None = None
    budget: Mapping[str, float | None] | None = None
    account: ScorerAccount = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "account", ScorerAccount(self.budget, self.price))

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question unusable, or None; any target can be shown to a model."""
        if self.api_key_env is not None and not os.environ.get(self.api_key_env):
            return f"the {self.kind}'s key: the environment variable {self.api_key_env} is not set"
        return None

    def bound(self, question: Question) -> int:
        """Return an upper bound on the prompt's tokens: no tokenizer makes more tokens than bytes."""
        return _size(self.messages("", question)) + LONGEST

    def messages(self, answer: str, question: Question) -> list[dict[str, str]]:
        """Return what is asked about an answer."""
        raise NotImplementedError

    @property
    def longest_reply(self) -> int:
        """Most tokens of one reply."""
        raise NotImplementedError

    @property
    def requests_each(self) -> int:
        """Most requests that one answer takes."""
        raise NotImplementedError

    def shown(self, text: str) -> str:
        """Return the part of an answer that the other model is shown."""
        return tail(answer_part(text, strip_reasoning=self.strip_reasoning))

    def unscored(self, why: str, signals: Mapping[str, Signal]) -> Score:
        """Return the score of an answer that cannot be scored."""
        return Score(None, None, signals, f"the {self.kind} {self.model} {why}")

    def ask(self, messages: Sequence[Mapping[str, str]], bill: Bill, **parameters: Any) -> Reply:
        """Ask once, within the budget, and put the cost on `bill`.

        Raises
        ------
        CannotScore
            If the server refuses this very request, or the budget is used up.
        ScorerUnavailable
            If the server cannot be reached or fails.
        """
        try:
            return self._ask(messages, bill, parameters)
        except _Failed as failure:
            if failure.pause is None:
                raise self._unavailable(str(failure), bill) from None
            time.sleep(failure.pause)
        try:
            return self._ask(messages, bill, parameters)
        except _Failed as failure:
            raise self._unavailable(str(failure), bill) from None

    def _ask(self, messages: Sequence[Mapping[str, str]], bill: Bill, parameters: Mapping[str, Any]) -> Reply:
        import openai

        worst = Spent(1, _size(messages), self.longest_reply)
        try:
            self.account.reserve(worst)
        except AllowanceSpent as error:
            raise CannotScore(f"was not asked: {error}") from None
        billed = False
        usage: Usage | None = None
        try:
            response = self._client().chat.completions.create(
                model=self.model,
                messages=[{**message, "content": _sendable(message["content"])} for message in messages],
                extra_body=dict(self.extra_body or {}),
                **parameters,
            )
            billed, usage = True, _usage(response)
        except openai.APIStatusError as error:
            failure = self._read(error.response)
            billed = failure.billed
            if error.status_code in _ABOUT_THE_REQUEST:
                raise CannotScore(f"refused the request ({failure})") from None
            raise _Failed(str(failure), _pause(failure)) from None
        except openai.APIConnectionError as error:
            billed = type(error.__cause__).__name__ not in _NEVER_SENT
            raise _Failed(type(error).__name__, _PAUSE) from None
        except openai.OpenAIError as error:
            raise _Failed(type(error).__name__) from None
        except ValueError:  # a body that is no JSON
            billed = True
            raise _Failed("a malformed answer") from None
        finally:
            if billed:
                bill.spent = bill.spent + self.account.charge(worst, usage)
            else:
                self.account.release(worst)
        bill.spent = bill.spent + self.account.take()
        return _reply(response, self._redactor())

    def _client(self) -> Any:
        key = "none" if self.api_key_env is None else os.environ.get(self.api_key_env)
        if not key:
            raise UsageError(
                f"the key of {self.endpoint}: the environment variable {self.api_key_env} is not set"
            )
        return _client(self.endpoint, key, self.timeout)

    def _read(self, response: Any) -> EndpointError:
        """Return what an HTTP error says, without the key."""
        return from_status(
            response.status_code,
            response.headers,
            response.text,
            now=time.time(),
            redact=self._redactor(),
        )

    def _redactor(self) -> Redactor:
        """Return what hides the key, should the server echo it."""
        key = os.environ.get(self.api_key_env, "") if self.api_key_env is not None else ""
        return Redactor([key.strip()])

    def _unavailable(self, what: str, bill: Bill) -> ScorerUnavailable:
        self.account.leave(bill.spent)
        return ScorerUnavailable(f"the {self.kind} {self.model} did not answer: {what}", kind=self.kind)


class _Failed(Exception):
    """A request has failed; `pause` is how long to wait before a second one, None where that is of no use."""

    def __init__(self, what: str, pause: float | None = None) -> None:
        super().__init__(what)
        self.pause = pause


def fenced(word: str, text: str) -> str:
    """Return `text` between two marker lines that it cannot hold, so that it cannot close its own block.

    The marker is a digest of the text: nobody can write a text that contains its own digest, and the same
    text is asked about with the same words every time.

    Examples
    --------
    >>> lines = fenced("ANSWER", "It is 4.").splitlines()
    >>> lines[0] == lines[2], lines[1]
    (True, 'It is 4.')
    """
    marker = f"{word}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
    return f"{marker}\n{text}\n{marker}"


def tail(text: str) -> str:
    """Return the last :data:`LONGEST` bytes of a text, in whole characters.

    Examples
    --------
    >>> len(tail("é" * 30_000))
    10000
    """
    return text.encode("utf-8", "replace")[-LONGEST:].decode("utf-8", "ignore")


def _sendable(text: str) -> str:
    """Return a text without the halves of characters that JSON in UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _pause(failure: EndpointError) -> float | None:
    """Return how long to wait after an HTTP error before a second try; None where that is of no use."""
    if not isinstance(failure, TransientEndpointError):
        return None
    asked = failure.retry_after
    return _PAUSE if asked is None or asked > _LONGEST_PAUSE else asked


def _size(messages: Sequence[Mapping[str, str]]) -> int:
    texts = sum(len(_sendable(message["content"]).encode()) for message in messages)
    return texts + _MESSAGE_OVERHEAD * (len(messages) + 1)


def _usage(response: Any) -> Usage:
    usage = getattr(response, "usage", None)
    counts = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
    return Usage(*(count if isinstance(count, int) and count >= 0 else 0 for count in counts))


def _reply(response: Any, redact: Redactor) -> Reply:
    choices = getattr(response, "choices", None)
    if not choices:
        return Reply("")
    message, logprobs = getattr(choices[0], "message", None), getattr(choices[0], "logprobs", None)
    text = getattr(message, "content", None)
    tokens = getattr(logprobs, "content", None) or ()
    return Reply(
        redact(text)[:LONGEST] if isinstance(text, str) else "",
        tuple(tuple((one.token, one.logprob) for one in token.top_logprobs or ()) for token in tokens),
    )


@lru_cache
def _client(endpoint: str, key: str, timeout: float) -> Any:
    import openai

    client = openai.OpenAI(
        base_url=endpoint,
        api_key=key,
        timeout=timeout,
        max_retries=0,
        default_headers=_own_headers(key),
    )
    client.organization = client.project = None  # what the environment holds is meant for another server
    return client


def _own_headers(key: str) -> Any:
    """Return headers without those of ``OPENAI_CUSTOM_HEADERS``, which are meant for another server too."""
    from openai import Omit

    ambient = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    names = [line.partition(":")[0].strip() for line in ambient if ":" in line]
    others = {name: Omit() for name in names if name.lower() != "authorization"}
    return {**others, "Authorization": f"Bearer {key}"}
