"""Pools of servers under an owned clock: balance, servers that vanish, return, refuse, or all go."""

import asyncio
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_clock import run_owned
from owned_runs import answered_once, elapsed, interrupted, run
from scripted import Scene, ScriptedEndpoint, broken, busy, refused

from adaptive_eval.engine.events import Progress, Remarked
from adaptive_eval.engine.health import Presence
from adaptive_eval.engine.pool import Pool, Silence
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError
from adaptive_eval.trial import TrialKey


def server(number, script=lambda step, attempt: 1.0, **changes):
    return ScriptedEndpoint(script, url=f"http://gpu{number}/v1", **changes)


def timed_out():
    return TransientEndpointError("no answer within 600 s", kind="timeout")


# Balance


def test_requests_of_all_models_on_a_server_count():
    """One model has two servers, the other only the first of them: the second takes the load off that."""

    def uneven(step, attempt):
        return 1.0 + step * 7 % 10 / 10

    scene = Scene(
        steps={"a": 300, "b": 300},
        concurrency=6,
        scripts={"a": uneven, "b": uneven},
        others={"a": [server(2, uneven)]},
    )
    scene.endpoints["b"].url = scene.endpoints["a"].url
    run(scene)
    shared, own = scene.pool("a")
    assert own.most_in_flight >= 5
    assert len(own.calls) > 4 * len(shared.calls)


# One goes


def dies(at, back=float("inf")):
    return lambda now: not at <= now < back


def test_a_server_that_vanishes_costs_only_what_it_had_in_flight():
    scene = Scene(
        steps={"a": 400},
        concurrency=8,
        retry=RetryPolicy(attempts=1),
        requeues=0,
        others={"a": [server(2, lambda step, attempt: 2.0, up=dies(20.5)), server(3)]},
    )
    verdict, seconds = elapsed(scene)
    assert verdict.reason == "resolved"
    assert not scene.missing()
    failed = [record for record in scene.recorder.of("attempt") if record.error is not None]
    assert 1 <= len(failed) <= 8
    assert {record.endpoint for record in failed} == {"http://gpu2/v1"}
    # Nobody waited for anything: eight places at a second each are busy to the end.
    assert seconds <= 400 / 8 + 5.0
    last = max(at for at, _ in scene.others["a"][0].calls)
    assert last <= 20.5


def test_it_is_probed_back_in_and_begins_with_few_requests():
    back = server(2, up=dies(10.5, back=30.0))
    scene = Scene(steps={"a": 1500}, concurrency=20, others={"a": [back]})
    run(scene)
    assert not scene.missing()
    waits = [later - earlier for earlier, later in zip(back.probes, back.probes[1:], strict=False)]
    assert waits[:4] == pytest.approx([1.0, 2.0, 4.0, 8.0])
    returned = next(at for at in back.probes if at >= 30.0)
    first = [at for at, _ in back.calls if at >= 30.0]
    assert min(first) == pytest.approx(returned, abs=1.01)
    assert sum(at < returned + 1.0 for at in first) <= Presence.on_probation
    assert len(first) > 100


BAD = PermanentEndpointError("HTTP 400: no logprobs here", kind="bad_request", status=400)
WRONG = PermanentEndpointError("HTTP 404: no such model", kind="not_found")
PAGE = TransientEndpointError("malformed answer: JSON was expected, not: <html>", kind="malformed")


@pytest.mark.parametrize(("error", "most"), [(broken(), 60), (PAGE, 60), (WRONG, 3), (BAD, 300)])
def test_a_server_that_answers_nothing_useful_is_asked_little_and_loses_no_trial(error, most):
    """After each probe it gets a few requests, ever less often; one that refuses the model gets no more."""
    sick = server(2, lambda step, attempt: (0.1, error))
    scene = Scene(steps={"a": 300}, concurrency=6, others={"a": [sick]}, requeues=3)
    assert run(scene).reason == "resolved"
    assert not scene.missing()
    assert not scene.controller.stopped_models
    assert len(sick.calls) <= most


def test_a_trial_that_is_queued_again_goes_to_another_server():
    """Though that one has more to do."""
    other = server(2, lambda step, attempt: 5.0)
    scene = Scene(
        steps={"a": 2},
        concurrency=2,
        retry=RetryPolicy(attempts=1),
        scripts={"a": lambda step, attempt: (1.0, broken())},
        others={"a": [other]},
    )
    run(scene)
    assert not scene.missing()
    assert sorted(step for _, step in other.calls) == [0, 1]


