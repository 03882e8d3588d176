"""A mimic that also speaks Anthropic's messages and both batch interfaces, answered by its own routes.

Routes
------
``POST /v1/messages``
    A message; text only, never streamed.
``POST /v1/files``, ``GET /v1/files/{id}/content``
    Files, kept in memory.
``POST /v1/batches``, ``GET /v1/batches``, ``GET /v1/batches/{id}``, ``POST /v1/batches/{id}/cancel``
    OpenAI's batches.
``POST /v1/messages/batches``, ``GET /v1/messages/batches``, ``GET …/{id}``, ``GET …/{id}/results``,
``POST …/{id}/cancel``
    Anthropic's batches. They have no seed; the ``custom_id`` serves as one.
``POST …/{id}/expire``
    Ends a batch of either kind as if its day were over; no provider has this.
"""

import asyncio
import json
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from hashlib import sha256
from typing import Any, ClassVar, Final

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from adaptive_eval.mimic.mimic_spec import MimicSpec
from adaptive_eval.mimic.process import MimicProcess
from adaptive_eval.mimic.requests import ApiError
from adaptive_eval.mimic.routes import MimicServer, application
from adaptive_eval.mimic.serving import main


class BatchMimic(MimicProcess):
    """A mimic with batches and messages, in a process of its own."""

    program = (__file__,)


def create_app(spec: MimicSpec) -> ASGIApp:
    server, batches = MimicServer(spec), (OpenAIBatchRoutes(), MessageBatchRoutes())

    async def keyed(scope: Scope, receive: Receive, send: Send) -> None:
        """Take Anthropic's header for the key as OpenAI's."""
        headers = scope.get("headers", [])
        keys = [(b"authorization", b"Bearer " + value) for name, value in headers if name == b"x-api-key"]
        await app({**scope, "headers": [*headers, *keys]}, receive, send)

    app = application(
        [
            *server.routes(),
            Route("/v1/messages", messages_route(lambda: app), methods=["POST"]),
            *(route for kind in batches for route in kind.routes(server.guarded)),
        ]
    )
    for kind in batches:
        kind.app = app
    return keyed


_TAKEN: Final = ("model", "max_tokens", "temperature", "top_p")
_KNOWN: Final = {*_TAKEN, "messages", "system", "stop_sequences", "top_k", "metadata", "thinking", "tools"}
_KINDS: Final = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error",
                 429: "rate_limit_error", 529: "overloaded_error"}  # fmt: skip
_ENDED: Final = {"stop": "end_turn", "length": "max_tokens"}


def asked_as_chat(body: Any) -> dict[str, Any]:
    """Return a request for a message as one for a chat; ApiError for a field that the API does not have."""
    unknown = sorted(body.keys() - _KNOWN)
    if unknown:
        raise ApiError(400, f"{unknown[0]}: Extra inputs are not permitted")
    if "max_tokens" not in body:
        raise ApiError(400, "max_tokens: Field required")
    system = [{"role": "system", "content": body["system"]}] if "system" in body else []
    chat = {name: body[name] for name in _TAKEN if name in body}
    chat["messages"] = [*system, *body["messages"]]
    if "stop_sequences" in body:
        chat["stop"] = body["stop_sequences"]
    return chat


def message_of(status: int, body: Any) -> dict[str, Any]:
    """Return the answer to a chat, or its error, as that to a message."""
    if status >= 300:
        error = body.get("error", {}) if isinstance(body, dict) else {}
        kind = _KINDS.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": error.get("message", str(body))}}
    choice, usage = body["choices"][0], body["usage"]
    return {
        "id": f"msg_{body['id']}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [{"type": "text", "text": choice["message"]["content"]}],
        "stop_reason": _ENDED[choice["finish_reason"]],
        "stop_sequence": None,
        "usage": {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]},
    }


def ask_app(app: Any, headers: Mapping[str, str]) -> httpx2.AsyncClient:
    """Return a client of the mimic server's own routes, with the key of the request that came."""
    authorization = headers.get("authorization", "")
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    return httpx2.AsyncClient(
        transport=transport, base_url="http://mimic", headers={"authorization": authorization}
    )


