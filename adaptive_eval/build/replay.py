"""The results of a stored run made again from its trials, and where the stored results say otherwise.

A run file holds the log of trials, each with its checksum, and what was concluded from them. Whatever claims
something about a run makes the conclusions again here, and compares the stored ones with them. Nothing that
the file names is imported or opened: the file itself describes the session.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import isclose
from typing import Any

from adaptive_eval.build.changed_settings import ChangedSetting, change_warnings, stored_changes
from adaptive_eval.build.previous_runs import META as PREVIOUS
from adaptive_eval.build.previous_runs import Previous
from adaptive_eval.core.label_record import LABELS, LabelRecord
from adaptive_eval.core.results import (
    Decision,
    ModelResult,
    PairResult,
    Results,
    StopVerdict,
    TaskResult,
    from_json,
    to_json,
)
from adaptive_eval.core.session import LOOKED_AT, Session
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.errors import AdaptiveEvalError, RunDamaged, RunFileError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.interop.stored_config import session_of_file
from adaptive_eval.store.codec import Shape, misfit
from adaptive_eval.store.file_errors import UNREADABLE
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import ScoringRecord, SnapshotRecord
from adaptive_eval.trial import NO_ANSWER, NOT_THERE, Missing, ScoreRange, TrialKey, TrialOutcome
from adaptive_eval.views import reading
from adaptive_eval.views.reading import Replayed, decision_from, layouts, require_described, still_valid

AT_THEIR_PLACE = LOOKED_AT | {"interrupted", "budget", "endpoints", "unusable"}
"""Reasons to stop that follow from the trials only where the run stopped, or come from outside of it."""


@dataclass(frozen=True, eq=False)
class Replay:
    """A stored run, made again from its trials."""

    session: Session  # as it was after the last trial
    results: Results
    decisions: tuple[Decision, ...]
    disagreements: tuple[str, ...]  # where stored results and decisions say otherwise; one line each


def replay(reader: RunReader) -> Replay:
    """Make the results of a run again from its trials, and compare the stored ones with them.

    Raises
    ------
    RunFileError
        If there are no trials yet.
    RunDamaged
        If the file does not hold what a replay needs, or its trials cannot be those of its session.
    """
    from adaptive_eval.build.description import misdescribed  # a run that begins needs none of it

    meta = reader.meta()
    if not reader.count():
        raise RunFileError(
            f"{reader.directory} has no results yet; it has not asked its first questions",
            code="run/no-results",
        )
    stored = _Stored.read(reader, meta)
    try:
        session = Session(_spec(reader), lambda: tuple(change_warnings(stored.changes)))
    except UNREADABLE as error:
        raise RunDamaged(
            f"{reader.directory}: the description of its session is damaged ({error})"
        ) from error
    course = _Course(session, stored)
    try:
        replay_log(session, reader, stored.changes, course.log(reader.log()))
        course.end()
        session.board.require_asked(_asked(reader))
    except (AdaptiveEvalError, *UNREADABLE) as error:
        raise RunDamaged(
            f"{reader.directory} is damaged: its trials are not those that its session asks for ({error})"
        ) from error
    results = course.counted(session.results())
    compared = course.earlier or results
    if stored.latest is not None:
        found = list(stored.differences(compared, whole=compared is results))
    else:
        found = []
    found += stored.contradicted(session.decisions, session.spec.names)
    found += stored.foreign(session.spec)
    found += _otherwise_scored(reader, session.spec, stored)
    found += reader.contradictions(imported=IMPORTED in meta)
    found += misdescribed(meta, session.spec)
    return Replay(
        session, stored.completed(results, reader), tuple(session.decisions), tuple(dict.fromkeys(found))
    )


def replayed(reader: RunReader) -> Replayed | None:
    """Return what views show of a replay; None where there are too many trials to replay for a view."""
    if reader.count() > reading.MOST_REPLAYED:
        return None
    return shown(replay(reader))


def shown(found: Replay) -> Replayed:
    """Return what views show of a replay."""
    return Replayed(to_json(found.results), found.decisions, found.disagreements)


def _asked(reader: RunReader) -> Iterator[tuple[TrialKey, str, str]]:
    """Yield each stored trial with its task and question."""
    trials = reader.outcomes()
    columns = (trials.model.tolist(), trials.step.tolist(), trials.question.tolist())
    for model, step, question in zip(*columns, strict=True):
        yield TrialKey(trials.models[model], step), *trials.questions[question]


_CHANGE_SCORES = ("rubric.weights", "on.discarded")
"""Settings after whose change stored answers count otherwise; rounds follow from how they counted before."""


def replay_log(
    session: Session,
    reader: RunReader,
    changes: Iterable[ChangedSetting],
    log: Iterable[Sequence[TrialOutcome | Missing]],
) -> list[Decision]:
    """Tell a fresh session the log of its run and what was billed without an answer; return its decisions."""
    if any(change.setting.endswith(_CHANGE_SCORES) for change in changes):
        requests = (record.request for record in reader.trials())
        session.board.keep_questions((one.key, one.task, one.question) for one in requests)
    session.replay(log, reader.unanswered(), layouts(reader))
    return list(session.decisions)  # stops from outside report some on the way


def _spec(reader: RunReader) -> SessionSpec:
    spec = session_of_file(reader)
    meta = reader.meta()
    if meta.get(LABELS):
        spec = replace(spec, labels=LabelRecord.from_json(meta[LABELS]))
    if PREVIOUS not in meta:
        return spec
    taken = Previous.from_json(meta[PREVIOUS])
    return replace(spec, references=taken.references, prior=taken.prior)


@dataclass(frozen=True)
class _Stored:
    """What a run file says about its results."""

    latest: SnapshotRecord | None
    results: Results | None  # those of the latest snapshot
    decisions: Sequence[Decision]  # that none of the later ones withdraws
    changes: Sequence[ChangedSetting]
    scorings: Sequence[tuple[str, set[str], set[str]]]  # name, tasks and models of each
    imported: bool

    @classmethod
    def read(cls, reader: RunReader, meta: Mapping[str, str]) -> _Stored:
        try:
            latest = reader.latest_snapshot()
            results = None
            if latest is not None:
                results = from_json(latest.results)
            stop = None
            if results is not None:
                stop = results.stop
            require_described(stop)
            decisions = still_valid(decision_from(record.body) for record in reader.decisions())
            changes = stored_changes(meta)
            scorings = list(map(_ranked, reader.scorings()))
        except UNREADABLE as error:
            raise RunDamaged(f"{reader.directory}: its stored results are damaged ({error})") from error
        return cls(latest, results, decisions, changes, scorings, IMPORTED in meta)

    @property
    def stop(self) -> StopVerdict | None:
        if self.results is None:
            return None
        return self.results.stop

    def from_outside(self) -> list[Decision]:
        """Return the stops that hold at the end and need a place in the log, in their order."""
        if self.results is None:
            return []
        now = {line.model for line in self.results.models if line.state == "stopped"}
        last = {one.models: one for one in self.decisions if one.kind == "model_stopped"}
        found = [one for one in last.values() if set(one.models) <= now]
        ends = [one for one in self.decisions if one.kind == "stop"]
        if ends and self.stop is not None and ends[-1].verdict in AT_THEIR_PLACE:
            found.append(ends[-1])
        return sorted(found, key=lambda one: one.trials)

    def differences(self, made: Results, *, whole: bool) -> Iterator[str]:
        """Yield how the stored results differ from those made from the trials."""
        assert self.latest is not None
        assert self.results is not None
        if self.changes and self.changes[-1].at > self.latest.at:
            return  # they were made under other settings
        old = self.results
        for name in _OF_RUN:
            if not _alike(getattr(old, name), getattr(made, name)):
                yield f"{name}: stored {getattr(old, name)!r}, from the trials {getattr(made, name)!r}"
        if whole and not _alike(_reason(old), _reason(made)):
            yield f"stop: stored {_reason(old)}, from the trials {_reason(made)}"
        compared = [name for name in _OF_MODELS if whole or name not in _AT_THE_END]
        yield from _unlike_parts(old, made, compared)

    def contradicted(self, made: Sequence[Decision], models: Collection[str]) -> Iterator[str]:
        """Yield the stored decisions that the trials do not lead to, and those that are not stored."""
        for one in self.decisions:
            if not set(one.models) <= set(models):
                yield f"decision: {_said(one)} is stored, and the run has no such model"
        now = self._from_trials(made)
        old = self._from_trials(self.decisions)
        for mark, one in old.items():
            if mark not in now:
                yield f"decision: {_said(one)} is stored, and the trials do not lead to it"
            elif not self.changes and not _alike(_ground(one), _ground(now[mark])):
                yield f"decision: {_said(one)} is stored with other evidence than the trials give"
        if self.stop is None:
            return  # the last ones may be lost with their process
        yield from self._unsaid()
        for mark, one in now.items():
            if mark not in old:
                yield f"decision: the trials lead to {_said(one)}, and it is not stored"

    def foreign(self, spec: SessionSpec) -> Iterator[str]:
        """Yield the tasks and models of scorings that the run does not have."""
        known = {task.name for task in spec.tasks}, set(spec.names)
        for name, *parts in self.scorings:
            for found, ours in zip(parts, known, strict=True):
                for other in sorted(found - ours):
                    yield f"scoring {name!r:.80} is of {other!r:.80}, which the run does not have"

    def _unsaid(self) -> Iterator[str]:
        """Yield the stops in the stored results, of the run and of models, that no decision says so."""
        if self.imported or self.latest is None or self.results is None or self.stop is None:
            return
        if any(server.in_flight for server in self.latest.endpoints):
            return  # a session says that it stops once nothing is in flight
        told = self.stop.reason, self.stop.text, self.stop.evidence
        ends = [(one.verdict, one.text, one.evidence) for one in self.decisions if one.kind == "stop"]
        if not any(_alike(end, told) for end in ends):
            yield f"decision: the stop {self.stop.reason} is in the stored results, and no decision says so"
        notes = {(one.models, one.text) for one in self.decisions if one.kind == "model_stopped"}
        for line in self.results.models:
            if line.state == "stopped" and ((line.model,), line.note) not in notes:
                why = f"({line.note!r:.80})"
                yield f"decision: by the stored results {line.model} stopped {why}, and no decision says so"

    def _from_trials(self, decisions: Sequence[Decision]) -> dict[Any, Decision]:
        """Return the decisions that follow from the trials: of models, and the last stop."""
        found = {_mark(one): one for one in decisions if one.kind in ("pair", "retired")}
        ends = [one for one in decisions if one.kind == "stop"]
        if ends and self.stop is not None and ends[-1].verdict not in AT_THEIR_PLACE:
            found[_mark(ends[-1])] = ends[-1]
        return found

    def completed(self, made: Results, reader: RunReader) -> Results:
        """Return results with what does not follow from outcomes: warnings of servers, costs of scoring."""
        none: Counter[str] = Counter()
        for (model, _), (_, signals) in reader.signals_named(NO_ANSWER).items():
            none[model] += signals.total()
        models = tuple(replace(line, no_answer_trials=none[line.model]) for line in made.models)
        old = self.results
        if old is None:
            return replace(made, models=models)
        own = {(line.name, line.scope, line.owner) for line in made.budgets}
        others = [line for line in old.budgets if (line.name, line.scope, line.owner) not in own]
        new = [text for text in made.warnings if text not in old.warnings]
        return replace(
            made,
            models=models,
            budgets=(*made.budgets, *others),
            changes=old.changes,
            warnings=(*old.warnings, *new),
        )


_SCORING: Shape = {"tasks": {...: {"scorer": dict, "rubric": dict, "categories": [str], "weights": [float]}}}


def _ranked(scoring: ScoringRecord) -> tuple[str, set[str], set[str]]:
    """Return name, tasks and models of a scoring; one of UNREADABLE if it is none."""
    wrong = misfit(scoring.body, _SCORING)
    if wrong is not None:
        raise ValueError(f"scoring {scoring.name!r:.80}: {wrong}")
    models = {line.model for line in from_json(scoring.body["results"]).models}
    return scoring.name, set(scoring.body["tasks"]), models


_BY_MODELS = ('"kind": "judge"', '"kind": "verifier"')
"""Scorers of whose draws some may be lost, which their rows do not say."""


def _otherwise_scored(reader: RunReader, spec: SessionSpec, stored: _Stored) -> Iterator[str]:
    """Yield the scorings whose results are not those of the scores that are stored with them."""
    from adaptive_eval.build.rescored_results import rescored_results  # most runs have none

    changed = max((change.at for change in stored.changes), default=0.0)
    for number, scoring in enumerate(reader.scorings()):
        tasks: Mapping[str, Any] = scoring.body["tasks"]
        scores = {one.outcome: one.category for one in reader.rescored(number)}
        by_model = any(kind in json.dumps(tasks) for kind in _BY_MODELS)
        if not tasks and not scores:  # by labels, which are in another file
            continue
        if by_model or scoring.at < changed:
            continue
        old = from_json(scoring.body["results"])
        try:
            weights = {name: _weights(task) for name, task in tasks.items()}
            made = rescored_results(reader, spec, weights, scores, old.trials)
        except (AdaptiveEvalError, *UNREADABLE) as error:
            yield f"scoring {scoring.name!r:.80}: its scores are none of its categories ({error})"
            continue
        for words in _unlike_parts(old, made, _OF_MODELS):
            yield f"scoring {scoring.name!r:.80}: {words}"


def _weights(task: Mapping[str, Any]) -> tuple[float, ...]:
    """Return what the categories of a scoring's task are worth; a range if its scores are numbers."""
    span = task["rubric"].get("range")
    if span is None:
        return tuple(task["weights"])
    return ScoreRange(tuple(span))


