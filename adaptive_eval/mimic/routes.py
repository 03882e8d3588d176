"""The mimic server as an ASGI application.

Routes
------
``POST /v1/chat/completions``
    Answers; see :mod:`adaptive_eval.mimic.requests` for the parameters.
``GET /v1/models``, ``GET /v1/models/{id}``
    What is served.
``GET /health``
    200 with an empty body, once the slow start is over.
``GET /mimic/stats``
    Counts (:mod:`adaptive_eval.mimic.routes`), and how many requests each kind of fault struck.
``POST /mimic/faults``
    ``{"faults": [...], "model": "name"}`` replaces the faults of a model, or without ``model`` those of
    the whole server, and counts requests afresh. An empty list ends the misbehaviour.
"""

import json
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.responses import Response as HTTPResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.delivery import FaultPlan, ServedRequest
from adaptive_eval.mimic.examinee import Examinee, SeenPrompt
from adaptive_eval.mimic.mimic_spec import FaultSpec, MimicModelSpec, MimicSpec, faults_from_data
from adaptive_eval.mimic.requests import (
    ApiError,
    ChatRequest,
    Response,
    cut_off,
    draw_samples,
    parse_request,
    prompt_tokens,
)


@dataclass(slots=True)
class ModelCounts:
    """Counts of one model."""

    requests: int = 0  # well-formed requests for it, answered or struck by a fault
    # requests being served now, and the most there have been at once
    in_flight: int = 0
    peak_in_flight: int = 0
    # samples whose last byte was sent, those of them that are right, and their tokens
    answers: int = 0
    right: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    # answered requests by their seed (``none`` without one): a count above 1 was paid for twice
    seeds: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Count a request, in flight until the block ends."""
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1

    def answered(self, response: Response) -> None:
        """Count an answered request."""
        self.answers += len(response.samples)
        self.right += sum(sample.right for sample in response.samples)
        self.prompt_tokens += response.prompt_tokens
        self.completion_tokens += response.completion_tokens
        seed = response.request.seed
        named = "none"
        if seed is not None:
            named = str(seed)
        self.seeds[named] += 1


Handler: TypeAlias = Callable[[Request], Awaitable[HTTPResponse]]

_SERVER: Final = ""  # the name of the counts and the fault plan of the whole server


def create_app(spec: MimicSpec) -> Starlette:
    """Return the application that serves `spec`."""
    return application(MimicServer(spec).routes())


def application(routes: Sequence[BaseRoute]) -> Starlette:
    """Return the application of some routes, with errors as OpenAI's API has them."""
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_error, ApiError: _api_error})


