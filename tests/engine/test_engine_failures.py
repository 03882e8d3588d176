"""Attempts that fail, and answers that no scorer could judge."""

import asyncio

import pytest
from owned_clock import OwnedClock, run_owned
from scene import played
from scripted import ScriptedScoring, broken, busy, fails, refused

from adaptive_eval.engine.retry import is_allowed, wait_after, with_retries
from adaptive_eval.engine.solving import Solver
from adaptive_eval.errors import PermanentEndpointError, ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.trial import Missing, Score, TrialKey, Usage

# Attempts that fail under the runner: refusals, requeueing, outages, silence that is asked for.


def test_a_model_that_is_refused_is_stopped_alone():
    scripts = {"bad": lambda step, attempt: (1.0, refused()) if step == 0 else 3.0}
    scene = played({"bad": 100, "good": 20}, scripts=scripts)
    assert scene.verdict.reason == "resolved"
    assert scene.controller.stopped_models == {"bad": "http://bad/v1: HTTP 401: no key"}
    assert not scene.controller.spent
    assert [entry[0] for entry in scene.journal].count("stop_model") == 1
    bad = {key.index for key in scene.outcomes if key.model == "bad"}
    assert bad == {1, 2, 3}  # those that were out came back
    assert len(scene.outcomes) == 23
    # Nothing of it is missing for good: a resumed run with the right key asks again.
    assert not scene.missing()
    assert all("bad" not in capacity for capacity in scene.controller.capacities[-2:])


ONCE = RetryConfig(attempts=1)


def test_a_trial_that_fails_while_another_model_is_stopped_is_queued_again():
    scripts = {"bad": (1.0, refused()), "good": fails((4.0, broken()))}
    # Launched at 3 s; a snapshot takes until 6 s; refusals are stored until 9 s, and the others fail at 7 s.
    scene = played({"bad": 2, "good": 2}, scripts=scripts, retry=ONCE, commit_seconds=3.0)
    assert set(scene.outcomes) == {TrialKey("good", step) for step in range(2)}


def test_a_trial_comes_back_to_the_queue_and_is_then_missing():
    scene = played(20, lambda step, attempt: broken() if step == 4 else 1.0, retry=RetryConfig(attempts=3))
    (missing,) = scene.missing()
    assert missing.key == TrialKey("a", 4)
    assert missing.reason == "HTTP 503: down (attempts: 6)"
    record = scene.outcomes[missing.key]
    assert (record.completion, record.score, record.missing) == (None, None, missing.reason)
    assert [r.attempt for r in scene.recorder.of("attempt") if r.key == missing.key] == [1, 2, 3, 4, 5, 6]


def wrong_request(words, status=400):
    return PermanentEndpointError(f"HTTP {status}: {words}", kind="bad_request", status=status)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_question_that_a_model_does_not_take_is_lost_alone(status):
    error = wrong_request("too long", status)
    scripts = {"short": lambda step, attempt: (1.0, error) if step % 20 == 7 else 1.5}
    scene = played({"short": 200, "good": 20}, scripts=scripts)
    assert scene.verdict.reason == "resolved"
    assert not scene.controller.stopped_models
    assert {missing.key.index for missing in scene.missing()} == {*range(7, 200, 20)}
    assert {missing.reason for missing in scene.missing()} == {f"HTTP {status}: too long (attempts: 1)"}


@pytest.mark.parametrize(
    ("seconds", "error", "most"), [(1.0, broken(), 16), (3.0, wrong_request("no credit"), 5)]
)
def test_a_server_that_has_gone_or_takes_no_question_stops_its_model_with_few_holes(seconds, error, most):
    scripts = {"gone": lambda step, attempt: 1.0 if step < 50 else (seconds, error)}
    options = {"concurrency": 16, "outage": 5, "retry": RetryConfig(attempts=2)}
    scene = played({"gone": 1000, "good": 20}, scripts=scripts, **options)
    assert scene.verdict.reason == "resolved"
    said = scene.controller.stopped_models["gone"]
    assert said.startswith(f"http://gone/v1: consecutive trials without an answer: {error} (attempts: ")
    assert 5 <= len(scene.missing()) <= most


