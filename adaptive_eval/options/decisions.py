"""What a run decides, and how: its goal, when a pair is decided, and what is asked next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from statistics import NormalDist
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from adaptive_eval.options.mistakes import (
    Found,
    Mistakes,
    Place,
    did_you_mean,
    missing,
    not_one_of,
    out_of_range,
    shown,
    twice,
    unheld,
    unknown_key,
    unknown_name,
)
from adaptive_eval.options.section import Record, Section, record
from adaptive_eval.trial import FIXED

GoalKind = Literal[
    "ranking", "top-k", "baseline", "not-worse", "width", "threshold", "budget", "pairs", "all"
]
RuleName: TypeAlias = Literal["anytime", "exact", "zscore"]
PolicyName: TypeAlias = Literal["round-robin", "top-two", "uniform"]
QuestionPolicy = Literal["schedule", "rounds", "auto"]
RULES: tuple[RuleName, ...] = get_args(RuleName)
"""Rules by the name a config gives; installed packages may offer more (:mod:`adaptive_eval.core.plugins`)."""
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)
"""Allocation policies, likewise."""
DEFAULT_PASSES = 80
"""Trials per question and model after which a run ends, if its config names no number."""
RULE_GROUP = "adaptive_eval.rules"
POLICY_GROUP = "adaptive_eval.policies"

_KEYS: Mapping[str, tuple[str, Callable[[str], Any] | None]] = {
    "ranking": ("", None),
    "budget": ("", None),
    "top-k": ("k", int),
    "baseline": ("model", str),
    "not-worse": ("model", str),
    "threshold": ("value", float),
    "width": ("width", float),
    "pairs": ("pairs", None),
    "all": ("goals", None),
}
"""The key that each goal has besides its kind, and how it is read from one line such as ``width=0.05``."""
_FURTHER: Mapping[str, tuple[str, ...]] = {"not-worse": ("margin",)}
"""Keys that a goal may have in addition."""


def read_goal(value: Any) -> Any:
    """Return a goal that is written in one line, in a config or an option, in full.

    Examples
    --------
    >>> read_goal("ranking"), read_goal("top-k=2")
    ({'kind': 'ranking'}, {'kind': 'top-k', 'k': 2})
    >>> read_goal("top-k and width=0.05")["goals"]
    ({'kind': 'top-k'}, {'kind': 'width', 'width': 0.05})
    """
    if not isinstance(value, str):
        return value
    parts = value.split(" and ")
    if len(parts) > 1:
        return {"kind": "all", "goals": tuple(map(read_goal, parts))}
    kind, given, text = (part.strip() for part in value.partition("="))
    name, of = _KEYS.get(kind, ("", None))
    if not given or of is None:
        return {"kind": value.strip()}
    try:
        return {"kind": kind, name: of(text)}
    except ValueError:
        return {"kind": kind, name: text}  # refused as what it is


def _goal(value: Any) -> Any:
    """Return a goal in full, with the keys of its kind and no others."""
    goal = read_goal(value)
    if not isinstance(goal, dict):
        return goal
    if "kind" not in goal:
        raise ValueError(missing(f"kind is missing; write one of {', '.join(_KEYS)}"))
    kind = ""
    if isinstance(goal["kind"], str):
        kind = goal["kind"]
    key = _KEYS.get(kind, ("", None))[0]
    allowed = [name for name in ("kind", key, *_FURTHER.get(kind, ())) if name]
    found = []
    for name in goal:
        if kind in _KEYS and name not in allowed:
            words = f"unknown key of this goal (allowed here: {', '.join(allowed)})"
            found.append(((name,), unknown_key(words)))
    if key and key != "k" and key not in goal:
        found.append(((key,), missing(f"is missing; the goal {goal['kind']} needs it")))
    if found:
        raise Mistakes(found)
    return goal


@record
class GoalSpec(Record):
    """The goal of the run: its kind, and the keys that the kind has.

    Examples
    --------
    >>> GoalSpec("all", goals=(GoalSpec("top-k"), GoalSpec("width", width=0.05))).text
    "find the best model, and every model's interval no wider than 0.05"
    """

    kind: GoalKind = "ranking"
    """ranking decides every pair; top-k finds the best; baseline compares every model with one; not-worse
    says of every other model whether it is worse than one by more than a margin; threshold
    compares with a number; width knows every score to a precision; pairs decides the pairs named; budget
    ranks as well as a budget allows; all reaches several goals."""
    k: int = Field(default=1, ge=1)
    """Of top-k: how many models are the best."""
    model: str = ""
    """Of baseline and not-worse: the model that every other is compared with."""
    margin: float | None = Field(default=None, gt=0)
    """Of not-worse: by how much a model may be worse, in score units. Default: stopping.equivalence."""
    value: float = 0.0
    """Of threshold: the number, in score units."""
    width: float = Field(default=0.0, ge=0)
    """Of width: the largest width of an interval, in score units."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Of pairs: pairs of model names."""
    goals: tuple[Annotated[GoalSpec, BeforeValidator(_goal, json_schema_input_type=str | GoalSpec)], ...] = ()
    """Of all: the goals, each written as under goal; any but budget."""

    @property
    def parts(self) -> tuple[GoalSpec, ...]:
        """The parts of a composed goal, at any depth; a plain goal itself."""
        return tuple(goal for _, goal in self.places())

    def places(self, place: Place = ("goal",)) -> Iterator[tuple[Place, GoalSpec]]:
        """Yield the parts with their places in a config."""
        if self.kind != "all":
            yield place, self
        for number, goal in enumerate(self.goals):
            yield from goal.places((*place, "goals", number))

    @property
    def _in_brackets(self) -> str:
        if self.goals:
            return f"({self.text})"
        return self.text

    @property
    def text(self) -> str:
        """The goal as text."""
        if self.kind == "all":
            return ", and ".join(goal._in_brackets for goal in self.goals)
        by = "the equivalence margin"
        if self.margin is not None:
            by = f"{self.margin:g}"
        return {
            "ranking": "rank all models",
            "top-k": f"find the best {self.k}" if self.k > 1 else "find the best model",
            "baseline": f"compare every model with {self.model}",
            "not-worse": f"say of every model whether it is worse than {self.model} by more than {by}",
            "width": f"every model's interval no wider than {self.width:g}",
            "threshold": f"say of every model whether it is above {self.value:g}",
            "budget": "best ranking for a fixed budget",
            "pairs": "decide the named pairs",
        }[self.kind]


