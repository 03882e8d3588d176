"""How long a run, its tasks and its models may take."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from adaptive_eval.core.results import BudgetLine

__all__ = ["Deadlines"]


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Limits of running time, in seconds, earlier sittings included.

    Parameters
    ----------
    run : float, optional
        Of the run.
    tasks : mapping of str to float
        Of single tasks. Every model walks all tasks side by side, so the first of these ends the run too.
    models : mapping of str to float
        Of single models, which stop at it; the run goes on with the others.

    Examples
    --------
    >>> deadlines = Deadlines(run=3600.0, models={"slow": 600.0})
    >>> deadlines.remaining(60.0, {"slow", "fast"}), deadlines.remaining(60.0, {"fast"})
    (540.0, 3540.0)
    >>> deadlines.over(600.0), deadlines.models_over(600.0)
    (None, ['slow'])
    """

    run: float | None = None
    tasks: Mapping[str, float] = field(default_factory=dict)
    models: Mapping[str, float] = field(default_factory=dict)

    def remaining(self, elapsed: float, models: Collection[str]) -> float:
        """Return the seconds until the next of them that concerns the run or one of `models`; or infinity."""
        limits = [limit for limit, _ in self._of_the_run()]
        limits += [limit for model, limit in self.models.items() if model in models]
        return min(limits, default=math.inf) - elapsed

    def over(self, elapsed: float) -> str | None:
        """Say which limit ends the run by now; None where none does."""
        for limit, words in self._of_the_run():
            if elapsed >= limit:
                return f"the wall clock limit of {limit:g} s{words} is reached"
        return None

    def models_over(self, elapsed: float) -> list[str]:
        """Return the models whose time is up."""
        return [model for model, limit in self.models.items() if elapsed >= limit]

    def lines(self, elapsed: float) -> Sequence[BudgetLine]:
        """Return what is used of each of them."""
        time = [] if self.run is None else [BudgetLine("wall_clock", elapsed, 0.0, self.run)]
        for task, limit in self.tasks.items():
            time.append(BudgetLine("wall_clock", elapsed, 0.0, limit, "task", task))
        for model, limit in self.models.items():
            time.append(BudgetLine("wall_clock", min(elapsed, limit), 0.0, limit, "model", model))
        return time

    def _of_the_run(self) -> list[tuple[float, str]]:
        own = [] if self.run is None else [(self.run, "")]
        return sorted([*own, *((limit, f" of task {task!r}") for task, limit in self.tasks.items())])
