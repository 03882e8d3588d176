"""Stopping rules: from the path of a contrast to a statistic that is compared with a threshold.

A rule turns a block of estimates into a *statistic* per contrast and step (minus infinity if no call is
allowed yet) and says where a practical tie may be called. All rules but ``zscore`` yield log e-values, which
a family (:mod:`scorio.sequential.families`) compares with its threshold.
"""

from dataclasses import dataclass
from math import erfc, log, sqrt
from typing import ClassVar, Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from scorio._arguments import one_of
from scorio.arrays import Bools, Floats, Ints, floats
from scorio.sequential.cells import Cells
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.evidence import MIN_TRIALS, log_evidence, log_mean, log_tie_evidence


class Rule(Protocol):
    """A stopping rule.

    Attributes
    ----------
    name, promise : str
        The name in a config, and the promise of the rule in words.
    level : float
        Error level handed to the family.
    fixed_threshold : float or None
        Threshold of the statistic if no family applies (``zscore``).
    warning : str
        Warning to its users; empty for none.
    """

    @property
    def name(self) -> str:
        """The name in a config."""

    @property
    def promise(self) -> str:
        """The promise of the rule, in words."""

    @property
    def warning(self) -> str:
        """Warning to its users."""

    @property
    def level(self) -> float:
        """Error level handed to the family."""

    @property
    def fixed_threshold(self) -> float | None:
        """Threshold of the statistic if no family applies."""

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Return the statistic at each step; minus infinity if no call is allowed.

        Parameters
        ----------
        block : ContrastBlock
            Estimates, shape (contrasts, steps).
        complete : ndarray of bool, shape (steps,)
            Whether every question has been asked equally often by then.
        """

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Return the log e-value of a practical tie; minus infinity if none may be called."""

    def tied(self, block: ContrastBlock) -> Bools:
        """Return where a practical tie may be called at the rule's own level."""


@dataclass(frozen=True)
class Anytime:
    """The default: an e-value that may be looked at after every trial.

    Parameters
    ----------
    alpha : float
        Error level.
    equivalence : float, optional
        Equivalence margin ε in unit scores.

    Examples
    --------
    >>> Anytime(0.05, 0.02).level
    0.05
    """

    alpha: float
    equivalence: float | None = None

    name: ClassVar[str] = "anytime"
    promise: ClassVar[str] = "the error level holds at whatever moment one looks or stops"
    warning: ClassVar[str] = ""
    fixed_threshold: ClassVar[float | None] = None

    @property
    def level(self) -> float:
        """Error level handed to the family."""
        return self.alpha

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Log e-value, from ten trials of each model on; of the least D that lost answers allow.

        A share of the stake is bet, on clusters or on answers.
        """
        least = np.maximum(np.abs(block.difference) - block.slack, 0.0)
        log_e = log_evidence(least, block.variance, self.equivalence)
        if block.staked.any():
            with np.errstate(divide="ignore"):  # nothing, or everything, may be staked
                kept = np.log1p(-block.staked)
                staked = np.log(block.staked)
            log_e = np.logaddexp(kept + log_e, staked + block.bets)
        return np.where(block.trials >= MIN_TRIALS, log_e, -np.inf)

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Log e-value of a difference smaller than ε, from ten trials of each model on."""
        if self.equivalence is None:
            return np.full(block.difference.shape, -np.inf)
        log_e = log_tie_evidence(np.abs(block.difference) + block.slack, block.margin, self.equivalence)
        return np.where(block.trials >= MIN_TRIALS, log_e, -np.inf)

    def tied(self, block: ContrastBlock) -> Bools:
        """The contrasts whose e-value of a tie reaches 1/α."""
        return self.tie_evidence(block) >= log(1.0 / self.alpha)


@dataclass(frozen=True)
class Exact(Anytime):
    """A finite-sample e-value, read at complete passes (:mod:`scorio.sequential.rules`); needs more trials.

    The statistic itself is kept by :class:`scorio.sequential.rules.ExactReader`, which needs single trials.
    Practical ties follow the ``anytime`` rule, whose error is asymptotic.
    """

    name: ClassVar[str] = "exact"
    promise: ClassVar[str] = "a finite-sample theorem for winners, at the price of more trials"


@dataclass(frozen=True)
class ZScore:
    """The paper's rule: a winner at |μ_A − μ_B|/√(σ_A² + σ_B²) ≥ threshold, at complete passes.

    Parameters
    ----------
    threshold : float
        1.645 in the paper.
    """

    threshold: float

    name: ClassVar[str] = "zscore"
    promise: ClassVar[str] = "a fixed threshold, meant for one look after a number of trials fixed in advance"
    warning: ClassVar[str] = (
        "rule zscore is looked at after every pass here, but its threshold is meant for one look: two equal "
        "models are called different in about half of all runs. Use rule anytime for a promise that holds."
    )

    @property
    def level(self) -> float:
        """Level of one look at two equal models; nothing is promised when looking repeatedly."""
        return erfc(self.threshold / sqrt(2.0))

    @property
    def fixed_threshold(self) -> float | None:
        """The z threshold."""
        return self.threshold

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Return z at complete passes, where avg@N and Bayes@N give the same value."""
        least = np.maximum(np.abs(block.difference) - block.slack, 0.0)
        z = least / np.sqrt(np.maximum(block.avg_variance, 1e-300))
        return np.where(complete, z, -np.inf)

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Return none anywhere: the paper's rule knows no equivalence."""
        return np.full(block.difference.shape, -np.inf)

    def tied(self, block: ContrastBlock) -> Bools:
        """Return False everywhere."""
        return np.zeros(block.difference.shape, dtype=bool)