Goal: TypeAlias = Annotated[GoalSpec, BeforeValidator(_goal, json_schema_input_type=str | GoalSpec)]


def installed(group: str) -> tuple[str, ...]:
    """Return the names that installed packages offer, in alphabetical order."""
    return tuple(sorted({point.name for point in entry_points(group=group)}))


def _one_of(known: tuple[str, ...], group: str) -> BeforeValidator:
    """Return a check of names: one of ours, or one that an installed package offers."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value in (*known, FIXED):
            return value
        names = [*known, *installed(group)]
        if value not in names:
            words = f"{shown(value)} is not one of {', '.join(names)}{did_you_mean(value, names)}"
            if len(names) == len(known):
                words += "; no installed package offers others"
            raise ValueError(not_one_of(words))
        return value

    return BeforeValidator(check, json_schema_input_type=Literal[known] | str)


RuleChoice: TypeAlias = Annotated[str, _one_of(RULES, RULE_GROUP)]
PolicyChoice: TypeAlias = Annotated[str, _one_of(POLICIES, POLICY_GROUP)]


@record
class StoppingSpec(Record):
    """When a pair counts as decided; see :mod:`scorio.sequential.rules`."""

    rule: RuleChoice = "anytime"
    """anytime holds its error rate at any number of looks. An installed package's rule goes by its name."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """1 minus the error rate."""
    family: Literal["holm", "pair"] = "holm"
    """Error rate over any wrong winner (holm; with the goal top-k, over a wrong set), or each pair."""
    equivalence: float | None = Field(default=None, gt=0)
    """Scores that differ by less are a tie, in units of the score; without it there are none."""
    max_passes: int | None = Field(default=None, ge=1, le=10**6)
    """Trials per question and model after which the run ends, decided or not. Default: 80; the goal budget
    has no such end unless it is set."""
    target: Literal["benchmark", "population"] = "benchmark"
    """Verdicts about these questions (benchmark), or about questions like these (population)."""
    ties: Literal["pair", "family"] = "pair"
    """How the error rate of ties is shared: each pair, or all pairs as family says (needs about twice the
    trials of a tie on a board of ten)."""

    @property
    def own_rule(self) -> bool:
        """Whether the rule is one of an installed package."""
        return self.rule not in (*RULES, FIXED)

    @property
    def z(self) -> float:
        """The threshold of the rule zscore: 1.645 at 0.95."""
        return round(NormalDist().inv_cdf(self.confidence), 3)


