"""The ``models`` section: whom to ask, where, with which parameters and limits."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from adaptive_eval.config.discovery_config import DiscoveryConfig, Endpoints
from adaptive_eval.config.limits_config import Concurrency, LimitsConfig, RateLimitConfig, auto_or_up_to
from adaptive_eval.config.scorers import ScorerPriceConfig
from adaptive_eval.config.section import IN_LITELLM, MIMIC, PYTHON, EnvName, Label, Seconds, Section
from adaptive_eval.errors import UsageError

AUTO_CONCURRENCY = 16
"""Requests in flight to begin with where `concurrency` is ``auto``."""


def _stop(value: Any) -> Any:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, tuple) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise ValueError("write one text, or a list of texts, at which the answer ends")
    return value


def _logprobs(value: Any) -> Any:
    if value is None or isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 20):
        return value
    raise ValueError(f"{value!r} is neither true nor false nor a whole number from 0 to 20")


def _batch(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(
            f"{value!r:.60} is neither true nor false nor a mapping such as {{gather: 5s, poll: 30s}}"
        )
    return {True: {}, False: None}.get(value, value) if isinstance(value, bool) else value


def _header(value: Any) -> Any:
    return {"value": value} if isinstance(value, str) else value


class SamplingConfig(Section):
    """Parameters of the request, sent exactly as written; absent ones are not sent.

    All others (``top_k``, ``presence_penalty``, …) go under ``extra_body``. The seed of each
    trial is derived from the run's ``seed``.
    """

    temperature: float | None = Field(
        default=None, ge=0, le=100, description="Sampling temperature; 0 is greedy."
    )
    top_p: float | None = Field(
        default=None, gt=0, le=1, description="Nucleus sampling: share of probability kept."
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Longest answer, in tokens.")
    max_completion_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Longest answer in tokens, reasoning included, for servers that want it by this name.",
    )
    stop: Annotated[str | tuple[str, ...] | None, BeforeValidator(_stop)] = Field(
        default=None, description="Text or texts at which the answer ends."
    )
    logprobs: Annotated[bool | int | None, BeforeValidator(_logprobs)] = Field(
        default=None,
        description="Ask for log-probabilities of the answer's tokens: true, or with api: completions the "
        "number of alternatives per token.",
    )
    top_logprobs: int | None = Field(
        default=None, ge=0, le=20, description="Number of alternatives per token to ask for."
    )
    reasoning_effort: str | None = Field(
        default=None, min_length=1, description="How long a reasoning model thinks."
    )

    def as_sent(self) -> dict[str, Any]:
        r"""Return the parameters as they go into the request.

        Examples
        --------
        >>> SamplingConfig(temperature=0.6, stop=("\n\n",)).as_sent()
        {'temperature': 0.6, 'stop': ['\n\n']}
        """
        sent = self.model_dump(exclude_unset=True)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in sent.items()}

    @property
    def token_limit(self) -> int | None:
        """Most tokens one answer can have, or None without a limit."""
        return self.max_completion_tokens if self.max_tokens is None else self.max_tokens


class PriceConfig(ScorerPriceConfig):
    """Prices in USD per million tokens."""

    cached_input: float | None = Field(
        default=None, ge=0, description="USD per million prompt tokens found in the cache."
    )


class BatchConfig(Section):
    """Requests by OpenAI's or Anthropic's batch interface, where `batch: true` or a mapping says so."""

    gather: Seconds = Field(
        default=5.0, ge=0, le=3600, description="A batch is sent once no request has come for this time."
    )
    poll: Seconds = Field(default=30.0, gt=0, le=3600, description="Time between two looks at a batch.")


class TimeoutConfig(Section):
    """Time after which a request is cancelled: seconds, or a duration such as 10m."""

    total: Seconds = Field(
        default=600.0, gt=0, le=864_000, description="Time from sending the request to its last byte."
    )
    idle: Seconds = Field(
        default=120.0,
        gt=0,
        le=86_400,
        description="With stream: true, silence after which a request is cancelled.",
    )


class HeaderConfig(Section):
    """A header's value: a text, or the environment variable that holds it."""

    value: str | None = Field(default=None, min_length=1, description="The value itself; never a secret.")
    env: EnvName | None = Field(
        default=None, description="Name of the environment variable that holds the value."
    )

    def read(self, name: str) -> str:
        """Return the value of the header `name`."""
        if self.env is None:
            return self.value or ""
        value = os.environ.get(self.env)
        if not value:
            raise UsageError(f"header {name}: the environment variable {self.env} is not set")
        return value


def _provided(schema: dict[str, Any]) -> None:
    """Say in the schema that a provider brings the endpoints."""
    schema["required"] = [name for name in schema["required"] if name != "endpoints"]
    schema["anyOf"] = [{"required": ["endpoints"]}, {"required": ["provider"]}]


