"""Datasets that are no text file, rows filtered, worked examples, conversations, shuffled options."""

import datetime
import decimal
import importlib
import json
import sys

import pytest
from config_texts import plain
from task_files import load_task

from adaptive_eval.build.assembly import build
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import DatasetError
from adaptive_eval.tasks.sources import read_source
from adaptive_eval.tasks.task import shuffled
from adaptive_eval.trial import Message, Question

ROWS = [
    {"id": "a", "input": "1 + 1?", "target": "2", "level": 1, "hard": False},
    {"id": "b", "input": "2 + 2?", "target": "4", "level": 2, "hard": False},
    {"id": "c", "input": "3 * 3?", "target": "9", "level": 2, "hard": True},
]


def written(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    return written(tmp_path / "rows.jsonl", *ROWS)


def parquet(path, rows):
    """Write rows as Parquet where it can be written, and return their file."""
    arrow = pytest.importorskip("pyarrow")
    table = rows if isinstance(rows, arrow.Table) else arrow.Table.from_pylist(rows)
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def ids(task):
    return [question.id for question in task.questions]


def test_parquet_gives_what_json_lines_give(tmp_path, file):
    from_parquet, from_lines = load_task("t", parquet(tmp_path / "rows.parquet", ROWS)), load_task("t", file)
    assert from_parquet.content_hash == from_lines.content_hash
    assert ids(from_parquet) == ["a", "b", "c"]


def test_values_that_json_has_not_become_text(tmp_path):
    day, price = datetime.date(2025, 1, 2), decimal.Decimal("1.50")
    row = {"input": "when?", "target": day, "price": price, "image": b"\x00", "list": [{"a": day}]}
    file = parquet(tmp_path / "rows.parquet", [row])
    question = load_task("t", file, prompt="{input} {price}").questions[0]
    assert (question.target, question.fields["price"]) == ("2025-01-02", "1.50")


def test_an_image_column_becomes_the_parts_of_a_message(tmp_path):
    image = {"bytes": b"\xff\xd8\xff rest", "path": "a.jpg"}
    rows = [{"id": "1", "input": "what?", "target": "x", "picture": image}]
    file = parquet(tmp_path / "rows.parquet", rows)
    task = load_task("t", file, images="picture")
    picture, text = task.render(task.questions[0])[0].sent["content"]
    assert picture["image_url"]["url"] == "data:image/jpeg;base64,/9j/IHJlc3Q="
    assert text["text"] == "what?"
    assert load_task("t", file).content_hash != task.content_hash


def test_an_image_column_of_the_hub_needs_no_decoder(tmp_path):
    datasets = pytest.importorskip("datasets")
    row = {"id": "1", "input": "what?", "target": "x"}
    picture = {"bytes": b"\x89PNG\r\n\x1a\n rest", "path": "a.png"}
    saved = datasets.Dataset.from_list([{**row, "picture": picture}]).cast_column("picture", datasets.Image())
    saved.save_to_disk(tmp_path / "saved")
    for name, media in (("picture", ("picture",)), ("plain", ())):
        task = load_task(name, f"hf:{tmp_path / 'saved'}", images=media)
        assert len(task.render(task.questions[0])[0].media) == len(media)


def test_numbers_of_single_precision_are_those_that_were_written(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    targets = arrow.array([0.1, 2.5], arrow.float32())
    table = arrow.table({"id": ["a", "b"], "input": ["x", "y"], "target": targets})
    task = load_task("t", parquet(tmp_path / "rows.parquet", table))
    assert [question.target for question in task.questions] == ["0.1", "2.5"]


@pytest.mark.parametrize("content", [b"no parquet", b""])
def test_a_broken_parquet_file_is_named(tmp_path, content):
    pytest.importorskip("pyarrow")
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises(DatasetError, match="not readable as Parquet"):
        load_task("t", tmp_path / "rows.parquet")
    with pytest.raises(DatasetError, match="there is no such file"):
        load_task("t", tmp_path / "other.parquet")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_hugging_face_folder_by_split(tmp_path):
    pytest.importorskip("datasets")
    written(tmp_path / "mathset" / "train.jsonl", ROWS[0])
    written(tmp_path / "mathset" / "test.jsonl", *ROWS[1:])
    assert ids(load_task("t", "hf:./mathset", base=tmp_path)) == ["b", "c"]
    assert ids(load_task("t", "hf:./mathset", base=tmp_path, split="train")) == ["a"]
    with pytest.raises(DatasetError, match=r"hf:\./mathset \(split 'dev'\): cannot be loaded"):
        load_task("t", "hf:./mathset", base=tmp_path, split="dev")
    with pytest.raises(DatasetError, match="there is no such folder"):
        load_task("t", "hf:./nowhere", base=tmp_path)


def test_a_function_gives_rows(tmp_path, monkeypatch):
    code = "def rows():\n    return ({'input': f'{n}?', 'target': n} for n in range(3))\n"
    (tmp_path / "own_dataset.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    task = load_task("t", "python:own_dataset:rows")
    assert [question.target for question in task.questions] == ["0", "1", "2"]


def test_worked_examples_follow_the_system_message_of_the_prompt(file):
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q: {input}"}]
    task = load_task("t", file, prompt=prompt, few_shot={"count": 2, "answer": "It is {target}."})
    roles = [message.role for message in task.render(task.questions[0])]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]


def test_worked_examples_from_the_dataset_are_not_asked(file):
    few = {"count": 2, "answer": "It is {target}."}
    task = load_task("t", file, prompt="Q: {input}", few_shot=few, system="Be brief.")
    assert ids(task) == ["c"]
    assert task.render(task.questions[0]) == (
        Message("system", "Be brief."),
        Message("user", "Q: 1 + 1?"),
        Message("assistant", "It is 2."),
        Message("user", "Q: 2 + 2?"),
        Message("assistant", "It is 4."),
        Message("user", "Q: 3 * 3?"),
    )
    assert task.content_hash != load_task("t", file, prompt="Q: {input}", system="Be brief.").content_hash


def test_a_conversation_is_asked_as_given(tmp_path):
    talk = [
        {"role": "system", "content": "You are {terse}."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "2 + 2?"},
    ]
    row = {"id": "a", "talk": talk, "target": "4"}
    task = load_task("t", written(tmp_path / "talks.jsonl", row), fields={"messages": "talk"})
    assert task.render(task.questions[0]) == tuple(Message(one["role"], one["content"]) for one in talk)


COLOURS = ("red", "blue", "green", "black")


def test_options_are_shuffled_by_seed_and_the_target_moves_with_them():
    question = Question("t", "q", "C", {"input": "Grass?", "choices": ""}, COLOURS)
    orders = {shuffled(question, seed).choices for seed in range(200)}
    assert len(orders) == 24
    for seed in range(200):
        one = shuffled(question, seed)
        assert one == shuffled(question, seed)
        assert one.choices["ABCD".index(one.target)] == "green"
        assert f"{one.target}. green" in one.fields["choices"]


def test_a_task_shows_each_trial_its_own_order(tmp_path):
    row = {"id": "q", "input": "Grass?", "options": COLOURS, "target": "green"}
    path, fields = written(tmp_path / "colours.jsonl", row), {"choices": "options"}
    task = load_task("t", path, prompt="{input}\n{choices}", fields=fields, shuffle_options=True)
    first, second = (task.asked(task.questions[0], seed) for seed in (1, 2))
    assert task.render(first) != task.render(second)
    still = load_task("t", path, prompt="{input}\n{choices}", fields=fields)
    assert still.asked(still.questions[0], 1) == still.questions[0]
    assert still.content_hash != task.content_hash


def test_modules_of_one_name_beside_two_configs_are_told_apart(tmp_path, monkeypatch):
    """In whatever order a process reads them, and also what they import from beside them."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    for folder in ("one", "two"):
        (tmp_path / folder / "own_package").mkdir(parents=True)
        (tmp_path / folder / "own_package" / "__init__.py").touch()
        (tmp_path / folder / "own_package" / "parts.py").write_text(f"TEXT = {folder!r}\n", encoding="utf-8")
        code = "import own_package.parts\n\ndef rows():\n    from own_package.parts import TEXT\n"
        code += f"    yield {{'input': {folder!r}, 'target': own_package.parts.TEXT}}\n"
        code += "    yield {'input': 'late', 'target': TEXT}\n"
        (tmp_path / folder / "own_rows.py").write_text(code, encoding="utf-8")
    for folder in ("one", "two", "one"):
        rows = read_source("python:own_rows:rows", tmp_path / folder).rows
        assert [row.values["input"] for row in rows] == [folder, "late"]
        assert {row.values["target"] for row in rows} == {folder}


def test_a_module_that_the_process_has_is_its_own_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path / "mine"), *sys.path])
    for folder in ("mine", "config"):
        (tmp_path / folder).mkdir()
        code = f"def rows():\n    return [{{'input': {folder!r}, 'target': '1'}}]\n"
        (tmp_path / folder / "own_twice.py").write_text(code, encoding="utf-8")
    mine = importlib.import_module("own_twice")
    found = read_source("python:own_twice:rows", tmp_path / "config").rows
    assert found[0].values["input"] == "config"
    assert sys.modules["own_twice"] is mine


def test_a_configs_relative_folder_is_that_of_its_reading(tmp_path, monkeypatch):
    """A process may change its folder before it builds, to one with another file of the name."""
    for folder in ("one", "two"):
        written(tmp_path / folder / "rows.jsonl", {"input": folder, "target": "1"})
    monkeypatch.chdir(tmp_path / "one")
    config = config_from_data(plain(task={"dataset": "rows.jsonl"}), ".")
    monkeypatch.chdir(tmp_path / "two")
    assert build(config).tasks[0].questions[0].fields["input"] == "one"
