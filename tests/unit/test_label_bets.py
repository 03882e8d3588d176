"""Bets on a judge's scores that are corrected by labels: against their definition, and equal models."""

import numpy as np
import pytest

from scorio.sequential import label_bets
from scorio.sequential.clusters import RATES
from scorio.sequential.labels import expected_log_e

NONE = np.nan


def drawn(rng, steps, share, bias=0.0, graded=False):
    truth = rng.random((2, steps))
    truth = truth.round(1) if graded else (truth < 0.6).astype(float)
    judge = np.where(rng.random((2, steps)) < np.array([[bias], [0.0]]), 1.0, truth)
    chosen = rng.random(steps) < share
    return judge, np.where(chosen, truth, NONE), chosen


def test_every_factor_is_as_defined_and_the_slope_knows_earlier_labels_only():
    judge, label, chosen = drawn(np.random.default_rng(0), 40, 0.4, 0.3, graded=True)
    bets = label_bets(judge, label, 0.4)
    products = squares = 0.0
    won, found = np.ones(RATES.size), []
    for step in range(40):
        rho = min(max(products / (squares + 1.0), 0.0), 1.0)
        delta = rho * judge[:, step]
        if chosen[step]:
            delta += (label[:, step] - delta) / 0.4
            x, y = judge[0, step] - judge[1, step], label[0, step] - label[1, step]
            products, squares = products + x * y, squares + x * x
        won *= 1.0 + RATES / (2 / 0.4) * (delta[0] - delta[1])
        found.append(np.log(won.mean()))
        assert abs(delta[0] - delta[1]) <= (1 + rho) / 0.4 - rho + 1e-12
    assert bets.log_e() == pytest.approx(found)
    low, high = bets.interval(0.05)
    assert bets.last(low) == pytest.approx(np.log(20), abs=1e-3)
    assert low < bets.estimate < high


def test_labels_and_answers_that_are_lost_count_as_the_worst_for_every_bet():
    judge, label = (
        np.array([[1.0, NONE, 0.5], [0.0, 1.0, 0.5]]),
        np.array([[1.0, NONE, NONE], [0.0, NONE, 0.0]]),
    )
    bets = label_bets(judge, label, 0.5, chosen=[True, False, True], slope=0.0)
    assert bets.low.tolist() == [2.0, 0.0, 0.0]
    assert bets.high.tolist() == [2.0, 1.0, 2.0]
    assert bets.last(side=1) <= label_bets(judge[:, :1], label[:, :1], 0.5, slope=0.0).last(side=1)


def test_clusters_are_bet_on_once_however_often_their_questions_are_asked():
    judge, label, _ = drawn(np.random.default_rng(3), 60, 1.0)
    question = np.arange(60) % 20
    bets = label_bets(judge, label, 1.0, groups=[question, question // 2], slope=0.0)
    mean = np.array([(label[0] - label[1])[question == one].mean() for one in range(20)])
    sums = mean.reshape(10, 2).sum(axis=1) / 2
    won = np.prod(1.0 + RATES[:, None] / 2 * sums, axis=1).mean()
    assert bets.last() == pytest.approx(np.log(won))


def test_answers_that_may_be_copies_win_nothing():
    judge, label, _ = drawn(np.random.default_rng(4), 30, 1.0)
    bets = label_bets(judge, label, 1.0, doubted=np.ones(30, dtype=bool))
    assert (np.diff(bets.log_e()) <= 1e-12).all()


@pytest.mark.parametrize(
    ("judge", "label", "chance", "said"),
    [
        ([[2.0]], [[NONE]], 0.5, "judge: scores lie in"),
        ([[1.0]], [[-1.0]], 0.5, "label: scores lie in"),
        ([[1.0]], [[1.0]], 0.0, "chance"),
        ([[1.0]], [[1.0, 0.0]], 0.5, "one shape"),
    ],
)
def test_scores_and_chances_out_of_range_are_refused(judge, label, chance, said):
    with pytest.raises(ValueError, match=said):
        label_bets(judge, label, chance)


def test_a_biased_judge_makes_equal_models_differ_alone_and_not_with_labels():
    """150 pairs, 400 questions, bias about 7 points; seed 6, 5 % at most with labels of a tenth."""
    rng, wrong, alone = np.random.default_rng(6), 0, 0
    for _ in range(150):
        judge, label, chosen = drawn(rng, 400, 0.1, 0.2)
        wrong += label_bets(judge, label, 0.1, chosen=chosen).log_e().max() >= np.log(20)
        alone += label_bets(judge, judge, 1.0).log_e().max() >= np.log(20)
    assert wrong <= 0.05 * 150
    assert alone > 0.2 * 150


def test_the_evidence_to_expect_of_a_share_is_what_bets_at_that_share_reach():
    """A gap of 20 points; means over 40 runs of 600 questions, seed 8; their own error is about 10 %."""
    rng, reached, expected = np.random.default_rng(8), [], []
    for _ in range(40):
        truth = (rng.random((2, 600)) < np.array([[0.7], [0.5]])).astype(float)
        judge = np.where(rng.random(truth.shape) < 0.9, truth, 1.0 - truth)
        bets = label_bets(judge, truth, 1.0)
        predicted = bets.slope[-1] * (judge[0] - judge[1])
        for share in (0.3, 0.9):
            chosen = rng.random(600) < share
            label = np.where(chosen, truth, NONE)
            reached.append(label_bets(judge, label, share, chosen=chosen).last())
            expected.append(expected_log_e(predicted, truth[0] - truth[1], np.ones(600), share, 600))
    for part in (slice(0, None, 2), slice(1, None, 2)):
        assert np.mean(expected[part]) == pytest.approx(np.mean(reached[part]), rel=0.3)


def test_a_judge_that_says_the_opposite_is_left_out():
    truth = np.array([[1.0, 0.0] * 10, [0.0, 1.0] * 10])
    bets = label_bets(1.0 - truth, truth, 1.0)
    assert bets.slope.tolist() == [0.0] * 20


@pytest.mark.parametrize(("lost", "low", "high"), [(0, -1.0, 0.0), (1, -1.0, 0.0)])
def test_an_answer_that_is_lost_may_be_worth_anything_to_either_model(lost, low, high):
    judge = np.full((2, 1), 1.0 - lost)
    judge[lost] = NONE
    bets = label_bets(judge, judge, 1.0, chosen=[False], slope=1.0)
    assert (bets.low.tolist(), bets.high.tolist()) == ([low], [high])
