"""The mimic server as an ASGI application.

Routes
------
``POST /v1/chat/completions``, ``POST /v1/completions``
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

from __future__ import annotations

import json
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic import wire
from adaptive_eval.mimic.delivery import Exchange, FaultPlan
from adaptive_eval.mimic.examinee import Asked, Examinee
from adaptive_eval.mimic.mimic_spec import FaultSpec, MimicSpec, faults_from_data
from adaptive_eval.mimic.requests import AnswerRequest, ApiError, ignoring, parse_request
from adaptive_eval.mimic.sampling import cut_off, draw_samples, prompt_tokens


@dataclass(slots=True)
class ModelStats:
    """Counts of one model."""

    requests: int = 0  # well-formed requests for it, answered or struck by a fault
    # requests being served now, and the most there have been at once
    in_flight: int = 0
    peak_in_flight: int = 0
    # samples whose last byte was sent, and those of them that are right
    answers: int = 0
    right: int = 0
    # usage of the answered requests
    prompt_tokens: int = 0
    completion_tokens: int = 0
    # answered requests by their seed (``none`` without one): a count above 1 was paid for twice
    seeds: Counter[str] = field(default_factory=Counter)

    def begin(self) -> None:
        """Count a request that comes in."""
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def end(self) -> None:
        """Count a request that is over, however it ended."""
        self.in_flight -= 1

    def answered(self, seed: int | None, right: Sequence[bool], usage: tuple[int, int]) -> None:
        """Count an answered request: which samples are right, and (prompt, completion) tokens."""
        self.answers += len(right)
        self.right += sum(right)
        self.prompt_tokens += usage[0]
        self.completion_tokens += usage[1]
        self.seeds["none" if seed is None else str(seed)] += 1


class ServerStats:
    """Counts of all models.

    Examples
    --------
    >>> stats = ServerStats(["a"])
    >>> stats.begin("a"); stats.models["a"].answered(7, [True], (10, 40)); stats.end("a")
    >>> stats.as_data()["models"]["a"]["seeds"], stats.as_data()["peak_in_flight"]
    ({'7': 1}, 1)
    """

    def __init__(self, models: Sequence[str]) -> None:
        self.models = {name: ModelStats() for name in models}
        self.refused = 0
        self._whole = ModelStats()

    def begin(self, model: str) -> None:
        """Count a request for `model` that comes in."""
        self.models[model].begin()
        self._whole.begin()

    def end(self, model: str) -> None:
        """Count a request for `model` that is over."""
        self.models[model].end()
        self._whole.end()

    def as_data(self) -> dict[str, Any]:
        """Return everything as JSON-able data; `refused` counts requests that were wrong (4xx)."""
        return {
            "requests": self._whole.requests,
            "refused": self.refused,
            "in_flight": self._whole.in_flight,
            "peak_in_flight": self._whole.peak_in_flight,
            "models": {
                name: asdict(stats) | {"seeds": dict(stats.seeds)} for name, stats in self.models.items()
            },
        }


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]

_SERVER: Final = ""  # the name of the fault plan of the whole server


def create_app(spec: MimicSpec) -> Starlette:
    """Return the application that serves `spec`."""
    return application(MimicServer(spec).routes())


def application(routes: Sequence[Route]) -> Starlette:
    """Return the application of some routes, with errors as OpenAI's API has them."""
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_error, ApiError: _api_error})


