"""Sections of the grammar that stand for classes elsewhere have their defaults."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest
from config_texts import plain

from adaptive_eval.build.assembly import SCORERS  # with those of other tools
from adaptive_eval.config import decision_config, scorers
from adaptive_eval.config.load_config import config_from_data
from adaptive_eval.core import spec as spec_of_session
from adaptive_eval.core.allocate import POLICIES
from adaptive_eval.core.spec import RULES
from adaptive_eval.mimic.mimic_spec import KnownQuestion, LatencySpec, MimicSpec, ModelSpec, TokenSpec
from adaptive_eval.scoring.registry import build_scorer


def test_a_mimic_section_makes_a_server():
    mimic = {
        "seed": 4,
        "correlation": 0.5,
        "latency": {"median": 0.2, "sigma": 0.1},
        "models": {
            "a": {"mean": 0.7, "spread": 20, "tokens": {"completion_median": 9}},
            "b": {"accuracies": [0.1, 0.2], "like": "a", "latency": {"median": 0.3}},
        },
    }
    config = config_from_data(plain(mimic=mimic))
    question = {"id": "1", "question": "2 + 2?", "target": "4"}
    made = config.mimic.spec([question])
    latency = LatencySpec(median=0.2, sigma=0.1)
    assert made == MimicSpec(
        seed=4,
        correlation=0.5,
        models=(
            ModelSpec(
                name="a", mean=0.7, spread=20.0, latency=latency, tokens=TokenSpec(completion_median=9)
            ),
            ModelSpec(name="b", accuracies=(0.1, 0.2), like="a", latency=LatencySpec(median=0.3)),
        ),
        questions=(KnownQuestion(id="1", question="2 + 2?", target="4"),),
    )


@pytest.mark.parametrize("section", scorers.ScorerConfig.__args__)
def test_a_scorers_section_has_its_options_and_defaults(section):
    kind = section.model_fields["kind"].default
    needed = {
        "python": {"function": "math:sqrt"},
        "judge": {"endpoint": "http://judge/v1", "model": "wise"},
        "verifier": {"endpoint": "http://verifier/v1", "model": "wise"},
    }.get(kind, {})
    options = {name: value for name, value in section(**needed).options().items() if name not in needed}
    parameters = inspect.signature(SCORERS[kind]).parameters
    assert options == {name: parameters[name].default for name in options}
    assert build_scorer(kind, {**needed, **options}) == build_scorer(kind, needed)


def test_rules_and_policies_are_those_of_the_core():
    assert get_args(decision_config.RuleName) == RULES
    assert set(get_args(decision_config.PolicyName)) == set(spec_of_session.POLICIES) == set(POLICIES)


def test_every_scorer_has_a_section():
    kinds = {option.model_fields["kind"].default for option in scorers.ScorerConfig.__args__}
    assert kinds == set(SCORERS)
