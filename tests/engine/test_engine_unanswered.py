"""What was paid for and not answered: told to the session at once, and read from the run file afterwards."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from owned_clock import run_owned
from scene import Scene, played
from scripted import ScriptedEndpoint, ScriptedScoring, broken, busy, fails, refused
from test_engine_sharing import Shared

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, SessionSpec, TaskSpec
from adaptive_eval.engine.clock import Deadlines
from adaptive_eval.engine.runner import RunnerOptions
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.options.limit_options import RateLimit
from adaptive_eval.options.request_options import RetryConfig
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
    scene = played({"a": 1, "b": 1}, scripts={"a": fails((0.1, error), 2)})
    assert scene.controller.presumed == ([KEY, KEY] if billed else [])
    if isinstance(error, TransientEndpointError):
        rate = {"rates": {"a": RateLimit(tokens_per_minute=100)}, "most_tokens": 60}
        first, second = played(1, fails((0.1, error)), **rate).server.starts
        assert (second - first > 10.0) is billed, "what may have been billed counts in the rate as well"


def test_without_a_budget_for_it_no_further_attempt_is_made():
    """The trial comes back to the session, which may ask for it again."""
    scene = Scene({"a": 1, "b": 1}, scripts={"a": (0.1, failed("timeout"))}, resolve_after=1)
    scene.controller.affords = lambda key: False
    scene.play()
    assert scene.server.attempts == {0: 1}
    assert scene.controller.abandoned == {KEY: False}


def until(seconds: float) -> RunnerOptions:
    return RunnerOptions(deadlines=Deadlines(seconds), at_deadline="cancel")


def test_what_is_cancelled_with_a_request_out_is_told_as_such():
    wait = {"jitter": lambda: 90.0}
    scene = played({"a": 3, "b": 2}, scripts={"a": 60.0, "b": (0.1, broken())}, options=until(5.0), **wait)
    out = {TrialKey("a", step): True for step in range(3)}
    assert scene.controller.abandoned == {**out, TrialKey("b", 0): False, TrialKey("b", 1): False}
    last = {record.key: record.error for record in scene.recorder.of("attempt")}
    assert last == {
        key: "cancelled" if billed else "withdrawn" for key, billed in scene.controller.abandoned.items()
    }


def test_a_stopped_model_s_trials_are_given_up_one_and_all():
    def script(step: int, attempt: int):
        return (1.0, refused()) if step == 0 else (0.1, broken())

    scene = played({"a": 4, "b": 2}, scripts={"a": script}, jitter=lambda: 0.99)
    assert scene.controller.abandoned == {TrialKey("a", step): False for step in range(4)}


LIMITS = BudgetSpec(tokens=20_000)
ANSWERED, WORST = 15, 40
"""Tokens of a scripted answer, and of the longest one allowed."""


def spec(limits: BudgetSpec = LIMITS, samples: int = 1) -> SessionSpec:
    questions = tuple(f"q{number}" for number in range(5))
    task = TaskSpec("task", questions, prompt_bounds=(10,) * 5)
    return SessionSpec(
        (ModelSpec("a", 30), ModelSpec("b", 30)), (task,), goal=GoalSpec("budget"), budget=limits,
        samples_per_prompt=samples,
    )  # fmt: skip


def sit(
    directory: Path, script, options=None, limits: BudgetSpec = LIMITS, scoring=None, samples: int = 1
) -> Session:
    """Run or go on with a real session and a real run file against scripted endpoints."""
    exists = (directory / "run.db").exists()
    more = {"retry": RetryConfig(attempts=3), "jitter": lambda: 0.5, "fresh": True}
    if samples == 1:
        scene = Scene({"a": 30, "b": 30}, script, 8, **more)
    else:
        scene = Shared({"a": 30, "b": 30}, script, 8, samples=samples, **more)
        scene.endpoints["a"].gives, scene.endpoints["b"].lost = samples - 1, 1
    fresh = Session(spec(limits, samples))
    scene.controller = session = resumed(directory, limits, samples) if exists else fresh
    scene.options, scene.scoring = options or scene.options, scoring or scene.scoring

    with RunWriter.open(directory) if exists else RunWriter.create(directory, meta={}) as writer:
        scene.recorder = writer
        run_owned(scene.unchecked())
    return session


def resumed(directory: Path, limits: BudgetSpec = LIMITS, samples: int = 1) -> Session:
    session = Session(spec(limits, samples))
    with RunReader(directory) as reader:
        session.replay(reader.log(), reader.unanswered())
    return session


def answers(directory: Path) -> int:
    with RunReader(directory) as reader:
        return reader.count()


def tokens(session: Session):
    return next(line for line in session.budget.lines() if line.name == "tokens")


def test_a_later_sitting_presumes_what_the_earlier_one_did(tmp_path):
    """Timeouts, cancelled requests, waits broken off: all of them, and nothing else."""

    def script(step: int, attempt: int):
        if step % 7 == 3 and attempt == 1:
            return (2.0, failed("timeout"))
        return (1.0, broken()) if step % 5 == 1 and attempt == 1 else 1.0 + step % 3

    first = sit(tmp_path / "run", script, until(9.5))
    assert tokens(first).presumed > 0
    second = resumed(tmp_path / "run")
    assert [(line.name, line.spent, line.reserved) for line in second.budget.lines()] == [
        (line.name, line.spent, line.reserved) for line in first.budget.lines()
    ]


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("sitting", [2, 4, 6, 8, 9, 12])
def test_wherever_a_sitting_is_cut_the_next_one_knows_what_was_billed_and_answered(
    tmp_path, sitting, samples
):
    """Some answers lack something, some judges are away, some requests fail, and some give fewer answers."""
    lacking = TransientEndpointError("no log-probabilities", kind="malformed")
    away = ScorerUnavailable("the judge wise did not answer", kind="judge", discarded=("timeout",))

    def script(seed: int, attempt: int):
        if seed % 7 == 3 and attempt == 1:
            return (2.0, failed("timeout"))
        return (1.0, broken()) if seed % 5 == 1 and attempt < 3 else 1.0 + seed % 3

    def score(key: TrialKey, time: int):
        unusual = {2: lacking, 5: away}.get(key.index % 9)
        return unusual if unusual is not None and time == 1 else Score(key.index % 2)

    scoring = ScriptedScoring(score, seconds=0.4)
    first = sit(tmp_path / "run", script, until(0.8 * sitting), scoring=scoring, samples=samples)
    second = resumed(tmp_path / "run", samples=samples)
    now, then = second.results(), first.results()
    assert [replace(line, reserved=0.0) for line in then.budgets] == list(now.budgets)
    assert then.trials == answers(tmp_path / "run")
    same = ("trials", "missing", "questions", "score", "score_low", "discarded_trials", "copies", "usd")
    for old, new in zip(then.models, now.models, strict=True):
        assert [getattr(old, name) for name in same] == [getattr(new, name) for name in same]
    with RunReader(tmp_path / "run") as reader:
        ended = {record.request.key: record for record in reader.trials()}
        assert not ended.keys() & reader.unfinished().keys()
    lost = sum(record.missing is None and record.discarded != () for record in ended.values())
    assert lost == sum(line.discarded_trials for line in now.models)


@pytest.mark.parametrize("seconds", [2.5, 30.0])
def test_answers_that_lacked_something_are_assumed_billed_in_each_session(tmp_path, seconds):
    """Every fourth answer lacks something, at first."""
    error = TransientEndpointError("no log-probabilities", kind="malformed")

    def score(key: TrialKey, time: int):
        return error if key.index % 4 == 0 and time == 1 else Score(1)

    scoring = ScriptedScoring(score, seconds=0.3)
    first = sit(tmp_path / "run", lambda step, attempt: 1.0 + step % 3 / 4, until(seconds), scoring=scoring)
    assert tokens(first).presumed > 0
    assert tokens(resumed(tmp_path / "run")).presumed == tokens(first).presumed


def test_an_answer_that_no_scorer_could_judge_is_charged_once(tmp_path):
    """It has been reported with its tokens: nothing is presumed of it, in this sitting or the next."""
    away = ScorerUnavailable("the judge wise did not answer", kind="judge")
    scoring = ScriptedScoring(lambda key, time: away if key.index % 4 == 0 else Score(1))
    limits = BudgetSpec(tokens=1_000)
    first = sit(tmp_path / "run", 1.0, limits=limits, scoring=scoring)
    for session in (first, resumed(tmp_path / "run", limits)):
        line = tokens(session)
        assert (line.presumed, line.spent) == (0.0, ANSWERED * answers(tmp_path / "run"))
        assert line.spent > limits.tokens - 2 * WORST


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
        session = sit(tmp_path / "run", script, until(3.0))
        answered = answers(tmp_path / "run")
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
        (2, ["cancelled"], None, 2),
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
        lost = launches - (outcome is not None) - sum(kind in ("cancelled", "withdrawn") for kind in attempts)
        assert reader.lost_launches() == ({"task": lost} if lost > 0 else {})
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
    sent: Counter[TrialKey] = Counter()

    def script(step: int, attempt: int):
        key = TrialKey("a", step)
        earlier = {(row[1].key, row[1].attempt) for row in scene.recorder.durable if row[0] == "attempt"}
        assert {(key, number) for number in range(1, sent[key] + 1)} <= earlier
        sent[key] += 1
        return (0.1, failed("dropped") if sent[key] < 3 else None)

    others = [ScriptedEndpoint(script, f"http://other{number}/v1") for number in range(1, servers)]
    scene = Scene(4, script, others=others, commit_seconds=0.5)
    scene.play()
    assert len(scene.recorder.of("attempt")) == 12
