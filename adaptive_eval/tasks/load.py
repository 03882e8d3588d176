"""A dataset file to a :class:`~adaptive_eval.tasks.task.Task`, or every mistake in it at once."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptive_eval.errors import DatasetError
from adaptive_eval.tasks.messages import Medium, MessagesTemplate, Unreadable, read_tools
from adaptive_eval.tasks.questions import CONVERSATION, Columns, QuestionReader
from adaptive_eval.tasks.rows import Row
from adaptive_eval.tasks.sources import is_file_source, read_source
from adaptive_eval.tasks.task import Task, split_system, target_option
from adaptive_eval.tasks.template import PromptTemplate, template_problem
from adaptive_eval.trial import IMAGE_TOKENS, Message, Question

MOST_SHOWN = 20
"""Problems that one message lists; the rest is counted."""

MOST_ALIKE = 4
"""Rows with one problem, up to their own values in quotes, that are listed by themselves."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


@dataclass(frozen=True)
class FewShot:
    """Worked examples."""

    count: int  # how many
    # what the assistant is shown to have said; it may ask for every field, the target included
    answer: PromptTemplate
    # where they come from; None for the first questions of the task's own dataset
    dataset: str | None = None
    split: str = "train"  # of a Hugging Face dataset


def load_task(
    name: str,
    path: str | Path,
    *,
    prompt: str | Sequence[Any] = "{input}",
    fields: Columns | None = None,
    media: Mapping[str, Medium] | None = None,
    tools: str | Sequence[Any] = (),
    image_tokens: int = IMAGE_TOKENS,
    json_target: bool = False,
    system: str | None = None,
    limit: int | None = None,
    shuffle: int | None = None,
    check_target: Callable[[Question], str | None] | None = None,
    base: Path | None = None,
    split: str = "test",
    subset: str | tuple[str, ...] | None = None,
    revision: str | None = None,
    target_pattern: str | None = None,
    skip_duplicates: bool = False,
    keep: Mapping[str, Sequence[str]] | None = None,
    few_shot: FewShot | None = None,
    shuffle_options: bool = False,
) -> Task:
    r"""Load a task from a file, the Hugging Face hub or a function.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sums.jsonl")
    ...     _ = file.write_text('{"id": "a", "question": "2 + 2?", "answer": 4}\n')
    ...     task = load_task("sums", file, fields={"input": "question", "target": "answer"})
    >>> task.questions[0].target
    '4'
    """
    template: PromptTemplate | MessagesTemplate
    if isinstance(prompt, str) and not media:
        template = PromptTemplate.parse(prompt)
    else:
        try:
            template = MessagesTemplate.read(prompt, tuple(media or ()), base or Path())
        except Unreadable as error:
            raise DatasetError(f"the prompt {error}") from None
    columns = fields or {}
    given = CONVERSATION in columns
    is_file = is_file_source(str(path))
    place = None if is_file else base
    file = read_source(
        str(path), place, split=split, subset=subset, revision=revision, media=_columns_of(media, columns)
    )
    rows, about_rows = kept(file.rows, keep or {})
    shown_too = () if few_shot is None else few_shot.answer.fields
    wanted = (*(() if given else template.fields), *shown_too)
    reader = QuestionReader(
        name,
        columns,
        tuple(dict.fromkeys(wanted)),
        target_pattern,
        skip_duplicates=skip_duplicates,
        media=media or {},
        tools=tools if isinstance(tools, str) else None,
        json_target=json_target,
        folder=Path(path).expanduser().parent if is_file else None,
    )
    found = reader.read(rows) if rows else []
    problems = [*file.problems, *about_rows, *reader.problems]
    about_prompt = None if given else template_problem(template.fields, columns)
    if about_prompt is not None:
        problems.append((0, about_prompt))
    if check_target is not None:
        problems += _faults((row.line, check_target(question)) for row, question in found)
    if shuffle_options:
        problems += [(row.line, words) for row, question in found if (words := _unshufflable(question))]
    if problems:
        raise DatasetError(_message(str(path), problems))
    ordered = _selected([question for _, question in found], None, shuffle)
    examples: tuple[Message, ...] = ()
    if few_shot is not None:
        if few_shot.dataset is None:
            shown, ordered = _split_off(ordered, few_shot.count, str(path))
            if not ordered:
                raise DatasetError(
                    f"{path}: all {len(shown)} questions are worked examples; none is left to ask"
                )
        else:
            where = str((base or Path()) / few_shot.dataset) if is_file_source(few_shot.dataset) else None
            source = few_shot.dataset if where is None else where
            others = load_task(
                name,
                source,
                prompt=prompt,
                fields=fields,
                media=media,
                json_target=json_target,
                base=base,
                split=few_shot.split,
                subset=subset,
                revision=revision if source == str(path) else None,
                target_pattern=target_pattern,
                skip_duplicates=skip_duplicates,
            )
            plain = Task(name, (), template)
            asked = {plain.render(question) for question in ordered[:limit]}
            unseen = [question for question in others.questions if plain.render(question) not in asked]
            shown, _ = _split_off(unseen, few_shot.count, f"{source}, without the questions that are asked")
        examples = _worked(Task(name, (), template), shown, few_shot.answer)
    return Task(
        name,
        ordered[:limit],
        template,
        system,
        source=str(path),
        examples=examples,
        shuffles_options=shuffle_options,
        tools=() if isinstance(tools, str) else tuple(read_tools(tools)),
        image_tokens=image_tokens,
    )


