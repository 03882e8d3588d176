"""Answers that say nothing about the models: scorers that fail or find nothing, answers cut off or empty.

Each is told at the first sign, with its likely cause. It ends the run where most answers are affected, or
stops the model that gives hardly any: a ranking by such answers would rank the scorer, or the token limit.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.independence import COPY
from adaptive_eval.errors import Coded
from adaptive_eval.scoring.scorer import NOT_FOUND, ORDER_DECIDED
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import AGAINST, NO_ANSWER, NOTHING_FOUND, Completion, Score

ENOUGH, FEWEST = 20, 5
"""Answers from which shares are looked at: of fewer, half may be affected by chance. Failures of a scorer,
and answers that are none, from which their share counts."""

MANY, MOST, NEARLY_ALL = 0.1, 0.5, 0.95
"""Shares of a model's answers, cut off or none, from which it is warned of; of answers that cannot be used,
beyond which the run ends; of answers that are none, from which a model is not ranked."""

_ADVICE = {
    "content_filter": "a filter of the server withheld them.",
    "tool_calls": "the model called tools; nothing here runs them.",
    "reasoning": "the server put all text into the reasoning; does its reasoning parser match the model?",
    "length": "they ended at the token limit before an answer; raise max_tokens.",
    "empty": "the text is empty.",
}
"""The advice for each cause of an answer that is none."""


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
    order_share: float = 0.0  # of them from which it is told, and how they count
    order_counts: str = "for neither answer"

    @property
    def unread(self) -> bool:
        """Whether the scorer finds nothing in most of enough answers that were not cut off."""
        whole = self.answers >= ENOUGH and self.cut <= MOST * self.answers
        return whole and self.not_found > MOST * self.answers

    @property
    def alike(self) -> bool:
        """Whether enough answers that the scorer reads are all in one category."""
        whole = self.scored >= ENOUGH and self.cut <= MOST * self.answers
        return whole and not self.unread and len(self.categories) == 1

    @property
    def scored(self) -> int:
        """Answers that have a category."""
        return self.categories.total()

    @property
    def cause(self) -> str:
        """The likely cause for answers that are all alike."""
        if 0 in self.categories:
            return "does the scorer read the answers, and do the targets fit the questions?"
        return "does the scorer call every answer right, or is the task too easy to tell models apart?"


@dataclass(slots=True)
class _Model:
    """Counts of one model's answers."""

    answers: int = 0
    none: Counter[str] = field(default_factory=Counter)  # those that are none, by cause
    limited: int = 0  # those that must not be cut off, and those of them that were
    cut: int = 0

    @property
    def empty(self) -> int:
        """Answers that are none."""
        return self.none.total()

    @property
    def causes(self) -> str:
        """Why answers are none, the most frequent cause first, with advice about that."""
        shown = ", ".join(f"{cause} {count:,}" for cause, count in self.none.most_common())
        return f"({shown}): {_ADVICE.get(self.none.most_common(1)[0][0], '')}"


_Sign: TypeAlias = tuple[str, Callable[[Any], bool], str]

_SAMPLES = "`adaptive-eval samples RUN` shows answers with what was found in them"

_OF_TASKS: tuple[_Sign, ...] = (
    (
        "warning/scorer-failed",
        lambda task: task.failed > 0,
        "task {name}: {it.failed:,} of {it.answers:,} answers could not be scored and count as missing: "
        "{it.said}",
    ),
    (
        "warning/judge-order",
        lambda task: task.by_order > task.order_share * max(task.votes, ENOUGH),
        "task {name}: the order of the two answers decided {it.by_order:,} of {it.votes:,} votes of the "
        "judge; they count {it.order_counts}",
    ),
    (
        "warning/nothing-found",
        lambda task: task.unread,
        "task {name}: no result was found in {it.not_found:,} of {it.answers:,} answers, which count as "
        "wrong; does the prompt ask for the form that the scorer reads, and does its pattern or extract "
        f"fit? {_SAMPLES}",
    ),
    (
        "warning/all-alike",
        lambda task: task.alike,
        f"task {{name}}: all {{it.scored:,}} scored answers have the same category; {{it.cause}} {_SAMPLES}",
    ),
)

_NONE = "{it.empty:,} of its {it.answers:,} answers have no text to score {it.causes}"

_OF_MODELS: tuple[_Sign, ...] = (
    (
        "warning/no-answers",
        lambda model: model.empty >= max(FEWEST, MANY * model.answers),
        f"{{name}}: {_NONE}",
    ),
    (
        "warning/cut-off",
        lambda model: model.limited >= ENOUGH and model.cut >= MANY * model.limited,
        "{name}: {it.cut:,} of {it.limited:,} answers were cut off at the token limit; raise max_tokens. "
        "The rubric's truncated says how they count",
    ),
)
"""Each sign of what is wrong: its code, when it shows, and its words."""


