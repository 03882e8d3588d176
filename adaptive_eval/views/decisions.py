"""Decisions and stops as sentences, made from their evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adaptive_eval.core.results import Decision, ModelResult, PairResult, Results, StopVerdict
from adaptive_eval.errors import SessionError
from adaptive_eval.views.numbers import count, duration, percent, signed, trimmed, usd
from adaptive_eval.views.promises import promises
from adaptive_eval.views.verdicts import exact_words, verdict_words


def describe(what: Decision | StopVerdict) -> str:
    """Return a decision, or why a session stopped, as a sentence.

    Examples
    --------
    >>> used = {"scope": "task", "owner": "sums", "used": {"trials": [60, 60]}}
    >>> describe(StopVerdict("budget", evidence=used))
    'the budget of task sums ended before the goal was reached: 60 of 60 trials'
    >>> describe(Decision("model_stopped", ("oak",), "stopped", 7, 90, "HTTP 401"))
    'oak stopped: HTTP 401'
    """
    if isinstance(what, StopVerdict):
        return what.text or _STOPS[what.reason](what.evidence)
    if what.kind == "model_stopped":
        return _model_stopped(what)
    if what.text:
        return what.text
    if what.kind == "stop":
        return _STOPS[what.verdict](what.evidence)
    words = _retired(what) if what.verdict == "retired" else _pair(what) + _exactness(what)
    return f"withdrawn, since the settings were changed: {words}" if what.kind == "withdrawn" else words


def _exactness(decision: Decision) -> str:
    found = decision.evidence
    if not found.get("exact"):
        return ""
    low, high = found["population_low"], found["population_high"]
    kind = found.get("kind", "pair")
    turned = decision.verdict == "worse" and kind == "pair"
    return f"; {exact_words(-high, -low) if turned else exact_words(low, high, kind)}"


def _pair(decision: Decision) -> str:
    found = decision.evidence
    kind = found.get("kind", "pair")
    asked = found.get("reference")
    others = [name for name in decision.models if name != asked]
    whose = f" of {others[0]}" if asked else " each" if kind == "pair" else ""
    after = _after(decision, whose)
    if kind != "pair":
        return f"{_single(decision, kind)}, {after}"
    first, second = decision.models
    low, high = found["low"], found["high"]
    if decision.verdict == "tie":
        margin = found.get("equivalence")
        tied = "tied" if margin is None else f"tied within ±{trimmed(margin)}"
        return f"{first} and {second} are {tied}: {_span(found['difference'], low, high)}, {after}"
    if decision.verdict == "worse":
        turned = _span(-found["difference"], -high, -low)
        return f"{second} is ahead of {first} by {turned}, {after}"
    return f"{first} is ahead of {second} by {_span(found['difference'], low, high)}, {after}"


def _after(decision: Decision, whose: str = "") -> str:
    """Say after how much; the sequence of a model that repeats its answers exceeds what it was asked."""
    if decision.evidence.get("exact"):
        return f"after one answer to each of {count(int(decision.evidence['questions']), 'question')}"
    return f"after {count(decision.step, 'trial')}{whose}"


def _span(difference: float, low: float, high: float) -> str:
    return f"{signed(difference)} [{signed(low)}, {signed(high)}]"


def _single(decision: Decision, kind: str) -> str:
    found, model = decision.evidence, decision.models[0]
    score = f"{found['score']:.3f}"
    if kind == "width":
        return f"{model} is measured: {score} ± {(found['high'] - found['low']) / 2.0:.3f}"
    if decision.verdict == "tie":
        return f"{model} is within ±{trimmed(found['equivalence'])} of {found['against']}: {score}"
    return f"{model} is {'above' if decision.verdict == 'better' else 'below'} {found['against']}: {score}"


def _retired(decision: Decision) -> str:
    found = decision.evidence
    parts = [
        f"{words} {_and(found[kind])}"
        for kind, words in (("separated", "separated from"), ("tied", "tied with"))
        if found.get(kind)
    ]
    if lost := found.get("lost"):
        whose = "pair" if len(lost) == 1 else "pairs"
        parts.append(f"its open {whose} with {_and(lost)} cannot be decided any more")
    state = "is asked nothing more" if lost else "is resolved"
    reason = "; ".join(parts) or "no open pair needs it"
    return f"{decision.models[0]} {state} {_after(decision)}: {reason}"


def _model_stopped(decision: Decision) -> str:
    name = decision.models[0]
    if decision.text.startswith(f"{name} stopped: "):  # stored by an earlier version
        return decision.text
    return f"{name} stopped: {decision.text or _own_budget(decision.evidence.get('used', {}))}"


def _own_budget(used: Mapping[str, Sequence[float]]) -> str:
    return f"its budget ended: {used_of_limits(used)}" if used else "its budget ended"


def note_words(line: ModelResult, results: Results) -> str:
    """Return why a model has stopped, or where a reference is from; empty for any other."""
    if line.note or line.state != "stopped":
        return line.note
    own = [one for one in results.budgets if (one.scope, one.owner) == ("model", line.model)]
    return _own_budget({one.name: (one.spent, one.limit) for one in own if one.limit is not None})


def _resolved(found: Mapping[str, Any]) -> str:
    goals = "; ".join(found.get("goals", ()))
    counts = []
    for noun, tied in (("pair", "tied_pairs"), ("model", "tied_models")):
        decided = found.get(f"{noun}s", 0)
        if decided:
            ties = f", {found[tied]:,} of them tied" if found.get(tied) else ""
            counts.append(f"{count(decided, noun)} decided{ties}")
    if found.get("measured"):
        counts.append(f"{count(found['measured'], 'score')} measured")
    return "".join(
        ["goal reached", f" ({goals})" if goals else "", f": {'; '.join(counts)}" if counts else ""]
    )


def _partial(found: Mapping[str, Any]) -> str:
    silent, spent = found["silent"], found["spent"]
    reasons = [f"{_and(silent)} stopped answering"] if silent else []
    if spent:
        reasons.append(f"the {'budget' if len(spent) == 1 else 'budgets'} of {_and(spent)} ended")
    stay = "stays" if found["open"] == 1 else "stay"
    left = f"{count(found['open'], 'pair')} {stay} open"
    return f"decided as far as possible: {left} because {' and '.join(reasons)}"


def _budget(found: Mapping[str, Any]) -> str:
    ended = "is spent" if found.get("is_goal") else "ended before the goal was reached"
    if found["scope"] == "models":
        models = _by_model(found["models"])
        return f"the budgets of all models {'are spent' if found.get('is_goal') else ended} ({models})"
    if tuple(found["used"]) == ("wall_clock",):
        limit = found["used"]["wall_clock"][1]
        return f"the running time{_whose(found)} has reached its limit of {_seconds(limit)}"
    return f"the budget{_whose(found)} {ended}: {used_of_limits(found['used'])}"


def _whose(found: Mapping[str, Any]) -> str:
    if found["scope"] == "run":
        return ""
    if found["scope"] == "scorer":
        kind, _, task = found["owner"].partition(" of ")
        return f" of the {kind} of task {task}"
    return f" of {found['scope']} {found['owner']}"


def _by_model(models: Mapping[str, str | Mapping[str, Sequence[float]]]) -> str:
    return "; ".join(
        f"{name}: {why if isinstance(why, str) else _own_budget(why)}" for name, why in models.items()
    )


def used_of_limits(used: Mapping[str, Sequence[float]]) -> str:
    """Return the used amount of each limit.

    Examples
    --------
    >>> used_of_limits({"trials": [60, 60], "usd": [0.2, 0.25]}), used_of_limits({"tokens": [900, 1000]})
    ('60 of 60 trials, $0.2000 of $0.2500', '900 of 1,000 tokens; the next trial might exceed it')
    """
    parts = []
    for name, (spent, limit) in used.items():
        if name == "usd":
            parts.append(f"{usd(spent)} of {usd(limit)}")
        elif name == "wall_clock":
            parts.append(f"{duration(spent)} of {_seconds(limit)}")
        else:
            parts.append(f"{spent:,.0f} of {limit:,.0f} {name.replace('_', ' ')}")
    reached = any(spent >= limit for spent, limit in used.values())
    return ", ".join(parts) + ("" if reached else "; the next trial might exceed it")


def _seconds(limit: float) -> str:
    return f"{limit:g} s" if limit < 60 or limit % 1 else duration(limit)


def _max_passes(found: Mapping[str, Any]) -> str:
    if "passes" not in found:
        return (
            "every model that is needed repeats its answers and has given them all: more trials say no more"
        )
    return f"every model that is needed has done {count(found['passes'], 'pass', 'passes')} (max_passes)"


def _endpoints(found: Mapping[str, Any]) -> str:
    if found.get("refused"):
        return f"the very first request was refused ({_by_model(found['models'])})"
    return f"no pair can be decided with the endpoints that answer ({_by_model(found['models'])})"


def _unusable(found: Mapping[str, Any]) -> str:
    share = f"{found['affected']:,} of {found['answers']:,} answers"
    if found["cause"] == "length":
        return (
            f"{share} of {found['owner']} were cut off at the token limit; raise max_tokens, or accept it by "
            "the rubric's truncated, or on: {length: wrong}"
        )
    return f"{share} to task {found['owner']} could not be scored: {found['said']}"


def _lost(found: Mapping[str, Any]) -> str:
    by_model = _by_model({model: str(number) for model, number in found["lost"].items()})
    return (
        f"lost answers could turn each open pair, {found['open']} in all (lost answers of {by_model}); allow "
        "more attempts, or say what a failure counts, such as on: {timeout: wrong}"
    )


def _interrupted(_: Mapping[str, Any]) -> str:
    return "interrupted by the user"


_STOPS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "resolved": _resolved,
    "partial": _partial,
    "budget": _budget,
    "max_passes": _max_passes,
    "endpoints": _endpoints,
    "unusable": _unusable,
    "lost": _lost,
    "interrupted": _interrupted,
}


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def explain(results: Results, first: str, second: str | None = None) -> str:
    """Describe the result of a pair, with its figures and the promise of the rule."""
    names = [line.model for line in results.models]
    unknown = [name for name in (first, second) if name is not None and name not in names]
    if unknown:
        raise SessionError(f"there is no model {unknown[0]!r}; the models are {', '.join(names)}")
    if second is None:
        found = [pair for pair in results.pairs if pair.kind != "pair" and pair.first == first]
    else:
        found = [pair for pair in results.pairs if {pair.first, pair.second} == {first, second}]
    if not found:
        asked = first if second is None else f"{first} and {second}"
        raise SessionError(f"the goal ({results.goal}) does not ask about {asked}")
    return "\n\n".join(_explained(pair, results) for pair in found)


def _explained(pair: PairResult, results: Results) -> str:
    name = f"{pair.first} to a {pair.second}" if pair.kind == "width" else f"{pair.first} − {pair.second}"
    if pair.difference is None or pair.low is None or pair.high is None:
        return f"{name}: no question has been answered by all that are compared."
    verdict = verdict_words(pair.verdict, results.equivalence, pair.kind)
    if pair.kind == "pair" and pair.verdict in ("better", "worse"):
        ahead, behind = (pair.first, pair.second)[:: 1 if pair.verdict == "better" else -1]
        verdict = f"{ahead} is ahead of {behind}"
    references = [line.model for line in results.models if line.state == "reference"]
    asked = [one for one in (pair.first, pair.second) if one not in references]
    whose = "each" if pair.kind == "pair" and len(asked) == 2 else f"of {asked[0]}"
    after = f"after {pair.trials:,} trials {whose} on {count(pair.questions, 'question')}"
    level = f"{percent(results.confidence)} confidence sequence"
    if pair.kind == "width":
        return (
            f"{name}: {verdict}.\nScore {pair.difference:.4f}, {level} [{pair.low:.4f}, {pair.high:.4f}], "
            f"{after}.\nThe interval holds at every moment of the run, for this model by itself."
        )
    scale = "z" if results.rule == "zscore" else "ln e-value"
    lines = [
        f"{name}: {verdict}.",
        f"Difference {pair.difference:+.4f}, {level} [{pair.low:+.4f}, {pair.high:+.4f}], {after}.",
        f"Evidence ({scale}): peak {pair.evidence:.3f}; a winner needs {pair.threshold:.3f} now.",
    ]
    if pair.population_low is not None and pair.population_high is not None:
        lines.append(f"{exact_words(pair.population_low, pair.population_high, pair.kind).capitalize()}.")
    elif results.equivalence is not None and results.rule != "zscore":
        lines.append(
            f"A tie is called once the difference is known to be below {trimmed(results.equivalence)}."
        )
    return "\n".join([*lines, *promises(results).holds[:2]])


def still_valid(decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions that none of the later ones withdraws, oldest first, without the withdrawals.

    Examples
    --------
    >>> first = Decision("pair", ("a", "b"), "better", 40, 80, "a separated from b", {})
    >>> second = Decision("pair", ("a", "c"), "better", 52, 150, "a separated from c", {})
    >>> withdrawn = withdrawals([first, second], [second])
    >>> [(one.kind, one.models) for one in withdrawn]
    [('withdrawn', ('a', 'b'))]
    >>> still_valid([first, second, *withdrawn]) == [second]
    True
    """
    valid: list[Decision] = []
    for decision in decisions:
        if decision.kind != "withdrawn":
            valid.append(decision)
            continue
        valid = [one for one in valid if _mark(one) != _mark(decision)]
    return valid


def withdrawals(valid: Sequence[Decision], replayed: Sequence[Decision]) -> list[Decision]:
    """Return a withdrawal of every verdict and retirement that the same answers do not lead to any more."""
    pairs = {_mark(one) for one in replayed if one.kind == "pair"}
    retired = {one.models for one in replayed if one.kind == "retired"}
    lost = [
        one
        for one in valid
        if (one.kind == "pair" and _mark(one) not in pairs)
        or (one.kind == "retired" and one.models not in retired)
    ]
    return [
        replace(
            one,
            kind="withdrawn",
            text=f"withdrawn, since the settings were changed: {one.text}" if one.text else "",
        )
        for one in lost
    ]


def _mark(decision: Decision) -> tuple[tuple[str, ...], str, int]:
    return decision.models, decision.verdict, decision.step
