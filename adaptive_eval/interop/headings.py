"""What the columns of a table hold, by their headings and first values."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from adaptive_eval.interop.column_maps import OBJECT_KEY, VERDICTS
from adaptive_eval.trial import ScoreRange

_NAMES: Mapping[str, tuple[str, ...]] = {
    "model": (
        "model", "model_name", "model_id", "system", "agent", "llm", "generator", "engine",
        OBJECT_KEY,
    ),
    "question": (
        "question", "question_id", "task_id", "instance_id", "item_id", "problem_id", "example_id",
        "sample_id", "prompt_id", "case_id", "doc_id", "test_id", "qid", "question_number", "item",
        "instance", "problem", "example", "case", "test", "prompt", "id", "idx", "index", "task",
    ),
    "task": ("task", "task_name", "benchmark", "dataset", "subset"),
    "trial": ("trial", "repeat", "epoch", "attempt", "run", "replicate", "sample_index"),
    "category": ("category",),
    "correct": (
        "correct", "is_correct", "right", "passed", "pass", "success", "resolved", "is_resolved", "solved",
    ),
    "score": (
        "score", "judge_score", "accuracy", "acc", "exact_match", "em", "reward", "grade", "rating", "result",
        "outcome", "value",
    ),
}  # fmt: skip
"""Headings of our columns, the likeliest first; the last one of a question is a task that is one."""

WORDS: Mapping[str, int] = {
    **dict.fromkeys(("true", "yes", "pass", "passed", "correct", "right", "resolved", "solved"), 1),
    **dict.fromkeys(("t", "y", "c", "✓", "✔", "✅"), 1),
    **dict.fromkeys(("false", "no", "fail", "failed", "incorrect", "wrong", "unresolved", "timeout"), 0),
    **dict.fromkeys(("f", "n", "i", "✗", "✘", "❌"), 0),
}
"""Verdicts in words and signs; C and I are those of Inspect's data frames."""

_NO_ANSWER = ("", "na", "n/a", "nan", "null", "none", "-", "–", "—")
"""Cells without a verdict, in small letters."""

SUMMARIES = (
    "average", "average_score", "avg", "macro_avg", "mean", "mean_score", "overall", "overall_score", "total",
)  # fmt: skip
"""Headings of columns and rows that sum up others, whose numbers are no verdicts on a question."""

_NUMBER = re.compile(r"([-+]?\d*[.,]?\d+) *(%?)")

_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")
"""A number whose comma may be a decimal one or part thousands, where a score may be that high."""

_ROWS_READ = 200
_MOST_LISTED = 10


