"""The vocabulary of trials, from the question to the category.

A *trial* is one answer of one model to one question. Every model follows the same sequence of
questions; index ``t`` of a model's trial sequence is its trial number ``t``, so ``(model, index)`` names a
trial for ever. Everything here is frozen and free of behaviour that could fail.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias, get_args

GIVEN = "conversation as given"
"""The field of a question that holds its conversation, as messages: a name that no template can use."""

IMAGE_TOKENS = 16_384
"""Tokens that are reserved for an image, where nothing else is said."""

DiscardCause: TypeAlias = Literal["timeout", "server", "connection", "killed"]
"""Why a draw was given up that the server may have begun: our time limit; an error status, an unusable body
or a server that has gone; a cut connection; a process that was killed, or a request that was cancelled."""
DISCARD_CAUSES: tuple[DiscardCause, ...] = get_args(DiscardCause)

Signal: TypeAlias = float | int | bool | str | None
"""The value of one base signal of an attempt, such as ``has_box`` or ``token_ratio``."""

COPY_REASON = "a copy of the previous answer to this question"
"""The reason of a missing trial whose answer is a copy; it counts as if it had not been asked for."""

NOT_THERE = "not in the logs"
"""The reason of a missing trial of an imported run that no log has."""

LAID_OUT: Literal["laid_out"] = "laid_out"
"""The kind of decision that lays out a round while answers before it are awaited; a replay needs it."""

FIXED = "fixed"
"""The rule of results whose number of trials was fixed before anybody looked; no run asks by it."""

RIGHT_OR_WRONG: Final = (0.0, 1.0)
"""What a wrong answer is worth, and a right one, where nothing else is said."""

STEPS = 25_200
"""Steps of a range of scores: 1 to 10, 0 to 100 and halves are among them, and a category fits 16 bits."""


class ScoreRange(tuple[float, float]):
    """Lowest and highest score if scores are numbers: a category is a step between them.

    Examples
    --------
    >>> stars = ScoreRange((1, 10))
    >>> stars.category(7), stars.score(16_800), stars.category(11)
    (16800, 7.0, None)
    """

    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoreRange) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def category(self, score: float) -> int | None:
        """Return the step nearest to a score; None outside the range."""
        low, high = self
        if low <= score <= high:
            return round((score - low) / (high - low) * STEPS)
        return None

    def score(self, category: int) -> float:
        """Return the score at a step."""
        return self[0] + (self[1] - self[0]) * category / STEPS


def score_of(weights: tuple[float, ...], category: int) -> float:
    """Return the score of a category."""
    if isinstance(weights, ScoreRange):
        return weights.score(category)
    return float(weights[category])


OUT_OF_CALLS = "calls"
"""Reason for which an answer ended whose solver had used up its calls, or the tokens of their prompts."""

CUT_OFF = ("length", "max_tokens", "model_length", OUT_OF_CALLS)
"""Reasons for which an answer ended that ran into its token limit, or used up its calls."""

NO_ANSWER = "no_answer_"
"""Begins the name of the signal of an answer that is none; the cause follows."""

FILTERED = f"{NO_ANSWER}content_filter"
"""Name of the signal of an answer that a filter withheld."""

UNSCORED = "unscored: "
"""Begins the reason of a missing trial whose answer could not be scored."""

SAME_TEXT: Final = "same_text"
"""Name of the signal of an answer with the text of an earlier one, too long for a coincidence."""

NOTHING_FOUND = "nothing_found"
"""Name of the signal of an answer in which the scorer found no result."""

ANCHOR = "anchor_"
"""Begins the name of a signal with an answer's number, and what its judge says of it now, in parts."""

ANCHOR_PARTS = 100
"""Parts of the range of scores that such a judgement is told in."""

JUDGED = "judged_"
"""Begins the names of signals that say how steady a judge is: its second vote, the order of two answers."""

JUDGEMENTS, ORDER_DECIDED = "judgements", "order_decided"
"""Names of the signals with a judge's votes, and with how many of them the order of two answers decided."""

CHECK = "check_"
"""Begins the names of the signals with the results of the parts of the scorer ``checks``."""

