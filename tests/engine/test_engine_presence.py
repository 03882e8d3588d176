"""When a server counts as gone, when it is asked whether it is back, and what it gets then."""

import pytest

from adaptive_eval.engine.health import Presence
from adaptive_eval.errors import TransientEndpointError


def failure(kind):
    return TransientEndpointError(f"scripted {kind}", kind=kind)


@pytest.mark.parametrize("kind", ["connection", "dropped"])
def test_a_lost_connection_takes_it_out_at_once(kind):
    presence = Presence()
    assert presence.failed(failure(kind), 1, now=5.0)
    assert (presence.state, presence.out_since, presence.reason) == ("out", 5.0, f"scripted {kind}")
    assert not presence.failed(failure(kind), 2, now=6.0)
    assert presence.out_since == 5.0


@pytest.mark.parametrize("kind", ["server", "timeout", "malformed"])
def test_errors_of_many_trials_in_a_row_take_it_out(kind):
    presence = Presence()
    went = [presence.failed(failure(kind), trial, now=0.0) for trial in range(Presence.failures)]
    assert went == [False] * (Presence.failures - 1) + [True]


def test_one_question_that_it_cannot_answer_does_not():
    presence = Presence()
    assert not any(presence.failed(failure("server"), "the same", now=0.0) for _ in range(100))
    assert presence.state == "in"


def test_an_answer_in_between_starts_the_count_anew():
    presence = Presence()
    for trial in range(100):
        if trial % (Presence.failures - 1) == 0:
            presence.answered()
        assert not presence.failed(failure("server"), trial, now=0.0)


@pytest.mark.parametrize("kind", ["rate_limit", "aborted"])
def test_a_server_that_speaks_is_there(kind):
    presence = Presence()
    assert not any(presence.failed(failure(kind), trial, now=0.0) for trial in range(100))


def test_waits_between_probes():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=0.0)
    waits = []
    for _ in range(8):
        waits.append(presence.probe_wait)
        presence.probed(there=False)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_server_that_only_seems_to_be_back_is_probed_ever_less_often():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=10.0)
    waits = []
    for trial in range(5):
        waits.append(presence.probe_wait)
        presence.probed(there=True)
        assert presence.state == "probation"
        assert presence.failed(failure("server"), trial, now=20.0)
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0]
    assert presence.out_since == 10.0


def test_its_first_answer_ends_the_trial():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=10.0)
    presence.probed(there=True)
    presence.answered()
    assert (presence.state, presence.out_since, presence.probe_wait) == ("in", None, 0.0)
    assert not presence.failed(failure("server"), 1, now=20.0)


def test_answers_that_were_under_way_do_not_bring_it_back():
    presence = Presence()
    presence.failed(failure("connection"), 1, now=10.0)
    presence.answered()
    assert presence.state == "out"


def test_one_that_refuses_stays_away():
    presence = Presence()
    presence.refused(failure("auth"))
    presence.probed(there=True)
    presence.answered()
    assert presence.state == "refused"
    assert not presence.usable
