"""What counts as wrong, and how rates, costs and tables are made of verdicts."""

import numpy as np
import pytest

from adaptive_eval.simulate import Rate, SimulationResult


def make_result(verdict, gap, **parts):
    verdict = np.array(verdict, dtype=np.int8)
    runs, pairs = verdict.shape
    values = {
        "models": ("a", "b"),
        "pairs": tuple((f"x{number}", f"y{number}") for number in range(pairs)),
        "truth": np.array([0.5, 0.4]),
        "gap": np.array(gap, dtype=float),
        "margin": None,
        "verdict": verdict,
        "decided_at": np.where(verdict == 0, -1, 30),
        "trials": np.full((runs, 2), 40),
        "score": np.full((runs, 2), 0.5),
        "steps": np.full(runs, 40),
        "time": np.full(runs, 40.0),
        "reason": ("resolved",) * runs,
        "exhausted": np.zeros((runs, 2), dtype=bool),
        "one_by_one": True,
        **parts,
    }
    return SimulationResult(**values)


class TestErrors:
    def test_a_winner_against_the_truth_is_wrong(self):
        result = make_result([[1, -1, 1, -1]], gap=[0.1, 0.1, -0.1, -0.1])
        assert result.wrong.tolist() == [[False, True, True, False]]

    def test_a_tie_is_wrong_from_the_margin_on(self):
        result = make_result([[2, 2, 2, 0]], gap=[0.05, 0.049, -0.3, 0.3], margin=0.05)
        assert result.wrong_tie.tolist() == [[True, False, True, False]]
        assert result.wrong_ties == Rate(2, 3)

    def test_family_wise_counts_runs(self):
        result = make_result([[1, 1, 0], [-1, 1, 0], [-1, -1, 0]], gap=[0.0, 0.1, 0.1])
        assert result.family_wise == Rate(3, 3)
        assert result.wrong_calls == Rate(4, 9)


class TestRate:
    def test_interval_covers_the_share_and_needs_no_events(self):
        assert Rate(0, 60).interval() == pytest.approx((0.0, 0.0596), abs=1e-4)
        low, high = Rate(5, 50).interval()
        assert low < 0.1 < high
        assert Rate(0, 0).interval() == (0.0, 1.0)
        assert np.isnan(Rate(0, 0).share)

    def test_interval_covers_at_least_as_often_as_it_says(self):
        from scipy.stats import binom

        for p in (0.01, 0.05, 0.3):
            covered = 0.0
            for count in range(101):
                low, high = Rate(count, 100).interval(0.9)
                covered += binom.pmf(count, 100, p) * (low <= p <= high)
            assert covered >= 0.9


class TestTrialsAndTables:
    def test_uniform_walks_everyone_to_the_stop(self):
        result = make_result([[1], [0]], gap=[0.1], steps=np.array([40, 7]))
        assert result.uniform_total.tolist() == [80, 14]
        in_flight = make_result([[1]], gap=[0.1], one_by_one=False)
        with pytest.raises(ValueError, match="must be simulated by itself"):
            _ = in_flight.uniform_total

    def test_tables_are_plain_columns_of_equal_length(self):
        result = make_result([[1, 2], [0, 1]], gap=[0.1, 0.0], margin=0.05)
        for table, rows in (("replicates", 2), ("pairs", 2), ("models", 2)):
            columns = result.to_columns(table)
            assert {len(column) for column in columns.values()} == {rows}
            assert all(type(value) in (int, float, str) for column in columns.values() for value in column)
            assert result.to_rows(table)[0] == {name: column[0] for name, column in columns.items()}
        assert result.to_columns("replicates")["wrong_winners"] == [0, 1]
        assert result.to_columns("pairs")["tie"] == [0.0, 0.5]
        assert result.reasons == {"resolved": 2}