def messages_route(app: Any) -> Any:
    """Return the route that answers with a message."""

    async def answer(request: Request) -> Response:
        try:
            chat = asked_as_chat(await request.json())
        except ApiError as error:
            return JSONResponse(message_of(400, {"error": {"message": str(error)}}), 400)
        async with ask_app(app(), request.headers) as client:
            response = await client.post("/v1/chat/completions", json=chat, timeout=None)
        kept = {name: value for name, value in response.headers.items() if name == "retry-after"}
        return JSONResponse(message_of(response.status_code, response.json()), response.status_code, kept)

    return answer


@dataclass(slots=True)
class _Batch:
    """A batch and its answers: status and body by the names of the requests."""

    data: dict[str, Any]
    requests: dict[str, dict[str, Any]]
    answered: dict[str, tuple[int, Any]] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None


_STOPPED: Final = {"cancel": "cancelled", "expire": "expired"}


class _BatchRoutes:
    """The common part of both interfaces: batches are created, listed, shown, cancelled and ended."""

    path: ClassVar[str]
    after: ClassVar[str]  # the parameter that turns the page

    def __init__(self) -> None:
        self.app: Any = None
        self._batches: dict[str, _Batch] = {}

    def routes(self, guarded: Any) -> list[Route]:
        """Return the routes, each behind `guarded`."""
        one = f"{self.path}/{{name}}"
        return [
            Route(self.path, guarded(self._create), methods=["POST"]),
            Route(self.path, guarded(self._list)),
            Route(one, guarded(self._show)),
            *(Route(f"{one}/{how}", guarded(self._stop), methods=["POST"]) for how in _STOPPED),
        ]

    read: Callable[[dict[str, Any]], tuple[dict[str, Any], dict[str, dict[str, Any]]]]
    """Returns a batch as it is shown, and its requests by their names."""
    url_and_body: Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]
    """Returns where a request goes, and its body."""
    end: Callable[["_Batch", str], None]
    """Ends a batch: completed, cancelled or expired."""

    async def _create(self, request: Request) -> Response:
        data, requests = self.read(await request.json())
        batch = self._batches[data["id"]] = _Batch(data, requests)
        batch.task = asyncio.create_task(self._run(batch, request.headers))
        return JSONResponse(data)

    async def _list(self, request: Request) -> Response:
        newest = [batch.data for batch in reversed(self._batches.values())]
        after, limit = request.query_params.get(self.after), int(request.query_params.get("limit", 20))
        names = [data["id"] for data in newest]
        start = names.index(after) + 1 if after in names else 0
        page = newest[start : start + limit]
        more = start + limit < len(newest)
        return JSONResponse({"object": "list", "data": page, "has_more": more})

    async def _show(self, request: Request) -> Response:
        return JSONResponse(_found(self._batches, request).data)

    async def _stop(self, request: Request) -> Response:
        batch = _found(self._batches, request)
        if batch.task is not None and not batch.task.done():
            batch.task.cancel()
            await asyncio.gather(batch.task, return_exceptions=True)
            self.end(batch, _STOPPED[request.url.path.rpartition("/")[2]])
        return JSONResponse(batch.data)

    async def _run(self, batch: _Batch, headers: Mapping[str, str]) -> None:
        async with ask_app(self.app, headers) as client:

            async def answer(name: str, line: dict[str, Any]) -> None:
                url, body = self.url_and_body(name, line)
                response = await client.post(url, json=body, timeout=None)
                batch.answered[name] = (response.status_code, _said(response))

            await asyncio.gather(*(answer(name, line) for name, line in batch.requests.items()))
        self.end(batch, "completed")


