"""How a run begins and ends under an owned clock."""

import asyncio
from collections import Counter

import pytest
from owned_clock import run_owned
from scene import Scene, played
from scripted import ScriptedScoring, broken, refused
from test_engine_sharing import Shared

from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.events import Draining
from adaptive_eval.engine.health import SEVERAL
from adaptive_eval.engine.limits import FIRST_ANSWER
from adaptive_eval.engine.runner import RunnerOptions
from adaptive_eval.engine.solving import Solver
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Score, TrialKey

# The runner when it is told to end: interrupts and deadlines, under an owned clock.


def test_the_first_interrupt_drains():
    scene = played(1000, lambda step, attempt: 10.0 + step % 4, stop_at=[25.0])
    assert scene.verdict.reason == "interrupted"
    assert set(scene.outcomes) == set(scene.recorder.launched)
    assert len(scene.controller.told) == len(scene.outcomes)
    assert not any(record.after_stop for record in scene.outcomes.values())
    assert 25.0 < scene.seconds <= 25.0 + 13.0
    assert not scene.server.cancelled
    assert scene.journal.index(("end", "interrupted")) > max(
        index for index, entry in enumerate(scene.journal) if entry[0] == "tell"
    )


def test_a_trial_that_fails_while_answers_are_stored_is_not_queued_again_after_an_interrupt():
    def script(step, attempt):
        return 1.0 if step == 0 else (2.0, broken())

    # Launched at 3 s; stored from 4 s to 7 s; the other fails at 5 s.
    scene = played(2, script, commit_seconds=3.0, retry=RetryConfig(attempts=1), stop_at=[6.0])
    assert scene.verdict.reason == "interrupted"
    assert set(scene.outcomes) == {TrialKey("a", 0)}
    assert scene.controller.abandoned == {TrialKey("a", 1): False}


def test_the_second_interrupt_cancels():
    scene = played(1000, 10.0, stop_at=[25.0, 26.0])
    assert scene.verdict.reason == "interrupted"
    assert scene.seconds == pytest.approx(26.0)
    assert sorted(scene.server.cancelled) == [8, 9, 10, 11]
    # Launched, no outcome, maybe billed: a resumed run asks them again.
    lost = {TrialKey("a", step): True for step in (8, 9, 10, 11)}
    assert set(scene.recorder.launched) - set(scene.outcomes) == {*lost}
    assert scene.controller.abandoned == lost


def test_an_interrupt_while_draining_after_the_verdict_cancels_at_once():
    scene = played(10, lambda step, attempt: 1.0 + 100.0 * step, 10, resolve_after=1, stop_at=[50.0])
    assert scene.verdict.reason == "resolved"
    assert scene.seconds == pytest.approx(50.0)


def test_an_answer_that_is_being_scored_is_kept_even_when_all_is_cancelled():
    slow = ScriptedScoring(lambda key, time: Score(1), seconds=3.0)
    scene = played(100, concurrency=2, scoring=slow, stop_at=[2.0, 2.5])
    assert scene.seconds == pytest.approx(4.0)
    assert set(scene.outcomes) == {TrialKey("a", 0), TrialKey("a", 1)}


@pytest.mark.parametrize(
    ("options", "end", "told", "launched"), [({}, 70.0, 28, 28), ({"at_deadline": "cancel"}, 65.25, 24, 28)]
)
def test_the_deadline_drains_or_cancels_as_told(options, end, told, launched):
    scene = played(10_000, 10.0, options=RunnerOptions(deadlines=Deadlines(65.25), **options))
    assert bool(scene.seen(Draining)) == (not options)
    assert scene.verdict.reason == "budget"
    assert scene.verdict.evidence["used"]["wall_clock"][1] == 65.25
    assert scene.seconds == pytest.approx(end)
    assert len(scene.outcomes) == len(scene.controller.told) == told
    assert len(scene.recorder.launched) == launched


def test_earlier_sittings_count_towards_the_deadline():
    scene = played(10_000, options=RunnerOptions(deadlines=Deadlines(100.0), elapsed=90.0))
    assert scene.verdict.reason == "budget"
    assert scene.seconds == pytest.approx(10.0, abs=1.0)
    last = scene.recorder.of("snapshot")[-1]
    assert last.elapsed == pytest.approx(90.0 + scene.seconds)
    (line,) = last.results["budgets"]
    assert (line["name"], line["limit"]) == ("wall_clock", 100.0)
    assert line["spent"] == pytest.approx(last.elapsed)


def test_a_model_whose_time_is_up_stops_alone():
    deadlines = Deadlines(models={"slow": 30.25, "fast": 3600.0})
    steps, scripts = {"slow": 1000, "fast": 60}, {"slow": 10.0, "fast": 5.0}
    scene = played(steps, scripts=scripts, options=RunnerOptions(deadlines=deadlines))
    assert scene.verdict.reason == "resolved"
    assert scene.controller.stopped_models == {"slow": "its wall clock limit of 30.25 s is reached"}
    assert scene.controller.spent == {"slow"}, "its budget is used up; its server has not failed"
    assert set(scene.outcomes) == set(scene.recorder.launched)  # what was out came back
    assert Counter(key.model for key in scene.outcomes) == {"slow": 16, "fast": 60}
    lines = scene.recorder.of("snapshot")[-1].results["budgets"]
    assert [(line["scope"], line["owner"], line["spent"], line["limit"]) for line in lines] == [
        ("model", "slow", 30.25, 30.25),
        ("model", "fast", pytest.approx(75.0), 3600.0),
    ]


