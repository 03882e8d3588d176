"""What is recorded of a course: what was asked, decided and shown, in lines that are compared by figures."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from hashlib import blake2b
from itertools import zip_longest
from math import isclose, isfinite, sqrt
from typing import Any

from adaptive_eval.core.results import Decision, Results
from adaptive_eval.trial import TrialRequest

_WEIGHTS = [sqrt(number) for number in (2, 3, 5, 6, 7, 10, 11, 13, 14, 15, 17, 19, 21, 22, 23)]


def together(values: Iterable[float | bool | None]) -> float:
    """Return one number that changes when any of some does."""
    total = 0.0
    for place, value in enumerate(values):
        number = -7.0 if value is None else float(value)
        if not isfinite(number):
            number = 99.0 if number != number else 77.0 * (1 if number > 0 else -1)
        total += _WEIGHTS[place % len(_WEIGHTS)] * (1 + place // len(_WEIGHTS)) * number
    return total


def digest(items: Iterable[object]) -> str:
    """Return a short digest of discrete things."""
    return "#" + blake2b(repr(list(items)).encode(), digest_size=4).hexdigest()


def asked_fact(asked: Sequence[TrialRequest]) -> str:
    """Return how many trials were asked of each model and task, and a digest of their order."""
    found = Counter((one.key.model, one.task) for one in asked)
    counts = " ".join(f"{model}.{task}={number}" for (model, task), number in sorted(found.items()))
    repeats = sum(one.repeat > 0 for one in asked)
    order = digest(
        (one.key.model, one.key.index, one.task, one.question, one.repeat, one.seed) for one in asked
    )
    return f"asked {len(asked)}: {counts} again={repeats} order={order}"


def text(value: object) -> str:
    """Return a value as it is recorded."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, float):
        return f"{round(value, 11) + 0.0:.10g}"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{text(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(text, value)) + "]"
    return str(value).replace(" ", "_")


_WORDS = ("text", "note", "warnings", "models", "goal")
"""Fields that are sentences, or recorded otherwise."""
_SHOWN = ("score", "evidence")
"""Figures that are recorded by name; those of a record are together in one as well."""
_SHORT = {
    "state": "", "verdict": "", "evidence": "e", "trials_each": "each", "decided_at": "at", "questions": "of",
    "missing": "lost", "prompt_tokens": "in", "completion_tokens": "out", "rank_low": "from",
    "rank_high": "to", "statistic_beyond": "beyond", "evidence_beyond": "beyond",
}  # fmt: skip
"""How fields are named in the file."""


def record_fact(record: Any, *without: str) -> str:
    """Return the fields of a record that are not at their default; most figures together."""
    parts, figures = [], []
    for one in fields(record):
        value = getattr(record, one.name)
        if one.name in (*_WORDS, *without):
            continue
        if isinstance(value, float) or value is None:
            figures.append(value)
        if is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        usual = (None, 0) if one.default is MISSING else (one.default,)
        same = any(value == default and type(value) is type(default) for default in usual)
        if not same and (one.name in _SHOWN or not isinstance(value, float)):
            parts.append(f"{_SHORT.get(one.name, one.name)}={text(value)}".removeprefix("="))
    return " ".join([*parts, f"figures={text(together(figures))}"])


def decision_fact(one: Decision) -> str:
    """Return a decision; the figures behind it as one number."""
    evidence = dict(one.evidence)
    numbers = [evidence.pop(name) for name in sorted(evidence) if isinstance(evidence[name], float)]
    if "goals" in evidence:  # sentences
        evidence["goals"] = len(evidence["goals"])
    behind = "".join(f" {_SHORT.get(name, name)}={text(evidence[name])}" for name in sorted(evidence))
    figures = f" figures={text(together(numbers))}" if numbers else ""
    who = ",".join(one.models)
    return f"{one.kind} {who} {one.verdict} step={one.step} trials={one.trials}{behind}{figures}"


def moment(results: Results) -> str:
    """Return what results say ranks, states, verdicts, and the numbers of each table together."""
    ranks = "".join(f"{line.rank}{line.rank_low}{line.rank_high}" for line in results.models)
    states = "".join(line.state[:2] for line in results.models)
    verdicts = "".join(pair.verdict[0] for pair in results.pairs)
    parts = [f"trials={results.trials} ranks={ranks} states={states} verdicts={verdicts}"]
    counts = []
    for name, records in (("models", results.models), ("pairs", results.pairs), ("budgets", results.budgets)):
        values = [getattr(one, field.name) for one in records for field in fields(one)]
        figures = [one for one in values if one is None or isinstance(one, float)]
        counts += [one for one in values if not isinstance(one, float) and one is not None]
        parts.append(f"{name}={text(together(figures))}")
    parts.append(f"counts={digest(counts)}")
    if results.forecast is not None:
        parts.append(f"ahead={text(results.forecast.trials.median)}")
    return " ".join(parts)


_ASKED_FOR = (
    "rule", "family", "equivalence", "questions", "ties", "scale", "target", "spend", "confidence", "prior",
    "in_rounds", "top_k",
)  # fmt: skip
"""Fields of results that follow from the case alone."""


def result_facts(results: Results) -> Iterator[str]:
    """Yield all figures of results, but those of the stop, which is a decision too."""
    codes = Counter(getattr(one, "code", "") for one in results.warnings)
    asked = digest(text(getattr(results, name)) for name in _ASKED_FOR)
    kept = record_fact(results, "pairs", "budgets", "tasks", "forecast", "stop", "judge_alone", *_ASKED_FOR)
    yield f"results {kept} asked={asked} exit={results.exit_code} warnings={text(codes)}"
    for line in results.models:
        yield f"{line.model} {record_fact(line, 'model')}"
    for pair in results.pairs:
        yield f"{pair.first}/{pair.second} {record_fact(pair, 'first', 'second', 'test')}"
    for task in results.tasks:
        ends = together(end for one in task.scores for end in (one.score_low, one.score_high))
        scores = text([one.score for one in task.scores])
        about = f"questions={task.questions} weight={text(task.weight)}"
        yield f"task {task.task} {about} scores={scores} ends={text(ends)}"
    for owner in dict.fromkeys((one.scope, one.owner) for one in results.budgets):
        lines = [one for one in results.budgets if (one.scope, one.owner) == owner]
        spent = " ".join(f"{one.name}={text(one.spent)}" for one in lines)
        others = together(number for one in lines for number in (one.reserved, one.limit, one.presumed))
        yield f"budget {owner[0]} {owner[1]} {spent} others={text(others)}"
    if results.forecast is not None:
        yield f"ahead {record_fact(results.forecast)}"


def condensed(facts: Iterable[str]) -> list[str]:
    """Return a line for each kind of facts: a digest of words and whole numbers, and all figures together."""
    parts: dict[str, list[str]] = {}
    for fact in facts:
        kind = fact.split()[0]
        if "/" in kind:
            kind = "pairs"
        elif " rank=" in fact:
            kind = "models"
        parts.setdefault(kind, []).append(fact)
    found = []
    for kind, lines in parts.items():
        figures = [float(one) for line in lines for one in _FIGURE.findall(line)]
        words = [_FIGURE.sub("~", line) for line in lines]
        found.append(f"{kind} {len(lines)} {digest(words)} {text(together(figures))}")
    return found


def shortened(facts: Iterable[str]) -> list[str]:
    """Return the facts with those of models, tasks and budgets in a line for each kind."""
    kept, others = [], []
    for fact in facts:
        of_results = " rank=" in fact or fact.startswith(("task ", "budget ", "results "))
        (others if of_results else kept).append(fact)
    return [*kept, *condensed(others)]


_FIGURE = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)(?![\w.])")
_NUMBER = re.compile(r"(?<![\w#.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")


def same(expected: str, found: str) -> bool:
    """Return whether two facts agree, figures to nine digits."""
    if expected == found:
        return True
    if _NUMBER.sub("0", expected) != _NUMBER.sub("0", found):
        return False
    for one, other in zip(_NUMBER.findall(expected), _NUMBER.findall(found), strict=True):
        if one != other and not isclose(float(one), float(other), rel_tol=1e-9, abs_tol=1e-9):
            return False
    return True


def first_difference(expected: Sequence[str], found: Sequence[str]) -> str:
    """Return the first fact that is another, with what was recorded; "" if there is none."""
    for one, other in zip_longest(expected, found, fillvalue="nothing"):
        if not same(one, other):
            return f"recorded: {one}\n     now: {other}"
    return ""
