"""The extractors and text forms that all scorers share; answers are in ``test_scored_answers``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptive_eval.scoring.text import TAIL, answer_part, last_boxed, last_stated, unwrapped

TEXTS = json.loads((Path(__file__).parents[1] / "data" / "read_texts.json").read_text())


@pytest.mark.parametrize(("text", "content"), TEXTS["boxed"])
def test_the_last_complete_box_wins(text, content):
    found = last_boxed(text)
    assert (found.text if found else None) == content


@pytest.mark.parametrize(("text", "line"), TEXTS["stated"])
def test_the_last_statement_wins(text, line):
    found = last_stated(text)
    assert (found.text if found else None) == line
    if found:
        assert text[found.end - len(found.text) : found.end] == found.text


@pytest.mark.parametrize(("text", "part"), TEXTS["after_reasoning"])  # fmt: skip
def test_reasoning_is_left_out(text, part):
    assert answer_part(text) == part


def test_of_a_long_text_the_end_is_read():
    assert answer_part("x" * (TAIL + 5) + "y") == "x" * (TAIL - 1) + "y"


@pytest.mark.parametrize(("text", "plain"), TEXTS["plain"])
def test_spaces_and_powers_are_no_layout(text, plain):
    assert unwrapped(text) == plain
