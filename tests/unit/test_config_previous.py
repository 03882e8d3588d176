"""Results of earlier runs in a config: which models may be named, and which not."""

from __future__ import annotations

import pytest
from config_texts import plain

from adaptive_eval.config.load_config import config_from_data

REFERENCES = [{"run": "runs/previous", "models": ["old", "older"]}]


@pytest.mark.parametrize(
    "goal",
    [
        "ranking",
        {"kind": "baseline", "model": "old"},
        {"kind": "pairs", "pairs": [["new", "older"]]},
        {"kind": "top-k", "k": 2},
    ],
)
def test_one_model_is_enough_beside_references_and_goals_may_name_them(goal):
    config = config_from_data(plain("new", goal=goal, references=REFERENCES))
    assert [one.models for one in config.references] == [("old", "older")]


def test_neither_references_nor_prior_change_what_a_trial_is():
    bare = config_from_data(plain("new", "newer"))
    for more in ({"references": REFERENCES}, {"prior": {"from": "runs/previous"}}):
        assert config_from_data(plain("new", "newer", **more)).trial_identity() == bare.trial_identity()
