"""From signals to categories to Bayes@N, for one model or several at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio.categorical.schema import Schema, check_weights
from scorio.categorical.schemas import get_schema
from scorio.categorical.signals import Signals
from scorio.categorical.thresholds import Thresholds
from scorio.eval._kernels import _categories

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
SchemaLike: TypeAlias = Schema | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """One model's attempts judged by a schema.

    Parameters
    ----------
    schema : Schema
        The schema.
    weights : float array, shape (C + 1,)
        Worth of each category.
    thresholds : Thresholds
        Values by which the attempts were judged; store them to judge later attempts alike.
    outcomes : int array, shape (M, N)
        Category of each attempt, −1 where none was made: the matrix R of Bayes@N.
    counts : int array, shape (M, C + 1)
        Attempts of each question in each category.
    mu, sigma : float
        Bayes@N posterior mean and standard deviation of the mean worth.
    """

    schema: Schema
    weights: FloatArray
    thresholds: Thresholds
    outcomes: IntArray
    counts: IntArray
    mu: float
    sigma: float


@dataclass(frozen=True, slots=True, eq=False)
class ModelEvaluations:
    """Several models' attempts judged by a schema with the same thresholds.

    Parameters
    ----------
    schema, weights, thresholds
        As in :class:`Evaluation`.
    outcomes : int array, shape (L, M, N)
        Category of each attempt, −1 where none was made.
    counts : int array, shape (L, M, C + 1)
        Attempts of each model and question in each category.
    mu, sigma : float array, shape (L,)
        Bayes@N posterior means and standard deviations; rank them with
        :func:`scorio.rank.rank_scores` or :func:`scorio.rank.rank_with_confidence`.
    """

    schema: Schema
    weights: FloatArray
    thresholds: Thresholds
    outcomes: IntArray
    counts: IntArray
    mu: FloatArray
    sigma: FloatArray


def evaluate(
    signals: Signals,
    schema: SchemaLike,
    weights: ArrayLike | None = None,
    *,
    thresholds: Mapping[str, float] | None = None,
    R0: ArrayLike | None = None,
) -> Evaluation:
    """Put every attempt of one model into a category and return their Bayes@N.

    Parameters
    ----------
    signals : Signals, shape (M, N) or (N,)
        Attempts; one dimension is one question. ``Signals(observed=...)`` marks a ragged matrix.
    schema : Schema, str or mapping
        A schema, the name of one of the paper's (:func:`schema_names`), or a definition as plain data
        (:meth:`Schema.from_dict`).
    weights : array_like, shape (C + 1,), optional
        Worth of each category; default: the schema's own.
    thresholds : mapping of str to float, optional
        Frozen thresholds, as :meth:`Thresholds.observed` returns. Default: found from these very attempts,
        as the paper does. A run that adds attempts must pass frozen ones: thresholds that are found again
        move, and with them the categories of old attempts.
    R0 : array_like of int, shape (M, D), optional
        Categories of prior attempts.

    Returns
    -------
    Evaluation
        Outcome matrix, counts, mu and sigma, with schema and thresholds.

    Raises
    ------
    ValueError
        If the schema is unknown or malformed, a needed signal or threshold is missing, weights do not fit
        the categories, or `R0` does not fit the questions and categories.

    References
    ----------
    .. [1] Hariri, Samandar, Hinczewski and Chaudhary (2026). Don't Pass@k: A Bayesian Framework for Large
       Language Model Evaluation. arXiv:2510.04265. Section 3.4, appendix D, Algorithm 1.

    Examples
    --------
    >>> signals = Signals(
    ...     is_correct=[[1, 1, 0], [0, 1, 0]],
    ...     has_box=[[1, 0, 1], [1, 1, 0]],
    ...     repeated_pattern=[[0, 0, 0], [0, 0, 1]],
    ... )
    >>> result = evaluate(signals, "format-aware")
    >>> result.outcomes
    array([[4, 3, 2],
           [2, 4, 0]])
    >>> round(result.mu, 6), round(result.sigma, 6)
    (1.375, 0.273227)
    """
    if len(signals.shape) not in (1, 2):
        raise ValueError(
            f"signals must be of shape (M, N) or (N,), got {signals.shape}; use evaluate_models for several"
        )
    schema, values, cuts, outcomes = _judge(signals, schema, weights, thresholds)
    outcomes = np.atleast_2d(outcomes)
    counts, mu, sigma = _bayes(outcomes, values, R0)
    return Evaluation(schema, values, cuts, outcomes, counts, float(mu), float(sigma))


def evaluate_models(
    signals: Signals,
    schema: SchemaLike,
    weights: ArrayLike | None = None,
    *,
    thresholds: Mapping[str, float] | None = None,
    R0: ArrayLike | None = None,
) -> ModelEvaluations:
    """Put every attempt of several models into a category and return each model's Bayes@N.

    Parameters
    ----------
    signals : Signals, shape (L, M, N)
        Attempts of L models on the same M questions.
    schema, weights, thresholds
        As in :func:`evaluate`; thresholds that are found come from all models' attempts together.
    R0 : array_like of int, shape (M, D) or (L, M, D), optional
        Categories of prior attempts, shared by all models or for each.

    Returns
    -------
    ModelEvaluations
        Outcome tensor, counts, mu and sigma of each model.

    Raises
    ------
    ValueError
        As :func:`evaluate`.

    Examples
    --------
    >>> from scorio.rank import rank_scores
    >>> signals = Signals(is_correct=[[[1, 0]], [[1, 1]]], repeated_pattern=[[[0, 0]], [[0, 0]]])
    >>> rank_scores(evaluate_models(signals, "exact-match").mu)
    array([2, 1])
    """
    if len(signals.shape) != 3:
        raise ValueError(
            f"signals must be of shape (L, M, N), got {signals.shape}; use evaluate for one model"
        )
    schema, values, cuts, outcomes = _judge(signals, schema, weights, thresholds)
    return ModelEvaluations(schema, values, cuts, outcomes, *_bayes(outcomes, values, R0))


def _judge(
    signals: Signals,
    schema: SchemaLike,
    weights: ArrayLike | None,
    thresholds: Mapping[str, float] | None,
) -> tuple[Schema, FloatArray, Thresholds, IntArray]:
    """Resolve schema, weights and thresholds, and return each attempt's category."""
    if isinstance(schema, str):
        schema = get_schema(schema)
    elif not isinstance(schema, Schema):
        schema = Schema.from_dict(schema)
    where = f"schema {schema.name!r}"
    if weights is None and schema.weights is None:
        raise ValueError(f"{where} has no default weights; pass weights, one a category")
    chosen = schema.weights if weights is None else check_weights(weights, schema.categories, where)
    if not signals.made.any():
        raise ValueError("signals: no attempt was made (observed is False everywhere)")
    if thresholds is None:
        schema.check_signals(signals)
        values = Thresholds.observed_where_possible(signals, schema)
    else:
        values = thresholds if isinstance(thresholds, Thresholds) else Thresholds(thresholds)
        values.require(schema)
    return schema, np.array(chosen), values, schema.assign(signals, values)


def _bayes(
    outcomes: IntArray, weights: FloatArray, R0: ArrayLike | None
) -> tuple[IntArray, FloatArray, FloatArray]:
    size = weights.size
    counts = _categories.category_counts(outcomes, size)
    mu, sigma = _categories.bayes(counts, weights, _prior_counts(R0, outcomes.shape, size))
    return counts, mu, sigma


def _prior_counts(R0: ArrayLike | None, shape: tuple[int, ...], size: int) -> IntArray | None:
    """Return how many prior attempts lie in each category, after checking them against (…, M, N) outcomes."""
    if R0 is None:
        return None
    prior = np.asarray(R0)
    questions = shape[:-1]
    if prior.shape[:-1] not in (questions, questions[-1:]) or prior.ndim < 2:
        raise ValueError(
            f"R0 must have one row for each of {questions[-1]} questions, got shape {prior.shape}"
        )
    if prior.dtype.kind not in "biu":
        raise ValueError(f"R0 must hold integer categories, got dtype {prior.dtype}")
    bad = (prior < 0) | (prior >= size)
    if bad.any():
        raise ValueError(f"R0 must hold categories 0..{size - 1}, got {prior[bad][0]}")
    return _categories.category_counts(prior, size) if prior.shape[-1] else None
