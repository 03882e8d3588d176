"""The runner under an owned clock: launching, storing, telling, stopping."""

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_clock import run_owned
from scene import Scene, played
from scripted import ScoreByStep, ScriptedController, ScriptedScoring, broken, busy, fails, refused

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.events import Decided, Draining, Finished, Launched, Progress, Stopped
from adaptive_eval.engine.in_flight import Unlogged
from adaptive_eval.errors import RunFileError, SessionError
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Score, TrialKey, TrialOutcome, TrialRequest, Usage


def test_a_run_to_its_end():
    scene = played({"a": 8, "b": 8})
    assert scene.verdict == StopVerdict("resolved", "all is settled")
    assert scene.seconds == pytest.approx(2.0)
    keys = {TrialKey(model, step) for model in "ab" for step in range(8)}
    assert set(scene.outcomes) == set(scene.recorder.launched) == keys
    record = scene.outcomes[TrialKey("b", 3)]
    assert record.score == Score(1, "answer 3")
    assert record.completion.text == "answer 3"
    assert record.sent == {"messages": ["task/q3"], "seed": 3}
    assert not record.after_stop
    told = {one.key: one for one in scene.controller.told}[TrialKey("b", 3)]
    assert isinstance(told, TrialOutcome)
    assert (told.category, told.usage) == (1, Usage(10, 5))


def test_a_trial_that_is_queued_again_waits_for_a_slot_of_its_model():
    """Its old slot may be given to another trial while a commit lasts."""

    def script(step, attempt):
        return (0.1, broken()) if step == 0 and attempt <= 3 else 1.0

    retry = RetryConfig(attempts=3)
    scene = played(3, script, 1, retry=retry, jitter=lambda: 0.5, commit_seconds=0.3)
    assert len(scene.answered) == 3  # `played` sees that one request is in flight at most


def test_a_slow_model_does_not_hold_up_a_fast_one():
    scene = played({"slow": 2, "fast": 100}, concurrency=2, scripts={"slow": 100.0})
    assert scene.seconds == pytest.approx(100.0)
    assert max(scene.endpoints["fast"].starts) == pytest.approx(49.0)


def test_attempts_are_logged():
    first, second = played(1, fails(busy(), then=2.5)).recorder.of("attempt")
    assert (first.attempt, first.error, first.status) == (1, "rate_limit", 429)
    assert (first.message, first.endpoint) == ("HTTP 429: slow down", "http://a/v1")
    assert (second.attempt, second.error, second.message) == (2, None, "")
    assert second.latency == pytest.approx(2.5)


@pytest.mark.parametrize(("commit", "wait"), [(0.0, 0.0), (0.002, 0.002), (0.1, 0.02)])
def test_answers_wait_for_a_common_commit_as_long_as_the_last_ones_took_and_no_longer(commit, wait):
    """Two answers come while one may wait, and one after that."""
    arrivals = [0.0, commit + 0.2 * wait + 1e-4, commit + 0.8 * wait + 2e-4, commit + wait + 3e-4]
    scene = played(4, lambda step, attempt: 0.5 + arrivals[step], commit_seconds=commit)
    told = [[key.index for key in fields[0]] for kind, *fields in scene.journal if kind == "tell"]
    assert told == ([[0], [1, 2], [3]] if wait else [[0], [1], [2], [3]])


def test_an_interrupt_during_the_commit_of_a_launch_sends_nothing_and_leaves_nothing_open():
    scene = played(40, concurrency=8, commit_seconds=3.0, stop_at=[2.0])
    assert scene.verdict.reason == "interrupted"
    assert len(scene.recorder.launched) == 8
    assert not scene.server.calls
    assert scene.controller.abandoned == {TrialKey("a", step): False for step in range(8)}
    assert [record.error for record in scene.recorder.of("attempt")] == ["withdrawn"] * 8


def test_decisions_that_fall_while_it_is_asked_are_stored():
    scene = Scene(0)

    class Late(ScriptedController):
        def ask(self, capacity):
            self.unreported = self._stop("budget", "the budget is spent")
            return []

        def end(self, reason, text="", evidence=None):
            return self.unreported

    scene.controller = Late({"a": 0}, scene.journal)
    scene.play()
    assert [body["text"] for body in scene.recorder.of("decision")] == ["the budget is spent"]


# After the stop


