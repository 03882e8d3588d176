"""Names: of models that come with their outcomes, and results that print and become a dict or a DataFrame."""

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from importlib import import_module
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike


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

    def __repr__(self) -> str:
        """Say the result in a line."""
        return f"<{type(self).__name__}: {'; '.join(str(self).splitlines())}>"

    def _repr_html_(self) -> str:
        """Show the result in a notebook as it prints."""
        return f"<pre>{escape(str(self))}</pre>"


def plain(value: Any) -> Any:
    """Return `value` with arrays as lists, NumPy numbers as Python's and nested results as dicts."""
    if isinstance(value, Named):
        return value.to_dict()
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return list(map(plain, value))
    return value


def plotting(axes: Any) -> Any:
    """Return `axes`, or new ones of matplotlib."""
    if axes is None:
        return needed("matplotlib.pyplot", "plot").subplots()[1]
    return axes


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


Labels: TypeAlias = tuple[str, ...]
Outcomes: TypeAlias = "ArrayLike | Mapping[str, ArrayLike]"
"""An array of all models' outcomes, or a matrix by model's name."""


def read_labels(R: Any) -> tuple[Labels | None, Any]:
    """Return the models' names, None if there are none, and the outcomes as an array."""
    from scorio.eval._inputs import as_array  # which results, that are read without outcomes, do not need

    if isinstance(R, Mapping):
        masked = any(isinstance(matrix, np.ma.MaskedArray) for matrix in R.values())
        matrices = list(R.values())
        if not masked:
            matrices = [as_array(f"R[{name!r}]", matrix) for name, matrix in R.items()]
        if len({np.shape(matrix) for matrix in matrices}) != 1:
            shapes = {name: np.shape(matrix) for name, matrix in zip(R, matrices, strict=True)}
            raise ValueError(
                "R must have matrices of one shape, at least one; pad them and mark missing trials; "
                f"got {shapes}"
            )
        stack = np.ma.stack if masked else np.stack
        return tuple(map(str, R)), stack(matrices)
    if is_frame(R):
        return frame_labels(R), as_array("R", R).T
    return frame_labels(R), R


def is_frame(R: Any) -> bool:
    """Return whether outcomes are a table with named columns: a benchmark, with a model a column."""
    return hasattr(R, "columns") and hasattr(R, "shape") and len(R.shape) == 2


def frame_labels(R: Any) -> Labels | None:
    """Return the models' names: columns of a table, coordinates of the first axis of an xarray."""
    labels = None
    if is_frame(R) and type(R.columns).__name__ != "RangeIndex":
        labels = list(R.columns)
    elif hasattr(R, "coords") and hasattr(R, "dims") and R.dims and R.dims[0] in R.coords:  # xarray
        labels = R.coords[R.dims[0]].values.tolist()
    if labels is None:
        return None
    return tuple(map(str, labels))


def name_of(A: Any) -> str | None:
    """Return the name of one model's outcomes, as xarray keeps it."""
    name = getattr(A, "name", None)
    if isinstance(name, str):
        return name
    return None
