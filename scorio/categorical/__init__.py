"""Rubric-aware evaluation: from signals of attempts through categories to Bayes@N.

What is known about an attempt (:class:`Signals`) is turned into a category by a :class:`Schema`, one of the
paper's twelve (:func:`get_schema`) or a user's own; weights say what a category is worth, and
:func:`evaluate` returns the outcome matrix with its Bayes@N. :class:`Thresholds` freezes the quantiles
a schema cuts at, so that a run that adds attempts judges all of them alike.
"""

from scorio._names import lazy

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
