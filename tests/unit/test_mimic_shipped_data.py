"""The questions that the project ships: as their scripts make them, and fit for their configs."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adaptive_eval.mimic.answer_key import Recogniser, load_answer_key
from adaptive_eval.mimic.mimic_spec import DatasetSpec, MimicSpec, ModelSpec

ROOT = Path(__file__).parents[2]
DATA = ROOT / "configs" / "data"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def made_by(script: str, function: str) -> list[dict[str, Any]]:
    make: Callable[[], list[dict[str, Any]]] = runpy.run_path(str(ROOT / "scripts" / script))[function]
    return make()


def test_arithmetic_is_what_its_script_makes() -> None:
    assert rows("arithmetic.jsonl") == made_by("make_arithmetic.py", "make_problems")


def test_choice_is_what_its_script_makes() -> None:
    assert rows("choice.jsonl") == made_by("make_choice.py", "make_questions")


@pytest.mark.parametrize("name", ["arithmetic.jsonl", "choice.jsonl"])
def test_a_mimic_recognises_every_question(name: str) -> None:
    spec = MimicSpec(models=(ModelSpec(name="a", mean=0.5),), datasets=(DatasetSpec(path=str(DATA / name)),))
    (key,) = load_answer_key(spec)
    recogniser = Recogniser(key)
    for index, question in enumerate(key):
        assert recogniser.find(f"Answer this.\n\n{question.question}\n\nThink first.") == index