class _Course:
    """The log on its way into the session, with the stops from outside at their places in it."""

    def __init__(self, session: Session, stored: _Stored) -> None:
        self._session, self._stored = session, stored
        self._told = 0
        self._absent = 0  # trials that the logs of an imported run lack
        self._due = [(one.trials, one) for one in stored.from_outside()]
        self._look_at = -1  # number of trials at the latest snapshot
        if stored.latest is not None and not stored.imported:
            self._look_at = stored.latest.trials
        self.earlier: Results | None = None  # the results then, where trials came after it

    def log(
        self, batches: Iterable[Sequence[TrialOutcome | Missing]]
    ) -> Iterator[list[TrialOutcome | Missing]]:
        """Yield the log in parts that end where something came from outside, or results were stored."""
        for batch in batches:
            part: list[TrialOutcome | Missing] = []
            for outcome in batch:
                if self._is_due():
                    if part:
                        yield part
                        part = []
                    self._catch_up()
                part.append(outcome)
                self._told += 1
                self._absent += isinstance(outcome, Missing) and outcome.reason == NOT_THERE
            yield part

    def end(self) -> None:
        """Repeat what stopped the session in the end."""
        for _, decision in self._due:
            self._session.repeat(decision)
        if self._stored.stop is not None and self._session.stopped is None:
            self._session.ask(0)  # a budget or a cap that is used up stops it

    def _is_due(self) -> bool:
        return self._told == self._look_at or bool(self._due and self._due[0][0] <= self._told)

    def _catch_up(self) -> None:
        while self._due and self._due[0][0] <= self._told:
            self._session.repeat(self._due.pop(0)[1])
        if self._told == self._look_at:
            self.earlier = self._session.results()

    def counted(self, made: Results) -> Results:
        """Return results that count the trials of an imported run's logs alone."""
        old = self._stored.results
        if not self._stored.imported or old is None:
            return made
        after_stop = {line.model: line.after_stop for line in old.models}
        models = tuple(
            replace(line, after_stop=after_stop.get(line.model, line.after_stop)) for line in made.models
        )
        kept = tuple(text for text in made.warnings if getattr(text, "code", "") != "warning/unbounded")
        return replace(made, models=models, trials=made.trials - self._absent, warnings=kept)


