"""Answers scored by several checks, several at once, or by votes of a judge: against counting by hand."""

import asyncio
import json
from fractions import Fraction
from itertools import product

import pytest

from adaptive_eval.build.anchors import Anchors
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.scoring.match import NumericScorer
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.rubric import Rubric, TaskScoring
from adaptive_eval.scoring.scorer import NOT_FOUND, TogetherScorer
from adaptive_eval.trial import (
    ANCHOR,
    ANCHOR_PARTS,
    Completion,
    Question,
    Score,
    ScoreRange,
    TrialKey,
    TrialRequest,
    Usage,
)
from scorio.categorical import get_schema

QUESTION = Question("t", "q", "4", {"input": "2 + 2?"})

# ------------------------------------------------------------------ several checks


RIGHT = Score(1, "4", {"is_correct": True, "score": 1.0, "latency": 1.0}, "right")
WRONG = Score(0, "5", {"is_correct": False, "score": 0.0, "latency": 2.0}, "wrong")
LOST = Score(0, None, {"is_correct": False}, NOT_FOUND)
FAILED = Score(None, None, {"tries": 2}, "the scorer failed", ("server",))
FOUND = {"right": RIGHT, "wrong": WRONG, "lost": LOST, "failed": FAILED}
WORTH = {"right": 1, "wrong": 0, "lost": 0}
PARTS = {"a": "numeric", "b": {"kind": "exact"}, "c": "contains"}


def stars(value):
    return Score(0, f"{value}", {"score": value}, "stars", ("timeout",))


@pytest.mark.parametrize("by", ["all", "any", "mean", "mean from 0.7"])
@pytest.mark.parametrize("weights", [None, {"a": 3, "b": 1, "c": 2}])
def test_checks_are_one_score_and_a_failed_one_leaves_none(by, weights):
    options = {"parts": PARTS, "by": by.split()[0]}
    if by == "mean from 0.7":
        options["right_from"] = 0.7
    if weights and "mean" not in by:
        return
    if weights:
        options["weights"] = weights
    scorer = build_scorer("checks", options)
    for words in product(FOUND, repeat=3):
        given = dict(zip(PARTS, map(FOUND.__getitem__, words), strict=True))
        found = scorer.together(given)
        assert found.discarded == ("server",) * words.count("failed")
        checks = {name for name, word in zip(PARTS, words, strict=True) if word != "failed"}
        assert {name for name in found.signals if name.startswith("check_")} == {f"check_{n}" for n in checks}
        first = next((one.extracted for one in given.values() if one.extracted is not None), None)
        assert found.extracted == first
        latencies = [one.signals["latency"] for one in given.values() if "latency" in one.signals]
        assert found.signals.get("latency") == next(iter(latencies), None)
        if "failed" in words:
            name = list(PARTS)[words.index("failed")]
            assert (found.category, found.reason) == (None, f"the scorer failed (check {name})")
            assert not {"is_correct", "score"} & found.signals.keys()
            continue
        worths = [WORTH[word] for word in words]
        counts = list((weights or dict.fromkeys(PARTS, 1)).values())
        mean = Fraction(sum(count * worth for count, worth in zip(counts, worths, strict=True)), sum(counts))
        value = {"all": min(worths), "any": max(worths)}.get(by, mean)
        assert found.signals["score"] == pytest.approx(float(value))
        right = value >= Fraction(7, 10) if by == "mean from 0.7" else value == 1
        assert found.category == (0 if by == "mean" else int(right))
        assert found.signals.get("is_correct") == (None if by == "mean" else right)
        nothing = [word == "lost" for word in words]
        wanted = any(nothing) if by == "all" else all(nothing)
        assert found.reason.startswith(NOT_FOUND) == wanted


