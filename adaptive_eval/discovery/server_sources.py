"""Which servers are there, by files or by the output of a command, read repeatedly."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from adaptive_eval.config.secret_checks import shown
from adaptive_eval.config.section import check_url
from adaptive_eval.endpoints.redaction import Redactor, shorten
from adaptive_eval.engine.discovery import Reading

Texts: TypeAlias = Mapping[str, str | Exception]
"""What each part of a source says, by its name; an error where one cannot be read."""

_MOST_BYTES = 1_000_000
"""Largest file, and longest output of a command, that is read."""

_KILL_TIMEOUT = 10.0
"""Seconds that a killed command may take to end."""

_LAST_WORDS = 200
"""Characters of what a failing command has said that are shown."""

_MAGIC = frozenset("*?[")


def read_addresses(text: str) -> tuple[str, ...]:
    r"""Return the base addresses in a text: a line holds ``host:port`` or a URL; ``#`` begins a comment.

    Examples
    --------
    >>> read_addresses("gpu1:8000\n\n# the big one\nhttps://gpu2/qwen/v1/\ngpu1:8000")
    ('http://gpu1:8000/v1', 'https://gpu2/qwen/v1')
    >>> read_addresses("gpu1:8000\ngpu")
    Traceback (most recent call last):
        ...
    ValueError: line 2: 'gpu' is neither host:port nor a URL such as http://gpu1:8000/v1
    """
    found: dict[str, None] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        written = line.partition("#")[0].strip()
        if written:
            found[_address(written, number)] = None
    return tuple(found)


def _address(written: str, number: int) -> str:
    whole = "://" in written
    url = written if whole else f"http://{written}/v1"
    try:
        if whole or urlsplit(url).port is not None:
            return check_url(url)
    except ValueError:
        pass  # the line is reported as wrong
    if "@" in written:
        raise ValueError(f"line {number} holds credentials; name the variable of the key in api_key_env")
    advice = "is neither host:port nor a URL such as http://gpu1:8000/v1"
    raise ValueError(f"line {number}: {shown(written)} {advice}")


class ServerSource:
    """Says which servers are there; a part that cannot be read counts as it was when it last could.

    An empty part (it may be about to be written) counts from the second time on. A part that is gone takes
    its servers with it.
    """

    def __init__(
        self, name: str, texts: Callable[[], Awaitable[Texts]], every: float, timeout: float
    ) -> None:
        self.name = name
        self.every = every
        self._texts = texts
        self._timeout = timeout
        self._last: dict[str, tuple[str, ...]] = {}
        self._empty: set[str] = set()

    async def read(self) -> Reading:
        """Read it; never raises, and ends within its time limit."""
        try:
            async with asyncio.timeout(self._timeout):
                texts = await self._texts()
        except TimeoutError:
            return Reading(self._known, (f"{self.name}: has not answered within {self._timeout:g} s",))
        except (OSError, ValueError) as error:
            return Reading(self._known, (f"{self.name}: {_words(error)}",))
        self._last = {part: self._last.get(part, ()) for part in texts}
        problems = []
        for part, text in texts.items():
            try:
                self._last[part] = self._addresses(part, text)
            except (OSError, ValueError) as error:
                problems.append(f"{part}: {_words(error)}")
        return Reading(self._known, tuple(problems))

    @property
    def _known(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(url for urls in self._last.values() for url in urls))

    def _addresses(self, part: str, text: str | Exception) -> tuple[str, ...]:
        if isinstance(text, Exception):
            raise text
        if text.strip():
            self._empty.discard(part)
            return read_addresses(text)
        if part in self._empty:
            return ()
        self._empty.add(part)
        return self._last[part]


def _words(error: Exception) -> str:
    """Return the message of an OSError without its number and path."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or "no answer"


def file_source(pattern: str, folder: Path, *, every: float, timeout: float = 60.0) -> ServerSource:
    """Return the source in a file, or in all files that match a pattern; `folder` is where it begins."""
    parts = Path(pattern).expanduser().parts
    plain = list(takewhile(_MAGIC.isdisjoint, parts))
    read = partial(_read_files, folder.joinpath(*plain), "/".join(parts[len(plain) :]))
    return ServerSource(pattern, _InThread(read), every, timeout)


def _read_files(start: Path, rest: str) -> Texts:
    if not rest:
        return {start.name: _content(start)}
    start.stat()  # OSError where the folder that the pattern begins in cannot be read
    texts: dict[str, str | Exception] = {}
    for file in sorted(start.glob(rest)):
        if file.is_file() and not file.name.startswith("."):
            try:
                texts[file.name] = _content(file)
            except FileNotFoundError:
                continue  # gone since it was listed
            except (OSError, ValueError) as error:
                texts[file.name] = error
    return texts


def _content(file: Path) -> str:
    with file.open("rb") as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise ValueError(f"is larger than {_MOST_BYTES:,} bytes")
    return content.decode("utf-8-sig", "replace")


class _InThread:
    """Does blocking work in a daemon thread: at its end a process waits for the threads of a pool."""

    def __init__(self, work: Callable[[], Texts]) -> None:
        self._work = work
        self._hangs = False

    async def __call__(self) -> Texts:
        if self._hangs:
            raise TimeoutError
        self._hangs = True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Texts] = loop.create_future()
        threading.Thread(target=self._run, args=(loop, future), daemon=True).start()
        return await future

    def _run(self, loop: asyncio.AbstractEventLoop, future: asyncio.Future[Texts]) -> None:
        settle: Callable[[], None]
        try:
            settle = partial(future.set_result, self._work())
        except (OSError, ValueError) as error:
            settle = partial(future.set_exception, error)
        self._hangs = False
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(lambda: None if future.done() else settle())


def command_source(
    command: Sequence[str], folder: Path, *, every: float, timeout: float, redact: Redactor | None = None
) -> ServerSource:
    """Return the source in the output of a command, which is killed with all it has started when it is late.

    Only the output of a command that ends with exit code 0 counts.
    """
    name = f"the command {command[0]}"
    output = partial(_output, name, tuple(command), folder, redact or Redactor(()))
    return ServerSource(name, output, every, timeout)


async def _output(name: str, command: tuple[str, ...], folder: Path, redact: Redactor) -> Texts:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        out, complaint = await asyncio.gather(_all_of(process.stdout), _all_of(process.stderr))
        code = await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):  # a process of another session may hold its pipes open
            async with asyncio.timeout(_KILL_TIMEOUT):
                await process.wait()
        process._transport.close()  # type: ignore[attr-defined]  # else it keeps such pipes open as well
    if code != 0:
        said = shorten(redact(complaint), _LAST_WORDS)
        raise ValueError(f"has failed with exit code {code}{f': {said}' if said else ''}")
    return {name: out}


async def _all_of(stream: asyncio.StreamReader) -> str:
    """Return everything that comes out of a stream."""
    try:
        await stream.readexactly(_MOST_BYTES + 1)
    except asyncio.IncompleteReadError as end:
        return end.partial.decode("utf-8", "replace")
    raise ValueError(f"writes more than {_MOST_BYTES:,} bytes")
