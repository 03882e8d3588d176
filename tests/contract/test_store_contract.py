"""What the run file promises: a writer, and any number of readers."""

import itertools
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adaptive_eval.errors import RunExists, RunLocked, RunMismatch, RunNotFound
from adaptive_eval.store import pending
from adaptive_eval.store import reader as store_reader
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import (
    CANCELLED,
    KILLED,
    WITHDRAWN,
    AttemptRecord,
    DecisionRecord,
    EndpointHealth,
    SnapshotRecord,
    TrialRecord,
)
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Missing, Score, TrialKey, TrialOutcome, TrialRequest, Usage


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "runs" / "first"


@pytest.fixture
def writer(run) -> Iterator[Any]:
    with RunWriter.create(run, meta={"seed": "1234"}) as writer:
        yield writer


def request(model="a", step=0, *, task="t", question=None, repeat=0, seed=7) -> TrialRequest:
    return TrialRequest(TrialKey(model, step), task, question or f"q{step}", repeat, seed)


def scored(model="a", step=0, *, category=1, text="42", **changes) -> TrialRecord:
    asked = {key: changes.pop(key) for key in ("task", "question", "repeat", "seed") if key in changes}
    sent = {"model": model, "messages": [{"role": "user", "content": "?"}], "seed": 7}
    answer = Completion(text, "stop", Usage(10, 5, 2), 0.5, "served", f"id-{step}")
    score = Score(category, text, {"is_correct": category == 1}, "exact")
    told = {"sent": sent, "charged": Usage(10, 5, 2)}
    record = TrialRecord(request(model, step, **asked), 1000.0 + step, answer, score, **told)
    return replace(record, **changes)


def lost(model="a", step=0, **changes) -> TrialRecord:
    told = {"missing": "timeout", "sent": {"model": model}, "charged": Usage(10), **changes}
    return TrialRecord(request(model, step), 1000.0 + step, None, None, **told)


def unscored(model="a", step=0) -> TrialRecord:
    """An answer that no scorer could judge."""
    score = Score(None, None, {"judge_requests": 2}, "the judge gave no usable judgement")
    return scored(model, step, score=score, missing="unscored: the judge gave no usable judgement")


@contextmanager
def holding(writer, *records: TrialRecord) -> Iterator[Any]:
    """Store and commit the records; return what a reader finds."""
    for record in records:
        writer.outcome(record)
    writer.commit()
    with writer.reader() as reader:
        yield reader


def logged(reader) -> list[TrialOutcome | Missing]:
    return [outcome for batch in reader.log() for outcome in batch]


# The life of a run


def test_a_new_run_holds_its_meta_and_nothing_else_and_create_leaves_it_alone(run):
    meta = {"config": "é\0\ud800", "seed": "1"}
    with RunWriter.create(run, meta=meta) as writer:
        with writer.reader() as reader:
            assert reader.count() == len(reader.outcomes()) == len(logged(reader)) == 0
            assert reader.latest_snapshot() is None
        writer.outcome(scored())
    with pytest.raises(RunExists, match="already holds a run"):
        RunWriter.create(run, meta={"seed": "2"})
    with RunReader(run) as reader:
        assert (reader.meta(), reader.count()) == (meta, 1)


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_without_a_run_is_no_run(run, exists):
    if exists:
        run.mkdir(parents=True)
        (run / "notes.txt").write_text("mine")
    for use in (RunWriter.open, RunReader):
        with pytest.raises(RunNotFound, match="no run at"):
            use(run)
    assert run.exists() is exists
    RunWriter.create(run, meta={}).close()
    assert exists is (run / "notes.txt").exists()


def test_only_one_writer_at_a_time(run):
    with RunWriter.create(run, meta={}) as writer:
        with pytest.raises(RunLocked, match="is being written by process"):
            RunWriter.open(run)
        writer.outcome(scored())
    with RunWriter.open(run) as again, again.reader() as reader:
        assert reader.count() == 1


# Commit


