"""Dataset files as rows with their line numbers, and everything that is wrong with them as files."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import IO, Any, TypeAlias

import zstandard

from adaptive_eval.errors import DatasetError, in_words

_COMPRESSED = (".gz", ".zst")


def opened(path: Path) -> IO[bytes]:
    """Open a file; one whose name ends in ``.gz`` or ``.zst`` is decompressed."""
    about = path.stat()
    if not (S_ISREG(about.st_mode) or S_ISDIR(about.st_mode)):
        raise DatasetError(f"{path}: a pipe or a device cannot be read several times; copy it to a file")
    if path.suffix.lower() not in _COMPRESSED:
        return path.open("rb")
    _require_bounded(path, about.st_size, about.st_mtime_ns)
    return _decompressed(path)


def _decompressed(path: Path) -> IO[bytes]:
    is_gzip = path.suffix.lower() == ".gz"
    return gzip.open(path) if is_gzip else zstandard.open(path)  # type: ignore[return-value]  # reads as a file


@cache  # a file is opened several times
def _require_bounded(path: Path, size: int, _changed: int) -> None:
    from adaptive_eval.tasks.unpacking import require_bounded_stream

    is_gzip = path.suffix.lower() == ".gz"
    # of a damaged file, its reader says what is wrong
    with _decompressed(path) as file, suppress(EOFError, OSError, zlib.error, zstandard.ZstdError):
        length = None
        if is_gzip:
            length = size
        require_bounded_stream(path, file, length)


def uncompressed(path: Path) -> Path:
    """Return a path without the ending ``.gz`` or ``.zst`` of a compressed file."""
    if path.suffix.lower() in _COMPRESSED:
        return path.with_suffix("")
    return path


def ending_of(path: Path) -> str:
    """Return the ending of a file's name, that before ``.gz`` or ``.zst`` if it is compressed.

    Examples
    --------
    >>> ending_of(Path("results.JSON")), ending_of(Path("7.json.zst")), ending_of(Path("table.csv.gz"))
    ('.json', '.json', '.csv')
    """
    return uncompressed(path).suffix.lower()


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a dataset."""

    line: int  # line of the file on which it begins, from 1
    values: Mapping[str, Any]  # column to value


@dataclass(frozen=True, slots=True)
class RowFile:
    """The rows and flaws of a file."""

    rows: tuple[Row, ...]  # the rows that could be read
    # line and words for each thing that could not; line 0 means the whole file
    problems: tuple[tuple[int, str], ...]

    @classmethod
    def from_found(cls, found: Iterable[Found], source: str) -> RowFile:
        """Return what was found in a `source`; it must hold something."""
        rows: list[Row] = []
        problems: list[tuple[int, str]] = []
        for one in found:
            if isinstance(one, Row):
                rows.append(one)
            else:
                problems.append(one)
        if not rows and not problems:
            problems.append((0, f"the {source} has no rows"))
        return cls(tuple(rows), tuple(problems))


def read_rows(path: Path) -> RowFile:
    r"""Read a dataset file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.csv")
    ...     _ = path.write_text("id,input,target\n1,2 + 2?,4\n")
    ...     file = read_rows(path)
    >>> file.rows[0].line, file.rows[0].values["target"]
    (2, '4')
    """
    return RowFile.from_found(stream_rows(path), "file")


Found: TypeAlias = Row | tuple[int, str]
"""A row, or the line and the words of what is wrong."""


def stream_rows(path: Path) -> Iterator[Found]:
    """Read a dataset file a row at a time; only a ``.json`` file is in memory as a whole."""
    known = _READERS.get(ending_of(path))
    if known is None:
        endings = ", ".join(sorted(_READERS))
        advice = ""
        if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
            advice = "; save the sheet as CSV"
        raise DatasetError(
            f"{path}: cannot tell the format from the ending {path.suffix!r}; use one of {endings}{advice}"
        )
    newline, reader = known
    try:
        with opened(path) as file:
            marks = file.read(2)
        if marks in (b"\xff\xfe", b"\xfe\xff"):
            yield 0, "the file is UTF-16; save it as UTF-8"
            return
        with (
            opened(path) as file,
            io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline) as text,
        ):
            lines = _TextLines(text)
            for found in reader(lines):
                yield from lines.problems()
                yield found
            yield from lines.problems()
    except FileNotFoundError:
        raise no_such_file(path) from None
    except (EOFError, OSError, zlib.error, zstandard.ZstdError) as error:
        raise DatasetError(f"{path}: cannot be read: {in_words(error)}") from None


def no_such_file(path: Path) -> DatasetError:
    """Return the error of a dataset that is not there."""
    words = f"{path}: there is no such file; a relative path starts from the config's folder"
    return DatasetError(words, code="dataset/not-found")


