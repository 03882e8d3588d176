"""Two views of recorded outcomes: all at once, and as a sequential run would have used them."""

import numpy as np
import pytest
from session_scripts import make_spec
from simulation_scripts import recorded_coins

from adaptive_eval.errors import UsageError
from adaptive_eval.simulate.analysis import analyze
from scorio import eval as metrics


@pytest.fixture(scope="module")
def recorded():
    return recorded_coins((0.2, 0.55, 0.6, 0.9), questions=20, trials=30, seed=4)


@pytest.fixture(scope="module")
def analysis(recorded):
    return analyze(recorded, make_spec(4, 20, equivalence=0.15), replicates=12, seed=1, workers=1)


def test_fixed_view_is_bayes_at_n_over_all_trials(recorded, analysis):
    for line in analysis.models:
        outcomes = recorded.categories[recorded.models.index(line.model)]
        mu, sigma = metrics.bayes(outcomes)
        assert line.mu == pytest.approx(mu)
        assert line.sigma == pytest.approx(sigma)
        assert line.score == pytest.approx(outcomes.mean())
        assert (line.trials, line.fewest, line.most) == (600, 30, 30)


def test_the_replay_in_recorded_order_depends_on_the_order():
    recorded = recorded_coins((0.5, 0.5), questions=12, trials=20, seed=1)
    best_first = -np.sort(-recorded.categories[1:], axis=2)
    turned = type(recorded)(
        recorded.models, recorded.questions, np.concatenate([recorded.categories[:1], best_first])
    )
    spec = make_spec(2, 12)
    plain = analyze(recorded, spec, replicates=2, seed=1, workers=1)
    biased = analyze(turned, spec, replicates=2, seed=1, workers=1)
    assert plain.replay.verdict.tolist() != biased.replay.verdict.tolist()
    assert np.array_equal(plain.shuffled.truth, biased.shuffled.truth)


def test_a_cell_without_trials_is_refused_and_can_be_left_out():
    recorded = recorded_coins((0.4, 0.6), questions=6, trials=4)
    categories = recorded.categories.copy()
    categories[1, 2] = -1
    holed = type(recorded)(recorded.models, recorded.questions, categories)
    with pytest.raises(UsageError, match="no recorded trial of question 'q2'"):
        analyze(holed, make_spec(2, 6), replicates=2, seed=1, workers=1)
    assert [name for _, name in holed.answered_by_all().questions] == ["q0", "q1", "q3", "q4", "q5"]
    empty = type(recorded)(recorded.models, recorded.questions[:1], categories[:, 2:3])
    with pytest.raises(UsageError, match="no question that all models have answered"):
        empty.answered_by_all()