def _columns_of(media: Mapping[str, Medium] | None, columns: Columns) -> frozenset[str]:
    """Return the columns whose bytes are images or sounds."""
    return frozenset(str(columns.get(name, name)) for name in media or ())


def _worked(task: Task, questions: Sequence[Question], answer: PromptTemplate) -> tuple[Message, ...]:
    """Return questions with their answers as a conversation."""
    messages: list[Message] = []
    for question in questions:
        fields = {name: str(value) for name, value in question.fields.items()}
        _, asked = split_system(task.render(question))
        messages += [*asked, Message("assistant", answer.render(fields))]
    return tuple(messages)


def kept(
    rows: Sequence[Row], keep: Mapping[str, Sequence[str]]
) -> tuple[Sequence[Row], list[tuple[int, str]]]:
    """Return the rows whose columns have one of the wanted values, and the flaws of the filter."""
    if not keep or not rows:
        return rows, []
    columns = dict.fromkeys(name for row in rows for name in row.values)
    unknown = [name for name in keep if name not in columns]
    if unknown:
        return (), [(0, f"filter: there is no column {unknown[0]!r}; there are {', '.join(columns)}")]
    found = [
        row for row in rows if all(_as_text(row.values.get(name)) in wanted for name, wanted in keep.items())
    ]
    return found, [] if found else [(0, f"filter: no row has {dict(keep)!r}")]


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _split_off(
    questions: Sequence[Question], count: int, source: str
) -> tuple[tuple[Question, ...], tuple[Question, ...]]:
    if len(questions) < count:
        raise DatasetError(
            f"{source}: {count} worked examples are wanted and there are {len(questions)} questions"
        )
    return tuple(questions[:count]), tuple(questions[count:])


def _faults(checked: Iterable[tuple[int, str | None]]) -> list[tuple[int, str]]:
    """Return a scorer's objections to targets; one shared by all questions is no row's fault."""
    said = list(checked)
    first = said[0][1] if said else None
    if len(said) > 1 and first is not None and all(words == first for _, words in said):
        return [(0, first)]
    return [(line, words) for line, words in said if words is not None]


def _unshufflable(question: Question) -> str | None:
    if not question.choices:
        return "shuffle_options needs options: map choices to their column"
    if target_option(question) is None:
        return (
            f"shuffle_options needs a target that is an option's letter or text, not {question.target[:60]!r}"
        )
    return None


def _selected(questions: Sequence[Question], limit: int | None, shuffle: int | None) -> tuple[Question, ...]:
    if shuffle is not None:
        questions = sorted(
            questions, key=lambda question: hashlib.sha256(f"{shuffle}:{question.id}".encode()).digest()
        )
    return tuple(questions[:limit])


def _message(source: str, problems: Sequence[tuple[int, str]]) -> str:
    count = len(problems)
    lines = [f"{source}: {count} problem{'' if count == 1 else 's'}"]
    alike: dict[str, list[tuple[int, str]]] = {}
    for problem in sorted(problems, key=lambda problem: problem[0]):
        alike.setdefault(_QUOTED.sub("", problem[1]), []).append(problem)
    shown: list[tuple[int, str]] = []
    for same in alike.values():
        line, words = same[0]
        rest = len(same) - 1
        shown += [(line, f"{words} ({rest} more rows like this)")] if rest >= MOST_ALIKE else same
    for line, words in sorted(shown, key=lambda problem: problem[0])[:MOST_SHOWN]:
        lines.append(f"  line {line}: {words}" if line else f"  {words}")
    if len(shown) > MOST_SHOWN:
        lines.append(f"  … and {len(shown) - MOST_SHOWN} more")
    return "\n".join(lines)
