"""What the report says a run of fixed length would have taken is what such a run takes."""

import numpy as np
import pytest
import scipy

from scorio.sequential.fixed import fixed_passes


@pytest.mark.parametrize(("questions", "half_width", "comparisons"), [(30, 0.05, 1), (40, 0.08, 10)])
def test_so_many_passes_give_intervals_of_that_width_that_cover(questions, half_width, comparisons):
    rng = np.random.default_rng(3)
    runs, alpha = 4000, 0.05
    p = rng.beta(4.0, 4.0, (2, questions))
    noise = (p * (1.0 - p)).mean(axis=1).sum() / questions
    passes = int(fixed_passes(noise, half_width, alpha, comparisons))
    right = rng.binomial(passes, p, (runs, 2, questions)) / passes
    difference = (right[:, 0] - right[:, 1]).mean(axis=1)
    missed = int((np.abs(difference - (p[0] - p[1]).mean()) > half_width).sum())
    level = alpha / comparisons
    assert missed <= scipy.stats.binom.ppf(1.0 - 1e-4, runs, level)
    # and hardly fewer passes would do
    shorter = np.sqrt(noise / (passes - 1))
    assert scipy.stats.norm.isf(level / 2) * shorter > half_width


def test_a_wide_interval_still_takes_one_pass():
    assert fixed_passes([0.001, 0.4], [1.0, 0.1], 0.05).tolist() == [1, 154]
