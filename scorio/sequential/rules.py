"""Stopping rules: from the path of a contrast to a statistic that is compared with a threshold.

A rule turns a block of estimates into a *statistic* per contrast and step (minus infinity where no call is
allowed yet) and says where a practical tie may be called. All rules but ``zscore`` yield log e-values, which
a family (:mod:`scorio.sequential.families`) compares with its threshold.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p
from typing import ClassVar, Protocol

import numpy as np

from scorio._arrays import Bools, Floats
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.evidence import MIN_QUESTIONS, log_evidence, log_tie_evidence

ON_CLUSTERS = 0.9
"""Share of the stake that is bet on clusters of questions."""


class Rule(Protocol):
    """A stopping rule.

    Attributes
    ----------
    name, promise : str
        The name in a config, and the promise of the rule in words.
    level : float
        Error level handed to the family.
    fixed_threshold : float or None
        Threshold of the statistic where no family applies (``zscore``).
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
        """Threshold of the statistic where no family applies."""

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Return the statistic at each step; minus infinity where no call is allowed.

        Parameters
        ----------
        block : ContrastBlock
            Estimates, shape (contrasts, steps).
        complete : ndarray of bool, shape (steps,)
            Whether every question has been asked equally often by then.
        """

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Return the log e-value of a practical tie; minus infinity where none may be called."""

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
        """Log e-value, from ten questions on; of the least D that lost answers allow.

        With clusters most of the stake is bet on them, and given up while an answer is lost.
        """
        least = np.maximum(np.abs(block.difference) - block.slack, 0.0)
        log_e = log_evidence(least, block.variance, self.equivalence)
        if block.bets is not None:
            won = np.where(block.slack > 0.0, -np.inf, block.bets)
            both = np.logaddexp(log1p(-ON_CLUSTERS) + log_e, log(ON_CLUSTERS) + won)
            log_e = np.where(np.isnan(block.bets), log_e, both)
        return np.where(block.questions >= MIN_QUESTIONS, log_e, -np.inf)

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Log e-value of a difference smaller than ε, from ten questions on."""
        if self.equivalence is None:
            return np.full(block.difference.shape, -np.inf)
        log_e = log_tie_evidence(np.abs(block.difference) + block.slack, block.margin, self.equivalence)
        return np.where(block.questions >= MIN_QUESTIONS, log_e, -np.inf)

    def tied(self, block: ContrastBlock) -> Bools:
        """The contrasts whose e-value of a tie reaches 1/α."""
        return self.tie_evidence(block) >= log(1.0 / self.alpha)


@dataclass(frozen=True)
class Exact(Anytime):
    """A finite-sample e-value, read at complete passes (:mod:`scorio.sequential.exact`); needs more trials.

    The statistic itself is kept by :class:`scorio.sequential.exact.ExactReader`, which needs single trials.
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

    threshold: float = 1.645

    name: ClassVar[str] = "zscore"
    promise: ClassVar[str] = "a fixed threshold, meant for one look after a number of trials fixed in advance"
    warning: ClassVar[str] = (
        "rule zscore is looked at after every pass here, but its threshold is meant for one look: two equal "
        "models are called different in about half of all runs. Use rule anytime for a promise that holds."
    )

    level: ClassVar[float] = 0.05
    """Nominal level of one look; nothing is promised when looking repeatedly."""

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
