"""A bound on what a compressed file unpacks to: a few kB from a stranger may unpack to more than memory."""

from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import zstandard

from adaptive_eval.errors import DatasetError

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


def require_bounded_parquet(path: Path, parquet: ModuleType, file: Any) -> None:
    """Refuse a Parquet file by the sizes that it says, and by texts that are stored once for many rows."""
    about, most = file.metadata, most_bytes(path)
    unpacked, repeated = 0, list[tuple[int, str, int]]()
    for number in range(about.num_row_groups):
        for place in range(about.num_columns):
            chunk, column = about.row_group(number).column(place), about.schema.column(place)
            size = chunk.total_uncompressed_size
            counted = max(size, chunk.num_values * max(8, column.length or 0))
            unpacked += counted
            is_text = column.physical_type == "BYTE_ARRAY" and column.logical_type.type != "DECIMAL"
            if is_text and chunk.has_dictionary_page and chunk.num_values * size > most:
                repeated.append((number, column.path, counted))
    require_bounded(path, unpacked)
    for number, name, counted in repeated:
        texts = parquet.ParquetFile(path, read_dictionary=[name])
        unpacked -= counted
        for batch in texts.iter_batches(_ROWS, row_groups=[number], columns=[name]):
            unpacked += sum(map(_written_out, batch.columns))
            require_bounded(path, unpacked)


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
