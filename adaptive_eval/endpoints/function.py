"""A user's function in the place of an endpoint."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias, cast

from adaptive_eval.endpoints.answer import MOST_TOKENS
from adaptive_eval.errors import TransientEndpointError, UsageError
from adaptive_eval.trial import Completion, Message, Usage

__all__ = ["Answerer", "FunctionEndpoint"]

Answer: TypeAlias = str | Completion
Answerer: TypeAlias = Callable[[str], Answer | Awaitable[Answer]]
"""From the prompt to the answer; an ``async`` function, or a plain one, which runs in a thread."""

_OTHER_LOOP = re.compile("event loop is closed|(?:different|another) (?:event )?loop", re.IGNORECASE)
"""Messages of asyncio where an object of another event loop is used."""


class FunctionEndpoint:
    """Answers by calling a function.

    A ``TimeoutError`` or ``OSError`` (``ConnectionError`` among them) that it raises is a failed request,
    which is tried again; any other exception is a mistake in the function and ends the evaluation.

    Examples
    --------
    >>> endpoint = FunctionEndpoint("shouts", str.upper)
    >>> asyncio.run(endpoint.complete([Message("user", "four")], seed=None)).text
    'FOUR'
    """

    def __init__(self, name: str, function: Answerer) -> None:
        if not callable(function):
            raise UsageError(f"model {name!r} is {function!r:.100}: give a function from prompt to answer")
        self._name = name
        self._function = function
        asynchronous = getattr(function, "__call__", function)  # noqa: B004 - of an object with __call__
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(asynchronous)

    @property
    def url(self) -> str:
        """What stands for an address in the run file."""
        return f"python:{self._name}"

    def body(self, messages: Sequence[Message], *, seed: int | None, n: int = 1) -> Mapping[str, Any]:
        """Return what is asked, as it is stored."""
        asked = [{"role": message.role, "content": message.content} for message in messages]
        return {"model": self._name, "messages": asked, "seed": seed}

    async def alive(self) -> bool:
        """Return True: there is no server that could be away."""
        return True

    async def complete(self, messages: Sequence[Message], *, seed: int | None) -> Completion:
        """Ask once."""
        started = time.monotonic()
        try:
            answer = await self._answer(messages[-1].content)
        except (TimeoutError, OSError) as error:
            kind = "timeout" if isinstance(error, TimeoutError) else "connection"
            raise TransientEndpointError(f"{type(error).__name__}: {error}", kind=kind) from None
        except RuntimeError as error:
            if not _OTHER_LOOP.search(str(error)):
                raise
            raise UsageError(
                f"model {self._name!r}: {error}. Every call of evaluate has its own event loop, and an "
                "asynchronous client belongs to the loop that first used it: make the client within the "
                "function, or await evaluate_async for all evaluations in one loop"
            ) from error
        if isinstance(answer, Completion):
            return self._checked(answer)
        if not isinstance(answer, str):
            raise UsageError(f"model {self._name!r} returned {answer!r:.100}, not text")
        return Completion(answer, "stop", latency=time.monotonic() - started, model=self._name)

    def _checked(self, answer: Completion) -> Completion:
        """Return a completion of the function, unless a figure of it can be neither stored nor added up."""
        for field in fields(Usage):
            value = getattr(answer.usage, field.name)
            if not (isinstance(value, int) and 0 <= value <= MOST_TOKENS):
                raise UsageError(
                    f"model {self._name!r} returned usage.{field.name} {value!r:.40}: give a whole number "
                    f"from 0 to {MOST_TOKENS:,}, or leave it out"
                )
        for name, seconds in (("latency", answer.latency), ("pause", answer.pause)):
            if not (isinstance(seconds, int | float) and 0.0 <= seconds < math.inf):
                raise UsageError(
                    f"model {self._name!r} returned {name} {seconds!r:.40}: give seconds, 0 or more, or "
                    "leave it out"
                )
        return answer

    async def sample(self, messages: Sequence[Message], *, seed: int | None, n: int) -> Sequence[Completion]:
        """Ask `n` times at once; see :meth:`complete`."""
        return await asyncio.gather(*(self.complete(messages, seed=seed) for _ in range(n)))

    async def _answer(self, prompt: str) -> Answer:
        if self._is_async:
            return await cast("Awaitable[Answer]", self._function(prompt))
        answer = await asyncio.to_thread(self._function, prompt)
        return await answer if inspect.isawaitable(answer) else answer
