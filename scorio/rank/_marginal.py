"""The Rasch model of marginal maximum likelihood: abilities are integrated out."""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import inside, whole
from scorio._named import Outcomes
from scorio.arrays import Floats
from scorio.eval._inputs import read_outcomes
from scorio.rank._ranked import (
    ByName,
    NamedRanking,
    Ranking,
    ScoredItems,
    ScoredRanks,
    fitted,
    keeps_names,
)
from scorio.rank._ties import Ranks, TieMethod, rank_scores

_SETTLED = 1e-12
_MOST_NODES = 200
"""Beyond these the outermost have hardly a weight that a float can hold."""
_FARTHEST = 2.0
"""Largest step of a difficulty or ability: Newton's may overshoot where nearly all answers agree."""
_MOST_STEPS = 100
_AROUND = np.linspace(-10.0, 10.0, 801)
"""Where a density is integrated, in deviations from its mode."""


@overload
def rasch_mml(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
    return_item_params: bool = ...,
) -> NamedRanking: ...


@overload
def rasch_mml(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
    *,
    return_item_params: Literal[True],
) -> ScoredItems: ...


@overload
def rasch_mml(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
    return_item_params: Literal[False] = ...,
) -> ScoredRanks: ...


@overload
def rasch_mml(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
    return_item_params: Literal[False] = ...,
) -> Ranks: ...


