"""The changes from one run to another."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from adaptive_eval.config.run_config import difference
from adaptive_eval.core.results import ModelResult, PairResult
from adaptive_eval.views.numbers import trimmed
from adaptive_eval.views.summary import RunSummary
from adaptive_eval.views.verdicts import flipped

PairKind: TypeAlias = Literal[
    "same", "settled", "reopened", "reversed", "changed", "only_before", "only_after"
]
"""``settled``: open, then decided; ``changed``: separated, then tied, or the other way round."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One model of either run."""

    model: str  # its name
    # its line in each run; None where it is not in it
    before: ModelResult | None
    after: ModelResult | None
    # score after minus score before; None where the scores cannot be compared
    difference: float | None = None
    # interval that holds the true difference with the probability :attr:`Comparison.confidence`
    difference_low: float | None = None
    difference_high: float | None = None

    @property
    def direction(self) -> Literal["higher", "lower", "unknown"]:
        """The direction of the change by its interval; ``unknown`` if it holds 0 or there is none."""
        if self.difference_low is not None and self.difference_low > 0:
            return "higher"
        if self.difference_high is not None and self.difference_high < 0:
            return "lower"
        return "unknown"


@dataclass(frozen=True, slots=True)
class PairChange:
    """One pair of either run, seen from the same model in both."""

    first: str
    second: str
    before: PairResult | None
    after: PairResult | None
    kind: PairKind


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The changes from one run to another."""

    # the runs
    before: RunSummary
    after: RunSummary
    differences: tuple[str, ...]  # what the runs ask or do differently, in words
    # whether both asked the same questions in the same way; None where the run files do not say
    comparable: bool | None
    # at least this is the probability that the interval of one model's difference holds it
    confidence: float
    models: tuple[ModelChange, ...]  # in the order of the later run, then those of the earlier one alone
    pairs: tuple[PairChange, ...]  # in the same order

    def counts(self) -> Counter[PairKind]:
        """Return how many pairs there are of each kind."""
        return Counter(pair.kind for pair in self.pairs)


def compare(before: RunSummary, after: RunSummary) -> RunChanges:
    """Compare two runs.

    The interval of a difference of scores spans from the lower end after minus the upper end before to the
    opposite. It misses only if one of the two anytime intervals misses, so whatever the runs have in
    common, and whenever they stopped, it holds with 1 minus the sum of both error rates (Boole's inequality).
    """
    differences, comparable = _differences(before, after)
    one = {line.model: line for line in before.results.models}
    two = {line.model: line for line in after.results.models}
    errors = (1 - before.results.confidence) + (1 - after.results.confidence)
    return RunChanges(
        before=before,
        after=after,
        differences=differences,
        comparable=comparable,
        confidence=max(0.0, 1 - errors),
        models=tuple(
            _model(name, one.get(name), two.get(name), comparable is not False) for name in {**two, **one}
        ),
        pairs=_pairs(before, after),
    )


def _model(name: str, before: ModelResult | None, after: ModelResult | None, comparable: bool) -> ModelChange:
    change = ModelChange(name, before, after)
    if before is None or after is None or before.score is None or after.score is None or not comparable:
        return change
    if "reference" in (before.state, after.state):
        return change  # its answers are those of an earlier run, of the other run maybe
    change = replace(change, difference=after.score - before.score)
    if (
        before.score_low is None
        or before.score_high is None
        or after.score_low is None
        or after.score_high is None
    ):
        return change
    return replace(
        change,
        difference_low=after.score_low - before.score_high,
        difference_high=after.score_high - before.score_low,
    )


def _pairs(before: RunSummary, after: RunSummary) -> tuple[PairChange, ...]:
    one = {pair.key: pair for pair in before.results.pairs}
    two = {pair.key: pair for pair in after.results.pairs}
    changes = []
    for key in {**two, **one}:
        old, new = one.get(key), two.get(key)
        seen = new or old
        assert seen is not None
        if old is not None and old.first != seen.first:
            old = flipped(old)
        changes.append(PairChange(seen.first, seen.second, old, new, _kind(old, new)))
    return tuple(changes)


def _kind(before: PairResult | None, after: PairResult | None) -> PairKind:
    if before is None or after is None:
        if before is None:
            return "only_after"
        return "only_before"
    if before.verdict == after.verdict:
        return "same"
    if "open" in (before.verdict, after.verdict):
        if before.verdict == "open":
            return "settled"
        return "reopened"
    if "tie" in (before.verdict, after.verdict):
        return "changed"
    return "reversed"


def _differences(before: RunSummary, after: RunSummary) -> tuple[tuple[str, ...], bool | None]:
    """Return what differs in words, and whether questions and scoring are the same."""
    one = before.whole_details.entry("identity")
    two = after.whole_details.entry("identity")
    scoring = before.whole_details.entry("scoring"), after.whole_details.entry("scoring")
    known = one is not None and two is not None and None not in scoring
    asked = before.whole_details.tasks or {}, after.whole_details.tasks or {}
    whole = {**(one or {}), "tasks": asked[0]}, {**(two or {}), "tasks": asked[1]}
    if known:
        words = difference(*whole)
    else:
        words = []
    tasks = difference({"tasks": asked[0]}, {"tasks": asked[1]})
    if known and scoring[0] != scoring[1]:
        words.append("the scorer or rubric is another")
    names = ("goal", "rule", "confidence", "family", "equivalence", "ties")
    settings = [(name, getattr(before.results, name), getattr(after.results, name)) for name in names]
    rules = [
        f"{name} was {_value(old)} and is now {_value(new)}"
        for name, old, new in (*settings, ("target", before.whole_details.target, after.whole_details.target))
        if old != new
    ]
    same = (
        not tasks and scoring[0] == scoring[1] and before.whole_details.target == after.whole_details.target
    )
    old, new = before.results.scale, after.results.scale
    if old is not None and new is not None and old != new:
        words.append("scores went from {:g} to {:g} and now go from {:g} to {:g}".format(*old, *new))
        return (*words, *rules), False
    return (*words, *rules), same if known else None


def _value(value: str | float | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return trimmed(value)
