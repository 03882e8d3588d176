"""Optional libraries, imported when they are used."""

from __future__ import annotations

import shlex
from importlib import import_module
from typing import Any

from adaptive_eval.errors import UsageError


def library(module: str, needed_by: str, package: str, error: type[UsageError] = UsageError) -> Any:
    """Return a module that `needed_by` needs; raise `error`, with what to install, if it is missing.

    Examples
    --------
    >>> library("json", "this example", "json").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as failure:
        if failure.name is not None and failure.name.split(".")[0] != module.split(".")[0]:
            raise
        words = f"{needed_by} needs a library that is not installed: pip install {shlex.quote(package)}"
        raise error(words, code="library/missing") from None
