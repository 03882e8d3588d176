"""What the stored answers and the run's description add to a summary; read from the run file."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, NamedTuple

from adaptive_eval.config.document import read_document
from adaptive_eval.core.results import FIXED, ContrastKey, Results, contrast_key, from_json
from adaptive_eval.errors import without_home
from adaptive_eval.store.reader import RunReader, spread
from adaptive_eval.store.records import SnapshotRecord, TargetLookup
from adaptive_eval.trial import JUDGED
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount, model_accounts, question_accounts
from adaptive_eval.views.trials import Examples, examples

NAME, STARTED_AT, CONFIG, WORTH = "name", "started_at", "config", "worth"
"""The keys of the run file's description that views know; all others are shown as they are."""

AS_RUN = "as run"
"""The name of the ranking that decided the run."""


MOST = 120
"""Moments kept at most, about as many as a small plot can tell apart."""

_PAIRS_READ = 500_000
"""Contrasts that a course is read from at most: of a large board it has fewer moments."""

_PAIRS_KEPT = 60
"""Contrasts whose evidence a moment keeps: the open ones nearest to a verdict."""


class ScorePoint(NamedTuple):
    """A score with its interval."""

    score: float | None
    low: float | None
    high: float | None


class PairPoint(NamedTuple):
    """The evidence of a contrast, the value that calls a winner, and whether it was open."""

    evidence: float
    threshold: float
    open: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """A run at one moment."""

    # unix time; seconds of running time
    at: float
    elapsed: float
    # of the whole run; no USD if the config gives no price
    trials: int
    tokens: int
    usd: float | None
    # by name, and by the key of the contrast
    models: Mapping[str, ScorePoint]
    pairs: Mapping[ContrastKey, PairPoint]


@dataclass(frozen=True, slots=True)
class Details:
    """The part of a summary that only the whole run file tells."""

    models: tuple[ModelAccount, ...]  # in the order of the results
    questions: tuple[QuestionAccount, ...] | None  # none if scores are not simply the fraction correct
    stored: int  # outcomes in the run file, those not counted (yet) included
    # the run file's own description (config, versions, seed, hashes) without places on its machine
    meta: Mapping[str, str]
    # what the verdicts are about, as the stored config says it: these questions (``benchmark``) or those
    # they were drawn from (``population``); None without a config
    target: str | None = None
    # the same answers ranked by other rubrics and scorers, the latest of each name, after the run's own
    # ranking (``as run``); empty if there are none
    rankings: tuple[tuple[str, Results], ...] = ()
    examples: Examples | None = None  # a few answers; None if none were wanted
    course: tuple[Moment, ...] = ()  # the run at a few moments, oldest first
    judged: Mapping[str, int] = field(default_factory=dict)  # how steady judges were, in answers

    @property
    def together(self) -> dict[str, dict[str, Any]]:
        """The tasks whose trials are several answers: how many (`k`), and when a trial is right (`by`)."""
        return {task: one["answers"] for task, one in self._scoring.items() if "answers" in one}

    @property
    def cut_off(self) -> dict[str, list[str]]:
        """How answers cut off at the token limit count (the rubric's `truncated`), with the tasks."""
        found: dict[str, list[str]] = {}
        for task, one in self._scoring.items():
            if "rubric" in one:
                found.setdefault(one["rubric"]["truncated"], []).append(task)
        return found

    @property
    def tasks(self) -> dict[str, dict[str, Any]] | None:
        """What each task asks and what its categories are worth; None if the run file does not say."""
        asked = (self.entry("identity") or {}).get("tasks")
        worth = self.entry(WORTH) or {}
        return asked and {name: {**task, **worth.get(name, {})} for name, task in asked.items()}

    @property
    def _scoring(self) -> dict[str, dict[str, Any]]:
        return self.entry("scoring") or {}

    def entry(self, key: str) -> dict[str, Any] | None:
        """Return an entry of the run's description that is a JSON object; None without one."""
        return _object(self.meta.get(key, ""))


def read_details(
    reader: RunReader,
    results: Results,
    *,
    examples_with: TargetLookup | None = None,
    course: Sequence[Moment] | None = None,
) -> Details:
    """Read the details of a run whose results are known; `course` are moments that have been read before."""
    meta = reader.meta()
    cells = reader.cells()
    accounts = model_accounts(reader, cells, results)
    questions = question_accounts(reader, cells, results)
    judged: Counter[str] = Counter()
    for _, found in reader.signals_named(JUDGED).values():
        judged.update(found)
    if course is None:
        course = _course(reader, results)
    shown = None
    if examples_with is not None:
        shown = examples(reader, accounts, questions, examples_with)
    return Details(
        models=accounts,
        questions=questions,
        stored=reader.count(),
        meta=_without_places(meta),
        target=results.target if results.rule == FIXED else _target(meta),
        judged=judged,
        rankings=_rankings(reader, results),
        examples=shown,
        course=tuple(course),
    )


