"""The health of a server: rolling statistics, and when it counts as gone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.engine.health import KEPT, SEVERAL, HealthMonitor, Presence
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.store.records import EndpointHealth
from adaptive_eval.trial import Completion, Usage

# Rolling statistics, gates and clients.


def monitor():
    return HealthMonitor("a", "http://scripted/v1")


def answer(latency=1.0, tokens=15):
    return Completion("x", "stop", Usage(10, tokens - 10) if tokens else Usage(), latency=latency)


def test_before_the_first_answer():
    rates = {"answered": 0, "requests_per_second": 0.0, "tokens_per_second": 0.0, "p50": None, "p95": None}
    health = EndpointHealth("a", "http://scripted/v1", in_flight=3, limit=8, **rates)
    assert monitor().health(now=100.0, in_flight=3, limit=8) == health


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
    assert len(watched._recent) == KEPT


# When a server counts as gone, when it is asked whether it is back, and what it gets then.


def failure(kind):
    return TransientEndpointError(f"scripted {kind}", kind=kind)


@pytest.mark.parametrize("kind", ["connection", "dropped"])
def test_a_lost_connection_takes_it_out_at_once(kind):
    presence = Presence()
    assert presence.failed(failure(kind), 1, now=5.0)
    assert (presence.state, presence.out_since, presence.reason) == ("out", 5.0, f"scripted {kind}")
    assert not presence.failed(failure(kind), 2, now=6.0)
    assert presence.out_since == 5.0


@pytest.mark.parametrize("kind", ["server", "timeout", "malformed"])
def test_errors_of_many_trials_in_a_row_take_it_out(kind):
    presence = Presence()
    went = [presence.failed(failure(kind), trial, now=0.0) for trial in range(SEVERAL)]
    assert went == [False] * (SEVERAL - 1) + [True]


def test_one_question_that_it_cannot_answer_does_not():
    presence = Presence()
    assert not any(presence.failed(failure("server"), "the same", now=0.0) for _ in range(100))
    assert presence.state == "in"


def test_an_answer_in_between_starts_the_count_anew():
    presence = Presence()
    for trial in range(100):
        if trial % (SEVERAL - 1) == 0:
            presence.answered()
        assert not presence.failed(failure("server"), trial, now=0.0)


@pytest.mark.parametrize("kind", ["rate_limit", "aborted"])
def test_a_server_that_speaks_is_there(kind):
    presence = Presence()
    assert not any(presence.failed(failure(kind), trial, now=0.0) for trial in range(100))


def test_waits_between_probes():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=0.0)
    waits = []
    for _ in range(8):
        waits.append(presence.probe_wait)
        presence.probed(there=False)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    for _ in range(2_000):  # for most of a day
        presence.probed(there=False)
    assert presence.probe_wait == 30.0


def test_a_server_that_only_seems_to_be_back_is_probed_ever_less_often():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=10.0)
    waits = []
    for trial in range(5):
        waits.append(presence.probe_wait)
        presence.probed(there=True)
        assert presence.state == "probation"
        assert presence.failed(failure("server"), trial, now=20.0)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert presence.out_since == 10.0


def test_its_first_answer_ends_the_trial():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=10.0)
    presence.probed(there=True)
    presence.answered()
    assert (presence.state, presence.out_since, presence.probe_wait) == ("in", None, 0.0)
    assert not presence.failed(failure("server"), 1, now=20.0)


def test_answers_that_were_under_way_do_not_bring_it_back():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=10.0)
    presence.answered()
    assert presence.state == "out"


def test_one_that_refuses_stays_away():
    presence = Presence()
    presence.refused(failure("auth"))
    presence.probed(there=True)
    presence.answered()
    assert presence.state == "refused"
    assert not presence.usable


def test_the_pace_of_a_server_is_that_of_the_answers_that_are_remembered():
    """More of them a minute than are kept: over the time in which those came, not over the whole minute."""
    busy, pace = monitor(), 2 * KEPT / 40.0
    for number in range(2 * KEPT):
        busy.answered(answer(tokens=15), now=number / pace)
    health = busy.health(now=40.0, in_flight=0, limit=8)
    assert health.requests_per_second == pytest.approx(pace, rel=0.01)
    assert health.tokens_per_second == pytest.approx(15 * pace, rel=0.01)