@record
class AllocationSpec(Record):
    """Which model, and which question, gets the next trial."""

    models: PolicyChoice = "round-robin"
    """round-robin serves the models that are still needed in turn; uniform serves all. An installed package's
    policy goes by its name."""
    questions: QuestionPolicy = "auto"
    """schedule: one order of questions, the same for all models. rounds: after two passes, each model's
    trials go where its own answers vary. auto: rounds for 3 to 100 questions a task, except with
    `spend: time`, and with `spend: trials` if `concurrency` is at least .6 of the questions."""


Spend: TypeAlias = Annotated[
    Literal["trials", "time", "tokens", "usd"],
    Field(
        description="What the run saves. trials: only trials that the open pairs are forecast to need are "
        "sent. time: up to twice as many, for servers of your own. tokens, usd: as trials, and rounds "
        "repeat questions with expensive answers less often."
    ),
]


class OnStored(Section):
    """What is said of stored answers."""

    copies: Literal["bounded", "independent"] = "bounded"
    """As `on.copies` of a config."""


class Decisions(Section):
    """How a session decides, for commands that have no config."""

    goal: Goal = GoalSpec()
    stopping: StoppingSpec = StoppingSpec()
    allocation: AllocationSpec = AllocationSpec()
    spend: Spend = "trials"
    on: OnStored = OnStored()


def conflicts(
    decisions: Any,
    models: Sequence[str],
    references: Sequence[str],
    weights: Sequence[tuple[float, ...]],
) -> Found:
    """Yield what does not go together in the goal, stopping and allocation of `decisions`.

    Parameters
    ----------
    decisions : RunConfig, Decisions or SessionSpec
        What has a goal, stopping and allocation.
    models, references : sequence of str
        Names of the models to ask, and of finished ones.
    weights : sequence of tuple of float
        What each category counts for, by task.
    """
    stopping: StoppingSpec = decisions.stopping
    allocation: AllocationSpec = decisions.allocation
    ranges = {(min(of_task), max(of_task)) for of_task in weights}
    low, high = next(iter(ranges)) if len(ranges) == 1 else (0.0, 1.0)
    why = ", because tasks with different ranges are put on 0 to 1"
    if len(ranges) == 1:
        why = ""
    scale = f"go from {low:g} to {high:g}{why}"
    ranks = all(least < most for least, most in ranges)  # weights that rank nothing are refused elsewhere
    for place, goal in decisions.goal.places():
        yield from _goal_conflicts(goal, place, models, references)
        if goal.kind == "not-worse" and goal.margin is None and stopping.equivalence is None:
            words = "is missing; write by how much a model may be worse, or set stopping.equivalence"
            yield (*place, "margin"), missing(words)
        if ranks:
            yield from _off_the_scale(goal, place, low, high, scale)
    yield from _composed(decisions.goal)
    kinds = {goal.kind for goal in decisions.goal.parts}
    in_rounds = allocation.questions == "rounds"
    unpriced = [model.name for model in getattr(decisions, "models", ()) if model.price is None]
    if decisions.spend == "usd" and unpriced:
        reason = f"usd needs the price of every model; without one: {', '.join(unpriced)}"
        yield ("spend",), unheld(f"{reason}; write models[].price, or spend: tokens")
    if stopping.rule == FIXED and isinstance(decisions, Section):  # as a person writes it
        words = "fixed is no rule that a run asks by: analyze --write gives it to results of a fixed number"
        yield ("stopping", "rule"), f"{words}; write one of {', '.join(RULES)}"
    if stopping.rule == "exact" and kinds & {"width", "threshold"}:
        words = "exact compares models in pairs, and the goal asks about each by itself; use anytime"
        yield ("stopping", "rule"), words
    if stopping.rule != "anytime" and "not-worse" in kinds:
        words = f"{stopping.rule} has no evidence for or against the goal not-worse; use anytime"
        yield ("stopping", "rule"), words
    if stopping.rule == "exact" and len(weights) > 1:
        yield ("stopping", "rule"), "exact is for one task and there are several; use anytime"
    if stopping.rule in ("exact", "zscore") and in_rounds:
        # After two passes no pass is complete any more: what is read there favours the questions asked often.
        words = f"{stopping.rule} {_EQUALLY_OFTEN}; use questions: schedule, or the rule anytime"
        yield ("stopping", "rule"), words
    if "threshold" in kinds and in_rounds:
        words = f"the goal threshold {_EQUALLY_OFTEN}; use schedule or auto"
        yield ("allocation", "questions"), words
    if stopping.ties == "family" and (stopping.family == "pair" or stopping.rule == "zscore"):
        words = "family needs an error rate of all pairs together: family holm, and any rule but zscore"
        yield ("stopping", "ties"), words
    if allocation.models == "top-two" and decisions.goal.kind != "budget":
        reason = "top-two buys the best order for a fixed budget, and takes up to fourteen times the trials"
        yield ("allocation", "models"), f"{reason} to decide pairs; use round-robin, or the goal budget"
    margin = stopping.equivalence
    if margin is not None and ranks and margin >= high - low:
        words = f"{margin:g} must be less than {high - low:g}: scores {scale}"
        yield ("stopping", "equivalence"), out_of_range(words)