def test_nothing_counts_before_commit(writer):
    with writer.reader() as reader:
        writer.launch([request()], at=1.0)
        writer.attempt(AttemptRecord(TrialKey("a", 0), 1, "http://x/v1", 1.0, 0.1, 200))
        writer.outcome(scored())
        writer.decision(1.0, 1, {"kind": "stop"})
        writer.snapshot(SnapshotRecord(1.0, 1.0, 1, {}))
        writer.set_meta("seed", "5")

        def found():
            attempts, decisions = list(reader.attempts()), reader.decisions()
            return reader.count(), len(attempts), len(decisions), reader.latest_snapshot(), reader.meta()

        assert reader.launched() == []
        assert found() == (0, 0, 0, None, {"seed": "1234"})
        assert writer.commit() == 1
        assert found() == (1, 1, 1, SnapshotRecord(1.0, 1.0, 1, {}), {"seed": "5"})
        writer.set_meta("seed", "6")
        assert writer.commit() == 0
        assert reader.meta() == {"seed": "6"}


def test_closing_commits_also_when_the_block_fails(run):
    def fail_half_way():
        with RunWriter.create(run, meta={}) as writer:
            writer.outcome(scored())
            raise KeyError("some mistake elsewhere")

    with pytest.raises(KeyError, match="some mistake elsewhere"):
        fail_half_way()
    with RunReader(run) as reader:
        assert reader.count() == 1


def test_a_continued_run_keeps_names_and_order(run):
    expected = []
    for sitting in range(3):
        with RunWriter.open(run) if sitting else RunWriter.create(run, meta={}) as writer:
            for model in ("b", "a", f"new in {sitting}"):
                writer.outcome(scored(model, sitting, question=f"q{sitting % 2}"))
            expected += [TrialKey(model, sitting) for model in ("b", "a", f"new in {sitting}")]
    with RunReader(run) as reader:
        assert [outcome.key for outcome in logged(reader)] == expected
        assert [trial.request.question for trial in reader.trials(model="b")] == ["q0", "q1", "q0"]


# No trial counts twice


@pytest.mark.parametrize("committed", [False, True])
def test_an_identical_repeat_is_ignored(writer, committed):
    assert writer.outcome(scored(step=9, text="late")) is True
    assert writer.outcome(scored(text="first")) is True
    if committed:
        writer.commit()
    assert writer.outcome(scored(text="second", category=0)) is False
    assert writer.outcome(lost()) is False
    assert writer.outcome(scored(step=9, text="again")) is False
    with holding(writer) as reader:
        assert [trial.completion.text for trial in reader.trials()] == ["late", "first"]
        assert reader.count() == 2


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize(
    ("name", "stored", "given"),
    [("question", "q0", "x"), ("task", "t", "x"), ("repeat", 0, 1), ("seed", 7, 8)],
)
def test_another_question_under_a_stored_key_is_refused(writer, committed, name, stored, given):
    writer.outcome(scored())
    if committed:
        writer.commit()
    with pytest.raises(RunMismatch, match=f"{name} {stored!r} is stored, {given!r} is given"):
        writer.outcome(scored(**{name: given}))
    with holding(writer) as reader:
        assert list(reader.trials()) == [scored()]


# Replay


def test_log_yields_in_commit_order_what_the_session_was_told(writer, monkeypatch):
    records = [scored("b", 0), lost("a", 0), scored("a", 2, category=0), scored("a", 1), lost("b", 1)]
    for record in records:
        writer.outcome(record)
        writer.commit()
    with holding(writer) as reader:
        assert logged(reader) == [record.outcome for record in records]
        monkeypatch.setattr(store_reader, "_OUTCOMES_AT_ONCE", 2)
        assert logged(reader) == [record.outcome for record in records]
        assert [len(batch) for batch in reader.log()] == [2, 2, 1]


