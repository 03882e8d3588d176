"""Finds API keys that were pasted into a config, so that none is stored, logged or shown.

A config names the environment variable that holds a key. Whatever looks like a key itself is refused, and
no message repeats it.
"""

import re
from collections.abc import Iterator
from typing import Any

from adaptive_eval.config.document import Document
from adaptive_eval.errors import Problem
from adaptive_eval.options.mistakes import Place, dotted, has_credentials, looks_like_secret

_SECRET_NAME = re.compile(
    r"(?i)(?:^|[-_])(?:api[-_]?key|access[-_]?token|auth[-_]?token|secret|passw(?:or)?d)$|authorization"
)
_SECRET_HEADER = re.compile(r"(?i)key$|token$|cookie$")
_UNBROKEN = re.compile(r"[A-Za-z0-9+/=.~-]{20,}", re.ASCII)


def is_secret_name(name: str, *, header: bool = False) -> bool:
    """Tell whether a setting, or a header, of this name holds a secret by its name.

    Examples
    --------
    >>> [is_secret_name(name) for name in ("api_key", "X-Api-Key", "max_tokens", "api_key_env")]
    [True, True, False, False]
    >>> is_secret_name("key"), is_secret_name("X-Goog-Key", header=True)
    (False, True)
    """
    return bool(_SECRET_NAME.search(name) or (header and _SECRET_HEADER.search(name)))


def is_random_token(text: str) -> bool:
    """Tell whether `text` is one long unbroken run of letters and digits, as keys are and names are not.

    Examples
    --------
    >>> is_random_token("9f8a7b6c5d4e3f2a1b0c9d8e"), is_random_token("MY_PROVIDER_API_KEY_2")
    (True, False)
    """
    return bool(_UNBROKEN.fullmatch(text)) and any(char.isdigit() for char in text)


def find_secrets(document: Document, text: str) -> list[tuple[Place, Problem]]:
    r"""Return a problem for each value that is, or may be, a key itself.

    Examples
    --------
    >>> from adaptive_eval.config.document import read_document
    >>> text = "models:\n- api_key: sk-0123456789"
    >>> find_secrets(read_document(text), text)[0][1].path
    'models[0].api_key'
    """
    found = [
        (path, Problem(dotted(_safe(path)), advice, document.line(path), _CODE))
        for path, advice in _in_data(document.data, ())
    ]
    lines = {problem.line for _, problem in found}
    for number, line in enumerate(text.split("\n"), start=1):
        if number not in lines and looks_like_secret(line):
            words = "this line holds what looks like a key; remove it (the text is stored with the run)"
            found.append(((), Problem("", words, number, _CODE)))
    return found


_CODE = "config/secret"
_ADVICE = "put it in an environment variable and give the variable's name"


def _in_data(value: Any, path: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, dict):
        for key, child in value.items():
            here = (*path, key)
            if looks_like_secret(key):
                yield here, f"the name of this setting looks like a key itself; {_ADVICE} in api_key_env"
            elif is_secret_name(key, header="headers" in path) and _is_literal(child):
                setting = "{env: NAME}" if "headers" in path else "api_key_env"
                yield here, f"a secret does not belong in a config; {_ADVICE} as {setting}"
            else:
                yield from _in_data(child, here)
    elif isinstance(value, tuple):
        for place, child in enumerate(value):
            yield from _in_data(child, (*path, place))
    elif isinstance(value, str):
        if path and path[-1] == "api_key_env" and (is_random_token(value) or looks_like_secret(value)):
            yield path, f"this looks like a key itself, not like a variable's name; {_ADVICE}"
        elif has_credentials(value):
            yield path, "the URL holds credentials; remove them and name the key's variable in api_key_env"
        elif looks_like_secret(value):
            yield path, f"this looks like a key itself; {_ADVICE} in api_key_env"


def _is_literal(value: Any) -> bool:
    """Tell whether a value is given itself, as text or number, and not by the name of a variable."""
    if isinstance(value, dict):
        return "value" in value
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _safe(path: Place) -> Place:
    return tuple("(hidden)" if isinstance(part, str) and looks_like_secret(part) else part for part in path)
