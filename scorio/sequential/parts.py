"""The parts from which a controller is built: everything that adaptive-eval takes from this package.

A :class:`Board` reads :class:`Answers` along a :class:`RunSequence`, by a :class:`Rule`, and calls
:class:`Contrasts` at :class:`Levels`. The formulas are public, so that views and plans show what decides.
"""

from scorio._names import lazy

__all__, __getattr__, __dir__ = lazy(__name__, __file__)
