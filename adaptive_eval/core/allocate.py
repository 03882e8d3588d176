"""Policies that choose the model of the next trial. Trials in flight count as issued."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Protocol

import numpy as np

from adaptive_eval.core.plugins import load_plugin, package_of
from adaptive_eval.errors import SessionError, UserCodeError
from adaptive_eval.options.decisions import POLICY_GROUP
from scorio.arrays import Bools, Floats, Ints
from scorio.sequential import Board


@dataclass(frozen=True, slots=True)
class AllocationView:
    """The state that a policy decides on.

    Parameters
    ----------
    issued : list of int
        Steps issued per model, trials in flight included.
    window : list of int
        Trials each model can have in flight.
    active : ndarray of bool, shape (L,)
        Models that an open contrast needs and that can still be asked.
    askable : ndarray of bool, shape (L,)
        Models that can still be asked, needed or not.
    first, second : ndarray of int, shape (P,)
        Models of the open contrasts (`second` is -1 for a contrast with a number).
    most : list of float
        Steps up to which each model is asked; infinite if no need for it is foreseen to end.
    scores : callable
        Returns each model's mean unit score and its variance, two arrays of shape (L,); most policies do
        without.
    cost : callable
        Returns the mean cost of a trial of each model in what the run spends; 1 for trials and time.
    seed : tuple of int
        Changes with every trial issued; the source of a policy's random numbers.
    """

    issued: list[int]
    window: list[int]
    active: Bools
    askable: Bools
    first: Ints
    second: Ints
    most: list[float]
    scores: Callable[[], tuple[Floats, Floats]]
    cost: Callable[[], list[float]]
    seed: tuple[int, ...]

    def partners(self, model: int) -> list[int]:
        """Return the partners of a model in open pairs."""
        others = self.second[self.first == model].tolist() + self.first[self.second == model].tolist()
        return [other for other in others if other >= 0]

    def furthest_partners(self) -> list[int]:
        """Return the most steps issued of each model's partners in open pairs; -1 without any."""
        issued = np.array([*self.issued, -1])  # the last one is that of no model
        furthest = np.full(issued.size, -1)
        for side, other in ((self.first, self.second), (self.second, self.first)):
            np.maximum.at(furthest, side, issued[other])
        found: list[int] = furthest[:-1].tolist()
        return found


class Policy(Protocol):
    """Chooses models for free slots."""

    def choose(self, view: AllocationView, free: Mapping[int, int]) -> Iterator[int]:
        """Yield the model of one trial after the other, never more than its free slots.

        The caller stops asking when a budget ends. Ends when no trial should be issued now.

        Parameters
        ----------
        view : AllocationView
            The state of the run.
        free : mapping of int to int
            Free slots per model.
        """


class RoundRobin:
    """The active model that has the fewest trials: easy pairs end first, which lowers others' thresholds.

    A model issues step t only if a partner in an open pair has issued it too, or if t lies within its own
    window of trials in flight beyond its furthest partner: pairs are read at equal progress, so a lead would
    be spent for nothing.
    """

    def models(self, view: AllocationView) -> tuple[Bools, list[float]]:
        """Return the models that take part, and up to which step."""
        return view.active, view.most

    def furthest(self, view: AllocationView) -> list[int]:
        """Return for each model the steps issued of the furthest one that it is read with; -1 without any."""
        return view.furthest_partners()

    def choose(self, view: AllocationView, free: Mapping[int, int]) -> Iterator[int]:
        """See :class:`Policy`."""
        issued, fewest = list(view.issued), min(view.issued)
        furthest = self.furthest(view)
        left = dict(free)
        active, most = self.models(view)
        queue = [(issued[model], model) for model, slots in free.items() if slots > 0 and active[model]]
        heapify(queue)
        while queue:
            _, model = heappop(queue)
            if issued[model] >= most[model]:
                continue
            if issued[model] > fewest:  # otherwise no partner is behind it
                most_behind = issued[model] - max(view.window[model], 1)
                near = furthest[model] > most_behind  # without what was chosen since
                near = near or any(issued[other] > most_behind for other in view.partners(model))
                if furthest[model] >= 0 and not near:
                    continue
            yield model
            issued[model] += 1
            left[model] -= 1
            if left[model] > 0:
                heappush(queue, (issued[model], model))


class Uniform(RoundRobin):
    """Every model, needed or not, as in a run of fixed length. The baseline for savings."""

    def models(self, view: AllocationView) -> tuple[Bools, list[float]]:
        """Return the models that take part, each as long as any other."""
        needed, models = view.active.any(), len(view.most)
        most = max((view.most[model] for model in np.flatnonzero(view.active)), default=0.0)
        return view.askable if needed else view.active, [most] * models

    def furthest(self, view: AllocationView) -> list[int]:
        """Return the same; a model without an open pair keeps in step with those that have one."""
        furthest = np.array(view.furthest_partners())
        ahead = np.array(view.issued)[view.active].max(initial=-1)
        found: list[int] = np.where(furthest < 0, ahead, furthest).tolist()
        return found