def test_a_server_that_asks_for_silence_is_spared_and_the_others_carry_on():
    shy = server(2, lambda step, attempt: (0.5, busy(40.0)))
    scene = Scene(steps={"a": 80}, concurrency=4, others={"a": [shy]}, retry=RetryPolicy(attempts=1))
    _, seconds = elapsed(scene)
    assert not scene.missing()
    assert seconds <= 25.0
    assert len(shy.calls) <= 4


def test_a_request_that_is_wrong_everywhere_stops_the_model():
    def wrong(step, attempt):
        return PermanentEndpointError("HTTP 400: max_tokens is too large", kind="bad_request", status=400)

    scene = Scene(steps={"a": 60}, scripts={"a": wrong}, others={"a": [server(2, wrong)]})
    assert run(scene).reason == "endpoints"
    (reason,) = scene.controller.stopped_models.values()
    assert reason.endswith("HTTP 400: max_tokens is too large")
    assert [len(endpoint.calls) for endpoint in scene.pool("a")] == [4, 4]  # the first four, at each server


# All go


def test_all_gone_for_a_while_leaves_no_hole():
    away = dies(10.5, back=200.0)
    scene = Scene(
        steps={"a": 300},
        concurrency=8,
        retry=RetryPolicy(attempts=2, total_wait=300.0),
        requeues=0,
        others={"a": [server(2, up=away)]},
    )
    scene.endpoints["a"].up = away
    assert run(scene).reason == "resolved"
    assert not scene.missing()
    assert not scene.controller.stopped_models


def test_all_gone_for_good_stops_the_model_alone_and_leaves_no_hole():
    scene = Scene(
        steps={"a": 300, "b": 30},
        concurrency=8,
        retry=RetryPolicy(attempts=2, total_wait=300.0),
        others={"a": [server(2, up=dies(20.5)), server(3, lambda step, attempt: refused())]},
    )
    scene.endpoints["a"].up = dies(10.5)
    verdict, seconds = interrupted(scene, 400.0)
    assert verdict.reason == "resolved"
    reason = scene.controller.stopped_models["a"]
    assert reason.startswith("no server answered within 300 s: http://a/v1: the connection was reset")
    assert "http://gpu2/v1" in reason
    assert not scene.missing()
    # From the moment when the last of them was lost.
    assert 320.0 <= seconds <= 323.0
    assert len(scene.recorder.launched) > len(scene.recorder.outcomes)


def test_health_tells_of_every_server():
    seen = []
    scene = Scene(
        steps={"a": 200}, concurrency=8, others={"a": [server(2, up=dies(5.05))]}, observer=seen.append
    )
    run(scene)
    last = [event for event in seen if isinstance(event, Progress)][-1]
    one, two = last.endpoints
    assert (one.model, one.endpoint, one.state) == ("a", "http://a/v1", "in")
    assert (two.model, two.endpoint, two.state) == ("a", "http://gpu2/v1", "out")
    assert two.errors["dropped"] >= 1
    assert one.answered + two.answered == 200
    assert (one.in_flight, two.in_flight) == (0, 0)