AGAINST = "against"
"""Name of the signal that holds the stored answer that a judge has compared an answer with."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TrialKey:
    """The name of a trial: number `index`, from 0, in the trial sequence of `model`."""

    model: str
    index: int


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """A trial that the session wants to have run.

    Parameters
    ----------
    key : TrialKey
        Model and index.
    task, question : str
        Task name and question id at this index of the trial sequence.
    repeat : int
        How many earlier trials of this model have asked this question, from 0.
    seed : int
        Sampling seed for the request, hashed from (run seed, key); in [0, 2**31).
    """

    key: TrialKey
    task: str
    question: str
    repeat: int
    seed: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that one request consumed, as the endpoint reports them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """Prompt plus completion tokens."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return the tokens of both."""
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """A scored trial: the category counts, the usage is charged to the budget.

    `answer` tells different texts apart (:attr:`Completion.digest`); None if the text is not known. An
    answer that `repeats` an earlier one, at a length at which chance equality is unlikely, may be a copy.
    `discarded` are the causes for which earlier draws of the trial were given up: for verdicts such a trial
    is lost, unless the run's options say that the loss does not depend on the answer.
    """

    key: TrialKey
    category: int
    usage: Usage = Usage()
    answer: int | None = None
    repeats: bool = False
    discarded: tuple[DiscardCause, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """A trial that got no answer after all attempts. It is never scored, and no pair is read at its index.

    `discarded` are the causes for which draws of it were given up.
    """

    key: TrialKey
    reason: str
    usage: Usage = Usage()
    discarded: tuple[DiscardCause, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a task.

    Parameters
    ----------
    task, id : str
        Task name; id unique within the task and stable across runs.
    target : str
        The reference answer, as the scorer reads it.
    fields : mapping
        Every field of the dataset's row, for the prompt template.
    choices : tuple of str
        Options of a multiple-choice question, in order; empty otherwise.
    """

    task: str
    id: str
    target: str
    fields: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    choices: tuple[str, ...] = ()


def content_text(content: Any) -> str:
    """Return the text of a message's content: a text, or a list of parts such as texts and images.

    Examples
    --------
    >>> image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    >>> content_text([image, {"type": "text", "text": "What is this?"}])
    'What is this?'
    """
    if isinstance(content, list | tuple):
        return "".join(
            str(part.get("text", "")) for part in content if isinstance(part, Mapping) and "text" in part
        )
    if isinstance(content, str):
        return content
    return ""


def sent_messages(sent: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the messages of a stored request, whichever API it was for; a plain prompt is one of its own.

    Examples
    --------
    >>> sent_messages({"prompt": "2 + 2 ="})
    [{'role': 'prompt', 'content': '2 + 2 ='}]
    """
    found = sent.get("messages", sent.get("input"))
    if isinstance(found, list):
        return list(map(_message, found))
    if "prompt" in sent:
        return [{"role": "prompt", "content": sent["prompt"]}]
    return []


def _message(one: Any) -> Mapping[str, Any]:
    if isinstance(one, Mapping):
        return one
    return {"role": "message", "content": one}


def shown_message(message: Mapping[str, Any]) -> str:
    """Return a message for people: its text, calls of tools, and a note for an image or sound.

    Examples
    --------
    >>> shown_message({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a/b"}}]})
    '[image_url https://a/b]'
    >>> shown_message({"content": None, "tool_calls": [{"function": {"name": "now", "arguments": "{}"}}]})
    'now({})'
    """
    content = message.get("content")
    if content is None:
        content = []
    parts = content
    if not isinstance(content, list):
        parts = [{"text": content}]
    shown = list(map(_shown_part, parts))
    if message.get("type") == "function_call_output":  # of the Responses API
        shown.append(str(message.get("output", "")))
    if message.get("type") != "function_call":
        calls = message.get("tool_calls")
    else:
        calls = [message]
    return "\n".join([*shown, *map(shown_call, calls if isinstance(calls, list) else ())])


def shown_call(call: Any) -> str:
    """Return a call of a tool as a person reads it."""
    if isinstance(call, Mapping):
        call = call.get("function", call)
    else:
        call = {}
    return f"{call.get('name', '')}({call.get('arguments', '')})"


def _shown_part(part: Any) -> str:
    if not isinstance(part, Mapping) or "text" in part:
        if isinstance(part, Mapping):
            return str(part["text"])
        return str(part)
    kind = str(part.get("type", ""))
    inner = part.get(kind)
    if inner is None:  # the Responses API has it without a frame
        inner = part.get("image_url")
    named = inner
    if isinstance(inner, Mapping):
        named = inner.get("url", inner.get("data", ""))
    return f"[{kind} {named}]"


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message.

    Parameters
    ----------
    role, content : str
        Who speaks, and the text.
    whole : mapping, optional
        The message as it is sent, if it is more than a role and a text: parts, calls of tools.

    Examples
    --------
    >>> Message.from_mapping({"role": "user", "content": [{"type": "text", "text": "Why?"}]}).content
    'Why?'
    """

    role: str
    content: str
    whole: Mapping[str, Any] | None = field(default=None, hash=False, repr=False, kw_only=True)

    @classmethod
    def from_mapping(cls, sent: Mapping[str, Any]) -> Message:
        """Return a message from how it is sent."""
        role = str(sent["role"])
        content = sent.get("content")
        if isinstance(content, str) and sent.keys() == {"role", "content"}:
            return Message(role, content)
        return Message(role, content_text(content), whole=sent)

    @property
    def sent(self) -> dict[str, Any]:
        """The message as it is sent."""
        if self.whole is not None:
            return dict(self.whole)
        return {"role": self.role, "content": self.content}

    @property
    def media(self) -> tuple[Mapping[str, Any], ...]:
        """The parts that are no text."""
        content = None if self.whole is None else self.whole.get("content")
        parts = content if isinstance(content, list) else ()
        return tuple(part for part in parts if part.get("type") != "text")


class Conversation(tuple[Message, ...]):
    """Messages, with the fields of a request that belong to them, such as ``tools``.

    Examples
    --------
    >>> Conversation((Message("user", "Why?"),), {"tools": []}).fields
    {'tools': []}
    """

    fields: Mapping[str, Any]
    image_tokens: int  # most tokens of an image

    def __new__(
        cls,
        messages: Iterable[Message] = (),
        fields: Mapping[str, Any] = _EMPTY,
        image_tokens: int = IMAGE_TOKENS,
    ) -> Self:
        """Put messages and fields together."""
        made = super().__new__(cls, messages)
        made.fields = dict(fields)
        made.image_tokens = image_tokens
        return made


def fields_of(messages: Sequence[Message]) -> Mapping[str, Any]:
    """Return the fields of a request that belong to messages; none but for a :class:`Conversation`."""
    if isinstance(messages, Conversation):
        return messages.fields
    return _EMPTY


def estimated_tokens(messages: Iterable[Message]) -> float:
    """Return about how many tokens a prompt has: one for four bytes of text, 1,000 for an image or sound."""
    return sum(
        len(message.content.encode("utf-8", "surrogatepass")) / 4.0 + 1000 * len(message.media)
        for message in messages
    )


def without_media(sent: Any) -> Any:
    """Return the request with the size and SHA-256 of images and sounds in place of their data.

    Examples
    --------
    >>> without_media({"url": "data:image/png;base64,AAAA"})["url"][:43]
    'data:image/png;bytes=3;sha256=63c1dd951ffed'
    """
    if isinstance(sent, Mapping):
        sound = "format" in sent  # as OpenAI has it
        shown = {}
        for name, value in sent.items():
            shown[name] = _short(value, name, sound=sound) if isinstance(value, str) else without_media(value)
        return shown
    if isinstance(sent, list | tuple):
        return list(map(without_media, sent))
    return sent


def stored_body(body: Mapping[str, Any], messages: Iterable[Message]) -> Mapping[str, Any]:
    """Return a request's body as it is stored: without the data of images and sounds."""
    if not any(message.whole is not None and message.media for message in messages):
        return body
    short: Mapping[str, Any] = without_media(body)
    return short


def _short(value: str, name: str, *, sound: bool) -> str:
    head, base64, data = value.partition(";base64,")
    if name in ("url", "image_url") and base64 and head.startswith("data:"):
        return f"{head};{_digest(data)}"
    if name == "data" and sound:
        return _digest(value)
    return value


def _digest(data: str) -> str:
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return f"bytes={size};sha256={sha256(data.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of an endpoint to one request.

    Parameters
    ----------
    text : str
        The answer's text. It is data: never executed, never trusted.
    finish_reason : str
        ``stop``, ``length`` or the endpoint's own word.
    usage : Usage
        Tokens of the prompt and of this answer, as the endpoint reports them.
    latency : float
        Seconds from sending the request to the last byte.
    model : str
        The model id the endpoint says has answered.
    response_id : str
        The endpoint's id of the response.
    logprobs : object, optional
        Log-probabilities as JSON-able data, if they were asked for.
    share : Usage, optional
        What falls on this answer of the tokens of a request that gave several; None: all of `usage`. The
        prompt is paid once.
    pause : float
        Seconds for which the server allows no further request. It is obeyed, and not stored.
    tool_calls : tuple of mapping
        Calls of the tools that were offered: ``id``, ``name`` and ``arguments``, the JSON text that the model
        wrote.
    calls : tuple of mapping
        The calls of the model by which a solver came to the answer: new ``messages``, ``text``,
        ``finish_reason``, ``tokens``.
    discarded : tuple of str
        Causes for which the endpoint that gave the answer had given up earlier draws. Stored with the trial.
    without_text : {'', 'reasoning', 'tool_calls'}
        What the answer held in place of a text; empty if it held a text, or nothing. Not stored.
    reasoning : str
        What the model thought before the answer, if the endpoint gives it apart from the text. No scorer
        reads it unless it is told to.
    reasoning_tokens : int
        How many of the completion tokens are reasoning, as the endpoint reports them.
    impossible_usage : bool
        True if the endpoint reported a count of tokens that cannot be; `usage` is empty then. Not stored.
    """

    text: str
    finish_reason: str
    usage: Usage = Usage()
    latency: float = 0.0
    model: str = ""
    response_id: str = ""
    logprobs: Any = None
    share: Usage | None = None
    pause: float = 0.0
    without_text: str = ""
    impossible_usage: bool = False
    reasoning: str = ""
    reasoning_tokens: int = 0
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()
    discarded: tuple[DiscardCause, ...] = ()

    @property
    def content(self) -> str:
        """The text, and what tools are called with: not their ids, which differ in equal answers."""
        if not self.tool_calls:
            return self.text
        calls = [[call.get("name"), call.get("arguments")] for call in self.tool_calls]
        return f"{self.text}\n{json.dumps(calls)}"

    @property
    def digest(self) -> int:
        """A number in [0, 2**32) that tells different answers apart."""
        return _number_of(self.content)

    @property
    def response_digest(self) -> int | None:
        """A number in [0, 2**32) that tells responses apart by their ids; None without one."""
        if self.response_id:
            return _number_of(self.response_id)
        return None

    @property
    def no_answer(self) -> str | None:
        """Why it is no answer; None for an answer, right or wrong.

        ``content_filter``: withheld, whatever text is left. Without a text: ``length`` at the token limit,
        ``calls`` if a solver used up its calls, ``tool_calls`` if no tools were offered, ``reasoning``
        if all text is reasoning, else ``empty``.
        """
        if self.finish_reason == "content_filter":
            return "content_filter"
        if self.text.strip() or self.tool_calls:
            return None
        if self.finish_reason in ("tool_calls", "function_call"):
            return "tool_calls"
        if self.cut_off:
            if self.finish_reason == OUT_OF_CALLS:
                return OUT_OF_CALLS
            return "length"
        return self.without_text or "empty"

    @property
    def cut_off(self) -> bool:
        """Whether the answer ran into its token limit, or used up its calls."""
        return self.finish_reason in CUT_OFF

    @property
    def paid(self) -> Usage:
        """Tokens that were paid for this answer."""
        if self.share is None:
            return self.usage
        return self.share


def _number_of(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest())


@dataclass(frozen=True, slots=True)
class Score:
    """The score of one answer.

    Parameters
    ----------
    category : int or None
        Category in 0..C of the task's rubric. None for an answer that cannot be scored: it is neither right
        nor wrong, and `reason` says why.
    extracted : str, optional
        The answer as extracted from the text; None if nothing could be extracted.
    signals : mapping
        Base signals of the attempt (``is_correct``, ``has_box``, …).
    reason : str
        Why it got this category, in a few words.
    discarded : tuple of str
        Causes for which judgements of the answer were given up before this one. Stored with the trial.
    """

    category: int | None
    extracted: str | None = None
    signals: Mapping[str, Signal] = field(default_factory=lambda: _EMPTY)
    reason: str = ""
    discarded: tuple[DiscardCause, ...] = ()
