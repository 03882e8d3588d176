"""The stored answers of a previous run that a judge compares with."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from adaptive_eval.endpoints.apis import as_prompt
from adaptive_eval.errors import RunFileError, UsageError
from adaptive_eval.interop.found import IMPORTED
from adaptive_eval.options.section import INSPECT
from adaptive_eval.scoring.judge import JudgeScorer
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.store.reader import RunReader
from adaptive_eval.tasks.task import Task
from adaptive_eval.trial import AGAINST, Conversation, Question, content_text, sent_messages

_NAMED = 10
"""Questions that a message names."""


def with_stored_answers(task: Task, scorer: Scorer | None, base: Path, meta: Mapping[str, str]) -> Task:
    """Return the task with the stored answers that its judge compares with; `base` is the config's folder.

    Those that a run began with are in its `meta`: the previous run may have grown, or be gone.

    Raises
    ------
    UsageError
        If the run has not asked the model every question of the task, as the task asks it.
    """
    if not isinstance(scorer, JudgeScorer) or scorer.against is None:
        return task
    kept = json.loads(meta.get(AGAINST, "{}")).get(task.name, {}).get(scorer.against)
    if kept is not None:
        return replace(task, against=kept)
    if task.shuffles_options:
        raise UsageError(f"against: task {task.name} shuffles its options, and the stored answers saw others")
    place, model = (part.strip() for part in scorer.against.rsplit("#", 1))
    try:
        opened = RunReader(base / Path(place).expanduser())
    except RunFileError as error:
        raise UsageError(f"against: {error}") from None
    with opened as reader:
        texts, others = _texts(reader, place, model, task, scorer)
    _require_none(f"{place} has other prompts for the ids", others, task)
    unanswered = [name for name, stored in texts.items() if not stored]
    _require_none(f"{place} has no answer of {model} to", unanswered, task)
    for name, stored in texts.items():
        random.Random(f"against:{name}").shuffle(stored)
    return replace(task, against=texts)


def _texts(
    reader: RunReader, place: str, model: str, task: Task, scorer: JudgeScorer
) -> tuple[dict[str, list[str]], list[str]]:
    """Return a model's answers to each question of the task, and the questions with another prompt."""
    # Inspect puts words of its own around a question.
    is_own = not task.source.startswith(INSPECT) and IMPORTED not in reader.meta()
    cells = reader.cells()
    if model not in cells.models:
        raise UsageError(f"against: {place} has no model {model!r}; it has {', '.join(cells.models)}")
    tasks = {name for name, _ in cells.questions}
    if task.name in tasks or len(tasks) > 1:
        there = task.name
    else:
        there = tasks.pop()
    texts: dict[str, list[str]] = {question.id: [] for question in task.questions}
    others: dict[str, None] = {}
    for record in reader.trials(model=model, task=there):
        question = task.by_id.get(record.request.question)
        answer = record.completion
        if question is None or answer is None:
            continue
        if answer.no_answer and (record.missing or not answer.finish_reason):
            continue  # it did not count there, or a table of results holds no texts
        if not _is_asked_so(task.render(question) if is_own else question, record.sent):
            others[question.id] = None
        texts[question.id].append(scorer.shown(answer))
    return texts, list(others)


def _require_none(problem: str, ids: Sequence[str], task: Task) -> None:
    if not ids:
        return
    more = ""
    if len(ids) > _NAMED:
        more = f" and {len(ids) - _NAMED:,} more"
    raise UsageError(
        f"against: {problem} {', '.join(ids[:_NAMED])}{more} of task {task.name}. Compare "
        "with a run of the same questions and prompt, or leave these out (limit, filter)"
    )


def _is_asked_so(asked: Conversation | Question, sent: Mapping[str, Any]) -> bool:
    """Tell whether a stored request asked this; system messages may differ, and a table has no requests."""
    found = [
        content_text(one.get("content"))
        for one in sent_messages(sent)
        if one.get("role") not in ("system", "developer")
    ]
    if isinstance(asked, Question):
        return not found or str(asked.fields.get("input", "")) in "\n".join(found)
    messages = [one for one in asked if one.role not in ("system", "developer")]
    if "prompt" in sent:
        return f"\n\n{sent['prompt']}".endswith(f"\n\n{as_prompt(messages)}")
    return not found or found == [one.content for one in messages]
