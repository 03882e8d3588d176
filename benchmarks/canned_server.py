"""The cheapest possible OpenAI-compatible server, so that a benchmark measures the client.

Answers every request at once with the same chat completion, in a process of its own. Run alone with
``python benchmarks/canned_server.py PORT``.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

ANSWER = json.dumps(
    {
        "id": "chatcmpl-9c7001c149e36175",
        "object": "chat.completion",
        "created": 1795158410,
        "model": "canned",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Two and two make four. " * 20 + "\\boxed{4}"},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": {"prompt_tokens": 24, "completion_tokens": 103, "total_tokens": 127},
    }
).encode()

HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(ANSWER)).encode())]


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": ANSWER})


@contextmanager
def canned_server() -> Iterator[str]:
    """Run the server and yield its base URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, __file__, str(port)])
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), lifespan="off", log_level="warning", access_log=False)
