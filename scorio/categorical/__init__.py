"""Rubric-aware evaluation: from signals of attempts through categories to Bayes@N.

What is known about an attempt (:class:`Signals`) is turned into a category by a :class:`Schema`, one of the
paper's twelve (:func:`get_schema`) or a user's own; weights say what a category is worth, and
:func:`evaluate` returns the outcome matrix with its Bayes@N. :class:`Thresholds` freezes the quantiles
a schema cuts at, so that a run that adds attempts judges all of them alike.
"""

from scorio.categorical.derive import (
    TOKEN_RATIO_UNIT,
    bits_per_token,
    repeated_pattern,
    token_ratio,
    verifier_probabilities,
)
from scorio.categorical.evaluation import Evaluation, ModelEvaluations, evaluate, evaluate_models
from scorio.categorical.io import BINARY_SIGNALS, SIGNAL_TO_COLUMN, FileResult, load_records
from scorio.categorical.medians import evaluate_all, evaluate_schema
from scorio.categorical.schema import Category, Schema
from scorio.categorical.schemas import get_schema, schema_names
from scorio.categorical.signals import BASE_SIGNALS, Signals
from scorio.categorical.thresholds import Threshold, ThresholdRule, Thresholds
from scorio.categorical.variables import RUBRIC_VARIABLES, THRESHOLD_RULES

__all__ = [
    "BASE_SIGNALS",
    "BINARY_SIGNALS",
    "RUBRIC_VARIABLES",
    "SIGNAL_TO_COLUMN",
    "THRESHOLD_RULES",
    "TOKEN_RATIO_UNIT",
    "Category",
    "Evaluation",
    "FileResult",
    "ModelEvaluations",
    "Schema",
    "Signals",
    "Threshold",
    "ThresholdRule",
    "Thresholds",
    "bits_per_token",
    "evaluate",
    "evaluate_all",
    "evaluate_models",
    "evaluate_schema",
    "get_schema",
    "load_records",
    "repeated_pattern",
    "schema_names",
    "token_ratio",
    "verifier_probabilities",
]
