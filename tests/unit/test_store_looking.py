"""Run files as they are read: stored bodies, tallies, moments."""

import itertools
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import run_examples as runs

from adaptive_eval.core.session import Session
from adaptive_eval.store import pending
from adaptive_eval.store.codec import pack
from adaptive_eval.store.reader import RunReader, spread
from adaptive_eval.store.records import SnapshotRecord, TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest
from adaptive_eval.views import answer_list
from adaptive_eval.views.answer_list import Wanted, part_of
from adaptive_eval.views.reading import summarise


def test_long_text_is_compressed_and_text_that_cannot_be_is_not():
    assert len(pack("so the answer is 42 " * 100)) < 200
    rng = np.random.default_rng(1)
    noise = "".join(chr(code) for code in rng.integers(0x4E00, 0x9FFF, 2000))
    assert len(pack(noise)) <= len(noise.encode())


# Looking at a run again and again: counts of what is new, pages of trials, a few of many snapshots.


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
    numbers = np.stack(columns, axis=1).tolist()
    models = [cells.models[model] for model in cells.model]
    questions = [cells.questions[question][1] for question in cells.question]
    return dict(zip(zip(models, questions, strict=True), numbers, strict=True))


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
    assert cells.end == reader.count() == reader.cells(10).stored.sum() + 10
    first = [reader.in_sequence(model, 10) for model in cells.models]
    assert (sum(map(len, first)), reader.cells(10).end) == (10, cells.end)
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
        which = {"model": {"elm", "ash"}, "newest_first": newest_first}
        whole = list(reader.trials(**which))
        pages, beyond = [], None
        while page := list(reader.trials(**which, beyond=beyond, limit=37)):
            pages += page
            beyond = page[-1].request.key
        assert pages == whole
        assert {trial.request.key.model for trial in whole} == {"elm", "ash"}


