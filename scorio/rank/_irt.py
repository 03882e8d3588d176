"""Rankings by item response theory: abilities of models and difficulties of questions, fitted jointly."""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scorio._arguments import positive, whole
from scorio._named import Outcomes
from scorio.arrays import Floats
from scorio.eval._inputs import Missing, read_observed
from scorio.rank._fitting import SYMMETRIC, Prior, UniformPrior, read_prior_penalty, require_connected
from scorio.rank._item_fit import ItemFit
from scorio.rank._ranked import (
    ByName,
    Marked,
    NamedRanking,
    Ranking,
    ScoredItems,
    ScoredRanks,
    fitted,
    keeps_names,
)
from scorio.rank._ties import Ranks, TieMethod


@overload
def rasch(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rasch(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    *,
    return_item_params: Literal[True],
    **given: Unpack[Marked],
) -> ScoredItems: ...


@overload
def rasch(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rasch(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rasch(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
    *,
    missing: Missing = None,
) -> Ranking:
    r"""Rank models by the abilities of the Rasch model (1PL) of joint maximum likelihood [1]_.

    Right answers of model l on question m are :math:`\mathrm{Binomial}(N, \sigma(\theta_l - b_m))`,
    difficulties with mean 0. The order is that of the mean :func:`avg`, whose total is sufficient; the
    scores are abilities on the logit scale, biased outwards if questions are few. A finite solution needs
    a right and a wrong answer of every model and on every question. Cost: O(LM) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    max_iter
        As in :func:`bradley_terry`.
    return_item_params : bool
        Also return a dict of the questions' parameters (and the scores).

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Rasch (1960). Probabilistic Models for Some Intelligence and Attainment Tests.

    Examples
    --------
    >>> rasch([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    asked = FitRequest(R, method, return_scores, max_iter, return_item_params, missing)
    return _items(asked, UniformPrior())


@overload
def rasch_map(
    R: ByName,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rasch_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    *,
    return_item_params: Literal[True],
    **given: Unpack[Marked],
) -> ScoredItems: ...


@overload
def rasch_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rasch_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rasch_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by :func:`rasch` with a prior of the abilities.

    Finite for a model that is always right or always wrong; every question needs a right and a wrong answer.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    prior : float or object with a ``penalty(theta)`` method
        Variance of a normal prior around 0 of the abilities, or a prior such as :class:`CauchyPrior`.
    max_iter
        As in :func:`bradley_terry`.
    return_item_params
        As in :func:`rasch`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> rasch_map([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    asked = FitRequest(R, method, return_scores, max_iter, return_item_params, missing)
    return _items(asked, read_prior_penalty(prior))


@overload
def rasch_2pl(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rasch_2pl(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    *,
    return_item_params: Literal[True],
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> ScoredItems: ...


@overload
def rasch_2pl(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rasch_2pl(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rasch_2pl(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch_2pl(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
    reg_discrimination: float = 0.01,
    *,
    missing: Missing = None,
) -> Ranking:
    r"""Rank models by the abilities of the two-parameter logistic model (2PL) [1]_.

    As :func:`rasch` with :math:`\sigma(a_m (\theta_l - b_m))`: questions differ in how sharply they tell
    models apart. The likelihood has several maxima; the one next to the Rasch solution is returned, and
    models with equal answers to equally answered questions tie. With few models the discriminations are
    hardly known: prefer :func:`rasch` or :func:`avg`. Cost: O(LM) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    reg_discrimination : float
        Weight of the penalty :math:`\sum_m \log^2 a_m`, above 0; it fixes the scale of the abilities.
    max_iter : int
        Most Newton steps; if they do not settle, at most as many of L-BFGS follow them.
    return_item_params
        As in :func:`rasch`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Birnbaum (1968). Some latent trait models and their use in inferring an examinee's ability.

    Examples
    --------
    >>> rasch_2pl([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    asked = FitRequest(R, method, return_scores, max_iter, return_item_params, missing)
    return _items(asked, UniformPrior(), reg_discrimination)


@overload
def rasch_2pl_map(
    R: ByName,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rasch_2pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    *,
    return_item_params: Literal[True],
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> ScoredItems: ...


@overload
def rasch_2pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rasch_2pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rasch_2pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch_2pl_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
    reg_discrimination: float = 0.01,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by :func:`rasch_2pl` with a prior of the abilities.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    prior : float or object with a ``penalty(theta)`` method
        Variance of a normal prior around 0 of the abilities, or a prior such as :class:`CauchyPrior`.
    reg_discrimination : float
        Weight of the penalty of the log-discriminations, above 0.
    max_iter
        As in :func:`rasch_2pl`.
    return_item_params
        As in :func:`rasch`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> rasch_2pl_map([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 3])
    """
    asked = FitRequest(R, method, return_scores, max_iter, return_item_params, missing)
    return _items(asked, read_prior_penalty(prior), reg_discrimination)


class FitRequest(NamedTuple):
    """What all of these rankings are asked."""

    R: Outcomes
    method: TieMethod
    return_scores: bool
    max_iter: int
    return_item_params: bool
    missing: Missing


def _items(asked: FitRequest, prior: Prior, regularisation: float | None = None) -> Ranking:
    """Fit the Rasch model, or with `regularisation` of its discriminations 2PL."""
    name = "rasch_2pl"
    if regularisation is None:
        name = "rasch"
    right, made = item_counts(asked.R, asked.missing, prior, name)
    weight = None
    if regularisation is not None:
        weight = positive("reg_discrimination", regularisation)
    fit = ItemFit(right, made, weight, prior)
    theta, difficulty, log_a = fit.solve(whole("max_iter", asked.max_iter), name)
    told = right
    if weight is None and (made == made[0]).all():
        told = right.sum(axis=1, keepdims=True)  # sufficient: which questions were right says no more
    theta = with_equals_tied(theta, prior, told, made)
    parameters = {"difficulty": difficulty}
    if weight is not None:
        parameters["discrimination"] = np.exp(log_a)
    return with_items(asked, theta, parameters)


def with_items(asked: FitRequest, theta: Floats, parameters: dict[str, Floats]) -> Ranking:
    """Return the ranks by the abilities, and scores and parameters of the questions if they are asked for."""
    ranks = fitted(theta, theta, asked.method, asked.return_scores)
    if not asked.return_item_params:
        return ranks
    if isinstance(ranks, ScoredRanks):
        plain = ranks.ranks
    else:
        plain = ranks
    return ScoredItems(plain, theta, parameters)


def item_counts(R: Outcomes, missing: Missing, prior: Prior, name: str) -> tuple[Floats, Floats]:
    """Return right answers and trials, (L, M) each, after checking that the fit is finite."""
    outcomes, absent = read_observed(R, missing)
    right = outcomes.sum(axis=2, dtype=np.float64)
    made = np.full(right.shape, float(outcomes.shape[2]))
    if absent is not None:
        made -= absent.sum(axis=2)
    totals = right.sum(axis=0)
    constant = np.flatnonzero((totals == 0) | (totals == made.sum(axis=0)))
    if constant.size:
        raise ValueError(
            f"R must have a right and a wrong answer to every question: question {constant[0]} has no finite "
            "difficulty; leave such questions out"
        )
    if isinstance(prior, UniformPrior):
        # The model is Bradley-Terry between models and questions: a right answer is a win of the model.
        models, questions = right.shape
        wins = np.zeros((models + questions,) * 2)
        wins[:models, models:], wins[models:, :models] = right, (made - right).T
        require_connected(wins, name)
    return right, made


def with_equals_tied(theta: Floats, prior: Prior, right: Floats, made: Floats) -> Floats:
    """Return `theta`, equal if a prior treats models alike and their answers do not tell them apart."""
    if isinstance(prior, SYMMETRIC):
        return _tied_by_symmetry(theta, right, made)
    return theta


def _tied_by_symmetry(theta: Floats, right: Floats, made: Floats) -> Floats:
    """Return `theta` with its mean for models that have equal answers to equally answered questions.

    From the start, if such models are equal, every step of an exact fit keeps them equal: rounding alone
    takes it to one of several best fits that are mirror images.
    """
    cells = right * (made.max() + 1.0) + made
    models = np.zeros(len(theta), dtype=np.intp)
    kinds = 0
    while models.max() + 1 > kinds:
        kinds = models.max() + 1
        questions = _kinds(cells.T, models)
        models = _kinds(cells, questions)
    means = np.bincount(models, theta) / np.bincount(models)
    return means[models]


def _kinds(cells: Floats, others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the kind of each row: equal for rows that have the same cells with columns of equal kinds."""
    seen = np.sort(cells * (others.max() + 1.0) + others, axis=1)
    return np.unique(seen, axis=0, return_inverse=True)[1].reshape(-1)
