"""The routes of the live page; all are read-only.

Below ``/TOKEN/``: the list of runs, and for each run ``runs/NAME/``, which is its report, and the page of
each of its trials by number.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from adaptive_eval.errors import RunFileError, RunNotFound
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import TrialKey
from adaptive_eval.views.escape import download
from adaptive_eval.views.page import Live, page
from adaptive_eval.views.trials import prompt_text, shown_trial
from adaptive_eval.views.web.folder import Folder
from adaptive_eval.views.web.guard import Guard

_STATIC = Path(__file__).parent.parent / "static"
_LARGEST = 2**63 - 1  # as far as the run file counts
_MOST_ATTEMPTS = 50


def create_app(folder: Folder, token: str) -> ASGIApp:
    """Return the application."""
    site = _Site(folder)
    routes = [
        Route("/", site.runs),
        Route("/runs/{run}/", site.run),
        Route("/runs/{run}/trials/{model:int}/{step:int}", site.trial),
        Route("/runs/{run}/trials/{model:int}/{step:int}/{text}.txt", site.text),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    app = Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        middleware=[Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=5)],
        exception_handlers={RunFileError: _unreadable, HTTPException: _refused},
    )
    return Guard(app, token)


class _Site:
    """The handlers. Plain functions: each runs in its own thread, so reading never stops the server."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def runs(self, request: Request) -> Response:
        if self._folder.single:
            return RedirectResponse(f"runs/{self._folder.rows()[0].url}/")
        rows, directory = self._folder.rows(), str(self._folder.path)
        html = page("runs.html", live=Live("./", listed=True), rows=rows, directory=directory).encode()
        return _answer(request, hashlib.sha256(html).hexdigest()[:16], html)

    def run(self, request: Request) -> Response:
        rendered = self._folder.watch(request.path_params["run"]).page()
        return _answer(request, rendered.tag, rendered.html)

    def trial(self, request: Request) -> Response:
        record, attempts = self._stored(request)
        number, step = request.path_params["model"], request.path_params["step"]
        context = {
            "live": Live("../../../../", listed=not self._folder.single),
            "trial": shown_trial(record),
            "attempts": attempts,
            "base": f"../{number}/{step}",
            "back": "../../",
        }
        html = page("trial.html", **context).encode()
        return _answer(request, hashlib.sha256(html).hexdigest()[:16], html)

    def text(self, request: Request) -> Response:
        """Answer with a whole prompt, reasoning or answer as a file, never as something to render."""
        record, _ = self._stored(request)
        kind, key = request.path_params["text"], record.request.key
        if kind == "prompt":
            text = prompt_text(record)
        elif kind in ("answer", "reasoning") and record.completion is not None:
            text = record.completion.text if kind == "answer" else record.completion.reasoning
        else:
            raise HTTPException(404)
        name = f"{kind}-{request.path_params['model']}-{key.index}.txt"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(download(text), media_type="text/plain; charset=utf-8", headers=headers)

    def _stored(self, request: Request) -> tuple[TrialRecord, list[object]]:
        """Return the trial of an address, with its first attempts."""
        watch = self._folder.watch(request.path_params["run"])
        number, step = request.path_params["model"], request.path_params["step"]
        models = watch.models()
        if number >= len(models) or step > _LARGEST:
            raise HTTPException(404)
        key = TrialKey(models[number], step)
        with RunReader(watch.directory) as reader:
            record = next(reader.trials(model=key.model, step=key.index, limit=1), None)
            if record is None:
                raise HTTPException(404)
            attempts = list(reader.attempts(model=key.model, step=key.index))
        return record, list(attempts[:_MOST_ATTEMPTS])


def _answer(request: Request, tag: str, html: bytes) -> Response:
    """Answer with a page, or with nothing if the reader has it already."""
    headers = {"ETag": f'"{tag}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    return HTMLResponse(html, headers=headers)


def _unreadable(request: Request, error: Exception) -> Response:
    status, title = (404, "Not found") if isinstance(error, RunNotFound) else (500, "Not readable")
    return _problem(request, title, str(error), status)


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return _problem(request, "Not found", "There is nothing at this address.", 404)
    return _problem(request, "Refused", error.detail, error.status_code)


def _problem(request: Request, title: str, words: str, status: int) -> Response:
    depth = request.url.path.count("/") - 2  # below /TOKEN/
    live = Live("../" * depth or "./")
    return HTMLResponse(page("problem.html", live=live, title=title, words=words), status)
