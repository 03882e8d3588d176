"""The common part of OpenAI-compatible endpoints: requests for answers, and the probe."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from adaptive_eval.endpoints import server_info
from adaptive_eval.endpoints.answer import chat_text, read_completions
from adaptive_eval.endpoints.batch_interfaces import OpenAIBatches
from adaptive_eval.endpoints.batches import Batches, BatchInterface, BatchOptions
from adaptive_eval.endpoints.exchange import Exchange, bearer
from adaptive_eval.endpoints.failures import other_json, pause_after
from adaptive_eval.endpoints.server_info import Probe, context_length, model_ids, not_served
from adaptive_eval.endpoints.streaming import STREAMED
from adaptive_eval.endpoints.transport import body_limit
from adaptive_eval.errors import EndpointError, PermanentEndpointError, TransientEndpointError, UsageError
from adaptive_eval.trial import Completion, Message, fields_of

_OURS = ("model", "messages", "prompt", "n", "seed", "echo", "stream", "stream_options")
"""Fields of the request that the run decides; a config that sets them would change what a trial is. With
``echo`` an answer would repeat the prompt, and be scored with it."""


class OpenAIEndpoint(ABC):
    """A model behind an OpenAI-compatible server; how a question is put and an answer read is up to the API.

    One client and one pool of connections for the model, opened with the first request. Nothing is retried
    here: the engine does that, and stores every attempt.
    """

    path: ClassVar[str]  # where requests go, below the base address
    batches: ClassVar[type[BatchInterface]] = OpenAIBatches
    credentials = staticmethod(bearer)  # the headers that hold the key
    text_of = staticmethod(chat_text)  # reads the text of one choice of an answer
    logprobs_wanted: ClassVar[bool | int] = True  # the field that asks for log-probabilities
    seeds_and_counts: ClassVar[bool] = True  # whether a request may hold a seed and ask for several answers

    def __init__(
        self,
        url: str,
        model: str,
        *,
        sampling: Mapping[str, Any] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        api_key_env: str | None = None,
        environ: Mapping[str, str] | None = None,
        connect_timeout: float = 10.0,
        total_timeout: float = 600.0,
        idle_timeout: float | None = None,
        concurrency: int = 64,
        send_seed: bool = True,
        most_bytes: int | None = None,
        most_answers: int = 1,
        batch: BatchOptions | None = None,
    ) -> None:
        self.model = model
        self._key_variable = api_key_env
        self._own_headers = bool(headers)
        # sampling parameters and further fields, as they go into every request
        self.parameters: Mapping[str, Any] = {**(sampling or {}), **(extra_body or {})}
        for field in _OURS:
            if field in self.parameters:
                raise UsageError(f"sampling: {field!r} is decided by the run; remove it")
        self._streams = idle_timeout is not None
        most_bytes = most_bytes or body_limit(self.parameters, n=most_answers, stream=self._streams)
        if batch is not None:  # a file of a batch has the answers of all requests
            most_bytes *= concurrency
        self._exchange = Exchange(
            url,
            headers or {},
            api_key_env,
            os.environ if environ is None else environ,
            connect_timeout,
            total_timeout,
            idle_timeout,
            concurrency,
            most_bytes,
            self.credentials,
        )
        if batch is None:
            self._batches = None
        else:
            self._batches = Batches(self.batches(self._exchange, batch))
        self._context: int | None = None
        self._send_seed = send_seed
        limits = (self.parameters.get(name) for name in ("max_completion_tokens", "max_tokens"))
        # most tokens of an answer, where one is configured
        self._limit = next((limit for limit in limits if isinstance(limit, int)), None)

    @property
    def url(self) -> str:
        """The base address without its query, fit to be stored and shown."""
        return self._exchange.address.base

    @abstractmethod
    def question(self, messages: Sequence[Message]) -> dict[str, Any]:
        """Return the fields of the request that put the question."""

    def serves(self, served: Sequence[str]) -> bool:
        """Return whether the model is among those that the server lists."""
        return self.model in served or f"models/{self.model}" in served  # as Gemini lists them

    def read(self, body: Any) -> Any:
        """Return the body of an answer in the form that all APIs but one share."""
        return body

    def renamed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a request with the names that the API has for its fields."""
        return body

    def body(
        self,
        messages: Sequence[Message],
        *,
        seed: int | None,
        n: int = 1,
        parameters: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the JSON body that :meth:`complete` and :meth:`sample` send."""
        body: dict[str, Any] = {"model": self.model, **self.question(messages)}
        if n > 1 and self.seeds_and_counts:
            body["n"] = n
        if seed is not None and self._send_seed and self.seeds_and_counts:
            body["seed"] = seed
        if parameters is None:
            sent = self.parameters
        else:
            sent = parameters
        body.update(sent)
        if self._streams:
            body.update(STREAMED)
        return self.renamed(body)

    async def complete(self, messages: Sequence[Message], *, seed: int | None) -> Completion:
        """Ask once and return the answer."""
        (answer,) = await self.sample(messages, seed=seed, n=1)
        assert answer is not None
        return answer

    async def sample(
        self,
        messages: Sequence[Message],
        *,
        seed: int | None,
        n: int,
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[Completion | None, ...]:
        """Ask for `n` answers with one request, which pays the prompt once; None for one that lacks."""
        started = time.perf_counter()
        body = self.body(messages, seed=seed, n=n, parameters=parameters)
        if self._batches is not None:
            answer, limits = await self._batches.post(self.path, body, seed)
        else:
            if self._streams:
                send = self._exchange.stream
            else:
                send = self._exchange.post
            answer, limits = await send(self.path, body)
        latency = time.perf_counter() - started
        if not self._exchange.answered and (other := other_json(answer, redact=self._exchange.redact)):
            raise other
        answers = read_completions(
            self.read(answer),
            text_of=self.text_of,
            latency=latency,
            redact=self._exchange.redact,
            most=n,
            limit=self._limit if parameters is None else None,
            context=self._context,
            tools="tools" in fields_of(messages),
        )
        self._exchange.answered = True
        if not limits:
            return answers
        tokens = sum(answer.paid.total_tokens for answer in answers if answer is not None)
        pause = pause_after(limits, tokens=tokens, now=time.time())
        return tuple(answer and replace(answer, pause=pause) for answer in answers)

    async def probe(self) -> Probe:
        """Ask the server which models it serves, and check that ours is one of them."""
        started = time.perf_counter()
        try:
            response = await self._exchange.get("/models")
        except PermanentEndpointError as error:
            if error.status in (404, 405):
                await self._refuse_address_without_v1()
                if not await self._answers_questions():
                    from adaptive_eval.endpoints.causes import advice  # the table is for refusals alone

                    words = await self._hint() or f"; {advice(('address',))}"
                    raise PermanentEndpointError(
                        f"{self.url}{self.path} is not there (HTTP 404){words}",
                        kind="not_found",
                        status=404,
                    ) from None
                note = f"{self.url} does not list its models; whether it serves {self.model!r} is not known"
                return Probe((), time.perf_counter() - started, note + await self._hint())
            if error.status == 401:
                raise PermanentEndpointError(
                    self._about_the_key(error), kind=error.kind, status=error.status
                ) from None
            raise
        except TransientEndpointError as error:
            if error.kind == "connection":
                raise TransientEndpointError(f"{error}; is the server running?", kind=error.kind) from None
            raise
        latency = time.perf_counter() - started
        listed = self._exchange.json(response)
        served = model_ids(listed)
        if not served:
            return Probe(
                (), latency, f"{self.url} lists no models; whether it serves {self.model!r} is not known"
            )
        if not self.serves(served):
            words = self._exchange.redact(not_served(self.url, self.model, served))
            raise PermanentEndpointError(words, kind="not_found")
        self._context = context_length(listed, self.model)
        return Probe(served, latency, context_length=self._context)

    async def listed(self) -> dict[str, int | None]:
        """Return the models that the server lists, with the length of each context if the server tells."""
        body = self._exchange.json(await self._exchange.get("/models"))
        return {model: context_length(body, model) for model in model_ids(body)}

    async def alive(self) -> bool:
        """Return whether the server is there (:func:`~adaptive_eval.endpoints.server_info.is_there`)."""
        return await server_info.is_there(self._exchange.get, self._exchange.address.root)

    async def _refuse_address_without_v1(self) -> None:
        """Raise PermanentEndpointError if models are listed under ``/v1``, which the address lacks."""
        if await self._listed_at("/v1/models"):
            raise PermanentEndpointError(
                f"{self.url} has no /models, but {self.url}/v1 has: add /v1 to the address", kind="not_found"
            )

    async def _answers_questions(self) -> bool:
        """Return whether requests can be sent there: an empty one is refused, and costs nothing."""
        try:
            await self._exchange.post(self.path, {})
        except PermanentEndpointError as error:
            return error.status not in (404, 405) or error.cause == ("model",)
        except TransientEndpointError:
            return True
        return True

    async def _hint(self) -> str:
        """Return where the model is listed, if that is where most servers have their API."""
        elsewhere = f"{self._exchange.address.origin}/v1"
        if elsewhere != self.url and self.model in await self._listed_at(f"{elsewhere}/models"):
            return f", but {elsewhere} serves {self.model!r}: is that the address?"
        return ""

    async def _listed_at(self, path: str) -> tuple[str, ...]:
        """Return the models that are listed at another place; none if it cannot be asked."""
        try:
            return model_ids(self._exchange.json(await self._exchange.get(path)))
        except EndpointError:
            return ()

    def _about_the_key(self, error: PermanentEndpointError) -> str:
        said = str(error).rstrip(".")
        if self._key_variable is not None:
            return f"{said}; is the key in {self._key_variable} the right one?"
        if self._own_headers:
            return f"{said}; are the headers right?"
        return (
            f"{said}; no key was sent: name the variable that holds it in api_key_env, or with --api-key-env"
        )

    async def aclose(self) -> None:
        """Close the connections. The endpoint cannot be used afterwards."""
        if self._batches is not None:
            await self._batches.aclose()
        await self._exchange.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r}, {self.model!r})"
