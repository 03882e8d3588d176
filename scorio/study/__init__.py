"""Simulations of the paper: how fast rankings settle, how sure they are, what priors do.

A study takes a **source** of replicates (independent runs of biased coins, or a bootstrap of recorded
outcomes), one or several **metrics**, and a **seed**. It returns a frozen result of arrays. The replicates
depend on the source and the seed alone: not on the metrics, not on how many replicates are asked for, and
not on the executor that spreads the work.
"""

from typing import TYPE_CHECKING

from scorio._names import elsewhere
from scorio.study.credible import RankPatterns, Separation, credible_patterns, credible_ranks, pair_separation
from scorio.study.curves import (
    PAPER_ORIGINAL_MEANS,
    BetaUpdate,
    PriorStudy,
    TauCurves,
    paper_originals,
    prior_study,
    tau_curves,
)
from scorio.study.metrics import Metric, paper_metrics
from scorio.study.settling import (
    NEVER,
    Convergence,
    RankTrajectory,
    convergence,
    convergence_growth,
    model_subsets,
    rank_trajectory,
    worst_trajectory,
)
from scorio.study.sources import (
    PAPER_MEANS,
    Bootstrap,
    Coins,
    IndependentRuns,
    Source,
    biased_coins,
    replicate_trials,
)

__all__ = [
    "NEVER",
    "PAPER_MEANS",
    "PAPER_ORIGINAL_MEANS",
    "BetaUpdate",
    "Bootstrap",
    "Coins",
    "Convergence",
    "IndependentRuns",
    "Metric",
    "PriorStudy",
    "RankPatterns",
    "RankTrajectory",
    "Separation",
    "Source",
    "TauCurves",
    "biased_coins",
    "convergence",
    "convergence_growth",
    "credible_patterns",
    "credible_ranks",
    "model_subsets",
    "pair_separation",
    "paper_metrics",
    "paper_originals",
    "prior_study",
    "rank_trajectory",
    "replicate_trials",
    "tau_curves",
    "worst_trajectory",
]

if not TYPE_CHECKING:
    __getattr__ = elsewhere(__name__)
