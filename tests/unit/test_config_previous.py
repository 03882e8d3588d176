"""Results of earlier runs in a config: which models may be named, and which not."""

from __future__ import annotations

import pytest

from adaptive_eval.config import config_from_data
from adaptive_eval.errors import ConfigError

OLD = {"run": "runs/previous", "models": ["old", "older"]}


def config(*models, references=(OLD,), **parts):
    return config_from_data(
        {
            "name": "demo",
            "models": [{"name": name, "endpoints": [f"http://{name}/v1"]} for name in models],
            "tasks": [{"name": "t", "dataset": "t.jsonl", "scorer": "exact"}],
            "references": list(references),
            **parts,
        }
    )


def refused(*models, **parts):
    with pytest.raises(ConfigError) as caught:
        config(*models, **parts)
    return [f"{problem.path}: {problem.message}" for problem in caught.value.problems]


def test_one_model_is_enough_beside_a_reference():
    assert [one.models for one in config("new").references] == [("old", "older")]
    assert refused("new", references=()) == [
        "models: the goal ranking compares models and there is one; give two or more"
    ]


@pytest.mark.parametrize(
    "goal",
    [
        {"kind": "baseline", "model": "old"},
        {"kind": "pairs", "pairs": [["new", "older"]]},
        {"kind": "top-k", "k": 2},
    ],
)
def test_goals_may_name_references(goal):
    config("new", goal=goal)


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ({"kind": "baseline", "model": "oldest"}, "goal.model: 'oldest' is not a model of this config"),
        ({"kind": "pairs", "pairs": [["old", "older"]]}, "goal.pairs[0]: both are references"),
        ({"kind": "top-k", "k": 3}, "goal.k: 3 of 3 models: nothing would be left to decide"),
    ],
)
def test_but_only_those_there_are_and_never_two_of_them(goal, words):
    assert [problem.startswith(words) for problem in refused("new", goal=goal)] == [True]


def test_a_name_is_a_model_or_a_reference():
    assert refused("new", "old") == [
        "references[0].models[0]: 'old' is also a model of this config; a model is asked or a reference"
    ]
    assert refused("new", references=[OLD, {"file": "x.npz", "models": ["old"]}]) == [
        "references[1].models[0]: 'old' is there twice"
    ]


def test_results_come_from_one_place():
    words = "references[0]: give run (an earlier run's directory) or file (recorded outcomes)"
    assert refused("new", references=[{"models": ["old"]}]) == [words]
    assert refused("new", references=[{**OLD, "file": "x.npz"}]) == [words]


def test_the_exact_rule_needs_single_trials():
    assert refused("new", stopping={"rule": "exact"}) == [
        "stopping.rule: exact reads single trials, which references do not have; use anytime"
    ]


def test_neither_references_nor_prior_change_what_a_trial_is():
    plain = config("new", "newer", references=())
    other = config("new", "newer", prior={"from": "runs/previous"})
    assert plain.trial_identity() == other.trial_identity()