_EQUALLY_OFTEN = "reads passes that ask every question equally often, and rounds ask some more often"


def _composed(goal: GoalSpec, place: Place = ("goal",)) -> Found:
    """Yield what is wrong with a goal that is made of goals."""
    if goal.kind != "all":
        return
    if not goal.goals:
        yield (*place, "goals"), out_of_range("has 0 items and needs at least 1")
    for number, part in enumerate(goal.goals):
        inside = (*place, "goals", number)
        if part.kind == "budget":
            yield inside, "budget is never reached, so it cannot be combined; use the section budget"
        yield from _composed(part, inside)


def _goal_conflicts(goal: GoalSpec, place: Place, models: Sequence[str], references: Sequence[str]) -> Found:
    """Yield what is wrong with one goal for these models."""
    names = [*models, *references]
    count = len(models) + len(references)
    if goal.kind == "top-k" and 1 < count <= goal.k:
        yield (*place, "k"), f"{goal.k} of {count} models: nothing would be left to decide"
    if goal.kind in ("baseline", "not-worse") and goal.model not in names:
        yield (*place, "model"), _unknown_model(goal.model, names)
    if goal.kind == "width" and goal.width == 0.0:
        yield (*place, "width"), out_of_range("0 must be greater than 0")
    if goal.kind != "pairs":
        return
    if not goal.pairs:
        yield (*place, "pairs"), out_of_range("has 0 items and needs at least 1; pairs of model names")
    seen: list[frozenset[str]] = []
    for number, pair in enumerate(goal.pairs):
        here: Place = (*place, "pairs", number)
        for position, name in enumerate(pair):
            if name not in names:
                yield (*here, position), _unknown_model(name, names)
        if pair[0] == pair[1]:
            yield here, f"{shown(pair[0])} is paired with itself"
        elif set(pair) <= set(references):
            yield here, "both are references: there is nothing left to ask"
        elif frozenset(pair) in seen:
            yield here, twice("this pair appears twice")
        seen.append(frozenset(pair))


def _off_the_scale(goal: GoalSpec, place: Place, low: float, high: float, scale: str) -> Found:
    """Yield a number that no score, or difference of scores, can reach."""
    if goal.kind == "threshold" and not low <= goal.value <= high:
        words = f"{goal.value:g} lies outside the scores, which {scale}"
        yield (*place, "value"), out_of_range(words)
    if goal.margin is not None and goal.margin >= high - low:
        words = f"{goal.margin:g} must be less than {high - low:g}: scores {scale}"
        yield (*place, "margin"), out_of_range(words)
    if goal.kind == "width" and goal.width > high - low:
        words = f"{goal.width:g} is wider than all scores together, which {scale}"
        yield (*place, "width"), out_of_range(words)


def _unknown_model(name: str, names: Sequence[str]) -> str:
    known = ", ".join(names)
    return unknown_name(f"{shown(name)} is not a model of this run ({known}){did_you_mean(name, names)}")