WANTED = {
    "all": Wanted(),
    "wrong, of one model": Wanted(kind="wrong", model="1"),
    "missing": Wanted(kind="missing"),
    "right, where another was wrong": Wanted(beaten="1"),
    "a text in few": Wanted(text="Q-10"),
    "a text in most": Wanted(text="right"),
    "a text in none": Wanted(text="baobab"),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return the directory of 120 answers of two models, of which each fifth of one is missing."""
    directory = tmp_path_factory.mktemp("runs") / "answers"
    with RunWriter.create(directory, meta={}) as writer:
        for number in range(120):
            step, model = divmod(number, 2)
            request = TrialRequest(TrialKey("ab"[model], step), "t", f"q-{step}", 0, 1)
            kind = 2 if model and step % 5 == 0 else int(not model or step % 3 > 0)
            if kind == 2:
                writer.outcome(TrialRecord(request, 1.0, None, None, missing="gone"))
            else:
                answer = Completion(("wrong", "right")[kind], "stop")
                writer.outcome(TrialRecord(request, 1.0, answer, Score(kind, "x")))
    return directory


@pytest.mark.parametrize("case", WANTED)
def test_pages_of_answers_lead_on_and_back_over_the_same_answers(answers, case, monkeypatch):
    monkeypatch.setattr(answer_list, "PAGE", 7)
    monkeypatch.setattr(answer_list, "LOOKED_AT", 20)
    wanted = WANTED[case]
    filters = wanted.filters(["a", "b"], ["t"], 1)
    with RunReader(answers) as reader:
        text = wanted.text.casefold()
        whole = [one for one in reader.trials(**filters) if text in answer_list._searched(one)]

        def page(beyond, *, back):
            return part_of(reader, wanted, filters, beyond, back=back)

        shown, looked_at, part = 0, 0, page(None, back=False)
        assert part.before is None
        assert part.looked_at == (20 if len(whole) < 7 and text else part.looked_at)
        while True:
            looked_at += part.looked_at
            assert list(part.records) == whole[shown : shown + len(part.records)]
            if part.before is not None:
                earlier = page(part.before, back=True)
                start = shown - len(earlier.records)
                assert list(earlier.records) == whole[start:shown], "none is left out on the way back"
                again = page(earlier.after, back=False)
                assert list(again.records) == whole[shown : shown + len(again.records)], "nor on the next"
            shown += len(part.records)
            if part.after is None:
                break
            part = page(part.after, back=False)
        assert shown == len(whole)
        assert looked_at == (120 if text else 0), (
            "each answer is looked at once, and told where it is searched"
        )
        while part.before is not None:
            shown -= len(part.records)
            part = page(part.before, back=True)
            assert list(part.records) == whole[shown - len(part.records) : shown]
        assert shown == len(part.records), "the way back ends at the first answer"


def test_an_address_of_what_is_not_there_asks_for_all():
    assert Wanted(model="1", beaten="0").filters("ab", "t", 1)["model"] == "b"
    for place in ("2", "-1", "x", ""):
        assert Wanted(model=place, task=place, beaten=place).filters("ab", "t", 1) == Wanted().filters(
            "ab", "t", 1
        )
        assert answer_list.key_named(f"{place}-0", "ab") is None
    assert answer_list.key_named("1-3", "ab") == TrialKey("b", 3)


def test_signals_are_counted_over_all_sets_in_which_they_come(tmp_path):
    sets = (("none_empty",), ("none_empty", "has_box"), ("none_tools", "none_empty"), ("has_box",), ())
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        for step, (model, task, number) in enumerate(itertools.product("ab", "tu", range(15))):
            request = TrialRequest(TrialKey(model, step), task, "q", number, 1)
            names = sets[number % 5] if (model, task) != ("b", "u") else ()
            score = Score(1, "x", dict.fromkeys(names, True))
            writer.outcome(TrialRecord(request, 1.0, Completion("x", "stop"), score))
    with RunReader(tmp_path / "run") as reader:
        found = reader.signals_named("none_")
    some = (15, {"empty": 9, "tools": 3})
    assert found == {("a", "t"): some, ("a", "u"): some, ("b", "t"): some, ("b", "u"): (15, {})}


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
    assert spread([(0, 0), (1, 25), (2, 25), (3, 100)], 3) == [0, 2, 3]  # of the same trials the latest


# The counts in the run file: true after every commit, and what reports are drawn from.


def trial(step: int, category: int = 1, model: str = "a", task: str = "t") -> TrialRecord:
    request = TrialRequest(TrialKey(model, step), task, f"q{step % 30}", 99, 7)
    return TrialRecord(request, 1000.0, Completion("42", "stop"), Score(category, "42"))


def upto(tallied_run: Path) -> int:
    with closing(sqlite3.connect(tallied_run / "run.db")) as db:
        return db.execute("SELECT upto FROM tallied").fetchone()[0]


def stored(tallied_run: Path) -> int:
    with RunReader(tallied_run) as reader:
        cells = reader.cells()
    assert cells.end == cells.stored.sum() == sum(cells.categories.values())
    return cells.end


@pytest.fixture
def tallied_run(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(pending, "TALLY_EVERY", 3)
    return tmp_path / "run"


def test_the_tallies_follow_the_log_a_stretch_behind(tallied_run):
    with RunWriter.create(tallied_run, meta={}) as writer:
        for step in range(20):
            writer.outcome(trial(step))
            writer.commit()
            assert stored(tallied_run) == step + 1
            assert upto(tallied_run) == (step + 1) // 3 * 3


@pytest.mark.parametrize(("end", "seen"), [("COMMIT", 5), ("ROLLBACK", 0)])
def test_a_commit_whose_end_was_not_seen_is_counted_once(tallied_run, end, seen):
    with RunWriter.create(tallied_run, meta={}) as writer:
        for step in range(5):
            writer.launch([trial(step).request], at=1.0)
            writer.outcome(trial(step))
        writer._db.execute("BEGIN")
        writer._pending.write()
        writer._db.execute(end)
        assert stored(tallied_run) == seen
        assert writer.commit() == 5
    assert (stored(tallied_run), upto(tallied_run)) == (5, 5)
    with RunReader(tallied_run) as reader:
        assert reader.launched() == []
        assert [one.request.key.index for one in reader.trials()] == list(range(5))


# What reports make of them


@pytest.mark.parametrize("options", [{}, {"rounds": 12}, {"trials": 400}])
def test_the_report_is_the_same_however_far_the_tallies_reach(tmp_path, options, monkeypatch):
    found = []
    for every in (1, 50, 10**9):
        monkeypatch.setattr(pending, "TALLY_EVERY", every)
        tallied_run = tmp_path / f"every {every}" / "run"
        runs.make_run(tallied_run, missing=0.1, truncated=0.2, **options)
        with RunReader(tallied_run) as reader:
            found.append(summarise(reader))
    assert found[0] == found[1] == found[2]


ENDS = ("length", "max_tokens", "model_length", "calls", "stop", "tool_calls", "content_filter", "")


def test_answers_that_were_cut_off_are_found_by_every_word_for_it(tmp_path):
    coins = runs.Coins(runs.COINS, missing=0.1)

    def answer(request, at, **options):
        record = coins.answer(request, at, **options)
        if record.completion is None:
            return record
        end = ENDS[request.key.index % len(ENDS)]
        return replace(record, completion=replace(record.completion, finish_reason=end))

    session = Session(runs.spec_of(runs.COINS, trials=200))
    runs.store_run(tmp_path / "run", {"name": "forest", "started_at": "1.0", "seed": "7"}, session, answer)
    with RunReader(tmp_path / "run") as reader:
        for cut, ends in ((True, ENDS[:4]), (False, ENDS[4:])):
            found = {one.completion.finish_reason for one in reader.trials(truncated=cut)}
            assert found == {*ends}
        every = [one for one in reader.trials() if one.completion is not None]
        assert sum(reader.cells().truncated) == sum(one.completion.cut_off for one in every)


def counted_by_hand(reader: RunReader, model: str, trials: int) -> dict[str, tuple[int, int]]:
    """Return trials and right answers by question, of the walk up to the trial that the score ends with."""
    by_step = {one.request.key.index: one for one in reader.trials(model=model)}
    walk = itertools.takewhile(lambda found: found, (by_step.get(step) for step in itertools.count()))
    counts: dict[str, tuple[int, int]] = {}
    for found in itertools.islice((one for one in walk if one.score is not None), trials):
        n, right = counts.get(found.request.question, (0, 0))
        counts[found.request.question] = n + 1, right + found.score.category
    return counts


@pytest.mark.parametrize("gap", [1, 3])
def test_answers_that_no_score_counts_are_in_no_question_s_account(tmp_path, gap):
    """As a kill leaves them: after the last snapshot, and behind an answer that never came."""
    finished = tmp_path / "finished"
    runs.make_run(finished, missing=0.1, trials=400)
    tallied_run = shutil.copytree(finished, tmp_path / "run")
    with RunReader(finished) as reader:
        lines = summarise(reader).results.models
        task = next(reader.trials(limit=1)).request.task
        ends = {line.model: max(reader.in_sequence(line.model, 10**9)[:, 0].tolist()) for line in lines}
    with RunWriter.open(tallied_run) as writer:
        for number, line in enumerate(lines):
            for step in range(5):
                late = ends[line.model] + gap + step + number
                writer.outcome(trial(late, category=step % 2, model=line.model, task=task))
    with RunReader(tallied_run) as reader, RunReader(finished) as before:
        summary, old = summarise(reader), summarise(before)
        by_hand = [counted_by_hand(reader, line.model, line.trials) for line in summary.results.models]
    assert summary.details.stored == old.details.stored + 5 * len(lines)
    assert summary.details.questions is not None
    for one in summary.details.questions:
        assert one.by_model == tuple(counts.get(one.question, (0, 0)) for counts in by_hand)
    assert summary.details.questions == old.details.questions
