"""A user's function in the place of an endpoint, and LiteLLM's library as one: ``endpoints: [litellm]``."""

import asyncio
import inspect
import math
import os
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import fields
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import Any, Self, TypeAlias

from adaptive_eval.endpoints.answer import MOST_TOKENS, chat_text, read_completions
from adaptive_eval.endpoints.failures import from_status
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.endpoints.server_info import Probe
from adaptive_eval.errors import (
    BY_USER_CODE,
    EndpointError,
    PermanentEndpointError,
    TransientEndpointError,
    UsageError,
    UserCodeError,
    in_user_code,
    last_line,
    library,
    user_code,
)
from adaptive_eval.trial import Completion, Message, Usage, fields_of

Answer: TypeAlias = str | tuple[str, Usage | Mapping[str, int]] | Completion
Answerer: TypeAlias = Callable[..., Answer | Awaitable[Answer]]
"""From the prompt to the answer; an ``async`` function, or a plain one, which runs in a thread.

It gets the last message as its first argument. Where it has further parameters of these names, it also gets
``messages`` (mappings with role and content), ``tools`` (their definitions), ``sampling`` (the model's
parameters) and ``seed``. It returns the text, the text with its usage (:class:`Usage` or a mapping with
``prompt_tokens`` and ``completion_tokens``), or a :class:`Completion`.
"""

_OF_FILES = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
"""Errors of the system that are of files, not of connections: another attempt meets them again."""
_OTHER_LOOP = re.compile("event loop is closed|(?:different|another) (?:event )?loop", re.IGNORECASE)
"""Messages of asyncio where an object of another event loop is used."""


