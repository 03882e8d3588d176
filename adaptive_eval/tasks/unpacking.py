"""A bound on what a compressed file unpacks to: a few kB from a stranger may unpack to more than memory."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

import zstandard

from adaptive_eval.errors import DatasetError, library
from adaptive_eval.tasks.arrow_batches import FILE_MARK, STREAM_MARK, has_compressed_rows
from adaptive_eval.tasks.parquet_pages import pages

ALWAYS = 2**30
"""Bytes to which any file may unpack: a small file that repeats a prompt in each row stays below."""

MOST_TIMES = 200
"""How many times its own size a file may unpack to: text that is no bomb takes 3 to 30 times less space."""

_DEFLATE = 1032
"""How many times less space DEFLATE (gzip, zip) takes at most."""

_ZSTANDARD = 93
"""Zip's number of this compression, which Inspect uses."""

_PIECE = 2**20
_ROWS = 2**16
_AT_ONCE = 8
"""Of texts that share their beginnings, this part of the bound is read at once."""


def most_bytes(path: Path) -> int:
    """Return the number of bytes to which a file may unpack."""
    return max(ALWAYS, MOST_TIMES * path.stat().st_size)


def require_bounded(path: Path, unpacked: int) -> None:
    """Refuse a file that unpacks to more than it may."""
    most = most_bytes(path)
    if unpacked > most:
        raise DatasetError(
            f"{path}: its {path.stat().st_size:,} bytes unpack to {unpacked:,} or more, and {most:,} is the "
            "most for a file of its size; if it is what you expect, store it uncompressed or in several files"
        )


def require_bounded_stream(path: Path, file: IO[bytes], packed: int | None = None) -> None:
    """Refuse a file if a stream in it unpacks to more than it may; `packed`: its bytes, if by DEFLATE."""
    if packed is not None and packed * _DEFLATE <= most_bytes(path):
        return
    unpacked = 0
    while piece := file.read(_PIECE):
        unpacked += len(piece)
        require_bounded(path, unpacked)


def require_bounded_zip(path: Path, unread: str | None = None) -> None:
    """Refuse a zip archive by the sizes that it says, then by the true ones.

    Members whose names begin with `unread` do not count.
    """
    with ZipFile(path) as archive:
        members = archive.infolist()
        if unread is not None:
            members = [one for one in members if not one.filename.startswith(unread)]
        require_bounded(path, sum(one.file_size for one in members))
        for one in members:
            if one.compress_type not in (ZIP_DEFLATED, _ZSTANDARD):
                continue
            is_zstandard = one.compress_type == _ZSTANDARD
            one.CRC = None  # type: ignore[assignment]  # not checked here
            one.file_size = one.compress_size if is_zstandard else most_bytes(path) + 1
            if is_zstandard:
                one.compress_type = ZIP_STORED
            with archive.open(one) as file:
                if is_zstandard:
                    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
                    require_bounded_stream(path, reader)
                else:
                    require_bounded_stream(path, file, one.compress_size)


_READERS: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": zstandard.open,
}
"""What reads a compressed file, by its first bytes."""

_HEADER, _COMPRESSION = 2, 3
"""Fields of a message of Arrow (``Message.fbs``), and of a batch of rows in it."""


_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError, BadZipFile)


def require_bounded_file(path: Path) -> None:
    """Refuse a file that the library datasets would unpack to more than it may, by what its first bytes say.

    Of a damaged file, the library says what is wrong.

    Raises
    ------
    ValueError, OSError
        If a damaged file of Parquet or Arrow cannot be bounded.
    """
    with path.open("rb") as file:
        begin = file.read(6)
    if begin.startswith(b"PAR1"):
        parquet = library("pyarrow.parquet", "reading Parquet", "pyarrow")
        require_bounded_parquet(path, parquet, parquet.ParquetFile(path))
    is_arrow = begin.startswith((FILE_MARK, STREAM_MARK))
    if is_arrow and has_compressed_rows(library("pyarrow", "reading Arrow", "pyarrow"), path):
        words = "its rows are compressed, and nothing says what they unpack to; write them as Parquet"
        raise DatasetError(f"{path}: {words}")
    with suppress(*_DAMAGED):
        if begin.startswith(b"PK\3\4"):
            require_bounded_zip(path)
        for mark, reader in _READERS.items():
            if begin.startswith(mark):
                with reader(path) as unpacked:
                    require_bounded_stream(path, unpacked)


def require_bounded_parquet(path: Path, parquet: ModuleType, file: Any) -> None:
    """Refuse a Parquet file by the sizes of its pages, and by texts that are stored once for many rows."""
    about, most = file.metadata, most_bytes(path)
    unpacked, repeated = 0, list[_Repeated]()
    with path.open("rb") as opened:
        for group, place in product(range(about.num_row_groups), range(about.num_columns)):
            chunk, column = about.row_group(group).column(place), about.schema.column(place)
            try:
                found = [*pages(opened, chunk)]
            except (IndexError, KeyError, ValueError, OSError):
                words = f"column {column.path!r} has a page whose header cannot be read"
                raise DatasetError(f"{path}: not readable as Parquet: {words}") from None
            size = max(chunk.total_uncompressed_size, sum(page.size for page in found))
            values = max(chunk.num_values, sum(page.values for page in found))
            counted = max(size, values * max(8, column.length or 0))
            unpacked += counted
            is_text = column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL"
            shares = any(page.shares_beginnings for page in found)
            if is_text and (shares or chunk.has_dictionary_page) and values * size > most:
                rows = max(1, most // size // _AT_ONCE) if shares else _ROWS
                repeated.append(_Repeated(group, column.path, counted, rows, shares))
    require_bounded(path, unpacked)
    for one in repeated:
        texts = parquet.ParquetFile(path, read_dictionary=[] if one.shares_beginnings else [one.column])
        unpacked -= one.counted
        for batch in texts.iter_batches(one.rows, row_groups=[one.group], columns=[one.column]):
            unpacked += sum(map(_written_out, batch.columns))
            require_bounded(path, unpacked)


class _Repeated(NamedTuple):
    """A column whose texts may be stored once for many rows, so that its size does not tell theirs."""

    group: int
    column: str
    counted: int  # bytes that its pages unpack to
    rows: int  # to read at once: together they stay below the bound
    shares_beginnings: bool  # rather than whole texts, by a dictionary


def _written_out(array: Any) -> int:
    """Return the bytes of an Arrow array with each text written out where it occurs."""
    if hasattr(array, "dictionary"):
        compute = import_module("pyarrow.compute")
        return compute.sum(compute.binary_length(array.dictionary).take(array.indices)).as_py() or 0
    if hasattr(array, "values"):  # of lists
        return _written_out(array.values)
    if hasattr(array, "field"):
        return sum(map(_written_out, array.flatten()))
    return int(array.nbytes)