class AnswerWatch:
    """Counts what is wrong with answers, by task and by model.

    In the tasks `may_be_cut` the user has said how cut off answers count; there they are not looked at. A
    model whose answers are none is `ranked` all the same if the user says so.

    Examples
    --------
    >>> watch = AnswerWatch()
    >>> watch.count_stored({("quiet", "maths"): (40, {"no_answer_reasoning": 39})})
    >>> print(watch.refusal("quiet"))
    39 of its 40 answers have no text to score (reasoning 39): the server put all text into the reasoning; \
does its reasoning parser match the model? Its score would say nothing, so it is not ranked; on: \
{mostly_empty: rank} ranks it
    """

    def __init__(self, may_be_cut: Collection[str] = (), *, ranked: bool = False) -> None:
        self._may_be_cut = frozenset(may_be_cut)
        self._ranked = ranked
        self._tasks: defaultdict[str, _Task] = defaultdict(_Task)
        self._models: defaultdict[str, _Model] = defaultdict(_Model)
        self._told: set[tuple[str, str]] = set()

    def read(self, reader: RunReader) -> None:
        """Take in the counts of stored answers, failures of a scorer left out: it may have been mended."""
        self.count_stored(reader.signals_named(""))
        cells = reader.cells()
        for place, number in enumerate(cells.model):
            name, _ = cells.questions[cells.question[place]]
            scored, cut = int(cells.scored[place]), int(cells.truncated[place])
            if name not in self._may_be_cut:
                model = self._models[cells.models[number]]
                model.limited += scored
                model.cut += cut
            if scored:
                task, highest = self._tasks[name], int(cells.category_max[place])
                task.cut += cut
                task.answers += scored
                # only whether all categories are equal matters
                task.categories[highest] += 1
                task.categories[int(cells.category_sum[place]) // scored] += scored - 1

    def count_stored(self, counts: Mapping[tuple[str, str], tuple[int, Mapping[str, int]]]) -> None:
        """Take in how many answers each model has given to each task, and how many have each signal."""
        for (name, task), (answers, signals) in counts.items():
            model = self._models[name]
            model.answers += answers
            for signal, number in signals.items():
                if signal.startswith(NO_ANSWER):
                    model.none[signal.removeprefix(NO_ANSWER)] += number
            self._tasks[task].not_found += signals.get(NOTHING_FOUND, 0)

    def add(self, record: TrialRecord) -> None:
        """Take in a finished trial."""
        answer, score, asked = record.completion, record.score, record.request
        if answer is None or score is None:
            return
        model = self._models[asked.key.model]
        model.answers += 1
        for name in score.signals:
            if name.startswith(NO_ANSWER):
                model.none[name.removeprefix(NO_ANSWER)] += 1
        if COPY in score.signals:
            return
        if asked.task not in self._may_be_cut:
            model.limited += 1
            model.cut += answer.cut_off
        self.add_score(asked.task, answer, score)

    def add_score(self, task_name: str, answer: Completion, score: Score) -> None:
        """Take in what a scorer found in an answer to a task."""
        task = self._tasks[task_name]
        task.answers += 1
        task.cut += answer.cut_off
        task.votes += int(score.signals.get("judgements") or 0) // 2 if ORDER_DECIDED in score.signals else 0
        task.by_order += int(score.signals.get(ORDER_DECIDED) or 0)
        if AGAINST in score.signals:  # two sampled answers are often as good
            task.order_share, task.order_counts = MOST, "as ties"
        if score.category is not None:
            task.categories[score.category] += 1
            task.not_found += score.reason.startswith(NOT_FOUND)
        elif answer.no_answer is None:
            task.failed += 1
            task.said = score.reason

    @property
    def answered(self) -> frozenset[str]:
        """The models that have given an answer."""
        return frozenset(name for name, model in self._models.items() if model.answers)

    def none(self, model: str) -> int:
        """Return how many answers of `model` are none."""
        return self._models[model].empty

    def refusal(self, name: str) -> str | None:
        """Say why a model is not ranked, where nearly all of its answers are none."""
        model = self._models[name]
        if self._ranked or model.answers < ENOUGH or model.empty < NEARLY_ALL * model.answers:
            return None
        ranks_it = "Its score would say nothing, so it is not ranked; on: {mostly_empty: rank} ranks it"
        return f"{_NONE.format(it=model)} {ranks_it}"

    def verdict(self) -> StopVerdict | None:
        """Return why the run must end; None where it may go on."""
        for name, task in self._tasks.items():
            if task.failed >= FEWEST and task.failed > MOST * task.answers:
                return _unusable("scorer", name, task.failed, task.answers, task.said)
        for name, model in self._models.items():
            if model.limited >= ENOUGH and model.cut > MOST * model.limited:
                return _unusable("length", name, model.cut, model.limited, "")
        return None

    def remarks(self) -> Iterator[Coded]:
        """Yield what is wrong at present, each with its likely cause."""
        yield from self._signs().values()

    def take_news(self) -> list[Coded]:
        """Return the first remark of each kind about each task or model, once."""
        signs = self._signs()
        news = [said for sign, said in signs.items() if sign not in self._told]
        self._told.update(signs)
        return news

    def remarks_on_scorers(self) -> Iterator[Coded]:
        """Yield what is wrong with scorers, by task."""
        yield from _shown(self._tasks, _OF_TASKS).values()

    def _signs(self) -> dict[tuple[str, str], Coded]:
        return _shown(self._tasks, _OF_TASKS) | _shown(self._models, _OF_MODELS)


def _shown(counts: Mapping[str, _Task | _Model], signs: Sequence[_Sign]) -> dict[tuple[str, str], Coded]:
    """Return the signs that show, each by its code and its task or model."""
    found = {}
    for name, it in counts.items():
        for code, shows, words in signs:
            if shows(it):
                found[code, name] = Coded(code, words.format(name=name, it=it))
    return found


def _unusable(cause: str, owner: str, affected: int, answers: int, said: str) -> StopVerdict:
    evidence = {"cause": cause, "owner": owner, "affected": affected, "answers": answers, "said": said}
    return StopVerdict("unusable", evidence=evidence)