class FunctionEndpoint:
    """Answers by calling a function.

    A ``TimeoutError`` or ``OSError`` (``ConnectionError`` among them) that it raises is a failed request,
    which is tried again, and so is an EndpointError, as its class says. Any other exception (also that of a
    missing or unreadable file), or an answer of another type, is a mistake in the function: it stops the
    model of a config alone, and ends the evaluation of a function that no config names.

    Examples
    --------
    >>> endpoint = FunctionEndpoint("shouts", str.upper)
    >>> asyncio.run(endpoint.complete([Message("user", "four")], seed=None)).text
    'FOUR'
    """

    def __init__(
        self,
        name: str,
        function: Answerer,
        *,
        url: str | None = None,
        parameters: Mapping[str, Any] = MappingProxyType({}),
        timeout: float | None = None,
        concurrency: int = 8,
    ) -> None:
        if not callable(function):
            raise UserCodeError(f"model {name!r} is {function!r:.100}: give a function from prompt to answer")
        self._name = name
        self._function = function
        asynchronous = getattr(function, "__call__", function)  # noqa: B004 - of an object with __call__
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(asynchronous)
        _require_known_parameters(name, function)
        self._named = _named(function)
        if url is None:
            self.url = f"python:{name}"
        else:
            self.url = url
        self._configured = url is not None
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="model")
        self.parameters = parameters

    def body(self, messages: Sequence[Message], *, seed: int | None, n: int = 1) -> Mapping[str, Any]:
        """Return the stored form of a request."""
        asked: dict[str, Any] = {"messages": [message.sent for message in messages]}
        tools = fields_of(messages).get("tools")
        if tools:
            asked["tools"] = list(tools)
        return {"model": self._name, **asked, "seed": seed, **self.parameters}

    async def probe(self) -> Probe:
        """Return that the function is there; it is not called."""
        return Probe((), 0.0)

    async def alive(self) -> bool:
        """Return True: there is no server that could be away."""
        return True

    async def complete(self, messages: Sequence[Message], *, seed: int | None) -> Completion:
        """Ask once."""
        try:
            return await self._complete(messages, seed)
        except UserCodeError as error:
            if not self._configured:
                raise
            raise PermanentEndpointError(str(error), kind=BY_USER_CODE) from error

    async def _complete(self, messages: Sequence[Message], seed: int | None) -> Completion:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout):
                with user_code():
                    answer = await self._answer(messages, seed)
        except EndpointError:
            raise
        except Exception as error:
            if isinstance(error, OSError) and not isinstance(error, _OF_FILES):
                raise self._failure(error) from None
            if isinstance(error, RuntimeError) and _OTHER_LOOP.search(str(error)):
                raise UserCodeError(
                    f"model {self._name!r}: {error}. Every call of evaluate has its own event loop, and an "
                    "asynchronous client belongs to the loop that first used it: make the client within the "
                    "function, or await evaluate_async for all evaluations in one loop"
                ) from error
            if not self._configured:
                raise
            raise self._mistake(error) from error
        if isinstance(answer, Completion):
            return self._checked(answer)
        text, usage = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, Usage())
        if isinstance(usage, Mapping):
            usage = self._usage(usage)
        if not isinstance(text, str) or not isinstance(usage, Usage):
            raise UserCodeError(
                f"model {self._name!r} returned {answer!r:.100}, neither text, text with its usage nor a "
                "Completion"
            )
        latency = time.monotonic() - started
        return self._checked(Completion(text, "stop", usage, latency, self._name))

    def _failure(self, error: OSError) -> TransientEndpointError:
        """Return the failed request that an error of a connection, or a timeout, is."""
        kind = "dropped"
        if isinstance(error, TimeoutError):
            kind = "timeout"
        words = str(error) or (f"no answer within {self._timeout:g} s" if self._timeout else "")
        return TransientEndpointError(f"{type(error).__name__}: {words}", kind=kind)

    def _mistake(self, error: Exception) -> UsageError:
        """Return the error for a mistake in a function that a config names."""
        return UserCodeError(
            f"{self.url} raised {last_line(error)}; a failure for which another attempt may help is a "
            "TimeoutError or a ConnectionError"
        )

    def _usage(self, counts: Mapping[str, int]) -> Usage:
        names = [field.name for field in fields(Usage)]
        unknown = [name for name in counts if name not in names]
        if unknown:
            raise UserCodeError(
                f"model {self._name!r} returned a usage with {unknown[0]!r}; it has {', '.join(names)}"
            )
        return Usage(**counts)

    def _checked(self, answer: Completion) -> Completion:
        """Return a completion of the function, unless a figure of it can be neither stored nor added up."""
        for field in fields(Usage):
            value = getattr(answer.usage, field.name)
            if not (isinstance(value, int) and 0 <= value <= MOST_TOKENS):
                raise UserCodeError(
                    f"model {self._name!r} returned usage.{field.name} {value!r:.40}: give a whole number "
                    f"from 0 to {MOST_TOKENS:,}, or leave it out"
                )
        for name, seconds in (("latency", answer.latency), ("pause", answer.pause)):
            if not (isinstance(seconds, int | float) and 0.0 <= seconds < math.inf):
                raise UserCodeError(
                    f"model {self._name!r} returned {name} {seconds!r:.40}: give seconds, 0 or more, or "
                    "leave it out"
                )
        return answer

    async def sample(
        self, messages: Sequence[Message], *, seed: int | None, n: int
    ) -> Sequence[Completion | None]:
        """Ask `n` times at once, as :meth:`complete` does; None stands for a call that failed unbilled."""
        if seed is None:
            seeds: Iterable[int | None] = repeat(None, n)
        else:
            seeds = range(seed, seed + n)
        calls = [self.complete(messages, seed=own) for own in seeds]
        found = await asyncio.gather(*calls, return_exceptions=True)
        answers: list[Completion | None] = []
        failures = []
        for one in found:
            if isinstance(one, BaseException):
                failures.append(one)
                answers.append(None)
            else:
                answers.append(one)
        for failure in failures:
            unbilled = isinstance(failure, TransientEndpointError) and not failure.billed
            if len(failures) == n or not unbilled:
                raise failure
        return answers

    async def aclose(self) -> None:
        """Start no further calls; one that is under way in a thread ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    async def _answer(self, messages: Sequence[Message], seed: int | None) -> Answer:
        asked = {
            "messages": [message.sent for message in messages],
            "tools": list(fields_of(messages).get("tools", ())),
            "sampling": dict(self.parameters),
            "seed": seed,
        }
        call = partial(self._function, messages[-1].content, **{name: asked[name] for name in self._named})
        if self._is_async:
            answer = call()
        else:
            loop, context = asyncio.get_running_loop(), copy_context()
            answer = await loop.run_in_executor(self._threads, context.run, partial(in_user_code, call))
        if inspect.isawaitable(answer):
            return await answer
        return answer


_GIVEN = ("messages", "tools", "sampling", "seed")
"""What a function gets after the prompt, if it has parameters of these names."""


def _named(function: Answerer) -> tuple[str, ...]:
    """Return which of :data:`_GIVEN` a function has parameters for, after its first.

    Examples
    --------
    >>> _named(lambda prompt, seed: prompt), _named(lambda messages: messages), _named(str.upper)
    (('seed',), (), ())
    """
    names = {one.name for one in _further(function)}
    return tuple(name for name in _GIVEN if name in names)


def _further(function: Answerer) -> list[inspect.Parameter]:
    """Return the parameters after the first that can be given by their names."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):  # a function of C may have no signature
        return []
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [one for one in parameters if one.kind in by_name]


