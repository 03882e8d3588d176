"""Tasks from files and other sources: rows, templates, examples, options, what is wrong with one."""

import datetime
import decimal
import importlib
import json
import re
import sys
from pathlib import Path

import pytest
from config_texts import plain
from hypothesis import given
from hypothesis import strategies as st
from task_files import load_task

from adaptive_eval.build.assembly import build
from adaptive_eval.config import load_config
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.errors import DatasetError
from adaptive_eval.scoring.choice import ChoiceScorer
from adaptive_eval.tasks.sources import read_source
from adaptive_eval.tasks.task import shuffled
from adaptive_eval.tasks.template import PromptTemplate
from adaptive_eval.trial import Message, Question

# Loading tasks: every format, every way of mapping fields, every mistake with its line.


DATA = Path(__file__).parents[1] / "data"
TEXTS = json.loads((DATA / "read_texts.json").read_text())
ROWS = [
    {"id": "a", "input": "2 + 2?", "target": "4"},
    {"id": "b", "input": "3 + 3?", "target": "6"},
    {"id": "c", "input": "4 + 4?", "target": "8"},
]


def write(tmp_path, name, content):
    file = tmp_path / name
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif isinstance(content, str):
        file.write_text(content, encoding="utf-8")
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
    return file


def message_of(file, **options):
    with pytest.raises(DatasetError) as caught:
        load_task("t", file, **options)
    return str(caught.value)


@pytest.mark.parametrize(("name", "content"), TEXTS["formats"])
def test_every_format_gives_the_same_task(tmp_path, name, content):
    task = load_task("t", write(tmp_path, name, content))
    expected = [(row["id"], row["target"], row["input"]) for row in ROWS]
    assert [(q.id, q.target, q.fields["input"]) for q in task.questions] == expected
    reference = load_task("t", write(tmp_path, "reference.jsonl", ROWS))
    assert task.content_hash == reference.content_hash
    assert task.by_id["b"] is task.questions[1]
    assert task.source == str(tmp_path / name)


def test_fields_are_mapped_by_name(tmp_path):
    rows = [{"key": 7, "problem": "2 + 2?", "meta": {"answer": 4.5}, "hint": True, "a.b": "dotted"}]
    task = load_task(
        "t",
        write(tmp_path, "q.jsonl", rows),
        fields={"id": "key", "input": "problem", "target": "meta.answer", "note": "a.b"},
        prompt="{input} ({hint}, {note})",
        system="Be brief.",
    )
    question = task.questions[0]
    assert (question.task, question.id, question.target) == ("t", "7", "4.5")
    assert task.render(question) == (Message("system", "Be brief."), Message("user", "2 + 2? (true, dotted)"))


@pytest.mark.parametrize(
    ("row", "advised"),
    [
        ({"answer": "4", "question": "2 + 2?"}, "{input: question} {target: answer}"),
        ({"text": "4 = ?", "problem": "2 + 2?"}, "{input: problem} {target: COLUMN}"),
        ({"target": "4", "text": "2 + 2?"}, "{input: text}"),
        ({"q": "2 + 2?", "solution": "4"}, "{input: COLUMN} {target: solution}"),
        ({"prompt": "sums", "text": "2 + 2?", "label": "4"}, "{input: text} {target: label}"),
    ],
)
def test_columns_of_usual_names_are_in_the_advice(tmp_path, row, advised):
    said = message_of(
        write(tmp_path, "q.jsonl", [row]), fields={"topic": "prompt"} if "prompt" in row else {}
    )
    assert re.findall(r"\{\w+: \w+\}", said) == re.findall(r"\{.*?\}", advised)


def test_a_file_of_another_form_is_told_what_to_do(tmp_path):
    assert "save the sheet as CSV" in message_of(write(tmp_path, "q.xlsx", b"PK"))
    assert "one list ends in .json" in message_of(write(tmp_path, "q.jsonl", json.dumps(ROWS)))


def test_a_list_is_read_by_line_also_if_it_begins_on_the_second(tmp_path):
    assert "line 3: a row must be an object" in message_of(write(tmp_path, "q.json", "\n[\n5]"))


@pytest.mark.parametrize(("row", "fields"), TEXTS["options"])
def test_options_come_in_every_shape(tmp_path, row, fields):
    file = write(tmp_path, "q.jsonl", [{"input": "?", "target": "B", **row}])
    task = load_task("t", file, fields=fields, prompt="{input}\n{choices}")
    question = task.questions[0]
    assert (question.choices, question.target) == (("red", "blue"), "B")
    assert task.render(question)[0].content == "?\nA. red\nB. blue"


