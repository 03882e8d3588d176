"""The parts from which a controller is built: everything that adaptive-eval takes from this package.

A :class:`Board` reads :class:`Answers` along a :class:`RunSequence`, by a :class:`Rule`, and calls
:class:`Contrasts` at :class:`Levels`. The formulas are public, so that views and plans show what decides.
"""

from scorio.sequential.answers import FINISHED, Answers
from scorio.sequential.boards import Board, Call, Known
from scorio.sequential.cells import Cells
from scorio.sequential.clusters import cluster_spread
from scorio.sequential.contrasts import (
    SINGLE,
    TRUST,
    ContrastBlock,
    Contrasts,
    Target,
    contrast_variance,
    score_block,
)
from scorio.sequential.drift import DriftEvidence, rank_among
from scorio.sequential.evidence import (
    FLOOR,
    GUARD,
    MIN_QUESTIONS,
    confidence_radius,
    log_evidence,
    log_evidence_above,
    log_tie_evidence,
)
from scorio.sequential.families import TopSet, family, rank_intervals
from scorio.sequential.fixed import fixed_passes
from scorio.sequential.fold import BETTER, OPEN, STEP_BITS, TIE, WORSE, Event, Fold, Levels
from scorio.sequential.moments import DROPPED, KNOWN, MISSING, Prior, fit_prior, unit_scores
from scorio.sequential.outlook import (
    BoardScores,
    Calls,
    OpenContrasts,
    covariance_of,
    noise_of,
    simulate_calls,
)
from scorio.sequential.rules import Anytime, Bools, Exact, Floats, Rule, ZScore
from scorio.sequential.trial_sequence import RunSequence, TrialSequence
