"""Text of any size and content as a bounded block that is safe to show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaptive_eval.views.inert import inert


@dataclass(frozen=True, slots=True)
class Block:
    """Inert text of several lines, and how many characters of the whole it leaves out."""

    text: str
    left_out: int


def block(text: str, most: int) -> Block:
    r"""Return the first `most` characters of `text`, line by line inert.

    Examples
    --------
    >>> block("one\r\ntwo\x1b[31m three\u202e", 20)
    Block(text='one\ntwo␛[31m three\\u202e', left_out=0)
    >>> block("x" * 1_000_000, 5)
    Block(text='xxxxx', left_out=999995)
    """
    shown = text[:most].replace("\r\n", "\n").expandtabs(4)
    return Block("\n".join(inert(line) for line in shown.split("\n")), max(0, len(text) - most))


def as_text(value: Any) -> str:
    """Return the content of a request or an answer: text as it is, other values as JSON.

    Examples
    --------
    >>> as_text("Why?"), as_text([{"type": "text", "text": "Why?"}])
    ('Why?', '[{"type": "text", "text": "Why?"}]')
    """
    if isinstance(value, str):
        return value
    return json.dumps(dict(value) if isinstance(value, Mapping) else value, ensure_ascii=False, default=str)


def download(text: str) -> bytes:
    r"""Return `text` as UTF-8, exactly, but for lone surrogates, which UTF-8 cannot hold.

    Examples
    --------
    >>> download("caf\u00e9 \ud83d")
    b'caf\xc3\xa9 \\ud83d'
    """
    return text.encode("utf-8", "backslashreplace")