def test_a_model_that_has_failed_and_then_takes_no_question_is_stopped():
    scene = played(8, fails(broken(), then=wrong_request("no such field")))
    assert scene.verdict.reason == "endpoints"
    assert not scene.missing()


def test_single_failures_are_no_outage():
    options = {"retry": RetryConfig(attempts=1, requeue=0), "outage": 3}
    scene = played(200, lambda step, attempt: broken() if step % 3 else 1.0, concurrency=1, **options)
    assert scene.verdict.reason == "resolved"
    assert not scene.controller.stopped_models
    assert len(scene.missing()) == 133


def test_a_refused_request_waits_as_its_server_asks_and_the_others_do_not():
    scripts = {"a": lambda step, attempt: (1.0, busy(30.0)) if step == 0 and attempt == 1 else 2.0}
    scene = played({"a": 12, "b": 40}, scripts=scripts)
    starts = [[at for at, step in scene.server.calls if (step == 0) == first] for first in (True, False)]
    assert starts[0] == [0.0, 31.0]
    assert max(starts[1]) < 10.0
    assert max(scene.endpoints["b"].starts) < 15.0


@pytest.mark.parametrize("retry", [RetryConfig(attempts=1, requeue=3), RetryConfig(attempts=4, requeue=3)])
def test_a_server_that_refuses_everything_gets_nothing_before_the_time_that_it_names(retry):
    scene = played(60, lambda step, attempt: busy(30.0) if attempt < 3 else 1.0, 16, retry=retry)
    assert not scene.missing()
    starts = sorted(scene.server.starts)
    assert not [at for at in starts if 0.0 < at < 30.0]
    for step in range(16):
        mine = [at for at, asked in scene.server.calls if asked == step]
        assert mine[1] - mine[0] >= 30.0, "each waits as it was asked"


# When a failed request is sent again: the decision as a table, and the layer built from it in time.


NINE = RetryConfig(attempts=9, max_seconds=100.0)


@pytest.mark.parametrize(
    ("error", "attempt", "waited", "jitter", "wait"),
    [
        # Exponential, capped, full jitter.
        (broken(), 1, 0.0, 0.0, 0.0),
        (broken(), 1, 0.0, 0.999, 0.999),
        (broken(), 2, 0.0, 0.5, 1.0),
        (broken(), 3, 0.0, 0.5, 2.0),
        (broken(), 4, 0.0, 0.5, 4.0),
        (broken(), 5, 0.0, 0.5, 8.0),
        (broken(), 8, 0.0, 0.5, 15.0),
        # Attempts are capped.
        (broken(), 9, 0.0, 0.5, None),
        (broken(), 2000, 0.0, 0.5, None),  # 2 to the power of 1999 is no float
        # The total wait is capped.
        (broken(), 5, 92.0, 0.5, 8.0),
        (broken(), 5, 92.1, 0.5, None),
        # What the server asks for is obeyed, exactly or a little later.
        (busy(7.0), 1, 0.0, 0.0, 7.0),
        (busy(7.0), 5, 0.0, 0.0, 7.0),
        (busy(7.0), 1, 0.0, 0.5, 7.5),
        (busy(0.0), 1, 0.0, 0.0, 0.0),
        (busy(40.0), 1, 0.0, 0.0, 40.0),
        (busy(100.0), 1, 0.0, 0.0, 100.0),
        # More than we are ready to wait: never earlier instead.
        (busy(100.1), 1, 0.0, 0.0, None),
        (busy(40.0), 3, 61.0, 0.0, None),
        (busy(), 2, 0.0, 0.5, 1.0),
        # No attempt helps.
        (refused(), 1, 0.0, 0.5, None),
    ],
)
def test_the_decision(error, attempt, waited, jitter, wait):
    found = wait_after(error, attempt, jitter)
    again = isinstance(error, TransientEndpointError) and is_allowed(NINE, attempt, waited + found)
    assert (found if again else None) == (None if wait is None else pytest.approx(wait))


