"""Answers of the first pass that a judge is shown again in each later pass, to see whether it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil

from adaptive_eval.errors import EndpointError
from adaptive_eval.scoring.judge import JudgeScorer
from adaptive_eval.scoring.model_graded import Bill, grader_of
from adaptive_eval.scoring.scorer import Scorer, grade_or_failure
from adaptive_eval.store.reader import RunReader
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import ANCHOR, ANCHOR_PARTS, CHECK, Completion, Question, Score, TrialRequest

_USUAL = 30
"""Anchors of a judge whose options name no number."""
_ONE_IN = 10
"""Without labels so many answers of a pass have one anchor among them, which bounds what it costs."""


@dataclass(eq=False)
class Anchors:
    """The anchors of one task: which they are follows from the config alone.

    Cells, one for each model and question, are numbered; anchor k is the first answer in the first cell of
    part k of them. A later answer in such a cell takes another anchor along to the judge, so that each is
    judged once in a pass of all models.
    """

    judge: JudgeScorer
    models: Mapping[str, int]  # their places
    questions: Mapping[str, int]
    check: str | None = None  # the name of the judge among the parts of ``checks``
    kept: dict[int, tuple[Completion, Question]] = field(default_factory=dict)

    @property
    def number(self) -> int:
        """How many there are."""
        if self.judge.anchors is not None:
            return min(self.judge.anchors, self._cells)
        if self.judge.labels is not None:
            most = self._cells
        else:
            most = ceil(self._cells / _ONE_IN)
        return min(_USUAL, most)

    @property
    def _cells(self) -> int:
        return len(self.models) * len(self.questions)

    def place(self, request: TrialRequest) -> int | None:
        """Return the number of the part that begins with a trial's cell; None in the midst of one."""
        cell = self.models[request.key.model] * len(self.questions) + self.questions[request.question]
        part, rest = divmod(cell * self.number, self._cells)
        if rest < self.number:
            return part
        return None

    def keep(self, request: TrialRequest, completion: Completion, question: Question, score: Score) -> Score:
        """Keep an answer if it is an anchor that the judge has scored; return its score, with that said."""
        place = None
        if request.repeat == 0:
            place = self.place(request)
        part = None
        if place is not None:
            part = self._part(score, self._kept)
        if place is None or part is None:
            return score
        self.kept[place] = completion, question
        return replace(score, signals={**score.signals, f"{ANCHOR}{place}_{part}": True})

    async def judged_again(self, request: TrialRequest, score: Score) -> Score:
        """Return the score of a trial with what the judge says now of the anchor that it takes along.

        That costs requests, which are on the bill of the trial; none if half of a budget is spent.
        """
        place = None
        if request.repeat > 0:
            place = self.place(request)
        if place is None or not self.judge.grading_model.spare:
            return score
        place = (place + request.repeat) % self.number
        known = self.kept.get(place)
        if known is None:
            return score
        try:
            again = await grade_or_failure(self._once, *known)
        except EndpointError:  # what it has cost is on the bill of the next answer
            return score
        bill = Bill.from_signals(score.signals, self.judge.kind)
        bill.add(Bill.from_signals(again.signals, self.judge.kind))
        signals = {**score.signals, **bill.signals(self.judge.kind)}
        part = self._part(again, self._own)
        if part is not None:
            signals[f"{ANCHOR}{place}_{part}"] = True
        return replace(score, signals=signals)

    @cached_property
    def _once(self) -> JudgeScorer:
        """The judge without second votes; its account is the judge's, which has been made by now."""
        return self.judge.model_copy(update={"second_votes": 0.0})

    @property
    def _kept(self) -> str:
        """Name of the signal of a trial that says what the judge said."""
        if self.check is None:
            return self._own
        return f"{CHECK}{self.check}"

    @property
    def _own(self) -> str:
        """Name of the judge's own signal; of a check the run keeps no share of votes."""
        if self.check is None or self.judge.range:
            return "score"
        return "is_correct"

    def _part(self, score: Score, name: str) -> int | None:
        """Return a judgement in parts of the range; None if the judge was not asked or said nothing."""
        number = score.signals.get(name)
        asked = Bill.from_signals(score.signals, self.judge.kind).requests
        if score.category is None or not asked or not isinstance(number, int | float):
            return None
        low, high = self.judge.range or (0.0, 1.0)
        return round(ANCHOR_PARTS * (number - low) / (high - low))


def anchors_of(
    tasks: Sequence[Task], scorers: Mapping[str, Scorer], models: Sequence[str]
) -> dict[str, Anchors]:
    """Return the anchors of each task whose judge has some."""
    places = {name: place for place, name in enumerate(models)}
    found = {}
    for task in tasks:
        judge = grader_of(scorers[task.name])
        if not isinstance(judge, JudgeScorer) or judge.anchors == 0:
            continue
        parts = getattr(scorers[task.name], "scorers", {})
        check = next((name for name, part in parts.items() if part is judge), None)
        questions = {question.id: place for place, question in enumerate(task.questions)}
        found[task.name] = Anchors(judge, places, questions, check)
    return found


def resume_anchors(anchors: Mapping[str, Anchors], tasks: Sequence[Task], reader: RunReader) -> None:
    """Read the anchors that a run has judged already."""
    for task in tasks:
        of_task = anchors.get(task.name)
        if of_task is None:
            continue
        for record in reader.trials(task=task.name):
            request = record.request
            if len(of_task.kept) == of_task.number:
                break
            if request.repeat or of_task.place(request) is None:
                continue
            if record.completion is not None and record.score is not None:
                question = task.asked(task.by_id[request.question], request.seed, request.repeat)
                of_task.keep(request, record.completion, question, record.score)
