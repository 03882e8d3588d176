"""Model states: what each model has been asked, what is in flight, and why one was given up."""

from __future__ import annotations

from dataclasses import dataclass, field

from adaptive_eval.core.account import Amount

__all__ = ["Flight", "ModelStates"]


@dataclass(slots=True)
class Flight:
    """A trial in flight: what the schedule asks at its step, and what it may cost; never changed.

    It is not frozen, because there is one for every trial, and a frozen one takes thrice as long to make.
    """

    task: int
    question: int
    reservation: Amount


@dataclass
class ModelStates:
    """Bookkeeping per model; every list has one entry a model.

    Attributes
    ----------
    issued : list of int
        Steps issued, in flight included.
    flying : list of int
        Trials in flight.
    missing, after_stop : list of int
        Trials without an answer; trials told after the session had stopped.
    retired : list of bool
        Models that no needed contrast asks for.
    stopped : dict of int to str
        Models given up, with the reason.
    spent : set of int
        Models whose own budget has ended: of those given up, and of those that nothing asks for any more.
    skipped : list of int
        Steps counted as issued that needed no trial.
    gaps : list of list of int
        Steps to be issued again, because they were launched but never finished; the first one last.
    in_flight : dict of (int, int) to Flight
        Trials in flight, by model and step.
    """

    issued: list[int]
    flying: list[int]
    missing: list[int]
    after_stop: list[int]
    retired: list[bool]
    skipped: list[int]
    gaps: list[list[int]]
    stopped: dict[int, str] = field(default_factory=dict)
    spent: set[int] = field(default_factory=set)
    in_flight: dict[tuple[int, int], Flight] = field(default_factory=dict)

    @classmethod
    def of(cls, models: int) -> ModelStates:
        """Return the states of `models` models that have not been asked anything."""
        return cls(
            issued=[0] * models,
            flying=[0] * models,
            missing=[0] * models,
            after_stop=[0] * models,
            retired=[False] * models,
            skipped=[0] * models,
            gaps=[[] for _ in range(models)],
        )

    def launch(self, model: int, step: int, flight: Flight) -> None:
        """Count a trial as in flight."""
        self.in_flight[model, step] = flight
        self.flying[model] += 1
        if step >= self.issued[model]:
            self.issued[model] = step + 1

    def land(self, model: int, step: int) -> Flight | None:
        """Count a trial as told; return None if it was not in flight."""
        flight = self.in_flight.pop((model, step), None)
        if flight is not None:
            self.flying[model] -= 1
        return flight

    def give_back(self, model: int, step: int) -> None:
        """Note a step that was launched and not finished: it is to be issued again."""
        self.gaps[model].append(step)
        self.gaps[model].sort(reverse=True)