def layer_in_time(errors, retry=NINE, jitter=lambda: 0.5, unwanted=lambda: False):
    """Run the layer over attempts that fail with `errors`; return its end, and when attempts began."""
    starts = []
    remaining = list(errors)

    async def attempt():
        starts.append(asyncio.get_running_loop().time())
        if remaining:
            raise remaining.pop(0)
        return "answer"

    async def main():
        sleep = OwnedClock().sleep
        try:
            return await with_retries(attempt, retry, sleep=sleep, jitter=jitter, unwanted=unwanted)
        except (TransientEndpointError, PermanentEndpointError) as error:
            return error

    return run_owned(main()), starts


def test_giving_up_is_asked_for_after_every_failure():
    verdicts = iter([False, True])
    result, starts = layer_in_time([broken()] * 6, unwanted=lambda: next(verdicts))
    assert isinstance(result, TransientEndpointError)
    assert len(starts) == 2


@pytest.mark.parametrize(
    ("errors", "retry", "attempts"),
    [
        ([broken()] * 9, NINE, 9),
        ([refused()], NINE, 1),
        ([busy(40.0)] * 6, NINE, 3),  # 40 + 40 s, and a third wait would be too much
        ([busy(100.1)], NINE, 1),
        ([broken()] * 2, RetryConfig(attempts=1), 1),
    ],
)
def test_the_end_of_the_attempts(errors, retry, attempts):
    result, starts = layer_in_time(errors, retry, jitter=lambda: 0.0)
    assert result in errors
    asked = getattr(errors[0], "retry_after", None) or 0.0
    assert starts == pytest.approx([asked * number for number in range(attempts)])


def test_trials_that_retry_at_once_do_not_mix_their_states():
    # tenacity keeps the state of a call in the layer; each trial must have its own.
    def script(step, attempt):
        return broken() if attempt <= step % 5 else 0.25

    scene = played(60, script, 30, retry=RetryConfig(attempts=5, max_seconds=600.0), jitter=lambda: 0.5)
    assert scene.server.attempts == {step: step % 5 + 1 for step in range(60)}


# Answers that no scorer could judge: kept, never right or wrong, and never paid for twice.


AWAY = ScorerUnavailable("the judge wise did not answer: APIConnectionError", kind="judge")
RIGHT = Score(1, "x")


def away_for(step):
    return ScriptedScoring(lambda key, time: AWAY if key.index == step else RIGHT)


NEVER = ScriptedScoring(lambda key, time: AWAY)


def test_an_answer_waits_for_its_scorer_and_is_not_asked_for_again():
    scoring = ScriptedScoring(lambda key, time: AWAY if time < 4 else RIGHT)
    scene = played(scoring=scoring, jitter=lambda: 1.0)
    assert scene.verdict.reason == "resolved"
    assert not scene.missing()
    assert set(scoring.asked.values()) == {4}
    assert set(scene.server.attempts.values()) == {1}


def test_an_answer_whose_scorer_stays_away_is_kept_without_a_category():
    scene = played(scoring=away_for(3))
    assert scene.server.attempts[3] == 1
    record = scene.outcomes[TrialKey("a", 3)]
    assert record.completion.text == "answer 3"
    assert record.score.category is None
    assert record.missing == "unscored: the judge wise did not answer: APIConnectionError"
    assert [outcome.key.index for outcome in scene.missing()] == [3]
    assert record.outcome == Missing(TrialKey("a", 3), record.missing, record.completion.usage)


def test_a_scorer_that_never_answers_stops_the_model_instead_of_making_holes():
    scene = played(100, scoring=NEVER, outage=3, concurrency=1)
    # not the address of the model's server, which has answered
    assert scene.controller.stopped_models["a"].startswith(
        "consecutive trials without a score: unscored: the judge"
    )
    assert 3 <= len(scene.missing()) <= 4


