"""Looking at a run again and again: counts of what is new, pages of trials, a few of many snapshots."""

from __future__ import annotations

from collections import Counter

import pytest
import run_examples as runs

from adaptive_eval.store import pending
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import SnapshotRecord
from adaptive_eval.store.writer import RunWriter


@pytest.fixture(scope="module", params=[7, 100, 10**9], ids=lambda every: f"counted every {every}")
def run(tmp_path_factory, request):
    """Return the directory of a run with missing and truncated answers."""
    directory = tmp_path_factory.mktemp("runs") / "forest"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "TALLY_EVERY", request.param)
        runs.make_run(directory, missing=0.1, truncated=0.2)
    return directory


@pytest.fixture
def reader(run):
    with RunReader(run) as reader:
        yield reader


def counted(cells):
    """Return (trials, answers, category sum, truncated) by model name and question id."""
    columns = (cells.stored, cells.scored, cells.category_sum, cells.truncated)
    return {
        (cells.models[model], cells.questions[question][1]): numbers
        for model, question, *numbers in zip(
            cells.model.tolist(), cells.question.tolist(), *(one.tolist() for one in columns), strict=True
        )
    }


def test_cells_count_what_the_trials_say(reader):
    expected, missing, categories = {}, Counter(), Counter()
    for trial in reader.trials():
        key = trial.request.key.model, trial.request.question
        numbers = expected.setdefault(key, [0, 0, 0, 0])
        numbers[0] += 1
        if trial.score is None:
            missing[trial.request.key.model, trial.missing] += 1
        else:
            numbers[1] += 1
            numbers[2] += trial.score.category
            categories[trial.request.key.model, trial.score.category] += 1
            numbers[3] += trial.completion.finish_reason == "length"
    cells = reader.cells()
    assert counted(cells) == expected
    assert {(cells.models[model], reason): n for (model, reason), n in cells.missing.items()} == missing
    assert {(cells.models[m], category): n for (m, category), n in cells.categories.items()} == categories
    assert missing.total() > 0
    assert cells.end == reader.count()
    assert set(cells.category_max.tolist()) <= {-1, 0, 1}


@pytest.mark.parametrize("newest_first", [False, True])
def test_one_trial_is_found_by_itself(reader, newest_first):
    for trial in reader.trials(model="elm", limit=3):
        key = trial.request.key
        options = {"model": key.model, "step": key.index, "newest_first": newest_first}
        assert list(reader.trials(**options)) == [trial]
        assert list(reader.trials(**options, missing=trial.missing is None)) == []
    assert list(reader.trials(model="elm", step=10**9)) == list(reader.trials(model="ivy", step=0)) == []


def test_a_model_s_walk_is_what_its_trials_say(reader):
    numbers = {question: number for number, question in enumerate(reader.cells().questions)}
    expected = []
    for trial in reader.trials(model="elm"):
        asked = trial.request
        category = -1 if trial.score is None else trial.score.category
        expected.append([asked.key.index, numbers[asked.task, asked.question], category])
    expected.sort()
    assert reader.in_sequence("elm", reader.count()).tolist() == expected
    assert reader.in_sequence("elm", reader.count(), 10).tolist() == expected[10:]
    assert len(reader.in_sequence("elm", 0)) == len(reader.in_sequence("baobab", reader.count())) == 0


def test_latencies_are_those_of_scored_answers(reader):
    expected = Counter(trial.request.key.model for trial in reader.trials() if trial.score is not None)
    assert {model: len(seconds) for model, seconds in reader.latencies(10**9).items()} == expected
    some = reader.latencies(reader.count() // 5)
    assert 0 < sum(map(len, some.values())) <= reader.count() // 5 + 1


def test_pages_of_trials_join_to_the_whole(reader):
    for newest_first in (False, True):
        whole = list(reader.trials(model={"elm", "ash"}, newest_first=newest_first))
        pages, beyond = [], None
        while page := list(
            reader.trials(model={"elm", "ash"}, newest_first=newest_first, beyond=beyond, limit=37)
        ):
            pages += page
            beyond = page[-1].request.key
        assert pages == whole
        assert {trial.request.key.model for trial in whole} == {"elm", "ash"}


def test_a_few_snapshots_stand_for_many(tmp_path):
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        for second in range(100):
            writer.snapshot(SnapshotRecord(1000.0 + second, second, 7 * second, {}))
    with RunReader(tmp_path / "run") as reader:
        few = list(reader.snapshots(most=10))
        late = list(reader.snapshots(since=1089.0, most=3))
        assert len(list(reader.snapshots(most=1000))) == 100
    assert 5 <= len(few) <= 12
    assert (few[0].trials, few[-1].trials) == (0, 693)
    assert [record.at for record in few] == sorted(record.at for record in few)
    assert (late[0].at, late[-1].at) == (1090.0, 1099.0)
    assert len(late) == 3