@pytest.mark.parametrize("weights", [None, {"stars": 1, "number": 3}])
def test_numbers_of_each_range_count_as_shares_of_it(weights):
    parts = {"stars": {"kind": "f1", "range": (-1.0, 3.0)}, "number": "numeric"}
    options = {"parts": parts, "by": "mean"} | ({"weights": weights} if weights else {})
    scorer = build_scorer("checks", options)
    for value, other in product((-1.0, 0.0, 1.0, 3.0), (RIGHT, WRONG)):
        found = scorer.together({"stars": stars(value), "number": other})
        share, worth = (value + 1) / 4, other.category
        mean = (share + 3 * worth) / 4 if weights else (share + worth) / 2
        assert found.signals["score"] == pytest.approx(mean)
        assert (found.signals["check_stars"], found.signals["check_number"]) == (value, bool(worth))
        assert found.discarded == ("timeout",)


# ------------------------------------------------------------------ several answers of a trial


ANSWERS = {
    "right": ("It is 4.", "stop"),
    "five": ("It is 5.", "stop"),
    "six": ("It is 6.", "stop"),
    "cut": (r"\boxed{4} and so", "length"),
    "none": ("Hm.", "stop"),
}
SAYS = {"right": "4", "five": "5", "six": "6", "cut": "4", "none": None}


@pytest.mark.parametrize("by", ["all", "any", "majority"])
def test_answers_of_a_trial_are_counted_by_definition(by):
    """One that was cut off after its result is not right, and speaks for what it says."""
    scorer = TogetherScorer(NumericScorer(), by)
    for words in product(ANSWERS, repeat=3):
        calls = [dict(zip(("text", "finish_reason"), ANSWERS[word], strict=True)) for word in words]
        found = scorer.score(Completion("all of them", "stop", calls=tuple(calls)), QUESTION)
        right = [word == "right" for word in words]
        said = [SAYS[word] for word in words if SAYS[word] is not None]
        most = next((one for one in said if said.count(one) == max(map(said.count, said))), None)
        chosen = [yes for yes, word in zip(right, words, strict=True) if SAYS[word] == most]
        wanted = {"all": all(right), "any": any(right), "majority": any(chosen)}[by]
        assert (found.category, found.signals["is_correct"]) == (wanted, wanted), words
        assert (found.extracted, found.signals["right_answers"]) == (most, sum(right)), words