def test_after_stop_trials_are_known_and_replayed_in_their_order(writer):
    records = [scored(step=step, after_stop=step % 3 == 2) for step in range(9)]
    with holding(writer, *records) as reader:
        assert logged(reader) == [record.outcome for record in records]
        assert [len(batch) for batch in reader.log()] == [2, 1, 2, 1, 2, 1], "a stop falls between batches"
        assert list(reader.trials(after_stop=True)) == records[2::3]
        assert reader.outcomes().after_stop.tolist() == [record.after_stop for record in records]


# Launches and attempts


def test_launched_names_the_trials_without_an_outcome(writer):
    writer.launch([request(step=step) for step in range(4)], at=1.0)
    writer.launch([request(step=3)], at=2.0)
    with pytest.raises(ValueError, match="seed is -1"):  # none of several is launched then
        writer.launch([request(step=4), request(step=5, seed=-1)], at=3.0)
    with holding(writer, scored(step=1), lost(step=0)) as reader:
        assert reader.launched() == [request(step=2), request(step=3)]


@pytest.mark.parametrize(
    ("ends", "left"),
    [
        ([[]], [KILLED]),
        ([[WITHDRAWN]], [WITHDRAWN]),  # nothing was sent, so nothing is lost
        ([[CANCELLED]], [CANCELLED]),
        ([["timeout"]], ["timeout", KILLED]),
        ([["timeout", CANCELLED]], ["timeout", CANCELLED]),
        ([[WITHDRAWN], []], [WITHDRAWN, KILLED]),  # a session that was continued, and killed
        ([["timeout", WITHDRAWN], [CANCELLED]], ["timeout", WITHDRAWN, CANCELLED]),
    ],
)
def test_what_sessions_left_of_a_trial_without_an_outcome(writer, ends, left):
    key, at = TrialKey("a", 0), itertools.count(1.0)
    for errors in ends:
        writer.launch([request()], at=next(at))
        for number, error in enumerate(errors, 1):
            writer.attempt(AttemptRecord(key, number, "http://x/v1", next(at), 0.1, None, error, ""))
    writer.commit()
    with writer.reader() as reader:
        assert sorted(record.error for record in reader.unfinished()[key]) == sorted(left)


def test_attempts_are_kept_and_failures_counted(writer):
    attempts = [
        AttemptRecord(TrialKey("a", 0), 1, "http://x/v1", 1.0, 0.1, 429, "rate_limit", "slow down"),
        AttemptRecord(TrialKey("a", 0), 2, "http://y/v1", 2.0, 0.1, None, "connection", "refused\0"),
        AttemptRecord(TrialKey("a", 0), 3, "http://x/v1", 3.0, 0.1, 200),
        AttemptRecord(TrialKey("b", 1), 1, "http://x/v1", 3.0, 0.1, 429, "rate_limit", "x" * 5000),
        AttemptRecord(TrialKey("a", 1), 1, "http://x/v1", 3.0, 0.1, 503, "rate_limit", "slow down"),
    ]
    for attempt in attempts:
        writer.attempt(attempt)
    with holding(writer) as reader:
        assert list(reader.attempts()) == attempts
        assert list(reader.attempts(model="b")) == attempts[3:4]
        assert list(reader.attempts(model="a", step=1)) == attempts[4:]
        assert list(reader.attempts(model="unknown")) == []
        assert reader.error_counts() == {"a": {"rate_limit": 2, "connection": 1}, "b": {"rate_limit": 1}}


# Decisions, snapshots, meta


def test_decisions_come_back_in_order(writer):
    pair = {"kind": "pair", "models": ["a", "b"], "evidence": {"log_e": 3.5}}
    bodies = [pair, {"kind": "stop", "text": "é"}]
    for number, body in enumerate(bodies):
        writer.decision(float(number), number, MappingProxyType(body))
        writer.commit()
    with holding(writer) as reader:
        assert reader.decisions() == [DecisionRecord(float(n), n, body) for n, body in enumerate(bodies)]


