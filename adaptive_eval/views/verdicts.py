"""Results in words: the rule, a pair's verdict and the verdict of the whole run."""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb, hypot, inf, log, sqrt
from typing import Any, Literal

from adaptive_eval.core.results import ContrastKind, ModelResult, PairResult, Results, Verdict
from adaptive_eval.core.spec import SessionSpec
from adaptive_eval.views.inert import cut, inert
from adaptive_eval.views.numbers import NOTHING, count, fixed, listing, rank_interval, signed, trimmed

_PAIR = {"better": "better", "worse": "worse", "tie": "tied", "open": "open"}
_THRESHOLD = {"better": "above", "worse": "below", "tie": "tied", "open": "open"}
_WIDTH = {"tie": "measured", "open": "open"}
_CLAIM = {"better": "not worse", "worse": "worse", "open": "open"}
_OF_ONE_MODEL = {"width": _WIDTH, "threshold": _THRESHOLD, "not-worse": _CLAIM}


@dataclass(frozen=True)
class RankColumn:
    """The column of ranks, or of verdicts in its place; the macro ``run.ranks_note`` says how to read it."""

    head: str
    of: Mapping[str, str]  # by model
    kind: Literal["rank"] | ContrastKind = "rank"
    against: str = ""  # the baseline, the number or the width of the verdicts

    @property
    def ranked(self) -> bool:
        """Whether it has ranks."""
        return self.kind == "rank"


def rank_column(results: Results) -> RankColumn:
    """Return rank intervals; with the goals that compare models with one thing only the verdicts.

    These goals do not compare the models with each other, so most ranks would stay open for ever.

    Examples
    --------
    >>> run = Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> rank_column(run).head
    'rank'
    """
    models = [line.model for line in results.models]
    held = {(pair.kind, pair.second) for pair in results.pairs}
    found = dict.fromkeys(models, NOTHING)
    if len(held) == 1 and is_single(results):
        ((kind, against),) = held
        found |= {pair.first: _OF_ONE_MODEL[kind][pair.verdict] for pair in results.pairs}
        if kind == "not-worse":
            found[against] = "baseline"
        return RankColumn("verdict", found, kind, against)
    baseline = _baseline(results, models)
    if baseline is None:
        ranks = {line.model: rank_interval(line.rank_low, line.rank_high) for line in results.models}
        return RankColumn("rank", ranks)
    for pair in results.pairs:
        seen = pair
        if pair.first == baseline:
            seen = flipped(pair)
        found[seen.first] = _PAIR[seen.verdict]
    found[baseline] = "compared" if _is_new(results, baseline) else "baseline"
    return RankColumn("verdict", found, "pair", baseline)


def _baseline(results: Results, models: list[str]) -> str | None:
    """Return the model that all others are compared with, and only it; None with fewer than three models."""
    pairs = results.pairs
    if len(models) < 3 or len(pairs) != len(models) - 1 or any(pair.kind != "pair" for pair in pairs):
        return None
    return in_all(pairs)


def in_all(pairs: Sequence[PairResult]) -> str | None:
    """Return the only model that is in every pair, if there is one."""
    common = set.intersection(*({pair.first, pair.second} for pair in pairs))
    if len(common) == 1:
        return common.pop()
    return None


def _is_new(results: Results, model: str) -> bool:
    """Return whether a model is new: it is asked, and the others are results of earlier runs."""
    earlier = {line.model for line in results.models if line.state == "reference"}
    return bool(earlier) and model not in earlier


VOUCHED = "the verdict rests on deterministic: true"
"""What every view says of a difference that is exact."""


def gap_after_two_passes(spec: SessionSpec) -> float:
    """Return the difference that is called after two passes without a flip, in score units.

    After n passes each noise is limited to V = d/(2Mn), d = 2 ln(2/level)/(Mn), so √(2V) ∝ 1/(Mn). A winner
    needs about z² = 2 ln(P/α) + 5 (E at τ = 0.05 and 0.2, section 5 of the statistics).
    """
    pairs = comb(len(spec.names), 2)
    alpha = 1.0 - spec.stopping.confidence
    needed = sqrt((2.0 * log(max(pairs, 1) / alpha) + 5.0) * 2.0 * log(2.0 / spec.flip_level))
    parts = zip(spec.task_weights, spec.tasks, strict=True)
    return spec.scale[1] * needed / 2.0 * hypot(*(weight / len(task.questions) for weight, task in parts))


