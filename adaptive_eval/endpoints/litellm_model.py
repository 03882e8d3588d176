"""A model that LiteLLM's library reaches, in the place of a user's function: ``endpoints: [litellm]``."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from adaptive_eval.endpoints.answer import chat_text, read_completions
from adaptive_eval.endpoints.failures import from_status
from adaptive_eval.endpoints.function import Answerer
from adaptive_eval.endpoints.redaction import Redactor
from adaptive_eval.errors import UsageError
from adaptive_eval.library import library
from adaptive_eval.trial import Completion

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
