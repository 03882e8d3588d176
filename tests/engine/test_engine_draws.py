"""Draws that were given up on the way to an answer, and pauses that servers ask for, under an owned clock."""

import math

import pytest
from scene import Honoured, Scene
from scripted import ScriptedEndpoint, ScriptedScoring, broken, busy, fails, vanished
from test_engine_failures import twice
from test_engine_sharing import Shared

from adaptive_eval.engine.health import SEVERAL, HealthMonitor
from adaptive_eval.engine.limits import Server
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.engine.runner import RunnerOptions
from adaptive_eval.engine.solving import Solver, call_seed
from adaptive_eval.engine.trial_task import REDRAWN
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.options.request_options import RetryConfig
from adaptive_eval.store.records import KILLED, AttemptRecord
from adaptive_eval.trial import Completion, Score, TrialKey


def failing(kind, status=None):
    return TransientEndpointError("it failed", kind=kind, status=status)


def played(kind=Scene, **options):
    """Play a scene one request at a time; step 3 is the one that fails first."""
    scene = kind(**{"steps": 6, "concurrency": 1, **options})
    scene.play()
    return scene


def discarded(scene):
    """Return the causes by step, as stored and as told to the session, which are the same."""
    stored = {key.index: record.discarded for key, record in scene.outcomes.items()}
    assert {one.key.index: one.discarded for one in scene.controller.told} == stored
    return {step: causes for step, causes in stored.items() if causes}


def at_step_3(failure, times=1, seconds=0.0):
    return lambda step, attempt: (seconds, failure) if step == 3 and attempt <= times else 1.0


