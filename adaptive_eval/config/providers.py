"""Providers by name: ``provider: openrouter`` is short for its address and the variable of its key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from adaptive_eval.config.document import write_document
from adaptive_eval.config.overrides import Override
from adaptive_eval.options.mistakes import Place, did_you_mean, not_one_of
from adaptive_eval.options.section import IN_LITELLM


def _hosted(url: str, key: str, **more: Any) -> Mapping[str, Any]:
    return {"endpoints": (url,), "api_key_env": key, **more}


def _local(port: int) -> Mapping[str, Any]:
    return {"endpoints": (f"http://localhost:{port}/v1",)}


PROVIDERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "anthropic": _hosted("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", api="messages"),
        "deepseek": _hosted("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", accepts=("text", "tools")),
        "gemini": _hosted("https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY"),
        "groq": _hosted("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        "litellm": {"endpoints": (IN_LITELLM,)},
        "llama.cpp": _local(8080),
        "lm-studio": _local(1234),
        # It refuses fields that it does not know, and calls the seed random_seed.
        "mistral": _hosted("https://api.mistral.ai/v1", "MISTRAL_API_KEY", send_seed=False),
        "ollama": _local(11434),
        "openai": _hosted("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "openrouter": _hosted("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        "sglang": _local(30000),
        "together": _hosted("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "vllm": _local(8000),
    }
)
"""Settings of a model's section, as each provider documents them; any key can be overridden."""


def with_providers(data: Any) -> tuple[list[Override], list[tuple[Place, str]]]:
    """Return the models of a config that name a provider, written out, and the names that are none.

    Examples
    --------
    >>> (override,), _ = with_providers({"models": ({"name": "m", "provider": "ollama"},)})
    >>> override.path, override.value
    (('models', 0), {'endpoints': ('http://localhost:11434/v1',), 'name': 'm'})
    """
    overrides: list[Override] = []
    problems: list[tuple[Place, str]] = []
    models = data.get("models") if isinstance(data, Mapping) else None
    for number, given in enumerate(models if isinstance(models, tuple) else ()):
        if not isinstance(given, Mapping) or not isinstance(given.get("provider"), str):
            continue
        name = given["provider"]
        if name not in PROVIDERS:
            hint = did_you_mean(name, PROVIDERS)
            words = f"{name!r:.60} is none of {', '.join(PROVIDERS)}{hint}"
            words += "; docs/providers.md says how to reach Azure, Bedrock and others"
            problems.append((("models", number, "provider"), not_one_of(words)))
        model = {
            **PROVIDERS.get(name, _local(80)),
            **{key: value for key, value in given.items() if key != "provider"},
        }
        overrides.append(Override(("models", number), model, write_document(model)))
    return overrides, problems
