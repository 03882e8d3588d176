"""Finds API keys that were pasted into a config, so that none is stored, logged or shown.

A config names the environment variable that holds a key. Whatever looks like a key itself is refused, and
no message repeats it.
"""

import re
from typing import Any

from adaptive_eval.options.mistakes import Found, Place, has_credentials, looks_like_secret, secret

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


_ADVICE = "put it in an environment variable and give the variable's name"


def find_secrets(data: Any, path: Place = ()) -> Found:
    """Yield each value that is, or may be, a key itself.

    Examples
    --------
    >>> next(find_secrets({"models": ({"api_key": "sk-0123456789"},)}))[0]
    ('models', 0, 'api_key')
    """
    if isinstance(data, dict):
        for key, child in data.items():
            here = (*path, key)
            if looks_like_secret(key):
                words = f"the name of this setting looks like a key itself; {_ADVICE} in api_key_env"
                yield here, secret(words)
            elif is_secret_name(key, header="headers" in path) and _is_literal(child):
                setting = "api_key_env"
                if "headers" in path:
                    setting = "{env: NAME}"
                yield here, secret(f"a secret does not belong in a config; {_ADVICE} as {setting}")
            else:
                yield from find_secrets(child, here)
    elif isinstance(data, tuple):
        for place, child in enumerate(data):
            yield from find_secrets(child, (*path, place))
    elif isinstance(data, str):
        if path and path[-1] == "api_key_env" and (is_random_token(data) or looks_like_secret(data)):
            yield path, secret(f"this looks like a key itself, not like a variable's name; {_ADVICE}")
        elif has_credentials(data):
            advice = "remove them and name the key's variable in api_key_env"
            yield path, secret(f"the URL holds credentials; {advice}")
        elif looks_like_secret(data):
            yield path, secret(f"this looks like a key itself; {_ADVICE} in api_key_env")


def _is_literal(value: Any) -> bool:
    """Tell whether a value is given itself, as text or number, and not by the name of a variable."""
    if isinstance(value, dict):
        return "value" in value
    return isinstance(value, str | int | float) and not isinstance(value, bool)
