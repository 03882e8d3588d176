"""Limits of models and servers, under an owned clock: all hold at once."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scene import Scene, played
from scripted import Chance, ScoreWithin, ScriptedEndpoint, broken, busy, fails, vanished

from adaptive_eval.core.results import ModelResult, Range, RunForecast
from adaptive_eval.engine.clock import MINUTE
from adaptive_eval.engine.limits import (
    BatchRounds,
    RateLimiter,
    SlidingWindow,
)
from adaptive_eval.options.limit_options import RateLimit, SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Usage

# Limits of models and of the servers that they share, under an owned clock: all hold at once.


SHARED = "http://shared/v1"


def most_in_a_minute(times, amounts=None):
    """Return the most that any 60 seconds hold, beginning with each of `times`."""
    amounts = amounts or [1] * len(times)
    events = list(zip(times, amounts, strict=True))
    return max(sum(n for at, n in events if start <= at < start + 60.0 - 1e-5) for start in times)


def shared(scene):
    """Put all models behind one server, and return how many requests it has at once, when asked."""
    load = {"now": 0, "most": 0}
    for endpoint in scene.endpoints.values():
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
    limits = SharedLimits(concurrency=6)
    scene = Scene(dict.fromkeys("abc", 60), concurrency=20, servers={SHARED: limits})
    load = shared(scene)
    scene.play()
    assert load["most"] == 6
    # All places are used to the end, and no model starves.
    assert scene.seconds == pytest.approx(180 / 6, abs=3.0)
    for endpoint in scene.endpoints.values():
        assert endpoint.starts[len(endpoint.starts) // 2] == pytest.approx(15.0, abs=4.0)


def test_servers_of_a_pool_have_limits_of_their_own():
    small = ScriptedEndpoint(url="http://small/v1")
    limits = {small.url: SharedLimits(concurrency=3)}
    scene = played(100, concurrency=20, others=[small], servers=limits)
    assert small.most_in_flight == 3
    assert scene.server.most_in_flight == 17


def test_a_batch_may_take_hours_and_its_models_share_what_the_forecast_says():
    """A model that is not asked any more gets no share, and a server that is silent is not given up."""
    quick = ScriptedEndpoint(url="http://quick/v1")
    long = {"script": lambda step, attempt: 1.0 if step < 40 else 100.0}
    scene = Scene({"a": 100, "b": 90}, concurrency=BatchRounds(start=40), others=[quick], **long)
    results, few = scene.controller.results, Range(50.0, 60.0, 70.0)
    states = {"a": "active", "b": "active", "c": "retired"}.items()
    lines = [ModelResult(*one, *[0] * 5, *[None] * 5, 1, 1, 1, 0, 0, None) for one in states]
    forecast = RunForecast(0.9, few, few, None, ())
    scene.controller.results = lambda: replace(results(), models=lines, forecast=forecast)
    scene.play()
    assert scene.failed == []
    assert Counter(scene.endpoints["b"].starts) == {0.0: 40, 1.0: 25, 101.0: 25}


# Requests and tokens a minute


def test_requests_a_minute():
    scene = played(400, concurrency=64, rates={"a": RateLimit(requests_per_minute=120)})
    assert most_in_a_minute(scene.server.starts) <= 120
    # 400 at 120 a minute take 200 s, less the last ones.
    assert scene.seconds == pytest.approx(200.0, abs=2.0)


TOKENS = RateLimit(tokens_per_minute=2000)
OF_MODEL = {"concurrency": 64, "most_tokens": 100, "rates": {"a": TOKENS}}
OF_SERVER = {
    "concurrency": 64,
    "most_tokens": 100,
    "servers": {"http://a/v1": SharedLimits(rate_limit=TOKENS)},
}


@pytest.mark.parametrize("limits", [OF_MODEL, OF_SERVER], ids=["model", "server"])
def test_tokens_a_minute_hold_whatever_the_answers_turn_out_to_be(limits):
    scene = Scene(300, lambda step, attempt: 1.0 + step % 7, **limits)
    scene.server.usage = lambda step: Usage(20, 80 if step % 5 == 0 else 5)
    scene.play()
    ends = scene.server.ends
    assert most_in_a_minute([at for at, _ in ends], [tokens for _, tokens in ends]) <= 2000
    # 300 answers of 40 tokens on average: six minutes' worth; what was reserved and not used is given back.
    assert scene.seconds <= 6 * 60 + 60


@pytest.mark.parametrize(("error", "billed"), [(vanished(), True), (broken(), False)])
def test_a_failed_request_counts_with_all_it_could_have_taken_if_it_may_be_billed(error, billed):
    scene = played(60, lambda step, attempt: (1.0, error if attempt == 1 and step % 3 else None), **OF_MODEL)
    assert (scene.seconds < 60.0) is not billed
    first = {step: at for at, step in reversed(scene.server.calls) if step % 3}
    assert len(first) == 40
    assert (most_in_a_minute(sorted(first.values())) <= 20) is billed


def test_an_answer_that_reports_no_tokens_counts_with_all_it_could_have_taken():
    scene = Scene(45, **OF_MODEL)
    scene.server.usage = lambda step: Usage()
    scene.play()
    assert most_in_a_minute(scene.server.starts) == 20


@pytest.mark.parametrize(("answers", "words"), [(1, "for an answer;"), (2, "for 2 answers;")])
def test_answers_that_report_no_tokens_are_told(answers, words):
    scene = Scene(answers)
    scene.server.usage = lambda step: Usage()
    scene.play()
    (told,) = scene.recorder.of("snapshot")[-1].results["warnings"]
    assert words in str(told)


def test_an_answer_that_says_that_nothing_is_left_is_obeyed():
    scene = Scene(40)
    scene.server.pause = lambda step: {4: 30.0, 5: 0.5, 6: 0.5, 7: 0.5}.get(step, 0.0)
    scene.play()
    # Steps 4 to 7 end at 2.
    assert min(at for at in scene.server.starts if at >= 2.0) == pytest.approx(32.0)


def test_a_silence_ends_when_it_ends():
    """No tick decides when the next request goes out."""
    scene = Scene(2, concurrency=1)
    scene.server.pause = lambda step: 0.25
    scene.play()
    assert scene.server.starts == pytest.approx([0.0, 1.25])


@pytest.mark.parametrize(
    ("script", "pause", "seconds"), [(fails(busy(600.0)), 0.0, 42.0), (1.0, 600.0, 22.0)]
)
def test_no_silence_is_longer_than_a_trial_would_wait(script, pause, seconds):
    scene = Scene(2, script, 1, retry=RetryConfig(max_seconds=20.0))
    scene.server.pause = lambda step: pause
    scene.play()
    assert scene.seconds == pytest.approx(seconds)
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
    draw = Chance(seed)
    scene = Scene(
        {"a": 50, "b": 50},
        concurrency=concurrency,
        retry=RetryConfig(attempts=8),
        jitter=lambda: 0.5,
        most_tokens=60,
        scripts={"a": draw.unsteady(1), "b": draw.unsteady(2)},
        servers={SHARED: SharedLimits(concurrency=server, rate_limit=RateLimit(requests, tokens))},
    )
    for number, endpoint in enumerate(scene.endpoints.values()):
        endpoint.usage = lambda step, number=number: Usage(20, int(40 * draw(number, step, 9)))
    load = shared(scene)
    scene.play()
    assert load["most"] <= server
    assert not scene.missing()
    calls = sorted(at for endpoint in scene.endpoints.values() for at in endpoint.starts)
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
    rates, now, sent = RateLimiter(RateLimit(requests_per_minute=per_minute)), start, []
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
    rates = RateLimiter(RateLimit(tokens_per_minute=1000))
    rates.start(400, now=0.0)
    assert rates.free(5000, now=0.0) == 0
    rates.end(400, 100, now=2.0)
    assert rates.free_at(5000, now=2.0) == 62.0
    assert rates.free(5000, now=62.0) == 1
    rates.start(100, now=200.0)
    rates.end(100, 900, now=200.0)  # more than it could take
    assert rates.free(200, now=200.0) == 0


def test_no_more_is_asked_than_the_scorer_can_afford_and_queued_trials_count():
    scoring, script = ScoreWithin(10), fails(busy(retry_after=50.0))
    retry, scorer = RetryConfig(attempts=1), {"scoring": scoring, "scoring_budget": scoring}
    scene = played({"a": 40, "b": 40}, scripts={"a": script}, retry=retry, **scorer)
    assert scene.verdict.reason == "budget"
    assert scene.verdict.evidence == {"left": 1}  # one for each, or for none
    assert Counter(key.model for key in scene.outcomes) == {"a": 4, "b": 5}
    assert scene.seconds == pytest.approx(51.0)
