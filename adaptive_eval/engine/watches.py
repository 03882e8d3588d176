"""All that watches the answers of a run: what says nothing about the models, copies, models that change.

Each watch takes every finished trial in the same way, live and when the log of earlier sessions is read back.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from adaptive_eval.core.results import Results, StopVerdict
from adaptive_eval.engine.answer_watch import AnswerWatch
from adaptive_eval.engine.drift import DriftWatch
from adaptive_eval.engine.independence import IndependenceAudit
from adaptive_eval.engine.judge_watch import JudgeWatch
from adaptive_eval.engine.protocols import Controller, News, Unusable, Watch
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome

Told: TypeAlias = list[TrialOutcome | Missing]
"""Outcomes to be told to the session together."""


@dataclass(frozen=True)
class Watches:
    """The watches of a run, which are asked in turn.

    Examples
    --------
    >>> watches = Watches()
    >>> [type(watch).__name__ for watch in watches.all]
    ['AnswerWatch', 'IndependenceAudit', 'DriftWatch', 'JudgeWatch']
    """

    answers: AnswerWatch = field(default_factory=AnswerWatch)
    copies: IndependenceAudit = field(default_factory=IndependenceAudit)
    drift: DriftWatch = field(default_factory=DriftWatch)
    judges: JudgeWatch = field(default_factory=JudgeWatch)

    @property
    def all(self) -> tuple[Watch, ...]:
        """Every watch."""
        return self.answers, self.copies, self.drift, self.judges

    def take(self, trial: LoggedTrial) -> list[News]:
        """Show a finished trial to every watch; return what is new."""
        news: list[News] = []
        for watch in self.all:
            news += watch.take(trial)
        return news

    def verdict(self) -> StopVerdict | None:
        """Return why the run must end; None if it may go on."""
        for watch in self.all:
            verdict = watch.verdict()
            if verdict is not None:
                return verdict
        return None

    def follow(self, trials: Iterable[LoggedTrial]) -> Iterator[Told | News | StopVerdict]:
        """Yield the outcomes of trials to be told, and what is found before the trial that shows it counts.

        So that a run that is read back comes to the same end, however its trials were stored together.
        """
        outcomes: Told = []
        ended = False
        for trial in trials:
            news = self.take(trial)
            verdict = None
            if not ended:
                verdict = self.verdict()
            if news or verdict is not None:
                yield outcomes
                outcomes = []
                yield from news
            if verdict is not None:
                yield verdict
                ended = True
            outcomes.append(trial.outcome)
        yield outcomes

    def read_back(
        self,
        session: Controller,
        log: Iterable[Sequence[LoggedTrial]],
        text_of: Callable[[TrialKey], str] = lambda key: "",
    ) -> Iterator[Told]:
        """Yield the outcomes of a stored log for `session`, which is told what the watches find where it was.

        `text_of` returns the answer of a stored trial, for those that are shown.
        """
        of_new_trials = self.answers.text_of
        self.answers.text_of = text_of
        for trials in log:
            for found in self.follow(trials):
                match found:
                    case list():
                        yield found
                    case Unusable():
                        session.stop_model(found.model, found.reason, unusable=True)
                    case StopVerdict() if session.stopped is None:
                        session.end(found.reason, found.text, found.evidence)
        self.answers.text_of = of_new_trials  # the file is closed after this

    def added_to(self, results: Results) -> Results:
        """Return `results` with what the session does not see: answers that are none, changes, remarks."""
        remarks: list[Coded] = [*self.answers.remarks(), *self.drift.remarks(), *self.judges.remarks()]
        if self.drift.changes:
            remarks += map(_unchanged, self.judges.watched.items())
        return replace(
            results,
            models=tuple(
                replace(line, no_answer_trials=self.answers.none(line.model)) for line in results.models
            ),
            changes=(*self.drift.changes, *self.judges.changes),
            warnings=(*results.warnings, *remarks),
        )


def _unchanged(watched: tuple[str, int]) -> Coded:
    """Say that the judge of a task is not what has changed."""
    task, times = watched
    return Coded(
        "warning/judge-unchanged",
        f"nothing says that the judge of {task} has changed, by {times:,} answers that it has judged again: "
        "so the change is rather the model's or its server's",
    )
