"""Views of stored trials: prompt, answer, and reason of the category."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from adaptive_eval.core.discarded import causes_words
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TargetLookup, TrialRecord
from adaptive_eval.trial import (
    AGAINST,
    CHECK,
    Completion,
    DiscardCause,
    Score,
    sent_messages,
    shown_call,
    shown_message,
)
from adaptive_eval.views.accounts import ModelAccount, QuestionAccount, most_apart
from adaptive_eval.views.inert import as_text, excerpt, inert

ALONE, SETTINGS = 200_000, 3_000
"""Characters shown of a prompt or an answer, and of a request."""


def answer_text(answer: Completion | None) -> str:
    """Return the text of an answer, and the calls of tools in it."""
    if answer is None:
        return ""
    return "\n".join([*([answer.text] if answer.text else []), *map(shown_call, answer.tool_calls)])


def settings_text(sent: Mapping[str, Any]) -> str:
    """Return a request without its messages as JSON."""
    prompts = ("messages", "input", "prompt")
    return as_text({key: value for key, value in sent.items() if key not in prompts})


def others_on(reader: RunReader, record: TrialRecord, models: Sequence[str]) -> list[TrialRecord]:
    """Return the answers of the other models to the same trial of a question, first those that differ."""
    asked = record.request
    same = reader.trials(
        model=[model for model in models if model != asked.key.model],
        task=asked.task,
        question=asked.question,
        missing=False,
    )
    found = [one for one in same if one.request.repeat == asked.repeat]
    return sorted(found, key=lambda one: _category(one) == _category(record))[:_OTHERS]


_OTHERS = 5
"""Models whose answers are shown next to one."""


def _category(record: TrialRecord) -> int | None:
    if record.score is None:
        return None
    return record.score.category


def prompt_text(record: TrialRecord) -> str:
    """Return the whole prompt as text, each message under its role."""
    return "\n\n".join(f"{role}:\n{text}" for role, text in messages_of(record.sent))


def messages_of(sent: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return role and content of every message; a request of another form is shown as it is."""
    return [
        (as_text(message.get("role", "message")), shown_message(message)) for message in sent_messages(sent)
    ]


def outcome(record: TrialRecord) -> tuple[str, str]:
    """Return what a trial came to: ``good``, ``bad`` or ``plain``, and in words."""
    if record.score is None:
        return "bad", f"no answer: {record.missing}"
    if record.score.category is None:
        return "bad", f"not scored: {record.missing}"
    right = record.score.signals.get("is_correct")
    if isinstance(right, bool):
        if right and _is_lowest(record.score):
            return "bad", "cut off, counts as wrong"
        if right:
            return ("good", "correct")
        return ("bad", "wrong")
    return "plain", _result(record.score)


def why_words(record: TrialRecord, expected: str | None) -> list[str]:
    """Return what was read from an answer, what was expected, and why it has its score."""
    words, score = [], record.score
    if record.missing is not None:
        words.append(f"No score: {record.missing}.")
    if score is not None:
        if score.extracted is None:
            words.append("Nothing was read.")
        else:
            words.append(f"Read: {excerpt(score.extracted)}")
        if expected is not None:
            words.append(f"Expected: {excerpt(expected)}")
        if score.reason:
            words.append(f"Why: {excerpt(score.reason)}")
    if record.discarded:
        words.append(f"Discarded: {discarded_words(record.discarded)}.")
    return words


def _result(score: Score, name: str | None = None) -> str:
    """Return category or score of an answer in words."""
    if is_number(score):
        if _is_lowest(score):
            return "lowest score, truncated"
        return f"score {score.signals['score']:g}"
    named = ""
    if name:
        named = f" ({inert(name)})"
    if score.category is None:
        return "unscored"
    return f"category {score.category}{named}"


def _is_lowest(score: Score) -> bool:
    """Return whether an answer was cut off and therefore has the lowest score."""
    return score.category == 0 and bool(score.signals.get("truncated"))


def is_number(score: Score) -> bool:
    """Tell whether the score is a number, whose category is a step of its range."""
    signals = score.signals
    return score.category is not None and "score" in signals and "is_correct" not in signals


