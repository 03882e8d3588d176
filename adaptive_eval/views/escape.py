"""Makes text from outside inert in Markdown and HTML: it is shown and not interpreted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaptive_eval.views.inert import inert

_LONGEST = 2_000
_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$#@])")
_LINK = re.compile(r"(?<=[A-Za-z])(:)(?=//)|(?<=www)(\.)", re.IGNORECASE)
_BLOCK_START = re.compile(r"^(\d{0,9})([.)](?=\s|$)|[-+](?=[-+\s]|$)|=)")


def clipped(text: str, most: int = 500) -> str:
    """Return `text` inert on one line, at most `most` characters of it, with the number of those omitted.

    Examples
    --------
    >>> clipped("oak"), clipped("x" * 1_000_000, most=5)
    ('oak', 'xxxxx… (1,000,000 characters)')
    """
    return inert(text) if len(text) <= most else f"{inert(text[:most])}… ({len(text):,} characters)"


def excerpt(text: str, head: int = 400, tail: int = 800) -> str:
    """Return beginning and end of a long text, with the number of characters between them.

    Examples
    --------
    >>> excerpt("short"), len(excerpt("x" * 10**6)) < 1_300
    ('short', True)
    """
    between = len(text) - head - tail
    if between <= 0:
        return text
    return f"{text[:head]}\n… {between:,} characters …\n{text[-tail:]}"


def md(text: str) -> str:
    r"""Return `text` as Markdown that renders as the same text, on one line.

    Control characters are made visible; everything that could start markup, a table cell, HTML, a link, a
    formula or a mention is escaped.

    Examples
    --------
    >>> print(md("a|b <i>x</i> `c`\n[d](e)"))
    a\|b \<i\>x\</i\> \`c\`␊\[d\](e)
    """
    escaped = _SPECIAL.sub(r"\\\1", clipped(text, _LONGEST).strip())
    escaped = _LINK.sub(lambda found: "\\" + found.group(), escaped)
    return _BLOCK_START.sub(r"\1\\\2", escaped)


def fenced(text: str, language: str = "") -> str:
    """Return a code block that holds `text` line by line, however many backticks it has."""
    lines = [clipped(line.expandtabs(4), _LONGEST) for line in text.splitlines()]
    longest = max((len(run) for run in re.findall(r"`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + language, *lines, fence])


def table(header: list[str], rows: list[list[str]], numbers: str = "") -> str:
    """Return a Markdown table of cells that are Markdown already.

    Examples
    --------
    >>> print(table(["a", "n"], [["x", "1"]], "lr"))
    | a | n |
    | :-- | --: |
    | x | 1 |
    """
    sides = numbers.ljust(len(header), "l")
    rule = ["--:" if side == "r" else ":--" for side in sides]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


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
