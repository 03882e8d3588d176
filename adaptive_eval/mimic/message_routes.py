"""Anthropic's Messages API of the mimic server: the same answers in that API's shapes.

Routes
------
``POST /v1/messages``
    A message, as https://docs.anthropic.com/en/api/messages says; text only, never streamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import httpx2
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from adaptive_eval.mimic.requests import ApiError

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
    key = headers.get("x-api-key")
    authorization = headers.get("authorization", "") if key is None else f"Bearer {key}"
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
