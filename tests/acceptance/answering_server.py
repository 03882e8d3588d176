"""A chat server in this process whose answers a function writes, for servers that no mimic plays."""

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from command_line import Finished, in_process, write_config
from json_server import Replies, serving

Answer = Callable[[str, str, int], dict[str, Any]]
"""From the model, the prompt and the number of the model's request to changes of the answer's body: fields of
the choice (``message``, ``finish_reason``) and ``usage``; or the ``status`` of a failure."""


@contextmanager
def answering(answer: Answer, bodies: list[Any] | None = None) -> Iterator[str]:
    """Serve answers that `answer` writes, and yield the base address; requests are added to `bodies`."""
    asked: Counter[str] = Counter()
    lock = Lock()

    class Handler(Replies):
        def do_GET(self) -> None:
            self.reply({"object": "list", "data": []})

        def do_POST(self) -> None:
            body = self.asked()
            model = body["model"]
            with lock:
                asked[model] += 1
                number = asked[model]
                if bodies is not None:
                    bodies.append(body)
            changes = answer(model, body["messages"][-1]["content"], number)
            if "status" in changes:
                self.reply({"error": {"message": "lost"}}, changes["status"])
                return
            usage = changes.pop("usage", {"prompt_tokens": 9, "completion_tokens": 2})
            choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
            self.reply({"id": "1", "model": model, "choices": [{**choice, **changes}], "usage": usage})

    with serving(Handler) as url:
        yield f"{url}/v1"


@contextmanager
def hub(refuse: bool = False) -> Iterator[tuple[str, list[Any], dict[str, bytes]]]:
    """Serve the part of the Hub that takes commits; yield its address, what was created, and the files."""
    created: list[Any] = []
    files: dict[str, bytes] = {}

    class Handler(Replies):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            name = "/".join(created[-1][key] for key in ("organization", "name")) if created else ""
            if refuse or self.headers["Authorization"] != "Bearer hf_of_this_test":
                self.reply({"error": "Invalid username or password."}, 401)
            elif self.path == "/api/repos/create":
                created.append(json.loads(data))
                name = "/".join(created[-1][key] for key in ("organization", "name"))
                self.reply({"url": f"{address}/datasets/{name}", "name": name})
            elif self.path == f"/api/datasets/{name}/preupload/main":
                asked = [{"path": one["path"], "uploadMode": "regular"} for one in json.loads(data)["files"]]
                self.reply({"files": [{**one, "shouldIgnore": False} for one in asked]})
            elif self.path == f"/api/datasets/{name}/commit/main":
                for line in map(json.loads, data.splitlines()):
                    if line["key"] == "file":
                        files[line["value"]["path"]] = b64decode(line["value"]["content"])
                self.reply({"commitUrl": f"{address}/datasets/{name}/commit/1", "commitOid": "1"})
            elif self.path == "/api/validate-yaml":
                self.reply({"errors": [], "warnings": []})
            else:
                self.reply({"error": self.path}, 404)

    with serving(Handler) as address:
        yield address, created, files


def two_models(folder: Path, url: str, questions: int = 20, **more: Any) -> dict[str, Any]:
    """Return a config of the models good and bad at `url`; the right answers are the questions' numbers."""
    rows = [{"id": str(n), "input": f"Say {n}.", "target": str(n)} for n in range(questions)]
    (folder / "numbers.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", "utf-8")
    models = [
        {"name": name, "endpoints": [url], "concurrency": 8, "sampling": {"max_tokens": 64}}
        for name in ("good", "bad")
    ]
    task = {"name": "numbers", "dataset": "numbers.jsonl", "prompt": "{input}", "scorer": "numeric"}
    return {"name": "two", "seed": 1, "models": models, "tasks": [task], "budget": {"trials": 400}, **more}


def run_two(
    folder: Path,
    answer: Answer = lambda *_: {},
    asked: list[Any] | None = None,
    *,
    task: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    code: int | Literal["spent"] | None = "spent",
    **config: Any,
) -> Finished:
    """Run two models that answer as `answer` writes, into the folder ``run``; it has to end with `code`.

    By default that of a budget that is spent: 0 where this is the goal.
    `task` and `model` are settings of their task and of both; requests are added to `asked`.
    """
    if code == "spent":
        code = 0 if config.get("goal") == "budget" else 3
    with answering(answer, asked) as url:
        data = two_models(folder, url, **config)
        data["tasks"][0] |= task or {}
        data["models"] = [{**one, **(model or {})} for one in data["models"]]
        path = write_config(folder, data)
        done = in_process("run", path, "--out", "run", "--display", "none", cwd=folder)
    assert code in (None, done.code), done.said
    return done


def said(content: str | None) -> dict[str, Any]:
    """Return the message of an answer."""
    return {"role": "assistant", "content": content}


def reply(prompt: str, number: int, *, right: bool = True) -> dict[str, Any]:
    """Return the message of an answer to a prompt of :func:`two_models`, which comes no second time."""
    return said(f"Attempt {number}: {number_in(prompt) if right else -1}")


def number_in(prompt: str) -> str:
    """Return the number that a prompt of :func:`two_models` asks for."""
    return prompt.removeprefix("Say ").removesuffix(".")
