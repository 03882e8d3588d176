"""``concurrency: auto`` against servers of known make: it finds what they can take, and decides nothing."""

import heapq
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from owned_clock import run_owned
from scene import Scene
from scripted import ScriptedEndpoint, busy
from session_scripts import make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.engine.limits import AdaptiveConcurrency
from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.options.limit_options import RateLimit, SharedLimits
from adaptive_eval.trial import DISCARD_CAUSES, Score, Usage


@dataclass
class Driven:
    """What came of a limit that was driven: the limit after each answer, answers a second, refusals."""

    limits: list[int]
    rate: float
    refusals: int

    @property
    def settled(self):
        return self.limits[len(self.limits) // 3 :]


def drive(latency, answers=12_000, most=10**9):
    """Keep a server as busy as the limit allows; it takes `latency` of its load and the time, in seconds.

    It refuses above `most` in flight.
    """
    limit, clock = AdaptiveConcurrency(), 0.0
    out, limits, refusals, number = [], [], 0, 0
    while len(limits) < answers:
        while len(out) < limit.slots:
            number += 1
            spread = 0.8 + 0.4 * (number * 7919 % 101) / 101
            refused = len(out) >= most
            seconds = 0.05 if refused else spread * latency(len(out) + 1, clock)
            heapq.heappush(out, (clock + seconds, number, clock, refused))
        clock, _, sent, refused = heapq.heappop(out)
        if refused:
            refusals += 1
            limit.failed(busy(), sent_at=sent, now=clock)
        else:
            limit.answered(sent_at=sent, now=clock, tokens=100, in_flight=len(out) + 1)
            limits.append(limit.slots)
    return Driven(limits, answers / clock, refusals)


def test_a_server_with_a_queue_is_kept_busy_and_not_flooded():
    """It works on 40 at once; more only wait."""
    driven = drive(lambda load, now: max(1.0, load / 40))
    assert driven.rate >= 0.85 * 40
    assert min(driven.settled) >= 30
    assert max(driven.settled) <= 80


def test_the_queue_of_a_small_server_becomes_shorter():
    """It works on 4 at once, and the first 16 wait already."""
    driven = drive(lambda load, now: max(1.0, load / 4))
    assert driven.rate >= 0.95 * 4
    assert sorted(driven.settled)[len(driven.settled) // 2] <= 12


def test_a_server_that_refuses_above_its_limit_gets_less():
    driven = drive(lambda load, now: 1.0, most=24)
    assert max(driven.settled) <= 32
    assert driven.rate >= 0.6 * 24
    assert driven.refusals < 0.1 * 12_000


def test_others_on_the_server_make_it_step_back():
    """Answers take longer, and not because of more requests."""
    limit, now = AdaptiveConcurrency(start=16, most=16), 0.0
    for number in range(16 * 5):
        seconds = 1.0 if number < 16 * 4 else 2.0
        limit.answered(sent_at=now, now=now + seconds, tokens=100, in_flight=16)
        now += seconds
    assert limit.slots == 14


def test_answers_to_fewer_requests_than_it_allows_say_nothing_about_more():
    limit = AdaptiveConcurrency(start=16)
    for number in range(64):
        limit.answered(sent_at=number, now=number + 1.0, tokens=10, in_flight=4)
    assert limit.slots == 16


def test_failures_that_belong_together_count_once():
    limit = AdaptiveConcurrency(start=64)
    for number in range(64):
        limit.failed(busy(), sent_at=0.0, now=1.0 + number / 100)
    assert limit.slots == 32
    limit.failed(busy(), sent_at=5.0, now=6.0)
    assert limit.slots == 16


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_refusals_that_name_a_time_lower_the_limit_once_for_that_time_to_the_share_taken(share):
    limit, clock, limits = AdaptiveConcurrency(start=64), 0.0, []
    for number in range(4_000):
        clock += 0.005
        if number % 10 < 10 * share:
            limit.failed(busy(1.0), sent_at=clock - 0.02, now=clock)
        else:
            limit.answered(sent_at=clock - 0.02, now=clock, tokens=10, in_flight=4)
        limits.append(limit.slots)
    assert limits[100] >= 32, "one refusal in five is no reason to ask a few at a time"
    assert (limits[-1] == 1) == (share == 1.0)
    assert min(limits[1000:]) >= (16 if share < 1.0 else 1)


@pytest.mark.parametrize(
    ("kind", "status", "cut"),
    [
        ("rate_limit", 429, True),
        ("server", 503, True),
        ("timeout", None, True),
        ("server", 500, False),
        ("connection", None, False),
        ("malformed", 200, False),
    ],
)
def test_what_is_a_sign_of_overload(kind, status, cut):
    limit = AdaptiveConcurrency(start=16)
    limit.failed(TransientEndpointError("x", kind=kind, status=status), sent_at=0.0, now=1.0)
    assert limit.slots == (8 if cut else 16)


@given(
    events=st.lists(
        st.tuples(st.sampled_from("aaf"), st.floats(0.01, 50.0), st.integers(0, 2000)), max_size=300
    )
)
def test_it_stays_within_its_bounds_whatever_comes(events):
    limit, now = AdaptiveConcurrency(start=4, most=40), 0.0
    for what, seconds, number in events:
        now += seconds
        if what == "a":
            limit.answered(sent_at=now - seconds, now=now, tokens=number, in_flight=limit.slots)
        else:
            limit.failed(busy(), sent_at=now - seconds, now=now)
        assert 1 <= limit.slots <= 40


# The decisions


class ByCoin:
    """Gives each trial the score that its model and step have, in whatever order answers come."""

    async def score(self, request, completion):
        chance = {"a": 0.9, "b": 0.6, "c": 0.58, "d": 0.2}[request.key.model]
        return Score(int(hash((request.key.index, chance)) % 1000 / 1000 < chance), completion.text)


def decided(limit, make, family):
    """Run a real session over four models, asked as `make` and `limit` say; return its end and its pairs."""
    names = dict.fromkeys("abcd", 0)
    server = {"http://0/v1": SharedLimits(concurrency="auto")}
    scene = Scene(names, concurrency=limit, rates=dict.fromkeys(names, RateLimit(1500)), servers=server)
    spec = make_spec("abcd", 12, max_passes=8, equivalence=0.3, family=family)
    scene.controller = Session(replace(spec, redrawn=frozenset(DISCARD_CAUSES)))
    scene.scoring, scene.jitter, scene.fresh = ByCoin(), lambda: 0.5, True
    scene.pool = lambda model: [make(model, number) for number in range(2)]
    return run_owned(scene.unchecked()).reason, scene.controller.results().pairs


def verdicts(pairs):
    return [(pair.first, pair.second, pair.verdict) for pair in pairs]


def steps(pairs):
    return [pair.decided_at for pair in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("family", ["pair", "holm"])
def test_limits_pools_and_latencies_decide_nothing(family):
    """Steps are alike where a level falls with no other call; Holm's falls with calls that may come later."""

    def calm(name, number):
        return ScriptedEndpoint(lambda step, attempt: 1.0, url=f"http://{number}/v1")

    def wild(name, number):
        def script(step, attempt):
            draw = hash((ord(name), number, step, attempt)) % 1000 / 1000
            return (draw, busy(draw * 5)) if draw < 0.1 else 0.2 + 9 * draw**3

        def up(now):
            return number == 0 or int(now) // 11 % 3 != ord(name) % 3

        return ScriptedEndpoint(script, url=f"http://{number}/v1", up=up, usage=lambda step: Usage(9, step))

    reason, plain = decided(4, calm, family)
    assert {verdict for *_, verdict in verdicts(plain)} == {"better", "tie"}
    for limit in (None, 40):
        again, pairs = decided(limit, wild, family)
        assert again == reason
        assert verdicts(pairs) == verdicts(plain)
        if family == "pair":
            assert steps(pairs) == steps(plain)
