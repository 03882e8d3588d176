"""Views of stored trials: prompt, answer, and reason of the category."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adaptive_eval.store.records import TrialRecord
from adaptive_eval.trial import sent_messages, shown_call, shown_message
from adaptive_eval.views.escape import excerpt
from adaptive_eval.views.inert import inert

_HEAD, _TAIL = 200, 600
"""Characters shown of the beginning and the end of a long text."""


def sample_data(
    record: TrialRecord, categories: Sequence[str] = (), target: str | None = None
) -> dict[str, Any]:
    """Return one trial as JSON-able data."""
    request, answer, score = record.request, record.completion, record.score
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
        return {**data, "missing": record.missing}
    return {
        **data,
        **({"reasoning": answer.reasoning} if answer.reasoning else {}),
        **({"calls": list(answer.calls)} if answer.calls else {}),
        "answer": answer.text,
        **({"tool_calls": list(answer.tool_calls)} if answer.tool_calls else {}),
        "finish_reason": answer.finish_reason,
        "extracted": score.extracted,
        **({} if record.missing is None else {"missing": record.missing}),
        "category": score.category,
        "category_name": _name(score.category, categories),
        "reason": score.reason,
        "signals": dict(score.signals),
        "latency": answer.latency,
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        **({"reasoning_tokens": answer.reasoning_tokens} if answer.reasoning_tokens else {}),
    }


def sample_lines(
    record: TrialRecord, categories: Sequence[str] = (), target: str | None = None, *, full: bool = False
) -> Iterator[str]:
    """Yield one trial as lines for a terminal; text of models is inert."""
    request, answer, score = record.request, record.completion, record.score
    place = f"{request.key.model} · {request.task}/{request.question} · step {request.key.index}"
    if answer is None or score is None:
        yield inert(f"{place} · missing")
        yield f"  why        {inert(record.missing or '')}"
        return
    name = _name(score.category, categories)
    what = "unscored" if score.category is None else f"category {score.category}"
    after = " · after the stop" if record.after_stop else ""
    yield inert(f"{place} · {what}{f' ({name})' if name else ''}{after}")
    for message in sent_messages(record.sent):
        yield from _block(str(message.get("role", "prompt")), shown_message(message), full)
    for number, call in enumerate(answer.calls, start=1):
        asked = [f"{message.get('role')}: {shown_message(message)}" for message in call["messages"]]
        said = [call["text"], *map(shown_call, call.get("tool_calls", ()))]
        yield from _block(f"call {number}", "\n".join([*asked, *filter(None, said)]), full)
    if answer.reasoning:
        yield from _block("reasoning", answer.reasoning, full)
    if answer.text or not answer.tool_calls:
        yield from _block("answer", answer.text, full)
    for call in answer.tool_calls:
        yield from _block("calls", shown_call(call), full)
    found = "nothing" if score.extracted is None else inert(score.extracted)
    yield f"  extracted  {found}" + ("" if target is None else f"   target {inert(target)}")
    yield f"  why        {inert(score.reason)}"
    figures = ", ".join(f"{name} {_figure(value)}" for name, value in score.signals.items())
    yield f"  signals    {inert(figures)}"


def _block(label: str, text: str, full: bool) -> Iterator[str]:
    shown = text if full else excerpt(text, _HEAD, _TAIL)
    for number, line in enumerate(shown.splitlines() or [""]):
        head = inert(label)[:9] if number == 0 else ""
        yield f"  {head:<9}  {inert(line)}"


def _name(category: int | None, categories: Sequence[str]) -> str | None:
    return categories[category] if category is not None and category < len(categories) else None


def _figure(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