@pytest.mark.parametrize(
    ("late", "kept", "ended"),
    [
        (lambda step: 5.0 + step, range(10), 14.0),
        (lambda step: (2.0, broken()), range(5), 2.0),
        (lambda step: busy(500.0), range(5), 1.0),
    ],
    ids=["answered", "failed", "between two attempts"],
)
def test_what_is_in_flight_at_the_stop_is_stored_flagged_and_told_and_leaves_no_hole(late, kept, ended):
    scene = played(100, lambda step, attempt: 1.0 if step < 5 else late(step), 10, resolve_after=5)
    assert (scene.verdict.reason, scene.seconds) == ("resolved", pytest.approx(ended))
    assert {outcome.key.index for outcome in scene.controller.told} == set(kept)
    after = {key.index for key, record in scene.outcomes.items() if record.after_stop}
    assert after == set(kept[5:])
    # One attempt each and no more: nothing is asked again after the stop.
    assert scene.server.attempts == dict.fromkeys(range(10), 1)


def request(model="a", step=0):
    return TrialRequest(TrialKey(model, step), "task", "q", 0, seed=step)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([], "wait for ever"),
        ([request(step=step) for step in range(5)], "no free slot"),
        ([request(model="x")], "unknown"),
        ([request(), request()], "twice"),
        ([request()], "has an outcome"),
    ],
    ids=["nothing", "too much", "unknown model", "twice", "again"],
)
def test_a_session_that_asks_wrongly_is_told_so(asked, words):
    scene = Scene(concurrency=1 if words == "has an outcome" else 4)
    scene.controller.ask = lambda capacity: asked
    with pytest.raises(SessionError, match=words):
        scene.play()


def left(scene, kind="outcome"):
    """Return what was recorded, whether a commit has confirmed it or not."""
    return [row[1] for row in scene.recorder.durable + scene.recorder.pending if row[0] == kind]


def check_ends_with(scene, error, match):
    """Check that a run raises `error`, and leaves no request; return what was raised."""
    with pytest.raises(error, match=match) as raised:
        scene.play()
    assert scene.server.in_flight == 0
    return raised.value


def test_a_full_disk_ends_the_run_with_its_own_error_and_keeps_the_answers():
    scene = Scene(100)

    def full(number):
        if number >= 6:
            raise RunFileError("the disk is full") from OSError(28, "No space left on device")

    scene.recorder.fail_commit = full
    raised = check_ends_with(scene, RunFileError, "the disk is full")
    assert isinstance(raised.__cause__, OSError)
    stored = {*left(scene)}
    assert {outcome.key for outcome in scene.controller.told} <= stored
    assert len(stored) == len({seed for at, seed in scene.server.calls if at + 1.0 <= 2.0})


def test_answers_that_come_while_a_commit_fails_are_kept_with_their_attempts():
    class OddOnesFail(ScoreByStep):
        async def score(self, request, completion):
            score = await super().score(request, completion)
            return replace(score, category=None) if score.category else score

    def script(step, attempt):
        return 1.0 + 2.0 * step if step < 3 else 6.5

    def full(number):
        if scene.outcomes:
            raise RunFileError("the disk is full")

    scene = Scene(100, script, commit_seconds=3.0, scoring=OddOnesFail())
    scene.recorder.fail_commit = full
    check_ends_with(scene, RunFileError, "the disk is full")
    answered = left(scene)
    asked = Counter(record.key for record in left(scene, "attempt"))
    # One that no scorer could use has no outcome yet: whether it is missing was not told.
    assert len(asked) > len(answered) > len(scene.outcomes)
    assert all(asked[key] == count for key, count in Counter(answered).items())
    assert all(key in answered for key in asked if not key.index % 2)


def test_a_bug_in_a_scorer_comes_out_as_itself_and_other_answers_are_kept():
    scoring = ScriptedScoring(lambda key, time: ZeroDivisionError("bug") if key.index == 2 else Score(0))
    scene = Scene(100, scoring=scoring)
    check_ends_with(scene, ZeroDivisionError, "bug")
    assert {key.index for key in left(scene)} == {0, 1, 3}


