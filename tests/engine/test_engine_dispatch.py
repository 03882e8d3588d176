"""Slots that models share: who gets how many, and when the next one is free."""

import asyncio
import math
from types import SimpleNamespace

import pytest
from owned_clock import OwnedClock, run_owned

from adaptive_eval.engine.fleet import Dispatch
from adaptive_eval.engine.health import FEW, HealthMonitor
from adaptive_eval.engine.limits import Server
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.errors import EndpointError
from adaptive_eval.options.limit_options import RateLimit, SharedLimits


def dispatch_of(servers, rates=(), untried="", **models):
    """Return a dispatch over models by the names of their servers; a number limits requests in flight."""
    made = {}
    for name, limit in servers.items():
        limits = SharedLimits(concurrency=limit) if isinstance(limit, int) else SharedLimits(rate_limit=limit)
        made[name] = Server(name, limits)
        made[name].answered = name not in untried
    pools = {}
    for model, names in models.items():
        members = [Member(None, made[name], HealthMonitor(model, name)) for name in names]
        pools[model] = Pool(members, dict(rates).get(model))
    return Dispatch(pools, OwnedClock()), pools


def request(model, tokens=1):
    return SimpleNamespace(model=model, tokens=tokens, slot=None, failed_at=())


TOKENS = RateLimit(tokens_per_minute=100)


@pytest.mark.parametrize(
    ("limits", "before", "slots"),
    [
        # Requests that have started before are (model, tokens); a model wants eight more.
        ({"servers": {"x": 5}, "a": "x", "b": "x"}, [], {"a": 3, "b": 2}),
        ({"servers": {"x": 6}, "a": "x", "b": "x"}, [("a", 1)], {"a": 2, "b": 3}),
        ({"servers": {"x": 9, "y": 2}, "a": "xy", "b": "y"}, [], {"a": 8, "b": 2}),
        ({"servers": {"x": 9, "y": 2}, "a": "yx", "b": "y"}, [], {"a": 8, "b": 1}),
        # A server that has answered nothing yet gets two requests of all models that may go elsewhere.
        ({"servers": {"x": 9, "y": 4}, "a": "xy", "b": "xy", "untried": "x"}, [], {"a": 3, "b": 3}),
        ({"servers": {"x": 9}, "a": "x", "untried": "x"}, [], {"a": 8}),
        ({"servers": {"x": RateLimit()}, "a": "x", "b": "x"}, [], {"a": 8, "b": 8}),
        # Of 100 tokens a minute the next requests take as many as the last ones.
        ({"servers": {"x": TOKENS}, "a": "x"}, [("a", 30)], {"a": 2}),
        ({"servers": {"x": 9}, "a": "x", "b": "x", "rates": {"a": TOKENS}}, [("a", 30)], {"a": 2, "b": 6}),
        # A request waits, so more would wait behind it: the other model gets the slots.
        ({"servers": {"x": TOKENS}, "a": "x", "b": "x"}, [("a", 30), ("a", 80)], {"a": 0, "b": 8}),
    ],
)
def test_free_slots_are_divided_one_each_in_turn(limits, before, slots):
    async def main():
        dispatch, _ = dispatch_of(**limits)
        for number, (model, tokens) in enumerate(before):
            waiting = asyncio.create_task(dispatch.admit(request(model, tokens)))
            await asyncio.sleep(0)
            assert waiting.done() == (number == 0)
        assert dispatch.slots(dict.fromkeys(slots, 8)) == slots
        waiting.cancel() if before else None

    run_owned(main())


def test_a_server_on_probation_gets_few_requests():
    async def main():
        dispatch, pools = dispatch_of({"x": 9}, a="x")
        presence = pools["a"].members[0].presence
        presence.failed(EndpointError("gone", kind="connection"), 1, now=0.0)
        presence.probed(there=True)
        assert dispatch.slots({"a": 8}) == {"a": FEW}

    run_owned(main())


def test_the_moment_of_the_next_slot_is_that_of_the_request_that_waits():
    async def main():
        dispatch, _ = dispatch_of({"x": TOKENS}, {"b": RateLimit(requests_per_minute=60)}, a="x", b="x")
        first, second, third = request("a", 50), request("a", 20), request("a", 95)
        assert dispatch.admit_now(first)
        assert dispatch.admit_now(second)
        waiting = asyncio.create_task(dispatch.admit(third))
        await asyncio.sleep(1.0)
        dispatch.release(first, used=10)
        assert dispatch.free_at({"a"}) == math.inf  # the second has to end first
        dispatch.release(second, used=20)
        assert dispatch.free_at({"a"}) == 61.0
        assert dispatch.admit_now(request("b"))
        assert dispatch.free_at({"b"}) == 2.0
        assert not waiting.done()
        waiting.cancel()

    run_owned(main())


def test_a_slot_that_is_freed_goes_at_once_to_the_request_that_waits_first():
    async def main():
        dispatch, _ = dispatch_of({"x": 1}, a="x")
        first, *others = (request("a") for _ in range(3))
        assert dispatch.admit_now(first)
        waiting = [asyncio.create_task(dispatch.admit(one)) for one in others]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        dispatch.release(first)
        assert (others[0].slot, others[1].slot is None) == (None, False)
        await waiting[1]

    run_owned(main())
