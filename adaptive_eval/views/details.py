"""What the stored answers and the run's description add to a summary; read from the run file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from adaptive_eval.config.document import read_document
from adaptive_eval.core.results import Results
from adaptive_eval.core.results_json import from_json
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount, model_accounts, question_accounts
from adaptive_eval.views.course import Moment, read_course
from adaptive_eval.views.examples import Examples, examples

NAME, STARTED_AT, CONFIG = "name", "started_at", "config"
"""The keys of the run file's description that views know; all others are shown as they are."""

AS_RUN = "as run"
"""The name of the ranking that decided the run."""


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

    @property
    def together(self) -> dict[str, dict[str, Any]]:
        """The tasks whose trials are several answers: how many (`k`), and when a trial is right (`by`)."""
        scoring = json.loads(self.meta.get("scoring", "{}"))
        return {task: one["answers"] for task, one in scoring.items() if "answers" in one}


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
    return Details(
        models=accounts,
        questions=questions,
        stored=reader.count(),
        meta=_without_places(meta),
        target=_target(meta),
        rankings=_rankings(reader, results),
        examples=examples(reader, accounts, questions, examples_with) if examples_with else None,
        course=read_course(reader, results) if course is None else tuple(course),
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
