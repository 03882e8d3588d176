"""The messages of every question: for the models, for Inspect, and for the mock server that knows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adaptive_eval.config.scorers import ScorerConfig
from adaptive_eval.interop.inspect_task import SampleMessage
from adaptive_eval.tasks.task import Task, target_option
from adaptive_eval.trial import Message, Question, TrialRequest


class InspectPrompts:
    """The samples of Inspect that are the questions."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {task.name: task for task in tasks}

    def messages(self, request: TrialRequest) -> Sequence[Message]:
        """Return the sample and epoch that a trial is."""
        question = self._tasks[request.task].by_id[request.question]
        text, epoch = str(question.fields["input"]), request.repeat + 1
        return (SampleMessage("user", text, request.task, request.question, epoch),)


class RenderedPrompts:
    """The messages of every question, rendered once."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = {task.name: task for task in tasks}
        self._messages = {
            (task.name, question.id): task.render(question)
            for task in tasks
            if not task.shuffles_options
            for question in task.questions
        }

    def messages(self, request: TrialRequest) -> Sequence[Message]:
        """Return the messages of a trial's question."""
        known = self._messages.get((request.task, request.question))
        if known is not None:
            return known
        task = self._tasks[request.task]
        return task.render(task.asked(task.by_id[request.question], request.seed))


def answer_key(task: Task, scorer: ScorerConfig) -> Iterator[dict[str, Any]]:
    """Yield the questions of a task as the mock server reads them; it knows a question by its prompt."""
    scorer = getattr(scorer, "is_correct", None) or scorer
    kind = {"numeric": "numeric", "choice": "choice"}.get(scorer.kind, "text")
    for question in task.questions:
        yield {
            "id": f"{task.name}/{question.id}",
            "dataset": task.name,
            **_known_as(task, question, kind),
        }


def _known_as(task: Task, question: Question, kind: str) -> dict[str, Any]:
    """Return a question as the mock server is to recognise and answer it."""
    if task.shuffles_options:  # it does not see the order, so it answers by text
        place = target_option(question)
        right = question.choices[place] if place is not None else question.target
        return {"question": question.fields["input"], "target": right, "choices": [], "kind": "text"}
    asked = task.render(question)[-1].content
    return {"question": asked, "target": question.target, "choices": list(question.choices), "kind": kind}
