"""Images and sounds of a dataset as parts of a message: from a file, a URL or a data URI."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote, urlsplit

Medium: TypeAlias = Literal["image", "audio"]

LARGEST = 20 * 2**20
"""Bytes of one image or sound; servers take no larger ones."""

_IMAGES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"BM": "bmp"}
_SOUNDS = {b"ID3": "mp3", b"\xff\xfb": "mp3", b"\xff\xf3": "mp3", b"fLaC": "flac", b"OggS": "ogg"}
_IN_RIFF = {b"WEBP": "webp", b"WAVE": "wav"}


class Unreadable(Exception):
    """A value of a row cannot be used; the message says why."""


def media_parts(value: Any, kind: Medium, folder: Path | None) -> list[dict[str, Any]]:
    """Return the parts for one value, or a list of values, of an image's or sound's column; None is none."""
    values = value if isinstance(value, list | tuple) else [value]
    return [media_part(one, kind, folder) for one in values if one not in (None, "")]


def media_part(value: Any, kind: Medium, folder: Path | None) -> dict[str, Any]:
    """Return an image or a sound as a part of a message; files are looked for in `folder`, None for nowhere.

    Examples
    --------
    >>> media_part("https://example.org/a.png", "image", None)
    {'type': 'image_url', 'image_url': {'url': 'https://example.org/a.png'}}
    """
    options: dict[str, Any] = {}
    if isinstance(value, Mapping) and isinstance(value.get("url"), str):
        options = {name: found for name, found in value.items() if name != "url"}  # such as detail
        value = value["url"]
    if isinstance(value, str) and value.lower().startswith("file:"):
        value = _file_of(value)
    if isinstance(value, str) and value.startswith(("http://", "https://")):
        if kind == "audio":
            raise Unreadable(f"{value[:80]!r} is a URL; a sound is sent as data, so give its file")
        return {"type": "image_url", "image_url": {"url": value, **options}}
    data, named = _data(value, kind, folder)
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": data, "format": named}}
    return {"type": "image_url", "image_url": {"url": f"data:image/{named};base64,{data}", **options}}


def _data(value: Any, kind: Medium, folder: Path | None) -> tuple[str, str]:
    """Return the base64 text of an image or sound, and its format by its first bytes."""
    if isinstance(value, str) and value.startswith("data:"):
        data, place = _decoded(value.partition(";base64,")[2]), "the data URI"
    elif isinstance(value, str):
        data, place = _file(value, kind, folder), value
    else:
        raise Unreadable(f"{value!r:.60} is no {kind}: give a file, a URL or a data URI")
    known = _IMAGES if kind == "image" else _SOUNDS
    named = next((name for start, name in known.items() if data.startswith(start)), None)
    if data[:4] == b"RIFF" and (data[8:12] == b"WAVE") == (kind == "audio"):
        named = _IN_RIFF.get(data[8:12])
    if named is None:
        formats = [*dict.fromkeys(known.values()), "webp" if kind == "image" else "wav"]
        raise Unreadable(f"{place} holds no {kind}; known formats are {', '.join(formats)}")
    if len(data) > LARGEST:
        raise Unreadable(f"{place} has {len(data):,} bytes; servers take at most {LARGEST:,}")
    return b64encode(data).decode(), named


def _file_of(uri: str) -> str:
    """Return the path that a file URI names.

    Examples
    --------
    >>> _file_of("file:///data/a%20b.png"), _file_of("file://localhost/a.png"), _file_of("file:a.png")
    ('/data/a b.png', '/a.png', 'a.png')
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        parts = None
    if parts is None or parts.netloc not in ("", "localhost") or not parts.path:
        raise Unreadable(f"{uri[:80]!r} names no file here; write file:///absolute/path, or the path alone")
    return unquote(parts.path)


def _file(name: str, kind: Medium, folder: Path | None) -> bytes:
    if folder is None:
        raise Unreadable(f"{name[:80]!r} names a file; only a dataset that is a file itself can name files")
    path = folder / Path(name).expanduser()
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise Unreadable(f"the {kind} {str(path)[:200]} cannot be read: {why}") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Error, ValueError):
        raise Unreadable("the data URI holds no base64; write data:image/png;base64,…") from None
