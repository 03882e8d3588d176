"""Sources of simulated answers: what they draw, what they say is true, when they run out."""

import numpy as np
import pytest
from session_scripts import make_spec
from simulation_scripts import again, recorded_coins

from adaptive_eval.simulate import (
    BiasedCoins,
    GivenChances,
    RecordedAnswers,
    RecordedOutcomes,
)
from adaptive_eval.simulate.coins import asked
from scorio.sequential.trial_sequence import RunSequence

SEED = np.random.SeedSequence(11)


def begin(answers, spec, seed=SEED):
    run_sequence = RunSequence([len(task.questions) for task in spec.tasks], spec.seed)
    return answers.begin(spec, run_sequence, again(seed)), run_sequence


class TestCoins:
    def test_answers_have_the_stated_means(self):
        spec = make_spec(3, 50)
        stream, _ = begin(BiasedCoins((0.1, 0.5, 0.95)), spec)
        outcomes = stream.take(np.arange(3), 0, 50 * 400)
        # The mean over complete passes varies by trials alone: at most √(0.25/20000) = 0.0035.
        assert outcomes.mean(axis=1) == pytest.approx([0.1, 0.5, 0.95], abs=5 * 0.0035)

    def test_a_right_answer_is_the_best_category_of_the_rubric_wherever_it_stands(self):
        spec = make_spec(2, 20, weights=(0.5, 2.0, -1.0))
        stream, _ = begin(BiasedCoins((1.0, 0.0)), spec)
        outcomes = stream.take(np.arange(2), 0, 60)
        assert set(outcomes[0].tolist()) == {1}
        assert set(outcomes[1].tolist()) == {2}

    def test_pieces_and_other_models_change_no_answer(self):
        spec = make_spec(3, 30)
        whole, _ = begin(BiasedCoins((0.3, 0.5, 0.7)), spec)
        pieces, _ = begin(BiasedCoins((0.3, 0.5, 0.7)), spec)
        expected = whole.take(np.arange(3), 0, 100)
        first = pieces.take(np.array([1]), 0, 40)
        others = pieces.take(np.array([2, 0]), 0, 100)
        second = pieces.take(np.array([1]), 40, 100)
        assert np.array_equal(np.concatenate([first, second], axis=1)[0], expected[1])
        assert np.array_equal(others, expected[[2, 0]])


class TestGivenChances:
    def test_every_category_comes_up_as_often_as_it_should(self):
        chances = np.tile([0.2, 0.5, 0.3], (1, 10, 1))
        spec = make_spec(1, 10, weights=(0.0, 1.0, 4.0))
        stream, _ = begin(GivenChances(chances), spec)
        outcomes = stream.take(np.array([0]), 0, 30_000)[0]
        shares = np.bincount(outcomes, minlength=3) / outcomes.size
        assert shares == pytest.approx([0.2, 0.5, 0.3], abs=5 * 0.003)
        assert GivenChances(chances).truth(spec) == pytest.approx([0.5 + 1.2])


class TestRecorded:
    def test_replays_every_trial_once_and_then_runs_out(self):
        recorded = recorded_coins((0.3, 0.6), questions=7, trials=5)
        spec = make_spec(2, 7)
        stream, run_sequence = begin(RecordedAnswers(recorded), spec)
        assert stream.limit.tolist() == [35, 35]
        outcomes, ((questions,), _) = (
            stream.take(np.arange(2), 0, 35),
            asked(run_sequence, np.array([0]), 0, 35),
        )
        for model in range(2):
            for question in range(7):
                replayed = sorted(outcomes[model, questions == question].tolist())
                assert replayed == sorted(recorded.categories[model, question].tolist())

    def test_a_models_walk_ends_where_a_question_has_no_trial_left(self):
        categories = np.ones((2, 3, 4), dtype=np.int16)
        categories[1, 2, 2:] = -1
        recorded = RecordedOutcomes(("m0", "m1"), tuple(("t", f"q{i}") for i in range(3)), categories)
        stream, run_sequence = begin(RecordedAnswers(recorded), make_spec(2, 3))
        (questions,), (repeats,) = asked(run_sequence, np.array([0]), 0, 12)
        end = int(np.flatnonzero((questions == 2) & (repeats == 2))[0])
        assert stream.limit.tolist() == [12, end]

    def test_shuffles_within_cells_and_keeps_missing_trials_last(self):
        recorded = recorded_coins((0.5,), questions=30, trials=8, shortest=3)
        spec = make_spec(1, 30)
        orders = set()
        for child in SEED.spawn(5):
            stream, _ = begin(RecordedAnswers(recorded), spec, child)
            walked = int(stream.limit[0])
            orders.add(tuple(stream.take(np.array([0]), 0, min(walked, 60))[0].tolist()))
        assert len(orders) == 5

    def test_unshuffled_replays_in_the_recorded_order(self):
        recorded = recorded_coins((0.5,), questions=6, trials=4)
        stream, run_sequence = begin(RecordedAnswers(recorded, shuffled=False), make_spec(1, 6))
        (questions,), (repeats,) = asked(run_sequence, np.array([0]), 0, 24)
        assert np.array_equal(
            stream.take(np.array([0]), 0, 24)[0], recorded.categories[0, questions, repeats]
        )

    def test_truth_is_the_mean_over_questions_of_all_their_trials(self):
        categories = np.array([[[1, 1, 0, 0], [1, -1, -1, -1]]])
        recorded = RecordedOutcomes(("m0",), (("t", "q0"), ("t", "q1")), categories)
        assert RecordedAnswers(recorded).truth(make_spec(1, 2)) == pytest.approx([0.75])
        assert recorded.scores() == pytest.approx(np.array([[0.5, 1.0]]))