def test_an_answer_that_waits_in_the_queue_when_the_run_ends_is_kept():
    scene = played(2, retry=ONCE, scoring=away_for(0), resolve_after=1)
    record = scene.outcomes[TrialKey("a", 0)]
    assert record.completion.text == "answer 0"
    assert record.missing.startswith("unscored: the judge wise did not answer")
    assert scene.server.attempts[0] == 1


def test_an_answer_that_lacks_something_is_asked_for_again():
    lacking = TransientEndpointError("the answer has no log-probabilities", kind="malformed")
    scene = played(scoring=ScriptedScoring(lambda key, time: lacking if time == 1 else RIGHT))
    assert not scene.missing()
    assert set(scene.server.attempts.values()) == {2}


def test_an_interrupt_does_not_wait_for_a_scorer_that_is_away():
    scene = played(4, scoring=NEVER, jitter=lambda: 1.0, stop_at=[5.0])
    assert scene.seconds <= 7.0
    assert {record.completion is not None for record in scene.outcomes.values()} == {True}


# What a solver has paid


async def twice(model, messages):
    """Ask with one more message, and then with another in its place."""
    await model([*messages, {"role": "user", "content": "think"}])
    return await model([*messages, {"role": "user", "content": "say"}])


@pytest.mark.parametrize("tries", [1, 2])
@pytest.mark.parametrize(
    ("failing", "most", "good"),
    [("first", (2, 30), 2), ("second", (2, 30), 1), ("tokens", (2, 29), 1), ("calls", (1, 30), 1)],
)
def test_what_calls_of_a_solver_have_cost_is_counted_once_and_never_paid_again(failing, most, good, tries):
    def script(seed, attempt):
        return broken() if (seed == 0) == (failing == "first") and attempt <= tries else 1.0

    solver = Solver("twice", twice, *most)
    scene = played(1, script, retry=RetryConfig(attempts=tries), solver=solver)
    (record,) = scene.outcomes.values()
    if failing == "first":
        assert record.sent["messages"] == ["task/q0", "say"]  # not what its first call has added
        assert (record.usage, record.score.category) == (Usage(20, 10), 0)
        assert record.completion.latency == 2.0
    elif failing == "second":
        assert record.missing == f"HTTP 503: down (attempts: {1 + tries})"
        assert scene.missing()[0].usage == record.usage == Usage(10, 5)
    else:
        assert (record.usage, record.completion.no_answer) == (Usage(10, 5), "calls")
    assert len(scene.server.calls) == good + tries * (failing in ("first", "second"))


@pytest.mark.parametrize("solver", [None, Solver("twice", twice, 2, 99)])
@pytest.mark.parametrize("away", [1, 2, 3, 9])
def test_an_answer_waits_for_a_judge_that_is_away_however_it_was_paid(solver, away):
    """Its one attempt and two requeues are three judgements; the answer is asked for once."""

    def judge(key, time):
        return ScorerUnavailable("the judge is away", kind="judge") if time <= away else Score(1)

    scoring = ScriptedScoring(judge)
    scene = played(1, 1.0, retry=RetryConfig(attempts=1, requeue=2), solver=solver, scoring=scoring)
    (record,) = scene.outcomes.values()
    assert (record.score.category, record.missing is None) == ((1, True) if away < 3 else (None, False))
    assert scoring.asked[record.request.key] == min(away + 1, 3)
    assert len(scene.server.calls) == (1 if solver is None else 2)
    assert record.usage == (Usage(10, 5) if solver is None else Usage(20, 10))


def test_a_solver_that_is_interrupted_between_its_calls_has_been_billed():
    def script(seed, attempt):
        return 1.0 if seed == 0 else busy(retry_after=100.0)

    scene = played(1, script, solver=Solver("twice", twice, 2, 99), stop_at=[10.0])
    assert scene.controller.abandoned == {TrialKey("a", 0): True}
