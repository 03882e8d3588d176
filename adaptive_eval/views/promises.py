"""The guarantees of a report's figures, and their limits, for the rule and settings of the run."""

from __future__ import annotations

from dataclasses import dataclass

from adaptive_eval.core.results import Results
from adaptive_eval.views.numbers import trimmed
from adaptive_eval.views.ranks import rank_column


@dataclass(frozen=True, slots=True)
class Promises:
    """Sentences on what holds and on what does not."""

    holds: tuple[str, ...]  # what the run's rule promises
    limits: tuple[str, ...]  # what it does not, and what is only for reference


def promises(results: Results, target: str | None = None) -> Promises:
    """Return the promises that belong to a run's rule, family, margin and confidence.

    Examples
    --------
    >>> run = Results("rank all models", "zscore", 0.95, "pair", None, 30, (), (), (), 0, None)
    >>> promises(run).holds
    ()
    """
    if results.rule == "zscore":
        return Promises((), (*_ZSCORE, *_reference(results, target)))
    holds = [_rule(results)]
    in_family = results.rule_plugin is None or results.rule_plugin.in_family
    if in_family and sum(pair.kind != "width" for pair in results.pairs) > 1:
        holds.append(_FAMILIES.get(results.family, f"Family `{results.family}` shares the error rate."))
    if in_family and results.pairs and rank_column(results).ranked and results.family == "holm":
        holds.append(
            "The rank intervals cover the true ranks of all models together at the same confidence: a rank "
            "is ruled out only where a pair was separated."
        )
    holds.append(
        "Intervals of scores and of differences hold at every moment of the run, each by itself; they are "
        f"{_confidence(results)} confidence sequences, wider than intervals for one look."
    )
    kinds = {pair.kind for pair in results.pairs}
    if {"pair", "threshold"} <= kinds:
        holds.append(
            "Pairs of models and models held against a number are one family: whichever was resolved first, "
            "the error rate is that of all of them together."
        )
    if "width" in kinds:
        holds.append(
            "A measured score claims nothing but its interval, which holds for each model by itself."
        )
    if results.equivalence is not None and kinds != {"width"}:
        margin = trimmed(results.equivalence)
        holds.append(
            f"A tie says that the true difference is smaller than {margin}, not that it is zero. "
            f"{_TIES.get(results.ties, _TIES['pair']).format(error=_error(results))}"
        )
    if any(pair.exact for pair in results.pairs):
        holds.append(
            "Models that repeat their answers are asked each question once: differences between them are "
            "exact on these questions as long as they repeat them, and an interval on questions like these."
        )
    return Promises(tuple(holds), (*_limits(results), *_reference(results, target)))


def _confidence(results: Results) -> str:
    return f"{trimmed(results.confidence * 100)} %"


def _error(results: Results) -> str:
    return f"{trimmed((1 - results.confidence) * 100)} %"


def _rule(results: Results) -> str:
    confidence, error = _confidence(results), _error(results)
    words = {
        "anytime": (
            "two models that are truly equal are called separated with probability at most "
            f"{error}, although the run was looked at after every trial and could stop at any time."
        ),
        "exact": (
            f"separated pairs carry a finite-sample guarantee at an error rate of at most {error}, without "
            "any approximation."
        ),
    }.get(results.rule)
    if words is None:
        package, says = "an installed package", "see its documentation."
        if results.rule_plugin is not None:
            package, says = results.rule_plugin.package, results.rule_plugin.promise.rstrip(".") + "."
        return f"Rule `{results.rule}` of {package} at {confidence} says of itself: {says}"
    return f"Rule `{results.rule}` at {confidence}: {words}"


_FAMILIES = {
    "holm": (
        "All pairs together (Holm over e-values): the probability that any pair at all is called separated "
        "wrongly is at most the error rate."
    ),
    "ebh": (
        "All pairs together (e-BH): of the pairs called separated, the expected share of wrong ones is at "
        "most the error rate. A single wrong call is likelier than under Holm."
    ),
    "pair": (
        "Each pair by itself: the error rate belongs to one pair. With many equal models some pair is "
        "called wrongly far more often (18–62 % in simulations)."
    ),
    "top-set": (
        "The top set alone: the probability that separated pairs put a wrong model into the set is at most "
        "the error rate. This is valid for the set, not for each printed pair, nor for ranks: pairs within "
        "the set or outside it share no error rate."
    ),
}

_TIES = {
    "pair": (
        "This holds for each pair by itself: two models that far apart, or farther, are called tied with "
        "probability at most {error}. Among many models some tie may be wrong more often (of nine models "
        "spaced by the margin, in about 30 % of runs); `ties: family` holds it for all together."
    ),
    "family": (
        "All ties together share the error rate as separated pairs do: the probability that any two models "
        "that far apart, or farther, are called tied is at most {error} under Holm."
    ),
}

_ZSCORE = (
    "Rule `zscore` is a fixed threshold meant for one look at a number of trials fixed in advance. Looked at "
    "after every pass, as here, it promises no error rate: two identical models are called separated in "
    "45–57 % of runs within 200 passes, and on a board of 11 models at least one pair is wrong in 49–71 % of "
    "runs.",
    "Rank intervals follow from those calls and promise no more than they do.",
)


def _limits(results: Results) -> tuple[str, ...]:
    if results.rule_plugin is not None:
        proof = (
            f"Rule `{results.rule}` is a plug-in. Nothing here has proved or checked its error rate, which "
            "every other promise about verdicts rests on; `adaptive-eval plan` measures it. The "
            "intervals are those of `anytime` and hold whatever the rule."
        )
        if not results.rule_plugin.in_family:
            proof += " It decides every pair by its own threshold: the family does not apply."
    elif results.rule == "exact":
        proof = "Ties follow the `anytime` rule, whose error rate is asymptotic and checked by simulation."
    else:
        proof = (
            "Within the first pass of right-or-wrong questions the error rate is a theorem for independent "
            "trials; beyond it is asymptotic and checked by simulation (equal models were called different "
            "in 0.6–3.1 % of runs on average over settings, in about 5 % in the worst, at a nominal 5 %)."
        )
    unresolved = "A pair that is not resolved is neither a difference nor a tie: it needs more trials."
    return (proof, unresolved)


def _reference(results: Results, target: str | None) -> tuple[str, ...]:
    return (
        "Bayes@N μ ± σ is what the field reports and is given for reference. It decided nothing here: with "
        "unequal numbers of trials its prior pulls models by different amounts, and its σ does not allow for "
        "peeking.",
        _target(results, target),
        "Trials without an answer are never scored; they are left out for both models of a pair and counted "
        "below. Answers that came after the stop are in the estimates and in no verdict.",
        "Repeated answers are taken as independent. Copies are found where answers are long, share a "
        "response id or never vary; short copies from a cache that misses some requests are not.",
        "Answers cut off at the token limit are scored as they are, so the verdicts are about the models "
        "with this limit.",
    )


def _target(results: Results, target: str | None) -> str:
    questions = f"these {results.questions:,} questions"
    if target == "population":
        return (
            f"The verdicts are about the questions from which {questions} were drawn (`target: population`), "
            "as if they were a random sample of them, with this prompt, sampling and scorer."
        )
    words = f"The verdicts are about {questions}, this prompt, sampling and scorer"
    return f"{words}." if target else f"{words}, unless the config sets `target: population`."
