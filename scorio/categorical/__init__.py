"""Rubric-aware evaluation: from signals of attempts through categories to Bayes@N.

What is known about an attempt (:class:`Signals`) is turned into a category by a :class:`Schema`, one of the
paper's twelve (:func:`get_schema`) or a user's own; weights say what a category is worth, and
:func:`evaluate` returns the outcome matrix with its Bayes@N. :class:`Thresholds` freezes the quantiles
a schema cuts at, so that a run that adds attempts judges all of them alike.
"""

from typing import TYPE_CHECKING

from scorio._names import elsewhere
from scorio.categorical.evaluation import JudgedAttempts, evaluate
from scorio.categorical.grades import evaluate_all, evaluate_schema
from scorio.categorical.records import BINARY_SIGNALS, SIGNAL_TO_COLUMN, FileResult, load_records
from scorio.categorical.schema import (
    RUBRIC_VARIABLES,
    THRESHOLD_RULES,
    Category,
    Schema,
    ThresholdRule,
    get_schema,
    schema_names,
)
from scorio.categorical.signals import (
    BASE_SIGNALS,
    TOKEN_RATIO_UNIT,
    Signals,
    bits_per_token,
    repeated_pattern,
    token_ratio,
    verifier_probabilities,
)
from scorio.categorical.thresholds import Thresholds

__all__ = [
    "BASE_SIGNALS",
    "BINARY_SIGNALS",
    "RUBRIC_VARIABLES",
    "SIGNAL_TO_COLUMN",
    "THRESHOLD_RULES",
    "TOKEN_RATIO_UNIT",
    "Category",
    "FileResult",
    "JudgedAttempts",
    "Schema",
    "Signals",
    "ThresholdRule",
    "Thresholds",
    "bits_per_token",
    "evaluate",
    "evaluate_all",
    "evaluate_schema",
    "get_schema",
    "load_records",
    "repeated_pattern",
    "schema_names",
    "token_ratio",
    "verifier_probabilities",
]

if not TYPE_CHECKING:
    __getattr__ = elsewhere(__name__)
