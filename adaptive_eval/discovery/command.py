"""Servers that a command names on its standard output."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from adaptive_eval.discovery.addresses import AddressForm
from adaptive_eval.discovery.known import Remembering
from adaptive_eval.endpoints.redaction import Redactor, shorten

__all__ = ["CommandSource"]

_MOST_BYTES = 1_000_000
"""Longest output that is read."""

_LAST_BREATH = 10.0
"""Seconds that a killed command may take to be gone."""

_LAST_WORDS = 200
"""Characters of what a failing command has said that are shown."""


class CommandSource(Remembering):
    """A command that is run again and again; the lines of its output are addresses.

    It runs in a session of its own and is killed, with all that it has started, at its limit of time. Only
    what a command writes that ends with exit code 0 counts.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell is between.
    folder : Path
        Where it runs.
    form : AddressForm
        What makes a base address of host and port.
    every : float
        Seconds from one run to the next.
    timeout : float
        Seconds that it may take.
    redact : Redactor, optional
        Hides the secrets of the run in what a failing command says.
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
        """Run it and read what it says."""
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
        async with asyncio.timeout(_LAST_BREATH):
            for stream in (process.stdout, process.stderr):
                while stream is not None and await stream.read(65_536):
                    pass
            await process.wait()


async def _all_of(stream: asyncio.StreamReader) -> str:
    """Return everything that comes out of a stream.

    Raises
    ------
    ValueError
        It is too much to be a list of servers.
    """
    parts, size = [], 0
    while part := await stream.read(65_536):
        size += len(part)
        if size > _MOST_BYTES:
            raise ValueError(f"writes more than {_MOST_BYTES:,} bytes")
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")
