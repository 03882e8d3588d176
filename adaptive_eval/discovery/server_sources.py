"""Sources that name servers: files, a name in the DNS, the output of a command."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from adaptive_eval.config.secret_checks import shown
from adaptive_eval.config.section import check_url
from adaptive_eval.endpoints.redaction import Redactor, shorten
from adaptive_eval.engine.discovery import Reading


@dataclass(frozen=True, slots=True)
class AddressForm:
    """The parts that make a base address of host and port."""

    scheme: str = "http"  # before the address
    prefix: str = "/v1"  # after the address

    def url(self, host: str, port: int) -> str:
        """Return the base address of a server.

        Examples
        --------
        >>> AddressForm().url("10.0.0.7", 8000), AddressForm("https", "").url("fd00::7", 8000)
        ('http://10.0.0.7:8000/v1', 'https://[fd00::7]:8000')
        """
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}{self.prefix}"

    def read(self, text: str) -> tuple[str, ...]:
        r"""Return the base addresses in a text: a line holds ``host:port`` or a URL; ``#`` begins a comment.

        Examples
        --------
        >>> AddressForm().read("gpu1:8000\n\n# the big one\nhttps://gpu2/qwen/v1/\ngpu1:8000")
        ('http://gpu1:8000/v1', 'https://gpu2/qwen/v1')
        >>> AddressForm().read("gpu1:8000\ngpu")
        Traceback (most recent call last):
            ...
        ValueError: line 2: 'gpu' is neither host:port nor a URL such as http://gpu1:8000/v1
        """
        found: dict[str, None] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            written = line.partition("#")[0].strip()
            if written:
                found[self._address(written, number)] = None
        return tuple(found)

    def _address(self, written: str, number: int) -> str:
        whole = "://" in written
        url = written if whole else f"{self.scheme}://{written}{self.prefix}"
        try:
            if whole or urlsplit(url).port is not None:
                return check_url(url)
        except ValueError:
            pass  # the line is reported as wrong
        if "@" in written:
            raise ValueError(f"line {number} holds credentials; name the variable of the key in api_key_env")
        advice = "is neither host:port nor a URL such as http://gpu1:8000/v1"
        raise ValueError(f"line {number}: {shown(written)} {advice}")


class CachedSource(ABC):
    """A source that keeps its last answer where a reading fails."""

    def __init__(self, name: str, every: float) -> None:
        self.name = name
        self.every = every
        self._last: tuple[str, ...] = ()

    async def read(self) -> Reading:
        """Read it."""
        try:
            self._last = await self.addresses()
        except (OSError, ValueError) as error:
            return Reading(self._last, (f"{self.name}: {_words(error)}",))
        return Reading(self._last)

    @abstractmethod
    async def addresses(self) -> tuple[str, ...]:
        """Return the addresses; raise OSError or ValueError, with words for people, where that fails."""


def _words(error: Exception) -> str:
    """Return the message of an OSError without its number and path."""
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or "no answer"


T = TypeVar("T")


class InThread(Generic[T]):
    """Runs blocking work in a daemon thread, one call at a time.

    Not in a pool: a process waits at its end for the threads of pools, even for those that hang.

    Examples
    --------
    >>> asyncio.run(InThread(lambda: 6 * 7, timeout=60.0).result())
    42
    """

    def __init__(self, work: Callable[[], T], timeout: float) -> None:
        self._work = work
        self._timeout = timeout
        self._pending: Future[T] | None = None

    async def result(self) -> T:
        """Do the work and return its result; where the last time still hangs, wait for that."""
        pending = self._pending = self._pending or self._begin()
        try:
            async with asyncio.timeout(self._timeout):
                return await asyncio.wrap_future(pending)
        finally:
            if pending.done():
                self._pending = None

    def _begin(self) -> Future[T]:
        future: Future[T] = Future()
        # From now on it cannot be cancelled: a caller may stop waiting, the thread continues.
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                result = self._work()
            except (OSError, ValueError) as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=run, daemon=True).start()
        return future


_MOST_BYTES = 1_000_000
"""Largest file, and longest output of a command, that is read."""

_MAGIC = frozenset("*?[")


class FileSource:
    """One file, or all files that match a pattern, read repeatedly; their lines are addresses.

    A file that cannot be read, or holds a line that is no address (it may be half written), is taken as it
    was when it could be read last; an empty one too, unless it is still empty the next time. Where a pattern
    is given, a file that is gone takes its servers with it; a single file that is gone does not.
    """

    def __init__(
        self, pattern: str, folder: Path, form: AddressForm, *, every: float, timeout: float = 60.0
    ) -> None:
        self.name = pattern
        self.every = every
        self._form = form
        parts = Path(pattern).expanduser().parts
        plain = list(takewhile(_MAGIC.isdisjoint, parts))
        self._start = folder.joinpath(*plain)
        self._rest = "/".join(parts[len(plain) :])
        self._last: dict[Path, tuple[str, ...]] = {}
        self._empty: set[Path] = set()
        self._reader = InThread(self._read, timeout)

    async def read(self) -> Reading:
        """Read all files."""
        try:
            return await self._reader.result()
        except TimeoutError:
            return Reading(self._known, (f"{self.name}: the file system does not answer",))

    @property
    def _known(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(url for urls in self._last.values() for url in urls))

    def _read(self) -> Reading:
        problems = []
        try:
            files = self._files()
        except OSError as error:
            return Reading(self._known, (f"{self.name}: {error.strerror}",))
        except ValueError as error:
            return Reading(self._known, (f"{self.name}: {error}",))
        self._last = {file: self._last.get(file, ()) for file in files}
        for file in files:
            try:
                self._last[file] = self._addresses(file)
            except FileNotFoundError as error:
                if self._rest:
                    del self._last[file]  # gone since it was listed
                else:
                    problems.append(f"{self.name}: {error.strerror}")
            except OSError as error:
                problems.append(f"{file.name}: {error.strerror}")
            except ValueError as error:
                problems.append(f"{file.name}: {error}")
        return Reading(self._known, tuple(problems))

    def _files(self) -> list[Path]:
        """Return the files there are; OSError where the folder that a pattern begins in cannot be read."""
        if not self._rest:
            return [self._start]
        self._start.stat()
        return sorted(
            file for file in self._start.glob(self._rest) if file.is_file() and not file.name.startswith(".")
        )

    def _addresses(self, file: Path) -> tuple[str, ...]:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"is larger than {_MOST_BYTES:,} bytes")
        if content.strip():
            self._empty.discard(file)
            return self._form.read(content.decode("utf-8-sig", "replace"))
        if file not in self._empty:
            self._empty.add(file)  # it may be about to be written
            return self._last[file]
        return ()


class DnsSource(CachedSource):
    """All addresses (A and AAAA records) of a name, each with the same port."""

    def __init__(self, host: str, port: int, form: AddressForm, *, every: float, timeout: float) -> None:
        super().__init__(f"the name {host}", every)
        self._host = host
        self._port = port
        self._form = form
        self._look_up = InThread(self._resolve, timeout)

    async def addresses(self) -> tuple[str, ...]:
        """Look the name up."""
        return await self._look_up.result()

    def _resolve(self) -> tuple[str, ...]:
        found = socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        hosts = sorted({str(address[0]) for *_, address in found})
        return tuple(self._form.url(host, self._port) for host in hosts)


_KILL_TIMEOUT = 10.0
"""Seconds that a killed command may take to end."""

_LAST_WORDS = 200
"""Characters of what a failing command has said that are shown."""


class CommandSource(CachedSource):
    """A command that is run repeatedly; the lines of its output are addresses.

    It runs in its own process group, which is killed at the time limit. Only the output of a command that
    ends with exit code 0 counts.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        form: AddressForm,
        *,
        every: float,
        timeout: float,
        redact: Redactor | None = None,
    ) -> None:
        super().__init__(f"the command {command[0]}", every)
        self._command = tuple(command)
        self._folder = folder
        self._form = form
        self._timeout = timeout
        self._redact = redact or Redactor(())

    async def addresses(self) -> tuple[str, ...]:
        """Run the command and read its output."""
        return self._form.read(await self._output())

    async def _output(self) -> str:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            cwd=self._folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [asyncio.ensure_future(_all_of(one)) for one in (process.stdout, process.stderr)]
        try:
            async with asyncio.timeout(self._timeout):
                out, complaint = await asyncio.gather(*readers)
                code = await process.wait()
        except TimeoutError:
            raise TimeoutError(f"has not ended within {self._timeout:g} s and was killed") from None
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.wait(readers)
            await _end(process)
        if code != 0:
            said = shorten(self._redact(complaint), _LAST_WORDS)
            raise ValueError(f"has failed with exit code {code}{f': {said}' if said else ''}")
        return out


async def _end(process: asyncio.subprocess.Process) -> None:
    """Kill a process and all that it has started, and wait for its end.

    It counts as ended when its pipes have run dry; one that a process of another session holds open is left.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_KILL_TIMEOUT):
            for stream in (process.stdout, process.stderr):
                while stream is not None and await stream.read(65_536):
                    pass
            await process.wait()


async def _all_of(stream: asyncio.StreamReader) -> str:
    """Return everything that comes out of a stream."""
    parts, size = [], 0
    while part := await stream.read(65_536):
        size += len(part)
        if size > _MOST_BYTES:
            raise ValueError(f"writes more than {_MOST_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")
