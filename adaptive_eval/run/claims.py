"""Claims about models, tested on the stored answers of a run: they hold, fail, or are undecided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from adaptive_eval.build.changed_settings import stored_changes
from adaptive_eval.build.replay import Replay, replay, replay_log, replayed
from adaptive_eval.core.discarded import discard_warnings
from adaptive_eval.core.forecast import HORIZON_PASSES, LIKELY, forecast
from adaptive_eval.core.goals import AllDecided, Goal
from adaptive_eval.core.label_record import LABELS
from adaptive_eval.core.results import FIXED, PairResult, Results, RunForecast
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import AllocationSpec, GoalSpec, SessionSpec
from adaptive_eval.errors import Coded, UsageError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Missing, TrialOutcome
from adaptive_eval.views.budgets import likely_trials
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import signed, trimmed
from adaptive_eval.views.reading import disagreeing
from adaptive_eval.views.verdicts import claim_words, target_words
from scorio.sequential.parts import Contrasts, Levels, family

if TYPE_CHECKING:
    from adaptive_eval.views.run_changes import RunChanges

Place: TypeAlias = str | PathLike[str]


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim and its verdict.

    Parameters
    ----------
    holds : bool or None
        None when the trials so far cannot tell.
    text : str
        The verdict in words, with the interval behind it.
    """

    holds: bool | None
    text: str


@dataclass(frozen=True, slots=True)
class NotWorse:
    """The claim that a model is not worse than another by more than a margin, in score units."""

    model: str
    than: str
    margin: float | None = None  # that of the run's goal, or its equivalence margin


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The claim that a model's score is at least so much."""

    model: str
    value: float


Asked: TypeAlias = NotWorse | AtLeast


def not_worse(run: Place, model: str, than: str, margin: float | None = None) -> Claim:
    """Say whether a model is not worse than another by more than a margin.

    Parameters
    ----------
    run : path
        The directory of a run.
    model, than : str
        The model in question, and the one it is compared with.
    margin : float, optional
        In score units, above 0. Default: that of the run's goal, or its equivalence margin.

    Raises
    ------
    UsageError
        If the run does not know a model, if there is no margin or it is not between 0 and the range of
        scores, or if the run's rule has no such claim.
    """
    return check(run, [NotWorse(model, than, margin)])[0]


def at_least(run: Place, model: str, value: float) -> Claim:
    """Say whether a model's score is at least `value`, by the evidence of the goal threshold.

    Parameters
    ----------
    run : path
        The directory of a run.
    model : str
        The model.
    value : float
        In score units.

    Raises
    ------
    UsageError
        If the run does not know the model, or the value is no score.
    """
    return check(run, [AtLeast(model, value)])[0]


def check(run: Place, asked: Sequence[Asked] = ()) -> list[Claim]:
    """Return the verdicts of claims on all stored answers of a run, which share its error rate by Holm.

    Without any, those of the run's goals not-worse and threshold are checked. Answers are replayed in the
    order of the log, those after a verdict on something else too. Of imported results the stored intervals
    decide.

    Raises
    ------
    UsageError
        As :func:`not_worse`; if there is nothing to check.
    """
    with RunReader(Path(run)) as reader:
        reader.require_undamaged(whole=True)
        made = replay(reader)
        spec = made.session.spec
        claims = [_complete(spec, claim) for claim in asked or _claims_of(spec)]
        if not claims:
            raise UsageError("say what is to be checked: --not-worse NEW:OLD, or --at-least MODEL:SCORE")
        if IMPORTED in reader.meta() or spec.labels is not None:
            results = _shared(made, reader, len(claims))
            return [_with_discards(_of_imported(results, one), one, made.session) for one in claims]
        if spec.stopping.rule != "anytime":
            raise UsageError(
                f"the run is decided by the rule {spec.stopping.rule}, which has no evidence for or against "
                "claims; continue it with -o stopping.rule=anytime"
            )
        pairs = [claim for claim in claims if isinstance(claim, NotWorse)]
        scores = [claim for claim in claims if isinstance(claim, AtLeast)]
        found = _verdicts(made, reader, pairs, len(claims))
        found |= _verdicts(made, reader, scores, len(claims))
    return [found[claim] for claim in claims]


