"""The trials and flaws that a reader finds in a file of another tool."""

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import nan
from pathlib import Path
from tokenize import TokenError
from types import MappingProxyType
from typing import Any, TypeAlias
from zipfile import BadZipFile

import zstandard

from adaptive_eval.core.spec import SessionSpec, TaskSpec
from adaptive_eval.engine.independence import IndependenceAudit
from adaptive_eval.errors import OutcomesError, UsageError, first_line
from adaptive_eval.interop.column_maps import find
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.scorer import Scorer
from adaptive_eval.tasks.rows import Row, opened, stream_rows
from adaptive_eval.trial import SAME_TEXT, Completion, DiscardCause, Question, ScoreRange

DEFAULT_TASK = "recorded"
"""Name of the task where a file names none."""

MOST_FLAWS = 10
"""Mistakes of a file that a message lists."""

_UNREADABLE = (
    *(ArithmeticError, BadZipFile, EOFError, MemoryError, RecursionError, TokenError),
    *(zlib.error, zstandard.ZstdError),
)

_NONE: Mapping[str, Any] = MappingProxyType({})
_NONE_OF: Mapping[Path, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Found:
    """One trial as a file has it: it has a category, or a score, or is missing."""

    # which cell it belongs to
    model: str
    task: str
    question: str
    place: str  # its place in the file, for messages
    # its place among the trials of its cell, which need not be contiguous; None for the next one
    number: int | None = None
    category: int | None = None  # category from 0
    score: float | None = None  # score in [0, 1] or the given range, where the file has no categories
    missing: str | None = None  # why there is no answer
    # what identifies the question as asked, such as a hash; empty where the file does not say
    content: str = ""
    text: str = ""  # the answer
    # why the answer ended; ``length`` when it was cut off; empty where the file does not say
    finish_reason: str = ""
    extracted: str | None = None  # the answer as extracted
    reason: str = ""  # why it got its score
    # what was asked, and the reference answer
    prompt: str = ""
    target: str = ""
    tokens: tuple[int, int] = (0, 0)  # prompt and completion tokens
    latency: float = 0.0  # seconds
    finished_at: float = 0.0  # unix time; 0 where the file does not say
    uuid: str = ""  # the log's own name of this trial; empty without one
    whole: bool = True  # whether the text is all that the model answered
    weights: tuple[float, ...] = ()  # what the task's categories are worth, where the trial says it
    cluster: str = ""  # the group of its question; empty without one
    weight: float = 0.0  # of a trial of a run, its weight in the score of its model
    checks: Mapping[str, float] = field(default_factory=lambda: _NONE)  # of a run's trial, by name
    rule: str = ""  # the stopping rule of the run that it was exported from; empty of any other
    of_run: bool = False  # a trial of a run of ours, whose questions may be asked in several wordings
    # of a trial of a run: why earlier draws were given up, and whether another counts by its config's word
    discarded: tuple[DiscardCause, ...] = ()
    redrawn: bool = False
    repeats: bool = False  # whether a run took its answer for a possible copy of an earlier one
    answer: int = 0  # what tells its text from others, from 1; 0 if that is not known


@dataclass(frozen=True, slots=True)
class Flaw:
    """Something that is wrong with a file."""

    place: str
    words: str


Piece: TypeAlias = Found | Flaw


@dataclass(frozen=True)
class ReadingOptions:
    """The user's choices about reading, if a file leaves them open."""

    model: str | None = None  # the model's name, for files that name none
    models: Mapping[Path, str] = field(default_factory=lambda: _NONE_OF)  # the only model's of single files
    given: Path | None = None  # the one of these that is read
    # of a file without a model's name whose own name other files have, the folder that tells it from them
    folder: str | None = None
    task: str | None = None  # the task's name, instead of the file's
    # new names of models, by the files' own
    rename: Mapping[str, str] = field(default_factory=lambda: _NONE)
    question_id: str | None = None  # the column or field of the dataset that identifies a question
    # the columns of a table by the names that ours has, such as ``{"question": "task_id"}``
    columns: Mapping[str, str] = field(default_factory=lambda: _NONE)
    cluster: str | None = None  # the column or field that names the group of a question
    metric: str | None = None  # the metric or scorer whose values are taken
    range: ScoreRange | None = None  # lowest and highest score, where scores are kept as numbers
    filter: str | None = None  # the filter whose results are taken (lm-evaluation-harness)
    scorer: str | None = None  # kind of a scorer of this package that scores the answers again
    scorer_options: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    incomplete: bool = False  # whether logs of evaluations that have not finished are taken
    independent: bool = field(default=False, compare=False)  # whether equal texts are draws of a sure model
    # the file's own name of each model, by file and new name
    origins: dict[tuple[Path, str], str] = field(default_factory=dict, compare=False)

    def named(self, model: str | None, path: Path) -> str:
        """Return the name of a model that a file calls so; refuse that of another model of the file."""
        name = model or self.model
        if not name:
            raise OutcomesError(f"{path}: it does not say which model answered; name it with --model NAME")
        if self.given is not None:
            path, new = self.given, self.models[self.given]
            option, advice = "--model", "NAME=FILE is for a file with one model"
        elif self.rename:
            new = self.rename.get(name, name)
            option, advice = "--rename", "choose another name"
        else:
            return name
        other = self.origins.setdefault((path, new), name)
        if other != name:
            raise UsageError(
                f"{option}: {path} has the models {other!r} and {name!r}, and both would be {new!r}; {advice}"
            )
        return new

    def require_renamed(self, models: Collection[str]) -> None:
        """Refuse a new name for a model that no log has."""
        for old, new in self.rename.items():
            if new not in models:
                known = ", ".join(models)
                raise UsageError(f"--rename {old}={new}: no log has a model {old!r}; there are {known}")


def cluster_in(name: str | None, *places: Mapping[str, Any]) -> str:
    """Return the group of a question, as the first of some places names it; empty if none is asked for.

    Raises
    ------
    ValueError
        If no place has it.

    Examples
    --------
    >>> cluster_in("subject", {"id": 4}, {"subject": "law"}), cluster_in(None)
    ('law', '')
    """
    if name is None:
        return ""
    for place in places:
        is_there, value = find(place, name)
        if is_there and value not in (None, ""):
            return str(value)
    fields = ", ".join(dict.fromkeys(key for place in places for key in place))
    raise ValueError(f"there is no {name!r} that names its group; there are {fields}")


RUN = "run of adaptive-eval"
"""Format of a log that is a run."""

IMPORTED = "imported"
"""Key of a run file's description that says where its trials come from, if it did not ask them itself."""


@dataclass(frozen=True)
class Log:
    """One file of results."""

    path: Path  # the file
    format: str  # in words, such as ``Inspect log``
    read: Callable[[], Iterator[Piece]]  # returns the pieces, a new iterator each time
    identity: str = ""  # two logs with the same one are the same log; empty where the file does not say
    # version of each task, where the file says it
    versions: Mapping[str, str] = field(default_factory=lambda: _NONE)
    # whether trial numbers count over all files; False: each file's trials follow those of the one before
    numbered: bool = False
    # what the categories of each task are worth, where the file says it
    weights: Mapping[str, tuple[float, ...]] = field(default_factory=lambda: _NONE)
    # the weight of each task in the overall score, if the file says it
    shares: Mapping[str, float] = field(default_factory=lambda: _NONE)
    rule: str = ""  # the stopping rule of a run
    unread_groups: str = ""  # fields of the dataset that name groups, by which the run is not decided
    questions: int = 0  # of all its tasks, asked or not; 0 where the file does not say
    notes: tuple[str, ...] = ()  # how it is read, where a person should know


def weighted(tasks: Sequence[TaskSpec], logs: Iterable[Log]) -> tuple[TaskSpec, ...]:
    """Return the tasks with their weights in the overall score, if the logs say those of all."""
    shares = {task: share for log in logs for task, share in log.shares.items()}
    if any(task.name not in shares for task in tasks):
        return tuple(tasks)
    return tuple(replace(task, weight=shares[task.name]) for task in tasks)


def require_independent(spec: SessionSpec, logs: Iterable[Log]) -> None:
    """Refuse to take questions for a sample that are in clusters."""
    for log in logs:
        if log.unread_groups and spec.stopping.target == "population":
            raise UsageError(
                f"{log.path}: its questions are in groups; give them too, with --map "
                f"cluster={log.unread_groups}, or leave the target population out"
            )


def checked(log: Log) -> Iterator[Found]:
    """Yield the trials of a log."""
    first: dict[str, Flaw] = {}
    like: Counter[str] = Counter()
    number = 0
    for piece in log.read():
        if isinstance(piece, Found):
            yield piece
            continue
        number += 1
        if len(first) < MOST_FLAWS or piece.words in first:
            first.setdefault(piece.words, piece)
            like[piece.words] += 1
    if first:
        flaws = []
        for words, flaw in first.items():
            if like[words] > 1:
                flaw = replace(flaw, words=f"{words}; and {like[words] - 1:,} more like it")
            flaws.append(flaw)
        raise flawed(log.path, flaws, number - like.total() + len(flaws))


def flawed(path: Path, flaws: Iterable[Flaw], number: int | None) -> UsageError:
    """Return the error that lists the flaws of a file; `number` flaws if not all are given."""
    listed = list(flaws)
    count = len(listed) if number is None else number
    lines = []
    for flaw in listed:
        place = f"{flaw.place}: " if flaw.place else ""
        lines.append(f"  {place}{flaw.words}")
    if count > len(listed):
        lines.append(f"  … and {count - len(listed):,} more")
    return OutcomesError("\n".join([f"{path}: cannot be read as outcomes:", *lines]))


def audited(audit: IndependenceAudit, log: Log, found: Found) -> tuple[bool, int]:
    """Return whether a trial's answer may be a copy of an earlier one, and what tells its text from others.

    Without the text of the answer its score and number of tokens are compared. A run has found its own.
    """
    if found.missing is not None or log.format == RUN:
        return found.repeats, found.answer
    text = found.text if found.text and found.whole else f"{found.category} {found.score} {found.tokens[1]}"
    completion = Completion(text, "")
    kind = audit.observe(found.model, (found.task, found.question), completion)
    return kind == SAME_TEXT or found.repeats, completion.digest + 1


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn what reading a missing or damaged file raises into one clear error."""
    try:
        yield
    except FileNotFoundError:
        raise OutcomesError(f"{path}: there is no such file", code="outcomes/not-found") from None
    except (*_UNREADABLE, OSError, ValueError, KeyError, TypeError) as error:
        raise OutcomesError(f"{path}: cannot be read as {kind}: {first_line(error)}") from None


def in_range(value: Any, name: str, scores: tuple[float, float] | None = None) -> float:
    """Return a score of the range, by default 0 to 1, or raise ValueError that names it.

    Examples
    --------
    >>> in_range("0.25", "acc"), in_range(True, "acc")
    (0.25, 1.0)
    """
    low, high = scores or (0.0, 1.0)
    try:
        score = float(value)
    except (OverflowError, TypeError, ValueError):
        score = nan
    if not low <= score <= high:
        more = "; if scores have another range, say it, such as analyze --range 1,10"
        if scores:
            more = ""
        raise ValueError(f"{name}: {value!r:.60} is not a score from {low:g} to {high:g}{more}")
    return score


def chosen_metric(path: Path, wanted: str | None, there: Collection[str]) -> str:
    """Return the metric whose values are taken: the wanted one, or the only one that is there."""
    listed = ", ".join(there) or "(none named)"
    if wanted is None and len(there) != 1:
        raise OutcomesError(f"{path}: it has the metrics {listed}; choose one with --metric")
    if wanted is not None and wanted not in there:
        raise OutcomesError(f"{path}: there is no metric {wanted!r}; there are {listed}")
    if wanted is None:
        return next(iter(there))
    return wanted


def content_of(*parts: object) -> str:
    """Return what identifies a question as asked, from its text, target and options.

    Examples
    --------
    >>> content_of("2 + 2?", "4") == content_of("2 + 2?", "5")
    False
    """
    return hashlib.blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def first_row(path: Path) -> Mapping[str, Any]:
    """Return the first readable row of a file, empty if there is none."""
    for found in stream_rows(path):
        if isinstance(found, Row):
            return found.values
    return {}


def json_value(path: Path) -> Any:
    """Return what a JSON file holds."""
    with reading(path, "JSON"), opened(path) as file:
        return json.loads(file.read())


def json_object(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds."""
    data = json_value(path)
    if not isinstance(data, dict):
        raise OutcomesError(f"{path}: holds no JSON object but {type(data).__name__}")
    return data


class Rescorer:
    """A scorer of this package over the answers of a log.

    Examples
    --------
    >>> rescorer = Rescorer(ReadingOptions(scorer="numeric"))
    >>> rescorer.score("It is 44.", "44.0", {})["score"]
    1.0
    >>> rescorer.score("44", "a cat", {})
    Traceback (most recent call last):
    ValueError: the scorer numeric cannot use the target: the target 'a cat' is not a number; use the scorer \
exact, or correct it
    """

    def __init__(self, choices: ReadingOptions) -> None:
        assert choices.scorer is not None
        self.kind = choices.scorer
        self._range = choices.range
        self._scorer: Scorer = build_scorer(choices.scorer, dict(choices.scorer_options))

    def score(self, text: str, target: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return what an answer's :class:`~adaptive_eval.interop.found.Found` is to say of its score."""
        options = fields.get("choices")
        if isinstance(options, list):
            choices = tuple(map(str, options))
        else:
            choices = ()
        question = Question("", "", target, fields, choices)
        wrong = self._scorer.check_target(question)
        if wrong is not None:
            raise ValueError(f"the scorer {self.kind} cannot use the target: {wrong}")
        score = self._scorer.score(Completion(text, "stop"), question)
        if score.category is None:
            return {"missing": f"could not be scored: {score.reason}"}
        value: Any = float(score.category)
        if self._range is not None:
            value = in_range(score.signals.get("score"), self.kind, self._range)
        return {"score": value, "extracted": score.extracted, "reason": score.reason}
