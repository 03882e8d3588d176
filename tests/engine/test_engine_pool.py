"""Pools of servers under an owned clock: balance, servers that vanish, return, refuse, or all go."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_clock import run_owned
from scene import Honoured, Scene, played
from scripted import Chance, ScriptedEndpoint, broken, busy, refused

from adaptive_eval.engine.clock import LONGEST_WAIT
from adaptive_eval.engine.events import Progress
from adaptive_eval.engine.health import FEW, SEVERAL
from adaptive_eval.engine.limits import FIRST_ANSWER, UNTRIED, Server
from adaptive_eval.engine.pool import AT_END, SPARED, Member, Pool, Silence
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.store.records import SEED_TEST
from adaptive_eval.trial import TrialKey


def server(number, script=1.0, **changes):
    return ScriptedEndpoint(script, f"http://gpu{number}/v1", **changes)


def timed_out():
    return TransientEndpointError("no answer within 600 s", kind="timeout")


# Balance


def test_requests_of_all_models_on_a_server_count():
    """One model has two servers, the other only the first of them: the second takes the load off that."""

    def uneven(step, attempt):
        return 1.0 + step * 7 % 10 / 10

    scene = Scene({"a": 300, "b": 300}, uneven, 6, others=[server(2, uneven)])
    scene.endpoints["b"].url = scene.server.url
    scene.play()
    shared, own = scene.pool()
    assert own.most_in_flight >= 5
    assert len(own.calls) > 4 * len(shared.calls)


# One goes


ONCE = RetryConfig(attempts=1)


def dies(at, back=float("inf")):
    return lambda now: not at <= now < back


def test_a_server_that_vanishes_costs_only_what_it_had_in_flight():
    dying = server(2, 2.0, up=dies(20.5))
    scene = played(400, concurrency=8, retry=ONCE, others=[dying, server(3)])
    assert scene.verdict.reason == "resolved"
    assert not scene.missing()
    assert 1 <= len(scene.failed) <= 8
    assert {record.endpoint for record in scene.failed} == {"http://gpu2/v1"}
    # Nobody waited for anything: eight places at a second each are busy to the end.
    assert scene.seconds <= 400 / 8 + 5.0
    assert max(dying.starts) <= 20.5


def test_it_is_probed_back_in_and_begins_with_few_requests():
    back = server(2, up=dies(10.5, back=30.0))
    scene = played(1500, concurrency=20, others=[back])
    assert not scene.missing()
    waits = [later - earlier for earlier, later in zip(back.probes, back.probes[1:], strict=False)]
    assert waits[:4] == pytest.approx([1.0, 2.0, 4.0, 8.0])
    returned = next(at for at in back.probes if at >= 30.0)
    first = [at for at in back.starts if at >= 30.0]
    assert min(first) == pytest.approx(returned, abs=1.01)
    assert sum(at < returned + 1.0 for at in first) <= FEW
    assert len(first) > 100


BAD = PermanentEndpointError("HTTP 400: no logprobs here", kind="bad_request", status=400)
WRONG = PermanentEndpointError("HTTP 404: no such model", kind="not_found")
PAGE = TransientEndpointError("malformed answer: JSON was expected, not: <html>", kind="malformed")


@pytest.mark.parametrize(("error", "most"), [(broken(), 60), (PAGE, 60), (WRONG, 3), (BAD, 300)])
def test_a_server_that_answers_nothing_useful_is_asked_little_and_loses_no_trial(error, most):
    """After each probe it gets a few requests, ever less often; one that refuses the model gets no more."""
    sick = server(2, (0.1, error))
    scene = played(300, concurrency=6, others=[sick], retry=RetryConfig(requeue=3))
    assert scene.verdict.reason == "resolved"
    assert not scene.missing()
    assert not scene.controller.stopped_models
    assert len(sick.calls) <= most


def test_a_trial_that_is_queued_again_goes_to_another_server():
    """Though that one has more to do."""
    other = server(2, 5.0)
    scene = played(2, (1.0, broken()), 2, retry=ONCE, others=[other])
    assert not scene.missing()
    assert sorted(step for _, step in other.calls) == [0, 1]


def test_a_server_that_asks_for_silence_is_spared_and_the_others_carry_on():
    shy = server(2, (0.5, busy(40.0)))
    scene = played(80, others=[shy], retry=ONCE)
    assert not scene.missing()
    assert scene.seconds <= 25.0
    assert len(shy.calls) <= SEVERAL + 1


def test_a_request_that_is_wrong_everywhere_stops_the_model():
    scene = played(60, BAD, others=[server(2, BAD)])
    assert scene.verdict.reason == "endpoints"
    (reason,) = scene.controller.stopped_models.values()
    assert reason.endswith("HTTP 400: no logprobs here")
    assert [len(endpoint.calls) for endpoint in scene.pool()] == [4, 4]  # the first four, at each server


# All go


PATIENT = RetryConfig(attempts=2, max_seconds=300.0, requeue=0)


def test_all_gone_for_a_while_leaves_no_hole():
    away = dies(10.5, back=200.0)
    scene = Scene(300, concurrency=8, retry=PATIENT, others=[server(2, up=away)])
    scene.server.up = away
    assert scene.play().reason == "resolved"
    assert not scene.missing()
    assert not scene.controller.stopped_models


def test_all_gone_for_good_stops_the_model_alone_and_leaves_no_hole():
    others = [server(2, up=dies(20.5)), server(3, refused())]
    scene = Scene({"a": 300, "b": 30}, concurrency=8, retry=PATIENT, others=others)
    scene.server.up = dies(10.5)
    assert scene.play(400.0).reason == "resolved"
    reason = scene.controller.stopped_models["a"]
    assert reason.startswith("no server answered within 300 s: http://a/v1: the connection was reset")
    assert "http://gpu2/v1" in reason
    assert not scene.missing()
    # From the moment when the last of them was lost.
    assert 320.0 <= scene.seconds <= 323.0
    assert len(scene.recorder.launched) > len(scene.outcomes)


def test_health_tells_of_every_server():
    scene = played(200, concurrency=8, others=[server(2, up=dies(5.05))])
    one, two = scene.seen(Progress)[-1].endpoints
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
    draw = Chance(seed)

    def up(number):
        return lambda now: number == 0 or draw(number, int(now) // 7) < 0.6

    others = [server(number, draw.unsteady(number), up=up(number)) for number in range(1, servers)]
    retry = RetryConfig(attempts=9)
    scene = Scene(120, draw.unsteady(0), concurrency, others=others, retry=retry, jitter=lambda: 0.5)
    scene.check_answered_once(120, stop_at)


def test_a_server_that_hangs_and_seems_to_be_there_costs_a_few_requests_and_little_time():
    """It is given up by its health: several requests together, far beyond the longest answer elsewhere.

    After that one request at a time proves it, and no test of seeds is sent there.
    """
    hanging = server(2, (600.0, timed_out()))
    scene = played(900, concurrency=32, others=[hanging])
    assert scene.verdict.reason == "resolved"
    assert not scene.missing()
    assert scene.seconds <= 900 / 32 + 2 * Silence().least
    assert len(hanging.calls) <= 16 + 2
    (remark,) = scene.remarks
    assert remark.partition(";")[0].partition(": ")[2].partition(" for ")[0] == "http://gpu2/v1: silent"


@pytest.mark.parametrize("begins", [0.0, 3.0])
def test_requests_of_all_models_show_together_that_their_server_hangs(begins):
    """Three models on two servers, two requests of each at the one that hangs; one model comes later."""
    scene = Scene({"a": 200, "b": 200, "c": 200}, 1.0, 4)

    def hung(step, attempt):
        late = asyncio.get_running_loop().time() >= begins
        return (600.0, timed_out()) if late else 1.0

    servers = {model: [server(1), server(2, hung)] for model in scene.steps}
    scene.pool = lambda model="a": servers[model]
    scene.play()
    assert scene.verdict.reason == "resolved"
    assert scene.seconds <= 200 / 4 + 2 * Silence().least
    calls = [at for _, hanging in servers.values() for at in hanging.starts if at >= begins]
    assert len([at for at in calls if at > begins + 2 * Silence().least]) <= 3 * 2
    assert len(calls) <= 3 * (2 + 2)


@pytest.mark.slow
@pytest.mark.parametrize("back", [400.0, 1e9])
def test_one_request_of_all_models_proves_a_server_that_hung_and_ever_less_often(back):
    """None of them is a trial's draw. Once it has answered one model, all ask it again."""
    scene = Scene({"a": 2400, "b": 2400, "c": 2400}, 1.0, 4)
    scene.controller.may_repeat = lambda key: True

    def hung(step, attempt):
        return (60.0, timed_out()) if asyncio.get_running_loop().time() < back else 1.0

    servers = {model: [server(1), server(2, hung)] for model in scene.steps}
    scene.pool = lambda model="a": servers[model]
    scene.play()
    assert not scene.missing()
    starts = [hanging.starts for _, hanging in servers.values()]
    proofs = sorted(at for of_model in starts for at in of_model if 2 * Silence().least < at < back)
    waits = [later - earlier for earlier, later in pairwise(proofs)]
    assert min(waits) >= LONGEST_WAIT
    assert waits == sorted(waits)
    assert max(waits) >= 4 * LONGEST_WAIT
    assert len(proofs) <= 8
    assert sum(bool(record.discarded) for record in scene.outcomes.values()) == UNTRIED
    if back < scene.seconds:
        assert min(sum(at >= back for at in of_model) for of_model in starts) >= 50
        again = sorted(min(at for at in of_model if at >= back) for of_model in starts)
        assert again[-1] <= again[0] + 1.0, "one waits until it has asked itself"


