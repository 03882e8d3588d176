"""Text from outside (model names, answers, error messages) made safe and short enough to show.

A model name can hold an escape sequence that clears the screen, an override that reverses the rest of the
line, or a newline that forges a row. :func:`inert` turns each such character into a visible stand-in, so
that what was there can be read and does nothing.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

from rich.cells import cell_len, set_cell_size

_CONTROL_PICTURES = 0x2400
_FORMULA = tuple("=+-@＝＋－＠\t\r")
_MAX_MARKS = 2  # combining marks kept per character; more would be drawn over the neighbouring lines


def inert(text: str) -> str:
    r"""Return `text` on one line, with every character that could act on a display made visible.

    Control characters become their Unicode pictures, format characters (bidirectional overrides,
    zero-width characters), line separators, surrogates and unassigned code points become ``\uXXXX``, and
    piles of combining marks are cut.

    Examples
    --------
    >>> inert("oak")
    'oak'
    >>> inert("a\x1b[31mred\nb")
    'a␛[31mred␊b'
    >>> inert("user\u202egnp.exe")
    'user\\u202egnp.exe'
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        if category in ("Mn", "Me"):
            marks += 1
        else:
            marks = 0
        if marks <= _MAX_MARKS:
            shown.append(_visible(char, category))
    return "".join(shown)


def without_formula(text: str) -> str:
    """Return `text` as a cell of a spreadsheet: with an apostrophe if it would be a formula.

    Examples
    --------
    >>> [without_formula(text) for text in ("=HYPERLINK(1)", " @x", "-3", "a=1")]
    ["'=HYPERLINK(1)", "' @x", '-3', 'a=1']
    """
    if not text.startswith(_FORMULA) and not text.lstrip().startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return f"'{text}"
    return text


