"""A run at one moment, frozen: every view is drawn from a :class:`RunSummary`.

Nothing here reads a clock or a file: :func:`summary_at` makes a summary of a stored snapshot and the
decisions so far, :mod:`adaptive_eval.views.reading` reads both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeAlias

from adaptive_eval.core.results import (
    BudgetLine,
    Decision,
    PairResult,
    Range,
    Results,
    RunForecast,
    StopVerdict,
    from_json,
)
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import EndpointHealth, SnapshotRecord
from adaptive_eval.views.budgets import BudgetUse
from adaptive_eval.views.details import Details
from adaptive_eval.views.headline import headline
from adaptive_eval.views.inert import distinct_labels
from adaptive_eval.views.sentences import note_words
from adaptive_eval.views.verdicts import model_order, open_pairs, pair_order

RunState: TypeAlias = Literal["waiting", "running", "stopped", "interrupted"]
"""``waiting``: nothing is stored yet; ``interrupted``: no process runs it and its goal is not reached."""


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The facts about a run that views need in addition to its snapshots."""

    name: str  # the run's name
    started: float | None = None  # unix time of the run's first start


@dataclass(frozen=True, slots=True)
class OpenPair:
    """A pair without a verdict."""

    pair: PairResult  # the pair, in its own direction
    progress: float  # log-evidence over its log-threshold, in [0, 1]; 1 calls a winner
    # closeness to a tie, in [0, 1]; 1 calls a tie. None without an equivalence margin.
    tie: float | None

    @property
    def nearness(self) -> float:
        """The pair's progress to its nearest verdict, in [0, 1]."""
        return max(self.progress, self.tie or 0.0)


