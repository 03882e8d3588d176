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
