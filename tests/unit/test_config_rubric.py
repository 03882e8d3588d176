"""The rubric section: every schema can be written."""

from __future__ import annotations

import pytest
from config_texts import WIDE, with_changes

from adaptive_eval.config import parse_config
from scorio.categorical import get_schema, schema_names

OWN = {
    "name": "mine",
    "categories": [{"name": "bad", "when": "wrong"}, {"name": "good", "when": "otherwise"}],
    "weights": [0, 1],
}
VERIFIED = {name for name in schema_names() if {"verifier_a", "verifier_b"} & get_schema(name).signals}


def task_with(rubric):
    return parse_config(with_changes({"tasks.0.rubric": rubric}, WIDE)).tasks[0]


@pytest.mark.parametrize("name", sorted(set(schema_names()) - VERIFIED))
def test_every_schema_that_needs_no_verifier_can_be_named(name):
    rubric = {"schema": name, "pilot": 2} if get_schema(name).threshold_rules else name
    section = task_with(rubric).rubric
    assert section.label == name
    assert len(section.category_weights) == len(get_schema(name).categories)


def test_an_own_schema_is_read_and_decides_the_weights():
    section = task_with({"schema": OWN}).rubric
    assert (section.label, section.category_weights) == ("mine", (0.0, 1.0))


def test_what_categories_are_is_part_of_the_scoring_but_not_what_they_are_worth():
    task = task_with({"schema": "format-aware", "weights": [0, 0, 1, 1, 2]})
    assert task.scoring_identity() == task_with("format-aware").scoring_identity()
    assert task.scoring_identity() != task_with("strict-compliance").scoring_identity()
