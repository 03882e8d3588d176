"""Grades of recorded completions by high and low signals, as in the published package of the same name.

A signal is high if it is at least its median over all completions. These grades are not the paper's
schemas (:func:`scorio.categorical.get_schema`).
"""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scorio.arrays import Floats, floats
from scorio.categorical.records import BINARY_SIGNALS, SIGNAL_TO_COLUMN, Columns, load_records
from scorio.categorical.thresholds import Thresholds
from scorio.eval import bayes

Results: TypeAlias = dict[str, tuple[float, float]]

_GRADES: dict[str, tuple[tuple[str, ...], Any]] = {
    "Confident & Correct": (("C1", "R1"), [[0.2, 0.6], [0.1, 1.0]]),
    "Token Surprise vs. Correctness": (("T_lp_min", "R1"), [[0.1, 0.6], [0.3, 0.9]]),
    "Format Compliance & Correctness": (("R2", "R1"), [[0.0, 0.6], [0.3, 1.0]]),
    "Difficulty-Adjusted Correctness": (("P2", "R1"), [[0.1, 0.7], [0.4, 1.0]]),
    "IO Ratio Profile": (("P3", "C3", "R1"), [[[0.1, 0.5], [0.2, 1.0]], [[0.2, 0.8], [0.2, 0.8]]]),
}
"""Schema -> its signals, and a grade for each combination of low (0) and high (1)."""


def evaluate_schema(
    signals: Columns | str | PathLike[str],
    schema_id: str,
    thresholds: Mapping[str, float] | None = None,
    group_key: str = "model",
) -> Results:
    """Return Bayes@N of the completions' grades for each group.

    Parameters
    ----------
    signals : dict of arrays or path-like
        Columns as :func:`load_records` returns them, or where it finds them.
    schema_id : str
        ``Confident & Correct``, ``Token Surprise vs. Correctness``, ``Format Compliance & Correctness``,
        ``Difficulty-Adjusted Correctness`` or ``IO Ratio Profile``.
    thresholds : mapping of str to float, optional
        Threshold of each signal, 0 if it is missing; default: the medians of all completions
        (:meth:`Thresholds.from_columns`).
    group_key : str
        Column that says to which group a completion belongs.

    Returns
    -------
    dict of str to (float, float)
        Group -> mu and sigma. Categories are the grades that occur in the group. A question without a trial
        of some number has the grade 0 there; a missing signal is low.

    Raises
    ------
    KeyError
        If `schema_id` is unknown.

    Examples
    --------
    >>> columns = {"model": np.array(["m"] * 4), "problem": np.array([0, 0, 1, 1]),
    ...            "trial": np.array([0, 1, 0, 1]),
    ...            "is_correct": np.array([1.0, 0.0, 1.0, 1.0]),
    ...            "has_box": np.array([1.0, 1.0, 0.0, 1.0])}
    >>> mu, sigma = evaluate_schema(columns, "Format Compliance & Correctness")["m"]
    >>> round(mu, 4), round(sigma, 4)
    (0.67, 0.0843)
    """
    if schema_id not in _GRADES:
        raise KeyError(f"schema_id must be one of {', '.join(_GRADES)}; got {schema_id!r}")
    columns = signals if isinstance(signals, dict) else load_records(signals)
    cuts = Thresholds.from_columns(columns) if thresholds is None else thresholds
    groups = np.array(list(map(str, columns[group_key])))
    names, grades = _GRADES[schema_id]
    grade = np.asarray(grades)[tuple(_is_high(columns, name, cuts) for name in names)]
    results: Results = {}
    for group in np.unique(groups):
        rows = groups == group
        R, w = _outcomes({name: values[rows] for name, values in columns.items()}, grade[rows])
        results[str(group)] = bayes(R, w)
    return results


def evaluate_all(
    signals: Columns | str | PathLike[str],
    schema_ids: Sequence[str] | None = None,
    thresholds: Mapping[str, float] | None = None,
    group_key: str = "model",
) -> dict[str, Results]:
    """Return :func:`evaluate_schema` of several schemas, all by default.

    Parameters
    ----------
    signals, thresholds, group_key
        As in :func:`evaluate_schema`.
    schema_ids : sequence of str, optional
        Schemas to evaluate.
    """
    columns = signals if isinstance(signals, dict) else load_records(signals)
    cuts = Thresholds.from_columns(columns) if thresholds is None else thresholds
    chosen = _GRADES if schema_ids is None else schema_ids
    return {schema: evaluate_schema(columns, schema, cuts, group_key) for schema in chosen}


def _is_high(columns: Columns, signal: str, cuts: Mapping[str, float]) -> NDArray[np.intp]:
    """Return 1 if a signal is at least its threshold, else 0."""
    column = SIGNAL_TO_COLUMN[signal]
    if column not in columns:
        return np.zeros(len(next(iter(columns.values()))), dtype=np.intp)
    cut = 0.5
    if signal not in BINARY_SIGNALS:
        cut = cuts.get(signal, 0.0)
    return np.asarray(floats(columns[column]) >= cut, dtype=np.intp)


def _outcomes(columns: Columns, grade: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the grades as an outcome matrix of categories, and the grade of each category."""
    places = np.unique(columns["problem"], return_inverse=True)[1]
    trials = np.zeros_like(places)
    if "trial" in columns:
        trials = np.unique(columns["trial"], return_inverse=True)[1]
    matrix = np.zeros((places.max() + 1, trials.max() + 1))
    cells, first = np.unique(places * matrix.shape[1] + trials, return_index=True)
    matrix.flat[cells] = grade[first]
    w, R = np.unique(matrix, return_inverse=True)
    return R.reshape(matrix.shape), w
