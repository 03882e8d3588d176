"""The problems and the usage of a run, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from adaptive_eval.core.results import ModelResult, Results
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.decisions import describe
from adaptive_eval.views.inert import inert
from adaptive_eval.views.labels import SERVER_STATES
from adaptive_eval.views.numbers import count, duration, listing, short, usd
from adaptive_eval.views.verdicts import decided_trials

CANCELLED = "warning/cancelled"
"""The code of the warning that requests were cancelled in flight."""


def run_problems(
    state: str, models: Sequence[ModelResult], endpoints: Sequence[EndpointHealth], truncated: int
) -> list[str]:
    """Return the problems of a run and its servers, the worst first.

    Examples
    --------
    >>> run_problems("interrupted", (), (), truncated=0)
    ['No process is running this run: continue it with adaptive-eval run.']
    """
    found = []
    if state == "interrupted":
        found.append("No process is running this run: continue it with adaptive-eval run.")
    stopped = [line.model for line in models if line.state == "stopped"]
    if stopped:
        found.append(f"{listing(stopped)} {'was' if len(stopped) == 1 else 'were'} stopped by errors.")
    for health in endpoints:
        if health.state in ("out", "joining", "refused") and state == "running":
            words = (
                "refuses it" if health.state == "refused" else "does not answer; it is asked again and again"
            )
            found.append(f"The server {health.endpoint} of {health.model} {words}.")
    errors = sum(n for health in endpoints for n in health.errors.values())
    if errors:
        failing = [health.model for health in endpoints if any(health.errors.values())]
        found.append(
            f"{count(errors, 'failed request')} at the endpoints of {listing(sorted(set(failing)))}."
        )
    missing = sum(line.missing for line in models)
    if missing:
        found.append(f"{count(missing, 'trial')} without an answer; they are never scored.")
    if truncated:
        found.append(f"{count(truncated, 'answer')} cut off at the token limit; they are scored like others.")
    return found


def spent_words(results: Results, elapsed: float) -> str:
    """Return the stop reason and usage of a run of `elapsed` seconds."""
    late = results.trials - decided_trials(results)
    after = f" ({late:,} answered after the stop)" if late else ""
    used = [f"{count(results.trials, 'trial')}{after}", _tokens_words(results)]
    if results.usd is not None:
        used.append(usd(results.usd))
    used.append(duration(elapsed))
    stop = results.stop
    if stop is None:
        return f"Not finished: {', '.join(used)} so far."
    reason, words = stop.reason.replace("_", " "), inert(describe(stop)).rstrip(".")
    return f"Stopped ({reason}): {words}. Used {', '.join(used)}."


def _tokens_words(results: Results) -> str:
    """Return the tokens of answers, and what requests without an answer may have taken in addition."""
    words = f"{short(results.tokens)} tokens"
    presumed = {line.name: line.presumed for line in results.budgets if line.scope == "run"}
    if presumed.get("tokens"):
        return f"{words} of answers, at most {short(presumed['tokens'])} of requests without an answer"
    codes = {getattr(text, "code", None) for text in results.warnings}
    return f"{words} of answers, those of cancelled requests unknown" if CANCELLED in codes else words


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