class _TextLines:
    """The lines of a text; bytes that are not UTF-8 are replaced, and noted with their lines."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self._problems: list[tuple[int, str]] = []

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self._lines, start=1):
            if line.isascii():
                yield line
            else:
                yield self._readable(number, line)

    def problems(self) -> list[tuple[int, str]]:
        """Return the notes since the last call."""
        noted, self._problems = self._problems, []
        return noted

    def _readable(self, number: int, line: str) -> str:
        data = line.encode("utf-8", "surrogateescape")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"byte {error.start + 1} of the line (0x{data[error.start]:02x})"
            self._problems.append((number, f"{byte} is not UTF-8; save the file as UTF-8"))
            return data.decode("utf-8", "replace")


def _twice(names: Iterable[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


class _Json:
    """Reads JSON values, noting what the standard decoder lets pass."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.decoder = json.JSONDecoder(object_pairs_hook=self._object, parse_constant=self._constant)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) < len(pairs):
            twice = _twice(name for name, _ in pairs)
            self.notes.append(f"{', '.join(map(repr, twice))} appears twice in one object")
        return values

    def _constant(self, name: str) -> None:
        self.notes.append(f"{name} is not a JSON value")

    def value(self, text: str, start: int) -> tuple[Any, int, str | None]:
        """Return the value at `start`, its end, and its flaw."""
        self.notes.clear()
        try:
            value, end = self.decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            return None, error.pos, f"not valid JSON: {error.msg.lower()}"
        except RecursionError:
            return None, start, "not usable: nested too deeply"
        except ValueError:
            return None, start, "not usable: a number has too many digits"
        if "\\u" in text[start:end] and not _is_encodable(value):
            self.notes.append("half of a Unicode surrogate pair (\\ud800 to \\udfff) occurs alone")
        return value, end, "; ".join(self.notes) or None


def _is_encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _as_row(line: int, value: Any, wrong: str | None) -> Found:
    if wrong is not None:
        return line, wrong
    if not isinstance(value, dict):
        advice = ""
        if isinstance(value, list):
            advice = "; a file that is one list ends in .json"
        return line, f"a row must be an object with named fields, not {json.dumps(value)[:40]}{advice}"
    return Row(line, value)


def _json_lines(lines: Iterable[str]) -> Iterator[Found]:
    reader = _Json()
    for number, line in enumerate(lines, start=1):
        content = line.strip()
        if not content:
            continue
        value, end, wrong = reader.value(content, 0)
        if wrong is None and content[end:].strip():
            wrong = f"not valid JSON: more follows after the object: {content[end:].strip()[:40]!r}"
        yield _as_row(number, value, wrong)


def _json_list(lines: Iterable[str]) -> Iterator[Found]:
    text = "".join(lines)
    if not text.lstrip().startswith("["):
        yield from _json_lines(text.split("\n"))
        return
    reader, line, counted = _Json(), 1, 0
    position = _skip_space(text, text.index("[") + 1)
    if text[position : position + 1] == "]":
        return
    while True:
        line += text.count("\n", counted, position)
        counted = position
        value, position, wrong = reader.value(text, position)
        broken = wrong is not None and value is None
        yield _as_row(line + text.count("\n", counted, position) if broken else line, value, wrong)
        if broken:
            return
        position = _skip_space(text, position)
        if text[position : position + 1] != ",":
            break
        position = _skip_space(text, position + 1)
    if text[position : position + 1] != "]" or text[position + 1 :].strip():
        yield line, "not valid JSON: after this row, a comma or the end of the list is missing"


def _skip_space(text: str, position: int) -> int:
    while text[position : position + 1] in (" ", "\t", "\r", "\n"):
        position += 1
    return position


_SEPARATOR = re.compile('"?sep=(.)"?')
"""A first line by which a spreadsheet is told what parts the cells."""


def _separated(lines: Iterable[str], delimiter: str) -> Iterator[Found]:
    read = iter(lines)
    begin = list(islice(read, 1))
    first = "".join(begin)
    said = _SEPARATOR.fullmatch(first.strip())
    if said:
        delimiter = said[1]
    elif delimiter not in first:
        # A spreadsheet writes semicolons where a comma is in numbers, and tabs when it is asked to.
        delimiter = next((one for one in (";", "\t") if one in first), delimiter)
    reader = csv.reader(chain(begin, read), delimiter=delimiter, strict=True)
    try:
        if said:
            next(reader)
        header = next(reader, [])
        twice = _twice(header)
        if twice:
            yield 1, f"the column {', '.join(map(repr, twice))} appears twice"
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells:
                continue
            if len(cells) != len(header):
                words = f"has {len(cells)} cells and the first line names {len(header)} columns"
                yield line, f"{words}; check quotes and commas"
            else:
                yield Row(line, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        yield reader.line_num, f"not readable as CSV: {error}"


_READERS: Mapping[str, tuple[str, Callable[[Iterable[str]], Iterator[Found]]]] = {
    ".jsonl": ("\n", _json_lines),
    ".ndjson": ("\n", _json_lines),
    ".json": ("\n", _json_list),
    ".csv": ("", partial(_separated, delimiter=",")),
    ".tsv": ("", partial(_separated, delimiter="\t")),
}
"""By ending: where lines end (the empty text: anywhere that CSV allows), and the reader."""
