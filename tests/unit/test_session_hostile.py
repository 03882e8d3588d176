"""Degenerate outcomes, weights, targets and logs: never a warning, a NaN, or a silent stop."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ReferenceSpec

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        yield


def assert_finite(session):
    """Check that no figure that is shown is NaN or infinite."""
    results = session.results()
    for line in (*results.models, *results.pairs):
        values = (getattr(line, name) for name in line.__slots__)
        assert all(math.isfinite(value) for value in values if isinstance(value, float)), line


class TestNoSpreadAtAll:
    """Every answer of a model is the same: the estimated standard deviation of its trials is 0."""

    @pytest.mark.parametrize("rule", ["anytime", "exact", "zscore"])
    @pytest.mark.parametrize("category", [0, 1])
    def test_equal_models_get_no_winner_under_any_rule(self, rule, category):
        session = drive(Session(make_spec(2, 30, rule=rule, max_passes=3)), lambda request: category)
        assert session.stopped.reason == "max_passes"
        assert calls(session) == []
        assert_finite(session)

    @pytest.mark.parametrize("rule", ["anytime", "exact", "zscore"])
    def test_all_right_beats_all_wrong_under_every_rule(self, rule):
        session = drive(
            Session(make_spec(2, 30, rule=rule, max_passes=3)), lambda request: int(request.key.model == "m0")
        )
        assert [call[1] for call in calls(session)] == ["better"]
        assert_finite(session)

    @pytest.mark.parametrize(("value", "verdict"), [(0.0, "better"), (1.0, "open")])
    def test_a_number_at_the_end_of_the_scale(self, value, verdict):
        spec = make_spec(2, 30, goal="threshold", value=value, max_passes=3)
        session = drive(Session(spec), lambda request: 1)
        assert {pair.verdict for pair in session.results().pairs} == {verdict}
        assert_finite(session)


class TestManyTrials:
    def test_a_reference_with_a_million_trials_of_one_question(self):
        counts = np.zeros((30, 2), dtype=np.int64)
        counts[0] = MILLION // 4, 3 * MILLION // 4
        counts[1:, 1] = 2
        spec = make_spec(2, 30, equivalence=0.1, max_passes=30)
        session = Session(replace(spec, references=(ReferenceSpec("old", {"t": counts}),)))
        drive(session, coin((0.9, 0.4)))
        line = session.results().models[2]
        assert line.trials == MILLION + 58
        assert line.score == pytest.approx((0.75 + 29) / 30)
        assert_finite(session)
