"""Issuing: which trials run next, within slots, budgets, caps and the trial sequence; the seed of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from math import inf

import numpy as np

from adaptive_eval.core.allocate import AllocationView, RoundRobin, make_policy
from adaptive_eval.core.board import SessionContrasts
from adaptive_eval.core.budget import NOTHING, Account, Budget, InFlightTrial
from adaptive_eval.core.foresight import GROWTH, SLOW_START, Drain, fewer_of
from adaptive_eval.core.model_states import ModelStates
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import SessionError
from adaptive_eval.trial import TrialKey, TrialRequest
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential.parts import Answers

BEYOND = 2.0
"""With `spend: time`, trials for each that open pairs are forecast to need: forecasts err by so much."""

_SEEDS = 2**31
_REPEATS = 2**16


class TrialSeeds:
    """The sampling seeds of a session's trials, in [0, 2**31): a hash of the names, plus the repeat.

    The repeats of a question have neighbouring seeds, because vLLM gives answer i of a request the seed + i:
    a request for the next n repeats of a question gives each repeat the seed that it would have alone. So no
    two trials of a question share a seed, however they are grouped into requests.
    """

    def __init__(self, spec: SessionSpec) -> None:
        self._begun = []
        for model in spec.models:
            names = [f"{spec.seed}\x1f{model.name}\x1f{task.name}\x1f" for task in spec.tasks]
            self._begun.append([blake2b(_bytes(name), digest_size=8) for name in names])

    def seed(self, model: int, task: int, question: str, repeat: int) -> int:
        """Return the seed of a trial, given the numbers of its model and task."""
        whole = self._begun[model][task].copy()
        whole.update(_bytes(question))
        first = int.from_bytes(whole.digest(), "big") % (_SEEDS - _REPEATS)
        return (first + repeat) % _SEEDS


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class _OpenContrasts:
    """What a policy sees of some open contrasts, and of the models in them."""

    version: int
    first: Ints
    second: Ints
    active: Bools
    most: list[float]  # steps up to which each model is asked

    @classmethod
    def select(
        cls, comparison: SessionContrasts, wanted: Bools, needs: Floats | None = None, beyond: float = 1.0
    ) -> _OpenContrasts:
        """Return those that are `wanted`, with the steps up to which they need their models."""
        goal = comparison.contrasts
        first, second = goal.first[wanted], goal.second[wanted]
        active = np.full(len(comparison.spec.names), not goal.stops)
        active[first] = True
        active[second[second >= 0]] = True
        until = np.full(active.size, np.inf)
        if needs is not None:
            until = np.zeros(active.size + 1)
            for side in (first, second):
                np.maximum.at(until, side, needs[wanted])
            until = until[: active.size]
        return cls(comparison.version, first, second, active, (beyond * until).tolist())


class _Wants:
    """The trials that open contrasts want, kept from one ask to the next while nothing changes them."""

    def __init__(self, comparison: SessionContrasts) -> None:
        self._comparison = comparison
        self._beyond = BEYOND if comparison.spec.spend == "time" else 1.0
        self._drain = Drain(comparison)
        self._open = _OpenContrasts.select(comparison, comparison.fold.needed)
        self._needs: Floats | None = None  # steps up to which contrasts need their models

    def contrasts(self, issued: list[int]) -> _OpenContrasts:
        """Return the open contrasts without those that need no trial beyond what is issued."""
        comparison, goal = self._comparison, self._comparison.contrasts
        needs = self._drain.needs(issued) if goal.stops else None
        if self._open.version != comparison.version or not _same(needs, self._needs):
            left = comparison.fold.needed
            if needs is not None:
                left = left & (self._beyond * needs > fewer_of(issued, goal.first, goal.partner))
            self._open = _OpenContrasts.select(comparison, left, needs, self._beyond)
            self._needs = needs
        return self._open


class Issuer:
    """Turns free slots into trials."""

    def __init__(self, comparison: SessionContrasts, budget: Budget, states: ModelStates) -> None:
        spec = self.spec = comparison.spec
        self.board = comparison.answers
        self.comparison = comparison
        self.budget = budget
        self.states = states
        self._policy = make_policy(spec.allocation.models)
        passes = spec.stopping.max_passes
        self._cap = inf if passes is None else passes * spec.questions
        self._wants = _Wants(comparison)
        self._limited = {number for number, model in enumerate(spec.models) if model.budget.limited}
        self._seeds = TrialSeeds(spec)
        self._greedy = spec.greedy

    def issue(self, capacity: int | Mapping[int, int]) -> list[TrialRequest]:
        """Issue at most `capacity` trials: in all, or per model.

        Consecutive trials of one question are issued together or not at all, because one request can ask for
        all of them.
        """
        free = self._free(capacity)
        total = capacity if isinstance(capacity, int) else sum(free.values())
        requests: list[TrialRequest] = []
        if not self._refill_gaps(requests, free, total):
            return requests
        if self.spec.samples_per_prompt > 1 and not isinstance(capacity, int):
            free = {model: self._whole_runs(model, slots) for model, slots in free.items()}
        ahead: Counter[int] = Counter()
        if len(requests) >= total:
            return requests
        for model in self._policy.choose(self._view(free), free):
            if ahead[model]:
                ahead[model] -= 1
                continue
            together = 1 if isinstance(capacity, int) else min(self._run(model), free[model])
            free[model] -= together
            ahead[model] = together - 1
            refusing = self._issue_next(model, together, requests)
            if len(requests) >= total or (refusing is not None and refusing.scope != "model"):
                break
        return requests

    def _issue_next(self, model: int, trials: int, requests: list[TrialRequest]) -> Account | None:
        """Issue a model's next trials; return the account that cannot afford one of them, if any."""
        for _ in range(trials):
            index = self._next_index(model)
            if index is None:
                return None
            if index != self.states.issued[model]:
                self.states.skipped[model] += index - self.states.issued[model]
                self.states.issued[model] = index
            request = self._issue(model, index)
            if not isinstance(request, TrialRequest):
                return request
            requests.append(request)
        return None

    def _next_index(self, model: int) -> int | None:
        """Return the next index at which a model needs a trial; None if it needs none for now."""
        states, next_index = self.states, self.board.determinism.next_index
        if model not in self.board.determinism.claimed and self.board.run_sequence.endless:
            return states.issued[model]
        waiting = states.in_flight[model] > 0
        while True:
            index = next_index(model, states.issued[model], waiting=waiting)
            if index is None or self.is_laid_out(model, index):
                return index
            if waiting or not self._lay_out_more(model):
                return None

    def _lay_out_more(self, model: int) -> bool:
        """Complete what needs no trial until a further round is laid out; return False if none is."""
        laid_out, cap = self.board.run_sequence.laid_out, self._cap
        end = laid_out(model)
        while laid_out(model) == end and self.board.complete[model] < cap:
            if not self.board.fill_next(model):
                return False
            self.board.absorb()
        if laid_out(model) == end:
            issued = self.states.issued[model]
            self.states.issued[model] = max(int(cap), issued)
            self.states.skipped[model] += self.states.issued[model] - issued
        return laid_out(model) > end

    def _run(self, model: int) -> int:
        """Return how many of a model's next trials ask the same question."""
        if self.spec.samples_per_prompt == 1:
            return 1
        index, at = self.states.issued[model], self.board.run_sequence.at
        most = int(min(self.spec.samples_per_prompt, self.board.run_sequence.laid_out(model) - index))
        return next((k for k in range(1, most) if at(index + k, model) != at(index, model)), most)

    def _whole_runs(self, model: int, slots: int) -> int:
        """Return how many of `slots` trials to issue so that no run of one question is cut in two.

        A run that does not fit waits for more slots, unless no trial of the model is in flight.
        """
        # A run shares one request, which bills its prompt once; both halves of a cut run would pay for it.
        # Only a trial that ends frees slots, so a model with none in flight must not wait.
        run_sequence, most = self.board.run_sequence, self.spec.samples_per_prompt
        index = self.states.issued[model]
        at = run_sequence.at
        end = run_sequence.laid_out(model)
        for trials in range(slots, max(slots - most, 0), -1):
            if index + trials >= end or at(index + trials - 1, model) != at(index + trials, model):
                return trials
        if slots >= most or not self.states.in_flight[model]:
            return slots
        return 0

    def _free(self, capacity: int | Mapping[int, int]) -> dict[int, int]:
        states, run_sequence = self.states, self.board.run_sequence
        if isinstance(capacity, int):
            free = dict.fromkeys(range(len(states.issued)), capacity)
        else:
            free = dict(capacity)
        if min(free.values(), default=0) < 0:
            raise SessionError(f"capacity must not be negative, got {capacity!r}")
        if not run_sequence.endless:
            ends = ((model, min(self._begun(model) + slots, self._cap)) for model, slots in free.items())
            if any(end > run_sequence.laid_out(model) for model, end in ends):
                self.board.absorb()  # new outcomes may lay out a further round
        for model, slots in free.items():
            free[model] = int(min(slots, self._most(model))) if slots else 0
        determinism = self.board.determinism
        for model in determinism.claimed:
            if free.get(model) and self._next_index(model) is None:
                free[model] = 0
        without = states.stopped.keys() | states.spent
        without |= {model for model in self._limited if self._own_budget_refuses(model)}
        without |= {model for model in determinism.claimed if determinism.done(model)}
        for model in without & free.keys():
            del free[model]
        return free

    def _begun(self, model: int) -> int:
        """Return the trials issued of a model, without the gaps, which are filled first."""
        return self.states.issued[model] - len(self.states.gaps[model])

    def _most(self, model: int) -> float:
        """Return how many trials a model may be asked at most now, whatever is free."""
        issued, laid_out = self.states.issued[model], self.board.run_sequence.laid_out(model)
        most = min(self._cap, laid_out) - self._begun(model)
        if self.comparison.contrasts.stops and self.spec.spend != "time":
            in_flight = self.states.in_flight[model]
            most = min(most, SLOW_START + GROWTH * (issued - in_flight) - in_flight)
        if model in self._greedy:
            # A question is asked again when its answer before is in: one batch agrees with itself.
            further = self.board.complete[model] + self.spec.questions - issued
            most = min(most, len(self.states.gaps[model]) + max(further, 0))
        return max(most, 0)  # less where what needs no trial led beyond the cap

    def _own_budget_refuses(self, model: int) -> bool:
        """Return whether a model cannot afford its next trial now."""
        refusing = self._refusing(model)
        return refusing is not None and refusing.scope == "model"

    def _refill_gaps(self, requests: list[TrialRequest], free: dict[int, int], total: int) -> bool:
        """Issue trials again that were launched but not finished; False if the run cannot afford one."""
        if not any(self.states.gaps):
            return True
        for model, gaps in enumerate(self.states.gaps):
            while gaps and free.get(model, 0) > 0 and len(requests) < total:
                request = self._issue(model, gaps[-1])
                if not isinstance(request, TrialRequest):
                    if request.scope != "model":
                        return False
                    free[model] = 0
                    break
                gaps.pop()
                free[model] -= 1
                requests.append(request)
        return True

    def _issue(self, model: int, index: int) -> TrialRequest | Account:
        """Return the trial at an index as issued, or the account that cannot afford it."""
        run_sequence = self.board.run_sequence
        task, question = run_sequence.at(index, model)
        repeat = run_sequence.repeat(index, model)
        reservation = self.budget.worst_case(model, task, question)
        refusing = self.budget.refusing(model, task, reservation)
        if refusing is not None:
            return refusing
        self.budget.reserve(model, task, reservation)
        self.states.launch(model, index, InFlightTrial(task, question, reservation))
        of_task = self.spec.tasks[task]
        name = of_task.questions[question]
        seed = self._seeds.seed(model, task, name, repeat)
        return TrialRequest(TrialKey(self.spec.models[model].name, index), of_task.name, name, repeat, seed)

    def _view(self, free: Mapping[int, int]) -> AllocationView:
        states = self.states
        issued = self._issued()
        for model in self.board.determinism.claimed:
            if self.board.determinism.done(model):
                issued[model] = Answers.FINISHED  # no trial waits for it
        window = states.in_flight + [0] * len(self.spec.references)
        for model, slots in free.items():
            if slots > 0:
                window[model] += slots
        wanted = self._wants.contrasts(issued)
        askable = np.zeros_like(wanted.active)
        askable[list(free)] = True
        return AllocationView(
            issued=issued,
            window=window,
            active=wanted.active & askable,
            askable=askable,
            first=wanted.first,
            second=wanted.second,
            most=wanted.most,
            scores=self._scores,
            cost=self.budget.mean_costs,
            seed=(self.spec.seed, self.budget.issued),
        )

    def _issued(self) -> list[int]:
        """Return the trials issued of each model; of references all are."""
        return self.states.issued + [Answers.FINISHED] * len(self.spec.references)

    def waiting(self) -> dict[int, list[int]]:
        """Return the needed models that wait for others, each with the models that hold it back.

        Such a model has nothing in flight and would be asked nothing if it had a free slot: the models of its
        open contrasts are behind it, or its calls are certain but are made in the common prefix only.
        """
        goal, open_now = self.comparison.contrasts, self.comparison.fold.needed
        complete, members = self.board.complete, self.comparison.members
        if not goal.stops or not isinstance(self._policy, RoundRobin):
            return {}
        idle = [
            model for model in members if not self.states.in_flight[model] and not self.states.gaps[model]
        ]
        idle = [model for model in idle if model not in self.states.stopped and self._refusing(model) is None]
        if not idle:
            return {}
        free = self._free(dict.fromkeys(idle, 1))
        asked = set(self._policy.choose(self._view(free), free))
        found, hindmost = {}, min(complete[model] for model in members)
        for model in idle:
            theirs = open_now & ((goal.first == model) | (goal.second == model))
            sides = {*goal.first[theirs].tolist(), *goal.second[theirs].tolist()}
            partners = [other for other in members if other in sides and other != model]
            reached = max((complete[other] for other in partners), default=hindmost)
            if model not in asked and reached < complete[model]:
                found[model] = [other for other in partners or members if complete[other] == reached]
        return found

    def _scores(self) -> tuple[Floats, Floats]:
        scores = self.board.scores()
        return scores.difference[:, 0], scores.variance[:, 0]

    def is_laid_out(self, model: int, index: int) -> bool:
        """Return whether a model's `index` is known already; rounds follow from the outcomes before them."""
        return index < self.board.run_sequence.laid_out(model)

    def capped(self) -> bool:
        """Return whether every model that may still be asked has reached its cap."""
        stops = self.comparison.contrasts.stops
        models = self.comparison.members if stops else range(len(self.states.issued))
        done, issued = self.board.determinism.done, self.states.issued
        asked = [model for model in models if model not in self.states.stopped]
        if self._cap == inf and not self.board.determinism.claimed:
            return False
        return all(done(model) or issued[model] >= self._cap for model in asked)

    def exhausted(self) -> Account | None:
        """Return the account, if any, that prevents the next trial of a model that may still be asked."""
        asked = (model for model in range(len(self.states.issued)) if model not in self.states.stopped)
        return next(filter(None, map(self._refusing, asked)), None)

    def spent(self) -> Iterator[tuple[int, Account]]:
        """Yield the models that still need trials but whose own budget is exhausted.

        While a trial of a model is in flight, the unused part of its reservation may still allow another one.
        """
        if not self._limited:
            return
        comparison, goal = self.comparison, self.comparison.contrasts
        sides = np.concatenate([goal.first[comparison.fold.needed], goal.second[comparison.fold.needed]])
        for model in sorted(self._limited):
            if model in self.states.stopped or self.states.in_flight[model]:
                continue
            if (not goal.stops or (sides == model).any()) and self._own_budget_refuses(model):
                yield model, self.budget.models[model]

    def _refusing(self, model: int) -> Account | None:
        """Return the account that cannot afford a model's next trial, if any."""
        gaps = self.states.gaps[model]
        index = gaps[-1] if gaps else self._next_index(model)
        if index is None or index >= self._cap or not self.is_laid_out(model, index):
            return None
        task, question = self.board.run_sequence.at(index, model)
        return self.budget.refusing(model, task, self.budget.worst_case(model, task, question))

    def adopt(self, model: int, index: int) -> None:
        """Count a stored trial as issued; nothing is reserved for it, because it has ended."""
        if not self.is_laid_out(model, index):
            name = self.board.spec.names[model]
            raise SessionError(f"trial {index} of model {name!r} has no question in the course of the run")
        task, question = self.board.run_sequence.at(index, model)
        self.budget.reserve(model, task, NOTHING)
        self.states.launch(model, index, InFlightTrial(task, question, NOTHING))


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))
