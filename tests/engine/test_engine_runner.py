"""The runner under an owned clock: launching, storing, telling, stopping."""

import asyncio
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_clock import run_owned
from owned_runs import elapsed, interrupted, run
from scripted import Scene, ScoreByStep, ScriptedController, broken, busy, refused

from adaptive_eval.core.results import StopVerdict
from adaptive_eval.engine.events import Decided, Draining, Finished, Launched, Progress, Stopped
from adaptive_eval.engine.in_flight import Unlogged
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.errors import RunFileError, SessionError
from adaptive_eval.trial import Score, TrialKey, TrialOutcome, TrialRequest, Usage


def test_a_run_to_its_end():
    scene = Scene(steps={"a": 8, "b": 8}, concurrency=4)
    verdict, seconds = elapsed(scene)
    assert verdict == StopVerdict("resolved", "all is settled")
    assert seconds == pytest.approx(2.0)
    keys = {TrialKey(model, step) for model in "ab" for step in range(8)}
    assert set(scene.recorder.outcomes) == set(scene.recorder.launched) == keys
    record = scene.recorder.outcomes[TrialKey("b", 3)]
    assert record.score == Score(1, "answer 3")
    assert record.completion.text == "answer 3"
    assert record.sent == {"messages": ["task/q3"], "seed": 3}
    assert not record.after_stop
    told = {one.key: one for one in scene.controller.told}[TrialKey("b", 3)]
    assert isinstance(told, TrialOutcome)
    assert (told.category, told.usage) == (1, Usage(10, 5))


def test_a_slow_model_does_not_hold_up_a_fast_one():
    scene = Scene(
        steps={"slow": 2, "fast": 100},
        concurrency=2,
        scripts={"slow": lambda step, attempt: 100.0, "fast": lambda step, attempt: 1.0},
    )
    _, seconds = elapsed(scene)
    assert seconds == pytest.approx(100.0)
    last_fast = max(at for at, _ in scene.endpoints["fast"].calls)
    assert last_fast == pytest.approx(49.0)


def test_attempts_are_logged():
    scene = Scene(steps={"a": 1}, scripts={"a": lambda step, attempt: busy() if attempt == 1 else 2.5})
    run(scene)
    first, second = scene.recorder.of("attempt")
    assert (first.attempt, first.error, first.status, first.message) == (
        1,
        "rate_limit",
        429,
        "HTTP 429: slow down",
    )
    assert (second.attempt, second.error, second.message) == (2, None, "")
    assert second.latency == pytest.approx(2.5)
    assert first.endpoint == "http://a/v1"


def test_an_interrupt_during_the_commit_of_a_launch_sends_nothing_and_leaves_nothing_open():
    scene = Scene(steps={"a": 40}, concurrency=8, commit_seconds=3.0)
    verdict, _ = interrupted(scene, 2.0)
    assert verdict.reason == "interrupted"
    assert len(scene.recorder.launched) == 8
    assert not scene.endpoints["a"].calls
    assert scene.controller.abandoned == {TrialKey("a", step): False for step in range(8)}
    assert [record.error for record in scene.recorder.of("attempt")] == ["withdrawn"] * 8


def test_decisions_that_fall_while_it_is_asked_are_stored():
    scene = Scene(steps={"a": 0})

    class Late(ScriptedController):
        def ask(self, capacity):
            self.unreported = self._stop("budget", "the budget is spent")
            return []

        def end(self, reason, text="", evidence=None):
            return self.unreported

    scene.controller = Late({"a": 0}, scene.journal)
    run(scene)
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
    scripts = {"a": lambda step, attempt: 1.0 if step < 5 else late(step)}
    scene = Scene(steps={"a": 100}, concurrency=10, scripts=scripts)
    scene.controller.resolve_after = 5
    verdict, seconds = elapsed(scene)
    assert (verdict.reason, seconds) == ("resolved", pytest.approx(ended))
    assert {outcome.key.index for outcome in scene.controller.told} == set(kept)
    after = {key.index for key, record in scene.recorder.outcomes.items() if record.after_stop}
    assert after == set(kept[5:])
    # One attempt each and no more: nothing is asked again after the stop.
    assert Counter(seed for _, seed in scene.endpoints["a"].calls) == Counter(range(10))


