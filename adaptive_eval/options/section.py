"""The base of all records of options, and the kinds of value that several records share."""

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cache, partial, wraps
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast, dataclass_transform
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_wrap_validator_function

from adaptive_eval.errors import UsageError
from adaptive_eval.options.mistakes import Mistakes, dotted, secret, shown
from adaptive_eval.options.wording import mistakes_of

_COUNT = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s?([kKMBG]?)", re.ASCII)
_FACTOR = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s?(d|h|min|m|s)", re.ASCII)
_SECONDS = {"d": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1}
_LARGEST = 10**15


def parse_count(value: Any) -> int:
    """Read a positive whole number, with ``k``, ``M`` or ``B`` for thousand, million, (short) billion.

    Examples
    --------
    >>> parse_count("50M"), parse_count("1.5k"), parse_count(20)
    (50000000, 1500, 20)
    """
    if isinstance(value, str):
        match = _COUNT.fullmatch(value.strip())
        if match is None or len(value) > 30:
            raise ValueError(f"{value[:40]!r} is not a count; write a number such as 20000, 2k, 50M or 1B")
        exact = Fraction(match[1].replace("_", "")) * _FACTOR[match[2]]
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST:
        exact = Fraction(value)
    else:
        raise ValueError(f"{value!r} is not a count; write a number such as 20000, 2k, 50M or 1B")
    if exact.denominator != 1 or not 1 <= exact <= _LARGEST:
        raise ValueError(f"{value!r} is not a whole number from 1 to 10^15")
    return int(exact)


def _two(value: Any) -> Any:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise ValueError(f"{shown(value)} is not a range; write the lowest and the highest score: [1, 10]")
    return value


def _ascending(value: tuple[float, float]) -> tuple[float, float]:
    if not value[0] < value[1]:
        raise ValueError("write the lowest score, then the highest")
    return value


Range = Annotated[tuple[float, float], BeforeValidator(_two), AfterValidator(_ascending)]
"""Lowest and highest score, where scores are numbers."""


def parse_seconds(value: Any) -> Any:
    """Read a time: a duration with its unit, or a bare number of seconds, which is left as it is.

    Examples
    --------
    >>> parse_seconds("1h30m"), parse_seconds("1.5h"), parse_seconds(2.5)
    (5400.0, 5400.0, 2.5)
    """
    if not isinstance(value, str):
        return value
    advice = "write seconds, or a time with its unit, such as 2h, 30m, 90s or 1h30m"
    if len(value) <= 40:
        parts = list(_PART.finditer(value))
    else:
        parts = []
    if not parts or _PART.sub("", value).strip():
        raise ValueError(f"{value[:40]!r} is not a duration; {advice}")
    units = [part[2].removesuffix("in") for part in parts]
    if units != sorted(set(units), key="dhms".index):
        raise ValueError(f"{value!r} repeats a unit or has them out of order; {advice}")
    return float(sum(Fraction(part[1]) * _SECONDS[part[2]] for part in parts))


MIMIC = "mimic"
"""The word for the local server of biased coins in a model's `endpoints`."""

IN_INSPECT = "inspect"
"""The word for a model that Inspect finds by its id, in a model's `endpoints`."""

IN_LITELLM = "litellm"
"""The word for a model that LiteLLM's library reaches by its id, in a model's `endpoints`."""

PYTHON, HUB, INSPECT, LM_EVAL = "python:", "hf:", "inspect:", "lm_eval:"
"""Prefixes of datasets that are no file; the first one also begins a function in a model's `endpoints`."""

_API_VERSION = re.compile(r"api-version=[\w.-]+", re.ASCII)  # Azure
_FUNCTION = re.compile(r"python:([\w.]+|[^:]+\.py):\w+")


STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)
"""Values are taken as written (no text as number), and unknown keys are refused."""


class Section(BaseModel):
    """A part of a config."""

    model_config = ConfigDict(**STRICT, frozen=True, hide_input_in_errors=True)
    whole: ClassVar[type | None] = None
    """The section that is the whole config."""

    @model_validator(mode="wrap")
    @classmethod
    def _in_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        return _worded(cls, data, handler)

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Return the section that is written as `data`; raise :class:`Mistakes` for all that is wrong."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise _cause(error) from None


def as_read(data: Any) -> Any:
    """Return plain data as sections take it: lists are tuples.

    Examples
    --------
    >>> as_read({"a": [1, {"b": []}]})
    {'a': (1, {'b': ()})}
    """
    if isinstance(data, Mapping):
        return {key: as_read(value) for key, value in data.items()}
    if isinstance(data, tuple | list):
        return tuple(map(as_read, data))
    return data


