"""Answer keys from files: what is right, and what is plausibly wrong."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.mock_server.answer_key import Answerable, load_answer_key
from adaptive_eval.mock_server.mock_spec import DatasetSpec, KnownQuestion, MockServerSpec, ModelSpec

MODELS = (ModelSpec(name="a", mean=0.5),)


def from_rows(path: Path, *rows: Any, **fields: Any) -> list[Answerable]:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), "utf-8")
    spec = MockServerSpec(models=MODELS, datasets=(DatasetSpec(path=str(path), **fields),))
    return load_answer_key(spec)[0]


def outright(*questions: KnownQuestion) -> list[Answerable]:
    return load_answer_key(MockServerSpec(models=MODELS, questions=questions))[0]


@pytest.mark.parametrize(
    ("target", "right", "some_wrong"),
    [
        (42, "42", "43"), (-7, "-7", "-8"), (0, "0", "1"), (2.5, "2.5", "2.6"), ("1,200", "1,200", "1201"),
        ("$3.50", "$3.50", "3.51"), ("1e3", "1e3", "1001"),
    ],
)  # fmt: skip
def test_wrong_numbers_are_near(tmp_path: Path, target: Any, right: str, some_wrong: str) -> None:
    (question,) = from_rows(tmp_path / "key.jsonl", {"question": "How many?", "answer": target})
    assert question.right == right
    assert some_wrong in question.wrong


@given(st.decimals(-(10**9), 10**9, places=3) | st.integers(-(10**12), 10**12).map(Decimal))
def test_wrong_numbers_are_never_right_and_keep_their_sign(number: Decimal) -> None:
    (question,) = outright(KnownQuestion(id="q", question="How many?", target=str(number), kind="numeric"))
    wrong = [Decimal(text) for text in question.wrong]
    assert wrong
    assert number not in wrong
    assert len(set(wrong)) == len(wrong)
    assert number < 0 or min(wrong) >= 0


@pytest.mark.parametrize(
    ("answer", "right"), [("B", "B"), ("b", "B"), ("(B)", "B"), ("Lima", "B"), (1, "B"), ("2", "C")]
)
def test_a_choice_is_given_by_letter_text_or_position(tmp_path: Path, answer: Any, right: str) -> None:
    row = {"question": "Which?", "choices": ["Quito", "Lima", "2"], "answer": answer}
    (question,) = from_rows(tmp_path / "key.jsonl", row)
    assert question.right == right
    assert sorted([question.right, *question.wrong]) == ["A", "B", "C"]


def test_wrong_texts_are_answers_of_other_questions() -> None:
    key = outright(
        *(
            KnownQuestion(id=name, question=f"{name}?", target=name)
            for name in ("Oslo", "oslo", "Rome", "Kyiv")
        )
    )
    assert set(key[0].wrong) == {"Rome", "Kyiv"}
    assert set(key[2].wrong) == {"Oslo", "oslo", "Kyiv"}


def test_questions_given_outright_are_grouped_by_dataset(tmp_path: Path) -> None:
    path = tmp_path / "key.jsonl"
    path.write_text('{"id": "f", "question": "1?", "answer": 1}')
    questions = tuple(
        KnownQuestion(id=name, question=f"{name}?", target=name, dataset=name[0])
        for name in ("x1", "y1", "x2")
    )
    key = load_answer_key(
        MockServerSpec(models=MODELS, datasets=(DatasetSpec(path=str(path)),), questions=questions)
    )
    assert [[question.id for question in group] for group in key] == [["f"], ["x1", "x2"], ["y1"]]
    assert key[1][0].wrong == ("x2",)


def test_fields_have_the_names_that_are_given(tmp_path: Path) -> None:
    (question,) = from_rows(
        tmp_path / "key.jsonl",
        {"key": 12, "problem": "Which?", "gold": "x", "options": ["x", "y"]},
        id="key",
        question="problem",
        target="gold",
        choices="options",
    )
    assert (question.id, question.right, question.choices) == ("12", "A", ("x", "y"))


def test_blank_lines_are_skipped_and_rows_without_id_are_numbered(tmp_path: Path) -> None:
    key = from_rows(
        tmp_path / "key.jsonl", {"question": "1?", "answer": 1}, "  ", {"question": "2?", "answer": 2}
    )
    assert [question.id for question in key] == ["0", "1"]
