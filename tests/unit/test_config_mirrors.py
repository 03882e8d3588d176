"""Sections of the grammar that stand for classes elsewhere have their fields and their defaults."""

from __future__ import annotations

import dataclasses
import inspect
from typing import get_args

import pytest

from adaptive_eval.config import config_from_data, decisions, scorers
from adaptive_eval.config import mock_server_config as mimic
from adaptive_eval.core import spec as spec_of_session
from adaptive_eval.core.allocate import POLICIES
from adaptive_eval.core.spec import RULES
from adaptive_eval.mock_server import mock_spec as spec
from adaptive_eval.mock_server.spec_json import spec_from_data
from adaptive_eval.scoring import SCORERS, build_scorer

# What the config says otherwise or elsewhere: names are the mapping's keys, questions are those of the tasks,
# and the key of a server that only this run talks to would protect nothing.
ELSEWHERE = {"name", "models", "questions", "datasets", "api_key"}


def fields_of(cls):
    return {field.name: field for field in dataclasses.fields(cls)}


@pytest.mark.parametrize(
    ("section", "cls"),
    [
        (mimic.LatencyConfig, spec.LatencySpec),
        (mimic.TokensConfig, spec.TokenSpec),
        (mimic.FaultConfig, spec.FaultSpec),
        (mimic.MimicModelConfig, spec.ModelSpec),
        (mimic.MimicConfig, spec.MimicSpec),
    ],
)
def test_the_mimic_section_has_the_fields_and_defaults_of_the_mimic(section, cls):
    ours, theirs = section.model_fields, fields_of(cls)
    shared_by_models = {"latency", "tokens"} if section is mimic.MimicConfig else set()
    assert set(ours) - shared_by_models - ELSEWHERE == set(theirs) - ELSEWHERE
    for name in set(ours) & set(theirs) - ELSEWHERE - {"latency", "tokens"}:
        if not ours[name].is_required():
            assert ours[name].default == theirs[name].default, name


def test_a_mimic_section_makes_a_mimic():
    config = config_from_data(
        {
            "name": "demo",
            "models": [{"name": name, "endpoints": ["mimic"]} for name in "ab"],
            "tasks": [{"name": "t", "dataset": "t.jsonl", "scorer": "exact"}],
            "mimic": {
                "seed": 4,
                "correlation": 0.5,
                "latency": {"median": 0.2, "sigma": 0.1},
                "models": {
                    "a": {"mean": 0.7, "spread": 20, "tokens": {"completion_median": 9}},
                    "b": {"accuracies": [0.1, 0.2], "like": "a", "latency": {"median": 0.3}},
                },
                "faults": [{"kind": "status", "status": 429, "retry_after": 1, "requests": [2, 4]}],
            },
        }
    )
    question = {"id": "1", "question": "2 + 2?", "target": "4"}
    made = spec_from_data({**config.mimic.spec_data(), "questions": [question]})
    latency = spec.LatencySpec(median=0.2, sigma=0.1)
    assert made == spec.MimicSpec(
        seed=4,
        correlation=0.5,
        models=(
            spec.ModelSpec(
                "a", mean=0.7, spread=20.0, latency=latency, tokens=spec.TokenSpec(completion_median=9)
            ),
            spec.ModelSpec("b", accuracies=(0.1, 0.2), like="a", latency=spec.LatencySpec(median=0.3)),
        ),
        questions=(spec.KnownQuestion("1", "2 + 2?", "4"),),
        faults=(spec.FaultSpec("status", status=429, retry_after=1.0, requests=(2, 4)),),
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
    assert options == {name: one.default for name, one in parameters.items() if name not in needed}
    assert build_scorer(kind, {**needed, **options}) == build_scorer(kind, needed)


def test_rules_and_policies_are_those_of_the_core():
    assert get_args(decisions.RuleName) == RULES
    assert set(get_args(decisions.PolicyName)) == set(spec_of_session.POLICIES) == set(POLICIES)


def test_every_scorer_has_a_section():
    kinds = {option.model_fields["kind"].default for option in scorers.ScorerConfig.__args__}
    assert kinds == set(SCORERS)
