"""The page of one stored trial: what was asked and answered, why it has its score, then the raw figures."""

from collections.abc import Iterator, Mapping, Sequence

from adaptive_eval.errors import without_home
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.trial import AGAINST
from adaptive_eval.views.blocks import Block, Heading, PageSection, Para, Passage, Side, WholePage, note
from adaptive_eval.views.column_types import Column, Unit
from adaptive_eval.views.inert import as_text
from adaptive_eval.views.numbers import fixed, short, stamp
from adaptive_eval.views.sentences import seconds_words
from adaptive_eval.views.tables import Table, column, table_of
from adaptive_eval.views.trials import (
    ALONE,
    SETTINGS,
    answer_text,
    figure,
    is_number,
    messages_of,
    outcome,
    settings_text,
    why_words,
)

_MOST_MESSAGES, _MOST_SIGNALS = 50, 40
_COLOURS = {"good": "better", "bad": "worse"}


def trial_page(
    record: TrialRecord,
    others: Sequence[TrialRecord],
    attempts: Sequence[AttemptRecord],
    numbers: Mapping[str, int],
    expected: str | None,
) -> WholePage:
    """Return the page of a trial, with the answers of `others`; `numbers` name models in addresses."""
    key = record.request.key
    request = record.request
    words = f"Question {request.question} of task {request.task}, repeat {request.repeat}."
    badges = [badge(record)]
    if record.after_stop:
        badges.append(("after the stop", ""))
    sections = [*_texts(record, _base(record, numbers), expected)]
    if others:
        remark = note(f"Answers to the same question, repeat {request.repeat}: first those that differ.")
        side = Side([list(_other(one, numbers, is_own=one is record)) for one in (record, *others)])
        sections.append(PageSection("others", "Side by side", [remark, side]))
    sections.append(PageSection("figures", "Figures", [figures(record)]))
    settings = Passage("Request without its messages", settings_text(record.sent), SETTINGS)
    sections.append(PageSection("request", "Request", [settings]))
    if attempts:
        table = table_of("Attempts of the trial", _ATTEMPTS, attempts)
        sections.append(PageSection("attempts", "Attempts", [table]))
    title = f"Trial {key.index:,} of {key.model}"
    links = [("../../", "The run"), ("../../samples", "All answers")]
    return WholePage(title=title, badges=badges, intro=[Para(words, links=links)], sections=sections)


def badge(record: TrialRecord) -> tuple[str, str]:
    """Return what a trial came to in a few words, and its colour."""
    kind, words = outcome(record)
    return words.partition(": ")[0], _COLOURS.get(kind, "")


def _base(record: TrialRecord, numbers: Mapping[str, int]) -> str:
    return f"../{numbers[record.request.key.model]}/{record.request.key.index}"


def _texts(record: TrialRecord, base: str, expected: str | None) -> Iterator[PageSection]:
    """Yield the prompt, the answer, why it has its score, and the reasoning."""
    messages = messages_of(record.sent)[:_MOST_MESSAGES]
    for number, (role, content) in enumerate(messages):
        title = "Message"
        if len(messages) == 1:
            title = "Prompt"
        passage = Passage("Prompt", content, ALONE, f"{base}/prompt.txt")
        yield PageSection(f"prompt-{number}", f"{title} ({role})", [passage])
    answer, score = record.completion, record.score
    if answer is not None:
        yield PageSection("answer", "Answer", [_said(record, base, ALONE)])
    why = why_words(record, expected)
    if why:
        yield PageSection("why", "Why", list(map(Para, why)))
    if answer is not None and answer.reasoning:
        reasoning = Passage("Reasoning", answer.reasoning, ALONE, f"{base}/reasoning.txt")
        yield PageSection("reasoning", "Reasoning", [reasoning])
    if score is not None and score.signals.get(AGAINST):
        against = Passage("Stored answer", as_text(score.signals[AGAINST]), ALONE)
        yield PageSection("against", "Stored answer that it was compared with", [against])


def _said(record: TrialRecord, base: str, most: int) -> Block:
    words = answer_text(record.completion)
    if words:
        return Passage("Answer", words, most, f"{base}/answer.txt")
    return Para("The answer is empty.")


def _other(one: TrialRecord, numbers: Mapping[str, int], *, is_own: bool) -> Iterator[Block]:
    base = _base(one, numbers)
    link, settings = base, SETTINGS
    if is_own:
        link, settings = "", ALONE
    yield Heading(one.request.key.model, badge=badge(one), link=link)
    yield _said(one, base, settings)


def figures(record: TrialRecord) -> Table:
    """Return the raw figures of a trial, rounded."""
    answer, usage = record.completion, record.usage
    tokens = f"{short(usage.prompt_tokens)} + {short(usage.completion_tokens)}"
    if answer is not None and answer.reasoning_tokens:
        tokens += f" (reasoning {short(answer.reasoning_tokens)})"
    rows = [("tokens", tokens), ("finished", stamp(record.finished_at))]
    if answer is not None:
        rows = [("ended by", answer.finish_reason), ("latency", seconds_words(answer.latency)), *rows]
    if record.score is not None:
        if record.score.category is not None and not is_number(record.score):
            rows.append(("category", str(record.score.category)))
        signals = [item for item in record.score.signals.items() if item[0] != AGAINST]
        rows += [(f"signal {name}", figure(value)[:200]) for name, value in signals[:_MOST_SIGNALS]]
    return table_of("What the trial came to", _FIGURES, rows, classes="")


_FIGURES: tuple[Column[tuple[str, str]], ...] = (
    column("figure", lambda row: row[0], Unit.NAME),
    column("value", lambda row: row[1], Unit.TEXT),
)

_ATTEMPTS: tuple[Column[AttemptRecord], ...] = (
    column("attempt", lambda one: one.attempt, Unit.COUNT),
    column("endpoint", lambda one: without_home(one.endpoint), Unit.NAME, spare=True),
    column("seconds", lambda one: one.latency, Unit.NUMBER, text=lambda one: fixed(one.latency, 2)),
    column("status", lambda one: one.status, Unit.NUMBER),
    column("error", lambda one: one.error),
    column("message", lambda one: one.message, Unit.TEXT),
)
