"""The routes of the live page; all are read-only.

Below ``/TOKEN/``: the list of runs, and for each run ``runs/NAME/``, which is its report, and the page of
each of its trials by number.
"""

import hashlib
import secrets
import socket
from collections.abc import Callable
from ipaddress import ip_address
from itertools import islice
from pathlib import Path

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adaptive_eval.errors import RunFileError, RunNotFound
from adaptive_eval.http_server import listen
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, TargetLookup, TrialRecord
from adaptive_eval.trial import TrialKey
from adaptive_eval.views.answer_list import Wanted, key_named, part_of, samples_page
from adaptive_eval.views.inert import download
from adaptive_eval.views.page import Live, problem, render, style_source
from adaptive_eval.views.trial_page import trial_page
from adaptive_eval.views.trials import no_targets, others_on, prompt_text
from adaptive_eval.views.web_connections import bounded_server
from adaptive_eval.views.web_runs import Folder, in_address, open_folder, runs_page


class _Place(Convertor[int]):
    """A number in an address, of as many digits as any trial's has; Python refuses to read thousands."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("place", _Place())


def content_security_policy() -> str:
    """Return the policy of the pages: our own scripts and our one style sheet, nothing from elsewhere."""
    parts = (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src {style_source()}",
        "img-src data:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
    return "; ".join(parts)


_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def new_token() -> str:
    """Return a token that cannot be guessed: 192 random bits, safe in an address."""
    return secrets.token_urlsafe(24)


class Guard:
    """Lets only those in who know the token, which is the first part of every path."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._headers = {"Content-Security-Policy": content_security_policy(), **_HEADERS}
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        given = b""
        if "/" in scope["path"]:
            given = str(scope["path"]).split("/")[1].encode("utf-8", "replace")
        if secrets.compare_digest(given, self._token):
            await self._app(scope, receive, with_headers)
        else:
            response = PlainTextResponse(
                "Not found: use the whole address that was printed.", status_code=404
            )
            await response(scope, receive, with_headers)


_GRACE = 2  # seconds for answers under way when Ctrl-C comes


def serve(
    path: Path,
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    targets: Callable[[RunReader], TargetLookup] = no_targets,
) -> None:
    """Serve the page of a run, or of all runs in a folder, until SIGINT or SIGTERM."""
    token = new_token()
    folder = open_folder(path, targets)
    try:
        folder.render_single()
        listener = listen(host, port)
        server = bounded_server(create_app(folder, token), timeout_graceful_shutdown=_GRACE)
        ready(f"http://{_shown(host)}:{listener.getsockname()[1]}/{token}/")
        server.run(sockets=[listener])
    finally:
        folder.close()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server on `host`.

    Examples
    --------
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "gpu-box")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    """Return `host` as part of an address; every interface is reached by this machine's name."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return socket.gethostname()
    if ":" in host:
        return f"[{host}]"
    return host


_STATIC = Path(__file__).parent / "static"
_LARGEST = 2**63 - 1  # as far as the run file counts
_MOST_ATTEMPTS = 50


def create_app(folder: Folder, token: str) -> ASGIApp:
    """Return the application."""
    site = _Site(folder)
    routes = [
        Route("/", site.runs),
        Route("/runs/{run}/", site.run),
        Route("/runs/{run}/samples", site.samples),
        Route("/runs/{run}/trials/{model:place}/{step:place}", site.trial),
        Route("/runs/{run}/trials/{model:place}/{step:place}/{text}.txt", site.text),
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
            return RedirectResponse(f"runs/{in_address(next(iter(self._folder.runs())))}/")
        rows = self._folder.rows()
        directory = str(self._folder.path)
        html = render(runs_page(rows, directory), Live("./", listed=True)).encode()
        return _answer(request, hashlib.sha256(html).hexdigest()[:16], html)

    def run(self, request: Request) -> Response:
        rendered = self._folder.watch(request.path_params["run"]).page()
        return _answer(request, rendered.tag, rendered.html)

    def trial(self, request: Request) -> Response:
        record, attempts = self._stored(request)
        watch = self._folder.watch(request.path_params["run"])
        numbers = {name: place for place, name in enumerate(watch.models())}
        with RunReader(watch.directory) as reader:
            others = others_on(reader, record, watch.models())
        live = Live("../../../../", not self._folder.single)
        html = render(trial_page(record, others, attempts, numbers, watch.target(record)), live).encode()
        return _answer(request, hashlib.sha256(html).hexdigest()[:16], html)

    def samples(self, request: Request) -> Response:
        """Answer with some of the answers of a run: those that the address asks for."""
        watch = self._folder.watch(request.path_params["run"])
        models = watch.models()
        query = dict(request.query_params)
        back = "before" in query
        wanted = Wanted.asked(query)
        way = "after"
        if back:
            way = "before"
        beyond = key_named(query.get(way, ""), models)
        with RunReader(watch.directory) as reader:
            tasks = sorted(reader.tasks())
            filters = wanted.filters(models, tasks, watch.top)
            part = part_of(reader, wanted, filters, beyond, back=back and beyond is not None)
            numbers = {name: place for place, name in enumerate(models)}
            answers = samples_page(wanted, part, models, tasks, numbers, watch.target)
        live = Live("../../", not self._folder.single, follows=False)
        html = render(answers, live).encode()
        return _answer(request, hashlib.sha256(html).hexdigest()[:16], html)

    def text(self, request: Request) -> Response:
        """Answer with a whole prompt, reasoning or answer as a file, never as something to render."""
        record, _ = self._stored(request)
        kind = request.path_params["text"]
        key = record.request.key
        if kind == "prompt":
            text = prompt_text(record)
        elif kind in ("answer", "reasoning") and record.completion is not None:
            if kind == "answer":
                text = record.completion.text
            else:
                text = record.completion.reasoning
        else:
            raise HTTPException(404)
        name = f"{kind}-{request.path_params['model']}-{key.index}.txt"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(download(text), media_type="text/plain; charset=utf-8", headers=headers)

    def _stored(self, request: Request) -> tuple[TrialRecord, list[AttemptRecord]]:
        """Return the trial of an address, with its first attempts."""
        watch = self._folder.watch(request.path_params["run"])
        number = request.path_params["model"]
        step = request.path_params["step"]
        models = watch.models()
        if number >= len(models) or step > _LARGEST:
            raise HTTPException(404)
        key = TrialKey(models[number], step)
        with RunReader(watch.directory) as reader:
            record = next(reader.trials(model=key.model, step=key.index, limit=1), None)
            if record is None:
                raise HTTPException(404)
            attempts = list(islice(reader.attempts(model=key.model, step=key.index), _MOST_ATTEMPTS))
        return record, attempts


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
    return HTMLResponse(problem(title, words, live), status)