# However it goes


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    servers=st.integers(1, 4),
    concurrency=st.integers(1, 12),
    stop_at=st.none() | st.floats(0.0, 80.0),
)
def test_whatever_happens_to_servers_the_books_are_right(seed, servers, concurrency, stop_at):
    """Servers come and go at random, one never does: every trial is answered once, and none is missing."""

    def draw(*what):
        return hash((seed, *what)) % 1000 / 1000

    def script(number):
        return lambda step, attempt: (
            (draw(number, step), broken()) if draw(number, step, attempt) < 0.1 else 3 * draw(step, number)
        )

    def up(number):
        return lambda now: number == 0 or draw(number, int(now) // 7) < 0.6

    others = [server(number, script(number), up=up(number)) for number in range(1, servers)]
    scene = Scene(
        steps={"a": 120},
        concurrency=concurrency,
        retry=RetryPolicy(attempts=9),
        scripts={"a": script(0)},
        others={"a": others},
        jitter=lambda: 0.5,
    )

    answered_once(scene, 120, stop_at)


def test_a_server_that_hangs_and_seems_to_be_there_costs_a_few_requests_and_little_time():
    """It is given up by its health: several requests together, far beyond the longest answer elsewhere."""
    hanging = server(2, lambda step, attempt: (600.0, timed_out()))
    scene = Scene(steps={"a": 900}, concurrency=32, others={"a": [hanging]})
    remarks = []
    scene.observer = lambda event: remarks.append(event.text) if isinstance(event, Remarked) else None
    verdict, seconds = elapsed(scene)
    assert verdict.reason == "resolved"
    assert not scene.missing()
    assert seconds <= 900 / 32 + 4 * Silence().least
    assert len(hanging.calls) <= 16 + 4 * Presence.on_probation
    assert [text.partition(";")[0].partition(": ")[2].partition(" for ")[0] for text in remarks] == [
        "http://gpu2/v1: silent"
    ]


@pytest.mark.parametrize(("names", "codes"), [(["x"], []), (["x", "", "y"], ["warning/model-changed"])])
def test_a_server_that_names_another_model_than_before_is_told(names, codes):
    scene = Scene(steps={"a": 60})
    scene.endpoints["a"].named = lambda step: names[step * len(names) // 60]
    run_owned(scene.run())
    assert [warning.code for warning in scene.recorder.of("snapshot")[-1].results["warnings"]] == codes


def test_one_answer_that_takes_long_is_never_given_up():
    slow = server(2, lambda step, attempt: 500.0 if step % 50 == 0 else 1.0)
    scene = Scene(steps={"a": 300}, concurrency=8, others={"a": [slow]})
    scene.endpoints["a"].script = slow.script
    assert run(scene).reason == "resolved"
    assert {record.error for record in scene.recorder.of("attempt")} == {None}


@pytest.mark.parametrize("end", ["resolved", "interrupted"])
@pytest.mark.parametrize("hanging", [1, 3])
def test_requests_that_hang_do_not_hold_up_the_end(hanging, end):
    """They are given up by what answers took, at their worst case; a resumed run asks them again."""

    def script(step, attempt):
        return (3600.0, timed_out()) if step < hanging else 1.0

    scene = Scene(steps={"a": 900}, concurrency=8, scripts={"a": script})
    scene.controller.resolve_after = 100 if end == "resolved" else None
    verdict, seconds = interrupted(scene, 15.0) if end == "interrupted" else elapsed(scene)
    assert verdict.reason == end
    assert 10.0 < seconds <= 35.0
    lost = {TrialKey("a", step) for step in range(hanging)}
    assert set(scene.controller.presumed) == set(scene.controller.abandoned) == lost
    assert set(scene.recorder.launched) - set(scene.recorder.outcomes) == lost


def test_an_interrupt_while_requests_are_given_up_cancels_them():
    scene = Scene(scripts={"a": lambda step, attempt: 60.0})

    async def main():
        runner = scene.runner()

        def both():
            runner._in_flight.fleet.pools["a"].members[0].give_up(timed_out())
            runner.request_stop()
            runner.request_stop()

        asyncio.get_running_loop().call_at(5.0, both)
        return await runner.run()

    assert run_owned(main()).reason == "interrupted"
    assert list(scene.controller.abandoned.values()) == [True] * 4


def test_a_long_answer_at_the_end_is_awaited_where_others_took_as_long():
    scene = Scene(steps={"a": 100}, concurrency=8, scripts={"a": lambda step, attempt: 1.0 + step % 40})
    scene.controller.resolve_after = 100
    assert run(scene).reason == "resolved"
    assert len(scene.recorder.outcomes) == 100


def test_it_is_said_when_a_server_leaves_when_none_is_left_and_when_it_is_back():
    scene = Scene(steps={"a": 100}, concurrency=4)
    scene.endpoints["a"].up = dies(5.05, back=30.0)
    remarks = []
    scene.observer = lambda event: remarks.append(event.text) if isinstance(event, Remarked) else None
    run(scene)
    assert len(remarks) == 3
    left, none_left, back = remarks
    assert left.startswith("a: http://a/v1: the connection was reset")
    assert none_left.startswith("a: no server is left")
    assert back == "a: http://a/v1 answers again"
    returned = scene.endpoints["a"].probes[-1]
    assert min(at for at, _ in scene.endpoints["a"].calls if at > 20.0) == pytest.approx(returned)


class StandIn:
    """A server of which only requests in flight and answers matter."""

    def __init__(self, answers: int, *since: float) -> None:
        self.in_flight = len(since)
        self.slots = [SimpleNamespace(since=at) for at in since]
        self.monitor = SimpleNamespace(answers=answers, longest=0.1, last=0.0)


def test_a_server_is_silent_after_ten_seconds_at_the_least_however_quick_the_others_are():
    quiet = StandIn(0, -9.0, -2.0, -1.0, 0.0)
    pool = Pool((quiet, StandIn(20)))
    assert list(pool.silent(9.0, Silence())) == []
    assert list(pool.silent(11.0, Silence())) == [(quiet, 11.0)]
