"""Keep keys and header values out of every message that could be stored, shown or logged."""

import html
import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

REDACTED = "[redacted]"
_SHORTEST = 4
"""A value shorter than this is no secret, and hiding it would blot out ordinary words."""


class Redactor:
    """Replace known secrets in a text.

    A secret is also found in the forms in which a server may echo it: percent-encoded as in a URL or a form,
    escaped as in HTML, and as in a JSON string, once or (JSON quoted within JSON) twice. A text has to be
    shown to it whole: nothing is found of a secret whose end was cut off.

    Examples
    --------
    >>> Redactor(["sk-1234"])("Incorrect API key provided: sk-1234.")
    'Incorrect API key provided: [redacted].'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= _SHORTEST:
                forms.update(_forms(secret))
        # Longest first: a secret that contains another one must go as a whole.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def __call__(self, text: str) -> str:
        """Return `text` with every occurrence of a secret replaced by ``[redacted]``."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, REDACTED)
        return text

    def __repr__(self) -> str:
        return f"Redactor(<{len(self._forms)} forms>)"


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret in the ways in which it may be written."""
    yield secret
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield from (html.escape(secret), html.escape(secret, quote=False))
    for escaped in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield from (escaped, escaped.replace("/", "\\/"), json.dumps(escaped)[1:-1])


def storable(text: str) -> str:
    r"""Return `text` with lone surrogates replaced, so that it can be encoded as UTF-8.

    JSON may hold half of a surrogate pair; neither a database nor a terminal takes it.

    Examples
    --------
    >>> storable("half \ud83d of a pair")
    'half \ufffd of a pair'
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shorten(text: str, limit: int = 500) -> str:
    r"""Return `text` on one line, with at most `limit` characters.

    Examples
    --------
    >>> shorten("out  of\nmemory")
    'out of memory'
    >>> shorten("abcdefgh", limit=5)
    'abcd…'
    """
    # A page of megabytes is cut before it is split into words; twice the limit leaves room for white space.
    words = storable(text[: 2 * limit + 1000]).split()
    line = "".join(char if char.isprintable() else "\ufffd" for char in " ".join(words))
    return line if len(line) <= limit else line[: limit - 1] + "…"
