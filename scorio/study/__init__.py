"""Simulations of the paper: how fast rankings settle, how sure they are, what priors do.

A study takes a **source** of replicates (independent runs of biased coins, or a bootstrap of recorded
outcomes), one or several **metrics**, and a **seed**. It returns a frozen result of arrays. The replicates
depend on the source and the seed alone: not on the metrics, not on how many replicates are asked for, and
not on the executor that spreads the work.
"""

from scorio.study.coins import PAPER_MEANS, Coins, biased_coins
from scorio.study.gold import GoldStandard
from scorio.study.growth import Growth, convergence_growth, model_subsets
from scorio.study.metrics import Metric, MetricName, paper_metrics
from scorio.study.patterns import RankPatterns, credible_patterns, credible_ranks
from scorio.study.priors import (
    PAPER_ORIGINAL_MEANS,
    BetaUpdate,
    PriorStudy,
    paper_originals,
    prior_study,
)
from scorio.study.separation import Separation, pair_separation
from scorio.study.settling import (
    NEVER,
    Convergence,
    RankTrajectory,
    convergence,
    rank_trajectory,
    recorded_gold,
    worst_trajectory,
)
from scorio.study.sources import Bootstrap, IndependentRuns, Resampling, Source, replicate_trials
from scorio.study.tau import TauCurves, tau_curves

__all__ = [
    "NEVER",
    "PAPER_MEANS",
    "PAPER_ORIGINAL_MEANS",
    "BetaUpdate",
    "Bootstrap",
    "Coins",
    "Convergence",
    "GoldStandard",
    "Growth",
    "IndependentRuns",
    "Metric",
    "MetricName",
    "PriorStudy",
    "RankPatterns",
    "RankTrajectory",
    "Resampling",
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
    "recorded_gold",
    "replicate_trials",
    "tau_curves",
    "worst_trajectory",
]
