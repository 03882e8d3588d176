"""Imported by the processes that compare expressions: loads math-verify and its grammar once for all."""

from adaptive_eval.scoring.math import is_equal

is_equal("x^2", "x + 1")
