"""Decisions and stops as sentences, made from their evidence."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from adaptive_eval.core.discarded import causes_words
from adaptive_eval.core.results import Decision, PairResult, Results, StopVerdict
from adaptive_eval.trial import DISCARD_CAUSES, LAID_OUT, DiscardCause
from adaptive_eval.views.numbers import count, duration, interval, percent, signed, trimmed, usd
from adaptive_eval.views.verdicts import (
    claim_words,
    exact_words,
    good_enough_words,
    tie_words,
    unranked_words,
    unusable_words,
    verdict_words,
)

Evidence = Mapping[str, Any]


def decision_words(one: Decision) -> str:
    """Return a decision as a sentence."""
    if one.kind == "model_stopped":
        return f"{one.models[0]} stopped: {one.text or own_budget_words(one.evidence.get('used', {}))}"
    if one.text:
        return one.text
    if one.kind == "stop":
        return stop_words(one.verdict, one.evidence)
    if one.kind == LAID_OUT:
        awaited = ", ".join(str(index) for index, _ in one.evidence["awaited"])
        return f"the next round of {one.models[0]} is laid out without what is awaited: trial {awaited}"
    if one.verdict == "retired":
        words = _retired(one)
    else:
        words = _pair(one)
    if one.kind == "withdrawn":
        return f"withdrawn, since the settings were changed: {words}"
    return words


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
        return what.text or stop_words(what.reason, what.evidence)
    return decision_words(what)


def own_budget_words(used: Mapping[str, Sequence[float]]) -> str:
    """Return that a model's own budget ended, with what is used of its limits."""
    if used:
        return f"its budget ended: {_used_of_limits(used)}"
    return "its budget ended"


def stop_words(reason: str, found: Evidence) -> str:
    """Return why a session stopped."""
    if reason == "interrupted":
        return "interrupted by the user"
    return _STOPS[reason](found)


def _span(difference: float, low: float, high: float) -> str:
    return f"{signed(difference)} [{signed(low)}, {signed(high)}]"


