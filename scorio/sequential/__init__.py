"""Comparisons of models while trials arrive, with an error rate that holds at any time.

:func:`compare` reads two outcome matrices, :func:`board` several, :func:`score` one; :class:`Monitor` takes
outcomes one by one in anyone's loop. :func:`forecast` and :func:`sample_size` say how many trials a verdict
takes. :func:`paired_difference`, :func:`permutation_test`, :func:`mcnemar`, :func:`bootstrap` and
:func:`posterior_interval` are for one look after a number of trials fixed in advance.
"""

from scorio.sequential.boards import Board
from scorio.sequential.comparison import Comparison, Score, compare, score
from scorio.sequential.families import rank_intervals
from scorio.sequential.fixed_tests import (
    FixedTest,
    bootstrap,
    mcnemar,
    paired_difference,
    permutation_test,
    posterior_interval,
)
from scorio.sequential.monitor import Monitor
from scorio.sequential.planning import Forecast, SampleSize, forecast, sample_size
from scorio.sequential.standings import Standings, board

__all__ = [
    "Board",
    "Comparison",
    "FixedTest",
    "Forecast",
    "Monitor",
    "SampleSize",
    "Score",
    "Standings",
    "board",
    "bootstrap",
    "compare",
    "forecast",
    "mcnemar",
    "paired_difference",
    "permutation_test",
    "posterior_interval",
    "rank_intervals",
    "sample_size",
    "score",
]