def _claims_of(spec: SessionSpec) -> list[Asked]:
    """Return the claims that a run's goal makes of the models that it asks, and of its references."""
    found: list[Asked] = []
    for goal in spec.goal.parts:
        if goal.kind == "not-worse":
            asked = [model.name for model in spec.models]
            names = spec.names if goal.model in asked else asked
            found += [NotWorse(name, goal.model, goal.margin) for name in names if name != goal.model]
        if goal.kind == "threshold":
            found += [AtLeast(model.name, goal.value) for model in spec.models]
    return found


def _complete(spec: SessionSpec, claim: Asked) -> Asked:
    """Return a claim that can be checked, with its margin."""
    (origin, unit) = spec.scale
    models = [model.name for model in spec.models]
    scale = f"scores of this run go from {origin:g} to {origin + unit:g}"
    if isinstance(claim, NotWorse):
        names = [claim.model, claim.than]
    else:
        names = [claim.model]
    for name in names:
        if name not in spec.names:
            raise UsageError(f"there is no model {name!r}; there are {', '.join(map(inert, spec.names))}")
    if isinstance(claim, AtLeast):
        if not (isfinite(claim.value) and origin <= claim.value <= origin + unit):
            raise UsageError(f"{claim.model} is held against {claim.value:g}: give a score; {scale}")
        if claim.model not in models:
            raise UsageError(f"{claim.model} is a reference; check the run that asked it")
        return claim
    if claim.model == claim.than or not {claim.model, claim.than} & set(models):
        raise UsageError(f"{claim.model} and {claim.than}: name two models, of which this run asks one")
    if claim.margin is None:
        margin = _margin(spec, claim.than)
    else:
        margin = claim.margin
    if margin is None:
        raise UsageError("by how much may it be worse? Give --margin, in score units, above 0")
    if not 0.0 < margin < unit:
        raise UsageError(f"margin is {margin:g}: give a difference of scores, above 0; {scale}")
    return replace(claim, margin=margin)


def _margin(spec: SessionSpec, than: str) -> float | None:
    """Return the margin that the run names: of its goal not-worse, else of ties."""
    goals = [goal for goal in spec.goal.parts if goal.kind == "not-worse" and goal.model == than]
    return next((goal.margin for goal in goals if goal.margin is not None), spec.stopping.equivalence)


def _begun(
    log: Iterable[Sequence[TrialOutcome | Missing]], until: int
) -> Iterator[Sequence[TrialOutcome | Missing]]:
    """Yield the outcomes before this place of their models' sequences."""
    for batch in log:
        yield [one for one in batch if one.key.index < until]


def _verdicts(made: Replay, reader: RunReader, claims: Sequence[Asked], together: int) -> dict[Asked, Claim]:
    """Replay a run for claims of one kind, `together` with which so many share the level."""
    if not claims:
        return {}
    session = _session(made.session.spec, claims, together)
    states = made.session.states
    stopped = made.results.stop
    if stopped is not None and stopped.reason == "unusable":
        session.end("unusable")  # answers that could not be scored decide nothing
    for model in states.unusable:
        session.stop_model(session.spec.models[model].name, states.stopped.get(model, ""), unusable=True)
    log: Iterable[Sequence[TrialOutcome | Missing]] = reader.log()
    if isinstance(claims[0], AtLeast):
        # In rounds questions are asked unequally often, which the bets on a score cannot read.
        until = Session(made.session.spec).board.run_sequence.shared
        log = _begun(log, until)
    replay_log(session, reader, stored_changes(reader.meta()), log)
    if session.stopped is None:
        session.end("interrupted")
    results = session.results()
    comparison = session.comparison
    comparison.contrasts = replace(comparison.contrasts, stops=True)
    ahead = forecast(comparison, session.budget, session.states, ended=True)
    found = {}
    for claim, pair in zip(claims, results.pairs, strict=True):
        found[claim] = _with_discards(_claim(claim, pair, results, ahead), claim, session)
    return found