@dataclass(frozen=True, slots=True)
class SpendingRates:
    """What has been spent per second of recent running time; None before anything is known."""

    trials: float | None = None
    tokens: float | None = None
    budgets: tuple[BudgetUse, ...] = ()  # in the session's order


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast and how long it lasts."""

    forecast: RunForecast  # further trials, tokens and USD
    seconds: Range | None  # further running time at the present rate; None where there is no rate


def outlook(results: Results, trials_per_second: float | None) -> Outlook | None:
    """Return the forecast; None if the session has none.

    Examples
    --------
    >>> from dataclasses import replace
    >>> nothing = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> more = RunForecast(0.9, Range(50, 100, 400), Range(5e3, 1e4, 4e4), None, ())
    >>> outlook(replace(nothing, forecast=more), 10.0).seconds
    Range(low=5.0, median=10.0, high=40.0)
    """
    forecast = results.forecast
    if forecast is None:
        return None
    seconds = None
    if trials_per_second is not None and trials_per_second > 0:
        trials = forecast.trials
        seconds = Range(*(value / trials_per_second for value in (trials.low, trials.median, trials.high)))
    return Outlook(forecast, seconds)


@dataclass(frozen=True)
class RunSummary:
    """Everything that the views of a run show."""

    name: str  # the run's name
    state: RunState
    results: Results  # models best first, pairs seen from their better model in that order
    # unix times of the first start and of the snapshot
    started: float | None = None
    updated: float | None = None
    elapsed: float = 0.0  # seconds of running time, all sessions of the run together
    decisions: tuple[Decision, ...] = ()  # all decisions, oldest first
    times: tuple[float, ...] = ()  # when they were made (Unix time), as far as that is stored
    endpoints: tuple[EndpointHealth, ...] = ()  # health of every endpoint
    rates: SpendingRates = SpendingRates()
    details: Details | None = None  # what only the whole run file tells; None while it has not been read

    @property
    def stop(self) -> StopVerdict | None:
        """Why the session stopped, None while it has not."""
        return self.results.stop

    @property
    def mark(self) -> tuple[object, ...]:
        """What differs between an earlier and a later summary of a run."""
        return self.updated, self.state, self.results.trials, len(self.decisions)

    @property
    def whole_details(self) -> Details:
        """The details, which have to have been read."""
        assert self.details is not None
        return self.details

    @cached_property
    def headline(self) -> str:
        """The verdict in one sentence."""
        if self.state == "waiting":
            return "Waiting for the first snapshot of the run."
        return headline(self.results)

    def labels(self, width: int) -> Mapping[str, str]:
        """Return a label of at most so many cells for every model."""
        return distinct_labels((line.model for line in self.results.models), width)

    def headline_within(self, width: int = 30) -> str:
        """Return the verdict with the labels of the models in place of their names."""
        if self.results.models:
            return headline(self.results, self.labels(width))
        return self.headline

    @cached_property
    def open_pairs(self) -> tuple[OpenPair, ...]:
        """The pairs that the goal needs and that have no verdict, nearest to one first."""
        return tuple(sorted(map(open_pair, open_pairs(self.results)), key=lambda one: -one.nearness))

    @cached_property
    def decided_pairs(self) -> tuple[PairResult, ...]:
        """The separated and tied pairs, seen from the better model, in the order of the results."""
        return tuple(pair for pair in self.results.pairs if pair.verdict != "open")

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know: the session's warnings, verdicts that lost answers could turn, notes."""
        # The note of a reference says where its results come from: nothing to warn of.
        notes = [
            Coded("warning/model", f"{line.model}: {note}")
            for line in self.results.models
            if line.state != "reference" and (note := note_words(line, self.results))
        ]
        kept = []
        for text in self.results.warnings:
            is_in_a_note = any(note.startswith(text) for note in notes)
            if not is_in_a_note:
                kept.append(text)
        return (*kept, *notes)

    @property
    def warnings_by_kind(self) -> tuple[list[str], list[str]]:
        """The first warning of each kind, and the others, which say the same of other models."""
        first: dict[str, str] = {}
        others = []
        for text in self.warnings:
            code = getattr(text, "code", "warning/model")
            kind = code
            if code == "warning/model":
                kind = text.partition(": ")[2]
            if first.setdefault(kind, text) is not text:
                others.append(text)
        return list(first.values()), others

    @cached_property
    def outlook(self) -> Outlook | None:
        """What the rest of the run will take; None if that is unknown or nothing is left."""
        if self.stop is not None:
            return None
        return outlook(self.results, self.rates.trials)

    @property
    def uncounted(self) -> int:
        """Stored outcomes in no figure: after the last snapshot, or waiting for an earlier answer."""
        asked = [line for line in self.results.models if line.state != "reference"]
        return max(0, self.whole_details.stored - sum(line.counted_steps for line in asked))


def summary_at(
    header: RunHeader,
    snapshot: SnapshotRecord,
    decisions: Sequence[Decision] = (),
    *,
    times: Sequence[float] = (),
    previous: SnapshotRecord | None = None,
    alive: bool = True,
) -> RunSummary:
    """Return the summary of a run at one snapshot; rates are taken from the `previous` one.

    Examples
    --------
    >>> from adaptive_eval.core.results import to_json
    >>> nothing = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> summary = summary_at(RunHeader("demo"), SnapshotRecord(0.0, 0.0, 0, to_json(nothing)))
    >>> summary.state, summary.headline
    ('running', 'No model has been run.')
    """
    results = _ordered(from_json(snapshot.results), decisions)
    return RunSummary(
        name=header.name,
        state=_state(results, alive),
        results=results,
        started=header.started,
        updated=snapshot.at,
        elapsed=snapshot.elapsed,
        decisions=tuple(decisions),
        times=tuple(times),
        endpoints=tuple(snapshot.endpoints),
        rates=_rates(results, snapshot, previous),
    )


def waiting_summary(header: RunHeader) -> RunSummary:
    """Return the summary of a run that has not stored anything yet."""
    nothing = Results("", "", 0.0, "", None, 0, (), (), (), 0, None)
    return RunSummary(header.name, "waiting", nothing, started=header.started)


