"""An answer after a failure is the first draw if every server that may have begun one would have given it."""

from dataclasses import replace
from itertools import product

import pytest
from owned_clock import OwnedClock, run_owned
from scripted import ScoreByStep, ScriptedEndpoint

from adaptive_eval.engine.attempts import InProcess, TrialRunner
from adaptive_eval.engine.fleet import Dispatch
from adaptive_eval.engine.health import HealthMonitor
from adaptive_eval.engine.limits import FixedConcurrency, Server
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.pool import Member, Pool
from adaptive_eval.engine.solving import call_seed
from adaptive_eval.engine.trial_task import REDRAWN, Sending, State, TrialTask
from adaptive_eval.options.limit_options import SharedLimits
from adaptive_eval.store.records import KILLED, AttemptRecord
from adaptive_eval.trial import Message, TrialKey, TrialRequest

REQUEST = TrialRequest(TrialKey("m", 3), "task", "q3", 0, 3)
FAILED = {
    "at a": ["a"], "at b": ["b"], "at both": ["a", "b"], "killed": [""], "killed and at a": ["", "a"],
    "at one that has left": ["c"],
}  # fmt: skip
"""The servers of failed attempts; that of a killed process is not known."""


class Speaker(ScriptedEndpoint):
    """A server whose answers follow from seeds, alike or each in its own words, or that ignores seeds."""

    kind = "alike"
    repeats = False

    async def complete(self, messages, *, seed):
        answer = await super().complete(messages, seed=seed)
        known = "yes" if self.repeats else f"{seed}"
        own = f"{self.url} {len(self.calls)}"
        said = {"alike": known, "each its own": f"{known} {self.url}", "no seeds": own}
        return replace(answer, text=said[self.kind] + "." * 500)


class Asked:
    """A trial of a model with two servers that was asked after attempts that have failed."""

    def __init__(
        self,
        kind,
        failed,
        proven,
        *,
        room=True,
        silent=False,
        error="dropped",
        seed=0,
        shared=False,
        **client,
    ):
        self.failed = FAILED.get(failed, failed)
        self.urls = {name: f"http://{name}/v1" for name in ("a", "b", "c")}
        self.urls[""] = ""
        self.room = room
        endpoints = [Speaker(1.0, self.urls[name]) for name in "ab"]
        self.members = []
        for endpoint in endpoints:
            endpoint.kind, endpoint.repeats = kind, client.get("repeats", False)
            server = Server(endpoint.url, SharedLimits())
            self.members.append(Member(endpoint, server, HealthMonitor("m", endpoint.url)))
        if silent:
            self.members[1].server.fall_silent(0.0)
        self.client = ModelClient(endpoints, FixedConcurrency(4), **client)
        records = []
        for number, name in enumerate(self.failed, start=1):
            why = error if name else KILLED
            records.append(
                AttemptRecord(REQUEST.key, number, self.urls[name], 0.0, 1.0, None, why, "it failed")
            )
        self.trial = TrialTask.from_request(REQUEST, self.client, [Message("user", "?")], records)
        if seed:  # as a call of a solver has it
            self.trial.sending.prompt = self.trial.sending.prompt._replace(seed=seed)
        if shared:  # with another trial, whose answer may be there
            together = Sending((self.trial, self.trial), self.trial.sending.prompt)
            self.trial.sending = together.alone(self.trial)
        self.proven = {self.urls[name] for name in proven}
        self.tests = 0
        run_owned(self.run())

    async def run(self):
        clock = OwnedClock()
        runner = TrialRunner(
            clock, Dispatch({"m": Pool(self.members)}, clock), InProcess(ScoreByStep()), lambda: 0.0,
            on_attempt=lambda *told: None, on_end=lambda trial: None, on_repeat=self.may_test,
        )  # fmt: skip
        runner.proofs["m"].proven = set(self.proven)
        self.trial.enter(State.WAITING)
        await runner.run(self.trial)

    def may_test(self, trial, member):
        self.tests += 1
        return self.room

    @property
    def needed(self):
        """The servers that would all have to give this answer."""
        maybe = "ab" if "" in self.failed else ""
        begun = {self.urls[name] for name in (*self.failed, *maybe) if name}
        return begun | {self.trial.sending.last.endpoint.url}


