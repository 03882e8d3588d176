"""Shared by the readers of JSON Lines: the rows of one kind of log, and the place of a bad one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adaptive_eval.errors import OutcomesError
from adaptive_eval.interop.found import reading
from adaptive_eval.tasks.rows import Row, stream_rows


def first_row(path: Path) -> Mapping[str, Any]:
    """Return the first readable row of a file, empty where there is none."""
    for found in stream_rows(path):
        if isinstance(found, Row):
            return found.values
    return {}


def json_value(path: Path) -> Any:
    """Return what a JSON file holds."""
    with reading(path, "JSON"):
        return json.loads(path.read_bytes())


def json_object(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds."""
    data = json_value(path)
    if not isinstance(data, dict):
        raise OutcomesError(f"{path}: holds no JSON object but {type(data).__name__}")
    return data