class MimicServer:
    """State of a running mimic server: examinee, fault plans, counts."""

    def __init__(self, spec: MimicSpec) -> None:
        self._spec = spec
        self.examinee = Examinee(spec)
        self._refused = 0
        self._counts = {name: ModelCounts() for name in (_SERVER, *self.examinee.models)}
        self._plans = {model.name: FaultPlan(model.faults, spec.seed, model.name) for model in spec.models}
        self._plans[_SERVER] = FaultPlan(spec.faults, spec.seed)
        self._created = int(time.time())
        self._up_at = time.monotonic() + spec.slow_start

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [
            Route("/v1/chat/completions", Completions(self), methods=["POST"]),
            Route("/v1/models", self.guarded(self.list_models)),
            Route("/v1/models/{name:path}", self.guarded(self.one_model)),
            Route("/health", self.guarded(self.health, key=False)),
            Route("/mimic/stats", self.show_stats),
            Route("/mimic/faults", self.set_faults, methods=["POST"]),
        ]

    def guarded(self, handler: Handler, *, key: bool = True) -> Handler:
        """Return `handler` behind the slow start and, if there is a `key`, behind the API key."""

        async def guard(request: Request) -> HTTPResponse:
            given = None
            if key:
                given = request.headers.get("authorization", "")
            self.admit(given)
            return await handler(request)

        return guard

    def admit(self, authorization: str | None) -> None:
        """Raise ApiError while the server starts, or for a wrong key (None: no key is needed)."""
        if time.monotonic() < self._up_at:
            raise ApiError(503, "The server is starting.", kind="server_error", code="starting")
        if self._spec.api_key is None or authorization is None:
            return
        if authorization != f"Bearer {self._spec.api_key}":
            raise ApiError(401, "Incorrect API key provided.", code="invalid_api_key")

    async def answer(self, exchange: ServedRequest, data: bytes) -> None:
        """Answer one request for completions; ApiError if it is refused."""
        self.admit(exchange.header(b"authorization"))
        request, asked = self.asked(_json(data))
        counts = self._counts[request.model]
        with counts.serving(), self._counts[_SERVER].serving():
            fault = self._strike(request, asked)
            _raise_if_error(fault, exchange.header(b"authorization"))
            samples = draw_samples(self.examinee, request, asked)
            if fault is not None and fault.kind == "cut_off":
                samples = [cut_off(sample, fault.finish_reason) for sample in samples]
            name = uuid.uuid4()
            if asked.model.cached:
                name = uuid.uuid5(uuid.NAMESPACE_OID, request.prompt)
            response = Response(request, samples, prompt_tokens(asked), name.hex, int(time.time()))
            if await self.send(exchange, response, fault):
                counts.answered(response)

    async def send(self, exchange: ServedRequest, response: Response, fault: FaultSpec | None) -> bool:
        """Send a response; return whether the client has all of it."""
        return await exchange.deliver(response.body(), response.latency, fault)

    def refuse(self, error: ApiError) -> None:
        """Count a request that was wrong."""
        self._refused += error.status < 500 and error.status != 429

    def asked(self, data: Mapping[str, Any]) -> tuple[ChatRequest, SeenPrompt]:
        """Return a request as its model sees it."""
        model = self._model(str(data.get("model")))
        seen = {name: value for name, value in data.items() if name not in model.ignores}
        body = seen
        if model.cached:
            body = {**seen, "seed": 0}
        request = parse_request(body)
        return request, self.examinee.asked(request.model, request.prompt)

    def _model(self, name: str) -> MimicModelSpec:
        models = self.examinee.models
        if name not in models:
            message = f"The model `{name}` does not exist. Served here: {', '.join(models)}."
            raise ApiError(404, message, param="model", code="model_not_found")
        return models[name]

    def _strike(self, request: ChatRequest, asked: SeenPrompt) -> FaultSpec | None:
        name = f"{request.model}:{request.seed}:{asked.stream.toss('request').tail}"
        return self._plans[request.model].strike(name) or self._plans[_SERVER].strike(name)

    async def list_models(self, request: Request) -> HTTPResponse:
        """Answer ``GET /v1/models``."""
        cards = list(map(self._card, self.examinee.models))
        return JSONResponse({"object": "list", "data": cards})

    async def one_model(self, request: Request) -> HTTPResponse:
        """Answer ``GET /v1/models/{id}``."""
        return JSONResponse(self._card(request.path_params["name"]))

    def _card(self, name: str) -> dict[str, Any]:
        length = self._model(name).context_length
        card = {"id": name, "object": "model", "created": self._created, "owned_by": "mimic"}
        return {**card, "max_model_len": length}

    async def health(self, request: Request) -> HTTPResponse:
        """Answer ``GET /health``."""
        return HTTPResponse()

    async def show_stats(self, request: Request) -> HTTPResponse:
        """Answer ``GET /mimic/stats``; `refused` counts requests that were wrong (4xx)."""
        found = {
            name: {**asdict(counts), "seeds": counts.seeds, "faults": self._plans[name].struck}
            for name, counts in self._counts.items()
        }
        whole = found.pop(_SERVER)
        said = {name: whole[name] for name in ("requests", "in_flight", "peak_in_flight", "faults")}
        return JSONResponse({**said, "refused": self._refused, "models": found})

    async def set_faults(self, request: Request) -> HTTPResponse:
        """Answer ``POST /mimic/faults``."""
        body = _json(await request.body())
        if not body.keys() <= {"faults", "model"} or "faults" not in body:
            raise ApiError(400, "The body must be an object with faults and, for one model, its model.")
        scope = _SERVER
        if body.get("model") is not None:
            scope = self._model(str(body["model"])).name
        try:
            faults = faults_from_data(body["faults"])
        except UsageError as error:
            raise ApiError(400, str(error), param="faults") from None
        self._plans[scope] = FaultPlan(faults, self._spec.seed, scope)
        return JSONResponse({"model": body.get("model"), "faults": len(faults)})


class Completions:
    """A route for completions; plain ASGI, because it waits, fails and hangs up on purpose."""

    def __init__(self, server: MimicServer) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        exchange = ServedRequest(scope, receive, send)
        data = await exchange.body()
        if data is None:
            return
        try:
            await self._server.answer(exchange, data)
        except ApiError as error:
            self._server.refuse(error)
            await exchange.respond(error.status, error.body(), error.headers)


def _json(data: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ApiError(400, f"The body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ApiError(400, "The body is not a JSON object.")
    return body


def _raise_if_error(fault: FaultSpec | None, authorization: str) -> None:
    if fault is None:
        return
    if fault.kind == "echo_key":
        raise ApiError(
            500,
            f"Upstream refused the header Authorization: {authorization}",
            kind="server_error",
            code="echo",
        )
    if fault.kind == "status":
        wait = fault.retry_after
        if wait is not None:
            headers = {"retry-after": f"{wait:g}"}
        else:
            headers = {}
        words = f"Injected fault: status {fault.status}."
        kind = "server_error"
        code = "injected_fault"
        if fault.status == 429:
            words, kind, code = "Rate limit reached.", "rate_limit_error", "rate_limit_exceeded"
        raise ApiError(fault.status, words, kind=kind, code=code, headers=headers)


async def _http_error(request: Request, error: Exception) -> HTTPResponse:
    status = 500
    if isinstance(error, HTTPException):
        status = error.status_code
        detail = error.detail
    else:
        detail = str(error)
    return await _api_error(request, ApiError(status, f"{detail}: {request.method} {request.url.path}"))


async def _api_error(request: Request, error: Exception) -> HTTPResponse:
    if not isinstance(error, ApiError):
        raise error
    return HTTPResponse(error.body(), error.status, error.headers, "application/json")
