"""Sentences about results of one look: the rule ``fixed``, whose number of answers was fixed beforehand."""

from adaptive_eval.core.results import FIXED, PairResult, Results
from adaptive_eval.views.numbers import count, fixed, listing, trimmed


def is_one_look(results: Results) -> bool:
    """Return whether the verdicts are those of one look."""
    return results.rule == FIXED


def interval_name(results: Results) -> str:
    """Return the name of the interval of a score.

    Examples
    --------
    >>> run = Results("rank all models", "fixed", 0.95, "holm", None, 30, (), (), (), 0, None)
    >>> interval_name(run), difference_interval_name(run)
    ('interval of one look', 'interval of one look')
    """
    if is_one_look(results):
        return "interval of one look"
    return "anytime interval"


def difference_interval_name(results: Results) -> str:
    """Return the name of the interval of a difference."""
    if is_one_look(results):
        return "interval of one look"
    return "confidence sequence"


def p_value_words(pair: PairResult) -> str:
    """Return the p-value with its test, if there is one."""
    if pair.p_value is None:
        return ""
    return f"p = {pair.p_value:.2g} ({pair.test})"


def one_look_promises(results: Results) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what verdicts of one look promise, and what they do not."""
    error = f"{trimmed((1.0 - results.confidence) * 100)} %"
    together = "any two models that are truly equal are called separated"
    if results.family == "pair" or len(results.pairs) < 2:
        together = "two models that are truly equal are called separated"
    holds = [
        f"Rule `fixed` at {trimmed(100 * results.confidence)} %: {together} with probability at most "
        f"{error}, if the number of answers was fixed before anybody looked at the results.",
        "Intervals are of one look, each by itself.",
    ]
    if results.equivalence is not None:
        margin = trimmed(results.equivalence)
        holds.append(f"A tie says that the whole interval of the difference lies within ±{margin}.")
    limits = [
        "If somebody looked and then chose the number of answers, or stopped when the result pleased, "
        "nothing is promised here: `analyze --sequential` has the verdict that holds at any look.",
        "Nobody can continue this run: further answers would be a second look.",
    ]
    if results.target == "population":
        limits.append(
            "The verdicts are about questions like these, as if the questions, or the groups of them, were a "
            "random sample."
        )
    else:
        limits.append(f"The verdicts are about these {count(results.questions, 'question')}.")
    limits.append("A trial without an answer may be worth anything: no verdict is given that it could turn.")
    return tuple(holds), tuple(limits)


def one_look_methods(results: Results) -> str:
    """Return the sentence for the section on methods of a paper."""
    tests = list(dict.fromkeys(pair.test for pair in results.pairs if pair.test))
    trials = [line.trials for line in results.models]
    if min(trials) == max(trials):
        each = f"{min(trials):,}"
    else:
        each = f"{min(trials):,} to {max(trials):,}"
    by = ""
    if tests:
        by = f"; {listing(tests)} at α = {trimmed(1.0 - results.confidence)}"
    holm = ""
    if results.family != "pair" and len(results.pairs) > 1:
        holm = ", Holm over all pairs"
    return (
        f"{count(len(results.models), 'model')} answered {count(results.questions, 'question')} (goal: "
        f"{results.goal}{by}{holm}). The number of answers is taken as fixed before anybody looked: N = "
        f"{sum(trials):,} scored trials in all, {each} for each model. Intervals are of one look."
    )


def one_look_note(results: Results) -> str:
    """Say how to read the differences."""
    shown = [f"{pair.first} − {pair.second}: {p_value_words(pair)}" for pair in results.pairs if pair.test]
    more = ""
    if len(shown) > 10:
        more = f"; {len(shown) - 10:,} more are in report.json"
    least = fixed(1.0 - results.confidence, 2)
    return (
        "Differences are first minus second, over all answers. Evidence is -ln p against the value that "
        f"calls a winner, by Holm's procedure at {least}. {'; '.join(shown[:10])}{more}."
    )
