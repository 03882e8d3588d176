"""Attempts that fail under the runner: refusals, requeueing, outages, silence that is asked for."""

from owned_runs import elapsed, run
from scripted import Scene, broken, busy, refused

from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.trial import TrialKey


def test_a_model_that_is_refused_is_stopped_alone():
    scene = Scene(
        steps={"bad": 100, "good": 20},
        scripts={"bad": lambda step, attempt: (1.0, refused()) if step >= 6 else 1.5},
    )
    verdict = run(scene)
    assert verdict.reason == "resolved"
    assert scene.controller.stopped_models == {"bad": "http://bad/v1: HTTP 401: no key"}
    assert [entry[0] for entry in scene.journal].count("stop_model") == 1
    good = [key for key in scene.recorder.outcomes if key.model == "good"]
    assert len(good) == 20
    # Nothing of it is missing for good: a resumed run with the right key asks again.
    assert not scene.missing()
    assert all("bad" not in capacity for capacity in scene.controller.capacities[-2:])


def test_requests_of_a_stopped_model_that_are_out_come_back():
    scene = Scene(
        steps={"bad": 100, "good": 4},
        scripts={"bad": lambda step, attempt: (1.0, refused()) if step == 0 else 3.0},
    )
    run(scene)
    bad = {key.index for key in scene.recorder.outcomes if key.model == "bad"}
    assert bad == {1, 2, 3}


def test_a_trial_comes_back_to_the_queue_and_is_then_missing():
    scene = Scene(
        steps={"a": 20},
        retry=RetryPolicy(attempts=3),
        scripts={"a": lambda step, attempt: broken() if step == 4 else 1.0},
    )
    run(scene)
    (missing,) = scene.missing()
    assert missing.key == TrialKey("a", 4)
    assert missing.reason == "HTTP 503: down (attempts: 6)"
    record = scene.recorder.outcomes[missing.key]
    assert (record.completion, record.score, record.missing) == (None, None, missing.reason)
    assert [r.attempt for r in scene.recorder.of("attempt") if r.key == missing.key] == [1, 2, 3, 4, 5, 6]


def test_a_server_that_has_gone_stops_its_model_with_few_holes():
    scene = Scene(
        steps={"gone": 1000, "good": 20},
        retry=RetryPolicy(attempts=2),
        concurrency=16,
        outage=5,
        scripts={"gone": lambda step, attempt: 1.0 if step < 50 else (1.0, broken())},
    )
    verdict = run(scene)
    assert verdict.reason == "resolved"
    assert "consecutive trials without an answer: HTTP 503: down" in scene.controller.stopped_models["gone"]
    assert 5 <= len(scene.missing()) <= 16


def test_single_failures_are_no_outage():
    scene = Scene(
        steps={"a": 200},
        retry=RetryPolicy(attempts=1),
        requeues=0,
        outage=3,
        concurrency=1,
        scripts={"a": lambda step, attempt: broken() if step % 3 else 1.0},
    )
    assert run(scene).reason == "resolved"
    assert not scene.controller.stopped_models
    assert len(scene.missing()) == 133


def test_a_model_waits_when_its_server_asks_for_silence():
    # Steps 0 to 3 go out at 0; step 0 is told to wait 30 s at 1; the places of 1 to 3 stay empty until 31.
    script = {"a": lambda step, attempt: (1.0, busy(30.0)) if step == 0 and attempt == 1 else 2.0}
    scene = Scene(steps={"a": 12, "b": 40}, scripts=script)
    run(scene)
    starts = sorted(at for at, step in scene.endpoints["a"].calls if step > 3)
    assert starts[0] >= 31.0
    assert starts[0] <= 32.0
    assert max(at for at, _ in scene.endpoints["b"].calls) < 15.0


def test_a_server_that_asks_for_a_day_is_asked_again_before():
    scene = Scene(
        steps={"a": 40},
        concurrency=2,
        retry=RetryPolicy(total_wait=100.0),
        scripts={"a": lambda step, attempt: busy(86_400.0) if step == 0 and attempt == 1 else 1.0},
    )
    _, seconds = elapsed(scene)
    assert seconds < 200.0
    assert not scene.missing()
