"""Everything a report says, from the run file alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from adaptive_eval.config.document import read_document
from adaptive_eval.core.results import Decision, PairResult, Results
from adaptive_eval.core.results_json import from_json
from adaptive_eval.errors import RunFileError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount, model_accounts, question_accounts
from adaptive_eval.views.examples import Examples, examples
from adaptive_eval.views.headline import headline
from adaptive_eval.views.missing import missing_warnings
from adaptive_eval.views.promises import Promises, promises
from adaptive_eval.views.stored import CONFIG, NAME, decision_from, started_at
from adaptive_eval.views.verdicts import model_order, pair_order, tied_groups

AS_RUN = "as run"
"""The name of the ranking that decided the run."""


@dataclass(frozen=True, slots=True)
class TimedDecision:
    """A decision and when (Unix time) it was made."""

    at: float
    decision: Decision


@dataclass(frozen=True, slots=True)
class Summary:
    """The content of a report."""

    name: str  # the run's name
    # unix times of the first start and of the last snapshot
    started: float
    updated: float
    elapsed: float  # seconds of running time, all sessions of the run together
    verdict: str  # the verdict in one sentence
    # the last results; models best first, pairs seen from their better model in that order
    results: Results
    ties: tuple[tuple[str, ...], ...]  # groups of models every pair of which was declared tied
    decisions: tuple[TimedDecision, ...]  # all decisions, oldest first
    models: tuple[ModelAccount, ...]  # in the order of the results
    questions: tuple[QuestionAccount, ...] | None  # none where scores are not simply the fraction correct
    promises: Promises  # what the statistics promise and do not
    stored: int  # outcomes in the run file, those not counted (yet) included
    # the run file's own description (config, versions, seed, hashes) without places on its machine
    meta: Mapping[str, str]
    # what the verdicts are about, as the stored config says it: these questions (``benchmark``) or those
    # they were drawn from (``population``); None without a config
    target: str | None = None
    # the same answers ranked by other rubrics and scorers, the latest of each name, after the run's own
    # ranking (``as run``); empty where there are none
    rankings: tuple[tuple[str, Results], ...] = ()
    examples: Examples | None = None  # a few answers; None where none were wanted

    @property
    def warnings(self) -> tuple[str, ...]:
        """The run's warnings, and which verdicts the missing trials could undo."""
        return (*self.results.warnings, *missing_warnings(self.results))

    @property
    def uncounted(self) -> int:
        """Stored outcomes that no figure counts.

        They came after the last snapshot, such as what a kill leaves behind, or wait for an earlier answer.
        """
        own = [line for line in self.results.models if line.state != "reference"]
        return max(0, self.stored - sum(line.trials + line.missing for line in own))


def summarise(reader: RunReader, *, examples_with: TargetLookup | None = None) -> Summary:
    """Read a run file and return the content of a report.

    With `examples_with`, which knows the expected answers, it has a few answers.
    """
    snapshot = reader.latest_snapshot()
    if snapshot is None:
        raise RunFileError(
            f"{reader.directory} has no results to report yet. Start or resume the run, and report when "
            "it has asked its first questions",
            code="run/no-results",
        )
    decisions = tuple(TimedDecision(record.at, decision_from(record.body)) for record in reader.decisions())
    results = _ordered(_as_called(from_json(snapshot.results), decisions))
    meta = reader.meta()
    target = _target(meta)
    started = started_at(meta)
    cells = reader.cells()
    accounts = model_accounts(reader, cells, results)
    questions = question_accounts(reader, cells, results)
    return Summary(
        name=meta.get(NAME) or reader.directory.name,
        started=started if started is not None else snapshot.at - snapshot.elapsed,
        updated=snapshot.at,
        elapsed=snapshot.elapsed,
        verdict=headline(results),
        results=results,
        ties=tied_groups(results),
        decisions=decisions,
        models=accounts,
        questions=questions,
        promises=promises(results, target),
        stored=reader.count(),
        meta=_without_places(meta),
        target=target,
        rankings=_rankings(reader, results),
        examples=examples(reader, accounts, questions, examples_with) if examples_with else None,
    )


def _rankings(reader: RunReader, results: Results) -> tuple[tuple[str, Results], ...]:
    latest = {record.name: record.body for record in reader.scorings()}
    # The answers of references are not rescored: the other models are compared among themselves.
    asked = tuple(line for line in results.models if line.state != "reference")
    names = {line.model for line in asked}
    own = [(name, from_json(body["standings"])) for name, body in latest.items()]
    own = [(name, found) for name, found in own if names == {line.model for line in found.models}]
    return ((AS_RUN, replace(results, models=asked)), *own) if own else ()


def _target(meta: Mapping[str, str]) -> str | None:
    config = read_document(meta.get(CONFIG, "")).data
    if not isinstance(config, dict):
        return None
    stopping = config.get("stopping")
    target = stopping.get("target") if isinstance(stopping, dict) else None
    return target if target in ("benchmark", "population") else "benchmark"


def _without_places(meta: Mapping[str, str]) -> dict[str, str]:
    """Leave out paths of the run's machine and tables of previous runs: reports are passed on."""
    shown = {key: value for key, value in meta.items() if key not in ("base_dir", "previous")}
    if "source" in shown:
        shown["source"] = PurePath(shown["source"]).name
    return shown


def _as_called(results: Results, decisions: Sequence[TimedDecision]) -> Results:
    """Give decided pairs the threshold that they had to reach, which has moved on since for other pairs."""
    # A model may have several verdicts by itself; the step tells them apart.
    thresholds = {
        (frozenset(one.decision.models), one.decision.step): one.decision.evidence["threshold"]
        for one in decisions
        if one.decision.kind == "pair" and "threshold" in one.decision.evidence
    }
    return replace(results, pairs=tuple(_with_threshold(pair, thresholds) for pair in results.pairs))


def _with_threshold(pair: PairResult, thresholds: Mapping[tuple[frozenset[str], int], float]) -> PairResult:
    if pair.verdict == "open" or pair.decided_at is None:
        return pair
    models = (pair.first, pair.second) if pair.kind == "pair" else (pair.first,)
    return replace(pair, threshold=thresholds.get((frozenset(models), pair.decided_at), pair.threshold))


def _ordered(results: Results) -> Results:
    return replace(results, models=model_order(results), pairs=pair_order(results))