INDENT = 13
"""Characters before a text of a trial on a terminal: its label."""

_HEAD, _TAIL = 200, 600
"""Characters shown of the beginning and the end of a long text."""


_IF_ANY = ("reasoning", "calls", "tool_calls", "missing", "discarded", "reasoning_tokens")
"""Fields of an answer that are left out if it has none."""


def sample_data(record: TrialRecord, categories: Sequence[str], target: str | None = None) -> dict[str, Any]:
    """Return one trial as JSON-able data."""
    request = record.request
    answer = record.completion
    score = record.score
    data: dict[str, Any] = {
        "model": request.key.model,
        "step": request.key.index,
        "task": request.task,
        "question": request.question,
        "repeat": request.repeat,
        "seed": request.seed,
        "finished_at": record.finished_at,
        "after_stop": record.after_stop,
        "target": target,
        "sent": dict(record.sent),
    }
    if answer is None or score is None:
        lost = {"missing": record.missing, "discarded": list(record.discarded)}
        return {**data, **{key: value for key, value in lost.items() if value or key == "missing"}}
    data |= {
        "reasoning": answer.reasoning,
        "calls": list(answer.calls),
        "answer": answer.text,
        "tool_calls": list(answer.tool_calls),
        "finish_reason": answer.finish_reason,
        "extracted": score.extracted,
        "missing": record.missing,
        "discarded": list(record.discarded),
        "category": None if is_number(score) else score.category,
        "category_name": _name(score.category, categories),
        "reason": score.reason,
        "signals": dict(score.signals),
        "latency": answer.latency,
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        "reasoning_tokens": answer.reasoning_tokens,
    }
    return {key: value for key, value in data.items() if value or key not in _IF_ANY}


def sample_lines(
    record: TrialRecord, categories: Sequence[str], target: str | None = None, *, full: bool
) -> Iterator[str]:
    """Yield one trial as lines for a terminal; text of models is inert."""
    answer, score = record.completion, record.score
    if answer is None or score is None:
        yield f"{_place(record)} · missing"
        yield f"  why        {inert(record.missing or '')}"
        return
    late = ""
    if record.after_stop:
        late = " · after the stop"
    yield f"{_place(record)} · {_result(score, _name(score.category, categories))}{late}"
    for label, text in _parts(record, answer):
        shown = text
        if not full:
            shown = excerpt(text, _HEAD, _TAIL)
        for number, line in enumerate(shown.splitlines() or [""]):
            head = ""
            if number == 0:
                head = inert(label)[:9]
            yield f"  {head}".ljust(INDENT) + inert(line)
    yield from _score_lines(score, target)
    if record.discarded:
        yield "  discarded".ljust(INDENT) + discarded_words(record.discarded)


def _place(record: TrialRecord) -> str:
    request = record.request
    return inert(f"{request.key.model} · {request.task}/{request.question} · step {request.key.index}")


def _score_lines(score: Score, target: str | None) -> Iterator[str]:
    """Yield what was read from an answer, why it has its category, and its signals."""
    extracted = "nothing"
    if score.extracted is not None:
        extracted = inert(score.extracted)
    expected = ""
    if target is not None:
        expected = f"   target {inert(target)}"
    yield f"  extracted  {extracted}{expected}"
    yield f"  why        {inert(score.reason)}"
    shown = {name: f"{name} {figure(value)}" for name, value in score.signals.items() if name != AGAINST}
    checks = [text.removeprefix(CHECK) for name, text in shown.items() if name.startswith(CHECK)]
    if checks:
        yield f"  checks     {inert(', '.join(checks))}"
    signals = [text for name, text in shown.items() if not name.startswith(CHECK)]
    yield f"  signals    {inert(', '.join(signals))}"


