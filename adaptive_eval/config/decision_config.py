"""The sections goal, stopping, allocation and budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from adaptive_eval.config.codes import not_one_of
from adaptive_eval.config.problems import did_you_mean
from adaptive_eval.config.secret_checks import shown
from adaptive_eval.config.section import Label, Section
from adaptive_eval.core.plugins import POLICY_GROUP, RULE_GROUP, installed

_VALUES: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "top-k": ("k", int),
    "baseline": ("model", str),
    "threshold": ("value", float),
    "width": ("width", float),
}
"""The value of a goal that is written in one line, such as ``width=0.05``."""


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
    if not given or kind not in _VALUES:
        return {"kind": value.strip()}
    name, of = _VALUES[kind]
    try:
        return {"kind": kind, name: of(text)}
    except ValueError:
        return {"kind": kind, name: text}  # refused as what it is


class RankingGoal(Section):
    """Decide every pair of models."""

    kind: Literal["ranking"] = "ranking"


class TopKGoal(Section):
    """Find the `k` best models."""

    kind: Literal["top-k"]
    k: int = Field(default=1, ge=1, description="How many models are the best; 1 finds the best one.")


class BaselineGoal(Section):
    """Compare every model with one."""

    kind: Literal["baseline"]
    model: Label = Field(description="The model that every other is compared with.")


class WidthGoal(Section):
    """Know every model's score to a given precision."""

    kind: Literal["width"]
    width: float = Field(gt=0, description="Largest width of every model's interval, in score units.")


class ThresholdGoal(Section):
    """Decide for every model whether its score is above a number."""

    kind: Literal["threshold"]
    value: float = Field(description="The number, in score units.")


class BudgetGoal(Section):
    """Rank as well as a fixed budget allows, without stopping early."""

    kind: Literal["budget"]


class PairsGoal(Section):
    """Decide the pairs given by name."""

    kind: Literal["pairs"]
    pairs: tuple[tuple[Label, Label], ...] = Field(min_length=1, description="Pairs of model names.")


class _Composed(Section):
    """Several goals as one."""

    goals: tuple[
        Annotated[
            Goal, Field(discriminator="kind"), BeforeValidator(read_goal, json_schema_input_type=str | Goal)
        ],
        ...,
    ] = Field(min_length=2, description="The goals, each written as under goal; any but budget.")


class AllGoal(_Composed):
    """Reach every one of several goals."""

    kind: Literal["all"]


Goal: TypeAlias = (
    RankingGoal | TopKGoal | BaselineGoal | WidthGoal | ThresholdGoal | BudgetGoal | PairsGoal | AllGoal
)
AllGoal.model_rebuild()  # it is among the goals that it is made of


RuleName: TypeAlias = Literal["anytime", "exact", "zscore"]
PolicyName: TypeAlias = Literal["round-robin", "top-two", "uniform"]


def _one_of(known: tuple[str, ...], group: str) -> Callable[[Any], Any]:
    """Return a check of names: one of ours, or one that an installed package offers."""

    def check(value: Any) -> Any:
        if not isinstance(value, str) or value in known:
            return value
        others = installed(group)
        if value not in others:
            listed = ", ".join([*known, *others])
            nothing_more = "" if others else "; no installed package offers others"
            raise ValueError(
                not_one_of(
                    f"{shown(value)} is not one of {listed}"
                    f"{did_you_mean(value, [*known, *others])}{nothing_more}"
                )
            )
        return value

    return check


RuleChoice: TypeAlias = Annotated[
    str, BeforeValidator(_one_of(get_args(RuleName), RULE_GROUP), json_schema_input_type=RuleName | str)
]
PolicyChoice: TypeAlias = Annotated[
    str, BeforeValidator(_one_of(get_args(PolicyName), POLICY_GROUP), json_schema_input_type=PolicyName | str)
]


class StoppingConfig(Section):
    """When a pair counts as decided."""

    rule: RuleChoice = Field(
        default="anytime",
        description="anytime holds its error rate at any number of looks. An installed package's rule goes "
        "by its name.",
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="1 minus the error rate.")
    family: Literal["holm", "pair"] = Field(
        default="holm",
        description="Error rate over any wrong winner (holm; with the goal top-k, over a wrong set), or each "
        "pair.",
    )
    equivalence: float | None = Field(
        default=None,
        gt=0,
        description="Scores that differ by less are a tie, in units of the score; without it there are none.",
    )
    ties: Literal["pair", "family"] = Field(
        default="pair",
        description="How the error rate of ties is shared: each pair, or all pairs as family says (needs "
        "about twice the trials of a tie on a board of ten).",
    )
    max_passes: int = Field(
        default=80,
        ge=1,
        description="Trials per question and model after which the run ends, decided or not. The goal budget "
        "has no such end unless it is set.",
    )
    target: Literal["benchmark", "population"] = Field(
        default="benchmark",
        description="About these very questions, or about the questions they were drawn from.",
    )


def _run_ahead(value: Any) -> Any:
    if value in ("auto", "unlimited") or (isinstance(value, int) and value >= 1 and value is not True):
        return value
    raise ValueError(f"{value!r} is neither auto, unlimited nor a whole number from 1")


class AllocationConfig(Section):
    """Which model, and which question, gets the next trial."""

    models: PolicyChoice = Field(
        default="round-robin",
        description="round-robin serves the models that are still needed in turn; uniform serves all. An "
        "installed package's policy goes by its name.",
    )
    questions: Literal["schedule", "rounds", "auto"] = Field(
        default="auto",
        description="schedule: one order of questions, the same for all models. rounds: after two passes, "
        "each model's trials go where its own answers vary. auto: rounds up to 100 questions a task.",
    )
    run_ahead: Annotated[int | Literal["auto", "unlimited"], BeforeValidator(_run_ahead)] = Field(
        default="auto",
        description="Most trials of a model beyond its first unfinished one, which the decisions wait for: "
        "fewer spend less when some answers are slow, more take less time. auto: 128 or more; unlimited.",
    )


Treated: TypeAlias = Literal["wrong", "missing"]


class OnConfig(Section):
    """How an empty or refused answer counts: wrong (scored as it is), or missing (never scored)."""

    content_filter: Treated = Field(default="wrong", description="Withheld by a filter of the server.")
    tool_calls: Treated = Field(default="wrong", description="A call of a tool that the task does not offer.")
    reasoning: Treated = Field(default="wrong", description="Reasoning in a separate field and no text.")
    length: Treated = Field(default="wrong", description="The token limit came before any text.")
    empty: Treated = Field(default="wrong", description="No text, for no reason given.")
    mostly_empty: Literal["stop", "rank"] = Field(
        default="stop",
        description="A model with at least 95 % such answers among 20 or more: stop it unranked, or rank it.",
    )

    @property
    def missing(self) -> tuple[str, ...]:
        """The causes for which an answer counts as missing."""
        return tuple(name for name, value in self if value == "missing")


class RetryConfig(Section):
    """Retry policy of failed requests."""

    attempts: int = Field(default=6, ge=1, le=100, description="Attempts per trial.")
    max_seconds: float = Field(
        default=300.0, gt=0, description="Seconds after which a trial is not attempted again."
    )
    requeue: int = Field(
        default=1, ge=0, le=100, description="How often a trial without an answer is put back into the queue."
    )


class Decisions(Section):
    """How a session decides, for commands that have no config."""

    goal: Annotated[Goal, Field(discriminator="kind"), BeforeValidator(read_goal)] = RankingGoal()
    stopping: StoppingConfig = StoppingConfig()
    allocation: AllocationConfig = AllocationConfig()
