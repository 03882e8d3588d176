"""What every section of a config has in common, and the kinds of value that several sections share."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from adaptive_eval.config.secret_checks import shown
from adaptive_eval.config.units import parse_count, parse_duration, parse_seconds

__all__ = [
    "IN_INSPECT",
    "MIMIC",
    "Count",
    "Duration",
    "Endpoint",
    "EnvName",
    "Label",
    "RunName",
    "Seconds",
    "Section",
    "by_kind",
    "check_url",
]

MIMIC = "mimic"
"""The word that stands for the local server of biased coins in a model's `endpoints`."""

IN_INSPECT = "inspect"
"""The word that stands for a model that Inspect finds by its id, in a model's `endpoints`."""

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}", re.ASCII)
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,99}", re.ASCII)


class Section(BaseModel):
    """A part of a config: frozen, its values taken as written (no text as number), unknown keys refused."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


def by_kind(value: Any) -> Any:
    """Return a section written as its kind alone in full.

    Examples
    --------
    >>> by_kind("ranking")
    {'kind': 'ranking'}
    """
    return {"kind": value} if isinstance(value, str) else value


def _label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError(
            f"{shown(value)} cannot be a name: use up to 100 of letters, digits and . _ - : / @ +, "
            "beginning with a letter or digit"
        )
    return value


def _run_name(value: str) -> str:
    if not _RUN_NAME.fullmatch(value):
        raise ValueError(
            f"{shown(value)} cannot name a run (it names a folder): "
            "use up to 100 of letters, digits and . _ -, beginning with a letter or digit"
        )
    return value


def _env_name(value: str) -> str:
    if not _ENV_NAME.fullmatch(value):
        # Not shown: a key pasted here is the usual cause.
        raise ValueError(
            "this is not the name of an environment variable; write a name such as OPENAI_API_KEY "
            "(capital letters, digits and _), and set the variable to the key"
        )
    return value


def _endpoint(value: str) -> str:
    return value if value in (MIMIC, IN_INSPECT) else check_url(value)


def check_url(value: str) -> str:
    """Return a base URL without a slash at its end.

    Raises
    ------
    ValueError
        It is none; the message does not show what may be a key.

    Examples
    --------
    >>> check_url("http://gpu1:8000/v1/")
    'http://gpu1:8000/v1'
    """
    advice = (
        "write a base URL such as http://localhost:8000/v1, or mimic for the local server of biased coins"
    )
    try:
        url = urlsplit(value)
        port_is_fine = url.port is None or url.port > 0
    except ValueError:
        raise ValueError(f"{shown(value)} is not a URL; {advice}") from None
    if url.scheme not in ("http", "https") or not url.hostname or not port_is_fine or re.search(r"\s", value):
        raise ValueError(f"{shown(value)} is not an http(s) URL; {advice}")
    if url.username is not None or url.password is not None:
        raise ValueError("the URL holds credentials; remove them and name the key's variable in api_key_env")
    if url.query or url.fragment:
        raise ValueError(f"{shown(value)} has a query or fragment; {advice}")
    for tail in ("/chat/completions", "/completions", "/models"):
        if url.path.rstrip("/").endswith(tail):
            raise ValueError(f"{shown(value)} goes too deep: leave out {tail!r}, the client adds it")
    return value.rstrip("/")


Label = Annotated[str, AfterValidator(_label)]
RunName = Annotated[str, AfterValidator(_run_name)]
EnvName = Annotated[str, AfterValidator(_env_name)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Count = Annotated[int, BeforeValidator(parse_count, json_schema_input_type=int | str)]
Duration = Annotated[float, BeforeValidator(parse_duration, json_schema_input_type=str)]
Seconds = Annotated[float, BeforeValidator(parse_seconds, json_schema_input_type=float | str)]
