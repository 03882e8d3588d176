"""Answers that say nothing about the models: scorers that fail or find nothing, answers cut off or empty.

Each is told at the first sign, with its likely cause. A model is stopped alone if most of its answers
cannot be used. The run ends if those of every model to a task cannot: a ranking would rank the scorer.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.engine.independence import COPY, ENOUGH
from adaptive_eval.engine.protocols import News, Unusable
from adaptive_eval.errors import Coded
from adaptive_eval.store.records import LoggedTrial
from adaptive_eval.trial import (
    AGAINST,
    CUT_OFF,
    FILTERED,
    NO_ANSWER,
    NOTHING_FOUND,
    OUT_OF_CALLS,
    UNSCORED,
    TrialKey,
)

SOME = ENOUGH // 2
"""Answers that are none, hold nothing or were cut off, from which their share counts: bets call a pair on so
few. A model of which half of the answers are none is stopped by chance in one of a thousand runs."""

MANY, MOST, NEARLY_ALL = 0.1, 0.5, 0.95
"""Shares of a model's answers, cut off or none, from which it is warned of; of answers that cannot be used,
beyond which the run ends; of answers that are none, from which a model is not ranked."""

_ADVICE = {
    "content_filter": "a filter of the server withheld them.",
    "tool_calls": "the model called tools; nothing here runs them.",
    "reasoning": "the server put all text into the reasoning; does its reasoning parser match the model?",
    "length": "they ended at the token limit before an answer; raise max_tokens.",
    OUT_OF_CALLS: "the solver used up its calls, or their prompt tokens; raise calls or prompt_tokens of the "
    "task's solver.",
    "empty": "the text is empty.",
}
"""The advice for each cause of an answer that is none."""


@dataclass(slots=True)
class _TaskAnswers:
    """Counts of one task's answers."""

    answers: int = 0
    failed: int = 0  # those that the scorer could not score
    reason: str = ""  # the words of its latest failure
    not_found: int = 0  # those in which it found no result
    cut: int = 0  # those that were cut off
    categories: Counter[int] = field(default_factory=Counter)
    # some of the answers in which it found none: the trial, and the text where it is known
    examples: list[str] = field(default_factory=list)
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
class _Cell:
    """Counts of one model's answers to one task."""

    answers: int = 0
    failed: int = 0  # those that the scorer could not score
    unread: int = 0  # whole ones in which it found no result

    @property
    def fails(self) -> bool:
        """Whether most answers could not be scored."""
        return self.failed > MOST * self.answers

    @property
    def holds_nothing(self) -> bool:
        """Whether enough answers, and most, hold nothing that the scorer can read."""
        return self.unread >= SOME and self.unread > MOST * self.answers


@dataclass(slots=True)
class _ModelAnswers:
    """Counts of one model's answers."""

    answers: int = 0
    none: Counter[str] = field(default_factory=Counter)  # those that are none, by cause
    limited: int = 0  # those that must not be cut off, and those of them that were
    cut: int = 0
    out_of_calls: int = 0  # those of them whose solver used up its calls
    withheld: int = 0  # those that a filter withheld, and that count as missing

    @property
    def slack(self) -> float:
        """By how much of the range of scores the answers that a filter withheld could move the score."""
        if self.answers:
            return self.withheld / self.answers
        return 0.0

    @property
    def cut_off(self) -> bool:
        """Whether most of enough answers were cut off; bets call a pair on as few."""
        return self.limited >= SOME and self.cut > MOST * self.limited

    @property
    def silent(self) -> bool:
        """Whether enough answers, and nearly all, are none."""
        return self.empty >= SOME and self.empty >= NEARLY_ALL * self.answers

    @property
    def at_limit(self) -> str:
        """How most of the answers were cut off."""
        if self.out_of_calls > MOST * self.cut:
            return "when their calls were used up"
        return "at the token limit"

    @property
    def to_raise(self) -> str:
        """The limit that would have to be higher."""
        if self.out_of_calls > MOST * self.cut:
            return "calls of the task's solver"
        return "max_tokens"

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
        "{it.reason}",
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
        lambda model: model.empty - model.withheld >= max(SEVERAL, MANY * model.answers),
        f"{{name}}: {_NONE}",
    ),
    (
        "warning/content-filter",
        lambda model: model.withheld > 0,
        "{name}: a filter of the server withheld {it.withheld:,} of its {it.answers:,} answers "
        "(content_filter {it.withheld:,}). They count as missing and are not asked again; each may have been "
        "right or wrong, so the score is uncertain by {it.slack:.1%} of its range more. "
        "on: {{content_filter: wrong}} counts them as wrong",
    ),
    (
        "warning/cut-off",
        lambda model: model.limited >= ENOUGH and model.cut >= MANY * model.limited,
        "{name}: {it.cut:,} of {it.limited:,} answers were cut off {it.at_limit}; raise {it.to_raise}. "
        "The setting truncated of the task's rubric says how they count",
    ),
)
"""Each sign of what is wrong: its code, when it shows, and its words."""