def test_snapshots_keep_the_recent_ones_the_first_and_a_sparse_past(run):
    health = EndpointHealth("a", "http://x/v1", 3, 8, 100, 2.5, 900.0, 0.4, None, {"timeout": 2})

    def snapshot(number: int) -> SnapshotRecord:
        return SnapshotRecord(1000.0 + number, float(number), number, {"trials": number}, (health,))

    total, group = 3000, 7
    with RunWriter.create(run, meta={}) as writer:
        for number in range(total):
            writer.snapshot(snapshot(number))
            if number % group == 0:
                writer.commit()
    with RunReader(run) as reader:
        kept = list(reader.snapshots())
        numbers = [record.trials for record in kept]
        assert reader.latest_snapshot() == kept[-1] == snapshot(total - 1)
        assert numbers[-128:] == list(range(total - 128, total))
        assert numbers[0] == 0
        assert len(numbers) < 420, "about 128 * (1 + log2(3000 / 128) / 2)"
        for older, newer in itertools.pairwise(numbers):
            assert newer - older <= max(1, (total - older) / 64)
        assert [record.trials for record in reader.snapshots(since=1000.0 + total - 3)] == [2998, 2999]


def test_of_a_large_board_fewer_snapshots_are_kept(writer, monkeypatch):
    monkeypatch.setattr(pending, "USUAL_PAIRS", 1)
    for number in range(100):
        writer.snapshot(SnapshotRecord(1000.0 + number, float(number), number, {"pairs": [0] * 16}))
    with holding(writer) as reader:
        kept = [record.trials for record in reader.snapshots()]
    assert (kept[0], kept[-8:], len(kept) < 40) == (0, [*range(92, 100)], True)


# Reading trials


def test_trials_are_filtered(writer):
    records = []
    for step in range(200):
        told = {"category": step % 3, "question": f"q{step % 4}", "task": f"t{step % 2}"}
        records += [scored("a", step, **told), scored("b", step, **told)]
    records += [lost("a", 200), unscored("a", 201)]
    with holding(writer, *records) as reader:

        def those(condition):
            return [record for record in records if condition(record)]

        assert list(reader.trials()) == records
        assert list(reader.trials(newest_first=True)) == records[::-1]
        assert list(reader.trials(model="b")) == those(lambda r: r.request.key.model == "b")
        assert list(reader.trials(task="t1")) == those(lambda r: r.request.task == "t1")
        assert list(reader.trials(question="q2")) == those(lambda r: r.request.question == "q2")
        assert list(reader.trials(step=5)) == those(lambda r: r.request.key.index == 5)
        assert list(reader.trials(category=0)) == those(lambda r: r.score and r.score.category == 0)
        assert list(reader.trials(missing=True)) == records[-2:]
        assert logged(reader)[-1] == records[-1].outcome
        assert isinstance(records[-1].outcome, Missing)
        assert list(reader.trials(missing=False, limit=3)) == records[:3]
        assert list(reader.trials(limit=130, newest_first=True)) == records[:-131:-1]
        assert list(reader.trials(model="a", category=1, limit=2, newest_first=True)) == [
            scored("a", 199, question="q3", task="t1"), scored("a", 196, question="q0", task="t0"),
        ]  # fmt: skip
        assert list(reader.trials(limit=0)) == []
        for unknown in ({"model": "c"}, {"question": "q9"}, {"task": "t9"}, {"task": "t0", "question": "q1"}):
            assert list(reader.trials(**unknown)) == []


def test_outcomes_as_columns(writer):
    records = scored("b", 0, category=2, task="u"), lost("a", 3), scored("a", 0, after_stop=True)
    with holding(writer, *records) as reader:
        columns = reader.outcomes()
    assert len(columns) == 3
    assert [columns.models[index] for index in columns.model] == ["b", "a", "a"]
    assert [columns.questions[index] for index in columns.question] == [("u", "q0"), ("t", "q3"), ("t", "q0")]
    expected = {
        "step": [0, 3, 0],
        "category": [2, -1, 1],
        "completion_tokens": [5, 0, 5],
        "cached_tokens": [2, 0, 2],
        "finished_at": [1000.0, 1003.0, 1000.0],
        "after_stop": [False, False, True],
    }
    assert {name: getattr(columns, name).tolist() for name in expected} == expected
    np.testing.assert_equal(columns.latency, [0.5, math.nan, 0.5])


