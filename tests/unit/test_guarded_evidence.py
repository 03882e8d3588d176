"""Evidence is shown no further than it is guarded: p-values at least the strictest level that is read."""

import csv
import io
from math import log

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.views.files import pairs_csv
from adaptive_eval.views.sentences import evidence_words
from adaptive_eval.views.summary import RunSummary
from scorio.sequential import board, compare, score


def test_p_values_are_at_least_the_level_and_e_values_are_at_most_one_over_it():
    rng = np.random.default_rng(1)
    A, B, C = (rng.random((3, 200, 2)) < [[[0.95]], [[0.3]], [[0.32]]]).astype(int)
    found = compare(A, B)
    assert (found.p_value, found.e_value) == (0.05, 20.0)
    assert "largest e-value ≥ 20)" in str(found)
    assert found.rows()["log_e"].max() == pytest.approx(log(20))
    assert compare(A, B, confidence=0.999).p_value == pytest.approx(0.001)
    alike = compare(B, C)
    assert alike.p_value > 0.05
    assert "≥" not in str(alike).split("\n")[0]
    assert (score(A, against=0.5).p_value, score(A, against=0.5).e_value) == (0.05, 20.0)
    table = board({"a": A, "b": B, "c": C}).p_values
    assert table[0, 1] == table[1, 0] == pytest.approx(0.05 / 3)  # the strictest level that Holm reads
    assert table[1, 2] > 0.05


def test_a_report_shows_evidence_up_to_the_strictest_level():
    session = drive(Session(make_spec(3, 200, max_passes=1)), coin((1.0, 0.5, 0.45), spread=0.0), slots=90)
    pairs = {(one.first, one.second): one for one in session.results().pairs}
    most = log(3 / 0.05)
    stored = [one.evidence for one in session.decisions if one.kind == "pair"]
    assert max(one["statistic"] for one in stored) == pytest.approx(most)
    for one in stored:
        assert one.get("statistic_beyond", False) is (one["statistic"] > most - 1e-9)
    shown = [one for one in pairs.values() if one.evidence_beyond]
    assert shown
    for one in pairs.values():
        assert one.evidence <= most + 1e-9
        assert evidence_words(one).startswith("≥ ") == one.evidence_beyond
    results = session.results()
    rows = list(csv.DictReader(io.StringIO(pairs_csv(RunSummary("run", "stopped", results)))))
    assert sum(row["evidence_beyond"] == "true" for row in rows) == len(shown)
