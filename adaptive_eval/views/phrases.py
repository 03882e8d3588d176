"""The phrases of a report, before they are escaped for Markdown or HTML."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from adaptive_eval.core.results import ModelResult, PairResult, Results, TaskResult
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.views.details import NAME, STARTED_AT
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import (
    NOTHING,
    count,
    decimals_for,
    fixed,
    interval,
    signed,
    trimmed,
)
from adaptive_eval.views.sentences import note_words
from adaptive_eval.views.verdicts import is_single, state_word, verdict_words

_KINDS = 5
_SHORT = 200


def task_words(task: TaskResult) -> str:
    """Return a task with its size and its weight in the overall score."""
    return f"{task.task} ({count(task.questions, 'question')}, weight {100 * task.weight:.3g} %)"


def task_rows(results: Results) -> list[list[str]]:
    """Return every model's name and its scores on all tasks, in the order of the leaderboard."""
    cells: dict[str, list[str]] = {line.model: [] for line in results.models}
    for task in results.tasks:
        decimals = decimals_for(value for one in task.scores for value in (one.low, one.score, one.high))
        for one in task.scores:
            span = interval(one.low, one.high, decimals)
            cells[one.model].append(NOTHING if one.score is None else f"{fixed(one.score, decimals)} {span}")
    return [[model, *row] for model, row in cells.items()]


def level_words(results: Results) -> str:
    """Return the confidence, such as ``95 %``."""
    return f"{trimmed(results.confidence * 100)} %"


def state_words(line: ModelResult, results: Results) -> str:
    """Return a model's state with its note."""
    state = state_word(line, results, running=results.stop is None)
    note = note_words(line, results)
    return f"{state}: {note}" if note else state


def score_name(results: Results) -> str:
    """Return the name of the score that ranks: the mean of question means, of several tasks their mean."""
    return "mean of tasks" if results.tasks else "mean of questions"


def bayes_words(line: ModelResult, decimals: int) -> str:
    """Return Bayes@N μ ± σ."""
    return NOTHING if line.mu is None else f"{fixed(line.mu, decimals)} ± {fixed(line.sigma, decimals)}"


def pair_words(pair: PairResult, results: Results) -> str:
    """Return a pair's verdict; a model measured to a width is not called tied."""
    return verdict_words(pair.verdict, results.equivalence, pair.kind)


def difference_words(pair: PairResult, decimals: int) -> str:
    """Return a difference with its sign, or a score that is to be measured."""
    return fixed(pair.difference, decimals) if pair.kind == "width" else signed(pair.difference, decimals)


def span_words(pair: PairResult, decimals: int) -> str:
    """Return the confidence sequence of a difference, or of a score that is to be measured."""
    return interval(pair.low, pair.high, decimals, sign=pair.kind != "width")


def evidence_words(pair: PairResult) -> str:
    """Return the evidence and its threshold; a score that is to be measured has none."""
    if pair.kind == "width":
        return NOTHING
    return f"{fixed(pair.evidence, 2)} / {fixed(pair.threshold, 2)}"


def pairs_title(results: Results) -> str:
    """Return the title of the table of contrasts."""
    if is_single(results):
        return "Models against the goal"
    own = any(pair.kind != "pair" for pair in results.pairs)
    return "Pairs, and models by themselves" if own else "Pairs"


def kinds_words(counts: Mapping[str, int]) -> str:
    """Return counts by kind, most frequent first.

    Examples
    --------
    >>> kinds_words({"timeout": 2, "rate_limit": 12}), kinds_words({})
    ('rate_limit 12, timeout 2', 'none')
    """
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{kind} {n:,}" for kind, n in ordered[:_KINDS] if n]
    if len(ordered) > len(shown):
        shown.append(f"{len(ordered) - len(shown)} more kinds")
    return ", ".join(shown) or "none"


def seconds_words(value: float | None) -> str:
    """Return a latency.

    Examples
    --------
    >>> seconds_words(0.5), seconds_words(None)
    ('0.50 s', '–')
    """
    return NOTHING if value is None else f"{value:.2f} s"


def score_decimals(lines: Sequence[ModelResult]) -> int:
    """Return the number of decimals that suits the scores."""
    return decimals_for(value for line in lines for value in (line.low, line.score, line.high))


def pair_decimals(pairs: Sequence[PairResult]) -> int:
    """Return the number of decimals that suits the differences."""
    return decimals_for(value for pair in pairs for value in (pair.difference, pair.low, pair.high))


def settings(meta: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the settings that fit a line and say anything, versions one by one, in alphabetical order."""
    empty = ("", "[]", "{}")
    shown = {
        key: value for key, value in meta.items() if key not in (NAME, STARTED_AT) and value not in empty
    }
    versions = _versions(shown.pop("versions", ""))
    short = {key: value for key, value in shown.items() if len(value) <= _SHORT and "\n" not in value}
    return sorted({**short, **versions}.items())


def _versions(text: str) -> dict[str, str]:
    """Return the stored versions, each as a setting."""
    try:
        stored = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(stored, dict):
        return {}
    return {f"version of {name}": str(version) for name, version in stored.items()}


SERVER_STATES = {
    "out": "does not answer",
    "probation": "answers again",
    "refused": "refuses the model",
    "joining": "has not answered yet",
    "left": "removed",
}
"""Words of the views for a server that is not in normal use."""


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
