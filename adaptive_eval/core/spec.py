"""The specification of a session: models, tasks, goal, stopping rule, allocation, budget.

Plain frozen data, so that a session can be driven from a notebook, a test or a simulation without a config
file. :mod:`adaptive_eval.build.assembly` makes a :class:`SessionSpec` from a config.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise, starmap
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from adaptive_eval.core.label_record import LabelRecord
from adaptive_eval.core.plugins import load_rule
from adaptive_eval.options.decisions import AllocationSpec as AllocationSpec
from adaptive_eval.options.decisions import GoalSpec as GoalSpec
from adaptive_eval.options.decisions import Spend
from adaptive_eval.options.decisions import StoppingSpec as StoppingSpec
from adaptive_eval.options.limit_options import BudgetSpec as BudgetSpec
from adaptive_eval.options.limit_options import Price as Price
from adaptive_eval.trial import FIXED, RIGHT_OR_WRONG, STEPS, DiscardCause, ScoreRange
from scorio.arrays import Bools, Floats
from scorio.sequential import parts
from scorio.sequential.parts import Anytime, ContrastBlock, Levels, has_answer_bets

FLIP_SHARE = 0.1
"""Of the error rate, what the limits of the noise at temperature 0 may use; verdicts have the rest."""
ROUNDS_AT_MOST = 100
"""Questions of a task up to which ``auto`` uses rounds: with more, few tasks come to enough passes."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model as the session sees it.

    Parameters
    ----------
    name : str
        Label, unique in the run.
    max_tokens : int, optional
        Most completion tokens of one trial; needed under a token or USD budget.
    price : Price, optional
        Needed under a USD budget.
    budget : BudgetSpec
        Limits of this model. When one is reached, its open pairs stay undecided and the run continues.
    deterministic : bool
        Whether the user vouches that it answers a question the same every time, which is tested.
    greedy : bool
        Whether it is asked at temperature 0: its noise is what its repeats leave possible.
    """

    name: str
    max_tokens: int | None = None
    price: Price | None = None
    budget: BudgetSpec = BudgetSpec()
    deterministic: bool = False
    greedy: bool = False

    @property
    def repeats(self) -> bool:
        """Whether it is expected to answer a question the same every time."""
        return self.deterministic or self.greedy


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task as the session sees it.

    Parameters
    ----------
    name : str
        Name, unique in the run.
    questions : tuple of str
        Question ids, in the dataset's order.
    weights : tuple of float
        Weight of each category of the rubric; a :class:`~adaptive_eval.trial.ScoreRange` for numbers.
    clusters : tuple of str, optional
        Cluster of each question, for the population target.
    prompt_bounds : tuple of int, optional
        An upper bound on the prompt's tokens per question; needed under a token or USD budget.
    prompt_varies : bool
        Whether trials of one question may have different prompts.
    calls : int
        Most requests of one trial, each with an answer of the model's `max_tokens`; `prompt_bounds` are of
        all of them together.
    budget : BudgetSpec
        Limits of the task. Every model is asked all tasks, so the run ends when one is reached.
    weight : float
        Factor on the weight that `overall` gives the task.
    """

    name: str
    questions: tuple[str, ...]
    weights: tuple[float, ...] = RIGHT_OR_WRONG
    clusters: tuple[str, ...] | None = None
    prompt_bounds: tuple[int, ...] | None = None
    prompt_varies: bool = False
    budget: BudgetSpec = BudgetSpec()
    weight: float = 1.0
    calls: int = 1

    @property
    def numbers(self) -> bool:
        """Whether scores are numbers, whose categories are steps of a range."""
        return isinstance(self.weights, ScoreRange)

    @property
    def unit_scores(self) -> NDArray[np.float64]:
        """Score of each category in [0, 1]."""
        if self.numbers:
            return np.arange(STEPS + 1) / STEPS
        return parts.unit_scores(self.weights)

    @property
    def shares(self) -> NDArray[Any]:
        """What one answer of each category adds to the counts of a question."""
        return parts.shares(self.unit_scores, moments=self.numbers)


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceSpec:
    """A model with stored trials: it gets no new ones, and the models of the run are compared with it.

    Parameters
    ----------
    name : str
        Label, unique in the run.
    counts : mapping of str to ndarray of int, shape (M, C + 1)
        Per task the trials of each question in each category; a question may have none.
    source : str
        Where its trials come from, in a few words.
    lost : mapping of str to ndarray of int, shape (M,)
        Per task the trials of each question that have no answer; a task may be left out.
    alike : mapping of str to ndarray of int, shape (M,)
        Per task in how many ordered pairs two answers to each question may be copies of one another: Σ m² − n
        over groups of m that are alike, of n answers; a task may be left out.
    """

    name: str
    counts: Mapping[str, NDArray[np.int64]]
    source: str = ""
    lost: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    alike: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class PriorSpec:
    """Earlier trials of the models of the run: for Bayes@N, never for a decision.

    Parameters
    ----------
    counts : mapping of str to mapping of str to ndarray of int, shape (M, C + 1)
        R0: per model and task the earlier trials of each question in each category that Bayes@N starts
        from. A model may be left out.
    source : str
        What is used, of whom and where from, in words.
    """

    counts: Mapping[str, Mapping[str, NDArray[np.int64]]]
    source: str