def _session(spec: SessionSpec, claims: Sequence[Asked], together: int) -> Session:
    """Return a session that decides claims, and does not stop."""
    rows = np.arange(len(claims))
    (origin, unit) = spec.scale
    index = {name: number for number, name in enumerate(spec.names)}
    first = np.array([index[claim.model] for claim in claims])
    second = np.full(rows.size, Contrasts.SINGLE)
    value = np.zeros(rows.size)
    margin = np.full(rows.size, np.nan)
    for row, claim in enumerate(claims):
        if isinstance(claim, AtLeast):
            value[row] = (claim.value - origin) / unit
        else:
            second[row] = index[claim.than]
            margin[row] = (claim.margin or 0.0) / unit
    scores = isinstance(claims[0], AtLeast)
    if scores and any(spec.own_rounds):
        spec = replace(spec, allocation=AllocationSpec(spec.allocation.models, "schedule"))
    if scores:  # a score near the number is no verdict on the claim
        goal_of_run = _with_margin(spec.goal, spec.stopping.equivalence)
        spec = replace(spec, goal=goal_of_run, stopping=replace(spec.stopping, equivalence=None))
    goal = Goal(
        first, second, value, np.full(rows.size, np.nan), margin, AllDecided(rows, "claims"), stops=False
    )
    alone = spec.levels(spec.rule(), together, together)
    levels = Levels(family("holm"), family("pair"), together, alone.level, alone.alpha, claimed=together)
    return Session(spec, asked=(goal, levels))


def _with_margin(goal: GoalSpec, equivalence: float | None) -> GoalSpec:
    """Return a goal whose claims have the margin of ties as their own, where they name none."""
    if goal.kind == "not-worse" and goal.margin is None:
        return replace(goal, margin=equivalence)
    return replace(goal, goals=tuple(_with_margin(part, equivalence) for part in goal.goals))


def _claim(claim: Asked, pair: PairResult, results: Results, ahead: RunForecast | None) -> Claim:
    """Return a claim with its verdict in words."""
    at = f"{target_words(results)} at {round(100 * results.confidence, 6):g} %"
    if isinstance(claim, NotWorse):
        assert claim.margin is not None
        words = f"{claim_words(claim.model, claim.than, pair.verdict, claim.margin)} {at}"
        goal = f"{{kind: not-worse, model: {claim.than}, margin: {trimmed(claim.margin)}}}"
    else:
        side = {"better": "scores at least", "worse": "scores less than"}.get(pair.verdict)
        if side is None:
            start = f"it is open whether {claim.model} scores at least"
        else:
            start = f"{claim.model} {side}"
        words = f"{start} {trimmed(claim.value)} {at}"
        goal = f"threshold={trimmed(claim.value)}"
    low, high = pair.difference_low, pair.difference_high
    if pair.difference is not None and low is not None and high is not None:
        what = "difference"
        if not isinstance(claim, NotWorse):
            what = f"score less {trimmed(claim.value)}"
        words += f": the {what} is {signed(pair.difference)} [{signed(low)}, {signed(high)}]"
        words += f" after {pair.trials_each:,} trials each on {pair.questions:,} questions"
    if pair.verdict != "open":
        return Claim(pair.verdict == "better", words)
    return Claim(None, f"{words}. A run that ends for another goal often cannot tell; {_advice(goal, ahead)}")


def _advice(goal: str, ahead: RunForecast | None) -> str:
    """Say which goal and budget would decide."""
    settings = f"continue it with -o 'goal={goal}'"
    if ahead is None:
        return f"{settings}: it ends as soon as the claim holds or fails"
    likely = likely_trials(ahead)
    if likely is None:
        return f"the goal {goal} would, but no budget for up to {HORIZON_PASSES:,} passes makes it likely"
    return (
        f"{settings} -o budget.trials={likely.trials:.0f}, which decides it with a chance of about "
        f"{100 * likely.resolved:.0f} % (at least {100 * LIKELY:.0f} % is advised)"
    )


