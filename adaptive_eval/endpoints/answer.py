"""Read answers from a response body, for all servers in use."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from adaptive_eval.endpoints.failures import at, from_answer, malformed
from adaptive_eval.endpoints.redaction import REDACTED, Redactor, storable
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.trial import CUT_OFF, Completion, Usage

_FIELDS = ("reasoning_content", "reasoning", "thinking")
"""DeepSeek, SGLang, llama.cpp and earlier vLLM; vLLM and OpenRouter; Ollama."""

_LISTS = ("reasoning_details", "thinking_blocks", "content")
"""Lists of parts: OpenRouter; LiteLLM and Anthropic; Mistral and Anthropic."""


def reasoning_of(message: Mapping[str, Any]) -> str:
    """Return the reasoning of a message, or of one part of a streamed message; empty if it has none.

    Servers that give it under several names give the same text under each.

    Examples
    --------
    >>> reasoning_of({"content": "4", "reasoning_content": "2 + 2"})
    '2 + 2'
    >>> thought = {"type": "thinking", "thinking": [{"type": "text", "text": "2 + 2"}]}
    >>> reasoning_of({"content": [thought, {"type": "text", "text": "4"}]})
    '2 + 2'
    """
    for name in _FIELDS:
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    for name in _LISTS:
        parts = message.get(name)
        thought = ""
        if isinstance(parts, list):
            thought = "".join(map(_thought, parts))
        if thought:
            return thought
    return ""


def text_of_parts(content: list[Any]) -> str:
    """Return the text of a content that is a list of parts.

    Examples
    --------
    >>> text_of_parts([{"type": "thinking", "thinking": "2 + 2"}, {"type": "text", "text": "4"}])
    '4'
    """
    return "".join(
        part["text"]
        for part in content
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
    )


def count_of(value: Any) -> int:
    """Return a count of tokens, 0 for what is none."""
    if type(value) is int and value > 0:
        return value
    return 0


def reasoning_tokens(usage: Any) -> int:
    """Return how many tokens of reasoning a usage reports.

    Examples
    --------
    >>> reasoning_tokens({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}})
    7
    """
    return count_of(at(usage, "completion_tokens_details", "reasoning_tokens"))


def _thought(part: Any) -> str:
    """Return the reasoning of one part of a list."""
    kind = at(part, "type")
    if not isinstance(kind, str) or not kind.startswith(("thinking", "reasoning")):
        return ""
    value = next((part[name] for name in ("thinking", "text", "summary") if part.get(name)), "")
    if isinstance(value, list):
        return text_of_parts(value)
    if isinstance(value, str):
        return value
    return ""


TextOf: TypeAlias = Callable[[dict[str, Any], Redactor], str]
"""Reads the text of one choice; TransientEndpointError where there is none to read."""

MOST_TOKENS = 2**28
"""A reported count beyond this is not believed: the longest contexts have 10 million tokens."""

_OF_ENTRIES = ("token", "decoded_token", "bytes", "logprob", "rank")
_OF_LISTS = ("content", "refusal", "prompt", "tokens", "token_logprobs", "top_logprobs")
_OF_TOKENS = frozenset((*_OF_ENTRIES, *_OF_LISTS))
"""Names in log-probabilities; others may be tokens or their numbers, and differ from one to the next."""

_Place: TypeAlias = tuple[str | int, ...]
_Columns: TypeAlias = defaultdict[_Place, list[str]]
_NUMBERS = frozenset({int, float})
_NO_BYTE = "\n"  # in a column of bytes, for a number that is none

_ABORTED = frozenset({"abort", "error"})
"""Words with which servers say, with HTTP 200, that they gave up in the middle of an answer."""


def read_completions(
    body: Any,
    *,
    text_of: TextOf,
    latency: float,
    redact: Redactor,
    most: int = 1,
    limit: int | None = None,
    context: int | None = None,
    tools: bool = False,
) -> tuple[Completion | None, ...]:
    """Turn the JSON body of an answer into completions; calls are kept if `tools` were offered.

    Each choice stands in the place of its index; None stands for one that was broken off or did not come.

    Examples
    --------
    >>> choice = {"message": {"content": "42"}, "finish_reason": "stop"}
    >>> body = {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    >>> (answer,) = read_completions(body, text_of=chat_text, latency=0.5, redact=Redactor([]))
    >>> answer.text, answer.finish_reason, answer.usage.total_tokens
    ('42', 'stop', 11)
    """
    if not isinstance(body, dict):
        raise malformed(f"a JSON object was expected, not {type(body).__name__}", redact=redact)
    found: dict[int, Completion] = {}
    failure: TransientEndpointError | None = None
    choices = _choices(body, redact)
    if most == 1:
        choices = {0: choices[min(choices)]}
    reported = read_usage(body.get("usage"), context, most)
    usage = Usage() if reported is None else reported
    thought = min(reasoning_tokens(body.get("usage")), usage.completion_tokens)
    common: dict[str, Any] = {
        "usage": usage,
        "latency": latency,
        "model": _text(body.get("model"), redact),
        "response_id": _text(body.get("id"), redact),
        "reasoning_tokens": thought,
        "impossible_usage": reported is None,
    }
    for index in sorted(choices):
        if index >= most:
            break
        try:
            found[index] = _completion(choices[index], body, text_of, redact, tools=tools, **common)
        except TransientEndpointError as error:
            failure = failure or error
    if not found:
        raise failure or malformed("no choice has an index that was asked for", redact=redact)
    if not usage.completion_tokens and any(answer.content or answer.reasoning for answer in found.values()):
        usage = Usage()  # a report without the tokens of the answer is none
        found = {index: replace(answer, usage=usage) for index, answer in found.items()}
    if most > 1:
        _divide(found, usage, thought, limit)
    return tuple(map(found.get, range(max(found) + 1)))


def _divide(found: dict[int, Completion], usage: Usage, thought: int, limit: int | None) -> None:
    """Divide the bill of a request, and its tokens of reasoning, among its answers."""
    answers = found.values()
    usage = whole_usage(usage, [answer.finish_reason for answer in answers], limit)
    shares = share_usage(usage, [len(answer.content) + len(answer.reasoning) for answer in answers], limit)
    thoughts = share_usage(Usage(0, thought), [len(answer.reasoning) for answer in answers])
    for (index, answer), share, own in zip(found.items(), shares, thoughts, strict=True):
        found[index] = replace(
            answer,
            usage=replace(usage, completion_tokens=share.completion_tokens),
            share=share,
            response_id=answer.response_id and f"{answer.response_id}#{index}",
            reasoning_tokens=min(own.completion_tokens, share.completion_tokens),
        )


def chat_text(choice: dict[str, Any], redact: Redactor) -> str:
    """Return the text of a choice of a chat: a string, a list of parts, or the refusal in its place."""
    message = choice.get("message")
    if not isinstance(message, dict):
        raise malformed("choices[0].message is", repr(message), redact=redact)
    content = message.get("content")
    if content in (None, ""):  # a stream may begin with an empty text
        content = message.get("refusal") or ""
    if isinstance(content, list):
        content = text_of_parts(content)
    if not isinstance(content, str):
        raise malformed("choices[0].message.content is", repr(content), redact=redact)
    return content


def plain_text(choice: dict[str, Any], redact: Redactor) -> str:
    """Return the text of a choice that continues a prompt."""
    text = choice.get("text", "")
    if text is None:
        return ""
    if not isinstance(text, str) or "text" not in choice:
        raise malformed("choices[0].text is", repr(choice.get("text")), redact=redact)
    return text


def read_usage(usage: Any, context: int | None = None, answers: int = 1) -> Usage | None:
    """Read the tokens that an answer reports.

    Examples
    --------
    >>> cached = {"cached_tokens": 8}
    >>> read_usage({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": cached})
    Usage(prompt_tokens=9, completion_tokens=2, cached_tokens=8)
    >>> read_usage(None)
    Usage(prompt_tokens=0, completion_tokens=0, cached_tokens=0)
    >>> read_usage({"prompt_tokens": 9, "completion_tokens": 10**9}) is None
    True
    """
    if not isinstance(usage, dict):
        return Usage()
    prompt, completion = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
    thought = reasoning_tokens(usage)
    if thought and usage.get("total_tokens") == prompt + completion + thought:
        completion += thought  # xAI counts the reasoning apart, and bills it as the rest
    most = MOST_TOKENS
    if context is not None:
        most = min(context, MOST_TOKENS)
    if prompt > most or completion > most * answers:
        return None
    # Tokens from the cache are tokens of the prompt: more of them would make a price negative.
    cached = count_of(at(usage, "prompt_tokens_details", "cached_tokens"))
    return Usage(prompt, completion, min(cached, prompt))


def whole_usage(usage: Usage, finish_reasons: Sequence[str], limit: int | None) -> Usage:
    """Return the usage of a request for several answers, also if the server counts only one of them.

    Some servers (llama.cpp's) report the tokens of a single answer then. That is certain if the answers
    that met the length limit have more tokens together than are reported; each is taken to have so many.

    Examples
    --------
    >>> whole_usage(Usage(10, 32), ["length", "length", "stop"], limit=32)
    Usage(prompt_tokens=10, completion_tokens=96, cached_tokens=0)
    >>> whole_usage(Usage(10, 70), ["length", "length", "stop"], limit=32)
    Usage(prompt_tokens=10, completion_tokens=70, cached_tokens=0)
    """
    met_limit = sum(reason in CUT_OFF for reason in finish_reasons) * (limit or 0)
    if usage.completion_tokens == 0 or usage.completion_tokens >= met_limit:
        return usage
    return replace(usage, completion_tokens=usage.completion_tokens * len(finish_reasons))


def share_usage(usage: Usage, lengths: Sequence[int], limit: int | None = None) -> list[Usage]:
    """Divide the usage of a request among its answers.

    Examples
    --------
    >>> [share.completion_tokens for share in share_usage(Usage(10, 9), [3, 7, 2])]
    [2, 5, 2]
    >>> [share.prompt_tokens for share in share_usage(Usage(10, 9), [3, 7, 2])]
    [10, 0, 0]
    >>> [share.completion_tokens for share in share_usage(Usage(10, 64), [300, 40], limit=32)]
    [32, 32]
    """
    certain = min(usage.completion_tokens, len(lengths))
    rest = usage.completion_tokens - certain
    whole = max(sum(lengths), 1)
    shares, before, given = [], 0, 0
    for number, length in enumerate(lengths):
        before += length
        until = rest
        if number != len(lengths) - 1:
            until = rest * before // whole
        shares.append(until - given + (number < certain))
        given = until
    if limit is not None:
        shares = _within(shares, limit)
    return [
        Usage(usage.prompt_tokens, shares[0], usage.cached_tokens),
        *(Usage(0, share) for share in shares[1:]),
    ]


def _within(shares: Sequence[int], limit: int) -> list[int]:
    """Move the excess over `limit` to shares that have room; the rest stays with the last."""
    beyond = sum(max(0, share - limit) for share in shares)
    moved = []
    for share in shares:
        kept = min(share, limit)
        taken = min(beyond, limit - kept)
        beyond -= taken
        moved.append(kept + taken)
    moved[-1] += beyond
    return moved


def dicts_in(body: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects of the list that a field of an answer holds, if it holds one."""
    listed = body.get(name)
    if not isinstance(listed, list):
        return []
    return [one for one in listed if isinstance(one, dict)]


def _choices(body: dict[str, Any], redact: Redactor) -> dict[int, dict[str, Any]]:
    """Return the choices by their indices; those without one have that of the order in which they came."""
    found: dict[int, dict[str, Any]] = {}
    for number, choice in enumerate(dicts_in(body, "choices")):
        index = index_of(choice, number, redact)
        if index in found:
            raise malformed(f"two choices have the index {index}", redact=redact)
        found[index] = choice
    if found:
        return found
    reported = from_answer(body, redact=redact)
    if reported is not None:
        raise reported
    raise malformed("no choices in the answer", redact=redact)


def index_of(choice: Mapping[str, Any], default: int, redact: Redactor) -> int:
    """Return the index of a choice, `default` if it has none."""
    index = choice.get("index")
    if index is None:
        return default
    if type(index) is not int or index < 0:
        raise malformed("a choice has the index", repr(index), redact=redact)
    return index


def _completion(
    choice: dict[str, Any],
    body: dict[str, Any],
    text_of: TextOf,
    redact: Redactor,
    *,
    tools: bool,
    **common: Any,
) -> Completion:
    """Return the answer of a choice; `common` are the fields that all answers of a request share."""
    finish_reason = _text(choice.get("finish_reason"), redact).lower()
    if finish_reason in _ABORTED:
        raise TransientEndpointError(f"the server broke the answer off ({finish_reason})", kind="aborted")
    of_prompt = body.get("prompt_logprobs", choice.get("prompt_logprobs"))
    of_answer = choice.get("logprobs")
    said = storable(text_of(choice, redact))
    text = redact(said)
    message = choice.get("message")
    thought = ""
    if isinstance(message, dict):
        thought = redact(storable(reasoning_of(message)))
    if tools:
        calls = _calls(message, redact)
    else:
        calls = ()
    if redact and thought:
        for both in (thought + text, text + thought):
            if redact(both) != both:
                text = thought = REDACTED
    without_text = ""
    if not text:
        without_text = _instead_of_text(message, thought)
    return Completion(
        text=text,
        finish_reason=finish_reason,
        logprobs=_hidden(_logprobs(of_answer, of_prompt), redact, spelled=text != said),
        without_text=without_text,
        reasoning=thought,
        tool_calls=calls,
        **common,
    )


def _calls(message: Any, redact: Redactor) -> tuple[Mapping[str, Any], ...]:
    """Return the calls of tools in a message: the arguments are the text that the model wrote."""
    calls, found = at(message, "tool_calls"), []
    for call in calls if isinstance(calls, list) else ():
        function = at(call, "function")
        if isinstance(function, dict):
            arguments = function.get("arguments")
            if not isinstance(arguments, str):  # Ollama gives an object
                given = arguments
                if arguments is None:
                    given = {}
                arguments = json.dumps(given)
            found.append(
                {
                    "id": _text(call.get("id"), redact),
                    "name": _text(function.get("name"), redact),
                    "arguments": redact(storable(arguments)),
                }
            )
    return tuple(found)


def _instead_of_text(message: Any, reasoning: str) -> str:
    """Return what a message without a text holds in its place."""
    if isinstance(message, dict) and (message.get("tool_calls") or message.get("function_call")):
        return "tool_calls"
    if reasoning:
        return "reasoning"
    return ""


def _logprobs(of_answer: Any, of_prompt: Any) -> Any:
    """Return the answer's log-probabilities, those of the prompt (vLLM gives them) under ``prompt``."""
    if not isinstance(of_prompt, list):
        return of_answer
    return {**(of_answer if isinstance(of_answer, dict) else {}), "prompt": of_prompt}


def _hidden(logprobs: Any, redact: Redactor, *, spelled: bool) -> Any:
    """Return log-probabilities that spell no secret; `spelled` says that the answer's text does.

    The figures stay where they can: nothing is left if the figures or the names of fields spell it too.
    """
    if not redact or logprobs is None:
        return logprobs
    try:
        if not spelled and not _spells(logprobs, redact):
            return logprobs
        left = _unspelled(logprobs)
        if _spells(left, redact):
            return None
        return left
    except RecursionError:  # nested as no server does it
        return None


def _spells(value: Any, redact: Redactor) -> bool:
    """Return whether a secret can be read in a value, down one of the columns of its lists."""
    columns: _Columns = defaultdict(list)
    _read(value, (), columns, listed=False)
    return any(redact(text) != text for text in map("".join, columns.values()))


def _read(value: Any, place: _Place, columns: _Columns, *, listed: bool) -> None:
    """Add what a value says to the column of its place: texts, unknown names, and bytes given as numbers.

    The entries of the outermost list (the tokens, one after another) have one place, so that what they
    say together is read together; below it, the number of an entry is its place, unless all are numbers.
    """
    if type(value) in _NUMBERS:
        columns[place].append(_character(value))
    elif isinstance(value, str):
        columns[place].append(storable(value))
    elif isinstance(value, list) and _NUMBERS.issuperset(map(type, value)):
        columns[place].append("".join(map(_character, value)))
    elif isinstance(value, list):
        for number, one in enumerate(value):
            inner = place
            if listed:
                inner = (*place, number)
            _read(one, inner, columns, listed=True)
    elif isinstance(value, dict):
        for number, (name, one) in enumerate(value.items()):
            known = name in _OF_TOKENS
            if not known:
                columns[(*place, number, "name")].append(storable(name))
            key = number
            if known:
                key = name
            _read(one, (*place, key), columns, listed=listed)


def _character(value: float) -> str:
    """Return the character of a byte that was given as a number."""
    if 0 <= value < 256 and int(value) == value:
        return chr(int(value))
    return _NO_BYTE


_SPELLING = frozenset({"bytes", "top_logprobs"})
"""Fields of a token's log-probability that spell it, or others."""


def _unspelled(value: Any) -> Any:
    """Return log-probabilities without their tokens, which spell a secret: the figures stay."""
    if isinstance(value, str):
        return REDACTED
    if isinstance(value, list):
        return list(map(_unspelled, value))
    if isinstance(value, dict):
        figures = {name: _unspelled(one) for name, one in value.items()}
        figures.update(dict.fromkeys(_SPELLING & value.keys()))
        return figures
    return value


def _text(value: Any, redact: Redactor) -> str:
    if isinstance(value, str):
        return redact(storable(value))[:200]
    return ""