def _names_of(record: type, *without: str) -> tuple[str, ...]:
    return tuple(one.name for one in fields(record) if one.name not in without)


_OF_RUN = _names_of(
    *(Results, "models", "pairs", "tasks", "stop", "budgets", "warnings", "forecast", "changes"),
    *("rule_plugin", "fixed_passes", "pass_cost"),
)
_OF_MODELS = _names_of(ModelResult, "issued", "after_stop", "note", "no_answer_trials", "waits_for", "usd")
_OF_PAIRS = _names_of(PairResult)
"""What is compared: everything that follows from the trials alone."""

_AT_THE_END = frozenset({"state", "prompt_tokens", "completion_tokens"})
"""Fields that also depend on what is in flight, or on requests that have left no answer."""


def _unlike(
    kind: str, old: Mapping[str, Any], made: Mapping[str, Any], compared: Sequence[str]
) -> Iterator[str]:
    if old.keys() != made.keys():
        yield f"{kind}s: stored {', '.join(old)}; from the trials {', '.join(made)}"
        return
    for name, line in old.items():
        wrong = [field for field in compared if not _alike(getattr(line, field), getattr(made[name], field))]
        if wrong:
            field = wrong[0]
            then = _written(getattr(line, field))
            now = _written(getattr(made[name], field))
            more = ""
            if len(wrong) > 1:
                more = f" (and {len(wrong) - 1} more)"
            yield f"{kind} {name}: {field} is stored as {then}, from the trials it is {now}{more}"


