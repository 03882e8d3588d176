"""Rankings by item response theory: abilities of models and difficulties of questions, fitted jointly."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from scorio._labels import Outcomes
from scorio.eval._arguments import positive
from scorio.eval._inputs import read_outcomes
from scorio.rank._fitting import (
    Matrix,
    Prior,
    UniformPrior,
    minimum,
    penalised,
    read_prior_penalty,
    require_connected,
)
from scorio.rank._ranked import Ranking, documented, fitted
from scorio.rank._ties import Ranks, TieMethod

ItemRanking: TypeAlias = Ranking | tuple[Ranks, Matrix, dict[str, Matrix]]

_LOG_DISCRIMINATION = 4.0
"""Log-discriminations are kept within plus and minus this: exp(4) = 55 is a step function."""


@documented
def rasch(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
) -> ItemRanking:
    r"""Rank models by the abilities of the Rasch model (1PL) of joint maximum likelihood [1]_.

    Right answers of model l on question m are :math:`\mathrm{Binomial}(N, \sigma(\theta_l - b_m))`,
    difficulties with mean 0. The order is that of the mean :func:`avg`, whose total is sufficient; the
    scores are abilities on the logit scale, biased outwards where questions are few. A finite solution needs
    a right and a wrong answer of every model and on every question. Cost: O(LM) an iteration.

    References
    ----------
    .. [1] Rasch (1960). Probabilistic Models for Some Intelligence and Attainment Tests.

    Examples
    --------
    >>> rasch([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    return _items(R, UniformPrior(), method, return_scores, max_iter, return_item_params)


@documented
def rasch_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
) -> ItemRanking:
    """Rank models by :func:`rasch` with a prior of the abilities.

    Finite for a model that is always right or always wrong; every question needs a right and a wrong answer.

    Parameters
    ----------
    prior : float or object with a ``penalty(theta)`` method
        Variance of a normal prior around 0 of the abilities, or a prior such as :class:`CauchyPrior`.

    Examples
    --------
    >>> rasch_map([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    penalty = read_prior_penalty(prior)
    return _items(R, penalty, method, return_scores, max_iter, return_item_params)


@documented
def rasch_2pl(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
    reg_discrimination: float = 0.01,
) -> ItemRanking:
    r"""Rank models by the abilities of the two-parameter logistic model (2PL) [1]_.

    As :func:`rasch` with :math:`\sigma(a_m (\theta_l - b_m))`: questions differ in how sharply they tell
    models apart. The likelihood has several maxima; the one next to the Rasch solution is returned. With few
    models the discriminations are hardly known: prefer :func:`rasch` or :func:`avg`. Cost: O(LM) an
    iteration.

    Parameters
    ----------
    reg_discrimination : float
        Weight of the penalty :math:`\sum_m \log^2 a_m`, above 0; it fixes the scale of the abilities.

    References
    ----------
    .. [1] Birnbaum (1968). Some latent trait models and their use in inferring an examinee's ability.

    Examples
    --------
    >>> rasch_2pl([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    return _items(R, UniformPrior(), method, return_scores, max_iter, return_item_params, reg_discrimination)


@documented
def rasch_2pl_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    return_item_params: bool = False,
    reg_discrimination: float = 0.01,
) -> ItemRanking:
    """Rank models by :func:`rasch_2pl` with a prior of the abilities.

    Parameters
    ----------
    prior : float or object with a ``penalty(theta)`` method
        Variance of a normal prior around 0 of the abilities, or a prior such as :class:`CauchyPrior`.
    reg_discrimination : float
        Weight of the penalty of the log-discriminations, above 0.

    Examples
    --------
    >>> rasch_2pl_map([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    penalty = read_prior_penalty(prior)
    return _items(R, penalty, method, return_scores, max_iter, return_item_params, reg_discrimination)


def _items(
    R: Outcomes,
    prior: Prior,
    method: TieMethod,
    return_scores: bool,
    max_iter: int,
    items: bool,
    regularisation: float | None = None,
) -> ItemRanking:
    """Fit the Rasch model, or with `regularisation` of its discriminations 2PL."""
    name = "rasch" if regularisation is None else "rasch_2pl"
    right, trials = _counts(R, prior, name)
    weight = None if regularisation is None else positive("reg_discrimination", regularisation)
    theta, difficulty, log_a = _fit(right, trials, prior, max_iter, weight, name)
    ranking = fitted(theta, theta, method, return_scores or items)
    parameters = {"difficulty": difficulty}
    if weight is not None:
        parameters["discrimination"] = np.exp(log_a)
    return (*ranking, parameters) if items else ranking


def _counts(R: Outcomes, prior: Prior, name: str) -> tuple[Matrix, int]:
    """Return right answers (L, M) and the trials of each, after checking that the fit is finite."""
    outcomes = read_outcomes(R)
    right, trials = outcomes.sum(axis=2, dtype=np.float64), outcomes.shape[2]
    totals = right.sum(axis=0)
    constant = np.flatnonzero((totals == 0) | (totals == trials * len(right)))
    if constant.size:
        raise ValueError(
            f"R must have a right and a wrong answer to every question: question {constant[0]} has no finite "
            "difficulty; leave such questions out"
        )
    if isinstance(prior, UniformPrior):
        # The model is Bradley-Terry between models and questions: a right answer is a win of the model.
        models, questions = right.shape
        wins = np.zeros((models + questions,) * 2)
        wins[:models, models:], wins[models:, :models] = right, (trials - right).T
        require_connected(wins, name)
    return right, trials


def _fit(
    right: Matrix, trials: int, prior: Prior, max_iter: int, regularisation: float | None, name: str
) -> tuple[Matrix, Matrix, Matrix]:
    """Abilities, difficulties with mean 0, and log-discriminations (0 without `regularisation`)."""
    models, questions = right.shape

    def likelihood(x: Matrix) -> tuple[float, Matrix]:
        theta, b, log_a = np.split(x, [models, models + questions])
        a = np.exp(log_a) if regularisation else np.ones(questions)
        gap = theta[:, None] - (b - b.mean())
        logit = a * gap
        error = trials * np.exp(-np.logaddexp(0.0, -logit)) - right
        value = (trials * np.logaddexp(0.0, logit) - right * logit).sum()
        slope_b = -a * error.sum(axis=0)
        parts = [(error * a).sum(axis=1), slope_b - slope_b.mean()]
        if regularisation:
            value += regularisation * (log_a**2).sum()
            parts.append((error * logit).sum(axis=0) + 2.0 * regularisation * log_a)
        return float(value), np.concatenate(parts)

    share = (right + 0.5) / (trials + 1.0)
    ability, ease = share.mean(axis=1), share.mean(axis=0)
    start = np.concatenate([np.log(ability / (1.0 - ability)), np.log((1.0 - ease) / ease)])
    bounds: list[tuple[float | None, float | None]] | None = None
    if regularisation:
        start = np.concatenate([start, np.zeros(questions)])
        bounds = [(None, None)] * (models + questions)
        bounds += [(-_LOG_DISCRIMINATION, _LOG_DISCRIMINATION)] * questions
    x = minimum(penalised(likelihood, prior, models, centred=False), start, max_iter, name, bounds)
    theta, b, log_a = np.split(x, [models, models + questions])
    return theta, b - b.mean(), log_a