class Stubborn(ScriptedController):
    """Asks for what `ask_for` says."""

    def __init__(self, journal, ask_for):
        super().__init__({"a": 8}, journal)
        self.ask_for = ask_for

    def ask(self, capacity):
        return self.ask_for()


def request(model="a", step=0):
    return TrialRequest(TrialKey(model, step), "task", "q", 0, seed=step)


@pytest.mark.parametrize(
    ("ask_for", "words"),
    [
        (list, "wait for ever"),
        (lambda: [request(step=step) for step in range(5)], "no free slot"),
        (lambda: [request(model="x")], "unknown"),
        (lambda: [request(), request()], "twice"),
    ],
    ids=["nothing", "too much", "unknown model", "twice"],
)
def test_a_session_that_asks_wrongly_is_told_so(ask_for, words):
    scene = Scene()
    scene.controller = Stubborn(scene.journal, ask_for)
    with pytest.raises(SessionError, match=words):
        run(scene)


def test_a_trial_with_an_outcome_is_not_asked_for_again():
    scene = Scene(concurrency=1)
    scene.controller = Stubborn(scene.journal, lambda: [request(step=0)])
    with pytest.raises(SessionError, match="has an outcome"):
        run(scene)


def test_a_full_disk_ends_the_run_with_its_own_error_and_keeps_the_answers():
    scene = Scene(steps={"a": 100})

    def full(number):
        if number >= 6:
            raise RunFileError("the disk is full") from OSError(28, "No space left on device")

    scene.recorder.fail_commit = full
    with pytest.raises(RunFileError, match="the disk is full") as raised:
        run(scene)
    assert isinstance(raised.value.__cause__, OSError)
    stored = {row[1] for row in scene.recorder.durable + scene.recorder.pending if row[0] == "outcome"}
    told = {outcome.key for outcome in scene.controller.told}
    assert told <= stored
    assert len(stored) == len({seed for at, seed in scene.endpoints["a"].calls if at + 1.0 <= 2.0})
    check_nothing_runs(scene)


def test_answers_that_come_while_a_commit_fails_are_kept_with_their_attempts():
    class OddOnesFail(ScoreByStep):
        async def score(self, request, completion):
            score = await super().score(request, completion)
            return replace(score, category=None) if score.category else score

    scripts = {"a": lambda step, attempt: 1.0 + 2.0 * step if step < 3 else 6.5}
    scene = Scene(steps={"a": 100}, commit_seconds=3.0, scripts=scripts, scoring=OddOnesFail())

    def full(number):
        if any(row[0] == "outcome" for row in scene.recorder.durable):
            raise RunFileError("the disk is full")

    scene.recorder.fail_commit = full
    with pytest.raises(RunFileError, match="the disk is full"):
        run(scene)
    left = scene.recorder.durable + scene.recorder.pending
    answered = [row[1] for row in left if row[0] == "outcome"]
    asked = Counter(row[1].key for row in left if row[0] == "attempt")
    # One that no scorer could use has no outcome yet: whether it is missing was not told.
    assert len(asked) > len(answered) > len(scene.recorder.outcomes)
    assert all(asked[key] == count for key, count in Counter(answered).items())
    assert all(key in answered for key in asked if not key.index % 2)


def check_nothing_runs(scene):
    assert all(endpoint.in_flight == 0 for endpoint in scene.endpoints.values())


def test_a_bug_in_a_scorer_comes_out_as_itself_and_other_answers_are_kept():
    class Buggy:
        async def score(self, request, completion):
            if request.key.index == 2:
                raise ZeroDivisionError("bug")
            return Score(0)

    scene = Scene(steps={"a": 100}, scoring=Buggy())
    with pytest.raises(ZeroDivisionError, match="bug"):
        run(scene)
    kept = {row[1].index for row in scene.recorder.pending + scene.recorder.durable if row[0] == "outcome"}
    assert kept == {0, 1, 3}
    check_nothing_runs(scene)