@dataclass(frozen=True)
class SessionSpec:
    """Everything a session needs.

    Parameters
    ----------
    models : tuple of ModelSpec
        At least one.
    tasks : tuple of TaskSpec
        At least one.
    goal, stopping, allocation, spend, budget
        See the classes; without `allocation` questions follow the schedule.
    seed : int
        Seed of the question order and of every trial's sampling seed.
    overall : {'macro', 'pooled'}
        Weight of several tasks: equal, or by their number of questions; each times its own weight.
    references : tuple of ReferenceSpec
        Finished models to compare with.
    prior : PriorSpec, optional
        Earlier trials of the models.
    usage_on_failure : {'presume', 'prompt-only', 'none'}
        What a failed request counts that may have been billed: its worst case, its prompt, or nothing.
    samples_per_prompt : int
        Number of times that a question is asked in a row after the first pass, so that one request can
        ask for so many answers; the same for all models.
    redrawn : frozenset of str
        Causes of discarded draws that do not depend on the answer, as the user says: another draw counts.
    early_repeats : bool
        Whether the first pass asks a few questions twice, so that the noise of answers is known early.
        Recorded outcomes with one trial a question have no such repeats.
    independent_copies : bool
        Whether answers that repeat an earlier one are draws of a sure model, and no copies: the user's word.
    labels : LabelRecord, optional
        Labels that decide in the place of the scores; every model is asked alike, until a budget ends.

    Examples
    --------
    >>> spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", ("q1", "q2")),))
    >>> spec.task_weights
    (1.0,)
    """

    models: tuple[ModelSpec, ...]
    tasks: tuple[TaskSpec, ...]
    goal: GoalSpec = GoalSpec()
    stopping: StoppingSpec = StoppingSpec()
    allocation: AllocationSpec = AllocationSpec(questions="schedule")
    spend: Spend = "trials"
    budget: BudgetSpec = BudgetSpec()
    seed: int = 0
    overall: Literal["macro", "pooled"] = "macro"
    references: tuple[ReferenceSpec, ...] = ()
    prior: PriorSpec | None = None
    usage_on_failure: Literal["presume", "prompt-only", "none"] = "presume"
    samples_per_prompt: int = 1
    early_repeats: bool = True
    independent_copies: bool = False
    labels: LabelRecord | None = None
    redrawn: frozenset[DiscardCause] = frozenset()

    def rule(self) -> parts.Rule:
        """Return the rule that decides pairs.

        Raises
        ------
        UsageError
            If a package's rule cannot be used.
        """
        stopping, margin = self.stopping, self.margin
        alpha = 1.0 - stopping.confidence
        if stopping.rule == FIXED:
            return FixedRule(alpha, margin)
        if stopping.own_rule:
            return load_rule(stopping.rule, alpha, margin)
        return parts.stopping_rule(stopping.rule, alpha, margin, stopping.z)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the models, then of the references."""
        models = [model.name for model in self.models]
        return (*models, *(reference.name for reference in self.references))

    @property
    def own_budgets(self) -> list[BudgetSpec]:
        """The budgets of single models and tasks."""
        of_models = [model.budget for model in self.models]
        return of_models + [task.budget for task in self.tasks]

    def levels(self, rule: parts.Rule, hypotheses: int, claimed: int = 0) -> Levels:
        """Return the thresholds, with so many contrasts that can get a winner, and so many claims."""
        stopping = self.stopping
        family_name = "pair"
        if stopping.rule != "zscore":
            family_name = stopping.family
        family = parts.family(family_name)
        if self.of_a_set:
            family = parts.TopSet(self.goal.k, len(self.names))
        tied = "pair"
        if stopping.ties == "family":
            tied = stopping.family
        ties = parts.family(tied)
        kept = 1.0 - FLIP_SHARE if self.greedy else 1.0
        alpha = kept * (1.0 - stopping.confidence)
        winners = max(hypotheses, 1), kept * rule.level, alpha, rule.fixed_threshold
        if self.margin is None or stopping.rule not in ("anytime", "exact"):
            return Levels(family, ties, *winners, claimed=claimed)
        sizes = {goal.k for goal in self.goal.parts if goal.kind == "top-k"}
        claims = sum(k * (len(self.names) - k) for k in sizes)  # any of these pairs could make one wrong
        return Levels(family, ties, *winners, claims, self.margin, claimed)

    @property
    def greedy(self) -> tuple[int, ...]:
        """Numbers of the models at temperature 0 whose answers may flip."""
        chosen = enumerate(self.models)
        return tuple(number for number, model in chosen if model.greedy and not model.deterministic)

    @property
    def flip_level(self) -> float:
        """Chance that the limit of the noise of one such model on one task is too low at some time."""
        return FLIP_SHARE * (1.0 - self.stopping.confidence) / (len(self.models) * len(self.tasks))

    @property
    def of_a_set(self) -> bool:
        """Whether the family is that of a wrong set of the best k: the pairs across the cut."""
        stopping = self.stopping
        return self.goal.kind == "top-k" and stopping.family == "holm" and stopping.rule != "zscore"

    @property
    def questions(self) -> int:
        """Questions of all tasks together."""
        return sum(len(task.questions) for task in self.tasks)

    @cached_property
    def columns(self) -> tuple[slice, ...]:
        """Where the questions of each task are, if those of all tasks follow each other."""
        ends = list(accumulate((len(task.questions) for task in self.tasks), initial=0))
        return tuple(starmap(slice, pairwise(ends)))

    @property
    def task_weights(self) -> tuple[float, ...]:
        """Weight of each task in the overall score; they sum to 1."""
        weights = [task.weight for task in self.tasks]
        if self.overall == "pooled":
            weights = [task.weight * len(task.questions) for task in self.tasks]
        total = sum(weights)
        return tuple(weight / total for weight in weights)

    @property
    def scale(self) -> tuple[float, float]:
        """(origin, unit) that turn a unit score into score units: ``origin + unit * score``.

        Tasks whose rubrics span different ranges are reported in unit scores, (0, 1).
        """
        if len(self.ranges) > 1:
            return 0.0, 1.0
        low, high = next(iter(self.ranges))
        return low, high - low

    @property
    def ranges(self) -> set[tuple[float, float]]:
        """Lowest and highest scores of the tasks."""
        return {(min(task.weights), max(task.weights)) for task in self.tasks}

    @property
    def margin(self) -> float | None:
        """The equivalence margin in unit scores."""
        margin = self.stopping.equivalence
        if margin is None:
            return None
        return margin / self.scale[1]

    def claim_margin(self, goal: GoalSpec) -> float:
        """Return the margin of a goal not-worse in unit scores: its own, or the equivalence margin."""
        if goal.margin is None:
            margin = self.stopping.equivalence
        else:
            margin = goal.margin
        assert margin is not None
        return margin / self.scale[1]

    @property
    def by_cost(self) -> bool:
        """Whether it decides by what trials cost who and what is asked next."""
        return self.spend in ("tokens", "usd")

    @property
    def rounds_suit(self) -> bool:
        """Whether rounds go with what is decided."""
        stopping = self.stopping
        suits = stopping.rule not in ("exact", "zscore") and stopping.target == "benchmark"
        suits &= not any(goal.kind == "threshold" for goal in self.goal.parts)
        return suits and not self.greedy

    @property
    def own_rounds(self) -> tuple[bool, ...]:
        """Whether each task's questions are asked in rounds of each model's own."""
        chosen = self.allocation.questions
        if chosen != "auto":
            return (chosen == "rounds",) * len(self.tasks)
        sizes = [len(task.questions) for task in self.tasks]
        suits = self.rounds_suit and self.spend != "time"  # a round is laid out from the one before
        return tuple(suits and has_answer_bets(size) and size <= ROUNDS_AT_MOST for size in sizes)

    @property
    def tasks_in_rounds(self) -> tuple[str, ...]:
        """Names of the tasks whose questions are asked in rounds of each model's own."""
        return tuple(task.name for task, own in zip(self.tasks, self.own_rounds, strict=True) if own)

    def with_margin(self, margin: float | None) -> SessionSpec:
        """Return the session with another margin, in score units, of ties and of claims.

        Without one there are no ties, and claims keep the margins that their goals name.
        """

        def goal(old: GoalSpec) -> GoalSpec:
            own = margin if old.kind == "not-worse" and margin is not None else old.margin
            return replace(old, margin=own, goals=tuple(map(goal, old.goals)))

        stopping = replace(self.stopping, equivalence=margin)
        return replace(self, goal=goal(self.goal), stopping=stopping)

    def rescored(self, weights: Mapping[str, tuple[float, ...]]) -> SessionSpec:
        """Return the session with other weights of categories, by task.

        Margin, widths and thresholds keep their share of the range of scores.

        Examples
        --------
        >>> tasks = (TaskSpec("t", ("q1", "q2"), (0.0, 100.0)),)
        >>> stopping = StoppingSpec(equivalence=8.0)
        >>> spec = SessionSpec((ModelSpec("a"), ModelSpec("b")), tasks, stopping=stopping)
        >>> spec.rescored({"t": (0.0, 0.5, 1.0)}).stopping.equivalence
        0.08
        """
        tasks = tuple(replace(task, weights=weights.get(task.name, task.weights)) for task in self.tasks)
        other = replace(self, tasks=tasks)
        (origin, unit) = self.scale
        (new_origin, new_unit) = other.scale
        if (origin, unit) == (new_origin, new_unit):
            return other

        def goal(old: GoalSpec) -> GoalSpec:
            margin = None
            if old.margin is not None:
                margin = old.margin / unit * new_unit
            return replace(
                old,
                value=new_origin + (old.value - origin) / unit * new_unit,
                width=old.width / unit * new_unit,
                margin=margin,
                goals=tuple(map(goal, old.goals)),
            )

        margin = self.stopping.equivalence
        if margin is not None:
            margin = margin / unit * new_unit
        return replace(other, goal=goal(self.goal), stopping=replace(self.stopping, equivalence=margin))


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
