"""Whether a file of Arrow holds compressed rows: nothing says what they unpack to until they are unpacked.

The messages of such a file are read without their rows. They are FlatBuffers (``Message.fbs`` of Arrow).
"""

from contextlib import suppress
from pathlib import Path
from struct import unpack_from
from typing import Any

FILE_MARK = b"ARROW1"
STREAM_MARK = b"\xff\xff\xff\xff"

_HEADER = 2  # field of a message
_ROWS_OF_DICTIONARY = 1  # field of a dictionary's header
_COMPRESSION = 3  # field of a batch of rows


def has_compressed_rows(arrow: Any, path: Path) -> bool:
    """Tell whether a batch of rows or a dictionary in a file of Arrow is compressed.

    Raises
    ------
    ValueError, OSError
        If the file is damaged.
    """
    with arrow.memory_map(str(path)) as file, suppress(EOFError):
        file.seek(8 if file.read(6) == FILE_MARK else 0)
        while True:
            message = arrow.ipc.read_message(file)
            if message.type == "schema":
                continue
            data = message.metadata.to_pybytes()
            rows = _field(data, unpack_from("<I", data)[0], _HEADER)
            if message.type == "dictionary":
                rows = _field(data, rows, _ROWS_OF_DICTIONARY)
            if _field(data, rows, _COMPRESSION):
                return True
    return False


def _field(data: bytes, table: int, number: int) -> int:
    """Return the place of the table that is a field of another, or 0 if the field is not there."""
    fields = table - unpack_from("<i", data, table)[0]
    (size,) = unpack_from("<H", data, fields)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = unpack_from("<H", data, fields + 4 + 2 * number)
    if not offset:
        return 0
    return int(table + offset + unpack_from("<I", data, table + offset)[0])
