"""The decision core in virtual time: decisions, costs and errors of a run before it is paid for.

:func:`simulate` runs the same session many times against answers whose truth is known: biased coins, given
probabilities, or recorded outcomes in shuffled order. Nothing is sent and nothing sleeps.
:mod:`~adaptive_eval.simulate.plan_forecast` tabulates what a config would cost per policy and margin,
:mod:`~adaptive_eval.simulate.analysis` ranks outcomes that are already there.
"""

from adaptive_eval.simulate.coins import AnswerSource, BiasedCoins, GivenChances
from adaptive_eval.simulate.drivers import Latency
from adaptive_eval.simulate.many_runs import simulate
from adaptive_eval.simulate.recorded import RecordedAnswers, RecordedOutcomes
from adaptive_eval.simulate.result import Rate, SimulationResult

__all__ = [
    "AnswerSource",
    "BiasedCoins",
    "GivenChances",
    "Latency",
    "Rate",
    "RecordedAnswers",
    "RecordedOutcomes",
    "SimulationResult",
    "simulate",
]