class MimicServer:
    """State of a running mimic server: examinee, fault plans, counts."""

    def __init__(self, spec: MimicSpec) -> None:
        self._spec = spec
        self._examinee = Examinee(spec)
        self._stats = ServerStats([model.name for model in spec.models])
        self._plans = {model.name: FaultPlan(model.faults, spec.seed, model.name) for model in spec.models}
        self._plans[_SERVER] = FaultPlan(spec.faults, spec.seed)
        self._created = int(time.time())
        self._up_at = time.monotonic() + spec.slow_start

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/v1/chat/completions", self.completions(chat=True), methods=["POST"]),
            Route("/v1/completions", self.completions(chat=False), methods=["POST"]),
            Route("/v1/models", self.guarded(self.list_models)),
            Route("/v1/models/{name:path}", self.guarded(self.one_model)),
            Route("/health", self.guarded(self.health, key=False)),
            Route("/mimic/stats", self.show_stats),
            Route("/mimic/faults", self.set_faults, methods=["POST"]),
        ]

    def completions(self, *, chat: bool) -> ASGIApp:
        """Return the route that answers; plain ASGI, because it waits, fails and hangs up on purpose."""
        return _Completions(self, chat=chat)

    def guarded(self, handler: Handler, *, key: bool = True) -> Handler:
        """Return `handler` behind the slow start and, where `key`, behind the API key."""

        async def guard(request: Request) -> Response:
            self.admit(request.headers.get("authorization", "") if key else None)
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

    async def answer(self, exchange: Exchange, data: bytes, *, chat: bool) -> None:
        """Answer one request for completions; ApiError where it is refused."""
        self.admit(exchange.header(b"authorization"))
        request = parse_request(data, chat=chat)
        asked = [self._asked(request.model, prompt) for prompt in request.prompts]
        model = asked[0].model
        request = ignoring(request, model.ignores, cached=model.cached)
        self._stats.begin(request.model)
        try:
            fault = self._strike(request, asked)
            _raise_if_error(fault, exchange.header(b"authorization"))
            samples = draw_samples(self._examinee, request, asked)
            if fault is not None and fault.kind == "cut_off":
                samples = [cut_off(sample, fault.finish_reason) for sample in samples]
            name = uuid.uuid4()
            if model.cached:
                name = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(request.prompts))
            prompt = prompt_tokens(request, asked)
            response = wire.Response(request, samples, prompt, name.hex, int(time.time()))
            if await exchange.deliver(response.frames(), stream=request.stream, fault=fault):
                usage = (response.prompt_tokens, response.completion_tokens)
                right = [sample.right for sample in samples]
                self._stats.models[request.model].answered(request.seed, right, usage)
        finally:
            self._stats.end(request.model)

    def refuse(self, error: ApiError) -> None:
        """Count a request that was wrong."""
        self._stats.refused += error.status < 500 and error.status != 429

    def _asked(self, model: str, prompt: str) -> Asked:
        if model not in self._examinee.models:
            raise self._no_model(model)
        return self._examinee.asked(model, prompt)

    def _no_model(self, name: str) -> ApiError:
        known = ", ".join(self._examinee.models)
        message = f"The model `{name}` does not exist. Served here: {known}."
        return ApiError(404, message, param="model", code="model_not_found")

    def _strike(self, request: AnswerRequest, asked: list[Asked]) -> FaultSpec | None:
        name = f"{request.model}:{request.seed}:{asked[0].stream.toss('request').tail}"
        return self._plans[request.model].strike(name) or self._plans[_SERVER].strike(name)

    async def list_models(self, request: Request) -> Response:
        """Answer ``GET /v1/models``."""
        cards = [self._card(name) for name in self._examinee.models]
        return JSONResponse({"object": "list", "data": cards})

    async def one_model(self, request: Request) -> Response:
        """Answer ``GET /v1/models/{id}``."""
        name = request.path_params["name"]
        if name not in self._examinee.models:
            raise self._no_model(name)
        return JSONResponse(self._card(name))

    def _card(self, name: str) -> dict[str, Any]:
        length = self._examinee.models[name].context_length
        card = {"id": name, "object": "model", "created": self._created, "owned_by": "mimic"}
        return {**card, "max_model_len": length}

    async def health(self, request: Request) -> Response:
        """Answer ``GET /health``."""
        return Response()

    async def show_stats(self, request: Request) -> Response:
        """Answer ``GET /mimic/stats``."""
        data = self._stats.as_data()
        data["faults"] = self._plans[_SERVER].struck
        for name, counts in data["models"].items():
            counts["faults"] = self._plans[name].struck
        return JSONResponse(data)

    async def set_faults(self, request: Request) -> Response:
        """Answer ``POST /mimic/faults``."""
        try:
            body = json.loads(await request.body())
        except (ValueError, RecursionError) as error:
            raise ApiError(400, f"The body is not JSON: {error}") from None
        if not isinstance(body, dict) or not body.keys() <= {"faults", "model"} or "faults" not in body:
            raise ApiError(400, "The body must be an object with faults and, for one model, its model.")
        name = body.get("model")
        if name is not None and name not in self._examinee.models:
            raise self._no_model(str(name))
        try:
            faults = faults_from_data(body["faults"])
        except UsageError as error:
            raise ApiError(400, str(error), param="faults") from None
        scope = name or _SERVER
        self._plans[scope] = FaultPlan(faults, self._spec.seed, scope)
        return JSONResponse({"model": name, "faults": len(faults)})


class _Completions:
    """The ASGI application of one route for completions."""

    def __init__(self, server: MimicServer, *, chat: bool) -> None:
        self._server = server
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        data = await exchange.body()
        if data is None:
            return
        try:
            await self._server.answer(exchange, data, chat=self._chat)
        except ApiError as error:
            self._server.refuse(error)
            await exchange.respond(error.status, error.body(), error.headers)


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
        headers = {} if wait is None else {"retry-after": f"{wait:g}"}
        limited = fault.status == 429
        raise ApiError(
            fault.status,
            "Rate limit reached." if limited else f"Injected fault: status {fault.status}.",
            kind="rate_limit_error" if limited else "server_error",
            code="rate_limit_exceeded" if limited else "injected_fault",
            headers=headers,
        )


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else str(error)
    return await _api_error(request, ApiError(status, f"{detail}: {request.method} {request.url.path}"))


async def _api_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return Response(error.body(), error.status, error.headers, "application/json")