def _with_discards(claim: Claim, asked: Asked, session: Session) -> Claim:
    """Return a claim that tells which draws of its models were given up, why, and what that could change."""
    if isinstance(asked, NotWorse):
        names = [asked.model, asked.than]
    else:
        names = [asked.model]
    told = discard_warnings(session.comparison, session.states, names)
    return replace(claim, text=". ".join([claim.text, *told]))


STORED_RESULTS = "warning/stored-results"
"""Code of the warning that the stored results are not those that the trials lead to."""


def results_of(run: Place) -> Results:
    """Return the results of the run in a directory, made again from its trials.

    The first of its warnings says so if the stored results are others.

    Raises
    ------
    RunFileError
        If there is no run, or it has no results yet.
    """
    with RunReader(Path(run)) as reader:
        reader.require_undamaged(whole=True)
        made = replay(reader)
    if not made.disagreements:
        return made.results
    told = Coded(STORED_RESULTS, disagreeing(made.disagreements))
    return replace(made.results, warnings=(told, *made.results.warnings))


def compare_runs(before: Place, after: Place) -> RunChanges:
    """Return which verdicts have changed between two runs, and by how much the scores differ.

    Raises
    ------
    RunFileError
        If there is no run in one of the directories.
    """
    from adaptive_eval.views.reading import summarise
    from adaptive_eval.views.run_changes import compare

    with RunReader(Path(before)) as one, RunReader(Path(after)) as two:
        return compare(summarise(one, replay=replayed), summarise(two, replay=replayed))


_BY_INTERVALS: Mapping[str, str] = {
    FIXED: " if the number of answers was fixed before anybody looked",
    LABELS: " by labels",
}
"""Rules whose claims are decided by intervals, and what these rest on."""


def _shared(made: Replay, reader: RunReader, claims: int) -> Results:
    """Return the results of one look, or by labels, with intervals that share the level among so many claims.

    A claim is decided by one end of a two-sided interval, so that two claims have room in it as it is.
    """
    if made.results.rule not in _BY_INTERVALS or claims <= 2:
        return made.results
    spec = made.session.spec
    alone = 1.0 - 2.0 * (1.0 - spec.stopping.confidence) / claims
    session = Session(replace(spec, stopping=replace(spec.stopping, confidence=alone)))
    replay_log(session, reader, stored_changes(reader.meta()), reader.log())
    session.end("interrupted")
    return replace(session.results(), confidence=made.results.confidence)


def _of_imported(results: Results, claim: Asked) -> Claim:
    """Decide a claim by an interval of an imported run, or by labels, under the condition of its rule."""
    condition = _BY_INTERVALS.get(results.rule, "")
    at = f"at {round(100 * results.confidence, 6):g} %{condition}"
    if isinstance(claim, AtLeast):
        line = next((one for one in results.models if one.model == claim.model), None)
        ends = None
        if line is not None:
            ends = (line.score_low, line.score_high)
        least = claim.value
        words = f"{claim.model} scores at least {trimmed(claim.value)}"
    else:
        ends = _difference(results, claim)
        least = -(claim.margin or 0.0)
        words = f"{claim.model} is not worse than {claim.than} by more than {trimmed(-least)}"
    if ends is None:
        names = ", ".join(line.model for line in results.models)
        raise UsageError(f"the run does not know or compare this: {words}; its models are {names}")
    low, high = ends
    if low is None or high is None:
        return Claim(None, f"cannot tell: {words} {at}: there are no answers")
    shown = f"{words} {at}: it lies in [{low:+.3f}, {high:+.3f}]"
    if low >= least:
        return Claim(True, shown)
    if high < least:
        return Claim(False, f"not so: {shown}")
    return Claim(None, f"cannot tell: {shown}")


def _difference(results: Results, claim: NotWorse) -> tuple[float | None, float | None] | None:
    """Return the interval of a difference; None if the run does not compare the two."""
    for pair in results.pairs:
        low, high = pair.difference_low, pair.difference_high
        if (pair.first, pair.second) == (claim.model, claim.than):
            return low, high
        if (pair.first, pair.second) == (claim.than, claim.model):
            if low is None or high is None:
                return (None, None)
            return (-high, -low)
    return None
