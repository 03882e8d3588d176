"""Servers that are written into one file, or into many of which each job writes its own."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

from adaptive_eval.discovery.addresses import AddressForm
from adaptive_eval.discovery.beside import Beside
from adaptive_eval.engine.discovery import Reading

__all__ = ["FileSource"]

_MOST_BYTES = 1_000_000
"""Largest file that is read."""

_MAGIC = frozenset("*?[")


class FileSource:
    """One file, or all that a pattern matches, read again and again; their lines are addresses.

    A file that cannot be read, or holds a line that is no address (it may be half written), is taken as it
    was when it could be read last; an empty one too, unless it is still empty the next time. Where a pattern
    is given, a file that is gone takes its servers with it; a single file that is gone does not.

    Parameters
    ----------
    pattern : str
        The file, or a pattern with ``*``, ``?``, ``[...]`` or ``**`` for any folders.
    folder : Path
        Where relative ones begin.
    form : AddressForm
        What makes a base address of host and port.
    every : float
        Seconds from one reading to the next.
    timeout : float
        Seconds after which a file system counts as hanging.
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
        self._reader = Beside(self._read, timeout)

    async def read(self) -> Reading:
        """Read everything anew."""
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