def test_no_test_of_seeds_waits_for_a_server_that_hangs():
    scene = Scene(60, concurrency=8, others=[server(2, (600.0, timed_out()))])
    scene.controller.may_repeat = lambda key: True
    scene.play()
    assert [record.error for record in scene.failed] == ["aborted"] * UNTRIED + [SEED_TEST]
    assert len(scene.answered) == 60
    assert scene.seconds <= 60 / 4 + 1.5


def test_a_server_that_hangs_for_others_is_proven_before_another_model_asks_there():
    """Models a and b have found out when c comes, after twelve seconds, and no trial of c goes there."""
    scene = Scene({"a": 100, "b": 100, "c": 100}, 1.0, 4)
    scene.controller.may_repeat = lambda key: True
    servers = {model: [server(1), server(2, (600.0, timed_out()))] for model in scene.steps}
    scene.pool = lambda model="a": servers[model]
    ask = scene.controller.ask

    def later(capacity):
        now = asyncio.get_running_loop().time()
        return ask({model: free for model, free in capacity.items() if model != "c" or now >= 12.0})

    scene.controller.ask = later
    scene.play()
    assert not {step for _, step in servers["c"][1].calls} & set(range(100))


class OwnAnswers(ScriptedEndpoint):
    """A server with its own answers, or with one answer to every question."""

    said = ""

    async def complete(self, messages, *, seed):
        answer = await super().complete(messages, seed=seed)
        return replace(answer, text=self.said or f"{answer.text} of {self.url}")


