"""What every metric of this package returns: ranks, and the scores behind them where asked for."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from scorio.rank._ties import Ranks, TieMethod, rank_scores

__all__ = ["Ranking", "ranked"]

Ranking: TypeAlias = Ranks | tuple[Ranks, NDArray[np.float64]]


def ranked(scores: NDArray[np.float64], method: TieMethod, return_scores: bool) -> Ranking:
    """Return the ranks of `scores`, with the scores themselves where `return_scores`."""
    ranks = rank_scores(scores, method)
    return (ranks, scores) if return_scores else ranks
