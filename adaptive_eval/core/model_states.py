"""Model states: the trials issued and in flight of each model, and why it was dropped."""

from __future__ import annotations

from dataclasses import dataclass, field

from adaptive_eval.core.account import Amount


@dataclass(slots=True)
class InFlightTrial:
    """A trial in flight: its question and its worst-case cost; never changed.

    It is not frozen, because a frozen instance takes three times as long to make, and every trial needs one.
    """

    task: int
    question: int
    reservation: Amount


@dataclass
class ModelStates:
    """Bookkeeping per model; every list has one entry for each model."""

    issued: list[int]  # indices issued, in flight included
    in_flight: list[int]  # trials in flight
    # missing trials, those of them that are copies; trials completed after the session had stopped
    missing: list[int]
    copies: list[int]
    after_stop: list[int]
    retired: list[bool]  # models that no needed contrast asks for
    skipped: list[int]  # indices counted as issued that needed no trial
    # indices to be issued again, because they were launched but never finished; the first one last
    gaps: list[list[int]]
    stopped: dict[int, str] = field(default_factory=dict)  # dropped models, with the reason
    # models whose own budget has ended, dropped or no longer needed
    spent: set[int] = field(default_factory=set)
    # trials in flight, by model and index
    launched: dict[tuple[int, int], InFlightTrial] = field(default_factory=dict)

    @classmethod
    def of(cls, models: int) -> ModelStates:
        """Return the states of `models` models without trials."""
        return cls(
            issued=[0] * models,
            in_flight=[0] * models,
            missing=[0] * models,
            copies=[0] * models,
            after_stop=[0] * models,
            retired=[False] * models,
            skipped=[0] * models,
            gaps=[[] for _ in range(models)],
        )

    def launch(self, model: int, index: int, trial: InFlightTrial) -> None:
        """Count a trial as in flight."""
        self.launched[model, index] = trial
        self.in_flight[model] += 1
        if index >= self.issued[model]:
            self.issued[model] = index + 1

    def complete(self, model: int, index: int) -> InFlightTrial | None:
        """Count a trial as completed; return None if it was not in flight."""
        trial = self.launched.pop((model, index), None)
        if trial is not None:
            self.in_flight[model] -= 1
        return trial

    def reissue(self, model: int, index: int) -> None:
        """Note an index that was launched and not finished; it is issued again."""
        self.gaps[model].append(index)
        self.gaps[model].sort(reverse=True)
