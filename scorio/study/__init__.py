"""Simulations of the paper: how fast rankings settle, how sure they are, what priors do.

A study takes a **source** of replicates (independent runs of biased coins, or a bootstrap of recorded
outcomes), one or several **metrics**, and a **seed**. It returns a frozen result of arrays. The replicates
depend on the source and the seed alone: not on the metrics, not on how many replicates are asked for, and
not on the executor that spreads the work.
"""

from scorio._names import lazy

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