def test_of_columns_of_options_only_the_last_may_be_empty(tmp_path):
    """Those behind one that is left out would have other letters than the target's."""
    columns = {"choices": ["one", "two", "three"]}
    rows = [{"input": f"{n}?", "target": "B", "one": "red", "two": "blue"} for n in range(3)]
    rows[0]["three"], rows[1]["three"], rows[2] = "", None, {**rows[2], "two": "", "three": "green"}
    task = load_task("t", write(tmp_path, "q.jsonl", rows[:2]), fields=columns)
    assert [one.choices for one in task.questions] == [("red", "blue")] * 2
    assert "line 3: the field 'two' is empty" in message_of(write(tmp_path, "r.jsonl", rows), fields=columns)


def test_limit_and_shuffle_depend_on_ids_and_seed_only(tmp_path):
    rows = [{"id": n, "input": f"{n}?", "target": n} for n in range(50)]
    file, reverse = write(tmp_path, "f.jsonl", rows), write(tmp_path, "r.jsonl", rows[::-1])
    plain = load_task("t", file, limit=5)
    assert [q.id for q in plain.questions] == ["0", "1", "2", "3", "4"]
    shuffled = load_task("t", file, shuffle=1, limit=5)
    assert ids(shuffled) == ids(load_task("t", reverse, shuffle=1, limit=5))
    assert {q.id for q in load_task("t", file, shuffle=1).questions} == {str(n) for n in range(50)}
    assert shuffled.questions != plain.questions
    assert shuffled.questions != load_task("t", file, shuffle=2, limit=5).questions
    assert len(load_task("t", file, limit=500).questions) == 50


def test_the_hash_is_over_what_is_asked_and_what_is_right(tmp_path):
    file = write(tmp_path, "q.jsonl", ROWS)
    base = load_task("t", file).content_hash
    assert load_task("other", file).content_hash == base
    noted = write(tmp_path, "noted.jsonl", [{**row, "note": "x"} for row in ROWS])
    assert load_task("t", noted).content_hash == base
    changed = [
        load_task("t", file, prompt="{input} Think."),
        load_task("t", file, system="Be brief."),
        load_task("t", file, limit=2),
        load_task("t", write(tmp_path, "order.jsonl", ROWS[::-1])),
        load_task("t", write(tmp_path, "target.jsonl", [{**ROWS[0], "target": "5"}, *ROWS[1:]])),
        load_task("t", write(tmp_path, "id.jsonl", [{**ROWS[0], "id": "z"}, *ROWS[1:]])),
    ]
    assert len({base, *(task.content_hash for task in changed)}) == 7


def test_a_filter_keeps_rows_that_fit_in_all_of_its_columns(tmp_path):
    kinds = zip(ROWS, (1, 1, 2), "xyx", strict=True)
    rows = [{**row, "level": level, "kind": kind, "easy": kind == "y"} for row, level, kind in kinds]
    file = write(tmp_path, "q.jsonl", rows)
    task = load_task("t", file, filter={"level": 1, "kind": "x"})
    assert [question.id for question in task.questions] == ["a"]
    for easy in (True, "true"):
        (one,) = load_task("t", file, filter={"easy": easy}).questions
        assert one.id == rows[1]["id"]


def test_questions_that_ask_the_same_are_counted_and_a_person_is_told(tmp_path):
    twice = [*ROWS, {**ROWS[0], "id": "again"}, {**ROWS[1], "id": "other target", "target": "7"}]
    write(tmp_path, "q.jsonl", twice)
    assert load_task("t", tmp_path / "q.jsonl").repeated == 1
    config = plain("a", goal="budget", budget={"trials": 9}, task={"dataset": "q.jsonl"})
    (tmp_path / "x.yaml").write_text(json.dumps(config), encoding="utf-8")
    assert any("1 of 5 questions" in words for words in build(load_config(tmp_path / "x.yaml")).notices)


def test_every_bad_row_is_reported_at_once():
    first, *found = message_of(DATA / "bad_rows.jsonl").splitlines()
    assert first.endswith(": 14 problems")
    for text, expected in zip(found, (DATA / "bad_rows.txt").read_text().splitlines(), strict=True):
        place, _, words = expected.partition(": ")
        assert text.startswith(f"  {place}: "), text
        assert words in text


def test_one_mistake_in_many_rows_is_one_line(tmp_path):
    rows = [{"id": f"q{n}", "input": "x", "target": n} for n in range(1, 101)]
    file = write(tmp_path, "q.jsonl", rows)
    first, second = message_of(file, check_target=ChoiceScorer().check_target).splitlines()
    assert first.endswith(": 100 problems")
    assert second.startswith("  line 1: the target '1' is none of")
    assert second.endswith("(99 more rows like this)")


