"""Invariances of rankings, whatever the data."""

import itertools
import math

import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from scorio import rank

SCORES = hnp.arrays(np.int64, st.integers(1, 12), elements=st.integers(-6, 6))
TENSORS = hnp.arrays(
    np.int64, st.tuples(st.integers(2, 6), st.integers(1, 5), st.integers(2, 7)), elements=st.integers(0, 1)
)

BINARY_METRICS = [
    lambda R, **o: rank.avg(R, **o),
    lambda R, **o: rank.bayes(R, **o),
    lambda R, **o: rank.bayes(R, quantile=0.1, **o),
    lambda R, **o: rank.pass_at_k(R, 2, **o),
    lambda R, **o: rank.pass_hat_k(R, 2, **o),
    lambda R, **o: rank.auc_at_k(R, 2, **o),
    lambda R, **o: rank.maj_at_k(R, 2, **o),
    lambda R, **o: rank.g_pass_at_k_tau(R, 2, 0.5, **o),
    lambda R, **o: rank.mg_pass_at_k(R, 2, **o),
    lambda R, **o: rank.geom_at_k(R, 2, **o),
    lambda R, **o: rank.geom_ds_at_k(R, 2, **o),
    lambda R, **o: rank.geo_spectrum_at_k(R, 2, **o),
    lambda R, **o: rank.threshold_spectrum_at_k(R, 2, [0.3, 0.6], **o),
    lambda R, **o: rank.max_at_k(R, 2, **o),
]
EACH_METRIC = pytest.mark.parametrize("metric", BINARY_METRICS)


@given(SCORES)
def test_ranks_mean_what_their_names_say(scores):
    better = (scores > scores[:, None]).sum(axis=1)
    tied = (scores == scores[:, None]).sum(axis=1)
    levels = np.array([np.unique(scores[scores > score]).size for score in scores])
    assert np.array_equal(rank.rank_scores(scores, "competition"), better + 1)
    assert np.array_equal(rank.rank_scores(scores, "competition_max"), better + tied)
    assert np.array_equal(rank.rank_scores(scores, "dense"), levels + 1)
    assert np.array_equal(rank.rank_scores(scores, "avg"), better + (tied + 1) / 2)
    before = np.array([np.count_nonzero(scores[:i] == score) for i, score in enumerate(scores)])
    assert np.array_equal(rank.rank_scores(scores, "ordinal"), better + before + 1)


@pytest.mark.slow
@EACH_METRIC
@settings(max_examples=40)
@given(R=TENSORS, data=st.data())
def test_models_questions_and_trials_may_come_in_any_order(metric, R, data):
    models = np.array(data.draw(st.permutations(range(R.shape[0]))))
    questions = np.array(data.draw(st.permutations(range(R.shape[1]))))
    trials = np.array(data.draw(st.permutations(range(R.shape[2]))))
    for method in ("competition", "dense", "avg"):
        ranks = metric(R, method=method)
        assert np.array_equal(metric(R[models], method=method), ranks[models])
        assert np.array_equal(metric(R[:, questions][:, :, trials], method=method), ranks)


@EACH_METRIC
@settings(max_examples=40)
@given(R=TENSORS)
def test_equal_models_tie_and_a_better_one_is_not_behind(metric, R):
    better = np.concatenate([R, R[:1], np.maximum(R[:1], 1)])
    ranks = metric(better)
    assert ranks[0] == ranks[-2]
    assert ranks[-1] <= ranks[0]
    assert ranks[-1] == 1


POSTERIORS = st.lists(
    st.tuples(st.integers(0, 20).map(lambda x: x / 20), st.integers(0, 8).map(lambda x: x / 40)),
    min_size=1,
    max_size=9,
)


@given(POSTERIORS, st.floats(0.51, 0.999))
def test_ranking_with_intervals_is_the_papers_rule(posteriors, confidence):
    mu, sigma = np.array(posteriors).T
    # Section 2.9 as a loop: sort, and give the next model the same rank while z is below the threshold.
    threshold = math.sqrt(2) * float(scipy.special.erfinv(2 * confidence - 1))
    order = sorted(range(mu.size), key=lambda i: -mu[i])
    expected, current = [0] * mu.size, 1
    for earlier, i in itertools.pairwise([None, *order]):
        if earlier is not None:
            gap, spread = mu[earlier] - mu[i], math.hypot(sigma[earlier], sigma[i])
            z = gap / spread if spread else (math.inf if gap else 0.0)
            assume(abs(z - threshold) > 1e-9)
            current += z > threshold
        expected[i] = current
    assert rank.rank_with_confidence(mu, sigma, confidence).tolist() == expected


@given(POSTERIORS)
def test_pairs_agree_with_the_formula(posteriors):
    mu, sigma = np.array(posteriors).T
    pairs = rank.pairwise_confidence(mu, sigma)
    for i, j in itertools.product(range(mu.size), repeat=2):
        spread = math.sqrt(sigma[i] ** 2 + sigma[j] ** 2)
        if spread:
            z = abs(mu[i] - mu[j]) / spread
            assert pairs.z[i, j] == pytest.approx(z, rel=1e-13)
            assert pairs.rho[i, j] == pytest.approx(0.5 * (1 + math.erf(z / math.sqrt(2))), abs=1e-13)
    assert not np.isnan(pairs.rho).any()


@given(hnp.arrays(np.int64, st.tuples(st.just(2), st.integers(2, 9)), elements=st.integers(0, 4)))
def test_kendall_counts_pairs(rankings):
    a, b = rankings
    tau = float(rank.kendall_tau_b(a, b))
    assert tau == float(rank.kendall_tau_b(b, a))
    assert tau == -float(rank.kendall_tau_b(a, -b)) or np.ptp(a) == np.ptp(b) == 0
    assert -1.0 <= tau <= 1.0
    if np.ptp(a) and np.ptp(b):
        assert tau == pytest.approx(scipy.stats.kendalltau(a, b).statistic, abs=1e-12)
    else:
        assert tau == (1.0 if np.ptp(a) == np.ptp(b) else 0.0)
