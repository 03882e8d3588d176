"""Verdicts, figures and untrusted text in words: what monitor and report share."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
import standings_examples as examples
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.core.results import PairResult, Results, StopVerdict
from adaptive_eval.views.headline import headline
from adaptive_eval.views.inert import inert
from adaptive_eval.views.numbers import decimals_for, duration, fixed, interval, listing, percent, signed, usd
from adaptive_eval.views.promises import promises
from adaptive_eval.views.run_sentences import saved_words
from adaptive_eval.views.sentences import difference_words, evidence_words, span_words
from adaptive_eval.views.verdicts import (
    decided_trials,
    established,
    fixed_length,
    flipped,
    model_order,
    oriented,
    saving,
    tied_groups,
)


def with_verdicts(results: Results, **verdicts: str) -> Results:
    """Return `results` with other verdicts for pairs named like ``oak_elm``, and `rest` for the others."""
    pairs = []
    for pair in results.pairs:
        key = f"{pair.first}_{pair.second}"
        pairs.append(replace(pair, verdict=verdicts.get(key, verdicts.get("rest", pair.verdict))))
    return replace(results, pairs=tuple(pairs))


def undecided(results: Results) -> Results:
    return replace(results, pairs=tuple(replace(pair, verdict="open") for pair in results.pairs))


def between(results: Results, *names: tuple[str, str]) -> Results:
    """Return `results` with these pairs alone."""
    return replace(results, pairs=tuple(pair for pair in results.pairs if (pair.first, pair.second) in names))


def all_needed(results):
    """Return results of a goal that needs every pair, as one of several parts may."""
    return replace(results, pairs=tuple(replace(pair, needed=True) for pair in results.pairs))


def best(results: Results, k: int) -> Results:
    """Return results whose goal is the best k, with no other pair needed."""
    top = {line.model for line in sorted(results.models, key=lambda line: line.rank)[:k]}
    pairs = (replace(pair, needed=(pair.first in top) != (pair.second in top)) for pair in results.pairs)
    return replace(results, pairs=tuple(pairs), top_k=k)


def ranked(results: Results, **ranks: int) -> Results:
    """Give models other ranks, any of which the verdicts leave each of them."""
    ends = {"rank_low": min(ranks.values()), "rank_high": max(ranks.values())}
    changed = {name: {"rank": rank, **ends} for name, rank in ranks.items()}
    models = (replace(line, **changed.get(line.model, {})) for line in results.models)
    return replace(results, models=tuple(models))


FINISHED = examples.finished()
WITH_OAK = between(FINISHED, *(("oak", other) for other in ("elm", "ash", "fir", "yew")))
WITH_ELM = between(FINISHED, ("oak", "elm"), ("elm", "ash"), ("elm", "fir"), ("elm", "yew"))
NAMED = between(FINISHED, ("oak", "elm"), ("ash", "fir"))
# oak is the only model that nobody is ahead of, but nothing orders oak and yew
UNORDERED = with_verdicts(
    FINISHED,
    **dict.fromkeys(("oak_yew", "elm_fir", "elm_yew", "ash_fir", "ash_yew"), "open"),
    fir_yew="worse",
)
BEST_TWO = with_verdicts(FINISHED, elm_ash="better", ash_fir="open", ash_yew="open", fir_yew="open")
TIED_TOP = with_verdicts(FINISHED, oak_elm="tie", oak_ash="tie")
HEADLINES = {
    "finished": FINISHED,
    "under way": examples.midrun(),
    "one model": examples.one_model(),
    "no trials": examples.no_trials(),
    "nothing known": examples.all_none(),
    "all tied": with_verdicts(FINISHED, rest="tie"),
    "a tie at the top": with_verdicts(FINISHED, oak_elm="tie", elm_ash="better"),
    "one group, in the order of its scores": ranked(TIED_TOP, oak=3, elm=1, ash=2),
    "tied models in the order of their scores": ranked(FINISHED, elm=3, ash=2),
    "a leader that is not separated from all": UNORDERED,
    "a leader by a chain": with_verdicts(UNORDERED, fir_yew="better"),
    "the best two are settled": replace(BEST_TWO, goal="find the best 2"),
    "two models": examples.example({"oak": 0.9, "elm": 0.5}, 200),
    "two tied models": examples.example({"oak": 0.701, "elm": 0.7}, 5_000),
    "a baseline": replace(WITH_ELM, goal="baseline"),
    "a baseline, nothing known": undecided(WITH_OAK),
    "equal scores, nothing known": undecided(ranked(FINISHED, elm=1)),
    "a number": examples.against_a_number(),
    "a number, nothing known": undecided(examples.against_a_number()),
    "widths": examples.to_a_width(),
    "widths, nothing known": undecided(examples.to_a_width()),
    "named pairs": NAMED,
    "named pairs, nothing known": undecided(NAMED),
    "several goals": examples.of_several_goals(),
    "the best": best(FINISHED, 1),
    "the top 3": best(FINISHED, 3),
    "the top 2, its last tied with the next": best(FINISHED, 2),
    "the top 2, of which one has fewer points": best(
        with_verdicts(ranked(FINISHED, ash=3), elm_ash="worse", oak_ash="tie"), 2
    ),
    "the top 2, the second tied with one that nobody beats": best(with_verdicts(FINISHED, oak_ash="tie"), 2),
    "the best, with a pair open that another goal needs": all_needed(
        best(with_verdicts(FINISHED, elm_ash="open"), 1)
    ),
    "the top 2, under way": best(examples.midrun(), 2),
    "the top 3, nothing known": undecided(replace(FINISHED, top_k=3)),
    "the top 2, of which one is settled": best(with_verdicts(FINISHED, oak_elm="open", elm_ash="open"), 2),
}
SAID = json.loads((Path(__file__).parents[1] / "data" / "headlines.json").read_text("utf-8"))


@pytest.mark.parametrize("case", HEADLINES)
def test_the_headline_says_what_is_known_and_no_more(case):
    assert headline(HEADLINES[case]) == SAID[case]


def test_a_chain_of_separations_settles_an_order_and_a_tie_settles_none():
    # oak > elm > fir is declared, oak against fir is open: the order of oak and fir follows
    assert ("oak", "fir") in established(with_verdicts(FINISHED, oak_fir="open"))
    chain = with_verdicts(FINISHED, rest="open", oak_elm="better", elm_ash="tie")
    assert set(established(chain)) == {("oak", "elm")}


@given(st.lists(st.booleans(), min_size=10, max_size=10))
def test_tied_groups_cover_exactly_the_tied_pairs(ties):
    base = examples.finished()
    pairs = tuple(
        replace(pair, verdict="tie" if tie else "open") for pair, tie in zip(base.pairs, ties, strict=True)
    )
    results = replace(base, pairs=pairs)
    declared = {frozenset((pair.first, pair.second)) for pair in pairs if pair.verdict == "tie"}
    covered = {frozenset((a, b)) for group in tied_groups(results) for a in group for b in group if a != b}
    assert covered == declared


def test_a_pair_is_shown_from_its_better_model():
    behind = PairResult("a", "b", "worse", -0.2, -0.3, -0.1, 6.0, 5.0, None, 40, 40, 40)
    seen = oriented(behind)
    assert (seen.first, seen.second, seen.verdict) == ("b", "a", "better")
    assert (seen.difference, seen.difference_low, seen.difference_high) == (0.2, 0.1, 0.3)
    assert flipped(flipped(behind)) == behind
    assert oriented(seen) == seen


@pytest.mark.parametrize(
    ("k", "equivalence", "rule", "words"),
    [
        (2, 0.02, "anytime", "best 2 also ends"), (1, 0.02, "exact", "best model also ends"),
        (2, None, "anytime", None), (2, 0.02, "zscore", None), (None, 0.02, "anytime", None),
    ],
)  # fmt: skip
def test_claims_that_models_are_good_enough_have_a_promise_of_their_own(k, equivalence, rule, words):
    results = replace(examples.finished(), top_k=k, equivalence=equivalence, rule=rule)
    found = [one for one in promises(results).holds if "also ends" in one]
    assert len(found) == (words is not None)
    assert not words or words in found[0]


def test_saving_is_told_only_where_it_is_honest():
    done = examples.finished()
    assert saving(done) == (5_650, 12_000)
    words = " ".join(saved_words(done))
    for figure in ("5,650 trials", "12,000 trials", "(2,400 per model)", "52 % fewer"):
        assert figure in words
    assert saving(examples.out_of_budget()) is None, "uniform would have ended on the budget too"
    assert saving(examples.midrun()) is None
    refused = replace(done, models=(replace(done.models[0], state="stopped"), *done.models[1:]))
    assert saving(refused) is None
    assert saving(replace(examples.one_model(), stop=StopVerdict("resolved", "done"))) is None


def test_figures_of_a_run_with_a_reference_lost_and_late_answers():
    done = replace(examples.finished(), fixed_passes=10)
    stored, most, *others = sorted(done.models, key=lambda line: line.trials)
    models = (replace(stored, state="reference"), most, *others[:-1])
    last = replace(others[-1], trials=2_290, missing=200, discarded_trials=10, after_stop=30)
    results = replace(done, models=(*models, last))
    asked = results.models[1:]
    assert saving(results) == (sum(line.issued for line in asked), len(asked) * 2_500)
    assert fixed_length(results) == (10, 10 * len(asked) * results.questions)
    assert decided_trials(results) == done.trials - sum(line.after_stop for line in results.models)


def test_a_run_dearer_than_one_of_fixed_length_says_so():
    dearer = replace(examples.finished(), fixed_passes=10)
    passes, trials = fixed_length(dearer)
    assert (passes, trials) == (10, 10 * 5 * dearer.questions)
    assert f"{trials:,} trials" in " ".join(saved_words(dearer))
    assert f"{5_650 / trials:.2g} times as many here" in " ".join(saved_words(dearer))
    even = round(5_650 / 5 / dearer.questions)
    close = replace(examples.finished(), fixed_passes=even)
    assert abs(5_650 / fixed_length(close)[1] - 1) < 0.05
    assert "fixed length" not in " ".join(saved_words(close))


HARMLESS = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf"


@given(st.text(alphabet=st.characters()))
def test_inert_leaves_nothing_that_acts_on_a_display(text):
    shown = inert(text)
    for char in shown:
        category = unicodedata.category(char)
        assert category in HARMLESS or category[0] == "S" or category == "Po" or char == " "
    assert inert(shown) == shown


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126)))
def test_inert_changes_no_plain_text(text):
    assert inert(text) == text


def test_inert_cuts_piles_of_combining_marks():
    assert inert("a" + "\u0301" * 50) == "a\u0301\u0301"


def test_figures_at_their_edges():
    assert signed(-0.0004) == "0.000"
    assert signed(float("inf")) == fixed(float("nan")) == interval(None, 0.5) == usd(None) == "–"
    assert percent(0.9999) == "99 %"
    assert duration(59.6) == "1 min 00 s"
    assert duration(3_599.7) == "1 h 00 min"
    assert duration(float("inf")) == "–"
    assert decimals_for([None, float("nan"), 99.0]) == 2
    assert (usd(0.5), usd(1_234.5)) == ("$0.5000", "$1,234.50")
    assert listing([]) == ""


def test_a_score_to_be_measured_is_no_difference_and_has_no_evidence():
    (width, number) = (
        next(pair for pair in examples.of_several_goals().pairs if pair.kind == kind)
        for kind in ("width", "threshold")
    )
    assert difference_words(replace(width, difference=0.9), 2) == "0.90"
    assert span_words(replace(width, difference_low=0.85, difference_high=0.95), 2) == "[0.85, 0.95]"
    assert evidence_words(width) == "–"
    assert difference_words(number, 2).startswith("+")
    assert evidence_words(number) == "4.00 / 5.30"


@pytest.mark.parametrize(("results", "counts"), [(examples.midrun(), (7, 3)), (examples.finished(), (10, 0))])
def test_results_printed_alone_count_what_is_decided_and_open(results, counts):
    verdicts = [pair.verdict for pair in results.pairs]
    is_open = verdicts.count("open")
    assert counts == (10 - is_open, is_open)
    for text in (str(results), results._repr_html_()):
        assert (f"{counts[0]} of 10 " in text, f"{is_open} open" in text) == (True, bool(is_open))


@pytest.mark.parametrize("worst", [0.0, None])
def test_models_are_in_the_order_of_ranks_then_scores_and_those_with_few_answers_last(worst):
    results = examples.finished()
    line = results.models[0]
    places = {
        "second": (20, 1, 2, 0.7),
        "first": (20, 1, 2, 0.8),
        "third": (20, 1, 3, 0.9),
        "fifth": (10, 3, 4, worst),
        "sixth, of few": (9, 1, 1, 1.0),
        "fourth": (10, 3, 4, 0.1),
        "seventh, of few": (5, 1, 1, 0.9),
    }
    lines = [
        replace(line, model=name, trials=trials, rank_low=low, rank_high=high, rank=1, score=score)
        for name, (trials, low, high, score) in places.items()
    ]
    found = [one.model for one in model_order(replace(results, models=tuple(lines)))]
    named = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"]
    assert [name.split(",")[0] for name in found] == named


@pytest.mark.parametrize("case", ["finished", "to_a_width", "of_several_goals"])
def test_answers_that_came_after_the_stop_are_none_on_which_the_verdict_rests(case):
    results = getattr(examples, case)()
    late = tuple(
        replace(line, trials=line.trials + 5, after_stop=line.after_stop + 5) for line in results.models
    )
    with_late = replace(results, models=late, trials=results.trials + 5 * len(late))
    assert decided_trials(with_late) == decided_trials(results) == results.trials
    assert headline(with_late) == headline(results)
