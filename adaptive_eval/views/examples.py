"""A few stored answers for the report: right, wrong, unparsed, and to questions that tell models apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount, most_apart
from adaptive_eval.views.inert import excerpt

Kind: TypeAlias = Literal["right", "wrong", "unparsed"]

MODELS = 12
"""Models with examples; of more, the best."""

QUESTIONS = 5
"""Questions on which models differ most that are shown with an answer of every model."""

_LOOKED_AT = 20  # trials of a model and category among which examples are looked for


@dataclass(frozen=True, slots=True)
class Example:
    """One answer; texts are excerpts."""

    model: str
    kind: Kind
    question: str
    prompt: str
    answer: str
    extracted: str | None
    reason: str
    step: int  # of the model's trials
    expected: str | None = None  # None where it is not known


@dataclass(frozen=True, slots=True)
class ApartExample:
    """One question with the first answer of every model."""

    task: str
    question: str
    prompt: str
    answers: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """The example answers of a report."""

    models: tuple[tuple[str, tuple[Example, ...]], ...] = ()
    apart: tuple[ApartExample, ...] = ()


def no_target(record: TrialRecord) -> None:
    """Know no expected answer."""


def no_targets(reader: RunReader) -> TargetLookup:
    """Know no expected answer of a run."""
    return no_target


def examples(
    reader: RunReader,
    accounts: Sequence[ModelAccount],
    questions: Sequence[QuestionAccount] | None,
    target: TargetLookup,
) -> Examples:
    """Read a bounded number of answers: at most three a model, and one a model for a few questions."""
    chosen = accounts[:MODELS]
    own = ((one.model, tuple(_of_model(reader, one, target))) for one in chosen)
    apart = (
        _of_question(reader, one, [account.model for account in chosen], target)
        for one in most_apart(questions or ())[:QUESTIONS]
        if one.spread > 0
    )
    return Examples(
        tuple((model, found) for model, found in own if found), tuple(one for one in apart if one.answers)
    )


def _of_model(reader: RunReader, account: ModelAccount, target: TargetLookup) -> Iterator[Example]:
    found: dict[Kind, Example] = {}
    top = len(account.categories) - 1
    for category, stored in enumerate(account.categories):
        if stored:
            trials = reader.trials(model=account.model, category=category, missing=False, limit=_LOOKED_AT)
            for record in trials:
                one = _example(record, top, target)
                found.setdefault(one.kind, one)
    kinds: tuple[Kind, ...] = ("right", "wrong", "unparsed")
    return (found[kind] for kind in kinds if kind in found)


def _of_question(
    reader: RunReader, question: QuestionAccount, models: Sequence[str], target: TargetLookup
) -> ApartExample:
    found = tuple(
        _example(record, 1, target)
        for model in models
        for record in reader.trials(
            model=model, task=question.task, question=question.question, missing=False, limit=1
        )
    )
    return ApartExample(question.task, question.question, found[0].prompt if found else "", found)


def _example(record: TrialRecord, top: int, target: TargetLookup) -> Example:
    answer, score = record.completion, record.score
    assert answer is not None
    assert score is not None
    expected = target(record)
    right = bool(score.signals.get("is_correct", score.category == top))
    kind: Kind = "right" if right else "unparsed" if score.extracted is None else "wrong"
    return Example(
        record.request.key.model,
        kind,
        record.request.question,
        excerpt(_prompt(record.sent)),
        excerpt(answer.text),
        None if score.extracted is None else excerpt(score.extracted),
        score.reason,
        record.request.key.index,
        None if expected is None else excerpt(expected),
    )


def _prompt(sent: Mapping[str, Any]) -> str:
    """Return the prompt, or the last message."""
    messages = sent.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else {}
    content = last.get("content", "") if isinstance(last, Mapping) else ""
    return str(sent.get("prompt", content))
