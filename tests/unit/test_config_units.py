"""Counts and durations as people write them."""

from __future__ import annotations

import pytest

from adaptive_eval.options.section import parse_count, parse_seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (1, 1), (20000, 20000), ("20000", 20000), ("20_000", 20000), ("2k", 2000), ("2K", 2000),
        ("1.5k", 1500), ("50M", 50_000_000), ("0.5M", 500_000), ("3B", 3 * 10**9), ("3G", 3 * 10**9),
        (" 2 k ", 2000), (1e5, 100_000),
    ],
)  # fmt: skip
def test_counts(text, value):
    assert parse_count(text) == value


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (2.5, 2.5),
        ("90s", 90), ("30m", 1800), ("30min", 1800), ("2h", 7200), ("1h30m", 5400), ("1h 30m 5s", 5405),
        ("1d", 86400), ("1.5h", 5400), ("0.5s", 0.5), (" 2 h ", 7200),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_seconds(text) == seconds
