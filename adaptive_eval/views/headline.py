"""The verdict of a whole run in one sentence."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter

from adaptive_eval.core.results import FIXED, ModelResult, Results
from adaptive_eval.views.numbers import count, decimals_for, fixed, interval, listing, trimmed
from adaptive_eval.views.verdicts import (
    claim_words,
    decided_trials,
    established,
    flipped,
    good_enough_words,
    in_all,
    is_single,
    is_width,
    model_order,
    of_kind,
    open_pairs,
    oriented,
    resolved_words,
    target_words,
    tie_words,
    tied_groups,
)

_MOST_IN_ORDER = 6
"""Most groups of a settled order that are named."""


def headline(results: Results, names: Mapping[str, str] | None = None) -> str:
    """Return the verdict of the run in one sentence.

    It claims only what the pairs' verdicts say: a model "is ahead of all others" when each of its pairs is
    separated, and models are "tied" only if the tie was declared.
    """
    if names is not None:
        return _renamed(headline(results), names)
    if not results.models:
        return "No model has been run."
    if results.trials == 0:
        return "No trial has been counted yet."
    if results.judge_alone is not None:
        words = headline(replace(results, judge_alone=None)).removesuffix(".")
        return f"{words}, by labels; the judge alone says: {headline(results.judge_alone)}"
    if results.rule == FIXED:
        return one_look_words(results)
    if not results.pairs:
        return f"{_best_words(results)} after {count(results.trials, 'trial')}."
    if not is_single(results):
        clauses = _clauses(of_kind(results, "pair"))
    else:
        clauses = []
    clauses += _own_clauses(results)
    if not clauses:
        clauses = [_best_words(results)]
    after = f"after {count(decided_trials(results), 'trial')} {target_words(results)}."
    if is_width(results):
        words = f"{'; '.join(clauses)} {after}"
        return words[0].upper() + words[1:]
    return "; ".join([*clauses, f"{resolved_words(results)} {after}"])


CONDITION = "if the number of answers was fixed before anybody looked"
"""What the verdicts of one look rest on."""


def one_look_words(results: Results) -> str:
    """Return the verdict of one look at all answers, its condition and its tests, in one sentence."""
    if of_kind(results, "pair").pairs:
        clauses = _clauses(of_kind(results, "pair"))
    else:
        clauses = []
    clauses += _own_clauses(results)
    words = f"{'; '.join(clauses or [_best_words(results)])} {target_words(results)}, {CONDITION}"
    if is_width(results):
        words = words[0].upper() + words[1:]
    tests = list(dict.fromkeys(pair.test for pair in results.pairs if pair.test))
    if not tests:
        return f"{words}."
    together = ""
    if results.family != "pair" and len(results.pairs) > 1:
        together = " with Holm"
    how = f"{listing(tests)}{together} at {trimmed(100 * results.confidence)} %"
    return f"{words}; {resolved_words(results)} ({how})."


def _renamed(sentence: str, names: Mapping[str, str]) -> str:
    """Put labels in the place of names, the longest first."""
    cut = sorted((name for name in names if names[name] != name), key=len, reverse=True)
    if not cut:
        return sentence
    return re.sub("|".join(map(re.escape, cut)), lambda found: names[found.group()], sentence)


def _best_words(results: Results) -> str:
    if results.stop is not None and results.stop.reason == "unusable":
        return "No model is ranked"
    ranked = [line for line in results.models if line.state != "stopped"] or list(results.models)
    place = min(line.rank for line in ranked)
    first = [line for line in ranked if line.rank == place]
    best = first[0]
    if best.score is None or (len(results.models) > 1 and _says_nothing(best, results)):
        return "No model is ahead yet"
    decimals = decimals_for([best.score, best.score_low, best.score_high])
    score = fixed(best.score, decimals)
    if best.score_low is not None and best.score_high is not None:
        score += f" {interval(best.score_low, best.score_high, decimals)}"
    if len(results.models) == 1:
        return f"{best.model} scores {score}"
    if len(first) > 1:
        names = listing([line.model for line in first])
        return f"{names} have the highest score: {fixed(best.score, decimals)}"
    return f"{best.model} has the highest score: {score}"


def _says_nothing(line: ModelResult, results: Results) -> bool:
    """Return whether the interval of a score is the whole scale."""
    least, most = results.scale or (0.0, 1.0)
    low, high = line.score_low, line.score_high
    return low is None or high is None or (low <= least and high >= most)


def _own_clauses(results: Results) -> list[str]:
    """Describe single models: on which side of a number they are, and which are measured."""
    clauses = _claim_clauses(results)
    against = of_kind(results, "threshold").pairs
    alone = is_single(results)  # else the pairs have their clauses, and what is open needs none
    for number in dict.fromkeys(pair.second for pair in against):
        held = tuple(pair for pair in against if pair.second == number)
        if alone or any(pair.verdict != "open" for pair in held):
            clauses += _baseline_clauses(replace(results, pairs=held), number)
    widths = of_kind(results, "width").pairs
    for width in dict.fromkeys(pair.second for pair in widths):
        here = [pair for pair in widths if pair.second == width]
        measured = sum(pair.verdict != "open" for pair in here)
        if measured or alone:
            clauses.append(f"{_measured(measured, len(here))} measured to a {width.replace(' ', ' of ')}")
    return clauses


def _claim_clauses(results: Results) -> list[str]:
    """Say of models whether they are worse than another by more than a margin, those that are first."""
    found: dict[tuple[str, str, float], list[str]] = {}
    for verdict in ("worse", "open", "better"):
        for pair in of_kind(results, "not-worse").pairs:
            if pair.verdict == verdict and pair.margin is not None:
                found.setdefault((verdict, pair.second, pair.margin), []).append(pair.first)
    return [
        claim_words(listing(models), than, verdict, margin, _verb(len(models)))
        for (verdict, than, margin), models in found.items()
    ]


def _measured(done: int, scores: int) -> str:
    if done in (0, scores):
        if done:
            return "every score is"
        return "no score is"
    return f"{done} of {count(scores, 'score')} {_verb(done)}"


def _verb(number: int) -> str:
    if number == 1:
        return "is"
    return "are"


def _clauses(results: Results) -> list[str]:
    if results.top_k is not None and len(results.models) > results.top_k:
        return _top_clauses(results, results.top_k)
    models = [line.model for line in model_order(results)]
    if len(results.pairs) == len(models) * (len(models) - 1) // 2:
        none = all(pair.verdict == "open" for pair in results.pairs)
        if none:
            return [_best_words(results)]
        return _ranking_clauses(results, models)
    hub = in_all(results.pairs)
    if hub is not None:
        return _baseline_clauses(results, hub)
    return _partial_clauses(results)


def _top_clauses(results: Results, k: int) -> list[str]:
    """Say which models are the best k, or which are in and between which the other places are open."""
    wins = established(results)
    models = [line.model for line in model_order(results)]
    beats = Counter(map(itemgetter(0), wins))
    beaten = Counter(map(itemgetter(1), wins))
    tie = tie_words(results.equivalence)
    inside = [model for model in models if beats[model] >= len(models) - k]
    if len(inside) == k or not open_pairs(results):  # another part of the goal may need a pair that is open
        best = sorted(models, key=lambda model: beaten[model] >= k)[:k]
        across = [
            f"{listing((pair.first, pair.second))} are {tie}"
            for pair in map(oriented, results.pairs)
            if pair.verdict == "tie" and (pair.first in best) != (pair.second in best)
        ]
        if results.stop is not None:
            claim = results.stop.evidence
        else:
            claim = {}
        if chosen := claim.get("good_enough"):
            words = good_enough_words(chosen, claim["within"])
            return [words[0].upper() + words[1:]]
        if k == 1:
            first = f"{best[0]} is the best model"
        else:
            first = f"The top {k} are {listing(best, 10)}"
        return [first, *across[:3]]
    between = [model for model in models if model not in inside and beaten[model] < k]
    if not inside and all(pair.verdict == "open" for pair in results.pairs):
        these = "The best model is"
        if k != 1:
            these = f"The top {k} are"
        return [f"{these} not settled", _best_words(results)]
    if k == 1:
        return [f"The best model is one of {listing(between, 10)}"]
    still = f"open between {listing(between, 10)}"
    if not inside:
        return [f"the top {k} are {still}"]
    settled = f"{listing(inside, 10)} {_verb(len(inside))} among the top {k}"
    left = k - len(inside)
    return [f"{settled}; {count(left, 'place')} {_verb(left)} {still}"]


def _ranking_clauses(results: Results, models: Sequence[str]) -> list[str]:
    tie = tie_words(results.equivalence)
    wins = established(results)
    beaten = {loser for _, loser in wins}
    top = tuple(model for model in models if model not in beaten)
    rest = [model for model in models if model in beaten]
    groups = tied_groups(results)
    ahead = all((a, b) in wins for a in top for b in rest)
    if len(top) == 1:
        others = "ahead of all others"
        if len(rest) == 1:
            others = f"ahead of {rest[0]}"
        rest_words = "first"
        if ahead:
            rest_words = others
        first = f"{top[0]} is {rest_words}"
    elif top in groups:
        if not rest:
            top_words = _all_words(models)
        else:
            top_words = listing(top)
        first = f"{top_words} are {tie}"
        if rest:
            if ahead:
                first += ", ahead of all others"
            else:
                first += " at the top"
        groups = tuple(group for group in groups if group != top)
    else:
        first = f"First place is not resolved between {listing(top)}"
        if rest and ahead:
            if len(rest) <= 2:
                first += f", ahead of {listing(rest)}"
            else:
                first += ", ahead of all others"
    return [first, *_order_clause(results, models, wins), *_tie_clauses(groups, tie)]


def _order_clause(results: Results, models: Sequence[str], wins: Set[tuple[str, str]]) -> list[str]:
    """Name the order that is settled if a goal (the best k) was reached with pairs left open."""
    reached = results.stop is not None and results.stop.reason == "resolved"
    if not reached or all(pair.verdict != "open" for pair in results.pairs):
        return []

    def is_cut(k: int) -> bool:
        return all((above, below) in wins for above in models[:k] for below in models[k:])

    cuts = [0, *filter(is_cut, range(1, len(models)))]
    parts = [listing(models[i:k]) for i, k in pairwise([*cuts, len(models)])]
    if len(parts) > _MOST_IN_ORDER:
        left = len(models) - cuts[_MOST_IN_ORDER]
        parts = [*parts[:_MOST_IN_ORDER], f"the other {count(left, 'model')}"]
    if len(parts) > 1:
        return [f"the settled order is {', then '.join(parts)}"]
    return []


def _all_words(models: Sequence[str]) -> str:
    if len(models) <= 2:
        return listing(models)
    return f"All {len(models)} models"


def _tie_clauses(groups: Sequence[Sequence[str]], tie: str, most: int = 3) -> list[str]:
    clauses = [f"{listing(group)} are {tie}" for group in groups[:most]]
    left = len(groups) - most
    if left > 0:
        if left == 1:
            clauses.append("1 further group is tied")
        else:
            clauses.append(f"{left} further groups are tied")
    return clauses


def _baseline_clauses(results: Results, hub: str) -> list[str]:
    outcomes: dict[str, list[str]] = {"better": [], "worse": [], "tie": [], "open": []}
    for pair in results.pairs:
        seen = pair
        if pair.second != hub:
            seen = flipped(pair)
        outcomes[seen.verdict].append(seen.first)
    if len(outcomes["open"]) == len(results.pairs) > 1:
        return [f"No model is resolved against {hub}"]
    single = results.pairs[0].kind == "threshold"
    better, worse = ("above", "below") if single else ("ahead of", "behind")
    words = {
        "better": f"{better} {hub}",
        "worse": f"{worse} {hub}",
        "tie": f"{tie_words(results.equivalence)} with {hub}",
        "open": f"not resolved against {hub}",
    }
    asked = [(models, words[verdict]) for verdict, models in outcomes.items() if models]
    return [f"{listing(models)} {_verb(len(models))} {said}" for models, said in asked]


def _partial_clauses(results: Results, most: int = 3) -> list[str]:
    """Say what each of the first named pairs came to."""
    won = [oriented(pair) for pair in results.pairs if pair.verdict in ("better", "worse")]
    clauses = [f"{pair.first} is ahead of {pair.second}" for pair in won[:most]]
    if (more := len(won) - most) > 0:
        verb = "have"
        if more == 1:
            verb = "has"
        clauses.append(f"{count(more, 'further pair')} {verb} a winner")
    clauses += _tie_clauses(tied_groups(results), tie_words(results.equivalence))
    return clauses or ["None of the named pairs is resolved"]
