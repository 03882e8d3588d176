"""Sentences about two runs."""

from adaptive_eval.core.results import PairResult, Results
from adaptive_eval.views.numbers import NOTHING, count, stamp
from adaptive_eval.views.run_changes import PairChange, PairKind, RunChanges
from adaptive_eval.views.verdicts import verdict_words

_KINDS: dict[PairKind, str] = {
    "reversed": "reversed",
    "changed": "between separated and tied",
    "settled": "newly decided",
    "reopened": "decided before and now open",
    "same": "with the same verdict",
}


def comparison_words(one: RunChanges) -> str:
    """Return the changes in one sentence."""
    sentence = "; ".join([*_pairs(one), *_scores(one)]) or "the runs have no model in common"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _pairs(one: RunChanges) -> list[str]:
    counts = one.counts()
    shared = len(one.pairs) - counts["only_before"] - counts["only_after"]
    if not shared:
        return []
    parts = [f"{counts[kind]:,} {words}" for kind, words in _KINDS.items() if counts[kind]]
    return [f"of {count(shared, 'shared pair')}: {', '.join(parts)}"]


def _scores(one: RunChanges) -> list[str]:
    compared = [model.direction for model in one.models if model.difference is not None]
    if not compared:
        because = "since the runs did not ask and score the same questions in the same way"
        if one.comparable is False:
            return [f"scores are not compared, {because}"]
        return []
    higher = compared.count("higher")
    lower = compared.count("lower")
    score = "scores" if higher == 1 else "score"
    return [
        f"of {count(len(compared), 'shared model')} {higher:,} {score} higher than before, {lower:,} lower, "
        f"{compared.count('unknown'):,} cannot be told apart from before"
    ]


def runs_words(one: RunChanges) -> list[str]:
    """Return which run is which."""
    return [
        f"{word}: {run.name}, started {stamp(run.started)}. {run.headline}"
        for word, run in (("Before", one.before), ("Now", one.after))
    ]


def comparison_warnings(one: RunChanges) -> list[str]:
    """Return what a reader of the comparison must know."""
    found = []
    if one.comparable is None:
        found.append(
            "a run file does not say what was asked; the differences mean something only if both runs asked "
            "and scored the same questions in the same way"
        )
    for word, run in (("before", one.before), ("now", one.after)):
        if run.results.stop is None:
            found.append(f"the run {word} ({run.name}) is not finished")
        found += [f"{run.name}: {text}" for text in run.warnings]
    return found


def comparison_notes(one: RunChanges, level: str) -> list[str]:
    """Return how to read the comparison."""
    reversed_pairs = (
        "A reversed pair says that at least one of the two verdicts is wrong, or that something has changed "
        "between the runs. Each run's error rate is its own."
    )
    if "zscore" in (one.before.results.rule, one.after.results.rule):
        reversed_pairs = (
            "A run under the rule zscore promises no error rate, so its verdicts change by chance alone."
        )
    notes = [
        "Differences are the score now minus the score before. The interval goes from the lower end now "
        "minus the upper end before to the opposite: it misses only if one of the two anytime intervals "
        f"misses, so it holds with at least {level}, to the approximation with which those hold, each model "
        "by itself, whenever the runs stopped and whatever they share.",
        "That is a cautious interval. To decide whether two versions of a model differ, put both into one "
        "run: there they are compared at equal progress, on the same questions.",
        "A pair that is open in one run and decided in the other is no contradiction: one run had more "
        "evidence. Nor need separated and tied contradict each other: a difference can be real and smaller "
        "than the margin.",
        reversed_pairs,
    ]
    if one.comparable is False:
        notes.append(
            "Scores on different questions, prompts or scorers are not comparable, so no difference is given."
        )
    return notes


def called_words(one: PairChange, pair: PairResult | None, results: Results) -> str:
    """Return the verdict of a pair in one of the runs."""
    if pair is None:
        return NOTHING
    if pair.verdict in ("better", "worse"):
        if pair.verdict == "better":
            winner = one.first
        else:
            winner = one.second
        return f"{winner} ahead"
    return verdict_words(pair.verdict, results.equivalence, pair.kind)
