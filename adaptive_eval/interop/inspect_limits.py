"""Limits of a sample of Inspect: its requests stay within what budgets reserve for a trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from adaptive_eval.options.task_options import SolverConfig
from adaptive_eval.trial import IMAGE_TOKENS, Usage

_SENT = {"content", "tool_calls", "tool_call_id", "function"}
"""Fields of a message of Inspect that a model reads."""


@dataclass
class _Spent:
    """What the requests of one sample have cost so far; one without an answer counts at its most."""

    requests: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0


class SampleLimits:
    """Counts a model's requests for the samples of one task, and refuses those beyond the limits.

    A sample that fails is run again by Inspect; both runs share the limits. Other models that the task asks,
    such as a grader, are not counted.
    """

    def __init__(self, limits: SolverConfig, longest: int | None) -> None:
        self._limits = limits
        self._longest = longest  # most tokens of an answer
        self._spent: dict[tuple[str, int], _Spent] = {}

    def hold(self, model: Any) -> None:
        """Have every request of a model of Inspect, retries too, counted before it is sent."""
        generate = model.api.generate
        now = import_module("inspect_ai.solver._task_state").sample_state  # it has no public name

        async def held(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
            state = now()
            spent = self._spent.setdefault((str(state.sample_id), state.epoch), _Spent())
            prompt = most_prompt_tokens(input, tools)
            completion = (config.max_tokens or self._longest or 0) * (config.num_choices or 1)
            self._require(spent, prompt, completion)
            spent.requests += 1
            spent.prompt += prompt
            spent.completion += completion
            result = await generate(input=input, tools=tools, tool_choice=tool_choice, config=config)
            output = result[0] if isinstance(result, tuple) else result
            usage = getattr(output, "usage", None)
            if usage is not None:
                paid = usage_of([usage])
                spent.prompt += paid.prompt_tokens - prompt
                spent.completion += paid.completion_tokens - completion
                spent.cached += paid.cached_tokens
            return result

        model.api.generate = held

    def _require(self, spent: _Spent, prompt: int, completion: int) -> None:
        """Raise Inspect's error of a limit where another request does not fit."""
        most, longest = self._limits, self._longest
        checks = [
            ("calls", spent.requests + 1, most.calls),
            ("prompt_tokens", spent.prompt + prompt, most.prompt_tokens),
        ]
        if longest is not None:
            checks.append(("calls times max_tokens", spent.completion + completion, most.calls * longest))
        for name, value, limit in checks:
            if value > limit:
                words = f"the next request may take {value:,}, and solver.{name} is {limit:,}"
                error = import_module("inspect_ai.util").LimitExceededError
                raise error("custom", value=value, limit=limit, message=words)

    def taken(self, sample: str, epoch: int) -> Usage:
        """Return what a sample that has ended has cost, and forget it."""
        spent = self._spent.pop((sample, epoch), _Spent())
        return Usage(spent.prompt, spent.completion, spent.cached)


def usage_of(usages: Sequence[Any]) -> Usage:
    """Return the sum of usages of Inspect, whose input tokens leave out what a cache read or wrote."""
    total = Usage()
    for one in usages:
        read, written = one.input_tokens_cache_read or 0, one.input_tokens_cache_write or 0
        total += Usage(one.input_tokens + read + written, one.output_tokens, read)
    return total


def most_prompt_tokens(messages: Sequence[Any], tools: Sequence[Any]) -> int:
    """Return an upper bound on the tokens of a prompt of Inspect; see ``build.model_clients.prompt_bound``.

    Raises
    ------
    ValueError
        A message holds audio, video or a document, whose tokens nothing bounds.
    """
    tokens = 64
    for message in messages:
        tokens += 64 + len(message.model_dump_json(include=_SENT, exclude_none=True).encode())
        for part in message.content if isinstance(message.content, list) else ():
            if part.type == "image":
                tokens += IMAGE_TOKENS
            elif part.type not in ("text", "reasoning"):
                raise ValueError(f"the tokens of {part.type} content cannot be bounded; leave solver out")
    for tool in tools:
        tokens += 1024 + len(json.dumps(tool.model_dump(mode="json"), indent=4))
    return tokens
