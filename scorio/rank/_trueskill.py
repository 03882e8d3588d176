"""TrueSkill: beliefs about skills, updated by the games of all pairs."""

from __future__ import annotations

from math import exp, expm1, pi, sqrt
from typing import Literal, NamedTuple, overload

from numpy.typing import ArrayLike

from scorio._arguments import at_least, finite, positive
from scorio._named import Outcomes
from scorio.arrays import floats
from scorio.eval._inputs import read_outcomes
from scorio.rank._ranked import ByName, NamedRanking, Ranking, ScoredRanks, keeps_names, ranked
from scorio.rank._ratings import DrawHandling, read_games
from scorio.rank._ties import Ranks, TieMethod

_NARROW = 1e-6
"""Margin of a draw below which its limit 0 is as exact as numbers are."""


@overload
def trueskill(
    R: ByName,
    mu_initial: float = ...,
    sigma_initial: float = ...,
    beta: float = ...,
    tau: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    tie_handling: DrawHandling = ...,
    draw_margin: float = ...,
) -> NamedRanking: ...


@overload
def trueskill(
    R: ArrayLike,
    mu_initial: float = ...,
    sigma_initial: float = ...,
    beta: float = ...,
    tau: float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    tie_handling: DrawHandling = ...,
    draw_margin: float = ...,
) -> ScoredRanks: ...


@overload
def trueskill(
    R: ArrayLike,
    mu_initial: float = ...,
    sigma_initial: float = ...,
    beta: float = ...,
    tau: float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    tie_handling: DrawHandling = ...,
    draw_margin: float = ...,
) -> Ranks: ...


@overload
def trueskill(
    R: ArrayLike,
    mu_initial: float = ...,
    sigma_initial: float = ...,
    beta: float = ...,
    tau: float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    tie_handling: DrawHandling = ...,
    draw_margin: float = ...,
) -> Ranks | ScoredRanks: ...


@keeps_names
def trueskill(
    R: Outcomes,
    mu_initial: float = 25.0,
    sigma_initial: float = 25.0 / 3.0,
    beta: float = 25.0 / 6.0,
    tau: float = 25.0 / 300.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    tie_handling: DrawHandling = "skip",
    draw_margin: float = 0.0,
) -> Ranking:
    r"""Rank models by the mean skills of TrueSkill [1]_, updated question by question, trial after trial.

    Skills are :math:`\mathcal{N}(\mu_i, \sigma_i^2)`, performances in a game normal around them with
    standard deviation :math:`\beta`. A win says that the difference of two performances is above the draw
    margin, a draw that it is within it. Given :math:`c^2 = 2 \beta^2 + \sigma_i^2 + \sigma_j^2`, it changes
    a mean by :math:`\pm v \sigma_i^2 / c` and a variance by the factor :math:`1 - w \sigma_i^2 / c^2`, v and
    w of the truncated normal distribution. The games of one question and trial are read from the same
    beliefs, and what they say is added up as precisions. Ratings depend on the order of the trials. Cost:
    O(L²MN).

    Parameters
    ----------
    R, method, return_scores
        As in :func:`bayes`.
    mu_initial, sigma_initial : float
        Mean and standard deviation of every skill before the first trial.
    beta : float
        Standard deviation of a performance.
    tau : float
        Growth of a skill's standard deviation after each trial, to :math:`\sqrt{\sigma^2 + \tau^2}`; at
        least 0.
    tie_handling
        As in :func:`elo`.
    draw_margin : float
        Largest difference of two performances that is a draw; at least 0.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    References
    ----------
    .. [1] Herbrich, Minka and Graepel (2006). TrueSkill: a Bayesian skill rating system. NeurIPS 19.

    Examples
    --------
    >>> trueskill([[1], [0]], return_scores=True)[1].round(3)
    array([29.205, 20.795])
    """
    start = finite("mu_initial", mu_initial)
    spread = positive("sigma_initial", sigma_initial)
    noise = positive("beta", beta)
    growth = at_least("tau", tau, 0.0)
    margin = at_least("draw_margin", draw_margin, 0.0)
    games, drawn = read_games(R, tie_handling)
    means = [start] * games.shape[1]
    variances = [spread**2] * games.shape[1]
    questions = read_outcomes(R).shape[1]
    for number, right in enumerate(games.tolist()):
        if number and number % questions == 0:
            variances = [variance + growth**2 for variance in variances]
        pulls = [0.0] * len(means)
        precisions = [1.0 / variance for variance in variances]
        for i in range(len(means)):
            for j in range(i):
                if right[i] == right[j] and not drawn[right[i]]:
                    continue
                spread_of_game = sqrt(2.0 * noise**2 + variances[i] + variances[j])
                lead = (means[i] - means[j]) / spread_of_game
                slack = margin / spread_of_game
                told = _told(right[i] - right[j], lead, slack)
                for own, sign in ((i, 1.0), (j, -1.0)):
                    share = told.shrink * variances[own] / spread_of_game**2
                    pulls[own] += sign * told.shift / spread_of_game / (1.0 - share)
                    precisions[own] += share / (1.0 - share) / variances[own]
        means = [
            mean + pull / precision for mean, pull, precision in zip(means, pulls, precisions, strict=True)
        ]
        variances = [1.0 / precision for precision in precisions]
    return ranked(floats(means), method, return_scores, max(abs(start), spread))


class _Told(NamedTuple):
    """What a game says of the difference of performances: its mean moves, its variance shrinks."""

    shift: float
    shrink: float


def _told(won: int, lead: float, margin: float) -> _Told:
    """Return v and w of a game that the one ahead by `lead` has won (1), lost (-1) or drawn (0)."""
    if won:
        short = margin - won * lead
        shift = 1.0 / _mills(short)
        return _Told(won * shift, shift * (shift - short))
    if margin < _NARROW:
        return _Told(-lead, 1.0)
    ahead = abs(lead)
    near = ahead - margin
    far = ahead + margin
    ratio = exp(-2.0 * ahead * margin)
    chance = _mills(near) - ratio * _mills(far)
    shift = expm1(-2.0 * ahead * margin) / chance
    shrink = shift**2 + (ratio * far - near) / chance
    if lead > 0.0:
        move = shift
    else:
        move = -shift
    return _Told(move, shrink)


def _mills(x: float) -> float:
    """Return the chance that a standard normal number is above `x` over its density there."""
    from scipy.special import erfcx

    return sqrt(0.5 * pi) * float(erfcx(x / sqrt(2.0)))
