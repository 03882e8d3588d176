"""Servers that a source names, under an owned clock: they join, leave, come back, refuse, or never come."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_runs import answered_once, elapsed
from scripted import Scene, ScriptedEndpoint, broken, refused, vanished

from adaptive_eval.engine.discovery import Discovery, Reading
from adaptive_eval.engine.events import Progress, Remarked
from adaptive_eval.engine.limits import FixedConcurrency, ServerLimits
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.errors import PermanentEndpointError, TransientEndpointError

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
        return Discovery(self.source, self.connect, **{"patience": 600.0, **changes})


def cluster(says, *urls, wrong=(), every=10.0, script=lambda step, attempt: 1.0, **scripts):
    servers = {url: ScriptedEndpoint(script, url=url) for url in urls}
    return Cluster(Scripted(says if callable(says) else lambda at: says, every=every), servers, set(wrong))


def scene_of(found, *, models=("a",), steps=200, patience=600.0, seen=None, **changes):
    return Scene(
        steps=dict.fromkeys(models, steps),
        discoveries={model: found.discovery(patience=patience) for model in models},
        observer=None if seen is None else seen.append,
        **{"concurrency": 8, **changes},
    )


def play(scene, found):
    """Run to the end; return the verdict and when it came."""

    result = elapsed(scene)
    assert all(endpoint.in_flight == 0 for endpoint in found.servers.values())
    return result


def answers(scene):
    return Counter(record.endpoint for record in scene.recorder.of("attempt") if record.error is None)


def told(scene):
    """Return the stored words on servers."""
    return [body["text"] for body in scene.recorder.of("decision") if body["kind"] == "servers"]


def remarks(seen):
    return [event.text for event in seen if isinstance(event, Remarked)]


# Join


def test_a_server_joins_while_the_run_goes_on():
    found = cluster(lambda at: [ONE] if at < 15.0 else [ONE, TWO], ONE, TWO)
    scene = scene_of(found, steps=400)
    play(scene, found)
    assert min(at for at, _ in found.servers[TWO].calls) == pytest.approx(20.05, abs=1.0)
    assert answers(scene)[TWO] > 50
    assert told(scene) == [f"a: server {ONE} joined", f"a: server {TWO} joined"]
    assert [body["trials"] > 0 for body in scene.recorder.of("decision")[:2]] == [False, True]


def test_an_empty_source_is_waited_for_and_said_so_once():
    seen = []
    found = cluster(lambda at: [] if at < 300.0 else [ONE], ONE)
    scene = scene_of(found, seen=seen, steps=8)
    verdict, ended = play(scene, found)
    assert verdict.reason == "resolved"
    assert ended == pytest.approx(301.0, abs=11.0)
    assert remarks(seen) == ["a waits for a server, 600 s at most: servers.txt names none"]
    first = next(event for event in seen if isinstance(event, Progress) and event.elapsed > 1.0)
    assert first.results.warnings == ("a waits for a server, 600 s at most: servers.txt names none",)
    last = [event for event in seen if isinstance(event, Progress)][-1]
    assert last.results.warnings == ()


def test_a_server_of_another_model_is_reported_once_and_left_out():
    seen = []
    found = cluster([ONE, TWO], ONE, wrong=[TWO])
    scene = scene_of(found, seen=seen, steps=400)
    verdict, ended = play(scene, found)
    assert verdict.reason == "resolved"
    assert answers(scene) == {ONE: 400}
    assert ended > 45.0
    assert [words for words in told(scene) if "left out" in words] == [
        f"a: server {TWO} is left out: {TWO} does not serve 'a'"
    ]
    states = {
        (one.endpoint, one.state) for event in seen if isinstance(event, Progress) for one in event.endpoints
    }
    assert (TWO, "refused") in states
    assert (TWO, "in") not in states


# Leave


def test_a_server_that_leaves_gets_nothing_more_and_what_is_out_comes_back():
    found = cluster(lambda at: [ONE, TWO] if at < 15.0 else [ONE], ONE, TWO, script=lambda step, attempt: 7.0)
    seen = []
    scene = scene_of(found, seen=seen, steps=100, retry=RetryPolicy(attempts=1), requeues=0)
    play(scene, found)
    assert max(at for at, _ in found.servers[TWO].calls) < 21.0
    assert not found.servers[TWO].cancelled
    assert not scene.missing()
    assert not [record for record in scene.recorder.of("attempt") if record.error is not None]
    assert told(scene)[-1] == f"a: server {TWO} left"
    last = [event for event in seen if isinstance(event, Progress)][-1]
    assert {one.endpoint: one.state for one in last.endpoints} == {ONE: "in", TWO: "left"}


def test_requests_that_hang_at_a_server_that_has_left_do_not_hold_up_the_end():
    """Two servers leave, one after the other."""
    found = cluster(lambda at: [ONE, TWO, THREE][: 1 + (at < 15.0) + (at < 5.0)], ONE, TWO, THREE)
    late = TransientEndpointError("no answer within 3600 s", kind="timeout")
    for url in (TWO, THREE):
        found.servers[url].script = lambda step, attempt: (3600.0, late)
    scene = scene_of(found, steps=200, concurrency=4)
    scene.controller.resolve_after = 60
    verdict, ended = play(scene, found)
    assert verdict.reason == "resolved"
    assert found.servers[TWO].calls
    assert found.servers[THREE].calls
    assert ended <= 60.0


def test_a_connection_that_dies_after_the_server_has_left_costs_only_what_was_in_flight():
    found = cluster(lambda at: [ONE, TWO] if at < 15.0 else [ONE], ONE, TWO, script=lambda step, attempt: 7.0)
    found.servers[TWO].up = lambda at: at < 20.5
    scene = scene_of(found, steps=100, retry=RetryPolicy(attempts=1), requeues=0)
    verdict, _ = play(scene, found)
    assert verdict.reason == "resolved"
    assert not scene.missing()
    failed = [record for record in scene.recorder.of("attempt") if record.error is not None]
    assert 1 <= len(failed) <= 4
    assert {record.endpoint for record in failed} == {TWO}
    assert not found.servers[TWO].probes


def test_a_server_that_comes_back_is_used_again():
    found = cluster(lambda at: [ONE] if 15.0 <= at < 35.0 else [ONE, TWO], ONE, TWO)
    scene = scene_of(found, steps=500)
    play(scene, found)
    calls = [at for at, _ in found.servers[TWO].calls]
    assert not [at for at in calls if 21.0 <= at < 40.0]
    assert len([at for at in calls if at >= 40.0]) > 20
    assert [words for words in told(scene) if TWO in words] == [
        f"a: server {TWO} joined",
        f"a: server {TWO} left",
        f"a: server {TWO} joined",
    ]


@pytest.mark.parametrize("other", [[ONE], []], ids=["one of two", "the only one"])
def test_a_server_that_leaves_and_has_refused_gets_another_chance(other):
    refusing = [True]

    def script(step, attempt):
        return (0.1, PermanentEndpointError("HTTP 401: no key", kind="auth")) if refusing[0] else 1.0

    def says(at):
        refusing[0] = at < 25.0
        return other if 15.0 <= at < 25.0 else [*other, TWO]

    found = cluster(says, ONE, TWO)
    found.servers[TWO].script = script
    scene = scene_of(found, steps=500)
    verdict, _ = play(scene, found)
    assert verdict.reason == "resolved"
    assert not scene.missing()
    assert answers(scene)[TWO] > 20


# All gone


@pytest.mark.parametrize("read_for", [0.01, 5.0], ids=["between two readings", "during one"])
def test_no_server_within_the_patience_stops_the_model_alone(read_for):
    found = cluster(lambda at: [ONE] if at > 124.0 else [])
    found.source.read_for = read_for
    scripts = {"b": lambda step, attempt: 20.0}
    discoveries = {"a": found.discovery(patience=120.0)}
    scene = Scene(steps={"a": 10, "b": 40}, discoveries=discoveries, scripts=scripts)
    verdict, ended = play(scene, found)
    assert verdict.reason == "resolved"
    assert scene.controller.stopped_models == {"a": "there was no server for 120 s: servers.txt names none"}
    assert ended == pytest.approx(200.0, abs=2.0)
    assert not scene.missing()
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
    scene = scene_of(found, patience=300.0, retry=RetryPolicy(attempts=1), requeues=0, steps=500)
    verdict, ended = play(scene, found)
    assert verdict.reason == "endpoints"
    assert ended == pytest.approx(321.0, abs=3.0)
    assert scene.controller.stopped_models["a"] == f"there was no server for 300 s: {reason}"
    assert not scene.missing()


def test_all_gone_for_a_while_leaves_no_hole():
    found = cluster(lambda at: [] if 15.0 <= at < 200.0 else [ONE], ONE, script=lambda step, attempt: 3.0)
    found.servers[ONE].up = lambda at: not 21.0 <= at < 190.0
    scene = scene_of(found, patience=300.0, retry=RetryPolicy(attempts=1), requeues=0, steps=100)
    verdict, _ = play(scene, found)
    assert verdict.reason == "resolved"
    assert not scene.missing()


# Sources that fail, and sources that are shared


def test_a_source_that_cannot_be_read_keeps_its_servers_and_is_told_of_once():
    seen = []
    says = lambda at: "no such file" if 15.0 <= at < 55.0 else [ONE]  # noqa: E731
    found = cluster(says, ONE)
    scene = scene_of(found, steps=600, seen=seen)
    verdict, ended = play(scene, found)
    assert verdict.reason == "resolved"
    assert ended == pytest.approx(75.0, abs=3.0)
    assert remarks(seen) == ["servers.txt: no such file; the last known servers are kept"]
    assert told(scene) == [f"a: server {ONE} joined"]
    last = [event for event in seen if isinstance(event, Progress)][-1]
    assert last.results.warnings == ()


def test_a_source_is_read_as_often_as_it_says_once_for_all_models():
    found = cluster([ONE], ONE, every=5.0)
    scene = scene_of(found, models=("a", "b"), steps=200)
    play(scene, found)
    assert found.source.reads[:4] == pytest.approx([0.0, 5.01, 10.02, 15.03])
    assert sorted(told(scene)) == [f"a: server {ONE} joined", f"b: server {ONE} joined"]


def test_models_that_find_the_same_server_share_its_limits():
    found = cluster([ONE], ONE)
    discovery = found.discovery(limits=lambda: ServerLimits(FixedConcurrency(3)))
    scene = Scene(steps={"a": 60, "b": 60}, concurrency=8, discoveries={"a": discovery, "b": discovery})
    play(scene, found)
    assert found.servers[ONE].most_in_flight == 3


# However it goes


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), concurrency=st.integers(1, 12), stop_at=st.none() | st.floats(0.0, 120.0))
def test_whatever_servers_do_the_books_are_right(seed, concurrency, stop_at):
    """Servers are named or not, and answer or not, at random; one is always there: no trial is lost."""

    def draw(*what):
        return hash((seed, *what)) % 1000 / 1000

    def script(number):
        return lambda step, attempt: (
            (draw(number, step), broken() if draw(step) < 0.5 else vanished())
            if draw(number, step, attempt) < 0.1
            else 3 * draw(step, number)
        )

    def says(at):
        if draw("unreadable", int(at) // 5) < 0.2:
            return "half written"
        return [ONE, *(url for url in (TWO, THREE) if draw(url, int(at) // 5) < 0.5)]

    found = cluster(says, ONE, TWO, THREE, every=3.0)
    for number, url in enumerate((ONE, TWO, THREE)):
        found.servers[url].script = script(number)
        if number:
            found.servers[url].up = lambda at, url=url: draw(url, "up", int(at) // 7) < 0.6
    scene = scene_of(
        found,
        steps=120,
        concurrency=concurrency,
        retry=RetryPolicy(attempts=20, total_wait=10_000.0),
        jitter=lambda: 0.5,
    )

    answered_once(scene, 120, stop_at)
