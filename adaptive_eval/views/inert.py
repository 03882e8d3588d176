"""Text from outside (model names, answers, error messages) made safe to show.

A model name can hold an escape sequence that clears the screen, an override that reverses the rest of the
line, or a newline that forges a row. :func:`inert` turns each such character into a visible stand-in, so
that what was there can be read and does nothing.
"""

from __future__ import annotations

import unicodedata

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
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks <= _MAX_MARKS:
            shown.append(_visible(char, category))
    return "".join(shown)


def without_formula(text: str) -> str:
    """Return `text` as a cell of a spreadsheet: with an apostrophe where it would be a formula.

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
    return " " if category == "Zs" else char