class Record:
    """The base of records that a config has as mappings, and people write by hand: ``Price(0.1, 0.4)``."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: Any = {**handler(source), "strict": False}  # takes a mapping; its values are strict
        worded, name = partial(_worded, source), schema.pop("ref", None)  # by which it is in itself
        return no_info_wrap_validator_function(worded, schema, ref=name)


_T = TypeVar("_T")


def _worded(section: Any, data: Any, handler: Callable[[Any], _T]) -> _T:
    """Return what `handler` makes of the data; raise its mistakes in plain words."""
    try:
        return handler(data)
    except ValidationError as error:
        raise Mistakes(mistakes_of(error, section, described(section), Section.whole)) from None


def _cause(error: ValidationError) -> Mistakes:
    """Return the mistakes in plain words that the library has wrapped."""
    cause: Mistakes = error.errors()[0]["ctx"]["error"]
    return cause


@dataclass_transform(frozen_default=True, field_specifiers=(Field,))
def record(cls: type[_T]) -> type[_T]:
    """Make a class a frozen dataclass whose values are checked, with UsageError when it is made by hand."""
    # a deferred check would put its own __init__ in the place of ours
    made: Any = dataclass(frozen=True, config=STRICT | {"defer_build": False})(cls)
    init = made.__init__

    @wraps(init)
    def checked(self: Any, *args: Any, **values: Any) -> None:
        try:
            init(self, *args, **values)
        except ValidationError as error:
            place, words = _cause(error).found[0]
            said = f"{dotted((cls.__name__, *place))}: {words}"
            raise UsageError(said, code="usage/specification") from None
        finally:
            if made.__init__ is not checked:  # the first use builds the checks, and takes their own again
                made.__init__ = checked

    made.__init__ = checked
    return cast(type[_T], made)


def described(section: Any) -> dict[str, str]:
    """Return what a section says of its keys, in the docstrings under them and under those of its bases."""
    words: dict[str, str] = {}
    for one in reversed(section.__mro__):
        if issubclass(one, Section | Record):
            words |= _own_words(one)
    fields = section.__pydantic_fields__.items()
    found = {field.alias or name: words.get(name) or field.description for name, field in fields}
    return {key: text for key, text in found.items() if text}


@cache
def _own_words(section: type) -> dict[str, str]:
    found: dict[str, str] = {}
    with suppress(OSError):  # installed without sources
        (tree,) = ast.parse(inspect.getsource(section)).body
        for field, note in pairwise(cast(ast.ClassDef, tree).body):
            if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
                found[ast.unparse(field.target)] = " ".join(ast.literal_eval(note.value).split())
    return found


def one_or_more(advice: str) -> BeforeValidator:
    """Return a check of a text, or a list of texts, none of them empty."""

    def check(value: Any) -> Any:
        texts = value
        if not isinstance(value, tuple):
            texts = (value,)
        if not texts or not all(isinstance(text, str) and text for text in texts):
            raise ValueError(advice)
        return value

    return BeforeValidator(check)


def short_for(key: str, written: Any = Any) -> BeforeValidator:
    """Return a check that reads a text alone as a section with this key; `written` is the whole type."""

    def read(value: Any) -> Any:
        if isinstance(value, str):
            return {key: value}
        return value

    return BeforeValidator(read, json_schema_input_type=written)


def _matching(pattern: str, advice: str) -> AfterValidator:
    """Return a check that a whole text matches; {} in the advice is the text."""
    known = re.compile(pattern, re.ASCII)

    def check(value: str) -> str:
        if not known.fullmatch(value):
            raise ValueError(advice.format(shown(value)))
        return value

    return AfterValidator(check)


def _endpoint(value: str) -> str:
    if value.startswith(PYTHON):
        if not _FUNCTION.fullmatch(value):
            raise ValueError(
                f"{shown(value)} names no function; write python:my_models.py:ask or python:my_models:ask"
            )
        return value
    if ".py:" in value and _FUNCTION.fullmatch(PYTHON + value):
        raise ValueError(
            f"{shown(value)} is not an http(s) URL; write {PYTHON}{value} for a function of yours"
        )
    if value in (MIMIC, IN_INSPECT, IN_LITELLM):
        return value
    return check_url(value)


def check_url(value: str) -> str:
    """Return a base URL without a slash at its end.

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
        raise ValueError(
            secret("the URL holds credentials; remove them and name the key's variable in api_key_env")
        )
    if url.fragment or (url.query and not _API_VERSION.fullmatch(url.query)):
        raise ValueError(f"{shown(value)} has a query or fragment; {advice}")
    for tail in ("/chat/completions", "/completions", "/models"):
        if url.path.rstrip("/").endswith(tail):
            raise ValueError(f"{shown(value)} goes too deep: leave out {tail!r}, the client adds it")
    return value.rstrip("/")


Label = Annotated[
    str,
    _matching(
        r"(?=.{1,100}$)[A-Za-z0-9](?: ?[A-Za-z0-9._:/@+()-])*",
        "{} cannot be a name: use up to 100 of the letters a to z, digits, single spaces and "
        ". _ - : / @ + ( ), beginning with a letter or digit",
    ),
]
RunName = Annotated[
    str,
    _matching(
        r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}",
        "{} cannot name a run (it names a folder): "
        "use up to 100 of the letters a to z, digits and . _ -, beginning with a letter or digit",
    ),
]
EnvName = Annotated[
    str,
    _matching(
        r"[A-Z_][A-Z0-9_]{0,99}",
        # not shown: a key pasted here is the usual cause
        "this is not the name of an environment variable; write a name such as OPENAI_API_KEY "
        "(capital letters, digits and _), and set the variable to the key",
    ),
]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Count = Annotated[int, BeforeValidator(parse_count, json_schema_input_type=int | str)]
Seconds = Annotated[
    float, Field(le=_LARGEST), BeforeValidator(parse_seconds, json_schema_input_type=float | str)
]
