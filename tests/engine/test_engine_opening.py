"""The first requests of a run: a model that was never reached costs the others next to nothing."""

import asyncio

import pytest
from owned_clock import run_owned
from owned_runs import elapsed, run
from scripted import Scene, broken, refused

from adaptive_eval.engine.in_flight import InFlightTrials
from adaptive_eval.engine.runner import RunnerOptions

STEPS = {"a": 400, "b": 400, "wrong": 400}


def scene(script, **options):
    return Scene(
        steps=dict(STEPS),
        concurrency=32,
        fresh=True,
        scripts={"wrong": script},
        options=RunnerOptions(**options),
    )


def test_a_refusal_of_the_very_first_request_ends_the_run_before_the_others_cost_much():
    found = scene(lambda step, attempt: (2.0, refused()))
    verdict = run(found)
    assert verdict.reason == "endpoints"
    assert verdict.evidence["refused"]
    assert "401" in verdict.evidence["models"]["wrong"]
    assert found.controller.stopped_models == {}
    assert len(found.endpoints["wrong"].calls) <= InFlightTrials.unproven
    for model in ("a", "b"):
        assert len(found.endpoints[model].calls) <= InFlightTrials.unproven


def test_the_run_goes_on_without_it_where_that_is_allowed():
    found = scene(lambda step, attempt: (2.0, refused()), allow_missing=True)
    assert run(found).reason == "resolved"
    assert set(found.controller.stopped_models) == {"wrong"}
    assert len(found.endpoints["a"].calls) == STEPS["a"]


def test_a_refusal_of_a_model_that_has_answered_before_stops_that_model_alone():
    found = scene(lambda step, attempt: refused() if step > 100 else 0.1)
    assert run(found).reason == "resolved"
    assert set(found.controller.stopped_models) == {"wrong"}


def test_every_models_first_trial_is_sent_first_and_the_others_wait_for_its_end():
    found = scene(lambda step, attempt: 5.0 if step < InFlightTrials.unproven else 0.5)

    async def main():
        runner = asyncio.create_task(found.runner().run())
        await asyncio.sleep(4.9)
        begun = {model: len(one.calls) for model, one in found.endpoints.items()}
        await runner
        return begun

    assert run_owned(main()) == dict.fromkeys(STEPS, InFlightTrials.unproven)
    firsts = [(one.calls[0], one.calls[1][0]) for one in found.endpoints.values()]
    assert all(first[1] == 0 for first, _ in firsts)
    assert max(first[0] for first, _ in firsts) <= min(second for _, second in firsts)


@pytest.mark.parametrize("first", [(0.5, broken()), 100.0])
def test_slowness_and_passing_failures_neither_end_the_run_nor_hold_it_up_for_long(first):
    few = InFlightTrials.unproven
    found = scene(lambda step, attempt: first if step < few and attempt == 1 else 0.5)
    verdict, seconds = elapsed(found)
    assert verdict.reason == "resolved"
    assert seconds < 115.0
    assert max(at for at, _ in found.endpoints["a"].calls) < InFlightTrials.longest_first + 30.0
