"""From a config to what answers for its models: endpoints, functions, solvers, and their limits."""

import json
import resource
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from adaptive_eval.config import RunConfig
from adaptive_eval.config.model import MOST_SAMPLES, ModelConfig
from adaptive_eval.endpoints.apis import (
    AnthropicMessages,
    OpenAIChat,
    OpenAICompletions,
    OpenAIResponses,
)
from adaptive_eval.endpoints.batches import BatchOptions
from adaptive_eval.endpoints.function import Answerer, FunctionEndpoint, litellm_model
from adaptive_eval.endpoints.openai_endpoint import OpenAIEndpoint
from adaptive_eval.engine.discovery import Discovery
from adaptive_eval.engine.independence import temperature_of
from adaptive_eval.engine.limits import (
    MOST,
    BatchRounds,
    ConcurrencyLimit,
    FixedConcurrency,
)
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.protocols import Endpoint
from adaptive_eval.engine.solving import Solver, Solvers
from adaptive_eval.errors import UsageError, UserCodeError, last_line, user_code
from adaptive_eval.options.limit_options import RateLimit, SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.options.section import IN_LITELLM, MIMIC, PYTHON
from adaptive_eval.scoring.scorer import asked_times
from adaptive_eval.tasks.sources import modules_of
from adaptive_eval.trial import IMAGE_TOKENS, Conversation, Message
from adaptive_eval.views.numbers import listing

_APIS: Mapping[str, type[OpenAIEndpoint]] = {
    "chat": OpenAIChat,
    "completions": OpenAICompletions,
    "responses": OpenAIResponses,
    "messages": AnthropicMessages,
}

_MOST_THREADS = 128
"""Default number of concurrent calls of a plain function; threads are started as needed."""

ModelEndpoint: TypeAlias = OpenAIEndpoint | FunctionEndpoint
"""The endpoint of a model of a config."""


CONNECT_SECONDS = 10.0
"""Time to establish a connection."""


def endpoints_of(
    models: Iterable[ModelConfig],
    mimic_url: str | None,
    functions: Mapping[str, Answerer] = MappingProxyType({}),
    run: str = "",
    notes: Path | None = None,
) -> dict[str, tuple[ModelEndpoint, ...]]:
    """Return what answers for each of `models`: its function, or its pool of servers.

    `mimic_url` stands for the word mimic; by the name `run` and the file `notes` a session finds batches of
    an earlier one.
    """
    pools: dict[str, tuple[ModelEndpoint, ...]] = {}
    wrong: dict[str, list[str]] = {}
    for model in models:
        if model.name in functions:
            pools[model.name] = (_function_endpoint(model, functions[model.name]),)
            continue
        try:
            pools[model.name] = tuple(
                _endpoint(model, address, mimic_url, run, notes) for address in model.addresses
            )
        except UsageError as error:
            wrong.setdefault(str(error), []).append(model.name)
    if wrong:
        found = [f"{listing(names)}: {words}" for words, names in wrong.items()]
        if len(found) == 1:
            words = found[0]
        else:
            words = "\n  ".join([f"{len(found)} mistakes", *found])
        raise UsageError(words, code="endpoint/setup")
    return pools


def model_clients_of(
    config: RunConfig,
    endpoints: Mapping[str, Sequence[Endpoint]],
    retry: RetryConfig,
    samples: Mapping[str, int] = MappingProxyType({}),
    discoveries: Mapping[str, Discovery] = MappingProxyType({}),
    solvers: Solvers = MappingProxyType({}),
) -> dict[str, ModelClient]:
    """Return how every model is asked."""
    within = concurrency_within(config, most_connections())
    return {
        model.name: ModelClient(
            endpoints[model.name],
            _limit(model, within, config.goal.kind),
            retry,
            samples=samples.get(model.name, 1),
            rate=model.rate_limit or RateLimit(),
            prompt_tokens=prompt_bound,
            answer_tokens=model.sampling.token_limit or 0,
            solvers=solvers,
            batched=model.batch is not None,
            repeats=model.deterministic or asked_temperature(model) == 0.0,
            time_limit=model.timeout.total,
            discovery=discoveries.get(model.name),
        )
        for model in config.models
    }


def asked_temperature(model: ModelConfig) -> float:
    """Return the temperature at which a model is asked; 0 if it takes the likeliest token."""
    return temperature_of({**model.sampling.as_sent(), **model.extra_body})


def _limit(model: ModelConfig, within: Mapping[str, int], goal: str) -> ConcurrencyLimit | None:
    """Return how many trials of a model are in flight; None if that is up to its servers."""
    if model.concurrency != "auto":
        return FixedConcurrency(within.get(model.name, model.concurrency))
    if model.batch is None:
        return None
    if goal == "budget":
        return BatchRounds(BatchRounds.most)
    return BatchRounds()


def server_limits(config: RunConfig, endpoints: Mapping[str, Sequence[Endpoint]]) -> dict[str, SharedLimits]:
    """Return the limits of servers by the address under which they are asked."""
    asked = {
        written: endpoint.url
        for model in config.models
        for written, endpoint in zip(model.addresses, endpoints[model.name], strict=False)
    }
    return {asked.get(server.url, server.url): server for server in config.servers}


