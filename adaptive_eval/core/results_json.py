"""Results as JSON-able data, as the run file stores them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from adaptive_eval.core.results import Results
from adaptive_eval.errors import Coded

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@cache
def _adapter() -> TypeAdapter[Results]:
    from pydantic import TypeAdapter  # a session that stores nothing needs none of it

    return TypeAdapter(Results)


def to_json(results: Results) -> dict[str, Any]:
    """Return `results` as JSON-able data."""
    data: dict[str, Any] = _adapter().dump_python(results, warnings=False)  # NumPy numbers are numbers too
    return {**data, "warning_codes": [getattr(text, "code", None) for text in results.warnings]}


def from_json(data: Mapping[str, Any]) -> Results:
    """Rebuild :class:`Results` from what :func:`to_json` returned, as it is or after a trip through JSON."""
    forecast = data.get("forecast")
    if forecast and "open_pairs" not in forecast:  # stored by an earlier version
        forecast = {**forecast, "open_pairs": len(forecast["pairs"])}
    results = _adapter().validate_python({**data, "forecast": forecast})
    codes = data.get("warning_codes") or [None] * len(results.warnings)
    warnings = (
        text if code is None else Coded(code, text)
        for text, code in zip(results.warnings, codes, strict=True)
    )
    return replace(results, warnings=tuple(warnings))
