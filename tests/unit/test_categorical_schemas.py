"""Each of the twelve schemas on hand-checked attempts, and the categories of Table 5."""

import json
from pathlib import Path

import pytest

from scorio.categorical import Signals, get_schema, schema_names

CUTS = {
    "tau_high": 1.0, "tau_low_wrong": 1.5, "tau_prompt": 4.0, "len_p33": 0.3, "len_p66": 0.6, "corr_p33": 0.8,
    "corr_p66": 1.2,
}  # fmt: skip

# A plain attempt: correct, boxed, confident, short, in distribution, accepted by the verifier.
PLAIN = {
    "has_box": 1, "is_correct": 1, "token_ratio": 0.1, "repeated_pattern": 0, "prompt_bpt": 2.0,
    "completion_bpt": 0.5, "verifier_a": 0.9, "verifier_b": 0.08, "verifier_c": 0.02,
}  # fmt: skip


def category(schema, **changes):
    return int(get_schema(schema).assign(Signals(**{**PLAIN, **changes}), CUTS))


@pytest.mark.parametrize("name", schema_names())
def test_truncated_and_off_task_answers_are_invalid(name):
    assert category(name, repeated_pattern=1) == 0
    assert category(name, repeated_pattern=1, is_correct=0) == 0
    assert category(name, verifier_a=0.3, verifier_b=0.2, verifier_c=0.5) == 0
    assert get_schema(name).categories[0].name == "invalid"


CASES = json.loads((Path(__file__).parents[1] / "data" / "categories_by_hand.json").read_text())["cases"]


@pytest.mark.parametrize(("name", "changes", "expected"), CASES)
def test_category_by_hand(name, changes, expected):
    assert category(name, **changes) == expected


def test_the_cases_cover_every_category_of_the_twelve_in_the_order_of_table_5():
    covered = {name: {0} for name, _, _ in CASES}
    assert (*covered,) == schema_names()
    assert len(covered) == 12
    for name, _, expected in CASES:
        covered[name].add(expected)
    assert covered == {name: set(range(len(get_schema(name).categories))) for name in schema_names()}
