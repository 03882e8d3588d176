"""The paper's twelve categorical schemas (Table 5) as data.

The categories and their numbers are the paper's. Where the table leaves a case open or decides it twice,
the schema's `note` says how it is read here. Weights are this package's, unless the note says otherwise:
0 for the worst category and for invalid output, 1 for the best, in steps that follow the table's one-line
description of the schema (appendix D.1); no category is worth less than invalid output, so that no model
gains by degenerating. ``invalid`` is always category 0; it holds for truncated answers
(``repeated_pattern``) and, where a verifier was run, for those it calls off-task.

Source: Hariri, Samandar, Hinczewski and Chaudhary (2026), Don't Pass@k, arXiv:2510.04265.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from scorio.categorical.schema import Schema

_FILE = files("scorio.categorical").joinpath("schemas.json")
SCHEMA_DEFINITIONS: tuple[Mapping[str, Any], ...] = tuple(json.loads(_FILE.read_text(encoding="utf-8")))

_OTHER_NAMES = {"concise-high-conf": "concision-high-conf", "verifier-prob": "verifier-probe"}
"""Names that the paper's text uses for schemas of Table 5."""


def schema_names() -> tuple[str, ...]:
    """Return the names of the paper's twelve schemas, in the order of Table 5.

    Examples
    --------
    >>> schema_names()[:2]
    ('exact-match', 'format-aware')
    """
    return tuple(definition["name"] for definition in SCHEMA_DEFINITIONS)


def get_schema(name: str) -> Schema:
    """Return one of the paper's twelve schemas.

    Parameters
    ----------
    name : str
        Its name (:func:`schema_names`) or its heading in the paper; case and punctuation do not matter.

    Raises
    ------
    ValueError
        If there is no such schema.

    Examples
    --------
    >>> for category in get_schema("Strict Compliance").categories:
    ...     print(category.name, "=", category.condition)
    invalid = invalid
    wrong or unboxed = wrong or (correct and unboxed)
    correct, boxed = correct and boxed
    """
    key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    key = _OTHER_NAMES.get(key, key)
    if key not in schema_names():
        raise ValueError(f"schema: unknown name {name!r}; known: {', '.join(schema_names())}")
    return _built(key)


@functools.cache
def _built(name: str) -> Schema:
    (definition,) = (item for item in SCHEMA_DEFINITIONS if item["name"] == name)
    return Schema.from_dict(definition)