class Sure(OwnAnswers):
    said = "yes"


class Pooled(Honoured):
    """One model at four servers, of which the last stands still for some time, or for good."""

    kind = ScriptedEndpoint

    def stands_still(self, *spans, play=True):
        def script(step, attempt):
            now = asyncio.get_running_loop().time()
            ends = [end for start, end in spans if start <= now < end]
            return 0.5 + max([0.0, *(end - now for end in ends)])

        self.servers_of_a = [self.kind(0.5, f"http://gpu{number}/v1") for number in (1, 2, 3)]
        self.servers_of_a.append(self.kind(script, "http://gpu4/v1"))
        if play:
            self.play()
        return self

    def pool(self, model="a"):
        return self.servers_of_a

    @property
    def discarded(self):
        return sum(bool(record.discarded) for record in self.outcomes.values())


FOR_GOOD = (5.0, 10_000.0)


def test_what_hangs_is_asked_elsewhere_soon_where_seeds_are_honoured():
    """What the server has answered before is repeated by the others: they would give the same draws."""
    scene = Pooled(600, concurrency=16).stands_still(FOR_GOOD)
    assert scene.discarded == 0
    given_up = [record for record in scene.failed if record.error == "aborted"]
    assert len(given_up) == 4
    assert max(record.latency for record in given_up) <= 3.0
    assert sum(record.error == SEED_TEST for record in scene.failed) == 8 + 1
    assert not scene.missing()


@pytest.mark.parametrize("kind", [OwnAnswers, Sure])
def test_where_seeds_are_ignored_or_show_nothing_what_hangs_is_a_lost_draw(kind):
    scene = Pooled(600, concurrency=16)
    scene.kind = kind
    scene.stands_still(FOR_GOOD)
    assert scene.discarded == 4
    given_up = [record for record in scene.failed if record.error == "aborted"]
    assert min(record.latency for record in given_up) >= Silence().least


