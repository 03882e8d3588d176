"""One look at all answers: groups of questions, intervals that agree with tests, scores, ties."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats
from session_scripts import make_spec

from adaptive_eval.core.one_look import AnswerCounts, OneLook
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, StoppingSpec, TaskSpec
from adaptive_eval.trial import FIXED, TrialKey, TrialOutcome
from adaptive_eval.views.headline import headline
from adaptive_eval.views.one_look_sentences import one_look_promises
from scorio.sequential.one_look import look_at_difference, look_at_score

GROUPS = np.repeat(np.arange(9), [1, 2, 2, 3, 4, 5, 6, 7, 10])
EQUAL = np.full(GROUPS.size, 1.0 / GROUPS.size)


def gaps(seed, shift=0.1):
    return np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], GROUPS.size) * 0.5 + shift


def test_signs_of_few_groups_are_flipped_all_ways():
    d = gaps(1, 0.2)
    sums = np.bincount(GROUPS, d * EQUAL)
    flipped = np.array(list(product((-1, 1), repeat=9))) @ sums
    test = look_at_difference(d, EQUAL, GROUPS, 0.95, single=False)
    assert test.test == "sign flips of groups"
    assert test.p_value == pytest.approx((np.abs(flipped) >= abs(sums.sum()) - 1e-12).mean())


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_interval_of_flips_is_what_they_do_not_reject(confidence):
    test = look_at_difference(gaps(2), EQUAL, GROUPS, confidence, single=False)
    for end, outward in ((test.low, -1e-6), (test.high, 1e-6)):
        inside = look_at_difference(gaps(2) - end + outward, EQUAL, GROUPS, confidence, single=False)
        outside = look_at_difference(gaps(2) - end - outward, EQUAL, GROUPS, confidence, single=False)
        assert outside.p_value <= 1.0 - confidence < inside.p_value


def test_many_groups_have_the_cluster_robust_t():
    groups = np.repeat(np.arange(30), 4)
    d = np.random.default_rng(3).normal(0.1, 1.0, 120)
    shares = np.full(120, 1 / 120)
    test = look_at_difference(d, shares, groups, 0.95, single=False)
    means = d.reshape(30, 4).mean(axis=1)
    expected = stats.ttest_1samp(means, 0.0)
    assert test.p_value == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert (test.low, test.high) == pytest.approx((low, high))


@pytest.mark.parametrize("groups", [12, 40])
def test_whole_groups_that_change_sides_make_no_winner(groups):
    """2,000 pairs each: the share of false winners at 5 % is at most 6.5 % (Monte-Carlo error 0.5 points)."""
    rng = np.random.default_rng(groups)
    sizes = rng.integers(1, 12, groups)
    of = np.repeat(np.arange(groups), sizes)
    shares = np.full(of.size, 1 / of.size)
    false, naive = 0, 0
    for _ in range(2000 if groups > 20 else 300):
        d = np.repeat(rng.choice([-1.0, 1.0], groups), sizes)
        false += look_at_difference(d, shares, of, 0.95, single=True).p_value <= 0.05
        naive += look_at_difference(d, shares, None, 0.95, single=True).p_value <= 0.05
    number = 2000 if groups > 20 else 300
    assert false / number <= 0.065
    assert naive / number > 0.3


def test_an_interval_of_mcnemar_agrees_with_its_test():
    for first, second, number in product(range(0, 14, 2), range(0, 9, 2), (16, 40, 300)):
        if first + second > number:
            continue
        d = np.zeros(number)
        d[:first], d[first : first + second] = 1.0, -1.0
        test = look_at_difference(d, np.full(number, 1 / number), None, 0.95, single=True)
        rejects = test.p_value <= 0.05
        assert (test.low >= 0.0 or test.high <= 0.0) if rejects else (test.low <= 0.0 <= test.high)
        assert test.low <= test.estimate <= test.high


def test_a_score_has_an_interval_even_where_all_answers_are_right():
    shares = np.full(20, 0.05)
    test = look_at_score(np.ones(20), shares, None, 0.95)
    assert 0.75 < test.low < 0.9
    assert test.high == 1.0
    half = look_at_score(np.repeat([0.0, 1.0], 10), shares, None, 0.95, against=0.5)
    assert half.p_value == pytest.approx(1.0)


def look(right, spec, **changes):
    right = np.asarray(right, dtype=float)
    number = np.ones(right.shape, dtype=int)
    return OneLook(replace(spec, **changes), AnswerCounts(number, right, number * 0)).results()


def test_groups_turn_the_sentence_and_the_verdict():
    """Forty answers in four groups: one model is right in whole groups."""
    right = np.zeros((2, 40))
    right[0, :30], right[1, 30:] = 1.0, 1.0
    spec = make_spec(2, 40)
    alone = look(right, spec)
    assert alone.pairs[0].verdict == "better"
    assert "on these questions" in headline(alone)
    task = replace(spec.tasks[0], clusters=tuple(f"g{n // 10}" for n in range(40)))
    stopping = StoppingSpec(target="population")
    grouped = look(right, spec, tasks=(task,), stopping=stopping)
    assert grouped.pairs[0].verdict == "open"
    assert grouped.pairs[0].p_value == pytest.approx(10 / 16)
    assert "on questions like these" in headline(grouped)


@pytest.mark.parametrize(
    ("models", "family", "words"),
    [(3, "holm", "any two models that"), (3, "pair", "two models that"), (2, "holm", "two models that")],
)
def test_the_promise_names_any_two_models_where_all_pairs_share_it(models, family, words):
    spec = make_spec(models, 40)
    results = look(np.ones((models, 40)), spec, stopping=StoppingSpec(family=family))
    assert f"95 %: {words} are truly equal" in one_look_promises(results)[0][0]


def test_a_tie_lies_within_the_margin_and_a_width_is_measured():
    rng = np.random.default_rng(5)
    right = (rng.random((2, 4000)) < 0.5).astype(float)
    spec = make_spec(2, 4000)
    tied = look(right, spec, stopping=StoppingSpec(equivalence=0.1))
    assert tied.pairs[0].verdict == "tie"
    for margin in (0.001, 0.02):  # within the second lies the difference, and not all of its interval
        assert look(right, spec, stopping=StoppingSpec(equivalence=margin)).pairs[0].verdict == "open"
    near = GoalSpec("threshold", value=0.51)
    held = look(right, spec, goal=near, stopping=StoppingSpec(equivalence=0.1))
    assert [pair.verdict for pair in held.pairs] == ["tie", "tie"]
    measured = look(right, spec, goal=GoalSpec("width", width=0.05))
    assert [pair.verdict for pair in measured.pairs] == ["tie", "tie"]
    assert look(right, spec, goal=GoalSpec("width", width=0.01)).pairs[0].verdict == "open"


# Lost answers, claims, tasks and groups together, against the definition.


def with_lost(sizes, lost, groups):
    """Return tasks, and answers of two models: the first ones of one are lost, the last ones of the other."""
    rng, total = np.random.default_rng(8), sum(sizes)
    right = (rng.random((2, total)) < [[0.9], [0.55]]).astype(float)
    gone = np.zeros((2, total), dtype=int)
    gone[0, :lost], gone[1, total - lost :] = 1, 1
    right[gone > 0] = 0.0
    if lost == total // 2:  # each is right wherever the other's answer is lost
        right[0], right[1] = gone[1], gone[0]
    tasks, begin = [], 0
    for number, size in enumerate(sizes):
        names = None if groups is None else tuple(f"g{group}" for group in groups[begin : begin + size])
        tasks.append(TaskSpec(f"t{number}", tuple(f"q{one}" for one in range(size)), clusters=names))
        begin += size
    return tuple(tasks), AnswerCounts(1 - gone, right, gone)


@pytest.mark.parametrize("margin", [None, 0.1])
@pytest.mark.parametrize("sizes", [(40,), (30, 10)])
@pytest.mark.parametrize("lost", [0, 3, 20])
@pytest.mark.parametrize("groups", [None, tuple(one % 12 for one in range(40))])
def test_a_pair_is_as_sure_as_with_the_worst_of_what_is_lost(margin, sizes, lost, groups):
    goal = GoalSpec("ranking") if margin is None else GoalSpec("not-worse", model="m1", margin=margin)
    stopping = StoppingSpec(target="benchmark" if groups is None else "population")
    tasks, answers = with_lost(sizes, lost, groups)
    spec = replace(make_spec(2), tasks=tasks, goal=goal, stopping=stopping)
    (pair,) = OneLook(spec, answers).results().pairs
    shares = np.concatenate([np.full(size, 1.0 / size / len(sizes)) for size in sizes])
    shift, one = margin or 0.0, margin is None and len(sizes) == 1
    ends = []
    for worth in (0.0, 1.0):
        first, second = answers.total[0] + worth * answers.lost[0], answers.total[1]
        gap = first - (second + (1.0 - worth) * answers.lost[1]) + shift
        of = None if groups is None else np.array(groups)
        ends.append(look_at_difference(gap, shares, of, 0.95, single=one))
    agree = len({end.estimate > 0.0 for end in ends}) == 1
    p_value = max(end.p_value for end in ends) if agree else 1.0
    assert pair.p_value == pytest.approx(p_value / (1.0 if margin is None else 2.0))
    assert pair.test in {end.test for end in ends}
    found = OneLook(spec, answers).results()
    for task, begin, size in zip(found.tasks, (0, sizes[0]), sizes, strict=len(sizes) > 1):
        for row, line in enumerate(task.scores):
            here, each = slice(begin, begin + size), np.full(size, 1.0 / size)
            of = None if groups is None else np.array(groups[here])
            both = [
                look_at_score((answers.total + worth * answers.lost)[row, here], each, of, 0.95)
                for worth in (0.0, 1.0)
            ]
            assert line.score_low == pytest.approx(max(min(end.low for end in both), 0.0))
            assert line.score_high == pytest.approx(min(max(end.high for end in both), 1.0))
    low, high = min(end.low for end in ends) - shift, max(end.high for end in ends) - shift
    assert (pair.difference_low, pair.difference_high) == pytest.approx((max(low, -1.0), min(high, 1.0)))
    assert (pair.verdict == "open") == (pair.p_value > 0.05)


def test_questions_of_a_task_without_groups_are_each_their_own():
    tasks, answers = with_lost((30, 10), 3, tuple(one % 12 for one in range(40)))
    spec = replace(make_spec(2), stopping=StoppingSpec(target="population"))
    found = []
    for groups in (None, tuple(f"alone{number}" for number in range(10))):
        grouped = (tasks[0], replace(tasks[1], clusters=groups))
        found.append(OneLook(replace(spec, tasks=grouped), answers).results().pairs)
    assert found[0] == found[1]


def test_claims_share_no_level_with_pairs():
    parts = (GoalSpec("ranking"), GoalSpec("not-worse", model="m0", margin=0.1))
    right = np.zeros((3, 40))
    right[0, :36], right[1, 2:30], right[2, :8] = 1.0, 1.0, 1.0
    found = look(right, make_spec(3, 40), goal=GoalSpec("all", goals=parts))
    levels = {
        kind: sorted(np.exp(-pair.threshold) for pair in found.pairs if pair.kind == kind)
        for kind in ("pair", "not-worse")
    }
    assert min(levels["pair"]) == pytest.approx(0.05 / 3)
    assert min(levels["not-worse"]) == pytest.approx(0.05 / 2)


@pytest.mark.parametrize("gap", [0.0, 0.4, -0.4, 1.0])
def test_alike_questions_leave_room_for_the_share_of_others_that_so_many_can_miss(gap):
    """Of 20 questions, 1 − .05^(1/20) may be of another kind: from −1 to 1."""
    test = look_at_difference(np.full(20, gap), np.full(20, 1 / 20), None, 0.95, single=False)
    unseen = 1.0 - 0.05 ** (1 / 20)
    ends = (gap - unseen * (1.0 + gap), gap + unseen * (1.0 - gap))
    assert (test.low, test.high) == pytest.approx(ends)


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("groups", [None, GROUPS, np.arange(EQUAL.size)])
def test_a_table_of_pairs_has_the_tests_of_its_rows(single, groups):
    d = np.random.default_rng(6).choice([-1.0, 0.0, 1.0], (5, EQUAL.size))
    d[0], d[1] = 0.0, 1.0
    test, *figures = look_at_difference(d, EQUAL, groups, 0.95, single=single)
    for row, column in zip(d, zip(*figures, strict=True), strict=True):
        alone, *expected = look_at_difference(row, EQUAL, groups, 0.95, single=single)
        assert alone == test
        assert column == pytest.approx(list(map(float, expected)), abs=1e-12)


def test_the_level_falls_no_more_after_the_first_pair_that_is_not_shown():
    pairs = look(np.zeros((3, 40)), make_spec(3, 40)).pairs
    assert [np.exp(-pair.threshold) for pair in pairs] == pytest.approx([0.05 / 3] * 3)


GOALS = [GoalSpec("not-worse", model="m1", margin=0.2), GoalSpec("width", width=0.3)]


@pytest.mark.parametrize("goal", GOALS)
def test_nothing_is_decided_before_the_last_trial(goal):
    session = Session(replace(make_spec(2, 100), goal=goal, stopping=StoppingSpec(rule=FIXED)))
    log = [[TrialOutcome(TrialKey(f"m{model}", step), 1) for model in (0, 1)] for step in range(100)]
    assert session.replay(log) == []
    (stop,) = session.end("budget")
    assert stop.step == 100
    assert {pair.verdict for pair in session.results().pairs} != {"open"}