def prompt_bound(messages: Sequence[Message]) -> int:
    """Upper bound on a prompt's tokens: no tokenizer makes more tokens than bytes.

    The chat template adds to it: 64 tokens a message cover the templates in use. Tools are written as
    indented JSON at most, with a page on how to call them. A sound has at most a token for 20 bytes: models
    make up to 32 tokens of a second, and codecs 750 bytes and more. An image has what the task says.
    """
    tokens, image = 64, IMAGE_TOKENS
    if isinstance(messages, Conversation):
        image = messages.image_tokens
        for value in messages.fields.values():
            tokens += len(json.dumps(value, indent=4)) + 1024
    for message in messages:
        tokens += len(message.content.encode("utf-8", "surrogatepass")) + 64
        if message.whole is None:
            continue
        tokens += len(json.dumps(message.whole.get("tool_calls", "")))
        for part in message.media:
            if part["type"] == "image_url":
                tokens += image
            else:
                tokens += len(part["input_audio"]["data"]) // 20 + 512
    return tokens


def _function_endpoint(model: ModelConfig, function: Answerer) -> FunctionEndpoint:
    concurrency = _MOST_THREADS
    if model.concurrency != "auto":
        concurrency = model.concurrency
    return FunctionEndpoint(
        model.name,
        function,
        url=model.addresses[0],
        parameters={**model.sampling.as_sent(), **model.extra_body},
        timeout=model.timeout.total,
        concurrency=concurrency,
    )


def _endpoint(
    model: ModelConfig, address: str, mimic_url: str | None, run: str, notes: Path | None
) -> OpenAIEndpoint:
    if address == MIMIC:
        assert mimic_url is not None
        address = mimic_url
    return endpoint_at(model, address, run, notes)


def endpoint_at(model: ModelConfig, address: str, run: str = "", notes: Path | None = None) -> OpenAIEndpoint:
    """Return the client for `model` at a base URL."""
    headers = {name: header.resolve(name) for name, header in model.headers.items()}
    samples, batch = model.samples_per_request, None
    if model.batch is not None:
        batch = BatchOptions(f"{run} {model.name}", model.batch, notes)
    if samples == "auto":
        most_answers = MOST_SAMPLES
    else:
        most_answers = samples
    return _APIS[model.api](
        address,
        model.model_id,
        sampling=model.sampling.as_sent(),
        extra_body=model.extra_body,
        headers=headers,
        send_seed=model.send_seed,
        api_key_env=model.api_key_env,
        connect_timeout=min(CONNECT_SECONDS, model.timeout.total),
        total_timeout=model.timeout.total,
        idle_timeout=model.idle_timeout,
        concurrency=_most_in_flight(model),
        most_answers=most_answers,
        batch=batch,
    )


def _most_in_flight(model: ModelConfig) -> int:
    if model.concurrency != "auto":
        return model.concurrency
    if model.batch is None:
        return MOST
    return BatchRounds.most


def functions_of(config: RunConfig) -> dict[str, Answerer]:
    """Return the function of every model that is one, by the name of the model."""
    functions = {}
    for model in config.models:
        if model.function == IN_LITELLM:
            functions[model.name] = litellm_model(model.name, model.model_id)
        elif model.function is not None:
            functions[model.name] = _function(model.function, config.base_dir)
    return functions


def solvers_of(config: RunConfig) -> dict[str, Solver]:
    """Return the solver of every task that has one, by the name of the task."""
    found = {}
    for task in config.tasks:
        name = None
        if task.solver is not None:
            name = task.solver.function
        if task.solver is not None and name is not None:
            function = _function(name.removeprefix(PYTHON), config.base_dir)
            found[task.name] = Solver(name, function, task.solver.calls, task.solver.prompt_tokens)
        elif task.answers is not None:
            count = task.answers.k
            ask = asked_times(count, task.answers.by, config.on.missing)
            found[task.name] = Solver(f"{count} answers", ask, count, sys.maxsize)
    return found


def _function(name: str, base: Path) -> Answerer:
    """Return the function ``module:function`` or ``path/to/file.py:function``, as from the folder `base`."""
    place, _, attribute = name.rpartition(":")
    folder, module = base, place
    if place.endswith(".py"):
        file = base / Path(place).expanduser()
        if not file.is_file():
            raise UserCodeError(
                f"{PYTHON}{name}: there is no file {file}; a relative path starts from the config's folder"
            )
        folder, module = file.parent, file.stem
    with modules_of(folder, module):
        try:
            with user_code():
                found = getattr(import_module(module), attribute, None)
        except Exception as error:
            words = f"{PYTHON}{name}: {place} cannot be imported: {last_line(error)}"
            raise UserCodeError(words) from error
    if not callable(found):
        raise UserCodeError(f"{PYTHON}{name}: {place} has no function {attribute!r}")
    function: Answerer = found
    return function


_RESERVED = 64
"""Open files for all else: the run file, scoring processes, name look-ups."""

_ENOUGH = 65_536
_UNBOUNDED = 2**62


def most_connections() -> int:
    """Raise this process's limit on open files as far as the system lets it; return the connections left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH
    if hard != resource.RLIM_INFINITY:
        wanted = min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = soft
    if soft == resource.RLIM_INFINITY:
        limit = _ENOUGH
    return max(1, limit - _RESERVED)


def concurrency_within(config: RunConfig, room: int) -> Mapping[str, int]:
    """Return the concurrency of the models that have a fixed one, together at most `room`."""
    asked = {
        model.name: model.concurrency
        for model in config.models
        if model.function is None and isinstance(model.concurrency, int)
    }
    total = sum(asked.values())
    if total <= room:
        return asked
    return {name: max(1, number * room // total) for name, number in asked.items()}


def shortage(config: RunConfig, room: int) -> str | None:
    """Return a notice if the limit on open files holds back requests; None if it does not."""
    total = sum(concurrency_within(config, _UNBOUNDED).values())
    if total <= room:
        return None
    return (
        f"the limit on open files lets {room:,} requests be in flight, not the {total:,} of concurrency. "
        f"Raise it: ulimit -n {total + _RESERVED}"
    )