# Any record that is accepted is stored as it is

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where nothing waits for a disk
numbers = st.integers(0, 2**63 - 1)
seconds = st.floats(allow_nan=False, allow_infinity=False)
times = st.floats(0.0, 253_402_300_799.0)  # to the end of the year 9999
texts = st.one_of(
    st.text(st.characters(exclude_categories=())),
    st.builds(lambda text, times: text * times, st.text("ab\0\ud83d\ude00\n"), st.integers(90, 200)),
)
json_data = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
usages = st.builds(Usage, numbers, numbers, numbers)
requests = st.builds(
    TrialRequest, st.builds(TrialKey, texts, numbers), texts, texts, repeat=numbers, seed=numbers
)
alone = st.builds(Completion, texts, texts, usages, seconds, texts, texts, json_data)
answers = st.builds(
    lambda answer, share: (
        replace(answer, share=share) if share and share.total_tokens < answer.usage.total_tokens else answer
    ),
    alone,
    st.none() | usages,
)  # what was paid for an answer is its share of the request's tokens, where it has one
scores = st.builds(
    Score,
    numbers,
    st.none() | texts,
    st.dictionaries(texts, st.none() | st.booleans() | st.floats(allow_nan=False) | texts, max_size=4),
    texts,
)
sent = st.builds(
    lambda body, seed: body | seed,
    st.dictionaries(texts, json_data, max_size=3),
    st.just({}) | st.builds(lambda seed: {"seed": seed}, st.integers() | json_data),
)
charged = st.none() | usages
records = st.one_of(
    st.builds(TrialRecord, requests, times, answers, scores, st.none(), st.booleans(), sent),
    st.builds(TrialRecord, requests, times, st.none(), st.none(), texts, st.booleans(), sent, charged),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(records, max_size=5, unique_by=lambda record: record.request.key))
@example([scored(completion=Completion("4", "stop", Usage(90, 5), share=Usage(0, 5)), charged=None)])
@example([scored(text="\ud83d\ude00"), scored(step=1, text="\udcff" * 700)])  # two lone surrogates, no emoji
@example([scored(charged=Usage(20, 9, 2)), scored(step=1, charged=None)])
def test_what_is_accepted_is_read_back_the_same(records):
    with tempfile.TemporaryDirectory(dir=MEMORY) as scratch:
        with RunWriter.create(Path(scratch, "run"), meta={}) as writer:
            for record in records:
                writer.launch([record.request], at=record.finished_at)
                assert writer.outcome(record)
        with RunReader(Path(scratch, "run")) as reader:
            assert list(reader.trials()) == [replace(record, charged=record.usage) for record in records]
            assert list(map(repr, logged(reader))) == [repr(record.outcome) for record in records]
            assert reader.launched() == []


@pytest.mark.parametrize(
    "wrong",
    [
        scored(seed=-1),
        scored(step=2**63),
        scored(repeat=1.5),
        scored(category=-1),
        scored(finished_at=math.nan),
        scored(finished_at=-1.0),
        scored(completion=Completion("", "stop", Usage(2**63), 0.1)),
        scored(completion=Completion("", "stop", Usage(), math.inf)),
        scored(completion=Completion("", "stop", reasoning_tokens=-1)),
        scored(completion=Completion("", "stop", Usage(), 0.1, logprobs=object())),
        scored(score=Score(1, signals={"is_correct": {1, 2}})),
        scored(sent={"prompt": b"bytes"}),
    ],
    ids=range(12),
)
def test_what_cannot_be_stored_is_refused_at_once_and_spoils_nothing(writer, wrong):
    writer.outcome(scored("good", 0))
    with pytest.raises((ValueError, TypeError)):
        writer.outcome(wrong)
    writer.outcome(scored("good", 1))
    assert writer.commit() == 2
    with writer.reader() as reader:
        assert list(reader.trials()) == [scored("good", 0), scored("good", 1)]
