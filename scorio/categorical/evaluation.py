"""From signals to categories to Bayes@N, for one model or several at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from scorio.arrays import Floats, Ints
from scorio.categorical.schema import Schema, check_weights, get_schema
from scorio.categorical.signals import Signals
from scorio.categorical.thresholds import Thresholds
from scorio.eval._inputs import CategoryTrials, read_prior
from scorio.eval._kernels import _categories

SchemaLike: TypeAlias = Schema | str | Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class JudgedAttempts:
    """Attempts of one model, or of L models, judged by a schema.

    Parameters
    ----------
    schema : Schema
        The schema.
    weights : float array, shape (C + 1,)
        Worth of each category.
    thresholds : Thresholds
        Values by which the attempts were judged; store them to judge later attempts alike.
    outcomes : int array, shape (M, N) or (L, M, N)
        Category of each attempt, −1 if none was made: the matrix R of Bayes@N.
    counts : int array, shape (M, C + 1) or (L, M, C + 1)
        Attempts of each question in each category.
    mu, sigma : float, or float array of shape (L,)
        Bayes@N posterior mean and standard deviation of the mean worth; models are ranked by
        :func:`scorio.rank.rank_scores` or :func:`scorio.rank.rank_with_confidence` of them.
    """

    schema: Schema
    weights: Floats
    thresholds: Thresholds
    outcomes: Ints
    counts: Ints
    mu: Any
    sigma: Any


def evaluate(
    signals: Signals,
    schema: SchemaLike,
    weights: ArrayLike | None = None,
    *,
    thresholds: Mapping[str, float] | None = None,
    R0: ArrayLike | None = None,
) -> JudgedAttempts:
    """Put every attempt into a category and return Bayes@N, of one model or of each of several.

    Parameters
    ----------
    signals : Signals, shape (N,), (M, N) or (L, M, N)
        Attempts at one question, at M questions, or of L models at the same M questions.
        ``Signals(observed=...)`` marks a ragged matrix.
    schema : Schema, str or mapping
        A schema, the name of one of the paper's (:func:`schema_names`), or a definition as plain data
        (:meth:`Schema.from_dict`).
    weights : array_like, shape (C + 1,), optional
        Worth of each category; default: the schema's own.
    thresholds : mapping of str to float, optional
        Frozen thresholds, as :meth:`Thresholds.observed` returns. Default: found from these very attempts,
        of all models together, as the paper does. A run that adds attempts must pass frozen ones: thresholds
        that are found again move, and with them the categories of old attempts.
    R0 : array_like of int, shape (M, D) or (L, M, D), optional
        Categories of prior attempts, shared by all models or of each.

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
    >>> print(round(result.mu, 6), round(result.sigma, 6))
    1.375 0.273227

    Two models:

    >>> from scorio.rank import rank_scores
    >>> signals = Signals(is_correct=[[[1, 0]], [[1, 1]]], repeated_pattern=[[[0, 0]], [[0, 0]]])
    >>> rank_scores(evaluate(signals, "exact-match").mu)
    array([2, 1])
    """
    if len(signals.shape) not in (1, 2, 3):
        raise ValueError(f"signals must be of shape (N,), (M, N) or (L, M, N), got {signals.shape}")
    if isinstance(schema, str):
        schema = get_schema(schema)
    elif not isinstance(schema, Schema):
        schema = Schema.from_dict(schema)
    where = f"schema {schema.name!r}"
    if weights is None and schema.weights is None:
        raise ValueError(f"{where} has no default weights; pass weights, one a category")
    if weights is None:
        values = schema.weights
    else:
        values = check_weights(weights, schema.categories, where)
    chosen = np.array(values)
    if not signals.made.any():
        raise ValueError("signals: no attempt was made (observed is False everywhere)")
    if thresholds is None:
        cuts = Thresholds.observed(signals, schema, partial=True)
    else:
        cuts = thresholds if isinstance(thresholds, Thresholds) else Thresholds(thresholds)
        cuts.require(schema)
    outcomes = np.atleast_2d(schema.assign(signals, cuts))
    counts = _categories.category_counts(outcomes, chosen.size)
    trials = CategoryTrials(counts, chosen, None)
    mu, sigma = _categories.bayes(counts, chosen, read_prior(R0, None, trials, None))
    return JudgedAttempts(schema, chosen, cuts, outcomes, counts, mu[()], sigma[()])