def _require_known_parameters(model: str, function: Answerer) -> None:
    given = f"it gets the prompt, and any of {', '.join(_GIVEN)} that it has parameters for"
    if inspect.isclass(function) and not issubclass(function, str):
        raise UserCodeError(f"model {model!r} is the class {function.__name__}: give an instance or a method")
    if not _takes_a_prompt(function):
        raise UserCodeError(f"model {model!r}: its function has no first parameter for the prompt; {given}")
    for one in _further(function):
        if one.default is one.empty and one.name not in _GIVEN:
            raise UserCodeError(f"model {model!r}: its function has the parameter {one.name!r}; {given}")


def _takes_a_prompt(function: Answerer) -> bool:
    """Return whether a function can be called with the prompt, as far as its signature says."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function of C may have no signature
        return True
    by_place = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
    )
    return any(one.kind in by_place for one in parameters)


def content_taken(function: Answerer) -> tuple[str, ...]:
    """Return the kinds of content that reach a function: images and sounds are in messages alone.

    Examples
    --------
    >>> content_taken(lambda prompt, tools: prompt)
    ('text', 'tools')
    """
    kinds = {"messages": ("image", "audio"), "tools": ("tools",)}
    return ("text", *(kind for name in _named(function) for kind in kinds.get(name, ())))


_SECRETS = ("_KEY", "_KEY_ID", "_TOKEN", "_SECRET", "_PASSWORD")
"""How the names of the variables end from which LiteLLM reads credentials."""


def litellm_model(name: str, model: str) -> Answerer:
    """Return a function that asks `model`, ``PROVIDER/MODEL`` as LiteLLM names it, for the model `name`."""
    # Without it the import asks GitHub for prices, three times where that is out of reach.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = library("litellm", f"model {name!r}: the endpoint litellm", "litellm")
    litellm.suppress_debug_info = True
    try:
        litellm.get_llm_provider(model)
    except litellm.BadRequestError:
        raise UsageError(
            f"model {name!r}: LiteLLM does not know the provider of {model!r}; write PROVIDER/MODEL, such as "
            "bedrock/MODEL or gemini/MODEL"
        ) from None
    seeded = "seed" in (litellm.get_supported_openai_params(model) or ())
    redact = Redactor(value for key, value in os.environ.items() if key.endswith(_SECRETS))
    return partial(_ask, ask=litellm.acompletion, model=model, seeded=seeded, redact=redact)


async def _ask(
    prompt: str,
    messages: Sequence[Any],
    tools: Sequence[Any],
    sampling: Mapping[str, Any],
    seed: int | None,
    *,
    ask: Any,
    model: str,
    seeded: bool,
    redact: Redactor,
) -> Completion:
    """Ask once; LiteLLM repeats nothing, so that every attempt is counted here."""
    asked: dict[str, Any] = {"num_retries": 0, "max_retries": 0, **sampling}
    asked |= {"model": model, "messages": list(messages)}
    if tools:
        asked["tools"] = list(tools)
    if seeded and seed is not None:
        asked["seed"] = seed
    started = time.perf_counter()
    try:
        answer = await ask(**asked)
    except Exception as error:
        status = getattr(error, "status_code", None)
        if not isinstance(status, int):
            raise
        headers = getattr(getattr(error, "response", None), "headers", None) or {}
        words = getattr(error, "message", str(error))
        raise from_status(
            status,
            {key.lower(): value for key, value in headers.items()},
            words,
            now=time.time(),
            redact=redact,
        ) from None
    (completion,) = read_completions(
        answer.model_dump(),
        text_of=chat_text,
        latency=time.perf_counter() - started,
        redact=redact,
        tools=bool(tools),
    )
    assert completion is not None
    return completion