def figure(value: object) -> str:
    """Return a signal in words, a number rounded."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.4g}"
    return as_text(value)


def discarded_words(causes: Sequence[DiscardCause]) -> str:
    """Return how many draws of a trial were given up before this answer, and why.

    Examples
    --------
    >>> discarded_words(("timeout", "timeout", "server"))
    '3 earlier draws (2 took longer than the timeout, 1 failed at the server after it may have begun)'
    """
    draws = "1 earlier draw"
    if len(causes) != 1:
        draws = f"{len(causes):,} earlier draws"
    return f"{draws} ({causes_words(Counter(causes))})"


def _parts(record: TrialRecord, answer: Completion) -> Iterator[tuple[str, str]]:
    """Yield the texts of a trial with their labels: the request, calls of a solver, and the answer."""
    for message in sent_messages(record.sent):
        yield str(message.get("role", "prompt")), shown_message(message)
    for number, call in enumerate(answer.calls, start=1):
        asked = [f"{message.get('role')}: {shown_message(message)}" for message in call["messages"]]
        replies = [call["text"], *map(shown_call, call.get("tool_calls", ()))]
        yield f"call {number}", "\n".join([*asked, *filter(None, replies)])
    if record.score is not None and AGAINST in record.score.signals:
        yield AGAINST, str(record.score.signals[AGAINST])
    if answer.reasoning:
        yield "reasoning", answer.reasoning
    if answer.text or not answer.tool_calls:
        yield "answer", answer.text
    for call in answer.tool_calls:
        yield "calls", shown_call(call)


def _name(category: int | None, categories: Sequence[str]) -> str | None:
    if category is not None and category < len(categories):
        return categories[category]
    return None


Kind: TypeAlias = str
"""``right``, ``wrong`` or ``unparsed``; the score where it is a number."""

MODELS = 12
"""Models with examples; of more, the best."""

QUESTIONS = 5
"""Questions on which models differ most that are shown with an answer of every model."""

_FEW = 2  # trials of a model and kind that are shown in addition
_LOOKED_AT = 20  # trials of a model and category among which examples are looked for


@dataclass(frozen=True, slots=True)
class Example:
    """One answer."""

    record: TrialRecord
    kind: Kind
    expected: str | None = None  # None where it is not known


@dataclass(frozen=True, slots=True)
class ApartExample:
    """One question with the first answer of every model."""

    task: str
    question: str
    answers: tuple[Example, ...]


@dataclass(frozen=True, slots=True)
class Examples:
    """The example answers of a report."""

    models: tuple[tuple[str, tuple[Example, ...]], ...] = ()
    apart: tuple[ApartExample, ...] = ()
    further: tuple[Example, ...] = ()  # missing and cut-off trials, and those with discarded draws


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
    own = [(one.model, tuple(_of_model(reader, one, target))) for one in chosen]
    differing = [one for one in most_apart(questions or ())[:QUESTIONS] if one.spread > 0]
    models = tuple(one for one in own if one[1])
    apart = [_of_question(reader, one, chosen, target) for one in differing]
    further = tuple(_further(reader, chosen, target))
    return Examples(models, tuple(one for one in apart if one.answers), further)


def _further(reader: RunReader, accounts: Sequence[ModelAccount], target: TargetLookup) -> Iterator[Example]:
    """Yield a few trials without an answer, with one that is cut off, and with discarded draws."""
    found = list(reader.trials(discarded=True, limit=len(accounts)))
    for one in accounts:
        if one.missing:
            found += reader.trials(model=one.model, missing=True, limit=_FEW)
        if one.truncated:
            found += reader.trials(model=one.model, truncated=True, limit=_FEW)
    tops = {one.model: len(one.categories) - 1 for one in accounts}
    for record in found:
        yield _example(record, tops.get(record.request.key.model, 1), target)


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
    reader: RunReader, question: QuestionAccount, models: Sequence[ModelAccount], target: TargetLookup
) -> ApartExample:
    task, name = question.task, question.question
    found: list[Example] = []
    for one in models:
        first = reader.trials(model=one.model, task=task, question=name, missing=False, limit=1)
        found += (_example(record, 1, target) for record in first)
    return ApartExample(task, name, tuple(found))


def _example(record: TrialRecord, top: int, target: TargetLookup) -> Example:
    score = record.score
    if score is None or record.missing is not None:
        return Example(record, "missing", target(record))
    kind: Kind = "unparsed"
    if score.extracted is not None:
        kind = "wrong"
    if is_number(score):
        kind = _result(score)
    elif score.signals.get("is_correct", score.category == top) and not _is_lowest(score):
        kind = "right"
    return Example(record, kind, target(record))
