"""Signals as structure of arrays, their ranges, and how they are derived."""

import numpy as np
import pytest

from scorio.categorical import (
    Signals,
    verifier_probabilities,
)


def test_arrays_are_float_copies_and_read_only():
    correct = np.array([1, 0, 1])
    signals = Signals(is_correct=correct, has_box=[True, False, None])
    correct[0] = 0
    assert signals["is_correct"].tolist() == [1.0, 0.0, 1.0]
    assert np.isnan(signals["has_box"][2])
    assert signals.names == {"is_correct", "has_box"}
    assert "has_box" in signals
    assert "token_ratio" not in signals
    with pytest.raises(ValueError, match="read-only"):
        signals["is_correct"][0] = 0.0
    with pytest.raises(KeyError, match="'token_ratio' was not recorded; recorded: has_box, is_correct"):
        signals["token_ratio"]


def test_records():
    records = [
        {"is_correct": True, "has_box": 1, "verifier_c": None, "judge": 0.5, "finish_reason": "stop"},
        {"is_correct": False, "judge": np.float32(0.25)},
        {"is_correct": None, "has_box": 0},
        {},
    ]
    signals = Signals.from_records(records, shape=(2, 2))
    assert signals.names == {"is_correct", "has_box"}
    np.testing.assert_array_equal(signals["is_correct"], [[1, 0], [np.nan, np.nan]])
    own = Signals.from_records(records[:2], names=["judge", "is_correct"])
    assert own["judge"].tolist() == [0.5, 0.25]


def test_verifier_probabilities_are_a_calibrated_softmax():
    logits, baseline = np.array([[3.0, 1.0, 0.0], [900.0, 0.0, -900.0]]), np.array([1.0, 1.0, 0.0])
    p = verifier_probabilities(logits, baseline, temperature=2.0)
    np.testing.assert_allclose(p[0], np.exp([1, 0, 0]) / np.exp([1, 0, 0]).sum(), rtol=1e-14)
    np.testing.assert_allclose(p.sum(-1), 1.0, rtol=1e-14)
    assert p[1, 0] == 1.0
