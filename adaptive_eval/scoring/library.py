"""Libraries that only some scorers and datasets need, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from adaptive_eval.errors import UsageError

__all__ = ["library"]


def library(module: str, needed_by: str, package: str) -> Any:
    """Import a library.

    Parameters
    ----------
    module : str
        Its module.
    needed_by : str
        What needs it, for the message.
    package : str
        What to install.

    Returns
    -------
    module
        The library.

    Raises
    ------
    UsageError
        If it is not installed; the message says how to install it.

    Examples
    --------
    >>> library("json", "this example", "json").dumps([1])
    '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise
        raise UsageError(
            f"{needed_by} needs a library that is not installed: pip install {package!r}"
        ) from None
