"""Damage to a run file: random bit flips are never a traceback and never unnoticed in a stored answer."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
import run_examples as runs
from click.testing import CliRunner
from config_texts import plain

from adaptive_eval.cli.run import command as resume
from adaptive_eval.cli.validate import command
from adaptive_eval.errors import RunDamaged, RunFileError
from adaptive_eval.store import integrity, pending
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.records import TrialRecord
from adaptive_eval.store.writer import RunWriter, salvage
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest, Usage
from adaptive_eval.views.reading import summarise

FLIPS = 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pending, "TALLY_EVERY", 20)
        runs.make_run(directory, {"oak": 0.9, "elm": 0.3}, missing=0.1, truncated=0.1, trials=60)
    return directory


def trials_of(directory: Path) -> list[TrialRecord]:
    with RunReader(directory) as reader:
        return list(reader.trials())


def put(directory: Path, data: bytes) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for left in directory.iterdir():
        left.unlink()
    (directory / "run.db").write_bytes(data)
    return directory


def flipped(data: bytes, rng: random.Random) -> bytes:
    bits, used = bytearray(data), [place for place, byte in enumerate(data) if byte]
    for _ in range(rng.choice((1, 1, 1, 8, 64))):
        bits[rng.choice(used)] ^= 1 << rng.randrange(8)
    return bytes(bits)


def change(directory: Path, sql: str) -> None:
    db = sqlite3.connect(directory / "run.db")
    db.execute(sql)
    db.commit()
    db.close()


def test_random_bit_flips_are_noticed_wherever_they_change_an_answer(whole, tmp_path):
    """Seed 2026; no false alarm is possible: an answer that differs, or an error of another kind, fails."""
    rng, data, stored = random.Random(2026), (whole / "run.db").read_bytes(), trials_of(whole)
    found: Counter[str] = Counter()
    for number in range(FLIPS):
        damaged = flipped(data, rng)
        run = put(tmp_path / "run", damaged)
        try:
            with RunReader(run) as reader:
                with suppress(RunFileError):
                    summarise(reader)  # unchecked, as monitors read
                damage = reader.damage()
            found["damaged" if damage else "undamaged"] += 1
            if not damage:
                assert trials_of(run) == stored
            RunWriter.open(run, durability="normal").close()
            assert not damage
        except RunFileError:
            found["refused"] += 1
        if number % 10:
            continue
        new = tmp_path / f"new {number}"
        try:
            salvage(put(tmp_path / "run", damaged), new)
        except RunFileError:
            continue
        assert all(record in stored for record in trials_of(new))
    assert found["damaged"] > FLIPS // 10


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE outcomes SET category = 1 - category WHERE id = 7",
        "UPDATE outcomes SET completion_tokens = 41 WHERE id = 7",
        "UPDATE answers SET text = text || '.' WHERE outcome = 7",
        "UPDATE outcomes SET answer = answer + 1 WHERE id = 7",
        "UPDATE answers SET checksum = x'00' WHERE outcome = 7",
        "DELETE FROM answers WHERE outcome = 7",
        "DELETE FROM outcomes WHERE id = 7",
    ],
)
def test_a_changed_trial_is_named_and_the_others_are_salvaged(whole, tmp_path, sql):
    run = put(tmp_path / "run", (whole / "run.db").read_bytes())
    change(run, sql)
    with RunReader(run) as reader:
        damage = reader.damage()
    assert (damage.lost, damage.first) == (1, [7])
    with pytest.raises(RunDamaged, match=r"1 of 60 stored trials .*numbers 7.*validate"):
        RunWriter.open(run)
    assert salvage(run, tmp_path / "new").lost == 1
    stored = trials_of(whole)
    assert trials_of(tmp_path / "new") == stored[:7] + stored[8:]


def test_damaged_reasoning_is_found(tmp_path):
    request = TrialRequest(TrialKey("a", 0), "t", "q", 0, 1)
    call = {"id": "1", "name": "add", "arguments": "{}"}
    answer = Completion("4", "stop", Usage(9, 7), reasoning="2 + 2", reasoning_tokens=5, tool_calls=(call,))
    with RunWriter.create(tmp_path / "run", meta={}) as writer:
        writer.outcome(TrialRecord(request, 1.0, answer, Score(1, "4")))
    (stored,) = trials_of(tmp_path / "run")
    assert stored.completion == answer
    for damage in (
        "UPDATE answers SET details = replace(details, 'add', 'sub')",
        "UPDATE answers SET details = replace(details, '2 + 2', '2 + 3')",
        "UPDATE answers SET details = NULL",
    ):
        change(tmp_path / "run", damage)
        with RunReader(tmp_path / "run") as reader:
            assert reader.damage().lost == 1


def test_the_command_checks_and_salvages(whole, tmp_path):
    run, new = put(tmp_path / "run", (whole / "run.db").read_bytes()), tmp_path / "new"
    sound = CliRunner().invoke(command, [str(run)], standalone_mode=False)
    assert (sound.return_value, "60 trials" in sound.output) == (0, True)
    change(run, "UPDATE outcomes SET prompt_tokens = prompt_tokens + 1 WHERE id IN (3, 5)")
    broken = CliRunner().invoke(command, [str(run)], standalone_mode=False)
    assert (broken.return_value, "2 of 60" in broken.output) == (1, True)
    saved = CliRunner().invoke(command, [str(run), "--salvage", str(new)], standalone_mode=False)
    assert (saved.return_value, "58 of 60" in saved.output) == (0, True)
    assert len(trials_of(new)) == 58


@pytest.mark.parametrize("lacking", ["config", "source", "base_dir", "identity"])
def test_a_description_that_lacks_an_entry_is_named_and_the_run_can_be_read(tmp_path, lacking):
    text = json.dumps(plain("oak", "elm", name="forest", task={"dataset": str(tmp_path / "d.jsonl")}))
    (tmp_path / "d.jsonl").write_text('{"input": "1", "target": "2"}\n')
    meta = {"config": text, "source": "c.yaml", "base_dir": ".", "identity": "{}"}
    runs.make_run(tmp_path / "run", {"oak": 0.9, "elm": 0.3}, trials=8, meta=meta)
    change(tmp_path / "run", f"DELETE FROM meta WHERE key = '{lacking}'")
    done = CliRunner().invoke(resume, [str(tmp_path / "run")])
    assert isinstance(done.exception, RunDamaged), done.exception
    assert f"lacks '{lacking}'" in str(done.exception)
    with RunReader(tmp_path / "run") as reader:
        assert reader.latest_snapshot() is not None


def test_rows_are_read_one_by_one_after_a_readable_part_however_much_was_lost_before(monkeypatch):
    """64 rows of each 128 are unreadable, more of them in all than are given up for lost in succession."""
    batches = 2 * (integrity._PATIENCE // integrity._AT_ONCE + 2)
    last = range(batches * integrity._AT_ONCE, (batches + 1) * integrity._AT_ONCE)

    def between(self, query, filters, numbers):
        whole = len(numbers) > 1
        if numbers[0] in last:
            return None if whole or numbers[0] == last[0] else [(numbers[0],)]
        odd = numbers[0] // integrity._AT_ONCE % 2
        return None if odd else [(number,) for number in numbers]

    monkeypatch.setattr(integrity.RunContents, "_between", between)
    monkeypatch.setattr(integrity.RunContents, "_end", lambda self, table: last[-1])
    contents = object.__new__(integrity.RunContents)
    assert [number for (number,) in contents._rows("", "outcomes")][-63:] == list(last[1:])
