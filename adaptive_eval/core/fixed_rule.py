"""The rule of results whose number of trials was fixed beforehand: nothing is called on the way."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adaptive_eval.trial import FIXED
from scorio.arrays import Bools, Floats
from scorio.sequential.parts import Anytime, ContrastBlock


@dataclass(frozen=True)
class FixedRule(Anytime):
    """Calls nothing; :class:`adaptive_eval.core.one_look.OneLook` gives the verdicts at the end."""

    name: ClassVar[str] = FIXED
    promise: ClassVar[str] = "the error level holds for one look at a number of trials fixed in advance"

    def statistic(self, block: ContrastBlock, complete: Bools) -> Floats:
        """Return no evidence."""
        return np.full(block.difference.shape, -np.inf)

    def tie_evidence(self, block: ContrastBlock) -> Floats:
        """Return no evidence."""
        return np.full(block.difference.shape, -np.inf)
