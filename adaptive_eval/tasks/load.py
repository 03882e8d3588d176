"""A dataset file to a :class:`~adaptive_eval.tasks.task.Task`, or every mistake in it at once."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adaptive_eval.errors import DatasetError
from adaptive_eval.options.task_options import FewShotConfig, TaskConfig
from adaptive_eval.tasks.messages import MessagesTemplate, Unreadable, read_tools
from adaptive_eval.tasks.questions import CONVERSATION, QuestionReader
from adaptive_eval.tasks.rows import Row
from adaptive_eval.tasks.sources import is_file_source, read_source
from adaptive_eval.tasks.task import Task, split_system, target_option
from adaptive_eval.tasks.template import PromptTemplate, template_problem
from adaptive_eval.trial import Message, Question

MOST_SHOWN = 20
"""Problems that one message lists; the rest is counted."""

MOST_ALIKE = 4
"""Rows with one problem, up to their own values in quotes, that are listed by themselves."""

_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def load_task(
    section: TaskConfig,
    source: str,
    base: Path | None = None,
    *,
    seed: int = 0,
    check_target: Callable[[Question], str | None] | None = None,
) -> Task:
    r"""Load a task from a file, the Hugging Face hub or a function.

    `source` is its dataset, a file with its whole path; `base` is the folder of the config, `seed` that of
    the run.

    Examples
    --------
    >>> import tempfile
    >>> fields = {"input": "question", "target": "answer"}
    >>> section = TaskConfig(name="sums", dataset="sums.jsonl", fields=fields, scorer="numeric")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "sums.jsonl")
    ...     _ = file.write_text('{"id": "a", "question": "2 + 2?", "answer": 4}')
    ...     task = load_task(section, str(file))
    >>> task.questions[0].target
    '4'
    """
    template = _template(section, base)
    columns = section.fields
    few = section.few_shot
    given = CONVERSATION in columns
    is_file = is_file_source(source)
    media = {str(columns.get(name, name)) for name in section.media}
    relative_to = base
    if is_file:
        relative_to = None
    file = read_source(
        source,
        relative_to,
        split=section.split,
        subset=section.subset,
        revision=section.revision,
        media=media,
    )
    rows, about_rows = kept(file.rows, section.filter)
    text = ""
    if few is not None:
        text = few.answer
    answer = PromptTemplate.parse(text)
    if not given:
        fields = template.fields
    else:
        fields = ()
    wanted = (*fields, *answer.fields)
    folder = None
    if is_file:
        folder = Path(source).expanduser().parent
    reader = QuestionReader(section, tuple(dict.fromkeys(wanted)), folder)
    if rows:
        found = reader.read(rows)
    else:
        found = []
    problems = [*file.problems, *about_rows, *reader.problems]
    about_prompt = None
    if not given:
        about_prompt = template_problem(template.fields, columns)
    if about_prompt is not None:
        problems.append((0, about_prompt))
    if check_target is not None:
        problems += _faults((row.line, check_target(question)) for row, question in found)
    if section.shuffle_options:
        problems += [(row.line, words) for row, question in found if (words := _unshufflable(question))]
    if problems:
        raise DatasetError(_message(source, problems))
    ordered = _shuffled([question for _, question in found], section.shuffle_seed(seed))
    examples: tuple[Message, ...] = ()
    if few is not None:
        plain = Task(section.name, (), template)
        if few.dataset is None:
            shown, ordered = _split_off(ordered, few.count, source)
            if not ordered:
                raise DatasetError(
                    f"{source}: all {len(shown)} questions are worked examples; none is left to ask"
                )
        else:
            unseen, where = _unseen(section, few, source, base, plain, ordered[: section.limit])
            shown, _ = _split_off(unseen, few.count, f"{where}, without the questions that are asked")
        examples = _worked(plain, shown, answer)
    if not isinstance(section.tools, str):
        tools = tuple(read_tools(section.tools))
    else:
        tools = ()
    return Task(
        section.name,
        ordered[: section.limit],
        template,
        section.system,
        source=source,
        examples=examples,
        shuffles_options=section.shuffle_options,
        tools=tools,
        image_tokens=section.image_tokens,
    )


def _template(section: TaskConfig, base: Path | None) -> PromptTemplate | MessagesTemplate:
    if isinstance(section.prompt, str) and not section.media:
        return PromptTemplate.parse(section.prompt)
    try:
        return MessagesTemplate.parse(section.prompt, tuple(section.media), base or Path())
    except Unreadable as error:
        raise DatasetError(f"the prompt {error}") from None


def _unseen(
    section: TaskConfig,
    few: FewShotConfig,
    source: str,
    base: Path | None,
    plain: Task,
    ordered: Sequence[Question],
) -> tuple[list[Question], str]:
    """Return the questions of another dataset that are not asked, and where it is."""
    assert few.dataset is not None
    if is_file_source(few.dataset):
        where = str((base or Path()) / few.dataset)
    else:
        where = few.dataset
    revision = None
    if where == source:
        revision = section.revision
    only_read: dict[str, Any] = {"few_shot": None, "filter": {}, "tools": (), "limit": None, "shuffle": False}
    changes = {**only_read, "shuffle_options": False, "split": few.split, "revision": revision}
    others = load_task(section.model_copy(update=changes), where, base)
    asked = {plain.render(question) for question in ordered}
    return [question for question in others.questions if plain.render(question) not in asked], where


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

    def is_kept(row: Row) -> bool:
        return all(_as_text(row.values.get(name)) in wanted for name, wanted in keep.items())

    found = list(filter(is_kept, rows))
    return found, [] if found else [(0, f"filter: no row has {dict(keep)!r}")]


def _as_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


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
    first = None
    if said:
        first = said[0][1]
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


def _shuffled(questions: Sequence[Question], seed: int | None) -> tuple[Question, ...]:
    if seed is not None:
        questions = sorted(
            questions, key=lambda question: hashlib.sha256(f"{seed}:{question.id}".encode()).digest()
        )
    return tuple(questions)


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
        if rest >= MOST_ALIKE:
            shown += [(line, f"{words} ({rest} more rows like this)")]
        else:
            shown += same
    for line, words in sorted(shown, key=lambda problem: problem[0])[:MOST_SHOWN]:
        if line:
            lines.append(f"  line {line}: {words}")
        else:
            lines.append(f"  {words}")
    if len(shown) > MOST_SHOWN:
        lines.append(f"  … and {len(shown) - MOST_SHOWN} more")
    return "\n".join(lines)
