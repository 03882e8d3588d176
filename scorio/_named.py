"""The base of named results: they print, and become a dict or a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any, cast

import numpy as np


class Named:
    """Mixin of frozen dataclasses: :meth:`to_dict`, and :meth:`to_frame` of the columns in :meth:`rows`."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain numbers, strings and lists."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(cast(Any, self))}

    def rows(self) -> Mapping[str, Any]:
        """Return the columns of :meth:`to_frame`; by default one row of the scalar fields."""
        return {
            name: [value] for name, value in self.to_dict().items() if not isinstance(value, (list, dict))
        }

    def to_frame(self) -> Any:
        """Return a :class:`pandas.DataFrame`; needs pandas."""
        return needed("pandas", "to_frame").DataFrame(dict(self.rows()))


def plain(value: Any) -> Any:
    """Return `value` with arrays as lists, NumPy numbers as Python's and nested results as dicts."""
    if isinstance(value, Named):
        return value.to_dict()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def plotting(axes: Any) -> Any:
    """Return `axes`, or new ones of matplotlib."""
    return needed("matplotlib.pyplot", "plot").subplots()[1] if axes is None else axes


def close_plot(axes: Any) -> None:
    """Forget the figure of `axes`: pyplot keeps every figure until then."""
    needed("matplotlib.pyplot", "plot").close(axes.figure)


def needed(module: str, method: str) -> Any:
    """Return an optional module; ImportError says who needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{method} needs {package}: pip install {package}") from error