def _together(names: Sequence[str]) -> str:
    """Return all names as a phrase."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _time_limit(seconds: float) -> str:
    if seconds < 60 or seconds % 1:
        return f"{seconds:g} s"
    return duration(seconds)


def _used_of_limits(used: Mapping[str, Sequence[float]]) -> str:
    parts, reached = [], False
    for name, (spent, limit) in used.items():
        reached = reached or spent >= limit
        if name == "usd":
            parts.append(f"{usd(spent)} of {usd(limit)}")
        elif name == "wall_clock":
            parts.append(f"{duration(spent)} of {_time_limit(limit)}")
        else:
            parts.append(f"{spent:,.0f} of {limit:,.0f} {name.replace('_', ' ')}")
    words = ", ".join(parts)
    if reached:
        return words
    return f"{words}; the next trial might exceed it"


def _by_model(models: Mapping[str, Any]) -> str:
    parts = []
    for name, why in models.items():
        words = why
        if isinstance(why, Mapping):
            words = own_budget_words(why)
        parts.append(f"{name}: {words}")
    return "; ".join(parts)


def _after(one: Decision, whose: str = "") -> str:
    if one.evidence.get("exact"):
        return f"after one answer to each of {count(one.evidence['questions'], 'question')}"
    return f"after {count(one.step, 'trial')}{whose}"


def _exactness(one: Decision) -> str:
    """Return what is said of a difference that is known on these questions; nothing of another."""
    found = one.evidence
    if not found.get("exact"):
        return ""
    kind = found.get("kind", "pair")
    low = found["population_low"]
    high = found["population_high"]
    if kind in ("pair", "not-worse"):
        flipped = kind == "pair" and one.verdict == "worse"
        if flipped:
            ends = (-high, -low)
        else:
            ends = (low, high)
        return f"; {exact_words(*ends)}"
    against = 0.0
    if kind == "threshold":
        against = found["score"] - found["difference"]
    return f"; {exact_words(low + against, high + against, 'width')}"


def _alone(one: Decision, kind: str) -> str:
    """Return what was decided of a single model."""
    found = one.evidence
    model = one.models[0]
    score = f"{one.evidence['score']:.3f}"
    if kind == "width":
        return f"{model} is measured: {score} {interval(found['low'], found['high'], 3)}"
    if one.verdict == "tie":
        return f"{model} is within ±{trimmed(found['equivalence'])} of {found['against']}: {score}"
    side = "below"
    if one.verdict == "better":
        side = "above"
    return f"{model} is {side} {found['against']}: {score}"


def _pair(one: Decision) -> str:
    found = one.evidence
    kind = found.get("kind", "pair")
    reference = found.get("reference")
    whose = ""
    if kind in ("pair", "not-worse"):
        whose = " each"
    if reference:
        asked = next(name for name in one.models if name != reference)
        whose = f" of {asked}"
    if kind in ("threshold", "width"):
        return f"{_alone(one, kind)}, {_after(one, whose)}{_exactness(one)}"
    first, second = one.models
    difference = found["difference"]
    low = found["low"]
    high = found["high"]
    if kind == "not-worse":
        claim = claim_words(first, second, one.verdict, found["margin"])
        words = f"{claim}: {_span(difference, low, high)}"
    elif one.verdict == "tie":
        words = (
            f"{first} and {second} are {tie_words(found.get('equivalence'))}: {_span(difference, low, high)}"
        )
    elif one.verdict == "worse":
        words = f"{second} is ahead of {first} by {_span(-difference, -high, -low)}"
    else:
        words = f"{first} is ahead of {second} by {_span(difference, low, high)}"
    return f"{words}, {_after(one, whose)}{_exactness(one)}"


def _retired(one: Decision) -> str:
    found, parts = one.evidence, []
    for words, key in (("separated from", "separated"), ("tied with", "tied")):
        if found.get(key):
            parts.append(f"{words} {_together(found[key])}")
    for key in ("not_better", "not_worse", "better", "worse"):
        if found.get(key):
            than = f"{key.replace('_', ' ')} than {_together(found[key])}"
            parts.append(f"{than} by more than {trimmed(found['within'])}")
    lost = found.get("lost")
    if lost:
        pairs = "pairs"
        if len(lost) == 1:
            pairs = "pair"
        parts.append(f"its open {pairs} with {_together(lost)} cannot be decided any more")
    state = "asked nothing more" if lost else "resolved"
    reasons = "; ".join(parts) or "no open pair needs it"
    return f"{one.models[0]} is {state} {_after(one)}: {reasons}"


def _resolved(found: Evidence) -> str:
    counts = []
    if found.get("good_enough"):
        counts.append(good_enough_words(found["good_enough"], found["within"]))
    for noun in ("pair", "model"):
        decided = found.get(f"{noun}s")
        tied = found.get(f"tied_{noun}s")
        if decided:
            of_them = ""
            if tied:
                of_them = f", {tied:,} of them tied"
            counts.append(f"{count(decided, noun)} decided{of_them}")
    if found.get("measured"):
        counts.append(f"{count(found['measured'], 'score')} measured")
    if found.get("held"):
        counts.append(f"{count(found['held'], 'claim')} held")
    if found.get("failed"):
        counts.append(f"{count(found['failed'], 'claim')} failed")
    words = "goal reached"
    if found.get("goals"):
        words += f" ({'; '.join(found['goals'])})"
    if counts:
        return f"{words}: {'; '.join(counts)}"
    return words


def _partial(found: Evidence) -> str:
    reasons = []
    if found["silent"]:
        reasons.append(f"{_together(found['silent'])} stopped answering")
    if found.get("unusable"):
        reasons.append(unranked_words(found["unusable"]))
    noisy = found.get("noisy")
    if noisy:
        them = "them"
        if len(noisy) == 1:
            them = "it"
        reasons.append(
            f"the stored answers of {_together(noisy)} are too noisy for any number of further trials: give "
            f"{them} more trials a question in an earlier run, ask it here as a model, or use a wider margin"
        )
    if found.get("sample"):
        reasons.append(
            "the questions, or clusters of them, are too few for any verdict, whatever the answers are: use "
            "more, or stopping.target benchmark"
        )
    if found["spent"]:
        budgets = "budgets"
        if len(found["spent"]) == 1:
            budgets = "budget"
        reasons.append(f"the {budgets} of {_together(found['spent'])} ended")
    stay = "stay"
    if found["open"] + found["open_models"] == 1:
        stay = "stays"
    because = " and ".join(reasons)
    return f"decided as far as possible: {_what_is_open(found)} {stay} open because {because}"


def _what_is_open(found: Evidence) -> str:
    """Return how many pairs, and models that are asked about alone, have no verdict."""
    counts = {"pair": found["open"], "model": found["open_models"]}
    return " and ".join(count(number, word) for word, number in counts.items() if number)


def _budget(found: Evidence) -> str:
    is_goal, ended = found.get("is_goal"), "ended before the goal was reached"
    if found["scope"] == "models":
        ends = "are spent" if is_goal else ended
        return f"the budgets of all models {ends} ({_by_model(found['models'])})"
    if list(found["used"]) == ["wall_clock"]:
        limit = _time_limit(found["used"]["wall_clock"][1])
        return f"the running time{_whose(found)} has reached its limit of {limit}"
    ends = "is spent" if is_goal else ended
    return f"the budget{_whose(found)} {ends}: {_used_of_limits(found['used'])}"


def _whose(found: Evidence) -> str:
    if found["scope"] == "scorer":
        kind, _, task = found["owner"].partition(" of ")
        return f" of the {kind} of task {task}"
    if found["scope"] == "run":
        return ""
    return f" of {found['scope']} {found['owner']}"


def _max_passes(found: Evidence) -> str:
    if "passes" in found:
        return f"every model that is needed has done {count(found['passes'], 'pass', 'passes')} (max_passes)"
    return "every model that is needed repeats its answers and has given them all: more trials say no more"


def _endpoints(found: Evidence) -> str:
    if found.get("refused"):
        return f"the very first request was refused ({_by_model(found['models'])})"
    return f"nothing can be decided with the endpoints that answer ({_by_model(found['models'])})"


def _lost(found: Evidence) -> str:
    begin = (
        f"lost answers could turn everything that is open ({_what_is_open(found)}; lost answers of "
        f"{_by_model(found['lost'])})"
    )
    discarded = found.get("discarded_trials", {})
    if not discarded:
        return f"{begin}; {_OTHERS_LOST}"
    of_draws = f"{begin}; {_given_up(discarded, found['discarded'], found.get('redrawn', ()))}"
    if discarded == found["lost"]:
        return of_draws
    return f"{of_draws}; for the others, {_OTHERS_LOST}"


_OTHERS_LOST = (
    "`adaptive-eval samples RUN --missing` says why: remove the cause, allow more attempts (retry.attempts), "
    "rescore if a scorer failed, or count answers without text as wrong (on: {empty: wrong}), in a new run "
    "also those that a filter withheld (on: {content_filter: wrong})"
)


def _given_up(
    trials: Mapping[str, int], causes: Mapping[str, Mapping[DiscardCause, int]], redrawn: Collection[str]
) -> str:
    """Return how many lost answers came after a first draw that was given up, why, and what helps.

    Draws given up for the causes `redrawn` count already.
    """
    draws: Counter[DiscardCause] = Counter()
    for model in trials:
        draws.update(causes[model])
    known = [cause for cause in DISCARD_CAUSES if draws[cause]]
    ways = ", ".join(_FEWER[cause] for cause in known)
    counted = [cause for cause in DISCARD_CAUSES if cause in known or cause in redrawn]
    total = sum(trials.values())
    those = "1 of them has"
    if total != 1:
        those = f"{total:,} of them have"
    return (
        f"{those} an answer, but an earlier draw was given up ({causes_words(draws)}; `adaptive-eval samples "
        f"RUN --discarded` shows them): in a new run, {ways}; or, if the cause does not depend on the "
        f"answer, count them by -o 'on.discarded=[{', '.join(counted)}]'"
    )


_FEWER: Mapping[DiscardCause, str] = {
    "timeout": "a longer timeout.total or a smaller max_tokens",
    "server": "a seed that the server obeys, or a server that does not fail while it answers",
    "connection": "stream: true, or a longer timeout of the proxy between",
    "killed": "no process killed while requests are in flight",
}
"""What helps against each cause for which a draw is given up."""


_STOPS: Mapping[str, Callable[[Evidence], str]] = MappingProxyType(
    {
        "resolved": _resolved,
        "partial": _partial,
        "budget": _budget,
        "max_passes": _max_passes,
        "endpoints": _endpoints,
        "unusable": unusable_words,
        "lost": _lost,
    }
)


def explained_words(pair: PairResult, results: Results, promised: Iterable[str]) -> str:
    """Return the result of a contrast with its figures and promises, a sentence a line."""
    if pair.kind == "width":
        name = f"{pair.first} to a {pair.second}"
    else:
        name = f"{pair.first} − {pair.second}"
    difference = pair.difference
    low = pair.difference_low
    high = pair.difference_high
    if difference is None or low is None or high is None:
        return f"{name}: no question has been answered by all that are compared."
    ahead, behind = (pair.second, pair.first) if pair.verdict == "worse" else (pair.first, pair.second)
    verdict = verdict_words(pair.verdict, results.equivalence, pair.kind)
    if pair.kind == "pair" and pair.verdict in ("better", "worse"):
        verdict = f"{ahead} is ahead of {behind}"
    elif pair.margin is not None:
        verdict = claim_words(pair.first, pair.second, pair.verdict, pair.margin)
    after = _read_after(pair, results)
    level = f"{percent(results.confidence)} confidence sequence"
    if pair.kind == "width":
        return "\n".join(
            [
                f"{name}: {verdict}.",
                f"Score {difference:.4f}, {level} [{low:.4f}, {high:.4f}], {after}.",
                "The interval holds at every moment of the run, for this model by itself.",
            ]
        )
    unit = "ln e-value"
    if results.rule == "zscore":
        unit = "z"
    what = "a winner"
    if pair.kind == "not-worse":
        what = "the claim"
    least = "≥ " if pair.evidence_beyond else ""
    lines = [
        f"{name}: {verdict}.",
        f"Difference {difference:+.4f}, {level} [{low:+.4f}, {high:+.4f}], {after}.",
        f"Evidence ({unit}): peak {least}{pair.evidence:.3f}; {what} needs {pair.threshold:.3f} now.",
    ]
    if pair.population_low is not None and pair.population_high is not None:
        known = exact_words(pair.population_low, pair.population_high, pair.kind)
        lines.append(f"{known.capitalize()}.")
    elif pair.kind != "not-worse" and results.equivalence is not None and results.rule != "zscore":
        margin = trimmed(results.equivalence)
        lines.append(f"A tie is called once the difference is known to be below {margin}.")
    return "\n".join([*lines, *promised])


def _read_after(pair: PairResult, results: Results) -> str:
    references = [line.model for line in results.models if line.state == "reference"]
    asked = [name for name in (pair.first, pair.second) if name not in references]
    of_two = pair.kind in ("pair", "not-worse") and len(asked) == 2
    whose = "each"
    if not of_two:
        whose = f"of {asked[0]}"
    return f"after {pair.trials_each:,} trials {whose} on {count(pair.questions, 'question')}"