def test_cancelled_from_outside_it_keeps_what_has_ended():
    scene = Scene(100, lambda step, attempt: 1.0 + step)

    async def main():
        task = asyncio.create_task(scene.run())
        await asyncio.sleep(2.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_owned(main())
    assert {outcome.key.index for outcome in scene.controller.told} == {0, 1}
    assert scene.server.in_flight == 0


# Watching


def snapshots_of(scene):
    """Return the snapshots, and the seconds between them."""
    snapshots = scene.recorder.of("snapshot")
    return snapshots, [later.at - earlier.at for earlier, later in pairwise(snapshots)]


def test_a_snapshot_a_second_and_one_at_the_end():
    snapshots, gaps = snapshots_of(played(10, 0.73, 1))
    assert len(snapshots) == pytest.approx(8, abs=1)
    assert max(gaps) <= 2.0
    last = snapshots[-1]
    assert last.trials == 10
    assert last.elapsed == pytest.approx(7.3)
    assert last.results["stop"]["reason"] == "resolved"
    (health,) = last.endpoints
    assert (health.model, health.answered, health.in_flight, health.limit) == ("a", 10, 0, 1)
    assert health.p50 == pytest.approx(0.73, rel=0.03)


def test_costly_snapshots_take_a_twentieth_of_the_time_and_the_loops_lag_is_told():
    scene = Scene(100, concurrency=1)
    results = scene.controller.results

    def costly():
        asyncio.get_running_loop().elapsed += 1.25
        return results()

    scene.controller.results = costly
    scene.play()
    _, gaps = snapshots_of(scene)
    assert gaps[0] <= 3.0, "one costly snapshot holds up none: it may be the first to load what it needs"
    assert min(gaps[1:-1]) >= 25.0
    assert max(gaps) <= 28.0
    assert 0.2 <= max(event.lag for event in scene.seen(Progress)) <= 1.25


def test_events_tell_the_story():
    scene = played(8, lambda step, attempt: 1.0 + step, resolve_after=2)
    story = [type(event) for event in scene.events if not isinstance(event, Progress)]
    assert story[0] is Launched
    assert story[-1] is Stopped
    assert story.index(Decided) < story.index(Draining)
    (draining,) = scene.seen(Draining)
    assert (draining.reason, draining.in_flight) == ("resolved", 3)
    launched = [request.key for event in scene.seen(Launched) for request in event.requests]
    finished = [record.request.key for event in scene.seen(Finished) for record in event.records]
    assert sorted(launched, key=str) == sorted(finished, key=str)
    assert scene.seen(Progress)[-1].results.stop == scene.events[-1].verdict


def test_nothing_is_kept_of_finished_trials():
    scene = Scene(2000, concurrency=50)

    async def main():
        runner = scene.runner()
        await runner.run()
        return runner._in_flight

    trials = run_owned(main())
    assert not trials._running
    assert not trials._ended
    assert trials.unlogged == Unlogged()
    assert not any(lane.queue for lane in trials.lanes.values())


# However it goes


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    concurrency=st.integers(1, 9),
    models=st.integers(1, 3),
    stop_at=st.none() | st.floats(0.0, 60.0),
    resolve_after=st.none() | st.integers(1, 40),
    commit_seconds=st.sampled_from([0.0, 0.001, 0.3, 2.0]),
)
def test_whatever_happens_the_books_are_right(
    seed, concurrency, models, stop_at, resolve_after, commit_seconds
):
    """Random latencies, failures, refusals and stops: order, counts and limits hold."""

    def script(model, step, attempt):
        draw = Random(f"{seed} {model} {step} {attempt}").randrange(1000) / 1000
        if draw < 0.15:
            return (draw, broken())
        if draw < 0.2:
            return (draw, busy(draw * 20))
        return refused() if draw > 0.999 else draw * 3

    names = [f"m{i}" for i in range(models)]
    scene = played(
        dict.fromkeys(names, 30),
        concurrency=concurrency,
        resolve_after=resolve_after,
        retry=RetryConfig(attempts=3),
        scripts={name: partial(script, name) for name in names},
        jitter=lambda: 0.5,
        commit_seconds=commit_seconds,
        stop_at=[] if stop_at is None else [stop_at],
    )
    outcomes = scene.outcomes
    assert {outcome.key for outcome in scene.controller.told} == set(outcomes)
    if scene.verdict.reason == "resolved" and resolve_after is None:
        open_models = set(names) - set(scene.controller.stopped_models)
        assert {key for key in outcomes if key.model in open_models} == {
            TrialKey(name, step) for name in open_models for step in range(30)
        }
    answered = {key for key, record in outcomes.items() if record.missing is None}
    assert answered == {record.key for record in scene.answered}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), concurrency=st.integers(1, 16))
def test_outcomes_are_told_in_the_order_in_which_the_store_has_them(seed, concurrency):
    """The session reads outcome by outcome: a replay of the log must meet them in the same order."""

    def seconds(step, attempt):
        return 0.1 + (seed * 7919 + step * 104_729) % 97 / 10

    scene = played({"a": 30, "b": 20}, seconds, concurrency, commit_seconds=0.3)
    assert [outcome.key for outcome in scene.controller.told] == [*scene.outcomes]