# Prompt templates: fields are replaced, LaTeX and everything else stays.


@pytest.mark.parametrize(("text", "fields", "rendered"), TEXTS["templates"])
def test_fields_are_replaced_and_all_other_braces_stay(text, fields, rendered):
    template = PromptTemplate.parse(text)
    assert template.fields == tuple(fields)
    assert template.render({"q": "Q", "r": "R"}) == rendered


@given(st.text("ab{}\\^_[] ", max_size=60))
def test_every_text_is_a_template(text):
    template = PromptTemplate.parse(text)
    rendered = template.render(dict.fromkeys(template.fields, ""))
    assert len(rendered) <= len(text)
    assert PromptTemplate.parse(text) == template


GRADED = [{**row, "level": level, "hard": level > 1} for level, row in enumerate(ROWS)]


@pytest.fixture
def file(tmp_path):
    return write(tmp_path, "rows.jsonl", GRADED)


def parquet(path, rows):
    """Write rows as Parquet where it can be written, and return their file."""
    arrow = pytest.importorskip("pyarrow")
    table = rows if isinstance(rows, arrow.Table) else arrow.Table.from_pylist(rows)
    pytest.importorskip("pyarrow.parquet").write_table(table, path)
    return path


def ids(task):
    return [question.id for question in task.questions]


def test_parquet_gives_what_json_lines_give(tmp_path, file):
    from_parquet = load_task("t", parquet(tmp_path / "rows.parquet", GRADED))
    from_lines = load_task("t", file)
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
    system, asked = load_task("t", file, images="picture", prompt=TALK).render(task.questions[0])
    assert (system.content, [part["type"] for part in asked.sent["content"]]) == (
        "Be brief.",
        ["image_url", "text"],
    )


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
    (tmp_path / "mathset").mkdir()
    write(tmp_path, "mathset/train.jsonl", GRADED[:1])
    write(tmp_path, "mathset/test.jsonl", GRADED[1:])
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


TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q: {input}"}]


@pytest.mark.parametrize("asked", [{"prompt": "Q: {input}", "system": "Be brief."}, {"prompt": TALK}])
def test_worked_examples_follow_the_system_message_and_are_not_asked(file, asked):
    task = load_task("t", file, few_shot={"count": 2, "answer": "It is {target}."}, **asked)
    assert ids(task) == ["c"]
    assert task.render(task.questions[0]) == (
        Message("system", "Be brief."),
        Message("user", "Q: 2 + 2?"),
        Message("assistant", "It is 4."),
        Message("user", "Q: 3 + 3?"),
        Message("assistant", "It is 6."),
        Message("user", "Q: 4 + 4?"),
    )
    assert task.content_hash != load_task("t", file, **asked).content_hash
    bounded = load_task("t", file, few_shot={"count": 1, "answer": "{target}"}, limit=1, **asked)
    assert ids(bounded) == ["b"], "a limit is one of the questions that are asked"


@pytest.mark.parametrize(("limit", "worked"), [(1, ["b", "c"]), (2, ["c"])])
def test_worked_examples_of_the_same_rows_are_those_that_are_not_asked(file, limit, worked):
    few = {"count": len(worked), "answer": "{target}", "dataset": str(file)}
    task = load_task("t", file, few_shot=few, limit=limit)
    said = [(row["input"], row["target"]) for row in ROWS if row["id"] in worked]
    assert [one.content for one in task.examples] == [text for both in said for text in both]
    assert ids(task) == [row["id"] for row in ROWS[:limit]]


def test_a_conversation_is_asked_as_given(tmp_path):
    talk = [
        {"role": "system", "content": "You are {terse}."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "2 + 2?"},
    ]
    row = {"id": "a", "talk": talk, "target": "4"}
    task = load_task("t", write(tmp_path, "talks.jsonl", [row]), fields={"messages": "talk"})
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
    path, fields = write(tmp_path, "colours.jsonl", [row]), {"choices": "options"}
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
        (tmp_path / folder).mkdir()
        write(tmp_path / folder, "rows.jsonl", [{"input": folder, "target": "1"}])
    monkeypatch.chdir(tmp_path / "one")
    config = config_from_data(plain(task={"dataset": "rows.jsonl"}), ".")
    monkeypatch.chdir(tmp_path / "two")
    assert build(config).tasks[0].questions[0].fields["input"] == "one"
