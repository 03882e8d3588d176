"""Headers of the pages of a Parquet file: what a column unpacks to, whatever the footer of the file says.

They are records of Thrift's compact protocol (``PageHeader`` in Parquet's ``parquet.thrift``).
"""

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

_DATA, _DATA_V2 = 5, 8
"""Fields of the two kinds of data pages; others are of dictionaries and indices."""

_SHARED_BEGINNINGS = 7
"""The encoding DELTA_BYTE_ARRAY, in which a text holds the beginning of the one before it."""

_DEEPEST = 8


class Page(NamedTuple):
    """What the header of a page says."""

    size: int  # bytes that Arrow makes room for: if the page unpacks to another number, it is refused
    values: int  # 0 of a dictionary
    shares_beginnings: bool


def pages(file: IO[bytes], chunk: Any) -> Iterator[Page]:
    """Yield the pages of a column's chunk that Arrow reads.

    Raises
    ------
    ValueError
        If no page begins where one should.
    """
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        starts.append(chunk.dictionary_page_offset)
    place, values = min(starts), 0
    end = place + chunk.total_compressed_size
    while place < end and values < chunk.num_values:
        file.seek(place)
        header = _record(file)
        data = header.get(_DATA) or header.get(_DATA_V2) or {}
        encoding = data.get(2 if _DATA in header else 4)
        size, packed = header[2], header[3]
        page = Page(size, data.get(1, 0), encoding == _SHARED_BEGINNINGS)
        if min(size, packed, page.values) < 0:
            raise ValueError("a negative size")
        yield page
        values += page.values
        place = file.tell() + packed


def _record(file: IO[bytes], depth: int = 0) -> Any:
    """Return the fields of a record by their numbers."""
    found, number = dict[int, Any](), 0
    while kind_and_step := file.read(1)[0]:
        step, kind = divmod(kind_and_step, 16)
        number = number + step if step else _integer(file)
        found[number] = _value(file, kind, depth)
    return found


def _value(file: IO[bytes], kind: int, depth: int) -> Any:
    if kind in (1, 2):
        return kind == 1
    if kind in (4, 5, 6):
        return _integer(file)
    if kind == 12 and depth < _DEEPEST:
        return _record(file, depth + 1)
    if kind not in (3, 7, 8):
        raise ValueError(f"a field of kind {kind}")
    length = {3: 1, 7: 8}.get(kind) or _natural(file)
    file.seek(length, 1)
    return None


def _integer(file: IO[bytes]) -> int:
    coded = _natural(file)
    return coded // 2 ^ -(coded % 2)


def _natural(file: IO[bytes]) -> int:
    found = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)[0]
        found |= (byte & 127) << shift
        if byte < 128:
            return found
    raise ValueError("a number without end")