def exact_words(low: float, high: float, kind: ContrastKind = "pair") -> str:
    """Explain a known difference or score for these questions, and for questions like these.

    Examples
    --------
    >>> exact_words(-0.081, 0.141)
    'exact on these questions (the verdict rests on deterministic: true); on questions like these it \
lies between -0.081 and +0.141'
    """
    shown = signed
    if kind == "width":
        shown = fixed
    like = f"on questions like these it lies between {shown(low)} and {shown(high)}"
    return f"exact on these questions ({VOUCHED}); {like}"


def target_words(results: Results) -> str:
    """Return what the verdicts are about.

    Examples
    --------
    >>> target_words(Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None))
    'on these questions'
    """
    if results.target == "population":
        return "on questions like these"
    return "on these questions"


_FAMILIES = {
    "holm": "Holm over all pairs",
    "pair": "each pair by itself",
    "top-set": "all pairs across the cut together",
}
_FLIPPED: dict[Verdict, Verdict] = {"better": "worse", "worse": "better", "tie": "tie", "open": "open"}


def family_words(family: str) -> str:
    """Return in words how the error rate is shared among the pairs.

    Examples
    --------
    >>> family_words("holm")
    'Holm over all pairs'
    """
    return _FAMILIES.get(family, family)


def questions_words(in_rounds: Sequence[str] | None, tasks: int) -> str | None:
    """Return how questions are chosen, if it is known which of how many tasks are asked in rounds.

    Examples
    --------
    >>> questions_words(["aime"], 1), questions_words([], 1)
    ('rounds for each model', 'one question order for all models')
    >>> questions_words(["aime"], 2)
    'rounds for each model in aime, one question order for all models elsewhere'
    """
    if in_rounds is None:
        return None
    if not in_rounds:
        return "one question order for all models"
    if len(in_rounds) >= tasks:
        return "rounds for each model"
    return f"rounds for each model in {', '.join(in_rounds)}, one question order for all models elsewhere"


def tie_words(equivalence: float | None) -> str:
    """Return how a tie is called.

    Examples
    --------
    >>> tie_words(0.05), tie_words(None)
    ('tied within ±0.05', 'tied')
    """
    if equivalence is None:
        return "tied"
    return f"tied within ±{trimmed(equivalence)}"


def verdict_words(
    verdict: str, equivalence: float | None = None, kind: ContrastKind = "pair", *, needed: bool = True
) -> str:
    """Return a contrast's verdict in words; `needed` tells whether the goal needs it.

    Examples
    --------
    >>> verdict_words("better"), verdict_words("tie", 0.05), verdict_words("open")
    ('separated', 'tied within ±0.05', 'not resolved')
    >>> verdict_words("worse", kind="threshold"), verdict_words("tie", 0.05, "width")
    ('below', 'measured')
    >>> verdict_words("open", needed=False)
    'not needed'
    """
    if kind == "width" and verdict != "open":
        return "measured"
    if kind == "not-worse" and verdict in _CLAIM and verdict != "open":
        return _CLAIM[verdict]
    if kind == "threshold" and verdict in ("better", "worse"):
        if verdict == "better":
            return "above"
        return "below"
    if verdict == "tie":
        return tie_words(equivalence)
    if verdict == "open":
        return "not resolved" if needed else "not needed"
    return "separated"


def flipped(pair: PairResult) -> PairResult:
    """Return `pair` seen from its second model."""
    return replace(
        pair,
        first=pair.second,
        second=pair.first,
        verdict=_FLIPPED[pair.verdict],
        difference=_negated(pair.difference),
        difference_low=_negated(pair.difference_high),
        difference_high=_negated(pair.difference_low),
        population_low=_negated(pair.population_high),
        population_high=_negated(pair.population_low),
    )


def _negated(value: float | None) -> float | None:
    if value is None:
        return None
    return -value