PROVEN = ("", "a", "b", "ab")
SETS = (*PROVEN, "c", "ac", "bc", "abc")


@pytest.mark.parametrize("kind", ["alike", "each its own", "no seeds"])
def test_every_server_that_may_have_begun_to_answer_is_proven_or_tested(kind):
    for failed, proven, seed, room, repeats in product(FAILED, PROVEN, (0, 77), (True, False), (True, False)):
        case = Asked(kind, failed, proven, seed=seed, room=room, repeats=repeats)
        known = case.needed <= case.proven
        there = case.urls["c"] not in case.needed
        same = known or (kind == "alike" and room and there)
        given_up = () if same else ("connection",) * len(FAILED[failed])
        found = tuple(cause.replace("killed", "connection") for cause in case.trial.discarded)
        assert found == given_up, (failed, proven, seed, room, repeats)
        assert (case.tests == 0) == known, (failed, proven, seed, room, repeats)
        assert case.trial.score is not None


def test_a_server_that_hangs_is_not_tested_and_needs_no_test_if_it_is_proven():
    for failed, proven in product(FAILED, PROVEN):
        case = Asked("alike", failed, proven, silent=True)
        unknown = case.needed - case.proven
        if not unknown:
            assert (case.trial.discarded, case.tests) == ([], 0), (failed, proven)
        elif case.urls["b"] in unknown:
            assert case.trial.discarded, (failed, proven)
            assert case.tests == 0, (failed, proven)


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_after_each_time_limit_another_draw_is_asked_for_unless_the_model_repeats_itself(times):
    for proven, repeats in product(PROVEN[1:], (True, False)):
        given = {"error": "timeout", "repeats": repeats, "time_limit": 1.0}
        case = Asked("alike", ("a",) * times, proven, **given)
        seed = REQUEST.seed
        for _ in range(0 if repeats else times):
            seed = call_seed(seed, REDRAWN)
        assert case.trial.sending.prompt.seed == seed
        assert case.trial.discarded == ([] if repeats else ["timeout"] * times)


@pytest.mark.parametrize("failed", FAILED)
def test_what_was_asked_together_with_another_answer_is_another_draw_alone_unless_the_model_repeats(failed):
    for repeats in (True, False):
        case = Asked("alike", failed, "ab", shared=True, repeats=repeats)
        assert bool(case.trial.discarded) == (not repeats or failed == "at one that has left")


@pytest.mark.parametrize("failed", FAILED)
def test_in_batches_no_answer_is_the_same_draw_and_a_killed_process_gives_up_none(failed):
    case = Asked("alike", failed, "ab", batched=True)
    assert case.tests == 0
    assert case.trial.discarded == ["connection" for name in FAILED[failed] if name]


def test_draws_in_flight_are_spared_where_their_server_and_all_others_that_are_there_are_proven():
    """Also where their server counts as gone, and whatever those say that are not there."""
    for proven, out in product(SETS, SETS):
        members = []
        for name in "abc":
            endpoint = Speaker(1.0, f"http://{name}/v1")
            member = Member(endpoint, Server(endpoint.url, SharedLimits()), HealthMonitor("m", endpoint.url))
            if name in out:
                member.presence.leave("it is gone", now=0.0)
            members.append(member)
        clock = OwnedClock()
        runner = TrialRunner(
            clock, Dispatch({"m": Pool(members)}, clock), InProcess(ScoreByStep()), lambda: 0.0,
            on_attempt=lambda *told: None, on_end=lambda trial: None,
        )  # fmt: skip
        runner.proofs["m"].proven = {f"http://{name}/v1" for name in proven}
        there = {"a"} | (set("bc") - set(out))
        assert runner.spares("m", members[0]) == (len(there) > 1 and there <= set(proven)), (proven, out)
