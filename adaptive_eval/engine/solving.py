"""A trial that a user's function answers with several calls of the model."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeAlias

from adaptive_eval.errors import (
    BY_USER_CODE,
    EndpointError,
    PermanentEndpointError,
    UsageError,
    UserCodeError,
    last_line,
    user_code,
)
from adaptive_eval.trial import OUT_OF_CALLS, Completion, Conversation, Message, Usage, without_media

Ask: TypeAlias = Callable[[Conversation, int], Awaitable[Completion]]
"""Asks for the answer to one call, the number of which is given."""


class OutOfCalls(Exception):
    """The trial may make no further call, or none with so long a prompt."""


@dataclass(frozen=True, slots=True)
class Solver:
    """A user function that answers a trial, and its limits."""

    name: str
    function: Callable[..., Any]
    calls: int
    prompt_tokens: int  # most tokens of all prompts of a trial

    def __post_init__(self) -> None:
        if not inspect.iscoroutinefunction(self.function):
            raise UserCodeError(f"solver {self.name}: write async def, since it awaits the model")

    async def solve(
        self, ask: Ask, asked: Sequence[Message], bound: Callable[[Sequence[Message]], int]
    ) -> Completion:
        """Return the answer to a trial, with the usage of all its calls."""
        model = ModelHandle(self, ask, asked, bound)
        try:
            with user_code():
                answer = await self.function(model, [message.sent for message in asked])
        except OutOfCalls:
            answer = Completion("", OUT_OF_CALLS)
        except (EndpointError, UsageError):
            raise
        except Exception as error:
            raise self.mistake(f"raised {last_line(error)}") from error
        if isinstance(answer, str):
            answer = Completion(answer, "stop")
        if not isinstance(answer, Completion):
            raise self.mistake(f"returned {answer!r:.100}: return a text, or an answer")
        return model.summed(answer)

    def mistake(self, words: str) -> EndpointError:
        """Return the failure that stops the model, of whose answers the function made this."""
        return PermanentEndpointError(f"solver {self.name} {words}", kind=BY_USER_CODE)


Solvers: TypeAlias = Mapping[str, Solver]
"""Solvers by task."""


class ModelHandle:
    """The model, as a solver calls it: one call after another, each with the run's limits and retries."""

    def __init__(
        self, solver: Solver, ask: Ask, asked: Sequence[Message], bound: Callable[[Sequence[Message]], int]
    ) -> None:
        self._solver = solver
        self._ask = ask
        if isinstance(asked, Conversation):
            self._asked = asked
        else:
            self._asked = Conversation(asked)
        self._bound = bound
        self._lock = asyncio.Lock()
        self._seen: list[dict[str, Any]] = []
        self._answers: list[Completion] = []
        self._calls: list[dict[str, Any]] = []

    async def __call__(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> Completion:
        """Return the model's answer to these messages; `tools` replaces the tools of the task.

        Raises
        ------
        OutOfCalls
            Nothing is left of the solver's `calls` or `prompt_tokens`.
        EndpointError
            The call has failed, and so has every further attempt.
        """
        if set(fields) - {"tools"}:
            raise self._solver.mistake(f"calls with {fields!r:.80}: a call takes messages and tools")
        async with self._lock:
            asked = Conversation(
                map(Message.from_mapping, messages),
                {**self._asked.fields, **fields},
                self._asked.image_tokens,
            )
            spent = sum(answer.usage.prompt_tokens for answer in self._answers)
            if len(self._answers) >= self._solver.calls:
                raise OutOfCalls(f"all {self._solver.calls} calls of the trial are made")
            if spent + self._bound(asked) > self._solver.prompt_tokens:
                raise OutOfCalls(f"{spent:,} of {self._solver.prompt_tokens:,} prompt tokens are used")
            answer = await self._ask(asked, len(self._answers))
            self._answers.append(answer)
            self._note(asked, answer)
            return answer

    def summed(self, answer: Completion) -> Completion:
        """Return the answer to the trial with what all calls have cost, and the calls themselves."""
        last = answer
        if self._answers:
            last = self._answers[-1]
        usage, latency, reasoning = Usage(), 0.0, 0
        for one in self._answers:
            usage += one.paid
            latency += one.latency
            reasoning += one.reasoning_tokens
        return replace(
            answer,
            usage=usage,
            latency=latency,
            model=last.model,
            response_id=last.response_id,
            share=None,
            pause=0.0,
            reasoning_tokens=reasoning,
            calls=tuple(self._calls),
        )

    def _note(self, asked: Conversation, answer: Completion) -> None:
        """Keep a call, with those of its messages that the one before did not have."""
        sent = [without_media(message.sent) for message in asked]
        known = 0
        if sent[: len(self._seen)] == self._seen:
            known = len(self._seen)
        self._seen = sent
        note: dict[str, Any] = {"messages": sent[known:], "text": answer.text}
        for name in ("reasoning", "tool_calls"):
            if getattr(answer, name):
                note[name] = getattr(answer, name)
        usage = [answer.usage.prompt_tokens, answer.usage.completion_tokens]
        self._calls.append({**note, "finish_reason": answer.finish_reason, "tokens": usage})


def call_seed(seed: int, call: int | str) -> int:
    """Return the seed of a call of a trial: number 0 has the trial's own. Others have a number or a name.

    Examples
    --------
    >>> call_seed(7, 0), call_seed(7, 1)
    (7, 1207947808)
    """
    if call == 0:
        return seed
    return int.from_bytes(blake2b(f"{seed}:{call}".encode(), digest_size=4).digest()) % 2**31
