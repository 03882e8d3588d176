"""The results of a stored run by other scores of its trials than those it was decided by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from adaptive_eval.core.results import Decision, Results
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, SessionSpec
from adaptive_eval.store.reader import RunReader
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome
from adaptive_eval.views.reading import layouts


def rescored_results(
    reader: RunReader,
    spec: SessionSpec,
    weights: Mapping[str, tuple[float, ...]],
    scores: Mapping[int, int | None],
    trials: int,
) -> Results:
    """Return the results of the first trials by other scores, of the tasks that have weights."""
    outcomes: list[TrialOutcome | Missing] = []
    asked, left = [], dict(scores)
    for number, trial in enumerate(islice(chain.from_iterable(reader.logged()), trials)):
        asked.append((trial.key, trial.task, trial.question))
        if trial.task in weights:
            why = trial.missing or "not scored"
            trial = trial._replace(category=left.pop(number, None), missing=why)
        outcomes.append(trial.outcome)
    if left:
        raise ValueError(f"{len(left):,} of them are of other answers")
    return results_by(spec, outcomes, weights, asked, layouts(reader))


def results_by(
    spec: SessionSpec,
    outcomes: Sequence[TrialOutcome | Missing],
    weights: Mapping[str, tuple[float, ...]],
    asked: Sequence[tuple[TrialKey, str, str]],
    laid_out: Sequence[Decision],
) -> Results:
    """Return the results of a run's trials by other categories, with what these are worth by task.

    `laid_out` are the decisions that laid out rounds while answers before them were awaited.
    """
    spec = replace(spec.rescored(weights), prior=None)
    if spec.references:  # their answers are not here to be scored again
        spec = replace(spec, references=(), goal=GoalSpec("ranking"))
    session = Session(spec)
    session.board.keep_questions(asked)
    session.replay([outcomes], decisions=laid_out)
    session.board.require_asked(asked)
    return session.results()
