"""Comparisons of models while trials arrive, with an error rate that holds at any time.

:func:`compare` reads two outcome matrices, :func:`board` several, :func:`score` one; :class:`Monitor` takes
outcomes one by one in anyone's loop. :func:`forecast` and :func:`sample_size` say how many trials a verdict
takes. :func:`paired_difference`, :func:`permutation_test`, :func:`mcnemar`, :func:`bootstrap` and
:func:`posterior_interval` are for one look after a number of trials fixed in advance; with fewer than ten
questions :func:`permutation_test` is the one to take.

Examples
--------
Two models answered the same 200 questions twice each; an entry is 1 where an answer is right. The verdict is
'first', 'second', 'tie' (the difference is smaller than `equivalence`) or 'open' (more trials are needed).

>>> import numpy as np
>>> from scorio.sequential import compare
>>> rng = np.random.default_rng(1)
>>> A, B = rng.random((200, 2)) < 0.8, rng.random((200, 2)) < 0.6
>>> result = compare(A, B, equivalence=0.05, names=("new", "old"))
>>> result.verdict
'first'
>>> print(result)
new is better than old (after 107 trials of each model; largest e-value 1.672e+10)
new - old: +0.2325 [+0.1338, +0.3312] at 95 %, valid at every look
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scorio.sequential.boards import Board as Board
    from scorio.sequential.comparison import Comparison as Comparison
    from scorio.sequential.comparison import Score as Score
    from scorio.sequential.comparison import compare as compare
    from scorio.sequential.comparison import score as score
    from scorio.sequential.families import rank_intervals as rank_intervals
    from scorio.sequential.fixed_tests import FixedTest as FixedTest
    from scorio.sequential.fixed_tests import bootstrap as bootstrap
    from scorio.sequential.fixed_tests import mcnemar as mcnemar
    from scorio.sequential.fixed_tests import paired_difference as paired_difference
    from scorio.sequential.fixed_tests import permutation_test as permutation_test
    from scorio.sequential.fixed_tests import posterior_interval as posterior_interval
    from scorio.sequential.monitor import Monitor as Monitor
    from scorio.sequential.planning import Forecast as Forecast
    from scorio.sequential.planning import SampleSize as SampleSize
    from scorio.sequential.planning import forecast as forecast
    from scorio.sequential.planning import sample_size as sample_size
    from scorio.sequential.standings import Standings as Standings
    from scorio.sequential.standings import board as board
else:
    # A run needs `parts` alone: the readers of arrays, with all of scorio.eval, are imported when asked for.
    _MODULE_OF = {
        "Board": "boards",
        "Comparison": "comparison",
        "FixedTest": "fixed_tests",
        "Forecast": "planning",
        "Monitor": "monitor",
        "SampleSize": "planning",
        "Score": "comparison",
        "Standings": "standings",
        "board": "standings",
        "bootstrap": "fixed_tests",
        "compare": "comparison",
        "forecast": "planning",
        "mcnemar": "fixed_tests",
        "paired_difference": "fixed_tests",
        "permutation_test": "fixed_tests",
        "posterior_interval": "fixed_tests",
        "rank_intervals": "families",
        "sample_size": "planning",
        "score": "comparison",
    }
    __all__ = [*_MODULE_OF]

    def __getattr__(name: str) -> Any:
        if name in _MODULE_OF:
            return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