def _unlike_parts(old: Results, made: Results, compared: Sequence[str]) -> Iterator[str]:
    """Yield how stored models, pairs and tasks differ; `compared` are fields of models."""
    lines = {line.model: line for line in made.models}
    yield from _unlike("model", {line.model: line for line in old.models}, lines, compared)
    yield from _unlike("pair", _pairs(old), _pairs(made), _OF_PAIRS)
    if not _alike(list(map(_scores, old.tasks)), list(map(_scores, made.tasks))):
        yield "the scores of the tasks: stored ones are not those of the trials"


def _pairs(results: Results) -> dict[str, PairResult]:
    return {f"{pair.first}, {pair.second} ({pair.kind})": pair for pair in results.pairs}


def _scores(task: TaskResult) -> tuple[Any, ...]:
    scores = [(one.model, one.score, one.score_low, one.score_high) for one in task.scores]
    return task.task, task.questions, task.weight, scores


def _reason(results: Results) -> tuple[str, Any] | None:
    if results.stop is None:
        return None
    return (results.stop.reason, results.stop.evidence)


def _written(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


_CLOSE = 1e-6
"""Difference of two numbers that another processor or another version of NumPy may make."""


def _alike(old: Any, now: Any) -> bool:
    """Whether two stored values are equal, numbers as nearly as computers agree.

    Examples
    --------
    >>> _alike([0.3, {"a": 1}], (0.1 + 0.2, {"a": 1.0})), _alike(0.3, None), _alike({"a": 1}, {"b": 1})
    (True, False, False)
    """
    if isinstance(old, float | int) and isinstance(now, float | int):
        return isclose(old, now, rel_tol=_CLOSE, abs_tol=_CLOSE) or (old != old and now != now)
    if isinstance(old, Mapping) and isinstance(now, Mapping):
        return old.keys() == now.keys() and all(_alike(value, now[key]) for key, value in old.items())
    if isinstance(old, list | tuple) and isinstance(now, list | tuple):
        return len(old) == len(now) and all(map(_alike, old, now))
    return bool(old == now)


def _mark(decision: Decision) -> tuple[Any, ...]:
    return decision.kind, decision.models, decision.verdict, decision.kind == "pair" and decision.step


def _said(decision: Decision) -> str:
    of = ""
    if decision.models:
        of = f" of {' and '.join(decision.models)}"
    return f"{decision.kind} {decision.verdict}{of} at step {decision.step}"


def _ground(decision: Decision) -> tuple[Any, ...]:
    """Return what a decision rests on; how far a run had come at a stop depends on when it looked."""
    place = {"pair": (decision.trials, decision.step), "stop": ()}.get(decision.kind, (decision.step,))
    return place, decision.evidence, decision.text