@dataclass(frozen=True)
class Headings:
    """What the columns of a table are found to hold."""

    columns: Mapping[str, str]  # from ours to the file's, where these differ
    # columns with the verdicts of one model each, or on one question each
    models: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    words: str = ""  # how such a table is read, for a person
    by_subject: bool = False  # whether its column category names subjects, not what an answer is worth

    def single(self, row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the trials of a row; itself, if a row is a trial."""
        for ours, names in (("model", self.models), ("question", self.questions)):
            for name in names:
                yield {**row, ours: name, "score": row.get(name)}
        if not (self.models or self.questions):
            yield row


def plain_heading(heading: str) -> str:
    """Return a heading in small letters, its words apart by underscores.

    Examples
    --------
    >>> plain_heading("Task ID"), plain_heading("modelName"), plain_heading(" Is-Correct? ")
    ('task_id', 'model_name', 'is_correct')
    """
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", heading)
    return re.sub(r"[^0-9a-z]+", "_", apart.lower()).strip("_")


def read_headings(
    rows: Sequence[Mapping[str, Any]], given: Mapping[str, str], scores: ScoreRange | None, *, named: bool
) -> Headings:
    """Return what the columns of a table hold; `named` says that all rows are of a model with a known name.

    Examples
    --------
    >>> read_headings([{"Model": "a", "Task ID": "t1", "Passed": "1"}], {}, None, named=False).columns
    {'model': 'Model', 'question': 'Task ID', 'correct': 'Passed'}
    >>> read_headings([{"old": "1", "new": "0"}, {"old": "1", "new": "1"}], {}, None, named=False).models
    ('old', 'new')
    """
    first: Mapping[str, Any] = next(iter(rows), {})
    found = _named_columns(first, given)
    if "category" in found and _names_subjects(rows, found["category"]):
        return _by_subject(rows, given, scores, named=named)
    taken = {*found.values(), *given.values()}
    if any(name in found or name in given for name in VERDICTS) or named:
        return Headings(_differing(found))
    may_be = (name for name in first if name not in taken and plain_heading(str(name)) not in SUMMARIES)
    verdicts = [name for name in may_be if holds_verdicts(rows, name, scores)]
    if len(verdicts) < 2:
        return Headings(_differing(found))
    if "model" not in found and "model" not in given:
        if "question" not in found and "question" not in given:
            taken |= set(verdicts)
            found.update(_identity(rows, [name for name in first if name not in taken]))
        where = found.get("question") or given.get("question")
        questions = "a row is a question"
        if where:
            questions = f"the questions are in {where!r}"
        words = f"read with a column a model: {', '.join(verdicts)}; {questions}"
        words += _unread(first, {*verdicts, *found.values(), *given.values()})
        return Headings(_differing(found), models=tuple(verdicts), words=words)
    if "question" in found or "question" in given:
        return Headings(_differing(found))
    words = f"read with a column a question ({len(verdicts):,}), and a row a model"
    words += _unread(first, {*verdicts, *found.values(), *given.values()})
    return Headings(_differing(found), questions=tuple(verdicts), words=words)


def _unread(names: Iterable[str], read: Collection[str]) -> str:
    """Say which columns are not read."""
    unread = [name for name in names if name and name not in read]
    if not unread:
        return ""
    return f"; not read: {listed(unread)}"


def _by_subject(
    rows: Sequence[Mapping[str, Any]], given: Mapping[str, str], scores: ScoreRange | None, *, named: bool
) -> Headings:
    """Return what a table holds whose column category names subjects: what the others hold, by themselves."""
    others = [_without_category(row) for row in rows]
    read = read_headings(others, given, scores, named=named)
    worth = _named_columns(next(iter(others), {}), given)
    verdicts = {name: worth[name] for name in VERDICTS if name in worth}
    if read.models or read.questions:
        verdicts = {"score": "score"}
    words = "; ".join(filter(None, [read.words, "the category is a subject, and not read"]))
    return replace(read, columns={**read.columns, **verdicts}, words=words, by_subject=True)


def _without_category(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if plain_heading(str(name)) != "category"}


def verdict_of(cell: Any, scores: ScoreRange | None) -> Any:
    """Return what the cell of a verdict says: words as 0 or 1, a share for a percentage, None for nothing.

    Examples
    --------
    >>> [verdict_of(cell, None) for cell in ("Yes", "83.5 %", "0,25", "n/a", True, "maybe")]
    [1, 0.835, 0.25, None, True, 'maybe']
    """
    if not isinstance(cell, str):
        if cell != cell:  # not a number
            return None
        return cell
    text = cell.strip().lower()
    if text in _NO_ANSWER or text in WORDS:
        return WORDS.get(text)
    match = _NUMBER.fullmatch(text)
    has_thousands = scores is not None and scores[1] >= 1_000.0
    if match is None or (has_thousands and _THOUSANDS.fullmatch(text)):
        return cell
    number = float(match[1].replace(",", "."))
    is_share = bool(match[2]) and (scores is None or scores[1] <= 1.0)
    if is_share:
        return number / 100.0
    return number


def outside(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[float, float] | None:
    """Return the lowest and the highest of a column of numbers, if these are no scores from 0 to 1."""
    numbers = []
    for row in rows:
        value = verdict_of(row.get(name), None)
        if not isinstance(value, int | float | None):
            return None
        if value is not None:
            try:
                numbers.append(float(value))
            except OverflowError:  # hundreds of digits are no score
                return None
    if not numbers or 0.0 <= min(numbers) <= max(numbers) <= 1.0:
        return None
    return min(numbers), max(numbers)


def listed(names: Iterable[str]) -> str:
    """Return names one after another; of many the first."""
    known = [" ".join(name.split()) for name in names]
    more = ""
    if len(known) > _MOST_LISTED:
        more = ", …"
    return ", ".join(known[:_MOST_LISTED]) + more


def sample_of(rows: Iterator[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows that tell what the columns hold."""
    return list(islice(rows, _ROWS_READ))


def metric_column(row: Mapping[str, Any], given: Mapping[str, str]) -> str | None:
    """Return the column that names the metric of each row, if the heading of one says so."""
    named = (name for name in row if plain_heading(str(name)) in ("metric", "metric_name"))
    return next((name for name in named if isinstance(row[name], str) and name not in given.values()), None)


def _named_columns(row: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
    """Return our columns that the headings name, from ours to the file's; those given are not looked for."""
    headings: dict[str, str] = {}
    for name in row:
        headings.setdefault(plain_heading(str(name)), str(name))
    found: dict[str, str] = {}
    has_verdict = any(name in given for name in VERDICTS)
    for ours, names in _NAMES.items():
        if has_verdict and ours in VERDICTS:
            continue
        taken = {*found.values(), *given.values()}
        candidates = [headings[name] for name in names if name in headings]
        if ours in row:
            candidates = [ours]
        free = [name for name in candidates if name not in taken]
        if ours not in given and free:
            found[ours] = free[0]
    return found


def _differing(found: Mapping[str, str]) -> Mapping[str, str]:
    return {ours: theirs for ours, theirs in found.items() if ours != theirs}


def _identity(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, str]:
    """Return the first of some columns whose values all differ, as that of the question."""
    for name in names:
        values = {str(row.get(name)) for row in rows}
        if len(values) == len(rows) and "None" not in values:
            return {"question": name}
    return {}


def _names_subjects(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Tell whether a column has only words that are no verdicts, as the subjects of a benchmark are."""
    cells = [verdict_of(row.get(name), None) for row in rows]
    words = [cell for cell in cells if cell is not None]
    return bool(words) and all(isinstance(word, str) and word.strip()[:1].isalpha() for word in words)


def holds_verdicts(rows: Sequence[Mapping[str, Any]], name: str, scores: ScoreRange | None) -> bool:
    """Tell whether all cells of a column are verdicts or scores in the range, and some cell is there."""
    low, high = scores or (0.0, 1.0)
    values = [verdict_of(row.get(name), scores) for row in rows]
    given = [value for value in values if value is not None]
    return bool(given) and all(isinstance(one, int | float) and low <= one <= high for one in given)