def test_where_seeds_are_honoured_one_long_answer_is_awaited():
    def script(step, attempt):
        return 30.0 if step == 200 else 0.5

    scene = Pooled(300, concurrency=3)
    scene.servers_of_a = [server(number, script) for number in (1, 2, 3)]
    scene.play()
    assert not scene.failed
    assert scene.seconds >= 30.0


def test_a_server_that_hangs_for_a_model_gets_no_more_trials_of_another():
    """Nothing shows that model b gives the same draws elsewhere; what it has in flight there is awaited."""
    scene = Pooled({"a": 400, "b": 400}, concurrency=16)
    scene.stands_still(FOR_GOOD, play=False)
    pools = {"a": scene.servers_of_a, "b": [Sure(one.script, one.url) for one in scene.servers_of_a]}
    scene.pool = lambda model="a": pools[model]
    scene.play()
    trials_of_b = [at for at, step in pools["b"][3].calls if step < 400]
    assert max(trials_of_b) <= 5.0
    lost = [record for record in scene.failed if (record.key.model, record.error) == ("b", "aborted")]
    assert min(record.latency for record in lost) <= 2 * Silence().least  # for a has lost nothing


def test_a_model_that_repeats_itself_gives_the_same_draw_elsewhere():
    scene = Pooled(600, concurrency=16)
    scene.kind, scene.repeats = Sure, True
    assert scene.stands_still(FOR_GOOD).discarded == 0


def test_a_server_that_only_paused_is_back_at_once_and_is_given_up_ever_later():
    pauses = [(start, start + 1.8) for start in range(5, 55, 5)]
    scene = Pooled(2000, concurrency=16).stands_still(*pauses)
    assert scene.discarded == 0
    assert sum(record.error == "aborted" for record in scene.failed) <= 4
    paused = scene.pool()[3]
    assert any(6.8 <= at <= 7.5 for at in paused.starts)


@pytest.mark.parametrize("seconds", [1.0, 30.0])
def test_a_server_that_has_answered_nothing_yet_gets_few_trials_for_some_seconds(seconds):
    """Others that have answered get the rest; where answers take long, it gets its share after a while."""
    others = [server(number, seconds) for number in (2, 3)]
    others.append(server(4, (600.0, timed_out())))
    scene = Scene(60, seconds, 16, others=others)
    scene.play()
    early = [sum(at < FIRST_ANSWER for at in one.starts) for one in scene.pool()]
    late = [len(one.starts) for one in scene.pool()]
    assert early[3] == UNTRIED
    if seconds < FIRST_ANSWER:
        assert late[3] == UNTRIED
        assert min(early[:3]) >= 16
    else:
        assert early == [UNTRIED] * 4
        assert late[3] == 4


def test_one_answer_that_takes_long_is_never_given_up():
    def slow(step, attempt):
        return 500.0 if step % 50 == 0 else 1.0

    scene = played(300, slow, 8, others=[server(2, slow)])
    assert scene.verdict.reason == "resolved"
    assert not scene.failed


@pytest.mark.parametrize("end", ["resolved", "interrupted"])
@pytest.mark.parametrize("hanging", [1, 3])
def test_requests_that_hang_do_not_hold_up_the_end(hanging, end):
    """They are given up by what answers took, at their worst case; a resumed run asks them again."""

    def script(step, attempt):
        return (3600.0, timed_out()) if step < hanging else 1.0

    ends = {"resolved": {"resolve_after": 100}, "interrupted": {"stop_at": [15.0]}}
    scene = played(900, script, 8, **ends[end])
    assert scene.verdict.reason == end
    assert 10.0 < scene.seconds <= 35.0
    lost = {TrialKey("a", step) for step in range(hanging)}
    assert set(scene.controller.presumed) == set(scene.controller.abandoned) == lost
    assert set(scene.recorder.launched) - set(scene.outcomes) == lost


def test_an_interrupt_while_requests_are_given_up_cancels_them():
    scene = Scene(8, 60.0)

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
    scene = played(100, lambda step, attempt: 1.0 + step % 40, 8, resolve_after=100)
    assert scene.verdict.reason == "resolved"
    assert len(scene.outcomes) == 100


