"""Rank stored answers by another scorer or rubric, without asking anything."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from adaptive_eval.build.assembly import PreparedRun, make_importable
from adaptive_eval.build.rescored_results import results_by
from adaptive_eval.build.rubrics import (
    observed_thresholds,
    rubric_of,
    stored_thresholds,
    with_stored_thresholds,
)
from adaptive_eval.build.stored_answers import with_stored_answers
from adaptive_eval.core.results import Decision, Results, to_json
from adaptive_eval.engine.answer_watch import AnswerWatch
from adaptive_eval.engine.independence import COPY
from adaptive_eval.errors import (
    AdaptiveEvalError,
    EndpointsUnusable,
    RunDamaged,
    RunMismatch,
    ScorerUnavailable,
    SessionError,
    UsageError,
)
from adaptive_eval.options.task_options import RubricConfig
from adaptive_eval.run.rescoring_specs import RescoringSpec, tracked
from adaptive_eval.scoring.registry import Answers, build_scorer, score_here
from adaptive_eval.scoring.rubric import Rubric, SignalMissing, attempt_signals
from adaptive_eval.scoring.scorer import NOT_FOUND, Scorer, TogetherScorer
from adaptive_eval.store.codec import dump_json, load_json
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import LoggedTrial, Rescored, ScoringRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import (
    AGAINST,
    CHECK,
    NOTHING_FOUND,
    UNSCORED,
    DiscardCause,
    Missing,
    Score,
    ScoreRange,
    Signal,
    TrialKey,
    TrialOutcome,
    Usage,
)
from adaptive_eval.views.reading import layouts

_BATCH = 256

_OF_ONE_SCORER = frozenset({"is_correct", "score", "judgements", "order_decided", AGAINST})
"""Signals by which one scorer says what it found: they are not those of another one that has none."""

_Score: TypeAlias = Callable[
    [Iterable[tuple[list[TrialRecord], Answers]]], Iterator[tuple[list[TrialRecord], list[Score]]]
]
"""Scores batches of answers, each with the records it is of."""


@dataclass(frozen=True)
class Rescoring:
    """The ranking of a run by one scoring."""

    name: str
    results: Results
    rows: tuple[Rescored, ...]
    body: Mapping[str, Any]
    unscored: int = 0
    remarks: tuple[str, ...] = ()  # what is wrong with the new scorer, and who is left out

    @property
    def record(self) -> ScoringRecord:
        """The scoring as it is stored."""
        return ScoringRecord(self.name, time.time(), self.body)


def stored_scoring(built: PreparedRun, reader: RunReader) -> Rescoring:
    """Return the ranking by the categories that the run was decided by."""
    outcomes = list(chain.from_iterable(reader.log()))
    asked = [(one.request.key, one.request.task, one.request.question) for one in reader.trials()]
    return Rescoring("as run", results_by(built.spec, outcomes, {}, asked, layouts(reader)), (), {})


def rescore(
    built: PreparedRun,
    reader: RunReader,
    specs: Sequence[RescoringSpec],
    task: str | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[Rescoring]:
    """Score the stored answers again, once for each spec, and rank the models by each."""
    tasks = [one.name for one in built.tasks]
    if task is not None and task not in tasks:
        raise UsageError(f"there is no task {task!r}; there are {', '.join(tasks)}")
    chosen = tasks
    if task is not None:
        chosen = [task]
    _require_same_data(built, reader)
    results: list[Rescoring] = []
    scorers = [spec.scorer for spec in specs]
    for scorer in (one for place, one in enumerate(scorers) if one not in scorers[:place]):
        try:
            made = _scorer(built, chosen, scorer)
            known = {}
            for one in built.tasks if made is not None else ():
                if one.name in chosen:
                    known[one.name] = with_stored_answers(one, made, built.config.base_dir, reader.meta())
            score = partial(score_here, made, at_once=scorer is not None and scorer.at_once)
            answers = _Answers.read(built, reader, chosen, known, scorer, score, progress)
        except ScorerUnavailable as error:
            raise EndpointsUnusable(f"{error}; nothing was stored") from None
        try:
            results += [answers.ranked(spec) for spec in specs if spec.scorer == scorer]
        except SessionError as error:
            raise RunDamaged(f"{reader.directory} is damaged: {error}") from error
    order = {spec.name: place for place, spec in enumerate(specs)}
    return sorted(results, key=lambda result: order[result.name])


def track(built: PreparedRun, directory: Path, say: Callable[[str], None]) -> None:
    """Rank the stored answers by every tracked rubric, and store new rankings; name a rubric that cannot."""
    specs = tracked(built.config)
    if not specs:
        return
    with RunReader(directory) as reader:
        if not reader.count():
            return
        built = replace(built, continued=reader.meta())
        known = {record.name: record.body for record in reader.scorings()}
        found = _tracked(built, reader, specs, say)
    new = [result for result in found if known.get(result.name) != load_json(dump_json(result.body))]
    if new:
        with RunWriter.open(directory) as writer:
            for result in new:
                writer.scoring(result.record, result.rows)


def _tracked(
    built: PreparedRun, reader: RunReader, specs: Sequence[RescoringSpec], say: Callable[[str], None]
) -> list[Rescoring]:
    """Rank by all rubrics with one reading of the answers; if one cannot, by each alone."""
    try:
        return rescore(built, reader, specs)
    except AdaptiveEvalError as error:
        if len(specs) == 1:
            say(f"The rubric {specs[0].name} ranks nothing: {error}")
            return []
    return [result for spec in specs for result in _tracked(built, reader, [spec], say)]


class _Asked(NamedTuple):
    """What a stored trial was, whatever its answer scores."""

    key: TrialKey
    task: str
    question: str
    usage: Usage
    digest: int | None  # of the text
    repeats: bool  # whether the answer may be a copy of an earlier one
    discarded: tuple[DiscardCause, ...]


@dataclass(frozen=True)
class _Answers:
    """The stored trials with the signals and extractions of one scorer; texts are not kept."""

    built: PreparedRun
    meta: Mapping[str, str]
    tasks: Sequence[str]
    scorer: Any
    laid_out: Sequence[Decision]  # rounds, while answers before them were awaited
    keys: list[_Asked]
    scores: list[Score | None]  # None for a missing trial
    reasons: list[str]  # of missing trials
    watch: AnswerWatch = field(default_factory=AnswerWatch)  # over the new scores

    @classmethod
    def read(
        cls,
        built: PreparedRun,
        reader: RunReader,
        tasks: Sequence[str],
        known: Mapping[str, Task],
        scorer: Any,
        score: _Score,
        progress: Callable[[int, int], None] | None,
    ) -> _Answers:
        answers = cls(built, reader.meta(), tasks, scorer, layouts(reader), [], [], [])
        trials = reader.trials()
        total = reader.count()
        batches = iter(lambda: list(islice(trials, _BATCH)), [])
        for records, found in score((batch, _to_score(batch, known)) for batch in batches):
            scores = iter(found)
            for record in records:
                digest = None
                if record.completion is not None:
                    digest = record.completion.digest
                request = record.request
                repeats = getattr(record.outcome, "repeats", False)
                asked = (request.key, request.task, request.question, record.usage, digest, repeats)
                new = None
                if _is_due(record, known):
                    new = _with(record, next(scores))
                if new is not None:
                    judged = new.discarded
                else:
                    judged = ()
                answers.keys.append(_Asked(*asked, (*record.discarded, *judged)))
                answers.reasons.append(record.missing or "")
                answers.scores.append(new or record.score)
                if new is not None and record.completion is not None:
                    answers.watch.take(_logged(record, _stepped(new, scorer)))
            if progress is not None:
                progress(len(answers.keys), total)
        return answers

    def ranked(self, spec: RescoringSpec) -> Rescoring:
        """Return the ranking by a rubric."""
        categories: list[int | None] = [None] * len(self.scores)
        for place, score in enumerate(self.scores):
            if score is not None:
                categories[place] = score.category
        weights, body = {}, {}
        for task in self.tasks:
            places = [
                place
                for place, (_, of, *_) in enumerate(self.keys)
                if of == task and categories[place] is not None
            ]
            check = spec.check if task in spec.by_task else None
            records = [_signals(self.scores[place], check) for place in places]
            section = spec.by_task.get(task) or spec.rubric or self.built.config.task(task).rubric
            if spec.rubric is None and spec.scorer is not None:  # the range is the scorer's
                section = section.model_copy(update={"range": getattr(spec.scorer, "range", None)})
            rubric = self._rubric(section, task, records)
            for place, category in zip(places, _assigned(rubric, records, task), strict=True):
                categories[place] = category
            weights[task] = section.category_weights
            body[task] = self._description(task, section, rubric)
        outcomes: list[TrialOutcome | Missing] = []
        for one, category, reason in zip(self.keys, categories, self.reasons, strict=True):
            if category is None:
                why = reason or "lacks a signal that the rubric needs"
                outcomes.append(Missing(one.key, why, one.usage, one.discarded))
            else:
                told = (category, one.usage, one.digest, one.repeats, one.discarded)
                outcomes.append(TrialOutcome(one.key, *told))
        asked = [key[:3] for key in self.keys]
        results = results_by(self.built.spec, outcomes, weights, asked, self.laid_out)
        rows = tuple(self._rows(categories))
        unscored = sum(row.category is None for row in rows)
        body = {"tasks": body, "results": to_json(results)}
        remarks = [
            f"the reference {reference.name!r} has scores and no answers here; it is left out"
            for reference in self.built.spec.references
        ]
        remarks += self.watch.remarks_on_scorers()
        return Rescoring(spec.name, results, rows, body, unscored, tuple(remarks))

    def _rubric(self, section: RubricConfig, task: str, records: Sequence[Mapping[str, Signal]]) -> Rubric:
        """Return the rubric with its thresholds: given, as the run froze them, or of these answers."""
        rubric = rubric_of(section)
        known = stored_thresholds(self.meta).get(task, {}) if self.scorer is None else {}
        if not rubric.open_thresholds:
            return rubric
        if all(name in known for name in rubric.open_thresholds):
            return with_stored_thresholds({task: rubric}, self.meta)[task]
        return observed_thresholds(rubric, records, task, "the stored answers")

    def _description(self, task: str, section: RubricConfig, rubric: Rubric) -> dict[str, Any]:
        config = self.built.config.task(task)
        return {
            "scorer": (self.scorer or config.scorer).model_dump(mode="json"),
            "rubric": section.model_dump(mode="json", by_alias=True),
            "categories": list(rubric.categories),
            "thresholds": dict(rubric.thresholds),
            "weights": list(section.category_weights),
        }

    def _rows(self, categories: Sequence[int | None]) -> Iterator[Rescored]:
        chosen = set(self.tasks)
        for place, ((_, task, *_), score) in enumerate(zip(self.keys, self.scores, strict=True)):
            if score is not None and task in chosen:
                yield Rescored(place, categories[place], score.extracted, score.reason)


def _is_due(record: TrialRecord, tasks: Mapping[str, Task]) -> bool:
    """Return whether a trial has an answer to one of the `tasks` that are scored again."""
    if record.score is None or record.completion is None or COPY in record.score.signals:
        return False
    return record.request.task in tasks


def _to_score(records: Sequence[TrialRecord], tasks: Mapping[str, Task]) -> Answers:
    """Return the answers that are due, each with its question as it was asked."""
    answers = []
    for record in records:
        if _is_due(record, tasks):
            assert record.completion is not None
            task = tasks[record.request.task]
            request = record.request
            question = task.asked(task.by_id[request.question], request.seed, request.repeat)
            answers.append((record.completion, question))
    return answers


def _with(record: TrialRecord, score: Score) -> Score:
    """Return a trial's new score with the further signals of its old one."""
    assert record.score is not None
    assert record.completion is not None
    old = record.score.signals.items()
    kept = {name: value for name, value in old if name not in _OF_ONE_SCORER and not name.startswith(CHECK)}
    signals = {**kept, **attempt_signals(record.completion), **score.signals}
    return replace(score, signals=signals)


