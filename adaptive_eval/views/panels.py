"""The smaller parts of a view: title, verdict, settings, budgets, endpoints, decisions, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from rich.cells import cell_len
from rich.text import Text

from adaptive_eval.core.results import BudgetLine, Decision
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.bars import progress_bar
from adaptive_eval.views.budgets import amount_words, budget_name
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.headline import headline
from adaptive_eval.views.inert import inert
from adaptive_eval.views.labels import SERVER_STATES, cut, distinct_labels
from adaptive_eval.views.lines import BAD, GAP, GOOD, HEADING, Column, columns, line, table, wrapped
from adaptive_eval.views.numbers import NOTHING, count, duration, fixed, percent, short, trimmed
from adaptive_eval.views.outlook import outlook_parts
from adaptive_eval.views.snapshot import BudgetUse, RunView
from adaptive_eval.views.verdicts import family_words, questions_words

_FORECAST = "Forecast (approx.) "
_STATE_STYLE = {"running": GOOD, "stopped": "bold", "interrupted": BAD, "waiting": ""}


def title_line(view: RunView, width: int) -> Text:
    """Return name, state and running time on the left, trials and rate on the right."""
    left = line(
        (cut(inert(view.name), max(8, width // 3)), HEADING),
        "  ",
        (_state_words(view), _STATE_STYLE[view.state]),
        f"  {duration(view.elapsed)}",
    )
    right = line(count(view.results.trials, "trial"), _prefixed("  ", rate_words(view)))
    if left.cell_len + 2 + right.cell_len > width:
        return line(left, "  ", right, width=width)
    return line(left, " " * (width - left.cell_len - right.cell_len), right)


def verdict_lines(view: RunView, width: int, height: int) -> list[Text]:
    """Return the verdict sentence, wrapped to at most `height` lines."""
    names = distinct_labels((model.model for model in view.models), max(8, min(28, width // 4)))
    sentence = headline(view.results, names) if view.models else view.headline
    return wrapped(inert(sentence), width, height, style=HEADING)


def settings_line(view: RunView, width: int) -> Text:
    """Return goal, rule and start on one line; what does not fit whole is left out."""
    results = view.results
    parts = [f"Goal: {view.goal}", f"rule: {results.rule} at {trimmed(results.confidence * 100)} %"]
    if results.equivalence is not None:
        parts.append(f"ties within ±{trimmed(results.equivalence)}")
    parts.append(family_words(results.family))
    if (asked := questions_words(results.in_rounds, len(results.tasks))) is not None:
        parts.append(f"questions {asked}")
    if view.started is not None:
        parts.append(f"started {datetime.fromtimestamp(view.started, UTC):%Y-%m-%d %H:%M} UTC")
    return line(_fitting("", parts, width), width=width)


def budget_summary(view: RunView, width: int) -> Text:
    """Return all budgets on one line, with the one that ends first at the present rate."""
    running = view.state == "running"
    lasting = [use.seconds_left for use in view.budgets if use.seconds_left is not None]
    parts = []
    for use in view.budgets:
        ends = running and use.seconds_left is not None and use.seconds_left == min(lasting)
        parts.append(_spent(use, duration(use.seconds_left) if ends else None))
    return line(("Budget ", HEADING), "  ·  ".join(parts) if parts else "none set", width=width)


def budget_lines(view: RunView, width: int, height: int) -> list[Text]:
    """Return a table of the budgets: spent, in flight, limit, rate, and how long each lasts at this rate."""
    uses = view.budgets[: height - 1]
    if not uses:
        return []
    cols = [
        Column("budget", [_name(use.line) for use in uses]),
        Column("spent", [amount_words(use.line, use.line.spent) for use in uses], "right"),
        Column("in flight", [amount_words(use.line, use.line.reserved) for use in uses], "right"),
    ]
    if any(use.line.limit is not None for use in uses):
        bar = max(0, min(24, width - 64))
        cols.append(Column("limit", [amount_words(use.line, use.line.limit) for use in uses], "right"))
        cols.append(Column("used", [_used(use, bar) for use in uses], "right"))
    if any(use.seconds_left is not None for use in uses) and view.state == "running":
        cols.append(Column("left at this rate", [duration(use.seconds_left) for use in uses], "right"))
    return [line(text, width=width) for text in columns(cols)]


def outlook_lines(view: RunView, width: int, height: int) -> list[Text]:
    """Return the forecast: on one line as much as fits whole, on more lines all of it."""
    if view.outlook is None or height < 1:
        return []
    parts = outlook_parts(view.outlook)
    if height > 1:
        lines = wrapped(_FORECAST + " · ".join(parts), width, height)
    else:
        lines = [line(_fitting(_FORECAST, parts, width), width=width)]
    lines[0].stylize(HEADING, 0, len(_FORECAST))
    return lines


def _fitting(head: str, parts: Sequence[str], width: int) -> str:
    """Return as many parts as fit on a line, at least the first."""
    fitting = [inert(head + " · ".join(parts[:n])) for n in range(len(parts), 0, -1)]
    return next((words for words in fitting if cell_len(words) <= width), fitting[-1])


def endpoint_errors(view: RunView, width: int) -> Text | None:
    """Return one line that names the endpoints with errors, None where there are none."""
    failing = [
        health
        for health in view.endpoints
        if condition_words(health) and (health.state != "left" or any(health.errors.values()))
    ]
    if not failing:
        return None
    names = distinct_labels(dict.fromkeys(health.model for health in failing), 20)
    words = "; ".join(f"{names[health.model]} {condition_words(health)}" for health in failing)
    return line(("Endpoint errors: ", BAD), words, width=width)


def endpoint_lines(view: RunView, width: int, height: int) -> list[Text]:
    """Return a table of the endpoints, those with errors first."""
    healths = sorted(view.endpoints, key=lambda health: not condition_words(health))
    cols = partial(_endpoint_columns, width)
    return table(healths, width, height, cols, lambda rest: f"{len(rest)} more")


def _endpoint_columns(width: int, rows: Sequence[EndpointHealth]) -> list[Column]:
    names = distinct_labels(dict.fromkeys(health.model for health in rows), 20)
    cols = [
        Column("endpoint of", [names[health.model] for health in rows]),
        Column("in flight", [f"{health.in_flight}/{health.limit}" for health in rows], "right"),
        Column("req/s", [fixed(health.requests_per_second, 1) for health in rows], "right"),
        Column("tok/s", [short(health.tokens_per_second) for health in rows], "right"),
        Column("p50 s", [fixed(health.p50, 2) for health in rows], "right"),
        Column("p95 s", [fixed(health.p95, 2) for health in rows], "right"),
        Column("errors", [_errors(health) for health in rows]),
    ]
    address = width - sum(col.width + GAP for col in cols)
    if address >= 16:
        cols.insert(1, Column("address", [cut(inert(health.endpoint), min(48, address)) for health in rows]))
    return cols


def decision_lines(view: RunView, width: int, height: int) -> list[Text]:
    """Return the last decisions in words, the latest first."""
    if not view.decisions or height < 1:
        return []
    return [_decision(one, width) for one in view.decisions[: -height - 1 : -1]]


def warning_lines(view: RunView, width: int, height: int, *, whole: bool = False) -> list[Text]:
    """Return the warnings, one line each or `whole`, and how many did not fit."""
    warnings = view.warnings
    shown = warnings if len(warnings) <= height else warnings[: max(1, height - 1)]
    if whole:
        lines = [one for text in shown for one in wrapped(f"Warning: {inert(text)}", width)]
    else:
        lines = [line(("Warning: ", BAD), inert(text), width=width) for text in shown][:height]
    if len(shown) < len(warnings) and (whole or len(lines) < height):
        lines.append(line(f"⋯ {count(len(warnings) - len(shown), 'more warning')}", width=width))
    return lines


def rate_words(view: RunView) -> str:
    """Return the present rates in words, empty where they are unknown or the run has ended."""
    if view.state != "running" or view.trials_per_second is None:
        return ""
    words = f"{view.trials_per_second:.1f} trials/s"
    if view.tokens_per_second is not None:
        words += f"  {short(view.tokens_per_second)} tokens/s"
    return words


def error_words(errors: Mapping[str, int]) -> str:
    """Return errors by kind in words, the most frequent first.

    Examples
    --------
    >>> error_words({"timeout": 3, "rate_limit": 12})
    'rate_limit 12, timeout 3'
    """
    ordered = sorted(((kind, n) for kind, n in errors.items() if n), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{inert(kind)} {n:,}" for kind, n in ordered)


def condition_words(health: EndpointHealth) -> str:
    """Return the problems of an endpoint in words, empty where it has none.

    Examples
    --------
    >>> errors = {"server": 2}
    >>> condition_words(EndpointHealth("a", "http://a/v1", 0, 8, 0, 0.0, 0.0, None, None, errors, "out"))
    'does not answer, server 2'
    """
    state = "" if health.state == "in" else SERVER_STATES.get(health.state, inert(health.state))
    return ", ".join(words for words in (state, error_words(health.errors)) if words)


def _state_words(view: RunView) -> str:
    if view.stop is None:
        return "interrupted: no process runs it" if view.state == "interrupted" else view.state
    return (
        f"{view.state}: {inert(view.stop.reason.replace('_', ' '))}"
        if view.state == "stopped"
        else view.state
    )


def _decision(decision: Decision, width: int) -> Text:
    return line((f"{decision.trials:>7,}  ", ""), inert(describe(decision)), width=width)


def _errors(health: EndpointHealth) -> Text:
    words = condition_words(health)
    return Text(words, style=BAD) if words else Text("none")


def _used(use: BudgetUse, bar: int) -> str:
    if use.fraction is None:
        return NOTHING
    return f"{progress_bar(use.fraction, bar)} {percent(use.fraction):>5}".strip()


def _spent(use: BudgetUse, ends_in: str | None) -> str:
    words = f"{_name(use.line)} {amount_words(use.line, use.line.spent)}"
    if use.fraction is None:
        return words
    words += f" of {amount_words(use.line, use.line.limit)} ({percent(use.fraction)}"
    return words + (f", {ends_in} left at this rate)" if ends_in else ")")


def _name(budget: BudgetLine) -> str:
    return inert(budget_name(budget))


def _prefixed(prefix: str, text: str) -> str:
    return prefix + text if text else ""
