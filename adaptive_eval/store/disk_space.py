"""The disk space that a run needs, and the space that is free."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

from adaptive_eval.store.file_errors import translated
from adaptive_eval.store.run_files import RunFiles

ROW_BYTES = 300.0
"""A trial without its answer: launch, attempt, outcome and what they are found by."""

TOKEN_BYTES = 2.1
"""A token of an answer: about four characters, compressed, on pages that are nine tenths full."""

ALTERNATIVE_BYTES = 23.0
"""One token's log-probability as compressed JSON, for the token itself and for each alternative."""


def trial_bytes(completion_tokens: float, alternatives: int = 0) -> float:
    """Return about how many bytes a stored trial takes.

    The constants are measured, on 4,000 public answers of five models (1,700 characters on average). Code
    compresses better, and a language with letters of several bytes takes up to twice as much.

    Examples
    --------
    >>> trial_bytes(1000), trial_bytes(1000, alternatives=1)
    (2400.0, 25400.0)
    """
    return ROW_BYTES + completion_tokens * (TOKEN_BYTES + ALTERNATIVE_BYTES * alternatives)


def free_bytes(directory: Path | str) -> int:
    """Return how many bytes may be written where `directory` is or would be made."""
    with translated(Path(directory), "looking at the disk of"):
        return shutil.disk_usage(_existing(directory)).free


def require_writable(directory: Path | str) -> None:
    """Raise RunFileError, with the cause, where `directory` cannot be made or written to."""
    with translated(Path(directory), "writing to"):
        place = _existing(directory)
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{place} is a file")
        try:
            with tempfile.TemporaryDirectory(dir=place, prefix=".adaptive-eval-"):
                pass
        except FileNotFoundError as error:  # what /proc and its like say
            raise PermissionError(errno.EACCES, f"{place} takes no files") from error


def _existing(directory: Path | str) -> Path:
    """Return the directory, or the nearest one above it that exists."""
    place = Path(directory).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def stored_bytes(directory: Path | str) -> int:
    """Return how many bytes the run in `directory` takes, its write-ahead log included."""
    files = RunFiles(Path(directory))
    return sum(path.stat().st_size for path in (files.database, *files.unmerged()))


def in_words(size: float) -> str:
    """Return a size as people write it.

    Examples
    --------
    >>> in_words(512), in_words(2100), in_words(63_500_000), in_words(9.8e9)
    ('512 B', '2.1 kB', '63.5 MB', '9.8 GB')
    """
    for unit, suffix in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {suffix}"
    return f"{size:.0f} B"