def test_it_is_said_when_a_server_leaves_when_none_is_left_and_when_it_is_back():
    scene = Scene(100)
    scene.server.up = dies(5.05, back=30.0)
    scene.play()
    left, none_left, back = scene.remarks
    assert left.startswith("a: http://a/v1: the connection was reset")
    assert none_left.startswith("a: no server is left")
    assert back == "a: http://a/v1 answers again"
    returned = scene.server.probes[-1]
    assert min(at for at in scene.server.starts if at > 20.0) == pytest.approx(returned)


class StandIn:
    """A server of which only requests in flight and answers matter."""

    usable = True

    def __init__(self, answers: int, *since: float, last=0.0, longest=0.5, answered=True) -> None:
        self.in_flight = len(since)
        self.slots = [SimpleNamespace(since=at) for at in since]
        self.server = SimpleNamespace(in_flight=self.in_flight, answered=answered, silent=False)
        self.monitor = SimpleNamespace(answers=answers, longest=longest, last=last)

    speaks = Member.speaks


@pytest.mark.parametrize(
    ("other", "quiet", "seconds"),
    [
        (StandIn(20, 0.0, last=4.0), {}, 5.0),
        (StandIn(20), {}, 5.0),  # it has nothing to answer
        (StandIn(20, 0.0, last=0.4), {}, None),  # maybe both are out of reach
        (StandIn(20), {"longest": 2.0}, 6.0),
        (StandIn(20), {"answered": False}, 1.5),
        (StandIn(20, longest=0.1), {"answered": False, "longest": 0.1}, 1.0),
        (StandIn(20), {"answered": False, "longest": 2.0}, 6.0),
    ],
)
def test_a_server_is_silent_after_some_seconds_at_the_least_however_quick_the_others_are(
    other, quiet, seconds
):
    silent = StandIn(1, -4.0, -2.0, -1.0, 0.0, last=-9.0, **quiet)
    found = {at: list(Pool((silent, other)).late(at, Silence())) for at in (1.5, 2.5, 4.0, 5.5, 7.5, 8.5)}
    late = {at for at, servers in found.items() if servers and servers[0].requests == 4}
    assert late == {at for at in found if seconds is not None and at > seconds}


def test_each_silence_doubles_the_seconds_of_a_server_that_has_answered():
    pausing = Server("http://gpu1/v1", SharedLimits())
    pausing.heard()
    for silences, seconds in enumerate((1.0, 2.0, 4.0)):
        assert SPARED.seconds(pausing, 0.5, silences) == seconds
        assert Silence().seconds(pausing, 0.5, silences) == seconds * Silence().least
        assert AT_END.seconds(pausing, 0.5, silences) == AT_END.least, "the run waits for nothing else"


def pausing(*starts):
    """Return a script of answers in a second by a server that stands still six more from each start on."""

    def script(step, attempt):
        now = asyncio.get_running_loop().time()
        pauses = [at + 6.0 - now for at in starts if at - 1.0 <= now < at + 6.0]
        return 1.0 + max([0.0, *pauses])

    return script


def test_servers_that_pause_lose_draws_once():
    """After the first one that is silent, which may have paused, all servers have longer."""
    others = [server(2, pausing(10.0)), server(3, pausing(17.0, 55.0))]
    scene = played(600, pausing(40.0), 12, others=others)
    assert {record.endpoint for record in scene.failed} == {"http://gpu2/v1"}
    assert len(scene.failed) == 4
    assert scene.seconds >= 62.0


def test_a_stall_of_all_servers_is_no_silence_of_one():
    """The network was down for a while, or this process slept."""

    def stalled(step, attempt):
        return max(1.0, 30.5 - asyncio.get_running_loop().time() if step >= 40 else 0.0)

    scene = played(100, stalled, 12, others=[server(2, stalled), server(3, stalled)])
    assert scene.seconds >= 30.0
    assert not scene.failed


@pytest.mark.parametrize("seconds", [8.0, 20.0])
def test_a_server_that_is_much_slower_than_the_others_is_used(seconds):
    slow = server(2, seconds)
    scene = Scene(1000, 1.0, 12, others=[slow, server(3, 1.0)])
    scene.controller.may_repeat = lambda key: True
    scene.play()
    assert [record.error for record in scene.failed] == ["aborted"] * UNTRIED + [SEED_TEST]
    assert len(slow.ends) >= 4