class AnswerWatch:
    """Counts what is wrong with answers, by task and by model.

    In the tasks `may_be_cut` the user has said how cut off answers count; there they are not looked at. A
    model whose answers are none is `ranked` all the same if the user says so. Failures of a scorer in earlier
    sessions are left out: it may have been mended. Of the models `asked`, all must have answers that hold
    nothing before the run ends for that, and it does not if the user has said that `nothing_is_wrong`.

    Examples
    --------
    >>> from adaptive_eval.trial import TrialKey, Usage
    >>> watch = AnswerWatch()
    >>> for index in range(40):
    ...     signals = ("no_answer_reasoning",) if index else ()
    ...     key, usage = TrialKey("quiet", index), Usage()
    ...     trial = LoggedTrial(key, "maths", "q", 0, usage, "stop", "", False, 0.0, 1, None, signals)
    ...     news = watch.take(trial)
    >>> print(watch.refusal("quiet"))
    39 of its 40 answers have no text to score (reasoning 39): the server put all text into the reasoning; \
does its reasoning parser match the model? Its score would say nothing, so it is not ranked; on: \
{mostly_empty: rank} ranks it
    """

    shown = 3  # answers in which nothing was found that are shown where the run ends for it
    longest = 200  # characters of such an answer

    def __init__(
        self,
        may_be_cut: Collection[str] = (),
        *,
        asked: Collection[str] = (),
        ranked: bool = False,
        nothing_is_wrong: bool = False,
    ) -> None:
        self._may_be_cut = frozenset(may_be_cut)
        self._asked = frozenset(asked)
        self._ranked = ranked
        self._nothing_is_wrong = nothing_is_wrong
        self.text_of: Callable[[TrialKey], str] = lambda key: ""  # the answer of a trial that is read back
        self._cells: defaultdict[tuple[str, str], _Cell] = defaultdict(_Cell)
        self._verdict: StopVerdict | None = None
        self._tasks: defaultdict[str, _TaskAnswers] = defaultdict(_TaskAnswers)
        self._models: defaultdict[str, _ModelAnswers] = defaultdict(_ModelAnswers)
        self._told: set[tuple[str, str]] = set()
        self._left: set[str] = set()  # models that are asked no more

    def take(self, trial: LoggedTrial) -> Sequence[News]:
        """Take in a finished trial; return the first remark of each kind, and a model that is not ranked."""
        if trial.answer is None:
            return ()
        name = trial.key.model
        cut = trial.finish_reason in CUT_OFF
        model = self._models[name]
        model.answers += 1
        for signal in trial.signals:
            if signal.startswith(NO_ANSWER):
                model.none[signal.removeprefix(NO_ANSWER)] += 1
        model.withheld += trial.category is None and FILTERED in trial.signals
        if COPY not in trial.signals:
            if trial.task not in self._may_be_cut:
                model.limited += 1
                model.cut += cut
                model.out_of_calls += trial.finish_reason == OUT_OF_CALLS
            self._count_score(trial)
        return self._news(trial.task, name)

    def _count_score(self, trial: LoggedTrial) -> None:
        """Take in what a scorer found in an answer."""
        found_none = any(signal.startswith(NO_ANSWER) for signal in trial.signals)
        failed = trial.category is None and not found_none
        if failed and trial.earlier:
            return
        task = self._tasks[trial.task]
        cell = self._cells[trial.task, trial.key.model]
        cut = trial.finish_reason in CUT_OFF
        task.answers += 1
        cell.answers += 1
        task.cut += cut
        task.votes += trial.votes
        task.by_order += trial.by_order
        if AGAINST in trial.signals:  # two sampled answers are often as good
            task.order_share, task.order_counts = MOST, "as ties"
        if failed:
            task.failed += 1
            cell.failed += 1
            task.reason = trial.missing.removeprefix(UNSCORED)
        elif trial.category is not None:
            task.categories[trial.category] += 1
            if NOTHING_FOUND in trial.signals:
                task.not_found += 1
                cell.unread += not cut
                if len(task.examples) < self.shown:
                    task.examples.append((trial.text or self.text_of(trial.key))[: self.longest])
        self._verdict = self._verdict or self._verdict_on(trial.task)

    def _verdict_on(self, name: str) -> StopVerdict | None:
        """Return why the answers of every model to a task cannot be used; None if some can."""
        task = self._tasks[name]
        if task.failed >= SEVERAL and task.failed > MOST * task.answers:
            answering = [cell for (of, _), cell in self._cells.items() if of == name and cell.answers]
            if len(answering) >= min(2, len(self._asked)) and all(cell.fails for cell in answering):
                return _unusable("scorer", name, task.failed, task.answers, said=task.reason)
        if not self._nothing_is_wrong:
            models = self._asked - self._left or {model for of, model in self._cells if of == name}
            if all(self._cells[name, model].holds_nothing for model in models):
                return _unusable("nothing_found", name, task.not_found, task.answers, examples=task.examples)
        return None

    def _news(self, task: str, model: str) -> list[News]:
        """Return what the latest answer of a model to a task shows for the first time."""
        signs = _signs_of(task, self._tasks[task], _OF_TASKS)
        signs |= _signs_of(model, self._models[model], _OF_MODELS)
        news: list[News] = [said for sign, said in signs.items() if sign not in self._told]
        self._told.update(signs)
        if model not in self._left and self._verdict is None:
            reason = self.refusal(model) or self._unscored(task, model)
            if reason is not None:
                self._left.add(model)
                news.append(Unusable(model, reason))
        return news

    def leave(self, model: str) -> None:
        """Note that a model is asked no more."""
        self._left.add(model)

    @property
    def answered(self) -> frozenset[str]:
        """The models that have given an answer."""
        return frozenset(name for name, model in self._models.items() if model.answers)

    def none(self, model: str) -> int:
        """Return how many answers of `model` are none."""
        return self._models[model].empty

    def refusal(self, name: str) -> str | None:
        """Say why a model is not ranked: its answers are cut off, or none; None if it is."""
        model = self._models[name]
        if model.cut_off:
            return (
                f"{model.cut:,} of its {model.limited:,} answers were cut off {model.at_limit}, so it is not "
                f"ranked; raise {model.to_raise} in a new run, or say how such answers count: by the "
                "rubric's truncated, or on: {length: wrong}"
            )
        if model.silent and not self._ranked:
            ranks_it = "Its score would say nothing, so it is not ranked; on: {mostly_empty: rank} ranks it"
            return f"{_NONE.format(it=model)} {ranks_it}"
        return None

    def _unscored(self, task: str, model: str) -> str | None:
        """Say why a model is not ranked whose answers the scorer cannot score, while it scores others."""
        cell = self._cells[task, model]
        if cell.failed < SEVERAL or not cell.fails or not self._works_elsewhere(task, model):
            return None
        return (
            f"{cell.failed:,} of its {cell.answers:,} answers to task {task} could not be scored, so it is "
            f"not ranked: {self._tasks[task].reason}"
        )

    def _works_elsewhere(self, task: str, model: str) -> bool:
        """Return whether the scorer of a task can score most answers of another model."""
        return any(
            cell.answers >= SEVERAL and not cell.fails
            for (of, other), cell in self._cells.items()
            if of == task and other != model
        )

    def verdict(self) -> StopVerdict | None:
        """Return why the run must end; None if it may go on."""
        return self._verdict

    def remarks(self) -> Sequence[Coded]:
        """Return what is wrong at present, each with its likely cause."""
        return [*_shown(self._tasks, _OF_TASKS), *_shown(self._models, _OF_MODELS)]

    def remarks_on_scorers(self) -> Sequence[Coded]:
        """Return what is wrong with scorers, by task."""
        return _shown(self._tasks, _OF_TASKS)


def _shown(counts: Mapping[str, _TaskAnswers | _ModelAnswers], signs: Sequence[_Sign]) -> list[Coded]:
    """Return the signs that show, of all tasks or models."""
    found: list[Coded] = []
    for name, it in counts.items():
        found += _signs_of(name, it, signs).values()
    return found


def _signs_of(
    name: str, it: _TaskAnswers | _ModelAnswers, signs: Sequence[_Sign]
) -> dict[tuple[str, str], Coded]:
    """Return the signs that show, each by its code and its task or model."""
    found = {}
    for code, shows, words in signs:
        if shows(it):
            found[code, name] = Coded(code, words.format(name=name, it=it))
    return found


def _unusable(
    cause: str, task: str, affected: int, answers: int, *, said: str = "", examples: Sequence[str] = ()
) -> StopVerdict:
    evidence = {"cause": cause, "owner": task, "affected": affected, "answers": answers}
    return StopVerdict("unusable", evidence={**evidence, "said": said, "examples": list(examples)})