@pytest.mark.parametrize("by", ["all", "any", "majority"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_answer_that_cannot_be_scored_leaves_its_trial_without_a_score(by, place):
    class Failing(NumericScorer):
        def score(self, completion, question):
            return FAILED if completion.text == "Hm." else super().score(completion, question)

    texts = ["It is 4."] * 3
    texts[place] = "Hm."
    calls = tuple({"text": text, "finish_reason": "stop"} for text in texts)
    found = TogetherScorer(Failing(), by).score(Completion("all", "stop", calls=calls), QUESTION)
    assert (found.category, found.discarded) == (None, ("server",))


# ------------------------------------------------------------------ rubrics, causes, what was cut off


CAUSES = {
    "empty": Completion("", "stop"),
    "reasoning": Completion("", "stop", without_text="reasoning", reasoning="Far north."),
    "tool_calls": Completion("", "tool_calls", without_text="tool_calls"),
    "content_filter": Completion("I can", "content_filter"),
    None: Completion("It is 4", "stop"),
}


class Fixed:
    """A scorer that gives one score."""

    def __init__(self, score):
        self.given = score

    def score(self, completion, question):
        return self.given


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("scores", [None, ScoreRange((-1, 3))])
@pytest.mark.parametrize("truncated", ["zero", "judged"])
def test_an_answer_that_is_none_is_missing_where_its_cause_is_named(cause, scores, truncated):
    answer = CAUSES[cause]
    score = stars(3.0) if scores else RIGHT
    for missing in ((), ("empty",), ("reasoning", "tool_calls"), ("content_filter", "empty")):
        scoring = TaskScoring(Fixed(score), Rubric(truncated=truncated, range=scores), missing)
        found = scoring.score(answer, QUESTION)
        assert (found.category is None) == (cause in missing)
        assert found.reason == (f"no answer: {cause}" if cause in missing else score.reason)
        assert found.discarded == (() if cause in missing else score.discarded)


@pytest.mark.parametrize("truncated", ["zero", "judged"])
@pytest.mark.parametrize("cut", [False, True])
def test_what_was_cut_off_is_the_lowest_unless_it_is_judged(truncated, cut):
    answer = Completion("It is 4", "length" if cut else "stop", Usage(3, 5))
    lowest = cut and truncated == "zero"
    for score, scores in ((RIGHT, None), (WRONG, None), (stars(3.0), ScoreRange((-1, 3)))):
        rubric = Rubric(truncated=truncated, range=scores)
        found = TaskScoring(Fixed(score), rubric).score(answer, QUESTION)
        highest = scores.category(3.0) if scores else score.category
        assert found.category == (0 if lowest else highest)
        assert found.signals["truncated"] is cut
        assert found.extracted == score.extracted
    outside = TaskScoring(Fixed(stars(3.5)), Rubric(truncated=truncated, range=ScoreRange((-1, 3))))
    if not lowest:
        with pytest.raises(TransientEndpointError, match="no number of the range"):
            outside.score(answer, QUESTION)


# ------------------------------------------------------------------ a judge's votes


class Wise:
    """A grading model that gives these words, or numbers, one after another; None for nonsense."""

    def __init__(self, words, spare=True):
        self.words, self.spare, self.asked = list(words), spare, []

    async def ask(self, messages, bill, **parameters):
        self.asked.append(({"seed": parameters["seed"], "temperature": parameters["temperature"]}, messages))
        bill.requests += 1
        word = self.words[len(self.asked) - 1]
        text = "Hm." if word is None else json.dumps({"reason": f"r{len(self.asked)}", "verdict": word})
        return Completion(text, "stop")


def judged(words, *, answer="It is 4.", spare=True, **options):
    made = build_scorer("judge", {"endpoint": "http://127.0.0.1:1/v1", "model": "wise", **options})
    made._grading_model = wise = Wise(words, spare)
    return asyncio.run(made.grade(Completion(answer, "stop"), QUESTION)), wise.asked


@pytest.mark.parametrize("votes", [1, 3, 5])
@pytest.mark.parametrize("second", [0, 1])
def test_votes_on_right_or_wrong_end_with_a_majority(votes, second):
    need = votes // 2 + 1
    for words in product(["correct", "wrong"], repeat=votes):
        asked = next(n for n in range(need, votes + 1) if max(map(words[:n].count, words[:n])) >= need)
        given = words[:asked]
        again = ("wrong",) if votes == 1 and second else ()
        found, requests = judged((*given, *again), votes=votes, second_votes=second)
        share = Fraction(given.count("correct"), asked)
        assert found.signals["is_correct"] == (given.count("correct") >= need)
        assert (found.category, found.signals["score"]) == (int(share >= Fraction(1, 2)), float(share))
        assert found.signals["judgements"] == asked
        assert len(requests) == found.signals["judge_requests"] == asked + len(again)
        two = (*given, *again)[:2]
        told = {"judged_same" if len(set(two)) == 1 else "judged_changed"} if len(two) > 1 else set()
        assert {name for name in found.signals if name.startswith("judged_")} == told
        assert len({one["seed"] for one, _ in requests}) == len(requests)
        assert {one["temperature"] for one, _ in requests} == {0.0 if votes == 1 else 1.0}
        word = "correct" if given.count("correct") >= need else "wrong"
        assert found.reason == f"judged {word}: r{given.index(word) + 1}"


@pytest.mark.parametrize("nonsense", [0, 1, 2])
@pytest.mark.parametrize("votes", [1, 3])
def test_nonsense_is_asked_for_once_more_and_is_a_draw_given_up(nonsense, votes):
    words = [None] * nonsense + ["correct"] * 3
    found, requests = judged(words, votes=votes, second_votes=0)
    if nonsense == 2:
        assert (found.category, len(requests)) == (None, 2)
    else:
        assert found.category == 1
        assert len(requests) == votes // 2 + 1 + nonsense
    assert found.discarded == ("server",) * nonsense
    hot = [one["temperature"] for one, _ in requests]
    assert hot[0] == (0.0 if votes == 1 else 1.0)
    assert set(hot[1:]) <= {1.0}
    assert len({one["seed"] for one, _ in requests}) == len(requests)


@pytest.mark.parametrize("numbers", [(4, 4, 10), (1, 2.5, 3), (10, 10, 10)])
def test_numbers_of_a_judge_are_averaged_and_all_are_asked_for(numbers):
    found, requests = judged(numbers, votes=3, range=(1.0, 10.0))
    assert found.signals["score"] == pytest.approx(sum(numbers) / 3)
    assert (len(requests), found.signals["judgements"]) == (3, 3)
    assert found.signals["judged_same" if numbers[0] == numbers[1] else "judged_changed"]
    beyond, requests = judged((0, 11), range=(1.0, 10.0), second_votes=0)
    assert (beyond.category, len(requests)) == (None, 2)


ORDERS = {
    "answer": ("first", "second"),
    "reference": ("second", "first"),
    "tie": ("tie", "tie"),
    "order": ("first", "first"),
    "half": ("tie", "second"),
}
"""What a judge says in both orders, by what that is worth."""
SHARE = {"answer": Fraction(1), "tie": Fraction(1, 2), "reference": Fraction(0)}


@pytest.mark.parametrize("against", [None, "run#old"])
@pytest.mark.parametrize("votes", [1, 3])
def test_a_vote_counts_in_both_orders_and_one_that_the_order_decides_by_what_is_compared(against, votes):
    options = {"compare": "pairwise", "votes": votes, "second_votes": 0, "range": (0.0, 1.0)}
    if against:
        options["against"] = against
    for kinds in product(ORDERS, repeat=votes):
        words = [word for kind in kinds for word in ORDERS[kind]]
        found, requests = judged(words, **options)
        counted = [SHARE.get(kind, Fraction(1, 2) if against else None) for kind in kinds]
        told = [one for one in counted if one is not None]
        by_order = sum(kind not in SHARE for kind in kinds)
        assert len(requests) == found.signals["judge_requests"] == 2 * votes
        assert len({one["seed"] for one, _ in requests}) == 2 * votes
        if told:
            assert found.signals["score"] == pytest.approx(float(sum(told) / len(told)))
        else:
            assert (found.category, by_order) == (None, votes)
        assert found.signals["order_decided"] == by_order
        place = "in_either_order"
        if kinds[0] not in SHARE:
            place = "by_order" if against is None else "tied_by_order"
        kept = {name.removeprefix("judged_") for name in found.signals if name.startswith("judged_")}
        outcomes = [kind if kind in SHARE else "order" for kind in kinds]
        same = set() if votes == 1 else {"same" if outcomes[0] == outcomes[1] else "changed"}
        assert kept == {place} | same
    first, second = (messages[1].content for _, messages in requests[:2])
    assert first.index("It is 4.") < first.index("\n4\n")
    assert second.index("\n4\n") < second.index("It is 4.")


# ------------------------------------------------------------------ answers that a judge is shown again


CELLS = [(model, question) for model in "ab" for question in ("q0", "q1", "q2", "q3", "q4")]


def request_of(model, question, repeat):
    return TrialRequest(TrialKey(model, repeat), "t", question, repeat, 7)


@pytest.mark.parametrize("number", [1, 3, 4, 10])
@pytest.mark.parametrize(
    ("options", "check", "said", "part"),
    [
        ({"range": (1.0, 10.0)}, None, 4, round(ANCHOR_PARTS / 3)),
        ({}, None, "correct", ANCHOR_PARTS),
        ({}, "polite", "wrong", 0),
        ({"range": (-1.0, 1.0)}, "polite", -0.5, round(ANCHOR_PARTS / 4)),
    ],
)
def test_each_anchor_is_judged_once_a_pass_and_each_time_with_another(number, options, check, said, part):
    asked_of = {"endpoint": "http://127.0.0.1:1/v1", "model": "wise", "second_votes": 1}
    judge = build_scorer("judge", {**asked_of, "anchors": number, **options})
    judge._grading_model = wise = Wise([said] * 200)
    questions = {f"q{place}": place for place in range(5)}
    anchors = Anchors(judge, {"a": 0, "b": 1}, questions, check)
    kept = []
    for cell in CELLS:
        answer = Completion(f"It is {cell}.", "stop")
        score = asyncio.run(judge.grade(answer, QUESTION))
        if check:  # as the whole of several checks has it
            name = "score" if "range" in options else "is_correct"
            rest = {key: value for key, value in score.signals.items() if key not in ("score", "is_correct")}
            score = Score(0, None, {**rest, f"check_{check}": score.signals[name]})
        found = anchors.keep(request_of(*cell, 0), answer, QUESTION, score)
        kept += [name for name in found.signals if name.startswith(ANCHOR)]
    assert kept == [f"{ANCHOR}{place}_{part}" for place in range(number)]
    shown_by = {}
    for repeat in range(1, number + 1):
        told = []
        for cell in CELLS:
            asked = len(wise.asked)
            bill = {"judge_requests": 2, "judge_prompt_tokens": 7, "judge_completion_tokens": 5}
            found = asyncio.run(anchors.judged_again(request_of(*cell, repeat), Score(1, None, bill)))
            names = [name for name in found.signals if name.startswith(ANCHOR)]
            assert len(wise.asked) - asked == found.signals["judge_requests"] - 2 == len(names)
            for name in names:
                shown_by.setdefault(name, []).append(cell)
            told += names
        assert sorted(told) == sorted(kept)
    assert all(len(set(cells)) == number for cells in shown_by.values())


def test_an_answer_that_the_judge_did_not_score_or_that_came_later_is_no_anchor():
    judge = build_scorer("judge", {"endpoint": "http://127.0.0.1:1/v1", "model": "wise", "anchors": 10})
    judge._grading_model = Wise(["correct"] * 9, spare=False)
    anchors = Anchors(judge, {"a": 0, "b": 1}, {f"q{place}": place for place in range(5)})
    answer = Completion("It is 4.", "stop")
    asked = {"judge_requests": 1, "score": 1.0}
    scores = [(Score(None, None, asked), 0), (Score(1, None, {"score": 1.0}), 0), (Score(1, None, asked), 1)]
    for score, repeat in scores:
        assert anchors.keep(request_of("a", "q0", repeat), answer, QUESTION, score) is score
    assert not anchors.kept
    anchors.keep(request_of("a", "q0", 0), answer, QUESTION, Score(1, None, asked))
    assert list(anchors.kept) == [0]
    later = Score(1, None, asked)  # half of its budget is spent
    assert asyncio.run(anchors.judged_again(request_of("b", "q4", 1), later)) is later


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("box", [True, False])
def test_a_category_by_form_takes_a_cut_off_answer_as_one_that_ended_where_that_is_asked(right, box):
    """Repetition is what its cut would tell; that of an answer which ended otherwise is told all the same."""
    schema = get_schema("format-aware")
    form = {"is_correct": right, "has_box": box}
    ended, repeated = (Rubric(schema).category({**form, "repeated_pattern": n}) for n in (0, 1))
    judged_rubric = Rubric(schema, truncated="judged")
    for cut, pattern in product((False, True), (0, 1)):
        signals = {**form, "repeated_pattern": pattern, "truncated": cut}
        assert judged_rubric.category(signals) == (ended if cut or not pattern else repeated)
        assert Rubric(schema).category(signals) == (0 if cut else repeated if pattern else ended)
