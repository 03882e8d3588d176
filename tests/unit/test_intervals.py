"""The interval that is shown: its variance, its cuts at a verdict, and what tasks weigh in it."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import make_spec

from adaptive_eval.core.board import Board
from adaptive_eval.core.goals import BETTER, OPEN, TIE, WORSE, make_goal
from adaptive_eval.core.spec import TaskSpec
from scorio.sequential.contrasts import ContrastBlock
from scorio.sequential.courses import Intervals
from scorio.sequential.evidence import confidence_radius
from scorio.sequential.fold import Course

ALPHA, MARGIN = 0.05, 0.1


def interval(verdict, difference, variance=0.001, guarded=0.004, slack=0.0):
    """Return the interval of one pair with these estimates."""
    spec = make_spec(2, 30, equivalence=MARGIN)
    intervals = Intervals(make_goal(spec), np.zeros(1, dtype=bool), ALPHA, MARGIN)
    latest = Course.unread(1)
    latest.difference[:], latest.variance[:] = difference, variance
    latest.guarded[:], latest.slack[:] = guarded, slack
    low, high = intervals.of([0], np.array([verdict]), latest)
    return float(low[0]), float(high[0])


@pytest.mark.parametrize("slack", [0.0, 0.05])
def test_its_width_comes_from_the_careful_variance_and_from_what_is_lost(slack):
    low, high = interval(OPEN, 0.05, slack=slack)
    assert high - low == pytest.approx(2 * (float(confidence_radius(0.004, ALPHA, MARGIN)) + slack))
    assert low + high == pytest.approx(0.1)


@pytest.mark.parametrize("sign", [1, -1])
def test_beside_a_winner_it_ends_at_zero(sign):
    called = interval(BETTER if sign > 0 else WORSE, sign * 0.14)
    low, high = sorted(sign * end for end in called)
    open_low, open_high = interval(OPEN, 0.14)
    assert open_low < 0.0 == low
    assert high == open_high


def test_beside_a_tie_it_ends_at_the_margin():
    assert interval(TIE, 0.02) == (-MARGIN, MARGIN)
    low, high = interval(OPEN, 0.02)
    assert low < -MARGIN
    assert high > MARGIN


def test_tasks_count_with_the_squares_of_their_weights_in_a_variance():
    names = tuple(f"q{number}" for number in range(30))
    tasks = (TaskSpec("a", names, weight=3.0), TaskSpec("b", names, weight=1.0))
    board = Board(replace(make_spec(2, 1), tasks=tasks))
    block = ContrastBlock(*np.reshape((0.2, 0.01, 0.02, 0.03, 0.04, 12, 0.1, np.nan), (-1, 1, 1)))
    other = ContrastBlock(*np.reshape((0.4, 0.05, 0.06, 0.07, 0.08, 10, 0.3, np.nan), (-1, 1, 1)))
    found = board.combine([block, other])
    values = [getattr(found, name).item() for name in ContrastBlock._fields[:-1]]
    square = 0.75**2, 0.25**2
    expected = [
        square[0] * one + square[1] * two
        for one, two in zip((0.01, 0.02, 0.03, 0.04), (0.05, 0.06, 0.07, 0.08), strict=True)
    ]
    assert values == pytest.approx([0.25, *expected, 10, 0.15])
