"""Each of the twelve schemas on hand-checked attempts, and the categories of Table 5."""

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


def test_the_twelve_names_in_the_order_of_table_5():
    assert schema_names() == (
        "exact-match",
        "format-aware",
        "conf-calibrated",
        "ood-robustness",
        "strict-compliance",
        "conf-wrong-penalty",
        "verifier-only",
        "format-confidence",
        "length-robust",
        "verifier-probe",
        "efficiency-adjusted",
        "concision-high-conf",
    )


@pytest.mark.parametrize("name", schema_names())
def test_truncated_and_off_task_answers_are_invalid(name):
    assert category(name, repeated_pattern=1) == 0
    assert category(name, repeated_pattern=1, is_correct=0) == 0
    assert category(name, verifier_a=0.3, verifier_b=0.2, verifier_c=0.5) == 0
    assert get_schema(name).categories[0].name == "invalid"


WRONG = {"is_correct": 0}

CASES = [
    ("exact-match", {}, 2),
    ("exact-match", WRONG, 1),
    ("exact-match", {"is_correct": 0.5}, 2),
    ("exact-match", {"is_correct": 0.49}, 1),
    ("length-robust", {"token_ratio": 5.0}, 2),
    ("length-robust", {**WRONG, "token_ratio": 5.0}, 1),
    ("format-aware", {**WRONG, "has_box": 0}, 1),
    ("format-aware", WRONG, 2),
    ("format-aware", {"has_box": 0}, 3),
    ("format-aware", {}, 4),
    # Wrong answers: tau_low_wrong = 1.5, at most is confident. tau_high = 1.0 plays no part.
    ("conf-calibrated", {**WRONG, "completion_bpt": 1.51}, 1),
    ("conf-calibrated", {**WRONG, "completion_bpt": 1.5}, 2),
    ("conf-calibrated", {**WRONG, "completion_bpt": 0.5}, 2),
    ("conf-calibrated", {"completion_bpt": 1.21}, 3),
    ("conf-calibrated", {"completion_bpt": 1.2}, 4),
    ("conf-calibrated", {"completion_bpt": 0.81}, 4),
    ("conf-calibrated", {"completion_bpt": 0.8}, 5),
    ("ood-robustness", {**WRONG, "prompt_bpt": 4.0}, 1),
    ("ood-robustness", {**WRONG, "prompt_bpt": 3.99}, 2),
    ("ood-robustness", {"prompt_bpt": 4.0}, 3),
    ("ood-robustness", {}, 4),
    ("strict-compliance", WRONG, 1),
    ("strict-compliance", {**WRONG, "has_box": 0}, 1),
    ("strict-compliance", {"has_box": 0}, 1),
    ("strict-compliance", {}, 2),
    ("conf-wrong-penalty", {**WRONG, "completion_bpt": 1.5}, 1),
    ("conf-wrong-penalty", {**WRONG, "completion_bpt": 1.51}, 2),
    ("conf-wrong-penalty", {}, 3),
    ("verifier-only", {"verifier_a": 0.2, "verifier_b": 0.35, "verifier_c": 0.45}, 1),
    ("verifier-only", {"verifier_a": 0.2, "verifier_b": 0.45, "verifier_c": 0.35}, 2),
    ("verifier-only", {"verifier_a": 0.2, "verifier_b": 0.4, "verifier_c": 0.4}, 2),
    ("verifier-only", {"verifier_a": 0.59, "verifier_b": 0.4, "verifier_c": 0.01}, 2),
    ("verifier-only", {"verifier_a": 0.6, "verifier_b": 0.4, "verifier_c": 0.0}, 3),
    ("verifier-only", WRONG, 3),
    ("format-confidence", {**WRONG, "has_box": 0}, 1),
    ("format-confidence", {**WRONG, "has_box": 0, "completion_bpt": 9.0}, 1),
    ("format-confidence", {**WRONG, "completion_bpt": 1.01}, 2),
    ("format-confidence", {**WRONG, "completion_bpt": 1.0}, 3),
    ("format-confidence", {"has_box": 0, "completion_bpt": 1.01}, 4),
    ("format-confidence", {"has_box": 0, "completion_bpt": 1.0}, 5),
    ("format-confidence", {"completion_bpt": 1.01}, 6),
    ("format-confidence", {"completion_bpt": 1.0}, 7),
    ("verifier-probe", WRONG, 1),
    ("verifier-probe", {**WRONG, "verifier_a": 0.59}, 2),
    ("verifier-probe", {"verifier_a": 0.59}, 3),
    ("verifier-probe", {"verifier_a": 0.6}, 4),
    ("efficiency-adjusted", {**WRONG, "token_ratio": 0.3}, 1),
    ("efficiency-adjusted", {**WRONG, "token_ratio": 0.31}, 2),
    ("efficiency-adjusted", {**WRONG, "token_ratio": 0.61}, 3),
    ("efficiency-adjusted", {"token_ratio": 0.3}, 4),
    ("efficiency-adjusted", {"token_ratio": 0.6}, 5),
    ("efficiency-adjusted", {"token_ratio": 0.61}, 6),
    ("concision-high-conf", WRONG, 1),
    ("concision-high-conf", {"token_ratio": 0.61}, 2),
    ("concision-high-conf", {"token_ratio": 0.6}, 3),
    ("concision-high-conf", {"completion_bpt": 1.01}, 4),
    ("concision-high-conf", {"completion_bpt": 1.0}, 5),
]


@pytest.mark.parametrize(("name", "changes", "expected"), CASES)
def test_category_by_hand(name, changes, expected):
    assert category(name, **changes) == expected


def test_the_cases_cover_every_category():
    covered = {name: {0} for name in schema_names()}
    for name, _, expected in CASES:
        covered[name].add(expected)
    assert covered == {name: set(range(len(get_schema(name).categories))) for name in schema_names()}
