"""Keep keys and header values out of every message that could be stored, shown or logged."""

import base64
import html
import json
import re
import unicodedata
import zlib
from codecs import encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from urllib.parse import quote_plus, unquote

REDACTED = "[redacted]"
_SHORTEST = 4
"""A value shorter than this is no secret, and hiding it would blot out ordinary words."""
_LONGEST_WORD = 15
"""Letters alone, up to so many, may be a word of a header: turned around or in capitals, it is another's."""
_LEAST_PART = 8
"""Characters of base64 that are the secret's own, where it stands in the middle of what was encoded."""
_LEAST_PARTED = 8
"""Letters and digits of a secret that is also found with others between them."""
_BETWEEN = bytes(code for code in range(256) if not chr(code).isalnum() or code > 127)


class Redactor:
    """Replace known secrets in a text.

    A secret is also found in the forms in which a server may echo it: percent-encoded as in a URL or a form,
    escaped as in HTML, and as in a JSON string, once or (JSON quoted within JSON) twice. A secret that is no
    plain word is also found in capitals or small letters, backwards, in base64 (alone or within something
    longer), base32, hexadecimal or ROT13, in what was compressed and then written so, as the list of its
    bytes, and with any of its characters escaped, of full width, or parted by characters that are not seen;
    then the whole text is shown unescaped. One of letters and digits is found with anything else between
    them: spaces, dashes, quotation marks. A text has to be shown to it whole: nothing is found of a secret
    whose end was cut off.

    Examples
    --------
    >>> Redactor(["sk-1234"])("Incorrect API key provided: sk-1234.")
    'Incorrect API key provided: [redacted].'
    >>> Redactor(["sk-1234"])("4321-ks, SK-1234, c2stMTIzNA==")
    '[redacted], [redacted], [redacted]'
    >>> Redactor(["sk-123456"])('The key is s k - 1 2 3 4 5 6.')
    'The key is [redacted].'
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        forms: set[str] = set()
        spellings: set[str] = set()
        self._parted: dict[bytes, re.Pattern[str]] = {}
        for secret in secrets:
            bare = _bare(secret)
            if len(bare) >= _LEAST_PARTED and not (bare.isalpha() or bare.isdigit()):
                self._parted |= {one: _parted(one.decode()) for one in (bare, bare[::-1])}
            if len(secret) >= _SHORTEST:
                forms.update(_forms(secret))
            if len(secret) >= _SHORTEST and not _is_word(secret):
                spellings.update(form.lower() for form in (*_forms(secret), *_spellings(secret)))
        patterns = {form: re.compile(re.escape(form)) for form in forms}
        # Case matters no more in what is a spelling: that takes the place of the form.
        patterns |= {form: re.compile(re.escape(form), re.IGNORECASE) for form in spellings}
        # Longest first: a secret that contains another one must go as a whole.
        ordered = sorted(patterns, key=lambda form: (-len(form), form))
        self._forms = tuple((form, form in spellings, patterns[form]) for form in ordered)

    def __call__(self, text: str) -> str:
        """Return `text` with every occurrence of a secret replaced by ``[redacted]``."""
        if not self:
            return text
        text = self._hidden(text)
        text = _RUN.sub(lambda run: REDACTED if self._is_in(run[0], 2) else run[0], text)
        plain = _plain(text)
        if plain == text:
            return text
        hidden = self._hidden(plain)
        if hidden == plain:
            return text
        return hidden

    def _is_in(self, run: str, depth: int) -> bool:
        """Tell whether a secret is in what was encoded or compressed, up to `depth` times more."""
        for data in _unpacked(run):
            said = data.decode("latin-1")
            if self._hidden(said) != said:
                return True
            if depth and any(self._is_in(deeper[0], depth - 1) for deeper in _RUN.finditer(said)):
                return True
        return False

    def _hidden(self, text: str) -> str:
        small = text.lower()
        for form, in_any_case, pattern in self._forms:
            if form in (small if in_any_case else text):
                text = pattern.sub(REDACTED, text)
                small = text.lower()
        if self._parted:
            bare = _bare(small)
            for one, pattern in self._parted.items():
                if one in bare:
                    text = pattern.sub(REDACTED, text)
        return text

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __repr__(self) -> str:
        return f"Redactor(<{len(self._forms)} forms>)"


def _bare(text: str) -> bytes:
    """Return the letters and digits of ASCII in a text, small."""
    return text.lower().encode("utf-8", "surrogatepass").translate(None, _BETWEEN)


def _parted(bare: str) -> re.Pattern[str]:
    return re.compile("[^a-z0-9]*".join(bare), re.IGNORECASE)


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret in the ways in which it may be written."""
    yield from (secret, quote_plus(secret))
    for escaped in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield from (escaped, escaped.replace("/", "\\/"), json.dumps(escaped)[1:-1])