@pytest.mark.parametrize(
    ("failure", "seconds", "causes"),
    [
        (failing("timeout"), 30.0, ("timeout",)),
        (failing("dropped"), 0.1, ("connection",)),
        (failing("malformed"), 2.0, ("server",)),
        (failing("too_large"), 2.0, ("server",)),
        (broken(), 5.0, ("server",)),
        # nobody has begun to answer
        (broken(), 0.5, ()),
        (busy(2.0), 5.0, ()),
        (failing("connection"), 5.0, ()),
        (failing("expired"), 30.0, ()),
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_a_draw_is_given_up_by_each_attempt_that_may_have_begun_to_answer(failure, seconds, causes, times):
    """Every answer takes a second here; a status that came faster says nothing of one."""
    scene = played(script=at_step_3(failure, times, seconds))
    assert discarded(scene) == ({3: causes * times} if causes else {})
    assert not scene.missing()


@pytest.mark.parametrize(
    ("failures", "causes"),
    [
        ([("timeout", 30.0)], ("timeout",)),
        ([("timeout", 30.0), (KILLED, 0.0)], ("timeout", "killed")),
        ([("server", 5.0), ("server", 0.5), ("rate_limit", 5.0)], ("server",)),
        ([("connection", 5.0)], ()),
    ],
)
def test_a_trial_that_continues_has_given_up_what_an_earlier_session_gave_up(failures, causes):
    """Its server's fastest answer took a second there; one that fails here too adds its own draw."""
    key = TrialKey("a", 3)
    status = {"server": 503, "rate_limit": 429}
    failed = [
        AttemptRecord(key, number, "http://a/v1", 0.0, seconds, status.get(kind), kind, "it failed")
        for number, (kind, seconds) in enumerate(failures, start=1)
    ]
    options = RunnerOptions(unfinished={key: failed}, fastest={"http://a/v1": 1.0})
    told = discarded(played(options=options))
    assert {step: sorted(found) for step, found in told.items()} == ({3: sorted(causes)} if causes else {})
    again = discarded(played(options=options, script=at_step_3(vanished())))
    assert sorted(again[3]) == sorted([*causes, "connection"])


def test_a_trial_that_stays_without_an_answer_says_what_it_gave_up():
    retry = RetryConfig(attempts=2, requeue=0)
    scene = played(script=at_step_3(failing("timeout"), 9, 30.0), retry=retry)
    assert discarded(scene) == {3: ("timeout",) * 2}
    assert [one.key.index for one in scene.missing()] == [3]


def test_a_judgement_that_was_given_up_is_one_of_the_trial():
    late = Score(1, discarded=("timeout",))
    scene = played(scoring=ScriptedScoring(lambda key, time: late if key.index == 2 else Score(1)))
    assert discarded(scene) == {2: ("timeout",)}


def test_judgements_that_were_given_up_while_the_judge_was_away_are_those_of_the_trial():
    """Each that may have begun, beside the draws of the answer and those of the last judgement."""
    away = ScorerUnavailable("the judge is away", kind="judge", discarded=("server",))
    late = Score(1, discarded=("timeout",))
    scoring = ScriptedScoring(lambda key, time: (away if time <= 2 else late) if key.index == 3 else Score(1))
    scene = played(scoring=scoring, script=at_step_3(vanished()), retry=RetryConfig(attempts=2))
    assert discarded(scene) == {3: ("connection", "server", "server", "timeout")}
    never = ScriptedScoring(lambda key, time: away if key.index == 2 else Score(1))
    scene = played(scoring=never, retry=RetryConfig(attempts=2, requeue=1))
    assert discarded(scene) == {2: ("server",) * 4}
    assert [one.key.index for one in scene.missing()] == [2]


def test_each_call_of_a_solver_gives_up_its_own_draws_once():
    script = lambda seed, attempt: vanished() if seed == 0 and attempt == 1 else 1.0  # noqa: E731
    scene = played(steps=1, script=script, solver=Solver("twice", twice, 2, 99))
    assert discarded(scene) == {0: ("connection",)}


class Repeating(Honoured):
    repeats = True


class SharedAndHonoured(Shared):
    def __post_init__(self):
        super().__post_init__()
        self.controller.may_repeat = lambda key: True


def test_an_answer_to_the_same_seed_is_the_same_draw_but_not_one_to_another_seed():
    assert discarded(played(Honoured, script=at_step_3(vanished()))) == {}
    late = played(Honoured, script=at_step_3(failing("timeout"), 1, 30.0))
    assert discarded(late) == {3: ("timeout",)}
    assert {key.index: record.sent["seed"] for key, record in late.outcomes.items()} == {
        step: call_seed(3, REDRAWN) if step == 3 else step for step in range(6)
    }


def test_a_model_that_repeats_itself_is_asked_with_the_same_seed_after_a_timeout():
    scene = played(Repeating, script=at_step_3(failing("timeout"), 1, 30.0))
    assert {record.sent["seed"] for record in scene.outcomes.values()} == set(range(6))


def test_a_request_for_several_answers_is_another_draw_of_each():
    script = lambda step, attempt: vanished() if step == 4 and attempt == 1 else 1.0  # noqa: E731
    scene = played(SharedAndHonoured, steps=8, concurrency=4, script=script)
    assert discarded(scene) == dict.fromkeys(range(4, 8), ("connection",))
    assert scene.sizes == [(0, 4), (4, 4), (4, 4)], "no answer is asked for to test seeds"


# Pauses


def pool():
    endpoint = ScriptedEndpoint()
    member = Member(endpoint, Server(endpoint.url, SharedLimits()), HealthMonitor("a", endpoint.url))
    return Pool([member]), member


def answers(*pauses):
    return [Completion("4", "stop", pause=pause) for pause in pauses]


def test_a_server_is_spared_after_so_many_refusals_in_a_row_that_name_a_time():
    servers, member = pool()
    for _ in range(3):
        for trial in range(SEVERAL - 1):
            servers.failed(member, busy(9.0), trial, now=1.0, longest=60.0)
        servers.answered(member, answers(0.0), now=1.0, longest=60.0)
    assert member.held_until == -math.inf
    for trial in range(SEVERAL):
        servers.failed(member, busy(9.0), trial, now=2.0, longest=60.0)
    assert member.held_until == 11.0


def test_a_server_that_is_down_and_names_a_time_is_spared_at_once_and_not_for_too_long():
    for asked, until in ((9.0, 11.0), (900.0, 62.0)):
        servers, member = pool()
        down = TransientEndpointError("HTTP 503", kind="server", status=503, retry_after=asked)
        servers.failed(member, down, 0, now=2.0, longest=60.0)
        assert member.held_until == until


@pytest.mark.parametrize("pauses", [(3.0, 0.0), (0.0, 3.0), (3.0,), (2.0, 3.0, 1.0)])
def test_of_several_answers_the_longest_pause_counts(pauses):
    servers, member = pool()
    servers.answered(member, answers(*pauses), now=2.0, longest=60.0)
    assert member.held_until == 5.0


def test_a_trial_that_is_queued_again_spares_its_server_as_long_as_that_has_asked():
    once = RetryConfig(attempts=1)
    scene = played(steps=1, script=fails(busy(30.0)), retry=once)
    assert scene.server.starts == [0.0, 30.0]
