"""A trial as its page shows it: every text bounded and inert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import Completion, sent_messages, shown_call, shown_message
from adaptive_eval.views.escape import Block, as_text, block

ALONE, SETTINGS = 200_000, 3_000
"""Characters shown of a prompt or an answer, and of a request."""

_MOST_MESSAGES = 50
_MOST_SIGNALS = 40


@dataclass(frozen=True, slots=True)
class TrialShown:
    """One trial as a template shows it."""

    record: TrialRecord  # the trial; only its short fields are shown directly
    # ``good``, ``bad`` or ``plain``, and what it came to in words
    kind: str
    outcome: str
    # what the scorer took from the answer, and why it gave its category
    extracted: Block
    reason: Block
    signals: tuple[tuple[str, str], ...]  # base signals as text
    messages: tuple[tuple[str, Block], ...]  # role and content of each message of the prompt
    reasoning: Block
    answer: Block
    settings: Block  # the rest of the request as JSON


def shown_trial(record: TrialRecord, most: int = ALONE) -> TrialShown:
    """Return a trial as a template shows it, at most `most` characters of any text."""
    kind, outcome = _outcome(record)
    score = record.score
    signals = list(score.signals.items())[:_MOST_SIGNALS] if score is not None else []
    rest = {key: value for key, value in record.sent.items() if key not in ("messages", "input", "prompt")}
    return TrialShown(
        record=record,
        kind=kind,
        outcome=outcome,
        extracted=block((score.extracted or "") if score is not None else "", 300),
        reason=block(score.reason if score is not None else "", 1_000),
        signals=tuple((name, as_text(value)[:200]) for name, value in signals),
        messages=tuple((role, block(text, most)) for role, text in _messages(record.sent)[:_MOST_MESSAGES]),
        reasoning=block(record.completion.reasoning if record.completion is not None else "", most),
        answer=block(_said(record.completion), most),
        settings=block(as_text(rest), SETTINGS),
    )


def _said(answer: Completion | None) -> str:
    """Return the text of an answer, and the calls of tools in it."""
    if answer is None:
        return ""
    return "\n".join([*([answer.text] if answer.text else []), *map(shown_call, answer.tool_calls)])


def prompt_text(record: TrialRecord) -> str:
    """Return the whole prompt as text, each message under its role."""
    return "\n\n".join(f"{role}:\n{text}" for role, text in _messages(record.sent))


def _messages(sent: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    """Return role and content of every message; a request of another form is shown as it is."""
    return [
        (as_text(message.get("role", "message")), shown_message(message)) for message in sent_messages(sent)
    ]


def _outcome(record: TrialRecord) -> tuple[str, str]:
    if record.score is None:
        return "bad", f"no answer: {record.missing}"
    if record.score.category is None:
        return "bad", f"not scored: {record.missing}"
    right = record.score.signals.get("is_correct")
    if isinstance(right, bool):
        return ("good", "correct") if right else ("bad", "wrong")
    return "plain", f"category {record.score.category}"