def open_pair(pair: PairResult) -> OpenPair:
    """Return an open pair with its progress."""
    return OpenPair(pair, evidence_progress(pair.evidence, pair.threshold), tie_progress(pair.tie_margin))


def evidence_progress(evidence: float, threshold: float) -> float:
    """Return log-evidence as a share of its log-threshold, clipped to [0, 1].

    Examples
    --------
    >>> evidence_progress(2.0, 4.0), evidence_progress(-1.0, 4.0), evidence_progress(9.0, 4.0)
    (0.5, 0.0, 1.0)
    """
    if math.isnan(evidence) or math.isnan(threshold):
        return 0.0
    if evidence >= threshold:
        return 1.0
    if evidence <= 0.0 or math.isinf(threshold):
        return 0.0
    return evidence / threshold


def tie_progress(tie_margin: float | None) -> float | None:
    """Return how close a pair is to a tie, clipped to [0, 1]; None without a margin."""
    if tie_margin is None or math.isnan(tie_margin):
        return None
    return min(1.0, max(0.0, tie_margin))


def budget_use(line: BudgetLine, spent_before: float, span: float) -> BudgetUse:
    """Return a budget with its rate over the last `span` seconds, before which so much was spent."""
    rate = 1.0 if line.name == "wall_clock" else _rate(line.spent, spent_before, span)
    left = None
    if line.limit is not None and rate is not None and rate > 0:
        left = max(0.0, line.limit - line.spent) / rate
    return BudgetUse(line, rate, left)


def _rates(results: Results, snapshot: SnapshotRecord, previous: SnapshotRecord | None) -> SpendingRates:
    """Return the rates between two snapshots, or since the start of the run."""
    trials, tokens, span = 0, 0, snapshot.elapsed
    spent: dict[tuple[str, str, str], float] = {}
    if previous is not None and previous.elapsed < snapshot.elapsed:
        then = previous.results
        trials = then["trials"]
        span = snapshot.elapsed - previous.elapsed
        tokens = sum(line["prompt_tokens"] + line["completion_tokens"] for line in then["models"])
        spent = {(one["name"], one["scope"], one["owner"]): one["spent"] for one in then["budgets"]}
    budgets = [
        budget_use(line, spent.get((line.name, line.scope, line.owner), 0.0), span)
        for line in results.budgets
    ]
    return SpendingRates(
        _rate(results.trials, trials, span), _rate(results.tokens, tokens, span), tuple(budgets)
    )


def _rate(now: float, before: float, span: float) -> float | None:
    if span > 0:
        return max(0.0, now - before) / span
    return None


def _state(results: Results, alive: bool) -> RunState:
    if results.stop is not None:
        if results.stop.reason == "interrupted":
            return "interrupted"
        return "stopped"
    if alive:
        return "running"
    return "interrupted"


def _ordered(results: Results, decisions: Sequence[Decision]) -> Results:
    """Order models and pairs, and give decided pairs the threshold that they had to reach.

    The threshold has moved on since for other pairs. A model may have several verdicts by itself; the step
    tells them apart.
    """
    thresholds = {
        (frozenset(one.models), one.step): one.evidence["threshold"]
        for one in decisions
        if one.kind == "pair" and "threshold" in one.evidence
    }
    pairs = pair_order(results)
    if thresholds:
        pairs = tuple(_as_called(pair, thresholds) for pair in pairs)
    return replace(results, models=model_order(results), pairs=pairs)


def _as_called(pair: PairResult, thresholds: Mapping[tuple[frozenset[str], int], float]) -> PairResult:
    if pair.verdict == "open" or pair.decided_at is None:
        return pair
    of_two = pair.kind in ("pair", "not-worse")
    models = (pair.first, pair.second) if of_two else (pair.first,)
    called = thresholds.get((frozenset(models), pair.decided_at), pair.threshold)
    if called == pair.threshold:
        return pair
    return replace(pair, threshold=called)
