"""Limits of models and servers, under an owned clock: all hold at once."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_runs import elapsed, run
from scripted import Scene, ScoreWithin, ScriptedEndpoint, broken, busy, vanished

from adaptive_eval.core.results import Forecast, Range
from adaptive_eval.engine.limits import (
    MINUTE,
    BatchRounds,
    FixedConcurrency,
    Rates,
    ServerLimits,
    SlidingWindow,
)
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.trial import Usage

# Limits of models and of the servers that they share, under an owned clock: all hold at once.


SHARED = "http://shared/v1"


def most_in_a_minute(times, amounts=None):
    """Return the most that any 60 seconds hold, beginning with each of `times`."""
    amounts = amounts or [1] * len(times)
    events = list(zip(times, amounts, strict=True))
    return max(sum(n for at, n in events if start <= at < start + 60.0 - 1e-5) for start in times)


def shared(scene, *models):
    """Put models behind one server, and return how many requests it has at once, when asked."""
    load = {"now": 0, "most": 0}
    for model in models:
        endpoint = scene.endpoints[model]
        endpoint.url = SHARED
        inner = endpoint.complete

        async def complete(messages, *, seed, inner=inner):
            load["now"] += 1
            load["most"] = max(load["most"], load["now"])
            try:
                return await inner(messages, seed=seed)
            finally:
                load["now"] -= 1

        endpoint.complete = complete
    return load


# Concurrency


def test_models_that_share_a_server_share_its_places():
    scene = Scene(
        steps={"a": 60, "b": 60, "c": 60}, concurrency=20, servers={SHARED: ServerLimits(FixedConcurrency(6))}
    )
    load = shared(scene, "a", "b", "c")
    _, seconds = elapsed(scene)
    assert load["most"] == 6
    # All places are used to the end, and no model starves.
    assert seconds == pytest.approx(180 / 6, abs=3.0)
    for model in "abc":
        calls = [at for at, _ in scene.endpoints[model].calls]
        assert calls[len(calls) // 2] == pytest.approx(15.0, abs=4.0)


def test_servers_of_a_pool_have_limits_of_their_own():
    scene = Scene(
        steps={"a": 100},
        concurrency=20,
        others={"a": [ScriptedEndpoint(url="http://small/v1")]},
        servers={"http://small/v1": ServerLimits(FixedConcurrency(3))},
    )
    run(scene)
    large, small = scene.pool("a")
    assert small.most_in_flight == 3
    assert large.most_in_flight == 17


def test_a_batch_may_take_hours_and_is_as_large_as_the_forecast_says():
    scene = Scene(
        steps={"a": 100},
        concurrency=BatchRounds(start=40),
        scripts={"a": lambda step, attempt: 1.0 if step <= 40 else 100.0},
    )
    scene.controller.resolve_after = 41
    results, few = scene.controller.results, Range(50.0, 60.0, 70.0)
    scene.controller.results = lambda: replace(results(), forecast=Forecast(0.9, few, few, None, ()))
    _, seconds = elapsed(scene)
    assert seconds > 100.0
    assert len(scene.recorder.outcomes) == len(scene.recorder.launched) == 90


# Requests and tokens a minute


def test_requests_a_minute():
    scene = Scene(steps={"a": 400}, concurrency=64, rates={"a": RateLimit(requests_per_minute=120)})
    _, seconds = elapsed(scene)
    calls = [at for at, _ in scene.endpoints["a"].calls]
    assert most_in_a_minute(calls) <= 120
    # 400 at 120 a minute take 200 s, less the last ones.
    assert seconds == pytest.approx(200.0, abs=2.0)


@pytest.mark.parametrize("at", ["model", "server"])
def test_tokens_a_minute_hold_whatever_the_answers_turn_out_to_be(at):
    def usage(step):
        return Usage(20, 80 if step % 5 == 0 else 5)

    scene = Scene(
        steps={"a": 300},
        concurrency=64,
        most_tokens=100,
        scripts={"a": lambda step, attempt: 1.0 + step % 7},
    )
    limit = RateLimit(tokens_per_minute=2000)
    if at == "model":
        scene.rates = {"a": limit}
    else:
        scene.servers = {"http://a/v1": ServerLimits(rate=limit)}
    scene.endpoints["a"].usage = usage
    _, seconds = elapsed(scene)
    ends = scene.endpoints["a"].ends
    assert most_in_a_minute([at for at, _ in ends], [tokens for _, tokens in ends]) <= 2000
    # 300 answers of 40 tokens on average: six minutes' worth; what was reserved and not used is given back.
    assert seconds <= 6 * 60 + 60


@pytest.mark.parametrize("billed", [True, False])
def test_a_failed_request_counts_with_all_it_could_have_taken_if_it_may_be_billed(billed):
    error = vanished() if billed else broken()
    scene = Scene(
        steps={"a": 60},
        concurrency=64,
        most_tokens=100,
        rates={"a": RateLimit(tokens_per_minute=2000)},
        scripts={"a": lambda step, attempt: (1.0, error) if attempt == 1 and step % 3 else 1.0},
    )
    _, seconds = elapsed(scene)
    assert (seconds < 60.0) is not billed
    first = {step: at for at, step in reversed(scene.endpoints["a"].calls) if step % 3}
    assert len(first) == 40
    assert (most_in_a_minute(sorted(first.values())) <= 20) is billed


def test_an_answer_that_reports_no_tokens_counts_with_all_it_could_have_taken():
    scene = Scene(steps={"a": 45}, concurrency=64, most_tokens=100, rates={"a": RateLimit(None, 2000)})
    scene.endpoints["a"].usage = lambda step: Usage()
    run(scene)
    assert most_in_a_minute([at for at, _ in scene.endpoints["a"].calls]) == 20


def test_an_answer_that_says_that_nothing_is_left_is_obeyed():
    scene = Scene(steps={"a": 40}, concurrency=4)
    scene.endpoints["a"].pause = lambda step: {5: 30.0, 7: 0.5}.get(step, 0.0)
    run(scene)
    calls = sorted(at for at, _ in scene.endpoints["a"].calls)
    # Steps 4 to 7 end at 2.
    assert not any(2.0 <= at < 32.0 for at in calls)
    assert any(at == pytest.approx(32.0) for at in calls)


def test_a_silence_ends_when_it_ends():
    """No tick decides when the next request goes out."""
    scene = Scene(steps={"a": 2}, concurrency=1)
    scene.endpoints["a"].pause = lambda step: 0.25
    run(scene)
    assert [at for at, _ in scene.endpoints["a"].calls] == pytest.approx([0.0, 1.25])


@pytest.mark.parametrize("after_failure", [False, True])
def test_no_silence_is_longer_than_a_trial_would_wait(after_failure):
    scene = Scene(steps={"a": 2}, concurrency=1, retry=RetryPolicy(total_wait=20.0))
    if after_failure:
        scene.endpoints["a"].script = lambda step, attempt: busy(600.0) if attempt == 1 else 1.0
    else:
        scene.endpoints["a"].pause = lambda step: 600.0
    _, seconds = elapsed(scene)
    assert seconds == pytest.approx(42.0 if after_failure else 22.0)
    assert not scene.missing()


@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    concurrency=st.integers(1, 20),
    server=st.integers(1, 12),
    requests=st.none() | st.integers(20, 300),
    tokens=st.none() | st.integers(100, 3000),
)
def test_all_limits_hold_at_once(seed, concurrency, server, requests, tokens):
    def draw(*what):
        return hash((seed, *what)) % 1000 / 1000

    def script(number):
        return lambda step, attempt: (
            (draw(number, step), broken()) if draw(number, step, attempt) < 0.1 else 4 * draw(step, number)
        )

    scene = Scene(
        steps={"a": 50, "b": 50},
        concurrency=concurrency,
        retry=RetryPolicy(attempts=8),
        jitter=lambda: 0.5,
        most_tokens=60,
        scripts={"a": script(1), "b": script(2)},
        servers={SHARED: ServerLimits(FixedConcurrency(server), RateLimit(requests, tokens))},
    )
    for number, model in enumerate("ab"):
        scene.endpoints[model].usage = lambda step, number=number: Usage(20, int(40 * draw(number, step, 9)))
    load = shared(scene, "a", "b")
    run(scene)
    assert load["most"] <= server
    assert not scene.missing()
    calls = sorted(at for endpoint in scene.endpoints.values() for at, _ in endpoint.calls)
    ends = sorted(end for endpoint in scene.endpoints.values() for end in endpoint.ends)
    if requests is not None:
        assert most_in_a_minute(calls) <= requests
    if tokens is not None:
        assert most_in_a_minute([at for at, _ in ends], [used for _, used in ends]) <= tokens


# Requests and tokens a minute: held in every minute, as a property; and nothing is wasted.


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
    rates.start(100, now=200.0)
    rates.end(100, 900, now=200.0)  # more than it could take
    assert rates.free(200, now=200.0) == 0


def test_no_more_is_asked_than_the_scorer_can_afford_and_queued_trials_count():
    scene = Scene(
        steps={"a": 40, "b": 40},
        retry=RetryPolicy(attempts=1),
        scripts={"a": lambda step, attempt: busy(retry_after=50.0) if attempt == 1 else 1.0},
        scoring=ScoreWithin(10),
    )
    scene.allowance = scene.scoring
    verdict, seconds = elapsed(scene)
    assert (verdict.reason, verdict.evidence) == ("budget", {"left": 1})  # one for each, or for none
    assert Counter(key.model for key in scene.recorder.outcomes) == {"a": 4, "b": 5}
    assert seconds == pytest.approx(51.0)
