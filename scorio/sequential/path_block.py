"""What a pair reads of a model: its running moments at each step of a piece of its trial sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from scorio._arrays import Bools, Floats


@dataclass(frozen=True, slots=True)
class PathBlock:
    """Per-step quantities of some models; every array has shape (models, steps).

    `before` and `after` are the running mean score of the step's question before and after the step, not a
    number while the model has no answer to it. `w`, `u` are means over seen questions, `g`, `r`
    the sums of section 5 of the statistics; `seen` counts seen questions, `total` and `square` are the
    sums of the question means and of their squares. Of the questions that have answers, `lost` sums the
    shares of their trials that have none, and `lost_score` these shares times the question means.
    """

    before: Floats
    after: Floats
    w: Floats
    u: Floats
    g: Floats
    r: Floats
    seen: Floats
    total: Floats
    square: Floats
    lost: Floats
    lost_score: Floats

    @property
    def fresh(self) -> Bools:
        """Whether the model had no answer to the step's question before."""
        return np.isnan(self.before)

    @property
    def repeats(self) -> Floats:
        """Repeated trials with an answer; 0 where answers have no noise."""
        return np.where(np.isinf(self.r), 0.0, self.r)

    @property
    def trials(self) -> Floats:
        """Trials with an answer; infinity where answers have no noise."""
        return self.seen + self.r

    @property
    def mean(self) -> Floats:
        """Mean score over seen questions."""
        return self.total / np.maximum(self.seen, 1.0)

    def whole(self, asked: ArrayLike) -> bool:
        """Return whether each of the `asked` questions was answered, and no answer is lost."""
        return bool((self.seen >= np.asarray(asked)).all()) and not self.lost.any()

    def bounds(self, asked: ArrayLike) -> tuple[Floats, Floats]:
        """Return the least and the greatest mean score if lost answers were known.

        Each of the `asked` questions weighs the same, and each lost answer to it may be anything from 0 to 1.
        """
        number, mean = np.maximum(np.maximum(asked, self.seen), 1.0), self.mean
        unanswered = number - self.seen
        fall = self.lost_score + unanswered * mean
        rise = self.lost - self.lost_score + unanswered * (1.0 - mean)
        return mean - fall / number, mean + rise / number