class OpenAIBatchRoutes(_BatchRoutes):
    """Batches of files."""

    path, after = "/v1/batches", "after"

    def __init__(self) -> None:
        super().__init__()
        self._files: dict[str, bytes] = {}

    def routes(self, guarded: Any) -> list[Route]:
        """Return the routes, those of files too."""
        return [
            Route("/v1/files", guarded(self._upload), methods=["POST"]),
            Route("/v1/files/{name}/content", guarded(self._content)),
            *super().routes(guarded),
        ]

    async def _upload(self, request: Request) -> Response:
        head = f"Content-Type: {request.headers.get('content-type', '')}\r\n\r\n".encode("latin-1")
        form = BytesParser(policy=HTTP).parsebytes(head + await request.body())
        parts = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.iter_parts()
        }
        content = parts.get("file")
        if not isinstance(content, bytes) or parts.get("purpose") != b"batch":
            raise ApiError(400, "A file with the purpose batch is needed.", param="file")
        return JSONResponse({"id": self._keep(content), "object": "file"})

    async def _content(self, request: Request) -> Response:
        return Response(_found(self._files, request), media_type="application/jsonl")

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Read the file that was uploaded before."""
        content = self._files.get(str(body.get("input_file_id")))
        if content is None:
            raise ApiError(400, "There is no such input file.", param="input_file_id")
        lines = [json.loads(line) for line in content.splitlines() if line.strip()]
        data = {
            "id": f"batch_{uuid.uuid4().hex}",
            "input_file_id": body["input_file_id"],
            "status": "in_progress",
            "metadata": body.get("metadata"),
        }
        return data, {line["custom_id"]: line for line in lines}

    def url_and_body(self, name: str, line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the request of a line."""
        return line["url"], line["body"]

    def end(self, batch: _Batch, how: str) -> None:
        """Write answers into the output file, and failures into the error file."""
        batch.data["status"] = how
        lines: dict[str, list[dict[str, Any]]] = {"output_file_id": [], "error_file_id": []}
        for name in batch.requests:
            status, body = batch.answered.get(name, (0, None))
            right = 0 < status < 300
            response = {"status_code": status, "body": body} if status else None
            error = None if status else {"code": f"batch_{how}", "message": "It was not answered."}
            line = {"custom_id": name, "response": response, "error": error}
            lines["output_file_id" if right else "error_file_id"].append(line)
        for key, found in lines.items():
            if found:
                batch.data[key] = self._keep("\n".join(map(json.dumps, found)).encode())

    def _keep(self, content: bytes) -> str:
        name = f"file-{uuid.uuid4().hex}"
        self._files[name] = content
        return name


class MessageBatchRoutes(_BatchRoutes):
    """Batches of messages, as https://docs.anthropic.com/en/api/creating-message-batches says."""

    path, after = "/v1/messages/batches", "after_id"

    def routes(self, guarded: Any) -> list[Route]:
        """Return the routes, that of the results too."""
        return [*super().routes(guarded), Route(f"{self.path}/{{name}}/results", guarded(self._results))]

    def read(self, body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Read the list of requests."""
        requests = {line["custom_id"]: line["params"] for line in body["requests"]}
        data = {
            "id": f"msgbatch_{uuid.uuid4().hex}",
            "processing_status": "in_progress",
            "request_counts": {"processing": len(requests)},
        }
        return data, requests

    def url_and_body(self, name: str, line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the same request as a chat, with a seed."""
        seed = int.from_bytes(sha256(name.encode()).digest()[:7])
        return "/v1/chat/completions", {**asked_as_chat(line), "seed": seed}

    def end(self, batch: _Batch, how: str) -> None:
        """Say that it has ended, and how the requests did that were not answered."""
        rest = {"completed": "errored", "cancelled": "canceled"}.get(how, how)
        batch.data |= {"processing_status": "ended", "rest": rest}

    async def _results(self, request: Request) -> Response:
        batch = _found(self._batches, request)
        if batch.data["processing_status"] != "ended":
            raise ApiError(404, "The batch has not ended.", code="not_found")
        lines = [{"custom_id": name, "result": self._result(batch, name)} for name in batch.requests]
        return Response("\n".join(map(json.dumps, lines)), media_type="application/x-jsonl")

    def _result(self, batch: _Batch, name: str) -> dict[str, Any]:
        status, body = batch.answered.get(name, (0, None))
        if not status:
            return {"type": batch.data["rest"]}
        said = message_of(status, body)
        return {"type": "succeeded", "message": said} if status < 300 else {"type": "errored", "error": said}


def _said(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError:  # a fault of the server
        return response.text


def _found(kept: dict[str, Any], request: Request) -> Any:
    name = request.path_params["name"]
    if name not in kept:
        raise ApiError(404, f"There is no {name!r}.", code="not_found")
    return kept[name]


if __name__ == "__main__":
    sys.exit(main(create_app))
