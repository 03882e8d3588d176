"""Overdue answers: those that are awaited for far longer than any other of their model took.

They count when they come, or as lost once the time limit is reached. Until then the session plans without
them (:meth:`adaptive_eval.core.session.Session.overdue`).
"""

from collections.abc import Mapping

from adaptive_eval.trial import TrialKey

TIMES = 3.0
"""An answer is late once it is awaited for so many times as long as the longest one took."""
LEAST = 5.0
"""Seconds for which it is awaited at least."""
ANSWERS = 16
"""Answers that have come for each late one, at least. Where more are late, the model or server is slow."""


class AnswerTimes:
    """How long the trials of one model took.

    Examples
    --------
    >>> times = AnswerTimes()
    >>> for _ in range(40):
    ...     times.took(3.0)
    >>> times.overdue({TrialKey("oak", 37): 9.5, TrialKey("oak", 52): 2.0})
    [TrialKey(model='oak', index=37)]
    """

    def __init__(self) -> None:
        self.answers = 0
        self.longest = 0.0

    def took(self, seconds: float) -> None:
        """Count an answer that took so long."""
        self.answers += 1
        self.longest = max(self.longest, seconds)

    def overdue(self, awaited: Mapping[TrialKey, float]) -> list[TrialKey]:
        """Return the overdue ones of trials that have been awaited for so many seconds."""
        longest = max(TIMES * self.longest, LEAST)
        found = [key for key, seconds in awaited.items() if seconds > longest]
        if ANSWERS * len(found) > self.answers:
            return []
        return found
