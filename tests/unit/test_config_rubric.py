"""The rubric section: every schema can be written, and every mistake has its words."""

from __future__ import annotations

import copy

import pytest

from adaptive_eval.config import config_from_data
from adaptive_eval.errors import ConfigError
from scorio.categorical import get_schema, schema_names

BASE = {
    "name": "demo",
    "models": [
        {
            "name": name,
            "endpoints": [f"http://{name}/v1"],
            "sampling": {"max_tokens": 5, "logprobs": True},
            "extra_body": {"prompt_logprobs": 0},
        }
        for name in "ab"
    ],
    "tasks": [{"name": "t", "dataset": "t.jsonl", "scorer": "exact"}],
}
OWN = {
    "name": "mine",
    "categories": [{"name": "bad", "when": "wrong"}, {"name": "good", "when": "otherwise"}],
    "weights": [0, 1],
}
VERIFIED = {name for name in schema_names() if {"verifier_a", "verifier_b"} & get_schema(name).signals}


def config(rubric, **model):
    data = copy.deepcopy(BASE)
    data["tasks"][0]["rubric"] = rubric
    for entry in data["models"]:
        entry.update(model)
    return config_from_data(data)


def problem(rubric, **model):
    with pytest.raises(ConfigError) as caught:
        config(rubric, **model)
    return "\n".join(found.message for found in caught.value.problems)


@pytest.mark.parametrize("name", sorted(set(schema_names()) - VERIFIED))
def test_every_schema_that_needs_no_verifier_can_be_named(name):
    rubric = {"schema": name, "pilot": 2} if get_schema(name).threshold_rules else name
    section = config(rubric).tasks[0].rubric
    assert section.label == name
    assert len(section.category_weights) == len(get_schema(name).categories)


def test_an_own_schema_is_read_and_decides_the_weights():
    section = config({"schema": OWN}).tasks[0].rubric
    assert (section.label, section.category_weights) == ("mine", (0.0, 1.0))


def test_what_categories_are_is_part_of_the_scoring_but_not_what_they_are_worth():
    task = config({"schema": "format-aware", "weights": [0, 0, 1, 1, 2]}).tasks[0]
    assert task.scoring_identity() == config("format-aware").tasks[0].scoring_identity()
    assert task.scoring_identity() != config("strict-compliance").tasks[0].scoring_identity()


@pytest.mark.parametrize(
    ("rubric", "words"),
    [
        ("format-awar", "did you mean 'format-aware'?"),
        ({"schema": 3}, "write binary, a schema's name, or a definition"),
        ({"schema": {"categories": []}}, "schema 'own': categories must be a list of at least two"),
        ({"schema": {**OWN, "categorys": 1}}, "unknown key 'categorys'"),
        ({"schema": OWN, "weights": [1, 2, 3]}, "3 weights for the 2 categories of mine"),
        ("efficiency-adjusted", "cuts at len_p33, len_p66, which have no value: give thresholds"),
        ({"schema": "efficiency-adjusted", "thresholds": {"len_p33": 1}}, "cuts at len_p66, which have no"),
        (
            {"schema": "efficiency-adjusted", "thresholds": {"len": 1}},
            "has no threshold 'len'; it has len_p33",
        ),
        ({"schema": "efficiency-adjusted", "pilot": 0}, "0 must be at least 1"),
        ({"schema": "efficiency-adjusted", "pilot": 2, "thresholds_from": "x"}, "keep one of the two"),
        ({"schema": "format-aware", "pilot": 2}, "finds thresholds, and format-aware has none; leave it out"),
        ({"schema": "binary", "thresholds": {"x": 1}}, "binary has no threshold 'x'; it has none"),
        ({"truncated": "maybe"}, "'maybe' is not one of zero, judged"),
        (
            {
                "schema": {
                    "categories": [
                        {"name": "a", "when": {"signal": "faithfulness", "below": 1}},
                        {"name": "b", "when": "otherwise"},
                    ]
                }
            },
            "needs the signal 'faithfulness', which nothing records",
        ),
    ],
)
def test_each_mistake_is_named(rubric, words):
    assert words in problem(rubric)


def test_confidence_needs_log_probabilities_of_every_model():
    words = problem(
        {"schema": "conf-calibrated", "thresholds": {"tau_high": 0.3}}, sampling={"max_tokens": 5}
    )
    assert (
        "needs completion_bpt, from log-probabilities: give the model 'a' sampling: {logprobs: true}" in words
    )


def test_a_prompts_confidence_needs_the_prompts_log_probabilities():
    name = next(name for name in schema_names() if "prompt_bpt" in get_schema(name).signals)
    assert "extra_body: {prompt_logprobs: 0}" in problem({"schema": name, "pilot": 1}, extra_body={})
