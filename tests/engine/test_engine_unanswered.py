"""What was paid for and not answered: told to the session at once, and read from the run file afterwards."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest
from owned_clock import OwnedClock, run_owned
from scripted import Prompts, Scene, ScoreByStep, ScriptedEndpoint, VirtualCommitter, broken, busy, refused

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, SessionSpec, TaskSpec
from adaptive_eval.engine.attempts import InProcess
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.limits import FixedConcurrency
from adaptive_eval.engine.model_client import ModelClient
from adaptive_eval.engine.retry import RetryPolicy
from adaptive_eval.engine.runner import Runner, RunnerOptions
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import AttemptRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage

KEY = TrialKey("a", 0)


def failed(kind: str, status: int | None = None) -> TransientEndpointError:
    return TransientEndpointError(kind, kind=kind, status=status)


@pytest.mark.parametrize(
    ("error", "billed"),
    [
        (failed("timeout", 408), True), (failed("timeout"), True), (failed("dropped"), True),
        (failed("malformed"), True), (failed("aborted"), True), (failed("server", 504), True),
        (failed("server", 524), True), (failed("connection"), False), (broken(), False), (busy(), False),
        (failed("server", 500), False), (refused(), False),
    ],
)  # fmt: skip
def test_which_failures_may_have_been_billed(error, billed):
    assert error.billed is billed
    scene = Scene(
        steps={"a": 1, "b": 1}, scripts={"a": lambda step, attempt: (0.1, error if attempt < 3 else None)}
    )
    run_owned(scene.run())
    assert scene.controller.presumed == ([KEY, KEY] if billed else [])


def test_without_a_budget_for_it_no_further_attempt_is_made():
    """The trial comes back to the session, which may ask for it again."""
    scene = Scene(steps={"a": 1, "b": 1}, scripts={"a": lambda step, attempt: (0.1, failed("timeout"))})
    scene.controller.affords = lambda key: False
    scene.controller.resolve_after = 1
    run_owned(scene.run())
    assert scene.endpoints["a"].attempts == {0: 1}
    assert scene.controller.abandoned == {KEY: False}


def test_what_is_cancelled_with_a_request_out_is_told_as_such():
    options = RunnerOptions(deadlines=Deadlines(5.0), at_deadline="cancel")
    wait = RetryPolicy(base=100.0, cap=100.0)
    scripts = {"a": lambda step, attempt: 60.0, "b": lambda step, attempt: (0.1, broken())}
    scene = Scene(steps={"a": 3, "b": 2}, options=options, scripts=scripts, retry=wait, jitter=lambda: 0.9)
    run_owned(scene.run())
    out = {TrialKey("a", step): True for step in range(3)}
    assert scene.controller.abandoned == {**out, TrialKey("b", 0): False, TrialKey("b", 1): False}
    last = {record.key: record.error for record in scene.recorder.of("attempt")}
    assert last == {
        key: "cancelled" if billed else "withdrawn" for key, billed in scene.controller.abandoned.items()
    }


def test_a_stopped_model_s_trials_are_given_up_one_and_all():
    def script(step: int, attempt: int):
        return (1.0, refused()) if step == 0 else (0.1, broken())

    scene = Scene(steps={"a": 4, "b": 2}, scripts={"a": script}, jitter=lambda: 0.99)
    run_owned(scene.run())
    assert scene.controller.abandoned == {TrialKey("a", step): False for step in range(4)}


LIMITS = BudgetSpec(tokens=20_000)
ANSWERED, WORST = 15, 40
"""Tokens of a scripted answer, and of the longest one allowed."""


def spec(limits: BudgetSpec = LIMITS) -> SessionSpec:
    questions = tuple(f"q{number}" for number in range(5))
    task = TaskSpec("task", questions, prompt_bounds=(10,) * 5)
    return SessionSpec(
        (ModelSpec("a", 30), ModelSpec("b", 30)), (task,), goal=GoalSpec("budget"), budget=limits
    )


def sit(
    directory: Path,
    script,
    options: RunnerOptions | None = None,
    limits: BudgetSpec = LIMITS,
    scoring: object | None = None,
) -> Session:
    """Run or go on with a real session and a real run file against scripted endpoints."""
    exists = (directory / "run.db").exists()
    session = Session(spec(limits))

    async def main(writer: RunWriter) -> None:
        clients = {
            name: ModelClient(
                (ScriptedEndpoint(script),), FixedConcurrency(8), RetryPolicy(attempts=3), requeues=1
            )
            for name in ("a", "b")
        }
        parts = {"prompts": Prompts(), "executor": InProcess(scoring or ScoreByStep()), "clock": OwnedClock()}
        await Runner(session, writer, clients, committer=VirtualCommitter(), options=options, **parts).run()

    with RunWriter.open(directory) if exists else RunWriter.create(directory, meta={}) as writer:
        if exists:
            with writer.reader() as reader:
                session.replay(reader.log(), reader.unanswered())
        run_owned(main(writer))
    return session


def resumed(directory: Path, *limits: BudgetSpec) -> Session:
    session = Session(spec(*limits))
    with RunReader(directory) as reader:
        session.replay(reader.log(), reader.unanswered())
    return session


def presumed(session: Session) -> float:
    return next(line.presumed for line in session.budget.lines() if line.name == "tokens")


def test_a_later_sitting_presumes_what_the_earlier_one_did(tmp_path):
    """Timeouts, cancelled requests, waits broken off: all of them, and nothing else."""

    def script(step: int, attempt: int):
        if step % 7 == 3 and attempt == 1:
            return (2.0, failed("timeout"))
        return (1.0, broken()) if step % 5 == 1 and attempt == 1 else 1.0 + step % 3

    first = sit(tmp_path / "run", script, RunnerOptions(deadlines=Deadlines(9.5), at_deadline="cancel"))
    assert presumed(first) > 0
    second = resumed(tmp_path / "run")
    assert [(line.name, line.spent, line.reserved) for line in second.budget.lines()] == [
        (line.name, line.spent, line.reserved) for line in first.budget.lines()
    ]


class Lacking:
    """A scorer that finds that every fourth answer lacks something, at first."""

    def __init__(self) -> None:
        self.seen: set[TrialKey] = set()

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        await asyncio.sleep(0.3)
        if request.key.index % 4 == 0 and request.key not in self.seen:
            self.seen.add(request.key)
            raise TransientEndpointError("no log-probabilities", kind="malformed")
        return Score(1, completion.text)


@pytest.mark.parametrize("seconds", [2.5, 30.0])
def test_answers_that_lacked_something_are_assumed_billed_in_each_session(tmp_path, seconds):
    options = RunnerOptions(deadlines=Deadlines(seconds), at_deadline="cancel")
    first = sit(tmp_path / "run", lambda step, attempt: 1.0 + step % 3 / 4, options, scoring=Lacking())
    assert presumed(first) > 0
    second = resumed(tmp_path / "run")
    assert presumed(second) == presumed(first)


class Away:
    """A scorer that is out of reach for every fourth trial."""

    async def score(self, request: TrialRequest, completion: Completion) -> Score:
        if request.key.index % 4 == 0:
            raise ScorerUnavailable("the judge wise did not answer", kind="judge")
        return Score(1, completion.text)


def test_an_answer_that_no_scorer_could_judge_is_charged_once(tmp_path):
    """It has been reported with its tokens: nothing is presumed of it, in this sitting or the next."""
    limits = BudgetSpec(tokens=1_000)
    first = sit(tmp_path / "run", lambda step, attempt: 1.0, limits=limits, scoring=Away())
    second = resumed(tmp_path / "run", limits)
    with RunReader(tmp_path / "run") as reader:
        answered = reader.count()
    for session in (first, second):
        assert presumed(session) == 0.0
        tokens = next(line for line in session.budget.lines() if line.name == "tokens")
        assert tokens.spent == ANSWERED * answered
    assert tokens.spent > limits.tokens - 2 * WORST


def test_the_budget_holds_over_sittings_with_all_that_was_billed(tmp_path):
    """Servers bill all that leaves no answer at its worst; sittings end by cancelling what is out."""
    sent = 0

    def script(step: int, attempt: int):
        nonlocal sent
        sent += 1
        return (1.0, failed("dropped")) if (step + attempt) % 4 == 0 else (1.0 + step % 5)

    sittings = 0
    while sittings < 100:
        sittings += 1
        options = RunnerOptions(deadlines=Deadlines(3.0), at_deadline="cancel")
        session = sit(tmp_path / "run", script, options)
        with RunReader(tmp_path / "run") as reader:
            answered = reader.count()
        billed = ANSWERED * answered + WORST * (sent - answered)
        assert billed <= LIMITS.tokens
        assert session.stopped is not None
        if "wall_clock" not in session.stopped.evidence["used"]:
            break
    assert sittings > 3
    assert "tokens" in session.stopped.evidence["used"]
    assert billed > LIMITS.tokens - 2 * WORST


REQUEST = TrialRequest(KEY, "task", "q0", 0, 1)
ANSWER = TrialRecord(REQUEST, 1.0, Completion("42", "stop", Usage(9, 1)), Score(1, "42"))


def attempt(error: str | None, status: int | None = None) -> AttemptRecord:
    return AttemptRecord(KEY, 1, "http://x/v1", 1.0, 0.1, status, error)


@pytest.mark.parametrize(
    ("launches", "attempts", "outcome", "left"),
    [
        (1, [None], ANSWER, 0),
        (1, [], None, 1),
        (2, [None], ANSWER, 1),
        (1, ["withdrawn"], None, 0),
        (1, ["cancelled"], None, 1),
        (2, ["cancelled", None], ANSWER, 1),
        (2, ["withdrawn", None], ANSWER, 0),
        (1, ["timeout", "server", None], ANSWER, 1),
        (1, [None, "malformed", None], ANSWER, 1),
        (1, [None, None], ANSWER, 0),  # two calls of a solver, which the outcome pays for
        (1, [None], None, 1),  # killed while the answer was scored
        (1, ["timeout", "dropped"], TrialRecord(REQUEST, 1.0, None, None, missing="gone"), 2),
        (1, [None, "malformed"], TrialRecord(REQUEST, 1.0, None, None, missing="no scorer"), 1),
    ],
)
def test_what_a_run_file_says_of_one_trial(tmp_path, launches, attempts, outcome, left):
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        for _ in range(launches):
            writer.launch([REQUEST], 1.0)
        for kind in attempts:
            writer.attempt(attempt(kind))
        if outcome is not None:
            writer.outcome(outcome)
    with RunReader(tmp_path / "run") as reader:
        assert reader.unanswered() == ([(KEY, left)] if left else [])
        assert set(reader.error_counts().get("a", {})) == {*attempts} - {None, "cancelled", "withdrawn"}


def test_a_trial_does_not_make_good_another_one_s_loss(tmp_path):
    other = TrialRequest(TrialKey("b", 3), "task", "q1", 0, 2)
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        writer.launch([REQUEST, other], 1.0)
        writer.attempt(attempt("withdrawn"))
    with RunReader(tmp_path / "run") as reader:
        assert reader.unanswered() == [(other.key, 1)]


@pytest.mark.parametrize("servers", [1, 2])
def test_no_further_attempt_is_made_before_a_billed_one_is_on_the_disk(servers):
    """Else a process that is killed between the two has paid for one that nobody knows of.

    With a second server the next attempt is made there, and without a wait.
    """
    sent: Counter[int] = Counter()

    def script(step: int, attempt: int):
        sent[step] += 1
        scene.journal.append(("sent", TrialKey("a", step), sent[step]))
        return (0.1, failed("dropped") if sent[step] < 3 else None)

    others = [ScriptedEndpoint(script, url=f"http://other{number}/v1") for number in range(1, servers)]
    scene = Scene(steps={"a": 4}, scripts={"a": script}, others={"a": others}, commit_seconds=0.5)
    run_owned(scene.run())
    recorded: set[tuple[TrialKey, int]] = set()
    pending: set[tuple[TrialKey, int]] = set()
    for kind, *fields in scene.journal:
        if kind == "commit":
            recorded |= pending
        elif kind == "attempt":
            record: AttemptRecord = fields[0]
            pending.add((record.key, record.attempt))
        elif kind == "sent":
            key, attempt = fields
            assert {(key, number) for number in range(1, attempt)} <= recorded
    assert len(pending) == 12
