"""Requests and tokens a minute: held in every minute, as a property; and nothing is wasted."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_eval.engine.limits import MINUTE, Rates, SlidingWindow
from adaptive_eval.options.limit_options import RateLimit


@settings(max_examples=200)
@given(limit=st.integers(1, 50), waits=st.lists(st.floats(0.0, 30.0), min_size=1, max_size=80))
def test_no_span_has_more_than_the_limit(limit, waits):
    window, now, taken = SlidingWindow(limit, 60.0), 0.0, []
    for wait in waits:
        now += wait
        if window.free(now) >= 1:
            window.use(1, reserved=0, now=now)
            taken.append(now)
    for at in taken:
        assert sum(at <= other < at + 60.0 - 1e-5 for other in taken) <= limit


@given(
    limit=st.integers(1, 100),
    uses=st.lists(st.tuples(st.floats(0.0, 20.0), st.integers(1, 60)), max_size=20),
    amount=st.integers(1, 100),
)
def test_the_moment_it_names_is_the_first_at_which_there_is_room(limit, uses, amount):
    window, now = SlidingWindow(limit, 60.0), 0.0
    for wait, used in uses:
        now += wait
        window.use(used, reserved=0, now=now)
    at = window.free_at(amount, now)
    if amount > limit:
        assert at == math.inf
        return
    if at > now + 1e-5:
        assert window.free(at - 1e-5) < amount
    assert window.free(at) >= amount


def test_what_is_in_use_is_waited_for():
    window = SlidingWindow(100, 60.0)
    window.reserve(100)
    assert window.free_at(1, now=5.0) == math.inf
    window.use(40, reserved=100, now=9.0)
    assert window.free_at(60, now=9.0) == 9.0
    assert window.free_at(61, now=9.0) == 69.0


@settings(max_examples=100)
@given(per_minute=st.integers(1, 2000), start=st.floats(0.0, 100.0))
def test_requests_go_out_evenly_and_all_of_them(per_minute, start):
    """Somebody who sends whenever it is allowed sends what is allowed, and never more in a minute."""
    rates, now, sent = Rates(RateLimit(requests_per_minute=per_minute)), start, []
    while now < start + 3 * MINUTE:
        if rates.free(0, now=now) >= 1:
            rates.start(0, now=now)
            sent.append(now)
        else:
            now = rates.free_at(0, now=now)
    burst = math.ceil(per_minute / 60)
    for first in range(len(sent) - per_minute):
        assert sent[first + per_minute] - sent[first] >= MINUTE - 1e-6
    for first in range(len(sent) - burst):
        assert sent[first + burst] - sent[first] >= min(1.0, MINUTE / per_minute) - 1e-6
    assert 3 * per_minute - burst <= len(sent) <= 3 * per_minute + burst


def test_a_request_that_could_take_more_than_a_minute_has_waits_until_it_is_alone():
    rates = Rates(RateLimit(tokens_per_minute=1000))
    rates.start(400, now=0.0)
    assert rates.free(5000, now=0.0) == 0
    rates.end(400, 100, now=2.0)
    assert rates.free_at(5000, now=2.0) == 62.0
    assert rates.free(5000, now=62.0) == 1


def test_without_limits_there_is_room_for_all():
    rates = Rates(RateLimit())
    assert rates.free(10**9, now=0.0) == math.inf
    assert rates.free_at(10**9, now=3.0) == 3.0


def test_memory_is_bounded_by_a_minute():
    rates = Rates(RateLimit(requests_per_minute=6000, tokens_per_minute=10**6))
    now = 0.0
    for _ in range(50_000):
        now = max(now, rates.free_at(10, now=now))
        rates.start(10, now=now)
        rates.end(10, 7, now=now)
    assert all(len(window._uses) <= 6000 for window in (*rates._requests, rates._tokens))