class ModelConfig(Section):
    """One model: its label in reports and how it is asked."""

    model_config = ConfigDict(json_schema_extra=_provided)

    name: Label = Field(description="The label in reports.")
    model: str | None = Field(
        default=None, min_length=1, max_length=300, description="The id sent to the server; default: name."
    )
    provider: str | None = Field(
        default=None,
        description="Provider, in place of endpoints and api_key_env: openai, openrouter, mistral, "
        "ollama and others (docs/providers.md).",
    )
    endpoints: Endpoints = Field(
        description="Base URLs of its servers (a pool), mimic for the local biased coins, or "
        "python:FILE.py:FUNCTION for a function of yours, litellm for LiteLLM's library; or discover: file "
        "or command, where servers come and go.",
    )
    api: Literal["chat", "completions", "responses", "messages"] = Field(
        default="chat",
        description="Which kind of request is sent: chat, completions for a model that continues a text, "
        "responses for OpenAI's Responses API, or messages for Anthropic's Messages API.",
    )
    accepts: tuple[Literal["text", "image", "audio", "tools"], ...] | None = Field(
        default=None,
        description="Content that it accepts; tasks with other content are refused. Default: text only for "
        "api: completions, no audio for api: responses and messages, else everything.",
    )
    api_key_env: EnvName | None = Field(
        default=None, description="Name of the environment variable that holds the API key."
    )
    headers: dict[
        str, Annotated[HeaderConfig, BeforeValidator(_header, json_schema_input_type=str | HeaderConfig)]
    ] = Field(default_factory=dict, description="Further headers: a text, or {env: NAME} for a secret.")
    sampling: SamplingConfig = Field(default_factory=SamplingConfig, description="Parameters of the request.")
    extra_body: dict[str, Any] = Field(
        default_factory=dict, description="Further fields of the request, sent as written."
    )
    system: str | None = Field(
        default=None,
        min_length=1,
        description="Its own system message, in place of the tasks': a text, or a .txt or .md file.",
    )
    prompt: str | None = Field(
        default=None,
        min_length=1,
        description="Its own prompt, in place of the tasks': a text with {input}, or a .txt or .md file.",
    )
    concurrency: Concurrency = Field(
        default="auto",
        description="Trials in flight at once, over all servers; or auto: as many as the servers can take.",
    )
    samples_per_request: Annotated[int | Literal["auto"], auto_or_up_to(128)] = Field(
        default=1,
        description="Answers to a question that one request asks for: its prompt is paid once. auto: as "
        "many as are worth it for the prompts and answers of the run.",
    )
    deterministic: bool = Field(
        default=False,
        description="Whether you vouch that it gives the same answer every time; a few repeats test it, then "
        "each question is asked once.",
    )
    send_seed: bool = Field(
        default=True, description="Send each trial's seed; false for a server that refuses the field seed."
    )
    stream: bool = Field(
        default=False,
        description="Let answers arrive piece by piece, so that a hung one is noticed by its silence.",
    )
    batch: Annotated[
        BatchConfig | None, BeforeValidator(_batch, json_schema_input_type=bool | BatchConfig | None)
    ] = Field(
        default=None,
        description="Ask in batches (OpenAI's Batch interface; with api: messages, Anthropic's): slower, at "
        "half the price. concurrency is the size of a batch; auto: what the forecast says is needed.",
    )
    timeout: TimeoutConfig = Field(
        default_factory=TimeoutConfig, description="Time after which a request is cancelled."
    )
    rate_limit: RateLimitConfig | None = Field(
        default=None, description="Requests and tokens a minute, over all its servers."
    )
    price: PriceConfig | None = Field(default=None, description="USD per million tokens.")
    budget: LimitsConfig = Field(
        default_factory=LimitsConfig,
        description="Budget of this model; when it ends, its open pairs stay undecided.",
    )

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its servers as written; none where they are found."""
        return self.endpoints if isinstance(self.endpoints, tuple) else ()

    @property
    def discovery(self) -> DiscoveryConfig | None:
        """The way its servers are found; None where the config lists them."""
        return None if isinstance(self.endpoints, tuple) else self.endpoints

    @property
    def model_id(self) -> str:
        """The model id sent to the server."""
        return self.model if self.model is not None else self.name

    @property
    def in_flight(self) -> int:
        """Most requests in flight at once; where that adapts itself, those to begin with."""
        return AUTO_CONCURRENCY if self.concurrency == "auto" else self.concurrency

    @property
    def function(self) -> str | None:
        """What answers in this process, ``module:function`` or ``litellm``; None where it is served."""
        named = self.addresses[0] if self.addresses else ""
        return named.removeprefix(PYTHON) if named == IN_LITELLM or named.startswith(PYTHON) else None

    @property
    def uses_mimic(self) -> bool:
        """Whether the run's own server of biased coins answers for this model."""
        return MIMIC in self.addresses