class TopTwo:
    """T3C for rankings: the best order a fixed budget can buy, without stopping.

    A ranking is drawn from the posterior of the scores. The pair of neighbours that is hardest to separate
    (smallest squared difference over variance) gets a trial, for either model with probability one half; if
    trials have a cost, with probabilities as 1/√cost, which cost least for one variance of a difference.

    References
    ----------
    .. [1] Shang, de Heide, Ménard, Kaufmann, Valko, "Fixed-confidence guarantees for Bayesian best-arm
       identification", AISTATS 2020.
    """

    def choose(self, view: AllocationView, free: Mapping[int, int]) -> Iterator[int]:
        """See :class:`Policy`."""
        members = np.flatnonzero(view.active).tolist()
        left = {model: free.get(model, 0) for model in members if free.get(model, 0) > 0}
        if not left:
            return
        issued = np.array(view.issued, dtype=np.float64)
        if not Board.is_readable(issued[members]).all():
            yield from RoundRobin().choose(view, free)
            return
        rng = np.random.default_rng(view.seed)
        start, chosen = issued.copy(), 0
        score, variance = view.scores()
        root = np.sqrt(view.cost())
        for _ in range(sum(left.values())):
            # A drawn model without a free slot gets nothing instead, or its trials would go to the others.
            now = variance[members] * start[members] / issued[members]
            first, second = self._draw(np.array(members), score[members], now, rng)
            is_second = rng.random() < root[first] / (root[first] + root[second])
            model = second if is_second else first
            if left.get(model, 0) > 0:
                yield model
                issued[model] += 1
                left[model] -= 1
                chosen += 1
        if chosen == 0:
            yield min(left, key=lambda model: (issued[model], model))

    @staticmethod
    def _draw(members: Ints, score: Floats, variance: Floats, rng: np.random.Generator) -> tuple[int, int]:
        """Return the neighbours of a drawn ranking that are hardest to separate; one model alone twice."""
        drawn = score + np.sqrt(variance) * rng.standard_normal(members.size)
        order = np.argsort(-drawn)
        if order.size == 1:
            return int(members[0]), int(members[0])
        gap = score[order[:-1]] - score[order[1:]]
        cost = gap**2 / (variance[order[:-1]] + variance[order[1:]])
        at = int(np.argmin(cost))
        return int(members[order[at]]), int(members[order[at + 1]])


POLICIES: dict[str, Callable[[], Policy]] = {
    "round-robin": RoundRobin,
    "uniform": Uniform,
    "top-two": TopTwo,
}
"""Policies by the name a config gives."""


def make_policy(name: str) -> Policy:
    """Return the policy called `name`, ours or an installed package's.

    Raises
    ------
    UsageError
        If there is no such policy, or a package's policy cannot be used.
    """
    if name in POLICIES:
        return POLICIES[name]()
    policy = load_plugin(POLICY_GROUP, name)()
    if not hasattr(policy, "choose"):
        raise UserCodeError(f"policy {name!r} of {package_of(POLICY_GROUP, name)} lacks choose")
    return CheckedPolicy(name, policy)


class CheckedPolicy:
    """A policy of a package, its choices checked.

    Parameters
    ----------
    name : str
        Its name in a config.
    policy : Policy
        The policy.
    """

    def __init__(self, name: str, policy: Policy) -> None:
        self.name = name
        self._policy = policy

    def choose(self, view: AllocationView, free: Mapping[int, int]) -> Iterator[int]:
        """Yield the policy's choices.

        Raises
        ------
        SessionError
            If a choice is no model with a free slot, or nothing is chosen although nothing is in flight and a
            needed model could be asked: the run would wait for ever.
        """
        left, chosen = dict(free), False
        for model in self._policy.choose(view, free):
            if left.get(model, 0) <= 0:
                raise SessionError(
                    f"policy {self.name!r} chose model {model!r}, which has no free slot; models with free "
                    f"slots are {[known for known, slots in left.items() if slots > 0]}"
                )
            left[model] -= 1
            chosen = True
            yield int(model)
        ready = [model for model, slots in free.items() if slots > 0 and view.active[model]]
        waiting = any(view.window[model] > max(slots, 0) for model, slots in free.items())
        if ready and not chosen and not waiting:
            raise SessionError(
                f"policy {self.name!r} asks for nothing although nothing is in flight and models {ready} are "
                "needed: the run would wait for ever"
            )