def _stepped(score: Score, scorer: Any) -> Score:
    """Return a score as the watch reads it: a number has its step of the scorer's range as category."""
    number = score.signals.get("score")
    span = getattr(scorer, "range", None)
    if span is None or score.category is None or not isinstance(number, int | float):
        return score
    return replace(score, category=ScoreRange(span).category(number))


def _logged(record: TrialRecord, score: Score) -> LoggedTrial:
    """Return a trial as the log would tell it with a new score."""
    signals = dict(score.signals)
    if score.reason.startswith(NOT_FOUND):
        signals[NOTHING_FOUND] = True
    missing = None
    if score.category is None:
        missing = f"{UNSCORED}{score.reason}"
    return replace(record, score=replace(score, signals=signals), missing=missing).logged()


def _assigned(rubric: Rubric, records: Sequence[Mapping[str, Signal]], task: str) -> list[int | None]:
    """Return each answer's category; None if it lacks a signal, an error if all whole answers do."""
    try:
        return list(rubric.assign(records))
    except SignalMissing as error:
        first = error
    categories: list[int | None] = []
    for record in records:
        try:
            categories.append(rubric.category(record))
        except SignalMissing:
            categories.append(None)
    found = zip(records, categories, strict=True)
    if all(category is None or record.get("truncated") for record, category in found):
        raise UsageError(f"no stored answer to task {task!r} has what the rubric needs: {first}")
    return categories