def test_the_time_of_a_task_ends_the_run():
    deadlines = Deadlines(run=100.0, tasks={"maths": 20.5, "prose": 50.0})
    evidence = played(10_000, options=RunnerOptions(deadlines=deadlines)).verdict.evidence
    assert (evidence["scope"], evidence["owner"]) == ("task", "maths")
    assert evidence["used"]["wall_clock"][1] == 20.5


# The first requests of a run: a model that was never reached costs the others next to nothing.


STEPS = {"a": 400, "b": 400, "wrong": 400}


def scene(script, **options):
    return Scene(
        STEPS, concurrency=32, fresh=True, scripts={"wrong": script}, options=RunnerOptions(**options)
    )


def test_a_refusal_of_the_very_first_request_ends_the_run_before_the_others_cost_much():
    found = scene((2.0, refused()))
    verdict = found.play()
    assert verdict.reason == "endpoints"
    assert verdict.evidence["refused"]
    assert "401" in verdict.evidence["models"]["wrong"]
    assert found.controller.stopped_models == {}
    for endpoint in found.endpoints.values():
        assert len(endpoint.calls) <= SEVERAL


def test_a_first_request_that_is_refused_while_an_answer_is_stored_ends_the_run_too():
    found = Scene(
        {"a": 400, "wrong": 400},
        lambda step, attempt: 1.9,
        fresh=True,
        scripts={"wrong": (2.0, refused())},
        commit_seconds=0.2,
    )
    verdict = found.play()
    assert (verdict.reason, found.controller.stopped_models) == ("endpoints", {})
    assert verdict.evidence["refused"].keys() == {"wrong"}


def test_refusals_that_come_after_the_first_stop_no_model_that_was_never_reached():
    scripts = {"wrong": lambda step, attempt: (2.0 + step / 10, refused()), "other": (2.5, refused())}
    found = Scene({"a": 400, "wrong": 400, "other": 400}, concurrency=32, fresh=True, scripts=scripts)
    verdict = found.play()
    assert (verdict.reason, found.controller.stopped_models) == ("endpoints", {})
    assert verdict.evidence["refused"].keys() == verdict.evidence["models"].keys() == {"wrong", "other"}


@pytest.mark.parametrize("allowed", [True, False])
def test_a_refusal_stops_the_model_alone_where_that_is_allowed_or_it_has_answered(allowed):
    found = scene(lambda step, attempt: refused() if allowed or step > 100 else 0.1, allow_missing=allowed)
    assert found.play().reason == "resolved"
    assert set(found.controller.stopped_models) == {"wrong"}
    assert len(found.server.calls) == STEPS["a"]


def test_every_models_first_trial_is_sent_first_and_the_others_wait_for_its_end():
    found = scene(lambda step, attempt: 5.0 if step < SEVERAL else 0.5)

    async def main():
        running = asyncio.create_task(found.run())
        await asyncio.sleep(4.9)
        begun = {model: len(one.calls) for model, one in found.endpoints.items()}
        await running
        return begun

    assert run_owned(main()) == dict.fromkeys(STEPS, SEVERAL)
    firsts = [(one.calls[0], one.calls[1][0]) for one in found.endpoints.values()]
    assert all(first[1] == 0 for first, _ in firsts)
    assert max(first[0] for first, _ in firsts) <= min(second for _, second in firsts)


@pytest.mark.parametrize("first", [(0.5, broken()), 100.0])
def test_slowness_and_passing_failures_neither_end_the_run_nor_hold_it_up_for_long(first):
    few = SEVERAL
    found = scene(lambda step, attempt: first if step < few and attempt == 1 else 0.5)
    assert found.play().reason == "resolved"
    assert found.seconds < 115.0
    assert max(found.server.starts) < FIRST_ANSWER + 30.0


async def twice(model, messages):
    first = await model(messages)
    return (await model([*messages, {"role": "user", "content": first.text}])).text


@pytest.mark.parametrize("stop_at", [[0.5], [1.5]])
def test_a_call_of_a_solver_that_may_not_start_holds_up_no_end(stop_at):
    """The server asks for a pause of an hour after the first call; what was paid is told."""
    scene = Scene(1, 1.0, solver=Solver("twice", twice, 2, 99))
    scene.server.pause = lambda step: 3600.0
    scene.play(*stop_at)
    assert scene.seconds <= 2.0
    assert scene.controller.abandoned == {TrialKey("a", 0): True}
    assert len(scene.server.calls) == 1


@pytest.mark.parametrize("stop_at", [[0.5], [1.5]])
@pytest.mark.parametrize("lost", [0, 3])
def test_an_answer_that_was_asked_for_and_did_not_come_holds_up_no_end(lost, stop_at):
    scene = Shared(4, 1.0, rates={"a": RateLimit(requests_per_minute=1)})
    scene.server.lost = lost
    scene.play(*stop_at)
    assert scene.seconds <= 2.0
    assert set(scene.controller.abandoned) == {TrialKey("a", lost)}
    assert len(scene.outcomes) == 3
