"""Comparisons of models while trials arrive, with an error rate that holds at any time.

:func:`compare` reads two outcome matrices, :func:`board` several, :func:`score` one; :class:`Monitor` takes
outcomes one by one in anyone's loop, :class:`ScoreMonitor` those of one model. :func:`forecast` and
:func:`sample_size` say how many trials a verdict takes. :func:`label_bets` corrects the scores of a judge by
labels of some answers. :func:`paired_difference`, :func:`unpaired_difference`, :func:`permutation_test`,
:func:`mcnemar`, :func:`mean_score`, :func:`bootstrap` and :func:`posterior_interval` are for one look after a
number of trials fixed in advance.

Outcomes are read by their form: vectors are streams of trials in their order, matrices questions x trials,
three dimensions models x questions x trials, a frame a benchmark with a model a column. Results say how they
were read.

Examples
--------
Two models answered the same 200 questions twice each; an entry is 1 if an answer is right. The verdict is
'first', 'second', 'tie' (the difference is smaller than `equivalence`) or 'open' (more trials are needed).

>>> import numpy as np
>>> from scorio.sequential import compare
>>> rng = np.random.default_rng(1)
>>> A, B = rng.random((200, 2)) < 0.8, rng.random((200, 2)) < 0.6
>>> result = compare(A, B, equivalence=0.05, names=("new", "old"))
>>> result.verdict
'first'
>>> print(result)
new is better than old (after 17 trials of each model; largest e-value ≥ 20)
new - old: +0.2325 [+0.1338, +0.3312] at 95 %, valid at every look; 200 questions x 2 trials
"""

from typing import TYPE_CHECKING

from scorio._names import lazy

if TYPE_CHECKING:
    from scorio.sequential.boards import Board as Board
    from scorio.sequential.comparison import Comparison as Comparison
    from scorio.sequential.comparison import ModelScore as ModelScore
    from scorio.sequential.comparison import compare as compare
    from scorio.sequential.comparison import score as score
    from scorio.sequential.families import rank_intervals as rank_intervals
    from scorio.sequential.fixed_tests import bootstrap as bootstrap
    from scorio.sequential.fixed_tests import mcnemar as mcnemar
    from scorio.sequential.fixed_tests import mean_score as mean_score
    from scorio.sequential.fixed_tests import paired_difference as paired_difference
    from scorio.sequential.fixed_tests import permutation_test as permutation_test
    from scorio.sequential.fixed_tests import posterior_interval as posterior_interval
    from scorio.sequential.fixed_tests import unpaired_difference as unpaired_difference
    from scorio.sequential.labels import LabelBets as LabelBets
    from scorio.sequential.labels import label_bets as label_bets
    from scorio.sequential.monitor import Monitor as Monitor
    from scorio.sequential.monitor import ScoreMonitor as ScoreMonitor
    from scorio.sequential.one_look_result import FixedTest as FixedTest
    from scorio.sequential.planning import Forecast as Forecast
    from scorio.sequential.planning import SampleSize as SampleSize
    from scorio.sequential.planning import forecast as forecast
    from scorio.sequential.planning import sample_size as sample_size
    from scorio.sequential.standings import Standings as Standings
    from scorio.sequential.standings import board as board

_HOMES = {
    "scorio.sequential.boards": ("Board",),
    "scorio.sequential.comparison": (
        "Comparison",
        "ModelScore",
        "compare",
        "score",
    ),
    "scorio.sequential.families": ("rank_intervals",),
    "scorio.sequential.fixed_tests": (
        "bootstrap",
        "mcnemar",
        "mean_score",
        "paired_difference",
        "permutation_test",
        "posterior_interval",
        "unpaired_difference",
    ),
    "scorio.sequential.one_look_result": ("FixedTest",),
    "scorio.sequential.labels": ("LabelBets", "label_bets"),
    "scorio.sequential.monitor": ("Monitor", "ScoreMonitor"),
    "scorio.sequential.planning": (
        "Forecast",
        "SampleSize",
        "forecast",
        "sample_size",
    ),
    "scorio.sequential.standings": (
        "Standings",
        "board",
    ),
}
"""Where each name is defined: it is imported when it is asked for."""

__all__ = [name for names in _HOMES.values() for name in names]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
