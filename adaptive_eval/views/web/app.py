"""The routes of the web page; all are read-only.

Below ``/TOKEN/``: the list of runs, and for each run ``runs/NAME/`` with its ``stream`` of events, its
``plots.json``, and pages of ``models``, ``pairs``, ``questions`` and ``trials`` by number.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from adaptive_eval.errors import RunFileError, RunNotFound
from adaptive_eval.store.reader import RunReader
from adaptive_eval.views.web.bounded import download
from adaptive_eval.views.web.entities import RunPages
from adaptive_eval.views.web.feed import Feed, News
from adaptive_eval.views.web.folder import Folder
from adaptive_eval.views.web.guard import Guard
from adaptive_eval.views.web.pages import FIGURES, render, run_context
from adaptive_eval.views.web.plotly_library import plotly_script, plotly_styles
from adaptive_eval.views.web.trial_pages import prompt_text

_POLL = 0.5  # seconds; asking again costs nothing where the feed finds it too early
_BEAT = 15.0  # seconds of silence after which a comment shows whether anyone still listens


def event(name: str, data: object) -> bytes:
    r"""Return one server-sent event whose data is JSON on one line.

    Examples
    --------
    >>> event("part", {"name": "cost", "html": "<p>\n"})
    b'event: part\ndata: {"name": "cost", "html": "<p>\\n"}\n\n'
    """
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


async def follow(
    news: Callable[[], News], closing: Callable[[], bool], *, poll: float = _POLL
) -> AsyncIterator[bytes]:
    """Yield events for one page until the server closes.

    ``part`` carries the HTML of a part that has changed, ``plots`` says that there is more to plot, ``said``
    carries a decision in words, ``trouble`` says why the run cannot be read any more.
    """
    shown: dict[str, str] = {}
    plots, decided, trouble, silent = 0, -1, "", 0.0
    while not closing():
        events: list[bytes] = []
        try:
            now = await run_in_threadpool(news)
        except RunFileError as error:
            if str(error) != trouble:
                events.append(event("trouble", str(error)[:500]))
            trouble = str(error)
        else:
            trouble = ""
            events += [
                event("part", {"name": name, "html": html})
                for name, html in now.parts.items()
                if shown.get(name) != html
            ]
            shown = dict(now.parts)
            if now.plots != plots:
                plots = now.plots
                events.append(event("plots", plots))
            if decided >= 0:
                events += [event("said", text[:300]) for text in now.decisions[decided:]]
            decided = len(now.decisions)
        silent = 0.0 if events else silent + poll
        if silent >= _BEAT:
            events, silent = [b":\n\n"], 0.0
        for one in events:
            yield one
        await asyncio.sleep(poll)


_STATIC = Path(__file__).parent / "static"


def create_app(folder: Folder, token: str, closing: Callable[[], bool] = lambda: False) -> ASGIApp:
    """Return the application."""
    site = _Site(folder, closing)
    routes = [
        Route("/", site.runs),
        Route("/stream", site.runs_stream),
        Route("/runs/{run}/", site.run),
        Route("/runs/{run}/stream", site.run_stream),
        Route("/runs/{run}/plots.json", site.plots),
        Route("/runs/{run}/trials", site.page(RunPages.trials)),
        Route("/runs/{run}/questions", site.page(RunPages.questions)),
        Route("/runs/{run}/models/{number:int}", site.page(RunPages.model)),
        Route("/runs/{run}/pairs/{number:int}", site.page(RunPages.pair)),
        Route("/runs/{run}/questions/{number:int}", site.page(RunPages.question)),
        Route("/runs/{run}/trials/{model:int}/{step:int}", site.page(RunPages.trial)),
        Route("/runs/{run}/trials/{model:int}/{step:int}/{text}.txt", site.text),
        Route("/static/plotly.min.js", _file(plotly_script())),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    app = Starlette(
        routes=[Mount(f"/{token}", routes=routes)],
        middleware=[Middleware(GZipMiddleware, minimum_size=2_000, compresslevel=5)],
        exception_handlers={RunFileError: _unreadable, HTTPException: _refused},
    )
    return Guard(app, token, plotly_styles())


def _file(path: Path) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return FileResponse(path, headers={"Cache-Control": "private, max-age=86400"})

    return answer


class _Site:
    """The handlers. Plain functions: each runs in its own thread, so reading never stops the server."""

    def __init__(self, folder: Folder, closing: Callable[[], bool]) -> None:
        self._folder = folder
        self._closing = closing

    def runs(self, request: Request) -> Response:
        if self._folder.single:
            return RedirectResponse(f"runs/{self._folder.rows()[0].url}/")
        return HTMLResponse(
            render("runs", root="./", rows=self._folder.rows(), directory=str(self._folder.path))
        )

    def runs_stream(self, request: Request) -> Response:
        def news() -> News:
            return News({"runs": render("parts/runs", rows=self._folder.rows())}, 0, ())

        return self._stream(news)

    def run(self, request: Request) -> Response:
        watch = self._feed(request).watch
        page = render(
            "run",
            root="../../",
            has_list=not self._folder.single,
            figures=FIGURES,
            directory=str(watch.directory),
            **run_context(watch.look().view, watch.counted()),
        )
        return HTMLResponse(page)

    def run_stream(self, request: Request) -> Response:
        return self._stream(self._feed(request).news)

    def plots(self, request: Request) -> Response:
        return Response(self._feed(request).plots(), media_type="application/json")

    def page(self, shown: Callable[..., str]) -> Callable[[Request], Response]:
        """Return the handler of a page of one run, which takes the numbers in its address."""

        def answer(request: Request) -> Response:
            numbers = {name: value for name, value in request.path_params.items() if name != "run"}
            with self._pages(request) as pages:
                return HTMLResponse(shown(pages, **numbers))

        return answer

    def text(self, request: Request) -> Response:
        """Answer with a whole prompt, reasoning or answer as a file, never as something to render."""
        kind, number = request.path_params["text"], request.path_params["model"]
        with self._pages(request) as pages:
            key = pages.key(number, request.path_params["step"])
            record = pages.record(key)
        if kind == "prompt":
            text = prompt_text(record)
        elif kind in ("answer", "reasoning") and record.completion is not None:
            text = record.completion.text if kind == "answer" else record.completion.reasoning
        else:
            raise HTTPException(404)
        headers = {"Content-Disposition": f'attachment; filename="{kind}-{number}-{key.index}.txt"'}
        return Response(download(text), media_type="text/plain; charset=utf-8", headers=headers)

    def _feed(self, request: Request) -> Feed:
        return self._folder.feed(request.path_params["run"])

    @contextmanager
    def _pages(self, request: Request) -> Iterator[RunPages]:
        watch = self._feed(request).watch
        with watch.past() as (seen, _, tally):
            view, counted = seen.view, tally.copy()
        with RunReader(watch.directory) as reader:
            yield RunPages(reader, view, counted, request.query_params)

    def _stream(self, news: Callable[[], News]) -> Response:
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(follow(news, self._closing), media_type="text/event-stream", headers=headers)


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
    return HTMLResponse(render("problem", root="../" * depth or "./", title=title, words=words), status)