def stopping_rule(name: str, alpha: float, equivalence: float | None, z: float) -> Rule:
    """Return the rule called `name`; `z` is the threshold of ``zscore``, which takes nothing else.

    Raises
    ------
    ValueError
        If there is no such rule.

    Examples
    --------
    >>> stopping_rule("exact", 0.05, 0.02, 1.645)
    Exact(alpha=0.05, equivalence=0.02)
    """
    one_of("rule", name, ("anytime", "exact", "zscore"))
    if name == "zscore":
        return ZScore(z)
    if name == "exact":
        return Exact(alpha, equivalence)
    return Anytime(alpha, equivalence)


RATES: Final = 0.6 * 1.5 ** -np.arange(14.0)
"""The grid of λ of the ``exact`` rule."""


def log_exact_evidence(total: ArrayLike, spread: ArrayLike) -> Floats:
    """Logarithm of the exact e-value of a pair, which holds in finite samples, read at complete passes.

    With ξ = d/2 in [−½, ½] the half difference of one trial of each model on one question, and ξ̂ any
    prediction of it from earlier passes, ``exp(λ ξ − ψ(λ)(ξ − ξ̂)²) ≤ exp(λ ξ̂)(1 + λ(ξ − ξ̂))`` for λ in
    [0, 1) and ψ(λ) = −log(1 − λ) − λ ([1]_, [2]_), so its mean is at most ``exp(λ E ξ)``. Over a complete
    pass the exponents E ξ sum to zero when the two models are equal on this benchmark, however unequal they
    are on single questions: ``exp(λ S − ψ(λ) W)`` is a supermartingale over passes, with S = Σ ξ and
    W = Σ (ξ − ξ̂)². The e-value averages it over a grid of λ and both signs of S.

    Parameters
    ----------
    total : array_like of float
        S, the sum of half differences over complete passes.
    spread : array_like of float
        W, the sum of squared prediction errors.

    Returns
    -------
    ndarray of float
        ``log mean_j ½ (exp(λ_j S − ψ W) + exp(−λ_j S − ψ W))``.

    References
    ----------
    .. [1] Fan, Grama, Liu, "Exponential inequalities for martingales with applications", EJP 20 (2015).
    .. [2] Waudby-Smith, Ramdas, "Estimating means of bounded random variables by betting", JRSS-B 86 (2024).

    Examples
    --------
    >>> float(log_exact_evidence(0.0, 0.0))
    0.0
    """
    s = floats(total)[..., None]
    w = floats(spread)[..., None]
    psi = -np.log1p(-RATES) - RATES
    exponents = np.concatenate([RATES * s - psi * w, -RATES * s - psi * w], axis=-1)
    return log_mean(exponents)


class ExactReader:
    """Running S and W of pairs of models on one task.

    Parameters
    ----------
    cells : Cells
        The trials of the models.
    first, second : array_like of int, shape (P,)
        The models of each pair.

    Notes
    -----
    A pass in which either model of a pair misses an answer is left out for that pair, because its
    differences would no longer sum to the benchmark's.
    """

    def __init__(self, cells: Cells, first: ArrayLike, second: ArrayLike) -> None:
        self.cells = cells
        self.first = np.asarray(first, dtype=np.int64)
        self.second = np.asarray(second, dtype=np.int64)
        pairs = self.first.size
        self._passes = np.zeros(pairs, dtype=np.int64)
        self._total = np.zeros(pairs)
        self._spread = np.zeros(pairs)
        self._past = np.zeros((pairs, cells.sequence.questions))

    def read(self, pairs: Ints, start: int, stop: int) -> tuple[Floats, Floats]:
        """Read on to step `stop`; return log e-values and S at steps ``start .. stop-1``.

        The log e-value is minus infinity at steps that do not complete a pass.

        Parameters
        ----------
        pairs : ndarray of int, shape (p,)
            Pairs that have been read up to `start`.
        start, stop : int
            Steps to read.

        Returns
        -------
        tuple of ndarray, each of shape (p, stop − start)
            Log e-values and S.
        """
        log_e = np.full((pairs.size, stop - start), -np.inf)
        totals = np.zeros_like(log_e)
        for column in np.flatnonzero(self.cells.sequence.complete(start, stop)).tolist():
            end = start + column + 1
            # Where questions are asked a few times in a row, as many passes are complete together.
            while self._passes[pairs[0]] < end // self.cells.sequence.questions:
                self._read_pass(pairs, end)
            log_e[:, column] = log_exact_evidence(self._total[pairs], self._spread[pairs])
            totals[:, column] = self._total[pairs]
        return log_e, totals

    def _read_pass(self, pairs: Ints, end: int) -> None:
        """Add the pass that step `end` completes."""
        number = int(self._passes[pairs[0]])
        sequence = self.cells.sequence
        asked = sequence.question(0, end)
        steps = np.flatnonzero(sequence.repeats(0, end) == number)
        questions = asked[steps]
        a = self.cells.categories[self.first[pairs, None], steps]
        b = self.cells.categories[self.second[pairs, None], steps]
        whole = np.asarray((np.minimum(a, b) >= 0).all(axis=1))
        half = 0.5 * (self.cells.scale.scores[np.maximum(a, 0)] - self.cells.scale.scores[np.maximum(b, 0)])
        expected = self._past[pairs[:, None], questions] / max(number, 1)
        self._total[pairs] += np.where(whole, half.sum(axis=1), 0.0)
        self._spread[pairs] += np.where(whole, ((half - expected) ** 2).sum(axis=1), 0.0)
        self._past[pairs[:, None], questions] += np.where(whole[:, None], half, expected)
        self._passes[pairs] = number + 1