def _rankings(reader: RunReader, results: Results) -> tuple[tuple[str, Results], ...]:
    latest = {record.name: record.body for record in reader.scorings()}
    # The answers of references are not rescored: the other models are compared among themselves.
    asked = replace(results, models=tuple(line for line in results.models if line.state != "reference"))
    rankings = [(AS_RUN, asked)]
    for name, body in latest.items():
        found = from_json(body["results"])
        if _names(found) == _names(asked):
            rankings.append((name, found))
    if len(rankings) > 1:
        return tuple(rankings)
    return ()


def _names(results: Results) -> set[str]:
    return {line.model for line in results.models}


def _target(meta: Mapping[str, str]) -> str | None:
    config = read_document(meta.get(CONFIG, "")).data
    if not isinstance(config, dict):
        return None
    stopping = config.get("stopping")
    target = None
    if isinstance(stopping, dict):
        target = stopping.get("target")
    return target if target in ("benchmark", "population") else "benchmark"


def _without_places(meta: Mapping[str, str]) -> dict[str, str]:
    """Leave out paths of the run's machine and tables of previous runs: reports are passed on."""
    shown = {key: without_home(value) for key, value in meta.items() if key not in ("base_dir", "previous")}
    if "source" in shown:
        shown["source"] = PurePath(shown["source"]).name
    return shown


class WatchedCourse:
    """The moments of a run that is being watched, from its oldest snapshot on."""

    def __init__(self, results: Results) -> None:
        self.moments: list[Moment] = []
        self._most = max(16, min(MOST, _PAIRS_READ // max(1, len(results.pairs))))

    def catch_up(self, reader: RunReader) -> None:
        """Take in the snapshots stored since the last time."""
        since = None
        if self.moments:
            since = self.moments[-1].at
        for snapshot in reader.snapshots(since=since, most=self._most // 2):
            self.moments.append(moment_of(snapshot))
        if len(self.moments) > self._most:
            kept = spread([(i, moment.trials) for i, moment in enumerate(self.moments)], self._most // 2)
            self.moments = [self.moments[i] for i in kept]


def moment_of(snapshot: SnapshotRecord) -> Moment:
    """Return what the plots need of a snapshot; its JSON is not checked again, which would take longest."""
    stored = snapshot.results
    models = stored["models"]
    pairs = _nearest(stored["pairs"])
    costs = [line["usd"] for line in models if line["usd"] is not None]
    scores, tokens = {}, 0
    for line in models:
        scores[line["model"]] = ScorePoint(line["score"], line["score_low"], line["score_high"])
        tokens += line["prompt_tokens"] + line["completion_tokens"]
    usd = None
    if costs:
        usd = sum(costs)
    return Moment(
        at=snapshot.at,
        elapsed=snapshot.elapsed,
        trials=stored["trials"],
        tokens=tokens,
        usd=usd,
        models=scores,
        pairs=dict(map(_point, pairs)),
    )


def _nearest(pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    contrasts = [pair for pair in pairs if pair["kind"] != "width"]
    if len(contrasts) <= _PAIRS_KEPT:
        return contrasts
    still_open = [pair for pair in contrasts if pair["verdict"] == "open"]
    return sorted(still_open, key=lambda pair: -_share(pair))[:_PAIRS_KEPT]


def _share(pair: dict[str, Any]) -> float:
    evidence = pair["evidence"]
    threshold = pair["threshold"]
    return evidence / threshold if evidence and threshold else 0.0


def _point(pair: dict[str, Any]) -> tuple[ContrastKey, PairPoint]:
    key = contrast_key(pair["kind"], pair["first"], pair["second"], pair["margin"])
    return key, PairPoint(pair["evidence"], pair["threshold"], pair["verdict"] == "open")


def _course(reader: RunReader, results: Results) -> list[Moment]:
    course = WatchedCourse(results)
    course.catch_up(reader)
    return course.moments


_SHORT = 200  # characters of a setting that fits a line


def settings(meta: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the settings that fit a line and say anything, versions one by one, in alphabetical order."""
    empty = ("", "[]", "{}")
    shown = {
        key: value
        for key, value in meta.items()
        if key not in (NAME, STARTED_AT, WORTH) and value not in empty
    }
    stored = _object(shown.pop("versions", "")) or {}
    versions = {f"version of {name}": str(version) for name, version in stored.items()}
    short = {key: value for key, value in shown.items() if len(value) <= _SHORT and "\n" not in value}
    return sorted({**short, **versions}.items())


def _object(text: str) -> dict[str, Any] | None:
    """Return a JSON object; None if the text is none."""
    try:
        stored = json.loads(text)
    except ValueError:
        return None
    if isinstance(stored, dict):
        return stored
    return None