def oriented(pair: PairResult) -> PairResult:
    """Return a decided pair seen from its better model, any other in its own direction, which stays."""
    if pair.kind == "pair" and pair.verdict == "worse":
        return flipped(pair)
    return pair


FEW = 10
"""Counted trials below which a model comes last on every leaderboard, marked."""


def has_few(line: ModelResult) -> bool:
    """Return whether a model has too few answers to be placed among the others."""
    return line.trials < FEW


def model_order(results: Results) -> tuple[ModelResult, ...]:
    """Return the models by what the verdicts say, then by score; those with few answers last."""

    def place(line: ModelResult) -> tuple[bool, int, int, int, float]:
        if line.score is None:
            score = -inf
        else:
            score = line.score
        return has_few(line), line.rank_low, line.rank_high, line.rank, -score

    return tuple(sorted(results.models, key=place))


def open_pairs(results: Results) -> list[PairResult]:
    """Return the pairs that the goal needs and that have no verdict."""
    return [pair for pair in results.pairs if pair.verdict == "open" and pair.needed]


def exact_pairs(results: Results) -> list[PairResult]:
    """Return the pairs whose difference on these questions is known."""
    return [pair for pair in results.pairs if pair.exact]


def decided_trials(results: Results) -> int:
    """Return the trials on which the verdicts rest: without those answered after the stop."""
    return results.trials - sum(line.after_stop for line in results.models)


def pair_order(results: Results) -> tuple[PairResult, ...]:
    """Return all pairs seen from their better model, in leaderboard order."""
    place = {line.model: number for number, line in enumerate(model_order(results))}
    last = len(place)
    return tuple(
        sorted(
            (oriented(pair) for pair in results.pairs),
            key=lambda pair: (place.get(pair.first, last), place.get(pair.second, last)),
        )
    )


def established(results: Results) -> Set[tuple[str, str]]:
    """Return (better, worse) for every order of two models that the verdicts settle.

    An order follows from a separated pair, or from a chain of them: where A is ahead of B and B ahead of C,
    A is ahead of C whether or not that pair was decided by itself. Ties do not chain.
    """
    models = [line.model for line in results.models]
    place = {model: number for number, model in enumerate(models)}
    below = [0] * len(models)  # as bits: boards have hundreds of models
    for pair in results.pairs:
        if pair.kind == "not-worse" and pair.verdict == "better":
            continue  # it may be better, equal, or a little worse
        if pair.verdict in ("better", "worse") and pair.first in place and pair.second in place:
            order = 1
            if pair.verdict != "better":
                order = -1
            winner, loser = (pair.first, pair.second)[::order]
            below[place[winner]] |= 1 << place[loser]
    for middle in range(len(models)):
        bit = 1 << middle
        losers = below[middle]
        for row, mask in enumerate(below):
            if mask & bit:
                below[row] = mask | losers
    return {
        (models[winner], models[loser])
        for winner, mask in enumerate(below)
        for loser in range(len(models))
        if mask >> loser & 1
    }


def is_single(results: Results) -> bool:
    """Whether the goal asks about each model by itself, and compares no pair of models."""
    return bool(results.pairs) and all(pair.kind != "pair" for pair in results.pairs)


def is_width(results: Results) -> bool:
    """Whether the goal measures each model to a given width, and nothing else; a tie then means: measured."""
    return bool(results.pairs) and all(pair.kind == "width" for pair in results.pairs)


def of_kind(results: Results, *kinds: ContrastKind) -> Results:
    """Return the results with only some kinds of contrasts."""
    return replace(results, pairs=tuple(pair for pair in results.pairs if pair.kind in kinds))


def pair_name(pair: PairResult, names: Mapping[str, str] | None = None) -> str:
    """Return the contrast: ``A − B``, or a model and the width to which it is measured."""
    names = names or {}
    first, second = names.get(pair.first, pair.first), names.get(pair.second, pair.second)
    if pair.kind == "width":
        return f"{first}, {second}"
    return f"{first} − {second}"