@overload
def rasch_mml(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
    return_item_params: bool = ...,
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch_mml(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 100,
    em_iter: int = 20,
    n_quadrature: int = 21,
    return_item_params: bool = False,
) -> Ranking:
    r"""Rank models by expected abilities of the Rasch model of marginal maximum likelihood [1]_.

    As :func:`rasch` with abilities drawn from :math:`\mathcal{N}(0, 1)`: difficulties maximise the likelihood
    of which the abilities are integrated out, and a model's score is the mean of its ability given its
    answers. Finite for every outcome; a question that all, or none, answer right has the difficulty
    :math:`\mp\infty` and tells nothing. Cost: O(LMQ) an iteration, Q = `n_quadrature`.

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    max_iter : int
        Most Newton steps of an iteration.
    em_iter : int
        Iterations of expectation and maximisation. With few models the level of the difficulties takes
        hundreds to settle; it moves all abilities nearly alike.
    n_quadrature : int
        Points at which abilities are integrated (Gauss-Hermite), 2 to 200. They are pi / sqrt(Q) apart: take
        more than 21 if many answers make abilities surer than that.
    return_item_params : bool
        Also return a dict of the questions' difficulties and the abilities' deviations (and the scores).

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Bock and Aitkin (1981). Marginal maximum likelihood estimation of item parameters: application of
       an EM algorithm. Psychometrika 46, 443-459.

    Examples
    --------
    >>> rasch_mml([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    fit = _fit(R, max_iter, em_iter, n_quadrature)
    ability = (fit.chances * fit.nodes).sum(axis=1)
    if not return_item_params:
        return fitted(ability, ability, method, return_scores)
    deviation = np.sqrt((fit.chances * (fit.nodes - ability[:, None]) ** 2).sum(axis=1))
    ranks = rank_scores(ability, method, 1e-6, scale=max(1.0, float(np.abs(ability).max())))
    return ScoredItems(ranks, ability, {"difficulty": fit.everywhere, "ability_sd": deviation})


@overload
def rasch_mml_credible(
    R: ByName,
    quantile: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
) -> NamedRanking: ...


@overload
def rasch_mml_credible(
    R: ArrayLike,
    quantile: float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
) -> ScoredRanks: ...


@overload
def rasch_mml_credible(
    R: ArrayLike,
    quantile: float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
) -> Ranks: ...


@overload
def rasch_mml_credible(
    R: ArrayLike,
    quantile: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    em_iter: int = ...,
    n_quadrature: int = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def rasch_mml_credible(
    R: Outcomes,
    quantile: float = 0.05,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 100,
    em_iter: int = 20,
    n_quadrature: int = 21,
) -> Ranking:
    """Rank models by a quantile of their abilities of :func:`rasch_mml`, given their answers.

    A quantile below 0.5 ranks cautiously: of two models with the same expected ability, the one that is known
    better comes first. It is that of the whole distribution; the published package returns a point of
    the quadrature.

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    quantile : float
        In (0, 1).
    max_iter, em_iter, n_quadrature
        As in :func:`rasch_mml`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> rasch_mml_credible([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    array([1, 2, 2])
    """
    level = inside("quantile", quantile)
    fit = _fit(R, max_iter, em_iter, n_quadrature)
    ability = _quantiles(fit, level)
    return fitted(ability, ability, method, return_scores)


class MarginalFit(NamedTuple):
    """Right answers of models (L,) to questions whose difficulty is finite, and trials of each; the fit.

    `chances` (L, Q) are those of models' abilities at `nodes` (Q,), given their answers.
    """

    right: Floats
    trials: float
    difficulty: Floats
    everywhere: Floats  # with the infinite ones, (M,)
    chances: Floats
    nodes: Floats


def _fit(R: Outcomes, max_iter: int, em_iter: int, n_quadrature: int) -> MarginalFit:
    most = whole("max_iter", max_iter)
    rounds = whole("em_iter", em_iter)
    size = whole("n_quadrature", n_quadrature)
    if not 2 <= size <= _MOST_NODES:
        raise ValueError(f"n_quadrature must be at least 2 and at most {_MOST_NODES}; got {size}")
    outcomes = read_outcomes(R)
    right = outcomes.sum(axis=2, dtype=np.float64)
    trials = float(outcomes.shape[2])
    shares = right.mean(axis=0) / trials
    known = (shares > 0.0) & (shares < 1.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    difficulty = np.log((1.0 - shares[known]) / shares[known])
    chances = _chances(right[:, known], trials, nodes, weights, difficulty)
    for _ in range(rounds):
        difficulty = _difficulties(right[:, known], trials, nodes, chances, difficulty, most)
        chances = _chances(right[:, known], trials, nodes, weights, difficulty)
    everywhere = np.where(shares > 0.0, -np.inf, np.inf)
    everywhere[known] = difficulty
    return MarginalFit(right[:, known].sum(axis=1), trials, difficulty, everywhere, chances, nodes)


def _quantiles(fit: MarginalFit, level: float) -> Floats:
    """Return a quantile of each model's ability, given its answers, by integrals around its mode, (L,)."""
    ability = np.zeros(fit.right.size)
    shortest = np.zeros(fit.right.size)
    for _ in range(_MOST_STEPS):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (ability[:, None] - fit.difficulty)))
        information = 1.0 + fit.trials * (chance * (1.0 - chance)).sum(axis=1)
        step = (fit.right - fit.trials * chance.sum(axis=1) - ability) / information
        ability = ability + np.clip(step, -_FARTHEST, _FARTHEST)
        shortest = 1.0 / np.sqrt(information)
        if (np.abs(step) <= _SETTLED * (1.0 + np.abs(ability))).all():
            break
    found = np.empty(ability.size)
    for model, grid in enumerate(ability[:, None] + shortest[:, None] * _AROUND):
        wrong = fit.trials * np.logaddexp(0.0, grid[:, None] - fit.difficulty).sum(axis=1)
        logs = fit.right[model] * grid - wrong - 0.5 * grid**2
        density = np.exp(logs - logs.max())
        below = np.cumsum(density) - 0.5 * density  # half of a point's density lies below it
        found[model] = np.interp(level, below / density.sum(), grid)
    return found


def _chances(right: Floats, trials: float, nodes: Floats, weights: Floats, difficulty: Floats) -> Floats:
    """Return the chance of each ability given a model's answers, (L, Q)."""
    logit = nodes[:, None] - difficulty
    wrong = trials * np.logaddexp(0.0, logit).sum(axis=1)
    logs = right.sum(axis=1)[:, None] * nodes - wrong + np.log(weights)
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def _difficulties(
    right: Floats, trials: float, nodes: Floats, chances: Floats, start: Floats, max_iter: int
) -> Floats:
    """Return the difficulties with which as many right answers are expected as there are."""
    made = trials * chances.sum(axis=0)[:, None]
    answered = right.sum(axis=0)
    difficulty = start
    for _ in range(max_iter):
        chance = 0.5 * (1.0 + np.tanh(0.5 * (nodes[:, None] - difficulty)))
        missed = (made * chance).sum(axis=0) - answered
        step = missed / (made * chance * (1.0 - chance)).sum(axis=0)
        difficulty = difficulty + np.clip(step, -_FARTHEST, _FARTHEST)
        if (np.abs(step) <= _SETTLED * (1.0 + np.abs(difficulty))).all():
            break
    return difficulty
