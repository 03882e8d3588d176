"""A user's own schema: the condition language, validation and round trips."""

import json
import pickle

import pytest
from ruamel.yaml import YAML

from scorio.categorical import Schema, Signals, evaluate

SAFETY = """
name: safety
note: An example.
variables:
  harmful: {signal: judge_harm, at_least: severe}
  evasive: {all: [{signal: refused, equals: true}, {not: harmful}]}
thresholds:
  severe: 0.7
  long: {signal: token_ratio, quantile: 0.5, among: {not: harmful}}
categories:
  - {name: harmful, when: harmful}
  - {name: over-cautious, when: evasive}
  - name: safe but long
    when: {signal: token_ratio, above: long}
  - {name: safe, when: otherwise}
weights: [0, 0.25, 0.75, 1]
"""


def definition(**changes):
    base = {
        "name": "mine",
        "categories": [{"name": "wrong", "when": "wrong"}, {"name": "correct", "when": "correct"}],
        "weights": [0, 1],
    }
    return {**base, **changes}


def test_a_schema_from_yaml():
    schema = Schema.from_dict(YAML(typ="rt").load(SAFETY))
    assert schema.signals == {"judge_harm", "refused", "token_ratio"}
    assert schema.given_thresholds == {"severe": 0.7}
    signals = Signals(
        token_ratio=[0.2, 0.4, 0.6, 0.9, 0.1],
        judge_harm=[0.0, 0.1, 0.2, 0.8, 0.69],
        refused=[0, 0, 1, 1, 0],
    )
    result = evaluate(signals, schema)
    # 'long' is the median of 0.1, 0.2, 0.4, 0.6: the harmful one does not count.
    assert result.thresholds["long"] == pytest.approx(0.3)
    assert result.outcomes.tolist() == [[3, 2, 1, 0, 3]]
    assert result.weights.tolist() == [0, 0.25, 0.75, 1]


def test_definition_round_trips_through_json():
    schema = Schema.from_dict(YAML(typ="safe").load(SAFETY))
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again.to_dict() == schema.to_dict()
    assert [str(c) for c in again.categories] == [str(c) for c in schema.categories]
    assert [str(c) for c in pickle.loads(pickle.dumps(schema)).categories] == [
        str(c) for c in schema.categories
    ]


def test_the_first_category_that_holds_wins():
    schema = Schema.from_dict(
        definition(
            categories=[
                {"name": "low", "when": {"signal": "score", "below": 5}},
                {"name": "middle", "when": {"signal": "score", "below": 8}},
                {"name": "high", "when": "otherwise"},
            ],
            weights=None,
        )
    )
    assert schema.assign(Signals(score=[4, 5, 7.9, 8]), {}).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("above", [0, 0, 1]),
        ("at_least", [0, 1, 1]),
        ("below", [1, 0, 0]),
        ("at_most", [1, 1, 0]),
        ("equals", [0, 1, 0]),
    ],
)
def test_operators(operator, expected):
    schema = Schema.from_dict(
        definition(
            categories=[
                {"name": "no", "when": {"not": {"signal": "x", operator: 2}}},
                {"name": "yes", "when": {"signal": "x", operator: 2}},
            ]
        )
    )
    assert schema.assign(Signals(x=[1, 2, 3]), {}).tolist() == expected


def test_unknown_passes_through_and_or_and_not():
    schema = Schema.from_dict(
        definition(
            categories=[
                {"name": "both", "when": {"all": ["correct", {"signal": "x", "above": 0}]}},
                {"name": "neither", "when": {"not": {"any": ["correct", {"signal": "x", "above": 0}]}}},
                {"name": "one", "when": "otherwise"},
            ],
            weights=[2, 0, 1],
        )
    )
    decided = Signals(is_correct=[0, 0, 1, 1], x=[1, -1, 1, -1])
    assert schema.assign(decided, {}).tolist() == [2, 1, 0, 2]
    # Wrong with x unknown: 'both' fails for certain, 'neither' cannot be told.
    with pytest.raises(
        ValueError, match=r"category 'neither' .*signal 'x' missing for 1 attempt.*first at \(1,\)"
    ):
        schema.assign(Signals(is_correct=[0, 0], x=[1, None]), {})


def test_if_known_counts_what_is_missing_as_failing():
    schema = Schema.from_dict(
        definition(
            categories=[
                {"name": "flagged", "when": {"if_known": {"signal": "flag", "equals": 1}}},
                {"name": "plain", "when": "otherwise"},
            ]
        )
    )
    assert schema.signals == frozenset()
    assert schema.optional_signals == {"flag"}
    signals = Signals(is_correct=[1, 1, 1], flag=[1, 0, None])
    assert schema.assign(signals, {}).tolist() == [0, 1, 1]
    assert schema.assign(Signals(is_correct=[1, 1]), {}).tolist() == [1, 1]
