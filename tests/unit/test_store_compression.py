"""Answers are compressed, with a dictionary once there are enough of them."""

from __future__ import annotations

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptive_eval.errors import RunDamaged, RunDiskFull
from adaptive_eval.store import trainer
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest

NAMES = ["Ada", "Ben", "Cem", "Dee", "Eve", "Fay", "Gus", "Hal"]
THINGS = ["apples", "marbles", "coins", "tickets", "pencils", "shells", "stamps", "cards"]


def answer(rng: random.Random) -> str:
    """Return an answer as one model writes many: other people and numbers, the same turns of phrase."""
    lines = []
    while sum(map(len, lines)) < 1500:
        one, other = rng.sample(NAMES, 2)
        few, more = rng.randint(2, 99), rng.randint(100, 999)
        lines.append(
            f"Let me think about this step by step. We are told that {one} has {more} {rng.choice(THINGS)} "
            f"and gives {few} of them to {other}. Therefore the number that is left is {more} - {few} = "
            f"{more - few}, and we can check this by adding {few} back: {more - few} + {few} = {more}.\n"
        )
    rng.shuffle(lines)
    return "".join(lines) + "Caf\u00e9 \ud83d"


def answers(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [answer(rng) for _ in range(count)]


def trial(step: int, text: str) -> TrialRecord:
    request = TrialRequest(TrialKey("a", step), "t", f"q{step}", 0, 7)
    return TrialRecord(request, 1000.0, Completion(text, "stop"), Score(1, "42"))


def texts(run: Path) -> list[str]:
    with RunReader(run) as reader:
        return [record.completion.text for record in reader.trials()]


def stored_sizes(run: Path) -> list[int]:
    with closing(sqlite3.connect(run / "run.db")) as db:
        return [size for (size,) in db.execute("SELECT length(text) FROM answers ORDER BY outcome")]


def dictionaries(run: Path) -> int:
    with closing(sqlite3.connect(run / "run.db")) as db:
        return db.execute("SELECT count(*) FROM dictionaries").fetchone()[0]


@pytest.fixture
def run(tmp_path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def soon(monkeypatch) -> int:
    """Train on a hundred answers; return a number of answers that is enough."""
    monkeypatch.setattr(trainer, "SAMPLE_BYTES", 150_000)
    return 120


def write(run: Path, some: list[str], first: int = 0) -> None:
    opened = RunWriter.open(run) if run.exists() else RunWriter.create(run, meta={})
    with opened as writer:
        for step, text in enumerate(some, start=first):
            writer.outcome(trial(step, text))


def test_once_there_are_enough_answers_later_ones_take_less_room(run, soon):
    some = answers(soon + 40)
    write(run, some[:soon])
    assert dictionaries(run) == 1
    write(run, some[soon:], first=soon)
    sizes = stored_sizes(run)
    assert sum(sizes[soon:]) / 40 < 0.75 * sum(sizes[:soon]) / soon
    assert dictionaries(run) == 1
    assert texts(run) == some


def test_a_dictionary_whose_commit_failed_comes_with_the_next(run, soon, tmp_path):
    """What is on the disk after each commit is whole by itself, as a crash would leave it."""
    some = answers(soon + 30)
    with RunWriter.create(run, meta={}) as writer:
        writer.outcome(trial(0, some[0]))
        writer.commit()
        for step in range(1, soon):
            writer.outcome(trial(step, some[step]))
        (pages,) = writer._db.execute("PRAGMA page_count").fetchone()
        writer._db.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(RunDiskFull):
            writer.commit()
        for step in range(soon, len(some)):  # packed with a dictionary that is in no file yet
            writer.outcome(trial(step, some[step]))
        crashed = shutil.copytree(run, tmp_path / "before")
        assert texts(crashed) == some[:1]
        writer._db.execute("PRAGMA max_page_count = 1000000")
        writer.commit()
        crashed = shutil.copytree(run, tmp_path / "after")
        assert texts(crashed) == some
    assert dictionaries(run) == 1


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=4), st.sampled_from([1, 300]))
def test_any_text_survives_a_dictionary(trained, some, times):
    some = [text * times for text in some]
    run, first = trained
    with RunWriter.open(run, durability="normal") as writer:
        steps = range(first[0], first[0] + len(some))
        for step, text in zip(steps, some, strict=True):
            writer.outcome(trial(step, text))
    first[0] += len(some)
    with RunReader(run) as reader:
        newest = list(reader.trials(newest_first=True, limit=len(some)))
    assert [record.completion.text for record in newest] == some[::-1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> tuple[Path, list[int]]:
    run = tmp_path_factory.mktemp("trained") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "SAMPLE_BYTES", 150_000)
        write(run, answers(120))
    assert dictionaries(run) == 1
    return run, [120]


def test_a_lost_dictionary_is_said_to_be_damage(run, soon):
    write(run, answers(soon))
    write(run, answers(3, seed=2), first=soon)
    with closing(sqlite3.connect(run / "run.db")) as db:
        db.execute("DELETE FROM dictionaries")
        db.commit()
    with RunReader(run) as reader:
        assert reader.count() == soon + 3
        with pytest.raises(RunDamaged, match="dictionary 32768 is missing"):
            list(reader.trials(newest_first=True, limit=1))
