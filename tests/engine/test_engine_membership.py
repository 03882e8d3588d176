"""Servers that a source names, under an owned clock: they join, leave, come back, refuse, or never come."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scene import Scene
from scripted import Chance, ScriptedEndpoint, broken, refused, vanished

from adaptive_eval.config.model import DiscoveryConfig
from adaptive_eval.engine.discovery import Discovery, Reading
from adaptive_eval.engine.events import Progress
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.options.request_options import RetryConfig

ONE, TWO, THREE = (f"http://gpu{number}:8000/v1" for number in (1, 2, 3))


def now():
    return asyncio.get_running_loop().time()


@dataclass(eq=False)
class Scripted:
    """A source that names at each time what `says` returns; a text stands for a problem."""

    says: object
    name: str = "servers.txt"
    every: float = 10.0
    reads: list[float] = field(default_factory=list)
    last: tuple[str, ...] = ()
    read_for: float = 0.01

    async def read(self):
        self.reads.append(now())
        await asyncio.sleep(self.read_for)
        said = self.says(now())
        if isinstance(said, str):
            return Reading(self.last, f"{self.name}: {said}")
        self.last = tuple(said)
        return Reading(self.last)


@dataclass
class Cluster:
    """Servers by address, and how they are found: `wrong` ones do not serve the model."""

    source: Scripted
    servers: dict[str, ScriptedEndpoint]
    wrong: set[str] = field(default_factory=set)
    asked: list[tuple[float, str]] = field(default_factory=list)

    async def connect(self, url):
        self.asked.append((now(), url))
        await asyncio.sleep(0.01)
        if url in self.wrong:
            raise PermanentEndpointError(f"{url} does not serve 'a'", kind="not_found", status=404)
        if url not in self.servers or not self.servers[url].up(now()):
            raise TransientEndpointError(f"{url}: connection refused", kind="connection")
        return self.servers[url]

    def discovery(self, **changes):
        config = DiscoveryConfig(discover="file", path="servers.txt", **changes)
        return Discovery(self.source, self.connect, config)


def cluster(says, *urls, wrong=(), every=10.0, script=1.0):
    servers = {url: ScriptedEndpoint(script, url=url) for url in urls}
    return Cluster(Scripted(says if callable(says) else lambda at: says, every=every), servers, set(wrong))


ONCE = {"retry": RetryConfig(attempts=1, requeue=0)}


def scene_of(found, steps=200, *, models="a", patience=600.0, concurrency=8, **changes):
    discoveries = {model: found.discovery(patience=patience) for model in models}
    return Scene(dict.fromkeys(models, steps), concurrency=concurrency, discoveries=discoveries, **changes)


def play(scene, found, reason="resolved"):
    """Run to the end, which is for `reason` and without a missing trial."""
    assert scene.play().reason == reason
    assert not scene.missing()
    assert all(endpoint.in_flight == 0 for endpoint in found.servers.values())
    return scene


def answers(scene):
    return Counter(record.endpoint for record in scene.answered)


def told(scene):
    """Return the stored words on servers."""
    return [body["text"] for body in scene.recorder.of("decision") if body["kind"] == "servers"]


# Join


def test_a_server_joins_while_the_run_goes_on():
    found = cluster(lambda at: [ONE] if at < 15.0 else [ONE, TWO], ONE, TWO)
    scene = play(scene_of(found, 400), found)
    assert min(found.servers[TWO].starts) == pytest.approx(20.05, abs=1.0)
    assert answers(scene)[TWO] > 50
    assert told(scene) == [f"a: server {ONE} joined", f"a: server {TWO} joined"]
    assert [body["trials"] > 0 for body in scene.recorder.of("decision")[:2]] == [False, True]


def test_an_empty_source_is_waited_for_and_said_so_once():
    found = cluster(lambda at: [] if at < 300.0 else [ONE], ONE)
    scene = play(scene_of(found, 8), found)
    assert scene.seconds == pytest.approx(301.0, abs=11.0)
    assert scene.remarks == ["a waits for a server, 600 s at most: servers.txt names none"]
    first = next(event for event in scene.seen(Progress) if event.elapsed > 1.0)
    assert first.results.warnings == ("a waits for a server, 600 s at most: servers.txt names none",)
    assert scene.seen(Progress)[-1].results.warnings == ()


def test_a_server_of_another_model_is_reported_once_and_left_out():
    found = cluster([ONE, TWO], ONE, wrong=[TWO])
    scene = play(scene_of(found, 400), found)
    assert answers(scene) == {ONE: 400}
    assert scene.seconds > 45.0
    assert [words for words in told(scene) if "left out" in words] == [
        f"a: server {TWO} is left out: {TWO} does not serve 'a'"
    ]
    states = {(one.endpoint, one.state) for event in scene.seen(Progress) for one in event.endpoints}
    assert (TWO, "refused") in states
    assert (TWO, "in") not in states
    shown = [one for event in scene.seen(Progress) for one in event.endpoints if one.state == "refused"]
    assert {(one.in_flight, one.limit) for one in shown} == {(0, 0)}


# Leave


def leaving(at):
    return [ONE, TWO] if at < 15.0 else [ONE]


def test_a_server_that_leaves_gets_nothing_more_and_what_is_out_comes_back():
    found = cluster(leaving, ONE, TWO, script=7.0)
    scene = play(scene_of(found, 100, **ONCE), found)
    assert max(found.servers[TWO].starts) < 21.0
    assert not found.servers[TWO].cancelled
    assert not scene.failed
    assert told(scene)[-1] == f"a: server {TWO} left"
    last = scene.seen(Progress)[-1]
    assert {one.endpoint: one.state for one in last.endpoints} == {ONE: "in", TWO: "left"}


def test_a_server_that_has_left_is_shown_for_ten_minutes():
    found = cluster(leaving, ONE, TWO, script=50.0)
    shown = {}
    for event in play(scene_of(found, 120), found).seen(Progress):
        shown[event.elapsed] = [(one.state, one.limit) for one in event.endpoints if one.endpoint == TWO]
    left = [at for at, states in shown.items() if states == [("left", 0)]]
    assert max(left) - min(left) == pytest.approx(600.0, abs=15.0)
    assert shown[max(shown)] == []


def test_requests_that_hang_at_a_server_that_has_left_do_not_hold_up_the_end():
    """Two servers leave, one soon after the other, and both have just begun to hang."""
    here = lambda at: [ONE, TWO, THREE][: 1 + (at < 12.0) + (at < 10.0)]  # noqa: E731
    found = cluster(here, ONE, TWO, THREE, every=1.0)
    late = TransientEndpointError("no answer within 3600 s", kind="timeout")
    for url in (TWO, THREE):
        found.servers[url].script = lambda step, attempt: (3600.0, late) if now() >= 9.0 else 1.0
    scene = play(scene_of(found, concurrency=4, resolve_after=60), found)
    assert found.servers[TWO].calls
    assert found.servers[THREE].calls
    assert scene.seconds <= 60.0


def test_a_connection_that_dies_after_the_server_has_left_costs_only_what_was_in_flight():
    found = cluster(leaving, ONE, TWO, script=7.0)
    found.servers[TWO].up = lambda at: at < 20.5
    scene = play(scene_of(found, 100, **ONCE), found)
    assert 1 <= len(scene.failed) <= 4
    assert {record.endpoint for record in scene.failed} == {TWO}
    assert not found.servers[TWO].probes


def test_a_server_that_comes_back_is_used_again():
    found = cluster(lambda at: [ONE] if 15.0 <= at < 35.0 else [ONE, TWO], ONE, TWO)
    scene = play(scene_of(found, 500), found)
    starts = found.servers[TWO].starts
    assert not [at for at in starts if 21.0 <= at < 40.0]
    assert len([at for at in starts if at >= 40.0]) > 20
    words = [f"a: server {TWO} {did}" for did in ("joined", "left", "joined")]
    assert [said for said in told(scene) if TWO in said] == words


@pytest.mark.parametrize("other", [[ONE], []], ids=["one of two", "the only one"])
def test_a_server_that_leaves_and_has_refused_gets_another_chance(other):
    found = cluster(lambda at: other if 15.0 <= at < 25.0 else [*other, TWO], ONE, TWO)
    found.servers[TWO].script = lambda step, attempt: (0.1, refused()) if now() < 25.0 else 1.0
    scene = play(scene_of(found, 500), found)
    assert answers(scene)[TWO] > 20


# All gone


@pytest.mark.parametrize("read_for", [0.01, 5.0], ids=["between two readings", "during one"])
def test_no_server_within_the_patience_stops_the_model_alone(read_for):
    found = cluster(lambda at: [ONE] if at > 124.0 else [])
    found.source.read_for = read_for
    scene = Scene({"a": 10, "b": 40}, 20.0, discoveries={"a": found.discovery(patience=120.0)})
    play(scene, found)
    assert scene.controller.stopped_models == {"a": "there was no server for 120 s: servers.txt names none"}
    assert scene.seconds == pytest.approx(200.0, abs=2.0)
    assert not found.asked
    assert scene.recorder.of("snapshot")[-1].results["warnings"] == ()
    assert "a" not in {key.model for key in scene.recorder.launched}


@pytest.mark.parametrize(
    ("gone", "reason"),
    [(True, "servers.txt names none"), (False, f"{ONE}: HTTP 401: no key")],
    ids=["named no more", "refuses"],
)
def test_all_gone_for_longer_than_the_patience_stops_the_model_and_leaves_no_hole(gone, reason):
    def script(step, attempt):
        return 1.0 if gone or now() < 20.0 else refused()

    found = cluster(lambda at: [ONE] if at < 15.0 or not gone else [], ONE, script=script)
    found.servers[ONE].up = lambda at: at >= 3.0  # what it said before it joined is not the reason
    scene = play(scene_of(found, 500, patience=300.0, **ONCE), found, "endpoints")
    assert scene.seconds == pytest.approx(321.0, abs=3.0)
    assert scene.controller.stopped_models["a"] == f"there was no server for 300 s: {reason}"


def test_all_gone_for_a_while_leaves_no_hole():
    found = cluster(lambda at: [] if 15.0 <= at < 200.0 else [ONE], ONE, script=3.0)
    found.servers[ONE].up = lambda at: not 21.0 <= at < 190.0
    play(scene_of(found, 100, patience=300.0, **ONCE), found)


# Sources that fail, and sources that are shared


def test_a_source_that_cannot_be_read_keeps_its_servers_and_is_told_of_once():
    found = cluster(lambda at: "no such file" if 15.0 <= at < 55.0 else [ONE], ONE)
    scene = play(scene_of(found, 600), found)
    assert scene.seconds == pytest.approx(75.0, abs=3.0)
    assert scene.remarks == ["servers.txt: no such file; the last known servers are kept"]
    assert told(scene) == [f"a: server {ONE} joined"]
    assert scene.seen(Progress)[-1].results.warnings == ()


def test_a_source_is_read_as_often_as_it_says_once_for_all_models():
    found = cluster([ONE], ONE, every=5.0)
    scene = play(scene_of(found, models="ab"), found)
    assert found.source.reads[:4] == pytest.approx([0.0, 5.01, 10.02, 15.03])
    assert sorted(told(scene)) == [f"a: server {ONE} joined", f"b: server {ONE} joined"]


def test_models_that_find_the_same_server_share_its_limits():
    found = cluster([ONE], ONE)
    discovery = found.discovery(each=SharedLimits(concurrency=3))
    play(Scene({"a": 60, "b": 60}, concurrency=8, discoveries=dict.fromkeys("ab", discovery)), found)
    assert found.servers[ONE].most_in_flight == 3


# However it goes


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), concurrency=st.integers(1, 12), stop_at=st.none() | st.floats(0.0, 120.0))
def test_whatever_servers_do_the_books_are_right(seed, concurrency, stop_at):
    """Servers are named or not, and answer or not, at random; one is always there: no trial is lost."""
    draw = Chance(seed)

    def error(step):
        return broken() if draw(step) < 0.5 else vanished()

    def says(at):
        if draw("unreadable", int(at) // 5) < 0.2:
            return "half written"
        return [ONE, *(url for url in (TWO, THREE) if draw(url, int(at) // 5) < 0.5)]

    found = cluster(says, ONE, TWO, THREE, every=3.0)
    for number, url in enumerate((ONE, TWO, THREE)):
        found.servers[url].script = draw.unsteady(number, error)
        if number:
            found.servers[url].up = lambda at, url=url: draw(url, "up", int(at) // 7) < 0.6
    retry = RetryConfig(attempts=20, max_seconds=10_000.0)
    scene = scene_of(found, 120, concurrency=concurrency, retry=retry, jitter=lambda: 0.5)
    scene.check_answered_once(120, stop_at)
