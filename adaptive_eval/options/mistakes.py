"""Mistakes in options: their codes, which docs/troubleshooting.md explains, and their words."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

from adaptive_eval.errors import Coded

Place: TypeAlias = tuple[str | int, ...]
"""The path of a value: keys of mappings and positions in lists, from the top."""

Found: TypeAlias = Iterator[tuple[Place, str]]
"""Mistakes, each with its place."""

CONFLICT: Final = "config/conflict"
"""The code of mistakes without their own: settings that conflict."""

MALFORMED: Final = "config/value"

malformed = partial(Coded, MALFORMED)
missing = partial(Coded, "config/missing")
no_dataset = partial(Coded, "config/no-dataset")
not_accepted = partial(Coded, "config/not-accepted")
not_allowed = partial(Coded, "config/not-allowed")
not_one_of = partial(Coded, "config/not-one-of")
out_of_range = partial(Coded, "config/out-of-range")
reserved = partial(Coded, "config/reserved")
secret = partial(Coded, "config/secret")
twice = partial(Coded, "config/twice")
unheld = partial(Coded, "config/budget")
unknown_key = partial(Coded, "config/unknown-key")
unknown_name = partial(Coded, "config/unknown-name")
unusable_prompt = partial(Coded, "config/prompt")


class Mistakes(ValueError):
    """Several mistakes of one record, each with its place inside the record."""

    def __init__(self, found: Iterable[tuple[Place, str]]) -> None:
        self.found = tuple(found)
        super().__init__(self.listed())

    def listed(self, source: str = "") -> str:
        """Return the mistakes, one a line, each after its place in `source`."""
        lines = [(source, dotted(place), words) for place, words in self.found]
        return "\n".join(": ".join(filter(None, line)) for line in lines)


def refuse(found: Iterable[tuple[Place, str]]) -> None:
    """Raise all mistakes that were found, if any."""
    mistakes = Mistakes(found)
    if mistakes.found:
        raise mistakes


def dotted(path: Place) -> str:
    """Return `path` as people write it.

    Examples
    --------
    >>> dotted(("models", 0, "endpoints", 1))
    'models[0].endpoints[1]'
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}"
    return text.removeprefix(".")


_MEANT = {
    "best": "top-k",
    "winner": "top-k",
    "margin": "equivalence",
    "rope": "equivalence",
    "noninferiority": "not-worse",
}
"""Words of the field for what a config calls otherwise."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` was probably meant to be."""
    words = list(known)
    meant = _MEANT.get(re.sub("[-_]", "", word.lower()))
    if meant in words:
        return meant
    begun = [one for one in words if len(word) > 2 and one.startswith(word)]
    return next(iter((*difflib.get_close_matches(word, words, n=1, cutoff=0.6), *begun)), None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the known word nearest to `word`, or nothing.

    Examples
    --------
    >>> did_you_mean("modles", ["models", "tasks"])
    "; did you mean 'models'?"
    >>> did_you_mean("temp", ["top_p", "temperature"])
    "; did you mean 'temperature'?"
    """
    near = nearest(word, known)
    if near:
        return f"; did you mean {near!r}?"
    return ""


_KNOWN_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"sk-[\w-]{6,}|hf_[A-Za-z0-9]{10,}|(?:gsk_|xai-|pplx-|r8_|fw_)[A-Za-z0-9]{16,}|(?:nvapi-|tgp_v1_)[\w-]{16,}|"
    r"AIza[\w-]{20,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|glpat-[\w-]{12,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|"
    r"eyJ[\w-]{8,}\.[\w-]{8,}|[Bb]earer\s+(?=\S*\d)[\w.~+/=-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY"
    r")",
    re.ASCII,
)
_URL_CREDENTIALS = re.compile(
    r"://[^/\s?#@]*@|[?&](?:api[-_]?key|key|token|access_token|sig)=[^&\s]", re.IGNORECASE
)


def looks_like_secret(text: str) -> bool:
    """Tell whether `text` holds something of the form of a known kind of key, or a URL with credentials.

    Examples
    --------
    >>> [looks_like_secret(text) for text in ("sk-proj-abcdef123456", "risk-assessment-2", "VLLM_KEY")]
    [True, False, False]
    """
    return bool(_KNOWN_KEYS.search(text) or has_credentials(text))


def has_credentials(text: str) -> bool:
    """Tell whether `text` holds a URL with credentials."""
    return bool(_URL_CREDENTIALS.search(text))


def shown(value: Any) -> str:
    """Return `value` as a message may show it: short, and hidden if it may be a secret.

    Examples
    --------
    >>> shown("holmm"), shown("sk-0123456789abcdef"), shown("x" * 100)[:12]
    ("'holmm'", '(a value that may be a key and is not shown)', "'xxxxxxxxxxx")
    """
    if value is None or isinstance(value, bool):
        text = json.dumps(value)
    else:
        text = repr(value)
    if looks_like_secret(text):
        return "(a value that may be a key and is not shown)"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, tuple | list):
        return "a list"
    if len(text) <= 80:
        return text
    return f"{text[:60]}… ({len(text)} characters)"
