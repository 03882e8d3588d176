"""How models are asked: the parameters, times and headers of requests, and what follows a bad answer."""

import os
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from adaptive_eval.errors import UsageError
from adaptive_eval.options.section import EnvName, Seconds, Section, one_or_more, short_for
from adaptive_eval.trial import DISCARD_CAUSES, OUT_OF_CALLS, DiscardCause

_Stop: TypeAlias = Annotated[
    str | tuple[str, ...], one_or_more("write one text, or a list of texts, at which the answer ends")
]


def _logprobs(value: Any) -> Any:
    if value is None or isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 20):
        return value
    raise ValueError(f"{value!r} is neither true nor false nor a whole number from 0 to 20")


def _batch(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(
            f"{value!r:.60} is neither true nor false nor a mapping such as {{gather: 5s, poll: 30s}}"
        )
    if isinstance(value, bool):
        return {True: {}, False: None}.get(value, value)
    return value


class SamplingConfig(Section):
    """Parameters of the request, sent exactly as written; absent ones are not sent.

    All others (``top_k``, ``presence_penalty``, …) go under ``extra_body``. The seed of each
    trial is derived from the run's ``seed``.
    """

    temperature: float | None = Field(default=None, ge=0, le=100)
    """Sampling temperature; 0 is greedy."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling: share of probability kept."""
    max_tokens: int | None = Field(default=None, ge=1, lt=2**31)
    """Longest answer, in tokens."""
    max_completion_tokens: int | None = Field(default=None, ge=1, lt=2**31)
    """Longest answer in tokens, reasoning included, for servers that want it by this name."""
    stop: _Stop | None = None
    """Text or texts at which the answer ends."""
    logprobs: Annotated[bool | int | None, BeforeValidator(_logprobs)] = None
    """Ask for log-probabilities of the answer's tokens: true, or with api: completions the number of
    alternatives per token."""
    top_logprobs: int | None = Field(default=None, ge=0, le=20)
    """Number of alternatives per token to ask for."""
    reasoning_effort: str | None = Field(default=None, min_length=1)
    """How long a reasoning model thinks."""

    def as_sent(self) -> dict[str, Any]:
        r"""Return the parameters as they go into the request.

        Examples
        --------
        >>> SamplingConfig(temperature=0.6, stop=("\n\n",)).as_sent()
        {'temperature': 0.6, 'stop': ['\n\n']}
        """
        sent = self.model_dump(exclude_unset=True)
        if isinstance(self.stop, tuple) and "stop" in sent:
            sent["stop"] = list(self.stop)
        return sent

    @property
    def token_limit(self) -> int | None:
        """Most tokens one answer can have, or None without a limit."""
        if self.max_tokens is None:
            return self.max_completion_tokens
        return self.max_tokens


class BatchConfig(Section):
    """Requests by OpenAI's or Anthropic's batch interface."""

    gather: Seconds = Field(default=5.0, ge=0, le=3600)
    """A batch is sent once no request has come for this time."""
    poll: Seconds = Field(default=30.0, gt=0, le=3600)
    """Time between two looks at a batch."""


Batch: TypeAlias = Annotated[
    BatchConfig | None, BeforeValidator(_batch, json_schema_input_type=bool | BatchConfig | None)
]


class TimeoutConfig(Section):
    """Time after which a request is cancelled: seconds, or a duration such as 10m."""

    total: Seconds = Field(default=600.0, gt=0, le=864_000)
    """Time from sending the request to its last byte."""
    idle: Seconds = Field(default=120.0, gt=0, le=86_400)
    """With stream: true, silence after which a request is cancelled."""


class HeaderConfig(Section):
    """A header's value: a text, or the environment variable that holds it."""

    value: str | None = Field(default=None, min_length=1)
    """The value itself; never a secret."""
    env: EnvName | None = None
    """Name of the environment variable that holds the value."""

    def resolve(self, name: str) -> str:
        """Return the value of the header `name`."""
        if self.env is None:
            return self.value or ""
        value = os.environ.get(self.env)
        if not value:
            raise UsageError(f"header {name}: the environment variable {self.env} is not set")
        return value


Header: TypeAlias = Annotated[HeaderConfig, short_for("value", str | HeaderConfig)]
Treated: TypeAlias = Literal["wrong", "missing"]


def _discarded(value: Any) -> Any:
    """Read the causes of discarded draws for which another draw counts: redraw stands for all."""
    if value == "redraw":
        return DISCARD_CAUSES
    if isinstance(value, list | tuple) and set(map(str, value)) <= set(DISCARD_CAUSES):
        return tuple(dict.fromkeys(value))
    raise ValueError(f"{value!r:.60} is neither redraw nor a list of {', '.join(DISCARD_CAUSES)}")


Discarded: TypeAlias = Annotated[
    tuple[DiscardCause, ...],
    BeforeValidator(_discarded, json_schema_input_type=Literal["redraw"] | tuple[DiscardCause, ...]),
]


class OnConfig(Section):
    """How an empty or refused answer counts: wrong (scored as it is), or missing (never scored)."""

    content_filter: Treated = "missing"
    """Withheld by a filter of the server: such an answer may have been right or wrong."""
    tool_calls: Treated = "wrong"
    """A call of a tool that the task does not offer."""
    reasoning: Treated = "wrong"
    """Reasoning in a separate field and no text."""
    length: Treated = "wrong"
    """The token limit came before any text, or a solver used up its calls."""
    empty: Treated = "wrong"
    """No text, for no reason given."""
    discarded: Discarded = ()
    """Causes for which another answer may stand for one that was given up (it took longer than the timeout,
    its connection was cut, a process was killed), since they do not depend on the answer: redraw for all, or
    a list of timeout, server, connection, killed. Without it such a trial is lost to verdicts."""
    mostly_empty: Literal["stop", "rank"] = "stop"
    """A model with ten or more such answers, at least 95 % of its answers: stop it unranked, or rank it."""
    nothing_found: Literal["stop", "wrong"] = "stop"
    """Most answers of every model to a task, ten or more of each, hold nothing that the scorer can read: end
    the run without a verdict, or count them as wrong."""

    copies: Literal["bounded", "independent"] = "bounded"
    """A long answer with the text of an earlier one to the same question: take the more cautious of both
    readings, copy and draw (bounded), or take it for an independent draw of a sure model."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The causes for which an answer counts as missing."""
        causes = tuple(name for name, value in self if value == "missing")
        if self.length == "missing":
            return (*causes, OUT_OF_CALLS)
        return causes


class RetryConfig(Section):
    """Retry policy of failed requests."""

    attempts: int = Field(default=6, ge=1, le=100)
    """Attempts per trial, those of its judge or verifier included."""
    max_seconds: float = Field(default=300.0, gt=0)
    """Seconds after which a trial is not attempted again."""
    requeue: int = Field(default=1, ge=0, le=100)
    """How often a trial without an answer returns to the queue."""
