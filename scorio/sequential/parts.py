"""The parts from which a controller is built: everything that adaptive-eval takes from this package.

A :class:`Board` reads :class:`Answers` along a :class:`RunSequence`, by a :class:`Rule`, and calls
:class:`Contrasts` at :class:`Levels`. The formulas are public, so that views and plans show what decides.
"""

from typing import TYPE_CHECKING

from scorio._names import lazy

if TYPE_CHECKING:
    from scorio.sequential.answer_bets import has_answer_bets as has_answer_bets
    from scorio.sequential.answers import Answers as Answers
    from scorio.sequential.boards import Call as Call
    from scorio.sequential.boards import ContrastStates as ContrastStates
    from scorio.sequential.bounds import Sample as Sample
    from scorio.sequential.cells import Cells as Cells
    from scorio.sequential.contrasts import ContrastBlock as ContrastBlock
    from scorio.sequential.contrasts import Contrasts as Contrasts
    from scorio.sequential.drift import DriftEvidence as DriftEvidence
    from scorio.sequential.families import TopSet as TopSet
    from scorio.sequential.families import family as family
    from scorio.sequential.fold import Fold as Fold
    from scorio.sequential.fold import Levels as Levels
    from scorio.sequential.fold import VerdictCode as VerdictCode
    from scorio.sequential.foresight import Foresight as Foresight
    from scorio.sequential.labels import expected_log_e as expected_log_e
    from scorio.sequential.moments import Mark as Mark
    from scorio.sequential.moments import fit_prior as fit_prior
    from scorio.sequential.moments import shares as shares
    from scorio.sequential.moments import unit_scores as unit_scores
    from scorio.sequential.one_look import Looks as Looks
    from scorio.sequential.one_look import look_at_difference as look_at_difference
    from scorio.sequential.one_look import look_at_score as look_at_score
    from scorio.sequential.outlook import QUANTILES as QUANTILES
    from scorio.sequential.outlook import simulate_board as simulate_board
    from scorio.sequential.repeated import RepeatedScores as RepeatedScores
    from scorio.sequential.rounds import trial_weights as trial_weights
    from scorio.sequential.rules import Anytime as Anytime
    from scorio.sequential.rules import Rule as Rule
    from scorio.sequential.rules import stopping_rule as stopping_rule
    from scorio.sequential.trial_sequence import RunSequence as RunSequence

_HOMES = {
    "scorio.sequential.answer_bets": ("has_answer_bets",),
    "scorio.sequential.answers": ("Answers",),
    "scorio.sequential.boards": (
        "Call",
        "ContrastStates",
    ),
    "scorio.sequential.bounds": ("Sample",),
    "scorio.sequential.cells": ("Cells",),
    "scorio.sequential.contrasts": (
        "ContrastBlock",
        "Contrasts",
    ),
    "scorio.sequential.drift": ("DriftEvidence",),
    "scorio.sequential.repeated": ("RepeatedScores",),
    "scorio.sequential.families": (
        "TopSet",
        "family",
    ),
    "scorio.sequential.foresight": ("Foresight",),
    "scorio.sequential.fold": (
        "VerdictCode",
        "Fold",
        "Levels",
    ),
    "scorio.sequential.labels": ("expected_log_e",),
    "scorio.sequential.moments": (
        "Mark",
        "fit_prior",
        "shares",
        "unit_scores",
    ),
    "scorio.sequential.one_look": (
        "Looks",
        "look_at_difference",
        "look_at_score",
    ),
    "scorio.sequential.outlook": (
        "QUANTILES",
        "simulate_board",
    ),
    "scorio.sequential.rounds": ("trial_weights",),
    "scorio.sequential.rules": (
        "stopping_rule",
        "Anytime",
        "Rule",
    ),
    "scorio.sequential.trial_sequence": ("RunSequence",),
}
"""Where each name is defined: it is imported when it is asked for."""

__all__ = [name for names in _HOMES.values() for name in names]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy(__name__, _HOMES)
