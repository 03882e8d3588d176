"""Pairs with missing answers, clusters and graded scores, against an independent implementation."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_sequential_conformance import read_pair

from scorio.sequential.rules import Anytime

GOLDEN = Path(__file__).parents[1] / "data" / "decision_reference.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "case", CASES, ids=lambda case: f"M{case['M']}-{len(case['weights'])}-{case['target']}"
)
@pytest.mark.parametrize("block", [1, 13, 10**6])
def test_every_number_is_that_of_the_definition(case, block):
    path = read_pair(case, block)
    statistic = Anytime(0.05, case["epsilon"]).statistic(
        path, np.zeros(path.difference.shape[1], dtype=bool)
    )[0]
    assert any(-1 in case[name] for name in "AB")
    for row in case["rows"]:
        at = row["t"] - 1
        assert path.questions[0, at] == row["c"]
        assert path.difference[0, at] == pytest.approx(row["D"], abs=1e-9)
        assert path.slack[0, at] == pytest.approx(row["slack"], abs=1e-9)
        assert path.variance[0, at] == pytest.approx(row["V"], rel=1e-9)
        expected = -np.inf if row["log_E"] is None else pytest.approx(row["log_E"], abs=1e-8)
        assert statistic[at] == expected
    assert any(row["log_E"] is not None for row in case["rows"])
