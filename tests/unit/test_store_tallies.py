"""The counts in the run file: true after every commit, and what reports are drawn from."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import run_examples as runs

from adaptive_eval.store import pending
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest
from adaptive_eval.views.reading import summarise


def trial(step: int, category: int = 1, model: str = "a", task: str = "t") -> TrialRecord:
    request = TrialRequest(TrialKey(model, step), task, f"q{step % 30}", 99, 7)
    return TrialRecord(request, 1000.0, Completion("42", "stop"), Score(category, "42"))


def upto(run: Path) -> int:
    with closing(sqlite3.connect(run / "run.db")) as db:
        return db.execute("SELECT upto FROM tallied").fetchone()[0]


def stored(run: Path) -> int:
    with RunReader(run) as reader:
        cells = reader.cells()
    assert cells.end == cells.stored.sum() == sum(cells.categories.values())
    return cells.end


@pytest.fixture
def run(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(pending, "TALLY_EVERY", 3)
    return tmp_path / "run"


def test_the_tallies_follow_the_log_a_stretch_behind(run):
    with RunWriter.create(run, meta={}) as writer:
        for step in range(20):
            writer.outcome(trial(step))
            writer.commit()
            assert stored(run) == step + 1
            assert upto(run) == (step + 1) // 3 * 3


@pytest.mark.parametrize(("end", "seen"), [("COMMIT", 5), ("ROLLBACK", 0)])
def test_a_commit_whose_end_was_not_seen_is_counted_once(run, end, seen):
    with RunWriter.create(run, meta={}) as writer:
        for step in range(5):
            writer.outcome(trial(step))
        writer._db.execute("BEGIN")
        writer._pending.write()
        writer._db.execute(end)
        assert stored(run) == seen
        writer.commit()
    assert (stored(run), upto(run)) == (5, 5)


# What reports make of them


@pytest.mark.parametrize("options", [{}, {"rounds": 12}, {"trials": 400}])
def test_the_report_is_the_same_however_far_the_tallies_reach(tmp_path, options, monkeypatch):
    found = []
    for every in (1, 50, 10**9):
        monkeypatch.setattr(pending, "TALLY_EVERY", every)
        run = tmp_path / f"every {every}" / "run"
        runs.make_run(run, missing=0.1, truncated=0.2, **options)
        with RunReader(run) as reader:
            found.append(summarise(reader))
    assert found[0] == found[1] == found[2]


def counted_by_hand(reader: RunReader, model: str, trials: int) -> dict[str, tuple[int, int]]:
    """Return trials and right answers by question, of the walk up to the trial that the score ends with."""
    categories = {one.request.key.index: one for one in reader.trials(model=model)}
    counts: dict[str, tuple[int, int]] = {}
    scored = 0
    for step in range(len(categories)):
        if step not in categories:
            break
        found = categories[step]
        if found.score is None:
            continue
        scored += 1
        if scored > trials:
            break
        n, right = counts.get(found.request.question, (0, 0))
        counts[found.request.question] = n + 1, right + found.score.category
    return counts


@pytest.mark.parametrize("gap", [1, 3])
def test_answers_that_no_score_counts_are_in_no_question_s_account(tmp_path, gap):
    """As a kill leaves them: after the last snapshot, and behind an answer that never came."""
    finished = tmp_path / "finished"
    runs.make_run(finished, missing=0.1, trials=400)
    run = shutil.copytree(finished, tmp_path / "run")
    with RunReader(finished) as reader:
        lines = summarise(reader).results.models
        task = next(reader.trials(limit=1)).request.task
        ends = {line.model: max(reader.in_sequence(line.model, 10**9)[:, 0].tolist()) for line in lines}
    with RunWriter.open(run) as writer:
        for number, line in enumerate(lines):
            for step in range(5):
                late = ends[line.model] + gap + step + number
                writer.outcome(trial(late, category=step % 2, model=line.model, task=task))
    with RunReader(run) as reader, RunReader(finished) as before:
        summary, old = summarise(reader), summarise(before)
        by_hand = [counted_by_hand(reader, line.model, line.trials) for line in summary.results.models]
    assert summary.details.stored == old.details.stored + 5 * len(lines)
    assert summary.details.questions is not None
    for one in summary.details.questions:
        assert one.by_model == tuple(counts.get(one.question, (0, 0)) for counts in by_hand)
    assert summary.details.questions == old.details.questions
