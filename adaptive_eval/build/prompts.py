"""The messages of every question, for models, Inspect and the mimic server; and models that refuse them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adaptive_eval.config.model import ModelConfig
from adaptive_eval.endpoints.function import Answerer, content_taken
from adaptive_eval.errors import UsageError
from adaptive_eval.options.mistakes import not_accepted
from adaptive_eval.options.scorers import ScorerConfig
from adaptive_eval.options.task_options import TaskConfig
from adaptive_eval.tasks.messages import Unreadable
from adaptive_eval.tasks.questions import as_text
from adaptive_eval.tasks.task import Task, target_option
from adaptive_eval.tasks.template import PromptTemplate
from adaptive_eval.trial import GIVEN, Conversation, Message, Question, TrialRequest


class RenderedPrompts:
    """The messages of every question, rendered once; `own` are the tasks of models with their own prompt."""

    def __init__(self, tasks: Sequence[Task], own: Mapping[str, Sequence[Task]]) -> None:
        self._shared = _Rendered(tasks)
        self._own = {model: _Rendered(asked) for model, asked in own.items()}

    def messages(self, request: TrialRequest) -> Sequence[Message]:
        """Return the messages of a trial's question."""
        return self._own.get(request.key.model, self._shared).messages(request)


class _Rendered:
    """The messages of every question of some tasks."""

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


def own_tasks(models: Iterable[ModelConfig], tasks: Sequence[Task]) -> dict[str, tuple[Task, ...]]:
    """Return the tasks as models with their own prompt or system message are asked them.

    Raises
    ------
    UsageError
        A prompt names a field that the questions do not have.
    """
    found = {}
    for model in models:
        if model.prompt is not None or model.system is not None:
            found[model.name] = tuple(_own_task(model, task) for task in tasks)
    return found


def _own_task(model: ModelConfig, task: Task) -> Task:
    template = task.template
    if model.prompt is not None:
        template = PromptTemplate.parse(model.prompt)
        fields = [question.fields for question in task.questions]
        common = set(template.fields).intersection(*fields)
        lacking = [name for name in template.fields if name not in common]
        whole = any(GIVEN in known for known in fields) or not isinstance(task.template, PromptTemplate)
        if whole or lacking:
            why = "brings whole conversations"
            if not whole:
                why = f"has no field {lacking[0]} in its own prompt"
            words = f"model {model.name}: its prompt cannot replace that of the task {task.name}, which {why}"
            raise UsageError(words)
        shown = tuple(_with_texts(model, task, question, template.fields) for question in task.questions)
        task = replace(task, questions=shown)
    return replace(task, template=template, system=model.system or task.system)


def _with_texts(model: ModelConfig, task: Task, question: Question, names: Sequence[str]) -> Question:
    """Return a question whose fields that a prompt names are texts."""
    try:
        texts = {name: as_text(question.fields[name], name, lines=True) for name in names}
    except Unreadable as error:
        words = f"model {model.name}: its prompt cannot replace that of the task {task.name}: in the question"
        raise UsageError(f"{words} {question.id!r} {error}") from None
    return replace(question, fields={**question.fields, **texts})


def answer_key(task: Task, scorer: ScorerConfig) -> Iterator[dict[str, Any]]:
    """Yield the questions of a task as the mimic server reads them; it knows a question by its prompt."""
    known = {"numeric": "numeric", "choice": "choice", "choice_probability": "choice"}
    kind = next((of for name, of in known.items() if scorer.has(name)), "text")
    for question in task.questions:
        yield {
            "id": f"{task.name}/{question.id}",
            "dataset": task.name,
            **_known_as(task, question, kind),
        }


def _known_as(task: Task, question: Question, kind: str) -> dict[str, Any]:
    """Return a question as the mimic server is to recognise and answer it."""
    if task.shuffles_options:  # it does not see the order, so it answers by text
        place = target_option(question)
        if place is not None:
            right = question.choices[place]
        else:
            right = question.target
        return {"question": question.fields["input"], "target": right, "choices": [], "kind": "text"}
    asked = task.render(question)[-1].content
    return {"question": asked, "target": question.target, "choices": list(question.choices), "kind": kind}


_PARTS = {"image_url": "image", "input_audio": "audio"}
_TAKEN: Mapping[str, tuple[str, ...]] = {
    "completions": ("text",),
    "responses": ("text", "image", "tools"),
    "messages": ("text", "image", "tools"),
}
"""Kinds of content that an API takes, where it does not take all."""


def kinds_in(asked: Conversation) -> set[str]:
    """Return the kinds of content of a conversation other than text: image, audio, tools.

    Examples
    --------
    >>> kinds_in(Conversation((), {"tools": [{}]}))
    {'tools'}
    """
    kinds = {_PARTS[part["type"]] for message in asked for part in message.media}
    called = any(message.role == "tool" or "tool_calls" in (message.whole or ()) for message in asked)
    if called or "tools" in asked.fields:
        tools = {"tools"}
    else:
        tools = set()
    return kinds | tools


def require_accepted(
    models: Iterable[ModelConfig], tasks: Sequence[Task], functions: Mapping[str, Answerer]
) -> None:
    """Raise UsageError if a model does not accept the content of a task."""
    held: dict[str, set[str]] = {}
    for one in tasks:
        held[one.name] = set[str]().union(*(kinds_in(one.render(question)) for question in one.questions))
    wrong = []
    for model in models:
        takes = model.accepts or _TAKEN.get(model.api)
        mend = f"if it takes them, add {{}} to its accepts ({', '.join(takes or ())})"
        if model.accepts is None and model.name in functions:
            takes = content_taken(functions[model.name])
            mend = "its function gets tools in a parameter tools, images and sounds in a parameter messages"
        for task, kinds in held.items():
            refused = ""
            if takes is not None:
                refused = ", ".join(sorted(kinds - set(takes)))
            if refused:
                words = f"takes {', '.join(takes or ())} only, and the task {task} has {refused}"
                wrong.append(f"model {model.name}: {words}; {mend.format(refused)}")
            if "tools" in kinds and "tools" in model.extra_body:
                words = f"extra_body.tools would replace the tools of the task {task}"
                wrong.append(f"model {model.name}: {words}")
    if wrong:
        raise UsageError(not_accepted("\n  ".join(wrong)))


def require_tools(configs: Iterable[TaskConfig], tasks: Sequence[Task]) -> None:
    """Raise UsageError if calls are scored of a task that offers no tools: no answer could be right."""
    for config, task in zip(configs, tasks, strict=True):
        offered = any(task.render(question).fields.get("tools") for question in task.questions)
        if config.scorer.has("tool_calls") and config.solver is None and not offered:
            raise UsageError(
                f"the task {task.name} offers no tools, so the scorer tool_calls finds no call: put them "
                "under tools of the task (those of a model's extra_body are not read)"
            )
