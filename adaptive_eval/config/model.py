"""The ``models`` section: whom to ask, where, with which parameters and limits."""

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag

from adaptive_eval.options.limit_options import (
    AUTO_CONCURRENCY,
    BudgetSpec,
    Concurrency,
    Price,
    RateLimit,
    SharedLimits,
    auto_or_up_to,
)
from adaptive_eval.options.request_options import Batch, Header, SamplingConfig, TimeoutConfig
from adaptive_eval.options.section import (
    IN_LITELLM,
    MIMIC,
    PYTHON,
    Endpoint,
    EnvName,
    Label,
    Seconds,
    Section,
)

MOST_SAMPLES = 8
"""The most samples of a request for ``auto``: more take half as many answers again of early decisions."""


class DiscoveryConfig(Section):
    """Servers that come and go, listed in one file or several: host:port or a URL on each line."""

    discover: Literal["file"]
    """They are written into files."""
    path: str = Field(min_length=1, max_length=1000)
    """The file, or a pattern such as servers/*.txt; from the config's folder."""
    every: Seconds = Field(default=10.0, gt=0, le=86_400)
    """Seconds from one reading to the next."""
    patience: Seconds = Field(default=600.0, ge=0, le=8_640_000)
    """Seconds without any server, the first one included, after which the model is stopped."""
    each: SharedLimits = Field(default_factory=SharedLimits)
    """Limits of each server that is found, unless servers has its address."""

    @property
    def source(self) -> str:
        """The source to read and how; models with equal sections share one source."""
        return json.dumps(self.model_dump(mode="json", exclude={"patience", "each"}), sort_keys=True)


def _how(value: Any) -> str:
    if isinstance(value, dict | Section):
        return "found"
    return "listed"


Endpoints: TypeAlias = Annotated[
    Annotated[tuple[Endpoint, ...], Field(min_length=1), Tag("listed")]
    | Annotated[DiscoveryConfig, Tag("found")],
    Discriminator(_how),
]


def _provided(schema: dict[str, Any]) -> None:
    """Say in the schema that a provider brings the endpoints."""
    schema["required"] = [name for name in schema["required"] if name != "endpoints"]
    schema["anyOf"] = [{"required": ["endpoints"]}, {"required": ["provider"]}]


class ModelConfig(Section):
    """One model: its label in reports and how it is asked."""

    model_config = ConfigDict(json_schema_extra=_provided)

    name: Label
    """The label in reports."""
    model: str | None = Field(default=None, min_length=1, max_length=300)
    """The id sent to the server; default: name."""
    provider: str | None = None
    """Provider, in place of endpoints and api_key_env: openai, openrouter, mistral, ollama and others
    (docs/providers.md)."""
    endpoints: Endpoints
    """Base URLs of its servers (a pool), mimic for the local biased coins, or python:FILE.py:FUNCTION for a
    function of yours, litellm for LiteLLM's library; or discover: file, where servers come and
    go."""
    api: Literal["chat", "completions", "responses", "messages"] = "chat"
    """Which kind of request is sent: chat, completions for a model that continues a text, responses for
    OpenAI's Responses API, or messages for Anthropic's Messages API."""
    accepts: tuple[Literal["text", "image", "audio", "tools"], ...] | None = None
    """Content that it accepts; tasks with other content are refused. Default: text only for api: completions,
    no audio for api: responses and messages, else everything."""
    api_key_env: EnvName | None = None
    """Name of the environment variable that holds the API key."""
    headers: dict[str, Header] = Field(default_factory=dict)
    """Further headers: a text, or {env: NAME} for a secret."""
    sampling: SamplingConfig = Field(default_factory=SamplingConfig)
    """Parameters of the request."""
    extra_body: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request, sent as written."""
    system: str | None = Field(default=None, min_length=1)
    """Its own system message, in place of the tasks': a text, or a .txt or .md file."""
    prompt: str | None = Field(default=None, min_length=1)
    """Its own prompt, in place of the tasks': a text with {input}, or a .txt or .md file."""
    concurrency: Concurrency = "auto"
    """Trials in flight at once, over all servers; or auto: as many as the servers can take."""
    samples_per_request: Annotated[int | Literal["auto"], auto_or_up_to(128)] = 1
    """Answers to a question that one request asks for: its prompt is paid once. auto: as many as are worth it
    for the prompts and answers of the run."""
    deterministic: bool = False
    """Whether it gives the same answer every time, by your word; a few repeats test it, then each question is
    asked once."""
    send_seed: bool = True
    """Send each trial's seed; false for a server that refuses the field seed."""
    stream: bool = False
    """Receive answers as streams, so that timeout.idle ends a request that hangs."""
    batch: Batch = None
    """Ask in batches (OpenAI's Batch interface; with api: messages, Anthropic's): slower, at half the price.
    concurrency is the size of a batch; auto: what the forecast says is needed."""
    timeout: TimeoutConfig = Field(default_factory=TimeoutConfig)
    """Time after which a request is cancelled."""
    rate_limit: RateLimit | None = None
    """Requests and tokens a minute, over all its servers."""
    price: Price | None = None
    """USD per million tokens."""
    budget: BudgetSpec = Field(default_factory=BudgetSpec)
    """Budget of this model; when it ends, its open pairs stay undecided."""

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its servers as written; none if they are found."""
        if isinstance(self.endpoints, tuple):
            return self.endpoints
        return ()

    @property
    def discovery(self) -> DiscoveryConfig | None:
        """The way its servers are found; None if the config lists them."""
        if isinstance(self.endpoints, tuple):
            return None
        return self.endpoints

    @property
    def model_id(self) -> str:
        """The model id sent to the server."""
        if self.model is not None:
            return self.model
        return self.name

    @property
    def idle_timeout(self) -> float | None:
        """Seconds of silence after which a request is cancelled; None if answers arrive whole."""
        if self.stream:
            return self.timeout.idle
        return None

    @property
    def in_flight(self) -> int:
        """Most requests in flight at once; if that adapts itself, those to begin with."""
        if self.concurrency == "auto":
            return AUTO_CONCURRENCY
        return self.concurrency

    @property
    def function(self) -> str | None:
        """What answers in this process, ``module:function`` or ``litellm``; None if it is served."""
        named = ""
        if self.addresses:
            named = self.addresses[0]
        if named == IN_LITELLM or named.startswith(PYTHON):
            return named.removeprefix(PYTHON)
        return None

    @property
    def uses_mimic(self) -> bool:
        """Whether the run's own server of biased coins answers for this model."""
        return MIMIC in self.addresses