_ESCAPED = re.compile(
    r"\\+(?:u\{([0-9a-f]{1,6})\}|(?-i:U)([0-9a-f]{8})|u([0-9a-f]{4})|x([0-9a-f]{2})|([0-9a-f]{6})|([0-3][0-7]{2}))"
    r"|%u([0-9a-f]{4})",
    re.IGNORECASE,
)
_NOT_SEEN = re.compile("[\n\r\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")


def _plain(text: str) -> str:
    """Return a text without escapes of HTML, URLs and strings, ends of lines and what is not seen."""
    if not unicodedata.is_normalized("NFKC", text):  # letters of full width, or of mathematics
        text = unicodedata.normalize("NFKC", text)
    for _ in range(3):  # one may be within another
        before = text
        if "&" in text:
            text = html.unescape(text)
        if "%" in text:
            text = unquote(text)
        if "\\" in text or "%u" in text:
            text = _ESCAPED.sub(_character, text).replace("\\/", "/")
        if text == before:
            break
    return _NOT_SEEN.sub("", text)


def _character(found: re.Match[str]) -> str:
    *hexadecimal, octal, of_script = found.groups()
    hexadecimal.append(of_script)
    if octal:
        number = int(octal, 8)
    else:
        number = int(next(filter(None, hexadecimal)), 16)
    if number < 0x110000:
        return chr(number)
    return found[0]


_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-][A-Za-z0-9+/_\r\n-]{30,}={0,6}")
"""What may be base64, base32 or hexadecimal of something longer than a word."""

_MOST = 2**20
"""Bytes that are looked at of what was compressed."""


def _unpacked(run: str) -> Iterator[bytes]:
    """Yield what a run of letters and digits may have been made from, uncompressed."""
    bare = "".join(run.split()).rstrip("=")
    ways: list[Callable[[str], bytes]] = [base64.urlsafe_b64decode, base64.b32decode, bytes.fromhex]
    ends = (-len(bare) % 4, -len(bare) % 8, 0)
    for decode, end in zip(ways, ends, strict=True):
        try:
            data = decode(bare.replace("+", "-").replace("/", "_") + "=" * end)
        except ValueError:
            continue
        yield data
        for form in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):  # gzip or zlib, and without their heads
            with suppress(zlib.error):
                yield zlib.decompressobj(form).decompress(data, _MOST)


def _is_word(secret: str) -> bool:
    """Return whether a value may well be an ordinary word, such as one of a header that names a team."""
    return secret.isalpha() and len(secret) <= _LONGEST_WORD


def _spellings(secret: str) -> Iterator[str]:
    """Yield what a secret is written as by those who would not have it found."""
    data = secret.encode("utf-8", "surrogatepass")
    whole = base64.b64encode(data).decode()
    written = [secret, data.decode("latin-1"), data.hex(), whole, *_parts_of_base64(data)]
    written += [
        base64.b64encode(whole.encode()).decode(),
        base64.b32encode(data).decode(),
        encode(secret, "rot13"),
    ]
    written += [one.rstrip("=") for one in written]
    written += [one.replace("+", "-").replace("/", "_") for one in written[2:]]
    for one in written:
        yield from (one, one.replace("/", "\\/"), one[::-1])
    for base in ("{}", "0x{:02x}", "0x{:x}", "{:02x}", "{:08b}"):
        for values in (data, data[::-1]):
            numbers = list(map(base.format, values))
            yield from (separator.join(numbers) for separator in (", ", ",", " ", "\n", ":", "-"))
    for escape in ("%{:02x}", "\\x{:02x}", "\\u{:04x}"):
        yield "".join(map(escape.format, data))


def _parts_of_base64(data: bytes) -> Iterator[str]:
    """Yield what base64 shows of `data` in the middle of something longer, for each place it may begin at."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        part = encoded[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        if len(part) >= _LEAST_PART:
            yield part


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
    line = "".join(map(_printable, " ".join(words)))
    if len(line) <= limit:
        return line
    return line[: limit - 1] + "…"


def _printable(char: str) -> str:
    if char.isprintable():
        return char
    return "\ufffd"
