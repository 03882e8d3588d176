"""Which failed attempt gave up a draw, and what a trial with such a draw is to a session."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from adaptive_eval.core.evidence import lost_evidence
from adaptive_eval.core.results import StopVerdict
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ModelSpec, SessionSpec, StoppingSpec, TaskSpec
from adaptive_eval.engine.discards import Discards, cause_of
from adaptive_eval.errors import SessionError
from adaptive_eval.interop.inspect_driver import InspectEndpoint
from adaptive_eval.interop.inspect_task import SampleMessage
from adaptive_eval.options.request_options import OnConfig
from adaptive_eval.store.records import AttemptRecord
from adaptive_eval.trial import DISCARD_CAUSES, TrialKey, TrialOutcome
from adaptive_eval.views.decision_sentences import describe

FASTEST = 2.0


@pytest.mark.parametrize(
    ("kind", "status", "latency", "cause"),
    [
        # ours
        ("timeout", None, 600.0, "timeout"), ("timeout", None, 0.1, "timeout"),
        # statuses: by the time that they took
        ("server", 503, 1.9, None), ("server", 503, 2.0, "server"), ("server", 504, 60.0, "server"),
        ("server", 500, 0.1, None), ("timeout", 408, 60.0, "timeout"), ("timeout", 408, 0.1, None),
        ("bad_request", 400, 60.0, "server"), ("bad_request", 400, 0.1, None),
        ("rate_limit", 429, 60.0, None),
        # a connection that was never made, and one that was
        ("connection", None, 60.0, None), ("dropped", None, 0.1, "connection"),
        # bodies
        ("malformed", None, 0.1, "server"), ("too_large", None, 0.1, "server"),
        ("fewer_choices", None, 3.0, "server"), ("aborted", None, 3.0, "server"),
        # processes
        ("worker", None, 3.0, "killed"), ("killed", None, 0.0, "killed"), ("cancelled", None, 3.0, "killed"),
        ("withdrawn", None, 0.0, None), ("expired", None, 86_400.0, None),
        ("expired", 504, 86_400.0, None), ("connection", 502, 60.0, None),
    ],
)  # fmt: skip
def test_which_attempt_gave_up_a_draw(kind, status, latency, cause):
    assert cause_of(kind, status, latency, FASTEST) == cause


def test_before_the_first_answer_a_status_says_nothing():
    assert cause_of("server", 504, 60.0, None) is None


def attempt(endpoint: str, latency: float, error: str = "server", status: int | None = 503) -> AttemptRecord:
    return AttemptRecord(TrialKey("a", 0), 1, endpoint, 0.0, latency, status, error)


def test_a_status_is_judged_by_the_fastest_answer_of_its_server_or_else_of_the_others():
    discards = Discards({"x": 1.0})
    late = attempt("y", 2.0)
    assert discards.causes([late], ["x", "y"]) == ["server"]
    assert discards.causes([late], ["y"]) == []
    discards.answered("y", 5.0)
    assert discards.causes([late], ["x", "y"]) == []
    discards.answered("y", 1.5)
    discards.answered("y", 4.0)
    assert discards.causes([late], ["x", "y"]) == ["server"]
    several = Discards({"fast": 1.0, "slow": 9.0})
    for servers in (["fast", "slow", "y"], ["slow", "fast", "y"]):
        assert several.causes([late], servers) == ["server"], "the fastest of them"


def test_of_batches_a_killed_process_gives_up_nothing_and_a_status_always_may():
    discards = Discards({"x": 1.0})
    assert discards.causes([attempt("x", 0.1)], ["x"], batched=True) == ["server"]
    for ended in ("killed", "cancelled"):
        assert discards.causes([attempt("", 0.0, ended, None)], ["x"], batched=True) == []
        assert discards.causes([attempt("", 0.0, ended, None)], ["x"]) == ["killed"]


QUESTIONS = tuple(f"q{number}" for number in range(40))


def told(discarded_every: int, redrawn: frozenset = frozenset(), trials: int = 400) -> Session:
    """Tell a session that model a answers all and b nothing, with the draws of a given up now and then."""
    spec = SessionSpec(
        (ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", QUESTIONS),),
        stopping=StoppingSpec(equivalence=0.05), redrawn=redrawn,
    )  # fmt: skip
    session = Session(spec)
    for number in range(trials):
        requests = session.ask(1)
        if not requests:
            break
        (request,) = requests
        key, is_a = request.key, request.key.model == "a"
        causes = ("timeout", "server") if is_a and number % discarded_every == 0 else ()
        session.tell([TrialOutcome(key, int(is_a), discarded=causes)])
    return session


def test_a_trial_with_a_discarded_draw_is_lost_to_verdicts_and_told():
    session = told(4)
    line = session.results().models[0]
    assert line.discarded_trials > 0
    assert line.missing == 0
    assert line.trials + line.discarded_trials == line.issued
    codes = [warning.code for warning in session.results().warnings]
    assert "warning/discarded" in codes


def test_a_run_that_discarded_draws_leave_undecided_says_how_many_why_and_the_way_out():
    session = told(4)
    stop = StopVerdict("lost", evidence=lost_evidence(session.comparison, session.states))
    assert stop.evidence["discarded_trials"] == stop.evidence["lost"]
    lost = stop.evidence["lost"]["a"]
    words = describe(stop)
    for said in (
        f"{lost:,} of them",
        "timeout",
        "max_tokens",
        "--discarded",
        "on.discarded=[timeout, server]",
    ):
        assert said in words
    assert "--missing" not in words  # since no other answer is lost
    assert "--missing" in describe(replace(stop, evidence={**stop.evidence, "lost": {"a": lost + 1}}))
    more = {**stop.evidence, "redrawn": ["killed"]}
    assert "on.discarded=[timeout, server, killed]" in describe(replace(stop, evidence=more))
    none = {**stop.evidence, "discarded_trials": {}}
    assert "on.discarded" not in describe(replace(stop, evidence=none))


def test_verdicts_rest_on_another_draw_where_the_user_says_so():
    session = told(4, frozenset(DISCARD_CAUSES))
    line = session.results().models[0]
    assert (line.discarded_trials, line.redrawn_trials > 0) == (0, True)
    assert [one.code for one in session.results().warnings if "redrawn" in one.code] == ["warning/redrawn"]
    only_one = told(4, frozenset({"timeout"})).results().models[0]
    assert (only_one.discarded_trials > 0, only_one.redrawn_trials) == (True, 0)


def test_causes_of_draws_that_count_and_of_lost_ones_are_told_apart():
    spec = SessionSpec(
        (ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", QUESTIONS),), redrawn=frozenset({"killed"})
    )
    session, of_a = Session(spec), iter([("killed",), ("timeout", "server")])
    for _ in range(6):
        (request,) = session.ask(1)
        causes = next(of_a, ()) if request.key.model == "a" else ()
        session.tell([TrialOutcome(request.key, 1, discarded=causes)])
    lost, kept = [one for one in session.results().warnings if one.startswith("a: ")]
    assert "(1 took longer than the timeout, 1 failed at the server after it may have begun)" in lost
    assert "(1 lost with the process or cancelled)" in kept


def test_a_discarded_draw_is_told_twice_as_the_same_and_not_as_another():
    session = Session(SessionSpec((ModelSpec("a"), ModelSpec("b")), (TaskSpec("t", QUESTIONS),)))
    (request,) = session.ask(1)
    outcome = TrialOutcome(request.key, 1, discarded=("killed",))
    session.tell([outcome])
    session.tell([outcome])
    with pytest.raises(SessionError):
        session.tell([TrialOutcome(request.key, 1)])


def test_redraw_stands_for_all_causes():
    assert OnConfig(discarded="redraw").discarded == DISCARD_CAUSES
    assert OnConfig(discarded=["killed", "server", "killed"]).discarded == ("killed", "server")
    with pytest.raises(ValueError, match="neither redraw nor a list of timeout, server, connection, killed"):
        OnConfig(discarded=["late"])


def answer_of_inspect(**fields):
    """Return what the endpoint makes of a sample that Inspect has run, with these fields of its record."""
    output = SimpleNamespace(choices=[], completion="4", model="m")
    usual = {
        "error": None,
        "limit": None,
        "output": output,
        "model_usage": {},
        "working_time": 1.0,
        "uuid": "u",
    }
    rest = {"working_time": 1.0, "scores": {}, "events": [], "error_retries": None}
    sample = SimpleNamespace(**{**usual, **rest, **fields})

    async def run(name, epoch):
        return sample

    endpoint = InspectEndpoint("m", {"t": SimpleNamespace(run=run, limits=None)})
    return asyncio.run(endpoint.complete([SampleMessage("user", "2 + 2?", "t", "q", 1)], seed=1))


def test_requests_that_inspect_has_repeated_may_each_have_given_up_a_draw():
    calls = [SimpleNamespace(event="model", retries=retries) for retries in (None, 2, 0, 1)]
    assert answer_of_inspect(events=[SimpleNamespace(event="info"), *calls]).discarded == ("server",) * 3
    assert answer_of_inspect().discarded == ()


def test_each_run_of_a_sample_that_inspect_has_repeated_has_given_up_a_draw():
    assert answer_of_inspect(error_retries=[SimpleNamespace(message="gone")]).discarded == ("server",)
