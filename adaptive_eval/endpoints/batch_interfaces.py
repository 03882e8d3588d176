"""Batches of OpenAI (a file with a label, files of answers) and of Anthropic (a body, one file of results).

Anthropic's batches carry no label, and the server lists their requests only after the batch has ended. The
run therefore records the requests that it is about to send, and then the name of their batch.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from adaptive_eval.endpoints.batches import Batch, BatchInterface, json_lines
from adaptive_eval.endpoints.failures import at, from_status, malformed
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError

if TYPE_CHECKING:
    import openai
    from openai.pagination import AsyncCursorPage
    from openai.types import Batch as Said

_LABEL = "adaptive-eval"
"""Name of the metadata that tells a run's own batches from others of the account."""
_PAGE = 100
_LISTED = 500
"""The newest batches of the account among which a run that continues looks for its own."""
_UNDER_WAY = frozenset({"validating", "in_progress", "finalizing", "cancelling"})


class OpenAIBatches(BatchInterface):
    """The server keeps everything that a session needs to continue."""

    most = 50_000
    most_bytes = 195_000_000  # of 200 MB

    def line(self, name: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the line of a request in the file."""
        return {"custom_id": name, "method": "POST", "url": f"/v1{path}", "body": body}

    async def send(self, lines: Mapping[str, Mapping[str, Any]]) -> Batch:
        """Send the file, and a batch of it."""
        content = "\n".join(map(json.dumps, lines.values())).encode()
        file = await self.exchange.call(
            lambda client: client.files.create(file=("batch.jsonl", content), purpose="batch")
        )
        endpoint: Any = next(iter(lines.values()))["url"]
        said = await self.exchange.call(
            lambda client: client.batches.create(
                input_file_id=file.id,
                endpoint=endpoint,
                completion_window="24h",
                metadata={_LABEL: self.options.label},
            )
        )
        return self._seen(said)

    async def own(self) -> list[Batch]:
        """Return the batches with the run's label among the newest of the account."""
        import openai

        own: list[Batch] = []
        after: str | openai.Omit = openai.omit
        for _ in range(0, _LISTED, _PAGE):
            page = await self.exchange.call(partial(_listed, after=after))
            own += [
                self._seen(said)
                for said in page.data
                if (said.metadata or {}).get(_LABEL) == self.options.label
            ]
            if not page.data or not page.has_more:
                break
            after = page.data[-1].id
        return own

    async def look(self, batch: Batch) -> Batch:
        """Ask for the batch."""
        return self._seen(await self.exchange.call(lambda client: client.batches.retrieve(batch.name)))

    async def asked(self, batch: Batch) -> Iterable[str]:
        """Read the names in the file that was sent."""
        return [str(line.get("custom_id")) for line in await self._lines(batch.body.input_file_id)]

    async def answers(self, batch: Batch) -> dict[str, Any]:
        """Read the file of answers and that of errors."""
        files = (batch.body.output_file_id, batch.body.error_file_id)
        lines = [line for file in files if file for line in await self._lines(file)]
        return {str(line.get("custom_id")): self._answer(line) for line in lines}

    def _seen(self, said: Said) -> Batch:
        refused = ""
        if said.status == "failed":
            words = "; ".join(str(one.message) for one in (said.errors and said.errors.data) or ())
            refused = self.exchange.redact(words) or "no reason is given"
        return Batch(said.id, said.status, said.status in _UNDER_WAY, refused, said)

    async def _lines(self, file: str) -> list[dict[str, Any]]:
        content = await self.exchange.get(f"/files/{quote(file)}/content")  # which bounds its size
        return json_lines(content, self.exchange)

    def _answer(self, line: Mapping[str, Any]) -> Any:
        """Return the body of an answer, or the EndpointError of a request that failed."""
        status = at(line, "response", "status_code")
        redact = self.exchange.redact
        if isinstance(status, int):
            body = at(line, "response", "body")
            if status < 300:
                return body
            return from_status(status, {}, json.dumps(body), now=0.0, redact=redact)
        code = at(line, "error", "code")
        if code in ("batch_expired", "batch_cancelled"):
            return TransientEndpointError(f"{code}: the request was not answered", kind="expired")
        return malformed("a line of the batch has no response:", repr(line.get("error")), redact=redact)


def _listed(client: openai.AsyncOpenAI, after: str | openai.Omit) -> Awaitable[AsyncCursorPage[Said]]:
    return client.batches.list(limit=_PAGE, after=after)


_PATH = "/messages/batches"
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP statuses of the kinds of errors, as the same requests would have them alone."""


class AnthropicBatches(BatchInterface):
    """The server keeps the requests and answers, the run which of them are its own."""

    most = 100_000
    most_bytes = 250_000_000  # of 256 MB: the body has a frame, and refusals cost a round

    def line(self, name: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request of the list."""
        return {"custom_id": name, "params": body}

    async def send(self, lines: Mapping[str, Mapping[str, Any]]) -> Batch:
        """Send the requests, noted before and after."""
        names = list(lines)
        self._note({"asked": names})
        said, _ = await self.exchange.post(_PATH, {"requests": list(lines.values())})
        batch = self._seen(said)
        self._note({"asked": names, "batch": batch.name})
        return batch

    async def own(self) -> list[Batch]:
        """Return the batches that the notes name, and what may have been sent just before a kill."""
        noted, others, unsure = self._notes()
        own = []
        for name, asked in noted.items():
            try:
                own.append(await self.look(Batch(name, "", True, body=asked)))
            except PermanentEndpointError as error:  # results are kept for 29 days
                if error.status != 404:
                    raise
        if unsure:
            listed = self.exchange.json(await self.exchange.get(f"{_PATH}?limit={_PAGE}"))
        else:
            listed = {}
        for asked in unsure:
            alike = [one["id"] for one in listed["data"] if _size(one) == len(asked)]
            unknown = [name for name in alike if name not in noted and name not in others]
            if unknown:
                own.append(await self.look(Batch(",".join(unknown), "", True, body=asked)))
        return own[::-1]

    async def look(self, batch: Batch) -> Batch:
        """Ask for the batch, or for all that may be the one."""
        found = [self._seen(await self._get(name)) for name in batch.name.split(",")]
        under_way = any(one.under_way for one in found)
        return replace(batch, status=found[0].status, under_way=under_way)

    async def asked(self, batch: Batch) -> Iterable[str]:
        """Return the names that were noted."""
        return cast("list[str]", batch.body)

    async def answers(self, batch: Batch) -> dict[str, Any]:
        """Read the results; not from the address that the server gives, which would get the key."""
        answers: dict[str, Any] = {}
        for name in batch.name.split(","):
            content = await self.exchange.get(f"{_PATH}/{quote(name)}/results")  # which bounds its size
            lines = json_lines(content, self.exchange)
            answers |= {str(line.get("custom_id")): self._answer(line.get("result")) for line in lines}
        return answers

    async def _get(self, name: str) -> Any:
        return self.exchange.json(await self.exchange.get(f"{_PATH}/{quote(name)}"))

    def _seen(self, said: Any) -> Batch:
        if not isinstance(at(said, "id"), str):
            raise malformed("a batch was expected, not:", repr(said), redact=self.exchange.redact)
        status = str(said.get("processing_status"))
        return Batch(said["id"], status, status != "ended")

    def _answer(self, result: Any) -> Any:
        """Return the body of an answer, or the EndpointError of a request that failed."""
        if not isinstance(result, dict):
            result = {}
        kind = result.get("type")
        error = result.get("error")
        if kind == "succeeded":
            return result.get("message")
        if kind in ("canceled", "expired"):
            return TransientEndpointError(f"{kind}: the request was not answered", kind="expired")
        if kind != "errored" or not isinstance(error, dict):
            words = "a line of the batch has no result:"
            return malformed(words, repr(result), redact=self.exchange.redact)
        inner = error
        if isinstance(error.get("error"), dict):
            inner = error["error"]
        status = _STATUS.get(str(inner.get("type")), 500)
        return from_status(status, {}, json.dumps({"error": inner}), now=0.0, redact=self.exchange.redact)

    # ------------------------------------------------------------------ notes

    def _note(self, note: Mapping[str, Any]) -> None:
        if self.options.notes is not None:
            with self.options.notes.open("a", encoding="utf-8") as file:
                # On a line of its own, also after one that a kill has cut off.
                begin = "\n" if file.tell() else ""
                file.write(begin + json.dumps({"label": self.options.label, **note}))

    def _notes(self) -> tuple[dict[str, list[str]], set[str], list[list[str]]]:
        """Return the requests of each noted batch, the batches of others, and requests without a batch."""
        noted: dict[str, list[str]] = {}
        others: set[str] = set()
        unsure: list[list[str]] = []
        file = self.options.notes
        for line in file.read_bytes().splitlines() if file is not None and file.exists() else ():
            try:
                note = json.loads(line)
            except ValueError:
                continue  # cut off by a kill
            if note["label"] != self.options.label:
                others.add(note.get("batch", ""))
            elif "batch" in note:
                noted[note["batch"]] = note["asked"]
                unsure.remove(note["asked"])
            else:
                unsure.append(note["asked"])
        return noted, others, unsure


def _size(said: Mapping[str, Any]) -> int:
    """Return how many requests a batch has."""
    counts = said.get("request_counts")
    if not isinstance(counts, dict):
        return -1
    return sum(n for n in counts.values() if isinstance(n, int))
