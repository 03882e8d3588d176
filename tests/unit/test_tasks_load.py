"""Tasks from files: rows, templates, what is wrong with one."""

import json
from pathlib import Path

import pytest
from config_texts import plain
from hypothesis import given
from hypothesis import strategies as st
from task_files import load_task

from adaptive_eval.build.assembly import build
from adaptive_eval.config import load_config
from adaptive_eval.errors import DatasetError
from adaptive_eval.scoring.choice import ChoiceScorer
from adaptive_eval.tasks.template import PromptTemplate
from adaptive_eval.trial import Message

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
    assert [(q.id, q.target, q.fields["input"]) for q in task.questions] == [
        (row["id"], row["target"], row["input"]) for row in ROWS
    ]
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


@pytest.mark.parametrize(("row", "fields"), TEXTS["options"])
def test_options_come_in_every_shape(tmp_path, row, fields):
    file = write(tmp_path, "q.jsonl", [{"input": "?", "target": "B", **row}])
    task = load_task("t", file, fields=fields, prompt="{input}\n{choices}")
    question = task.questions[0]
    assert (question.choices, question.target) == (("red", "blue"), "B")
    assert task.render(question)[0].content == "?\nA. red\nB. blue"


def test_limit_and_shuffle_depend_on_ids_and_seed_only(tmp_path):
    rows = [{"id": n, "input": f"{n}?", "target": n} for n in range(50)]
    file, reverse = write(tmp_path, "f.jsonl", rows), write(tmp_path, "r.jsonl", rows[::-1])
    plain = load_task("t", file, limit=5)
    assert [q.id for q in plain.questions] == ["0", "1", "2", "3", "4"]
    shuffled = load_task("t", file, shuffle=1, limit=5)
    assert [q.id for q in shuffled.questions] == [
        q.id for q in load_task("t", reverse, shuffle=1, limit=5).questions
    ]
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
    rows = [{**row, "level": level, "kind": kind} for row, level, kind in kinds]
    file = write(tmp_path, "q.jsonl", rows)
    task = load_task("t", file, filter={"level": 1, "kind": "x"})
    assert [question.id for question in task.questions] == ["a"]


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


def test_targets_are_checked_by_the_scorer_with_their_lines(tmp_path):
    file = write(tmp_path, "q.jsonl", ROWS)
    message = message_of(
        file, check_target=lambda question: None if question.target != "6" else f"{question.target} is odd"
    )
    assert message.splitlines()[1:] == ["  line 2: 6 is odd"]


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