def _visible(char: str, category: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    if code == 0x7F:
        return "␡"
    if category[0] == "C" or category in ("Zl", "Zp"):
        return f"\\u{code:04x}"
    if category == "Zs":
        return " "
    return char


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
    if len(text) <= most:
        return inert(text)
    return f"{inert(text[:most])}… ({len(text):,} characters)"


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
    return _BLOCK_START.sub(r"\1\\\2", _escaped(clipped(text, _LONGEST).strip()))


def _escaped(text: str) -> str:
    return _LINK.sub(lambda found: "\\" + found.group(), _SPECIAL.sub(r"\\\1", text))


def md_with_code(text: str) -> str:
    r"""Return a sentence of ours as Markdown, in which text between backticks is code.

    Examples
    --------
    >>> print(md_with_code("Rule `my_rule` of my_rules says: <b>"))
    Rule `my_rule` of my\_rules says: \<b\>
    """
    parts = clipped(text, _LONGEST).split("`")
    parts[::2] = map(_escaped, parts[::2])
    return "`".join(parts)


def fenced(text: str, language: str = "") -> str:
    """Return a code block that holds `text` line by line, however many backticks it has."""
    lines = [clipped(line.expandtabs(4), _LONGEST) for line in text.splitlines()]
    longest = max((len(run) for run in re.findall(r"`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + language, *lines, fence])


@dataclass(frozen=True, slots=True)
class InertBlock:
    """Inert text of several lines, and how many characters of the whole it leaves out."""

    text: str
    left_out: int


def block(text: str, most: int) -> InertBlock:
    r"""Return the first `most` characters of `text`, line by line inert.

    Examples
    --------
    >>> block("one\r\ntwo\x1b[31m three\u202e", 20)
    InertBlock(text='one\ntwo␛[31m three\\u202e', left_out=0)
    >>> block("x" * 1_000_000, 5)
    InertBlock(text='xxxxx', left_out=999995)
    """
    shown = text[:most].replace("\r\n", "\n").expandtabs(4)
    return InertBlock("\n".join(inert(line) for line in shown.split("\n")), max(0, len(text) - most))


def as_text(value: Any) -> str:
    """Return the content of a request or an answer: text as it is, other values as JSON.

    Examples
    --------
    >>> as_text("Why?"), as_text([{"type": "text", "text": "Why?"}])
    ('Why?', '[{"type": "text", "text": "Why?"}]')
    """
    if isinstance(value, str):
        return value
    plain = value
    if isinstance(value, Mapping):
        plain = dict(value)
    return json.dumps(plain, ensure_ascii=False, default=str)


def download(text: str) -> bytes:
    r"""Return `text` as UTF-8, exactly, but for lone surrogates, which UTF-8 cannot hold.

    Examples
    --------
    >>> download("caf\u00e9 \ud83d")
    b'caf\xc3\xa9 \\ud83d'
    """
    return text.encode("utf-8", "backslashreplace")


ELLIPSIS = "…"


def cut(text: str, width: int) -> str:
    """Return `text`, cut at its end to at most `width` terminal cells.

    Examples
    --------
    >>> cut("Qwen3-4B-Instruct", 10), cut("oak", 10), cut("漢字漢字", 5)
    ('Qwen3-4B-…', 'oak', '漢字…')
    """
    if cell_len(text) <= width:
        return text
    if width > 0:
        return _head(text, width - 1) + ELLIPSIS
    return ""


def distinct_labels(names: Iterable[str], width: int) -> Mapping[str, str]:
    """Return a label of at most `width` cells for every name, no two alike.

    If one is longer, the folders that all names share are left out first, then the words that all end
    with. Names that are still too long are cut in the middle if that keeps them apart, else at the start or
    the end, then the same without what all have in common at either end; if even that is not enough they
    are numbered.

    Examples
    --------
    >>> distinct_labels(["Qwen3-4B-Thinking", "Qwen3-4B-Instruct"], 10)
    {'Qwen3-4B-Thinking': 'Qwen3…king', 'Qwen3-4B-Instruct': 'Qwen3…ruct'}
    >>> names = ["vendor/model-1-it-2507", "vendor/model-2-it-2507"]
    >>> list(distinct_labels(names, 15).values()), list(distinct_labels(names, 5).values())
    (['model-1-it-2507', 'model-2-it-2507'], ['mo…-1', 'mo…-2'])
    >>> list(distinct_labels(names, 12).values())
    ['model-1…', 'model-2…']
    """
    shown = {name: inert(name) for name in names}
    if all(cell_len(text) <= width for text in shown.values()):
        return shown
    if len(shown) > 1:
        texts = list(shown.values())
        shared = texts[0].rfind("/", 0, min(_common_length(texts), min(map(len, texts)) - 1)) + 1
        shown = {name: text[shared:] for name, text in shown.items()}
        if any(cell_len(text) > width for text in shown.values()):
            shown = _without_last_words(shown)
            if all(cell_len(text) < width for text in shown.values()):
                return {name: text + ELLIPSIS for name, text in shown.items()}
    core = _without_common_ends(shown)
    for whole in (shown, core):
        for shorten in (_cut_middle, _cut_start, cut):
            labels = {name: shorten(text, width) for name, text in whole.items()}
            if len(set(labels.values())) == len(labels):
                return labels
    return _numbered(shown, width)


_BETWEEN_WORDS = re.compile(r"[-_.:@/ ]")


def _without_last_words(shown: dict[str, str]) -> dict[str, str]:
    """Return the texts without the words that all of them end with."""
    texts = list(shown.values())
    shared = min(_common_length([text[::-1] for text in texts]), min(map(len, texts)) - 1)
    words = _BETWEEN_WORDS.search(texts[0], len(texts[0]) - shared)
    if words is None:
        return shown
    left_out = len(texts[0]) - words.start()
    return {name: text[:-left_out] for name, text in shown.items()}


def _without_common_ends(shown: Mapping[str, str]) -> Mapping[str, str]:
    """Return the texts with what all of them begin or end with replaced by an ellipsis."""
    texts = list(shown.values())
    head = _common_length(texts)
    tail = _common_length([text[head:][::-1] for text in texts])
    before, after = ELLIPSIS * bool(head), ELLIPSIS * bool(tail)
    return {name: before + text[head : len(text) - tail] + after for name, text in shown.items()}


def _common_length(texts: list[str]) -> int:
    return len(commonprefix(texts))  # noqa: RUF071 - of characters, which is what is meant


def _numbered(shown: Mapping[str, str], width: int) -> Mapping[str, str]:
    labels: dict[str, str] = {}
    for i, (name, text) in enumerate(shown.items(), start=1):
        tail = f"~{i}"
        labels[name] = _head(text, width - len(tail)) + tail
    return labels


def _cut_middle(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    return _head(text, width - 1 - tail) + ELLIPSIS + _head(text[::-1], tail)[::-1]


def _cut_start(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return ELLIPSIS + _head(text[::-1], width - 1)[::-1]


def _head(text: str, width: int) -> str:
    """Return the first characters of `text` that fill at most `width` cells."""
    if cell_len(text) > width:
        return set_cell_size(text, max(0, width)).rstrip()
    return text
