"""What the figures of a run promise, and what they do not, in sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from adaptive_eval.core.label_record import LABELS
from adaptive_eval.core.results import Results
from adaptive_eval.errors import SessionError
from adaptive_eval.views.decision_sentences import explained_words
from adaptive_eval.views.numbers import share_words, trimmed
from adaptive_eval.views.one_look_sentences import is_one_look, one_look_promises
from adaptive_eval.views.sentences import level_words
from adaptive_eval.views.verdicts import exact_pairs, rank_column


@dataclass(frozen=True, slots=True)
class Promises:
    """Sentences on what holds and on what does not."""

    holds: tuple[str, ...]  # what the run's rule promises
    limits: tuple[str, ...]  # what it does not, and what is only for reference


def promises(
    results: Results,
    target: str | None = None,
    together: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    judged: Mapping[str, int] = MappingProxyType({}),
    cut_off: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Promises:
    """Return the promises that belong to a run's rule, family, margin and confidence.

    Examples
    --------
    >>> run = Results("rank all models", "zscore", 0.95, "pair", None, 30, (), (), (), 0, None)
    >>> promises(run).holds
    ()
    """
    if is_one_look(results):
        return Promises(*one_look_promises(results))
    limits = [*_limits_of_rule(results), *_limits_of_scores(results, target)]
    limits += [_answers_together(task, one["k"], one["by"]) for task, one in together.items()]
    limits += _limits_of_judges(judged)
    limits.append(
        "A trial without an answer is never scored. It may be worth anything, so intervals are wider by it, "
        "and no verdict is called that it could turn. Answers that came after the stop are in the estimates "
        "and in no verdict."
    )
    limits.append(
        "Repeated answers are taken as independent. Copies are found if answers are long or share a "
        "response id; other short ones are not."
    )
    limits += _limits_of_cut_answers(cut_off)
    of_claims = bool(results.pairs) and all(pair.kind == "not-worse" for pair in results.pairs)
    if not of_claims:
        of_winners = (_rule(results), *_family(results))
    else:
        of_winners = ()
    if results.rule != "zscore":
        holds = (*of_winners, *_claims(results))
    else:
        holds = ()
    return Promises(holds, tuple(limits))


def _error(results: Results) -> str:
    return f"{trimmed((1 - results.confidence) * 100)} %"


def _in_family(results: Results) -> bool:
    return results.rule_plugin is None or results.rule_plugin.in_family


def _rule(results: Results) -> str:
    """Return what the rule promises about separated pairs."""
    at = level_words(results)
    error = _error(results)
    if results.rule == "anytime":
        return (
            f"Rule `anytime` at {at}: two models that are truly equal are called separated with probability "
            f"at most {error}, at every look and whenever the run stops."
        )
    if results.rule == "exact":
        return (
            f"Rule `exact` at {at}: separated pairs carry a finite-sample guarantee at an error rate of at "
            f"most {error}, without any approximation."
        )
    if results.rule == LABELS:
        return (
            f"Labels at {at}: two models that are truly equal by the labels are called separated with "
            f"probability at most {error}, at every look and however biased the judge is."
        )
    plugin = results.rule_plugin
    if plugin is None:
        return f"Rule `{results.rule}` of an installed package at {at} says of itself: see its documentation."
    said = " ".join(plugin.promise.split()).rstrip(".")
    return f"Rule `{results.rule}` of {plugin.package} at {at} says of itself: {said}."


def _family(results: Results) -> list[str]:
    """Return what holds for all pairs together."""
    compared = sum(pair.kind in ("pair", "threshold") for pair in results.pairs)
    found = []
    if _in_family(results) and compared > 1:
        found.append(_together(results))
    if _in_family(results) and results.pairs and rank_column(results).ranked and results.family == "holm":
        found.append(
            "The rank intervals cover the true ranks of all models together at the same confidence: a rank "
            "is ruled out only if a pair was separated."
        )
    return found


def _together(results: Results) -> str:
    if results.family == "holm":
        return (
            "All pairs together (Holm over e-values): the probability that any pair at all is called "
            "separated wrongly is at most the error rate."
        )
    if results.family == "top-set":
        best = "The best model"
        if results.top_k != 1:
            best = f"The set of the best {results.top_k}"
        return (
            f"{best}: the probability that a wrong one is named by separated pairs is at most the error "
            "rate. A pair that does not cross the cut is called wrongly more often."
        )
    return (
        "Each pair by itself: the error rate belongs to one pair. With many equal models some pair is called "
        "wrongly far more often (18–62 % in simulations)."
    )


def _claims(results: Results) -> list[str]:
    """Return what holds for intervals, ties and other claims."""
    kinds = {pair.kind for pair in results.pairs}
    error = _error(results)
    found = [
        "Intervals of scores and of differences hold at every moment of the run, each by itself; they are "
        f"{level_words(results)} confidence sequences, wider than intervals for one look."
    ]
    if {"pair", "threshold"} <= kinds:
        found.append(
            "Pairs of models, and models compared with a number, are one family: the error rate holds for "
            "all of them together, in any order."
        )
    if "not-worse" in kinds:
        found.append(_not_worse(results, error))
    if "width" in kinds:
        found.append(
            "A measured score claims nothing but its interval, which holds for each model by itself: four "
            "fifths of its error rate are for the look that ends the measurement, the rest for all others."
        )
    if results.equivalence is not None and kinds & {"pair", "threshold"}:
        found.append(_ties(results, trimmed(results.equivalence), error))
    if results.top_k and results.equivalence is not None and results.rule in ("anytime", "exact"):
        best = results.top_k if results.top_k > 1 else "model"
        found.append(
            f"The search for the best {best} also ends when no other model is better than a chosen one by "
            f"more than {trimmed(results.equivalence)}. The probability that any such claim is ever wrong is "
            f"at most {error}, in addition to the error rate of separated pairs."
        )
    if exact_pairs(results):
        found.append(
            "Exact differences rest on `deterministic: true`: such a model is asked each question once, and "
            "differences are exact on these questions as long as it repeats its answers."
        )
    return found


def _not_worse(results: Results, error: str) -> str:
    together = ", each for all claims of the run together (Holm in each direction)"
    return (
        "Claims that a model is not worse than another by more than a margin: if the true difference is "
        f"the margin, a claim holds wrongly with probability at most {error}, and fails wrongly with "
        f"probability at most {error}{together if results.family == 'holm' else ''}. If it holds, the "
        "model may be better, equal, or worse by less than the margin."
    )


def _ties(results: Results, margin: str, error: str) -> str:
    words = f"A tie says that the true difference is smaller than {margin}, not that it is zero."
    if results.ties == "family":
        return (
            f"{words} All ties together share the error rate as separated pairs do: the probability that any "
            f"two models that far apart, or farther, are called tied is at most {error} under Holm."
        )
    return (
        f"{words} This holds for each pair by itself: two models that far apart, or farther, are called tied "
        f"with probability at most {error}. Among many models some tie may be wrong more often (of nine "
        "models spaced by the margin, in about 30 % of runs); `ties: family` holds it for all together."
    )


def _limits_of_rule(results: Results) -> list[str]:
    if results.rule == "zscore":
        return [
            "Rule `zscore` is a fixed threshold meant for one look at a number of trials fixed in advance. "
            "Looked at after every pass, as here, it promises no error rate: two identical models are called "
            "separated in 45–57 % of runs within 200 passes, and on a board of 11 models at least one pair "
            "is wrong in 49–71 % of runs.",
            "Rank intervals follow from those calls and promise no more than they do.",
        ]
    unresolved = "A pair that is not resolved is neither a difference nor a tie: it needs more trials."
    if results.rule_plugin is not None:
        own = " It decides every pair by its own threshold: the family does not apply."
        return [
            f"Rule `{results.rule}` is a plug-in. Nothing here has proved or checked its error rate, which "
            "every other promise about verdicts rests on; `adaptive-eval plan` measures it. The intervals "
            f"are those of `anytime` and hold whatever the rule.{'' if _in_family(results) else own}",
            unresolved,
        ]
    if results.rule == "exact":
        ties = "Ties follow the `anytime` rule, whose error rate is asymptotic and checked by simulation."
        return [ties, unresolved]
    if results.rule == LABELS:
        labels = (
            "Scores and verdicts are those of the labels: if people err in favour of a model, so do they. "
            "Answers must have been chosen for labels at random, before anybody looked at them."
        )
        return [labels, unresolved]
    return [
        "A fifth of the evidence is bets on the answers in which two models differ, for which the error rate "
        "is a theorem at the ends of passes; that of the rest is asymptotic and checked by simulation (equal "
        "models were called different in 0.6–3.1 % of runs on average over settings, in about 5 % in the "
        "worst, at a nominal 5 %).",
        unresolved,
    ]


def _limits_of_scores(results: Results, target: str | None) -> list[str]:
    bayes = (
        "Bayes@N μ ± σ is what the field reports and is given for reference. It decided nothing here: with "
        "unequal numbers of trials its prior pulls models by different amounts, and its σ does not allow for "
        "peeking."
    )
    if results.trials and all(line.bayes_mu is None for line in results.models):
        bayes = "Scores are numbers, so there is no Bayes@N, which is of categories."
    questions = f"{results.questions:,} questions"
    about = f"The verdicts are about these {questions}, this prompt, sampling and scorer"
    if target == "population":
        about = (
            f"The verdicts are about the questions from which these {questions} were drawn (`target: "
            "population`), as if they were a random sample of them, with this prompt, sampling and scorer"
        )
    elif not target:
        about += ", unless the config sets `target: population`"
    return [bayes, f"{about}."]


def _answers_together(task: str, k: int, by: str) -> str:
    right = {
        "all": f"all of them are (pass^{k})",
        "any": f"any of them is (pass@{k})",
        "majority": f"the most frequent one is (maj@{k})",
    }
    return f"A trial of {task} is {k} answers to a question. It is right when {right[by]}."


def _limits_of_judges(judged: Mapping[str, int]) -> list[str]:
    """Return how steady the judges were."""
    found = []
    changed = judged.get("changed", 0)
    by_order = judged.get("by_order", 0)
    tied_by_order = judged.get("tied_by_order", 0)
    in_either_order = judged.get("in_either_order", 0)
    again = changed + judged.get("same", 0)
    orders = by_order + tied_by_order + in_either_order
    if again:
        found.append(
            "Of answers that it judged twice, the judge changed its verdict on "
            f"{share_words(changed, again)}; this noise is part of the scores."
        )
    if orders:
        count_as = ""
        if tied_by_order:
            count_as = "; such votes count as ties"
        elif by_order:
            count_as = "; such votes count for neither answer"
        decided = share_words(by_order + tied_by_order, orders)
        found.append(f"Of the judge's first votes, the order of the two answers decided {decided}{count_as}.")
    return found


def _limits_of_cut_answers(cut_off: Mapping[str, Sequence[str]]) -> list[str]:
    """Return how answers count that were cut off at the token limit, by the rubric's `truncated`."""
    said = {"zero": "have the lowest score", "judged": "are judged as they are"}
    several = set(said) <= set(cut_off)
    found = []
    for how, words in said.items():
        if how in cut_off:
            tasks = ""
            if several:
                tasks = f" to {', '.join(cut_off[how])}"
            found.append(
                f"Answers cut off at the token limit{tasks} {words} (`truncated: {how}`), so the verdicts "
                "are about the models with this limit."
            )
    return found


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
        asked = first
        if second is not None:
            asked = f"{first} and {second}"
        raise SessionError(f"the goal ({results.goal}) does not ask about {asked}")
    promised = promises(results).holds[:2]
    return "\n\n".join(explained_words(pair, results, promised) for pair in found)
