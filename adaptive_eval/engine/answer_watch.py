"""Answers that say nothing about the models: scorers that fail or find nothing, answers that are cut off.

Each is told at the first sign, with its likely cause, and ends the run where most answers are affected: a
ranking by such answers would rank the scorer, or the token limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.independence import COPY
from adaptive_eval.errors import Coded
from adaptive_eval.scoring.scorer import CUT_OFF, NOT_FOUND, ORDER_DECIDED
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord

ENOUGH = 20
"""Answers from which shares are looked at: of fewer, half may be affected by chance."""

CUT_WARNED = 0.1
"""Share of a model's answers that are cut off from which it is warned of."""

FEWEST_FAILED = 5
"""Failures of a scorer from which their share may end the run."""

MOST = 0.5
"""Share of answers that cannot be used beyond which the run ends."""

_SAMPLES = "`adaptive-eval samples RUN` shows answers with what was found in them"


@dataclass(slots=True)
class _Task:
    """Counts of one task's answers."""

    answers: int = 0
    failed: int = 0  # those that the scorer could not score
    said: str = ""  # the words of its latest failure
    not_found: int = 0  # those in which it found no result
    cut: int = 0  # those that were cut off
    categories: Counter[int] = field(default_factory=Counter)
    votes: int = 0  # a judge's votes in both orders, and those that the order decided
    by_order: int = 0


class AnswerWatch:
    """Counts what is wrong with answers, by task and by model.

    In the tasks `may_be_cut` the user has said how cut off answers count; there they are not looked at.
    """

    def __init__(self, may_be_cut: Collection[str] = ()) -> None:
        self._may_be_cut = frozenset(may_be_cut)
        self._tasks: dict[str, _Task] = {}
        self._answers: Counter[str] = Counter()
        self._cut: Counter[str] = Counter()
        self._told: set[tuple[str, str]] = set()

    def read(self, reader: RunReader) -> None:
        """Take in how many stored answers were cut off; a scorer may have been mended since."""
        cells = reader.cells()
        for place, number in enumerate(cells.model):
            task, _ = cells.questions[cells.question[place]]
            if task not in self._may_be_cut:
                self._answers[cells.models[number]] += int(cells.scored[place])
                self._cut[cells.models[number]] += int(cells.truncated[place])

    def add(self, record: TrialRecord) -> None:
        """Take in a finished trial."""
        answer, score = record.completion, record.score
        if answer is None or score is None or COPY in score.signals:
            return
        model = record.request.key.model
        if record.request.task not in self._may_be_cut:
            self._answers[model] += 1
            self._cut[model] += answer.finish_reason in CUT_OFF
        task = self._tasks.setdefault(record.request.task, _Task())
        task.answers += 1
        task.cut += answer.finish_reason in CUT_OFF
        task.votes += int(score.signals.get("judgements") or 0) // 2 if ORDER_DECIDED in score.signals else 0
        task.by_order += int(score.signals.get(ORDER_DECIDED) or 0)
        if score.category is not None:
            task.categories[score.category] += 1
            task.not_found += score.reason.startswith(NOT_FOUND)
        elif answer.no_answer is None:
            task.failed += 1
            task.said = score.reason

    def verdict(self) -> StopVerdict | None:
        """Return why the run must end; None where it may go on."""
        for name, task in self._tasks.items():
            if task.failed >= FEWEST_FAILED and task.failed > MOST * task.answers:
                return _unusable("scorer", name, task.failed, task.answers, task.said)
        for model, cut in self._cut.items():
            answers = self._answers[model]
            if answers >= ENOUGH and cut > MOST * answers:
                return _unusable("length", model, cut, answers, "")
        return None

    def remarks(self) -> Iterator[Coded]:
        """Yield what is wrong at present, each with its likely cause."""
        for name, task in self._tasks.items():
            yield from _of_task(name, task)
        for model, cut in self._cut.items():
            answers = self._answers[model]
            if answers >= ENOUGH and cut >= CUT_WARNED * answers:
                yield Coded(
                    "warning/cut-off",
                    f"{model}: {cut:,} of {answers:,} answers were cut off at the token limit; raise "
                    "max_tokens. The rubric's truncated says how they count",
                )

    def take_news(self) -> list[Coded]:
        """Return the first remark of each kind about each task or model, once."""
        news = []
        for found in self.remarks():
            kind = found.code, found.partition(":")[0]
            if kind not in self._told:
                self._told.add(kind)
                news.append(found)
        return news


def _unusable(cause: str, owner: str, affected: int, answers: int, said: str) -> StopVerdict:
    evidence = {"cause": cause, "owner": owner, "affected": affected, "answers": answers, "said": said}
    return StopVerdict("unusable", evidence=evidence)


def _of_task(name: str, task: _Task) -> Iterator[Coded]:
    """Yield what is wrong with the scores of one task."""
    if task.failed:
        yield Coded(
            "warning/scorer-failed",
            f"task {name}: {task.failed:,} of {task.answers:,} answers could not be scored and count as "
            f"missing: {task.said}",
        )
    if task.by_order:
        yield Coded(
            "warning/judge-order",
            f"task {name}: the order of the two answers decided {task.by_order:,} of {task.votes:,} votes of "
            f"the judge ({task.by_order / task.votes:.0%}); they count for neither answer",
        )
    if task.answers < ENOUGH or task.cut > MOST * task.answers:
        return
    if task.not_found > MOST * task.answers:
        yield Coded(
            "warning/nothing-found",
            f"task {name}: no result was found in {task.not_found:,} of {task.answers:,} answers, which "
            "count as wrong; does the prompt ask for the form that the scorer reads, and does its pattern or "
            f"extract fit? {_SAMPLES}",
        )
    elif len(task.categories) == 1:
        (category,) = task.categories
        cause = (
            "does the scorer read the answers, and do the targets fit the questions?"
            if category == 0
            else "does the scorer call every answer right, or is the task too easy to tell models apart?"
        )
        yield Coded(
            "warning/all-alike",
            f"task {name}: all {task.categories[category]:,} answers have category {category}; {cause} "
            f"{_SAMPLES}",
        )