def test_cancelled_from_outside_it_keeps_what_has_ended():
    scene = Scene(steps={"a": 100}, scripts={"a": lambda step, attempt: 1.0 + step})

    async def main():
        task = asyncio.create_task(scene.runner().run())
        await asyncio.sleep(2.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_owned(main())
    assert {outcome.key.index for outcome in scene.controller.told} == {0, 1}
    check_nothing_runs(scene)


# Watching


def test_a_snapshot_a_second_and_one_at_the_end():
    scene = Scene(steps={"a": 10}, concurrency=1, scripts={"a": lambda step, attempt: 0.73})
    run(scene)
    snapshots = scene.recorder.of("snapshot")
    gaps = [later.at - earlier.at for earlier, later in pairwise(snapshots)]
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
    scene = Scene(steps={"a": 100}, concurrency=1, scripts={"a": lambda step, attempt: 1.0})
    results, lags = scene.controller.results, []

    def costly():
        asyncio.get_running_loop().elapsed += 1.25
        return results()

    scene.controller.results = costly
    scene.observer = lambda event: lags.append(event.lag) if isinstance(event, Progress) else None
    run(scene)
    snapshots = scene.recorder.of("snapshot")
    gaps = [later.at - earlier.at for earlier, later in pairwise(snapshots)]
    assert gaps[0] <= 3.0, "one costly snapshot holds up none: it may be the first to load what it needs"
    assert min(gaps[1:-1]) >= 25.0
    assert max(gaps) <= 28.0
    assert 0.2 <= max(lags) <= 1.25


def test_events_tell_the_story():
    events = []
    scene = Scene(
        steps={"a": 8}, concurrency=4, observer=events.append, scripts={"a": lambda step, attempt: 1.0 + step}
    )
    scene.controller.resolve_after = 2
    run(scene)
    story = [type(event) for event in events if not isinstance(event, Progress)]
    assert story[0] is Launched
    assert story[-1] is Stopped
    assert story.index(Decided) < story.index(Draining)
    (draining,) = [event for event in events if isinstance(event, Draining)]
    assert (draining.reason, draining.in_flight) == ("resolved", 3)
    launched = [request.key for event in events if isinstance(event, Launched) for request in event.requests]
    finished = [
        record.request.key for event in events if isinstance(event, Finished) for record in event.records
    ]
    assert sorted(launched, key=str) == sorted(finished, key=str)
    progress = [event for event in events if isinstance(event, Progress)]
    assert progress[-1].results.stop == events[-1].verdict


def test_nothing_is_kept_of_finished_trials():
    scene = Scene(steps={"a": 2000}, concurrency=50)
    runner = None

    async def main():
        nonlocal runner
        runner = scene.runner()
        await runner.run()

    run_owned(main())
    trials = runner._in_flight
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

    def script(model):
        def plan(step, attempt):
            draw = hash((seed, model, step, attempt)) % 1000 / 1000
            if draw < 0.15:
                return (draw, broken())
            if draw < 0.2:
                return (draw, busy(draw * 20))
            if draw > 0.999:
                return refused()
            return draw * 3

        return plan

    names = [f"m{i}" for i in range(models)]
    scene = Scene(
        steps=dict.fromkeys(names, 30),
        concurrency=concurrency,
        retry=RetryPolicy(attempts=3),
        scripts={name: script(name) for name in names},
        jitter=lambda: 0.5,
        commit_seconds=commit_seconds,
    )
    scene.controller.resolve_after = resolve_after

    verdict, _ = interrupted(scene, *(() if stop_at is None else (stop_at,)))
    outcomes = scene.recorder.outcomes
    told = {outcome.key for outcome in scene.controller.told}
    assert told == set(outcomes)
    if verdict.reason == "resolved" and resolve_after is None:
        open_models = set(names) - set(scene.controller.stopped_models)
        assert {key for key in outcomes if key.model in open_models} == {
            TrialKey(name, step) for name in open_models for step in range(30)
        }
    answered = {key for key, record in outcomes.items() if record.missing is None}
    good = {record.key for record in scene.recorder.of("attempt") if record.error is None}
    assert answered == good


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), concurrency=st.integers(1, 16))
def test_outcomes_are_told_in_the_order_in_which_the_store_has_them(seed, concurrency):
    """The session reads outcome by outcome: a replay of the log must meet them in the same order."""

    def seconds(step, attempt):
        return 0.1 + (seed * 7919 + step * 104_729) % 97 / 10

    scene = Scene(steps={"a": 30, "b": 20}, concurrency=concurrency, commit_seconds=0.3)
    for endpoint in scene.endpoints.values():
        endpoint.script = seconds
    run(scene)
    stored = [row[1] for row in scene.recorder.durable if row[0] == "outcome"]
    assert [outcome.key for outcome in scene.controller.told] == stored
