"""Rolling statistics, gates and clients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.engine.health import RECENT, HealthMonitor
from adaptive_eval.trial import Completion, Usage


def monitor():
    return HealthMonitor("a", "http://scripted/v1")


def answer(latency=1.0, tokens=15):
    return Completion("x", "stop", Usage(10, tokens - 10) if tokens else Usage(), latency=latency)


def test_before_the_first_answer():
    health = monitor().health(now=100.0, in_flight=3, limit=8)
    assert (health.model, health.endpoint, health.in_flight, health.limit) == (
        "a",
        "http://scripted/v1",
        3,
        8,
    )
    assert (health.answered, health.requests_per_second, health.tokens_per_second) == (0, 0.0, 0.0)
    assert (health.p50, health.p95) == (None, None)
    assert health.errors == {}


def test_rates_over_the_last_minute():
    watched = monitor()
    for second in range(600):
        for _ in range(3 if second < 500 else 1):
            watched.answered(answer(tokens=20), now=float(second))
    health = watched.health(now=600.0, in_flight=0, limit=8)
    assert health.answered == 500 * 3 + 100
    assert health.requests_per_second == pytest.approx(1.0, rel=0.05)
    assert health.tokens_per_second == pytest.approx(20.0, rel=0.05)


def test_what_is_older_than_a_minute_is_forgotten():
    watched = monitor()
    watched.answered(answer(latency=50.0), now=0.0)
    health = watched.health(now=61.0, in_flight=0, limit=8)
    assert (health.answered, health.requests_per_second, health.p50) == (1, 0.0, None)


@given(st.lists(st.floats(0.001, 3000.0), min_size=1, max_size=300))
def test_percentiles_are_those_of_the_answers(latencies):
    watched = monitor()
    for latency in latencies:
        watched.answered(answer(latency), now=5.0)
    health = watched.health(now=6.0, in_flight=0, limit=1)
    p50, p95 = np.percentile(latencies, [50, 95], method="inverted_cdf")
    assert health.p50 == pytest.approx(p50, rel=1e-9)
    assert health.p95 == pytest.approx(p95, rel=1e-9)


def test_memory_does_not_grow():
    watched = monitor()
    for number in range(200_000):
        watched.answered(answer(latency=0.1 + number % 1000), now=number / 100)
    assert len(watched._recent) == RECENT
