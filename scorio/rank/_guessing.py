"""Rankings by the three-parameter logistic model (3PL), in which a right answer may be guessed."""

from __future__ import annotations

from typing import Literal, NamedTuple, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import finite, positive, whole
from scorio._named import Outcomes
from scorio.arrays import Bools, Floats, product
from scorio.eval._inputs import Missing
from scorio.rank._fitting import (
    SETTLED,
    Prior,
    UniformPrior,
    minimum,
    penalised,
    quadratic,
    read_prior_penalty,
)
from scorio.rank._irt import FitRequest, item_counts, with_equals_tied, with_items
from scorio.rank._item_fit import (
    FIRST_DAMPING,
    LARGEST_LOG_DISCRIMINATION,
    LEAST_INFORMATION,
    MOST_DAMPING,
    ItemFit,
)
from scorio.rank._ranked import ByName, Marked, NamedRanking, Ranking, ScoredItems, ScoredRanks, keeps_names
from scorio.rank._ties import Ranks, TieMethod

FARTHEST = 12.0
"""Logits by which an ability that is on its way to infinity lies beyond every question."""
LARGEST_LOGIT = 300.0
"""Beyond it floats cannot hold the second derivatives."""


@overload
def rasch_3pl(
    R: ByName,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rasch_3pl(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    *,
    return_item_params: Literal[True],
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> ScoredItems: ...


@overload
def rasch_3pl(
    R: ArrayLike,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rasch_3pl(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rasch_3pl(
    R: ArrayLike,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch_3pl(
    R: Outcomes,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    fix_guessing: float | None = None,
    return_item_params: bool = False,
    reg_discrimination: float = 0.01,
    reg_guessing: float = 0.1,
    guessing_upper: float = 0.5,
    *,
    missing: Missing = None,
) -> Ranking:
    r"""Rank models by the abilities of the three-parameter logistic model (3PL) [1]_.

    As :func:`rasch_2pl` if a right answer may be guessed: model l answers question m right with the chance
    :math:`c_m + (1 - c_m) \sigma(a_m (\theta_l - b_m))`. With few models the chances of a guess are hardly
    known: fix them, at 1/4 for questions with four choices, or prefer :func:`rasch` or :func:`avg`. The
    likelihood has several maxima; the one next to the Rasch solution is returned, and models with equal
    answers to equally answered questions tie. Cost: O(L²M) an iteration.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    max_iter
        As in :func:`bradley_terry`.
    fix_guessing : float, optional
        The chance c of a guess to every question, in [0, `guessing_upper`]; by default each is fitted.
    return_item_params
        As in :func:`rasch`.
    reg_discrimination : float
        Weight of the penalty :math:`\sum_m \log^2 a_m`, above 0; it fixes the scale of the abilities.
    reg_guessing : float
        Weight of the penalty :math:`\sum_m g_m^2` if c is fitted, above 0; :math:`g_m` is the log-odds of
        c as a share of `guessing_upper`.
    guessing_upper : float
        What c stays below, in (0, 1).

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Raises
    ------
    ValueError
        If an argument is out of range, or a model's ability has no finite value: all its right answers may be
        guesses.
    RuntimeError
        If the fit has not converged in `max_iter` iterations.

    References
    ----------
    .. [1] Birnbaum (1968). Some latent trait models and their use in inferring an examinee's ability; Lord
       (1980). Applications of Item Response Theory to Practical Testing Problems.

    Examples
    --------
    >>> first = [[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1]]
    >>> second = [[1, 0, 1, 1], [0, 1, 1, 0], [1, 0, 1, 0]]
    >>> third = [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]]
    >>> rasch_3pl([first, second, third], fix_guessing=0.25)
    array([1, 2, 3])
    """
    asked = FitRequest(R, method, return_scores, max_iter, return_item_params, missing)
    guesses = Guesses(fix_guessing, reg_guessing, guessing_upper)
    return _guessed(asked, UniformPrior(), reg_discrimination, guesses)


@overload
def rasch_3pl_map(
    R: ByName,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> NamedRanking: ...


@overload
def rasch_3pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    *,
    return_item_params: Literal[True],
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> ScoredItems: ...


@overload
def rasch_3pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    *,
    return_scores: Literal[True],
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> ScoredRanks: ...


@overload
def rasch_3pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: Literal[False] = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: Literal[False] = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> Ranks: ...


@overload
def rasch_3pl_map(
    R: ArrayLike,
    prior: Prior | float = ...,
    method: TieMethod = ...,
    return_scores: bool = ...,
    max_iter: int = ...,
    fix_guessing: float | None = ...,
    return_item_params: bool = ...,
    reg_discrimination: float = ...,
    reg_guessing: float = ...,
    guessing_upper: float = ...,
    **given: Unpack[Marked],
) -> Ranks | ScoredRanks | ScoredItems: ...


@keeps_names
def rasch_3pl_map(
    R: Outcomes,
    prior: Prior | float = 1.0,
    method: TieMethod = "competition",
    return_scores: bool = False,
    max_iter: int = 500,
    fix_guessing: float | None = None,
    return_item_params: bool = False,
    reg_discrimination: float = 0.01,
    reg_guessing: float = 0.1,
    guessing_upper: float = 0.5,
    *,
    missing: Missing = None,
) -> Ranking:
    """Rank models by :func:`rasch_3pl` with a prior of the abilities.

    Finite for a model whose answers are all right, or may all be guesses; every question needs a right and a
    wrong answer.

    Parameters
    ----------
    R, method, return_scores, missing
        As in :func:`bayes`.
    prior : float or object with a ``penalty(theta)`` method
        Variance of a normal prior around 0 of the abilities, or a prior such as :class:`CauchyPrior`.
    max_iter
        As in :func:`bradley_terry`.
    fix_guessing, reg_discrimination, reg_guessing, guessing_upper
        As in :func:`rasch_3pl`.
    return_item_params
        As in :func:`rasch`.

    Returns
    -------
    ranks : numpy.ndarray, shape (L,)
        As in :func:`bayes`, with `return_scores` followed by the scores.

    Examples
    --------
    >>> rasch_3pl_map([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]], fix_guessing=0.2)
    array([1, 2, 3])
    """
    asked = FitRequest(R, method, return_scores, max_iter, return_item_params, missing)
    guesses = Guesses(fix_guessing, reg_guessing, guessing_upper)
    return _guessed(asked, read_prior_penalty(prior), reg_discrimination, guesses)


class Guesses(NamedTuple):
    """What is assumed of guesses, as the rankings are asked."""

    fix_guessing: float | None
    reg_guessing: float
    guessing_upper: float

    def checked(self) -> Guesses:
        """Return the same, after checks."""
        upper = finite("guessing_upper", self.guessing_upper)
        if not 0.0 < upper < 1.0:
            raise ValueError(f"guessing_upper must be in (0, 1); got {self.guessing_upper!r}")
        if self.fix_guessing is None:
            return Guesses(None, positive("reg_guessing", self.reg_guessing), upper)
        fixed = finite("fix_guessing", self.fix_guessing)
        if not 0.0 <= fixed <= upper:
            raise ValueError(
                f"fix_guessing must be in [0, guessing_upper], here [0, {upper:g}]; got {self.fix_guessing!r}"
            )
        return Guesses(fixed, 0.0, upper)


def _guessed(asked: FitRequest, prior: Prior, regularisation: float, guesses: Guesses) -> Ranking:
    checked = guesses.checked()
    weight = positive("reg_discrimination", regularisation)
    right, made = item_counts(asked.R, asked.missing, prior, "rasch_3pl")
    fit = GuessedFit(right, made, weight, prior, checked)
    theta, items = fit.solve(whole("max_iter", asked.max_iter))
    difficulty, log_a, _ = items.T
    far = (np.abs(np.exp(log_a) * (theta[:, None] - difficulty)) > FARTHEST).all(axis=1)
    if far.any():
        raise ValueError(
            f"R must tell what models know from guesses: the ability of model {far.argmax()} has no finite "
            "maximum-likelihood value; use rasch_3pl_map"
        )
    theta = with_equals_tied(theta, prior, right, made)
    parameters = {
        "difficulty": difficulty,
        "discrimination": np.exp(log_a),
        "guessing": fit.guessing(items),
    }
    return with_items(asked, theta, parameters)


class Place(NamedTuple):
    """Abilities (L,); of each question difficulty, log-discrimination and log-odds of a guess, (M, 3)."""

    theta: Floats
    items: Floats


class Slopes(NamedTuple):
    """First derivatives, and second ones: of abilities (L,), of both (L, M, 3), of questions (M, 3, 3)."""

    first: Place
    of_theta: Floats
    of_both: Floats
    of_items: Floats


class GuessedFit:
    """Right answers among the trials made, (L, M) each, some of them guessed, under a prior of the abilities.

    Newton's steps, damped as by Levenberg and Marquardt; L-BFGS for a prior that is not normal.
    """

    def __init__(
        self, right: Floats, made: Floats, regularisation: float, prior: Prior, guesses: Guesses
    ) -> None:
        self.right = right
        self.made = made
        self.prior = prior
        self.guesses = guesses
        self._weights = np.array([0.0, regularisation, guesses.reg_guessing])

    def solve(self, max_iter: int) -> Place:
        """Return the parameters at the minimum."""
        start = ItemFit(self.right, self.made, None, self.prior).start()
        items = np.zeros((start.b.size, 3))
        items[:, 0] = start.b
        normal = quadratic(self.prior, start.theta.size)
        if normal is None:
            return self._descend(Place(start.theta, items), max_iter)
        at = Place(start.theta, items)
        damping = FIRST_DAMPING
        value = self._value(at) + self.prior.penalty(at.theta)
        for _ in range(max_iter):
            slopes = self._slopes(at, *normal)
            there, reached, gain = at, value, 0.0
            while damping < MOST_DAMPING:
                there, gain = _stepped(at, slopes, damping)
                reached = self._value(there) + self.prior.penalty(there.theta)
                if reached < value or abs(gain) <= SETTLED * (1.0 + value):
                    break
                damping *= 10.0
            if abs(gain) <= SETTLED * (1.0 + value):
                if reached < value:
                    return there
                return at
            at = there
            value = reached
            damping = damping / 10.0
        # As in ItemFit: Newton's steps may be short in a valley that bends.
        return self._descend(at, max_iter)

    def guessing(self, items: Floats) -> Floats:
        """Return the chance of a guess to each question, (M,)."""
        fixed, _, upper = self.guesses
        if fixed is not None:
            return np.full(len(items), fixed)
        return np.asarray(upper * 0.5 * (1.0 + np.tanh(0.5 * items[:, 2])))

    def _logs(self, at: Place) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the logits, and logarithms of the chances to know, to be right and to be wrong."""
        logit = np.exp(at.items[:, 1]) * (at.theta[:, None] - at.items[:, 0])
        logit = np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT)
        guess = self.guessing(at.items)
        knows = -np.logaddexp(0.0, -logit)
        missed = np.log1p(-guess)
        with np.errstate(divide="ignore"):  # nobody may guess
            right = np.logaddexp(np.log(guess), missed + knows)
        return logit, knows, right, missed + knows - logit

    def _value(self, at: Place) -> float:
        """Minus the log-likelihood, with the penalties of the questions' parameters."""
        _, _, right, wrong = self._logs(at)
        loss = self.right * right + (self.made - self.right) * wrong
        return float((self._weights * at.items**2).sum() - loss.sum())

    def _slopes(self, at: Place, centre: Floats, precision: float) -> Slopes:
        logit, knows, right, wrong = self._logs(at)
        a = np.exp(at.items[:, 1])
        guess = self.guessing(at.items)
        chance = np.exp(right)
        error = self.made * chance - self.right
        information = self.made * np.exp(right + wrong)
        known = np.exp(knows - right)  # the share of right answers that are no guesses, times 1 / (1 - c)
        growth = np.zeros(guess.size)
        if self.guesses.fix_guessing is None:
            growth = guess * (1.0 - guess / self.guesses.guessing_upper)
        # How the log-odds of a right answer grow with the ability, and with the parameters of the question.
        by_theta = a * known
        by_items = np.stack([-by_theta, logit * known, growth / (chance * (1.0 - guess))], axis=2)
        first = (error[:, :, None] * by_items).sum(axis=0) + 2.0 * self._weights * at.items
        bend = known * np.exp(knows - logit) * (guess / chance)
        turn = -(known**2) * np.exp(-logit) * growth
        more = growth * (1.0 - 2.0 * guess / self.guesses.guessing_upper)
        second = np.empty((*logit.shape, 3, 3))
        second[:, :, 0, 0] = bend * a**2
        second[:, :, 0, 1] = second[:, :, 1, 0] = -a * (bend * logit + known)
        second[:, :, 1, 1] = logit * (bend * logit + known)
        second[:, :, 0, 2] = second[:, :, 2, 0] = -a * turn
        second[:, :, 1, 2] = second[:, :, 2, 1] = logit * turn
        second[:, :, 2, 2] = (2.0 * chance - 1.0) * (growth / (chance * (1.0 - guess))) ** 2
        second[:, :, 2, 2] += more / (chance * (1.0 - guess))
        expected = np.einsum("lm,lmj,lmk->mjk", information, by_items, by_items) + np.diag(
            2.0 * self._weights
        )
        of_items = expected + np.einsum("lm,lmjk->mjk", error, second)
        # Where a question's own block is not convex, the errors are left out: Fisher's scoring.
        least = np.linalg.eigvalsh(of_items)[:, int(self.guesses.fix_guessing is not None)]
        bent = least <= LEAST_INFORMATION
        of_items[bent], error[:, bent] = expected[bent], 0.0
        of_items[:, 0, 0] = np.maximum(of_items[:, 0, 0], LEAST_INFORMATION)
        of_both = (information * by_theta)[:, :, None] * by_items
        of_both -= error[:, :, None] * second[:, :, 0]
        held = (np.abs(at.items) >= LARGEST_LOG_DISCRIMINATION) & (first * at.items < 0.0)
        held[:, 0], held[:, 2] = False, self.guesses.fix_guessing is not None
        of_theta = (information * by_theta**2 + error * bend * a**2).sum(axis=1) + precision
        theta = ((self.made * chance - self.right) * by_theta).sum(axis=1) + precision * (at.theta - centre)
        _hold(held, first, of_both, of_items)
        return Slopes(Place(theta, first), of_theta, of_both, of_items)

    def _descend(self, start: Place, max_iter: int) -> Place:
        models, questions = self.right.shape

        def unpacked(x: Floats) -> Place:
            items = x[models:].reshape(questions, 3).copy()
            items[:, 0] -= items[:, 0].mean()
            return Place(x[:models], items)

        def likelihood(x: Floats) -> tuple[float, Floats]:
            at = unpacked(x)
            theta, items = self._slopes(at, at.theta, 0.0).first
            items[:, 0] -= items[:, 0].mean()
            return self._value(at), np.concatenate([theta, items.ravel()])

        limit = LARGEST_LOG_DISCRIMINATION
        free: tuple[float | None, float | None] = (None, None)
        bounds = [free] * models + [free, (-limit, limit), free] * questions
        objective = penalised(likelihood, self.prior, models, centred=False)
        first = np.concatenate([start.theta, start.items.ravel()])
        return unpacked(minimum(objective, first, max_iter, "rasch_3pl", bounds))


def _hold(held: Bools, first: Floats, of_both: Floats, of_items: Floats) -> None:
    """Leave out parameters that stay where they are."""
    first[held] = 0.0
    of_both[:, held] = 0.0
    question, parameter = np.nonzero(held)
    of_items[question, parameter] = of_items[question, :, parameter] = 0.0
    of_items[question, parameter, parameter] = 1.0


def _stepped(at: Place, slopes: Slopes, damping: float) -> tuple[Place, float]:
    """Return the place after a damped step that keeps the mean difficulty, and the gain that it foresees."""
    models, questions, size = slopes.of_both.shape
    first, more = slopes.first, 1.0 + damping
    blocks = slopes.of_items.copy()
    blocks[:, range(size), range(size)] *= more
    inverse = np.linalg.inv(blocks)
    both = slopes.of_both.reshape(models, -1)
    by_items = (slopes.of_both.transpose(1, 0, 2) @ inverse).transpose(1, 0, 2).reshape(models, -1)
    of_level = inverse[:, :, 0]
    shift = by_items.reshape(slopes.of_both.shape)[:, :, 0].sum(axis=1)
    total = of_level[:, 0].sum()
    system = np.diag(more * slopes.of_theta) - product(by_items, both.T) + np.outer(shift, shift) / total
    moved = (inverse @ first.items[:, :, None])[:, :, 0]
    theta = np.linalg.solve(
        system, by_items @ first.items.ravel() - first.theta - shift * moved[:, 0].sum() / total
    )
    pulled = first.items + (theta @ both).reshape(questions, size)
    pulled[:, 0] -= (of_level * pulled).sum() / total
    step = -(inverse @ pulled[:, :, None])[:, :, 0]
    gain = -float(theta @ first.theta + (step * first.items).sum())
    items = at.items + step
    items[:, 1] = np.clip(items[:, 1], -LARGEST_LOG_DISCRIMINATION, LARGEST_LOG_DISCRIMINATION)
    items[:, 0] -= items[:, 0].mean()
    return Place(at.theta + theta, items), gain
