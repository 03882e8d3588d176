"""A run at one moment, ready to be shown: every view of a run is drawn from a :class:`RunView`.

Nothing here reads a clock or a file. :func:`run_view` turns a stored snapshot and the decisions so far into
the order in which people ask: who is ahead and how sure is it, what is open, what does it cost, is anything
broken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from adaptive_eval.core.results import (
    BudgetLine,
    Decision,
    ModelResult,
    PairResult,
    Results,
    StopVerdict,
)
from adaptive_eval.core.results_json import from_json
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import EndpointHealth, SnapshotRecord
from adaptive_eval.views.decisions import note_words
from adaptive_eval.views.headline import headline
from adaptive_eval.views.missing import missing_warnings
from adaptive_eval.views.outlook import Outlook, outlook
from adaptive_eval.views.verdicts import model_order, oriented, pair_order, rule_words

RunState: TypeAlias = Literal["waiting", "running", "stopped", "interrupted"]


@dataclass(frozen=True, slots=True)
class RunHeader:
    """The facts about a run that views need in addition to its snapshots."""

    name: str  # the run's name
    started: float | None = None  # unix time of the run's first start


@dataclass(frozen=True, slots=True)
class OpenPair:
    """A pair without a verdict."""

    pair: PairResult  # the pair, seen from the model that is ahead
    progress: float  # log-evidence over its log-threshold, in [0, 1]; 1 calls a winner
    # closeness to a tie, in [0, 1]; 1 calls a tie. None where no equivalence margin is set.
    tie: float | None

    @property
    def nearness(self) -> float:
        """The pair's progress to its nearest verdict, in [0, 1]."""
        return max(self.progress, self.tie or 0.0)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """One budget with its use."""

    line: BudgetLine  # what is spent, reserved, and the limit
    rate: float | None  # units spent per second of running time, None before anything is known
    # running time until the limit at this rate, if nothing changes; None without a limit or a rate
    seconds_left: float | None

    @property
    def fraction(self) -> float | None:
        """Spent over limit, None without a limit."""
        return self.line.spent / self.line.limit if self.line.limit else None


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything a view shows."""

    name: str  # the run's name
    # ``waiting``: nothing is stored yet; ``interrupted``: no process runs it and its goal is not reached
    state: RunState
    # in words; `headline` is the verdict in one sentence
    goal: str
    rule: str
    headline: str
    results: Results  # what the session knew
    # unix times of the first start and of this snapshot
    started: float | None = None
    at: float | None = None
    elapsed: float = 0.0  # seconds of running time
    models: tuple[ModelResult, ...] = ()  # the leaderboard, best first
    open_pairs: tuple[OpenPair, ...] = ()  # pairs without a verdict, nearest to one first
    # separated and tied pairs, seen from the better model, in leaderboard order
    decided_pairs: tuple[PairResult, ...] = ()
    budgets: tuple[BudgetUse, ...] = ()  # budgets in the session's order
    endpoints: tuple[EndpointHealth, ...] = ()  # health of every endpoint
    decisions: tuple[Decision, ...] = ()  # all decisions, oldest first
    warnings: tuple[str, ...] = ()  # what a reader must know: the session's warnings and notes on models
    # recent rates
    trials_per_second: float | None = None
    tokens_per_second: float | None = None
    # what the rest of the run will take; None where that cannot be said, or nothing is left
    outlook: Outlook | None = None

    @property
    def mark(self) -> tuple[object, ...]:
        """What differs between an earlier and a later view of a run."""
        return self.at, self.state, self.results.trials, len(self.decisions)

    @property
    def stop(self) -> StopVerdict | None:
        """Why the session stopped, None while it has not."""
        return self.results.stop


def run_view(
    header: RunHeader,
    snapshot: SnapshotRecord,
    decisions: Sequence[Decision] = (),
    *,
    previous: SnapshotRecord | None = None,
    alive: bool = True,
) -> RunView:
    """Return the view of a run at one snapshot.

    Examples
    --------
    >>> from adaptive_eval.core.results import Results
    >>> from adaptive_eval.core.results_json import to_json
    >>> nothing = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> view = run_view(RunHeader("demo"), SnapshotRecord(0.0, 0.0, 0, to_json(nothing)))
    >>> view.state, view.goal
    ('running', 'rank all models')
    """
    results = from_json(snapshot.results)
    then = (
        from_json(previous.results) if previous is not None and previous.elapsed < snapshot.elapsed else None
    )
    span = snapshot.elapsed - (previous.elapsed if previous is not None and then is not None else 0.0)
    open_pairs = [open_pair(pair) for pair in results.pairs if pair.verdict == "open" and pair.needed]
    trials_per_second = _rate(results.trials, then.trials if then else 0, span)
    return RunView(
        name=header.name,
        state=_state(results, alive),
        goal=results.goal,
        rule=rule_words(results),
        headline=headline(results),
        started=header.started,
        at=snapshot.at,
        elapsed=snapshot.elapsed,
        results=results,
        models=model_order(results),
        open_pairs=tuple(sorted(open_pairs, key=lambda one: -one.nearness)),
        decided_pairs=tuple(pair for pair in pair_order(results) if pair.verdict != "open"),
        budgets=tuple(budget_use(line, then, span) for line in results.budgets),
        endpoints=tuple(snapshot.endpoints),
        decisions=tuple(decisions),
        warnings=_warnings(results),
        trials_per_second=trials_per_second,
        tokens_per_second=_rate(results.tokens, then.tokens if then else 0, span),
        outlook=None if results.stop is not None else outlook(results, trials_per_second),
    )


def waiting_view(header: RunHeader) -> RunView:
    """Return the view of a run that has not stored anything yet."""
    nothing = Results("", "", 0.0, "", None, 0, (), (), (), 0, None)
    return RunView(
        name=header.name,
        state="waiting",
        goal="",
        rule="",
        headline="Waiting for the first snapshot of the run.",
        results=nothing,
        started=header.started,
    )


def open_pair(pair: PairResult) -> OpenPair:
    """Return an open pair with its progress, seen from the model that is ahead."""
    return OpenPair(
        oriented(pair), evidence_progress(pair.evidence, pair.threshold), tie_progress(pair.tie_margin)
    )


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
    return None if tie_margin is None or math.isnan(tie_margin) else min(1.0, max(0.0, tie_margin))


def budget_use(line: BudgetLine, then: Results | None, span: float) -> BudgetUse:
    """Return a budget with its rate since `then`, `span` seconds ago (the start of the run for None)."""
    before = 0.0
    if then is not None:
        same = (old.spent for old in then.budgets if _of(old) == _of(line))
        before = next(same, 0.0)
    rate = 1.0 if line.name == "wall_clock" else _rate(line.spent, before, span)
    left = None
    if line.limit is not None and rate is not None and rate > 0:
        left = max(0.0, line.limit - line.spent) / rate
    return BudgetUse(line, rate, left)


def _of(line: BudgetLine) -> tuple[str, str, str]:
    return line.name, line.scope, line.owner


def _state(results: Results, alive: bool) -> RunState:
    if results.stop is not None:
        return "interrupted" if results.stop.reason == "interrupted" else "stopped"
    return "running" if alive else "interrupted"


def _warnings(results: Results) -> tuple[str, ...]:
    # The note of a reference says where its results come from: nothing to warn of.
    notes = [
        Coded("warning/model", f"{line.model}: {note}")
        for line in results.models
        if line.state != "reference" and (note := note_words(line, results))
    ]
    return (*results.warnings, *missing_warnings(results), *notes)


def _rate(now: float, before: float, span: float) -> float | None:
    return max(0.0, now - before) / span if span > 0 else None