def left_open(results: Results) -> frozenset[str]:
    """Return the models that are dropped because the other model of a needed pair has stopped.

    Nothing more can be decided about them, and yet they are not resolved.
    """
    if results.stop is not None and results.stop.reason == "resolved":
        return frozenset()
    stopped = {line.model for line in results.models if line.state == "stopped"}
    retired = {line.model for line in results.models if line.state == "retired"}
    pairs = [(pair.first, pair.second) for pair in open_pairs(results)]
    return frozenset(one for pair in pairs if stopped & set(pair) for one in pair if one in retired)


def state_word(line: ModelResult, results: Results, *, running: bool) -> str:
    """Return a model's state as a view shows it: ``resolved`` once no open pair needs it.

    A model that is asked nothing more, because the other model of an open pair has stopped, is unresolved.
    One that waits for answers of other models says for whose; one compared with none is done at the end.
    """
    if line.state in ("stopped", "reference"):
        return line.state
    if line.state == "retired":
        if line.model in left_open(results):
            return "unresolved"
        return "resolved"
    if running and line.waits_for:
        return f"waits for {_some(line.waits_for)}"
    if running:
        return "active"
    if results.pairs:
        return "unresolved"
    return "done"


def waiting_words(results: Results) -> list[str]:
    """Return which models wait for answers of which others, such as ``a (+2) waits for b``."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for line in results.models:
        if line.waits_for:
            groups.setdefault(line.waits_for, []).append(line.model)
    return [f"{_some(models)} waits for {_some(others)}" for others, models in groups.items()]


def _some(names: Sequence[str]) -> str:
    more = ""
    if len(names) > 1:
        more = f" (+{len(names) - 1})"
    return cut(inert(names[0]), 18) + more


def tied_groups(results: Results) -> tuple[tuple[str, ...], ...]:
    """Return the groups of models declared tied, in leaderboard order.

    A group has more than two models only when every pair in it is tied: a tie does not chain (A tied with
    B and B with C leaves A and C unresolved). Groups are built greedily from the top of the leaderboard,
    and together they cover every tied pair.
    """
    order = [line.model for line in model_order(results)]
    tied: defaultdict[str, set[str]] = defaultdict(set)
    for pair in results.pairs:
        if pair.verdict == "tie":
            tied[pair.first].add(pair.second)
            tied[pair.second].add(pair.first)
    groups: list[tuple[str, ...]] = []
    covered: set[tuple[str, str]] = set()
    for first, second in combinations(order, 2):
        if second in tied[first] and (first, second) not in covered:
            group = [first, second]
            for other in order[order.index(second) + 1 :]:
                if tied[other].issuperset(group):
                    group.append(other)
            covered.update(combinations(group, 2))
            groups.append(tuple(group))
    return tuple(groups)


def saving(results: Results) -> tuple[int, int] | None:
    """Return the trials issued, and those that uniform allocation would have used.

    Uniform allocation reads the same pairs at the same trials, and continues with all models until the last
    pair is resolved. The comparison holds only for a run that resolved its goal with all its models; None
    otherwise. References are asked nothing either way. Answers that came after the stop are in both figures:
    every model of uniform allocation has as many of them as the one with the most trials.
    """
    asked = [line for line in results.models if line.state != "reference"]
    if results.stop is None or results.stop.reason != "resolved" or len(asked) < 2:
        return None
    if any(line.state == "stopped" for line in asked):
        return None
    issued = sum(line.issued for line in asked)
    uniform = len(asked) * max(line.counted_steps for line in asked)
    if uniform > 0:
        return (issued, uniform)
    return None


def fixed_length(results: Results) -> tuple[int, int] | None:
    """Return trials a question, and in all, of a run of fixed length that finds every decided pair.

    Its tests have the same error rate, and 90 % power for the differences found. Approximate: it knows the
    noise and the differences that this run found. None if :func:`saving` has no figure either.
    """
    if saving(results) is None or results.fixed_passes is None:
        return None
    asked = sum(line.state != "reference" for line in results.models)
    return results.fixed_passes, results.fixed_passes * asked * results.questions


def saved_cost(results: Results) -> tuple[float, float, float | None] | None:
    """Return what the run spent, and what the runs of :func:`saving` and :func:`fixed_length` would have.

    In tokens or USD. None unless the run decides by one of them.
    """
    trials = saving(results)
    fixed = fixed_length(results)
    if trials is None or results.pass_cost is None:
        return None
    asked = sum(line.state != "reference" for line in results.models)
    spent = results.tokens if results.spend == "tokens" else results.usd or 0.0
    uniform = results.pass_cost * trials[1] / (asked * results.questions)
    return spent, uniform, None if fixed is None else results.pass_cost * fixed[0]


def resolved_words(results: Results) -> str:
    """Return the numbers of resolved contrasts, and of open ones that the goal does not need.

    Examples
    --------
    >>> resolved_words(Results("rank all models", "anytime", 0.95, "holm", None, 30, (), (), (), 0, None))
    '0 of 0 pairs resolved'
    """
    counted: dict[str, list[str]] = {"resolved": [], "measured": []}
    for noun, kind in (
        ("pair", "pair"),
        ("claim", "not-worse"),
        ("model", "threshold"),
        ("score", "width"),
    ):
        part = [pair for pair in results.pairs if pair.kind == kind]
        done = sum(pair.verdict != "open" for pair in part)
        if part:
            verb = "measured" if kind == "width" else "resolved"
            counted[verb].append(f"{done:,} of {count(len(part), noun)}")
    spare = sum(pair.verdict == "open" and not pair.needed for pair in results.pairs)
    words = [f"{' and '.join(parts)} {verb}" for verb, parts in counted.items() if parts]
    if spare:
        words.append(f"{spare:,} not needed")
    return ", ".join(words) or "0 of 0 pairs resolved"


def claim_words(model: str, than: str, verdict: str, margin: float, verb: str = "is") -> str:
    """Return what a claim has come to; `verb` agrees with the model, or with a list of several.

    Examples
    --------
    >>> claim_words("new", "old", "better", 0.02)
    'new is not worse than old by more than 0.02'
    >>> claim_words("new", "old", "open", 0.02)
    'it is open whether new is worse than old by more than 0.02'
    >>> claim_words("b and c", "a", "open", 0.02, "are")
    'it is open whether b and c are worse than a by more than 0.02'
    """
    start = {"better": f"{model} {verb} not worse", "worse": f"{model} {verb} worse"}.get(
        verdict, f"it is open whether {model} {verb} worse"
    )
    return f"{start} than {than} by more than {trimmed(margin)}"


def good_enough_words(chosen: Sequence[str], within: float) -> str:
    """Return the claim about a best model, or about the best ones, that are known within the margin only."""
    if len(chosen) == 1:
        who = chosen[0]
    else:
        who = f"any of {listing(chosen)}"
    return f"no other model is better than {who} by more than {trimmed(within)}"


_LONGEST_EXAMPLE = 80


def unusable_words(found: Mapping[str, Any]) -> str:
    """Return why a run ended whose answers cannot be used, and the way out.

    Examples
    --------
    >>> found = {"cause": "nothing_found", "owner": "sums", "affected": 60, "answers": 60, "examples": ["12"]}
    >>> print(unusable_words(found))
    60 of 60 answers to task sums hold nothing that its scorer can read, such as '12': fix its pattern or \
the prompt and rescore, or set on: {nothing_found: wrong}
    """
    if found["cause"] == "models":
        stopped = []
        for model, why in found["models"].items():
            words = "its budget ended"
            if isinstance(why, str):
                words = why
            stopped.append(f"{model}: {words}")
        return f"the answers of the models that the goal needs cannot be used ({'; '.join(stopped)})"
    share = f"{found['affected']:,} of {found['answers']:,} answers to task {found['owner']}"
    if found["cause"] == "scorer":
        return f"{share} could not be scored: {found['said']}"
    examples = [f"'{cut(inert(text), _LONGEST_EXAMPLE)}'" for text in found["examples"]]
    shown = ""
    if examples:
        shown = f", such as {', '.join(examples)}"
    return (
        f"{share} hold nothing that its scorer can read{shown}: fix its pattern or the prompt and rescore, "
        "or set on: {nothing_found: wrong}"
    )


def unranked_words(models: Sequence[str]) -> str:
    """Return that the answers of these models cannot be used.

    Examples
    --------
    >>> unranked_words(["oak", "elm"])
    'most answers of oak and elm cannot be used'
    """
    return f"most answers of {listing(models)} cannot be used"