def _signals(score: Score | None, check: str | None) -> Mapping[str, Signal]:
    """Return the signals of an answer; those by which one check judges it, if one is named."""
    if score is not None:
        signals = score.signals
    else:
        signals = {}
    result = None
    if check is not None:
        result = signals.get(check)
    if result is None:
        return signals
    return {**signals, "is_correct": result, "score": result}


def _scorer(built: PreparedRun, tasks: Sequence[str], scorer: Any) -> Scorer | None:
    """Return the new scorer, which must be able to read the tasks' targets; None if none is asked for."""
    if scorer is None:
        return None
    if scorer.has("python"):
        make_importable(built.config.base_dir)
    made = build_scorer(scorer.kind, scorer.options())
    several = set()
    for name in tasks:
        answers = built.config.task(name).answers
        rule = None
        if answers is not None:
            rule = answers.by
        several.add(rule)
    if len(several) > 1:
        raise UsageError(f"tasks {', '.join(tasks)} differ in answers.by; score one at a time with --task")
    for by in several:
        if by is not None:
            made = TogetherScorer(made, by)
    for task in built.tasks:
        if task.name not in tasks:
            continue
        for question in task.questions:
            problem = made.check_target(question)
            if problem is not None:
                raise UsageError(
                    f"the scorer {scorer.kind} cannot be used for task {task.name!r}, question "
                    f"{question.id!r}: {problem}"
                )
    return made


def _require_same_data(built: PreparedRun, reader: RunReader) -> None:
    reader.require_undamaged()
    stored = json.loads(reader.meta()["identity"])["tasks"]
    for task in built.tasks:
        if stored.get(task.name, {}).get("dataset") != task.content_hash:
            raise RunMismatch(
                f"{task.source}: the dataset of task {task.name!r} is not what it was when "
                f"{reader.directory} was run; put the old one back"
            )
    asked = {(task.name, question.id) for task in built.tasks for question in task.questions}
    others = [one for one in reader.cells().questions if one not in asked]
    if others:
        raise RunDamaged(
            f"{reader.directory} is damaged: it has answers to question {others[0][1]!r:.80} of task "
            f"{others[0][0]!r:.80}, which it did not ask"
        )
