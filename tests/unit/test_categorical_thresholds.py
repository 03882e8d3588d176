"""Thresholds: found as Table 4 says, frozen, stored and checked."""

import json
import pickle

import numpy as np
import pytest

from scorio.categorical import Schema, Signals, Thresholds, get_schema

RNG = np.random.default_rng(5)
SHAPE = (3, 10, 8)
CORRECT = RNG.integers(0, 2, SHAPE)
BPT = RNG.gamma(2.0, 0.5, SHAPE)
PROMPT = RNG.gamma(3.0, 1.0, SHAPE)
RATIO = RNG.beta(2.0, 5.0, SHAPE)
SIGNALS = Signals(
    is_correct=CORRECT,
    repeated_pattern=np.zeros(SHAPE),
    token_ratio=RATIO,
    prompt_bpt=PROMPT,
    completion_bpt=BPT,
    has_box=np.ones(SHAPE),
)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("format-confidence", {"tau_high": np.quantile(BPT, 0.40)}),
        ("conf-wrong-penalty", {"tau_low_wrong": np.quantile(BPT[CORRECT == 0], 0.60)}),
        ("ood-robustness", {"tau_prompt": np.quantile(PROMPT, 0.90)}),
        ("efficiency-adjusted", {"len_p33": np.quantile(RATIO, 0.33), "len_p66": np.quantile(RATIO, 0.66)}),
        (
            "conf-calibrated",
            {
                "tau_low_wrong": np.quantile(BPT[CORRECT == 0], 0.60),
                "corr_p33": np.quantile(BPT[CORRECT == 1], 0.33),
                "corr_p66": np.quantile(BPT[CORRECT == 1], 0.66),
            },
        ),
        ("exact-match", {}),
    ],
)
def test_quantiles_of_table_4(schema, expected):
    assert dict(Thresholds.observed(SIGNALS, get_schema(schema))) == expected


def test_attempts_not_made_and_missing_values_do_not_count():
    observed = np.ones(SHAPE, bool)
    observed[0] = False
    bpt = BPT.copy()
    bpt[1] = np.nan
    partial = Signals(
        is_correct=CORRECT,
        has_box=CORRECT,
        repeated_pattern=np.zeros(SHAPE),
        completion_bpt=bpt,
        observed=observed,
    )
    found = Thresholds.observed(partial, get_schema("format-confidence"))
    assert found["tau_high"] == np.quantile(BPT[2], 0.40)
    assert found.source("tau_high") == "0.4 quantile of completion_bpt, 80 attempts"


def test_frozen_thresholds_survive_storage_exactly_and_do_not_drift():
    schema = get_schema("conf-calibrated")
    first = Signals(is_correct=CORRECT[0], repeated_pattern=np.zeros(SHAPE[1:]), completion_bpt=BPT[0])
    frozen = Thresholds.observed(first, schema)
    stored = Thresholds.from_dict(json.loads(json.dumps(frozen.to_dict())))
    assert stored == frozen
    assert hash(stored) == hash(frozen)
    assert stored.to_dict() == frozen.to_dict()
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    # Judged within a larger set, an old attempt keeps its category under frozen thresholds only.
    before = schema.assign(first, frozen)
    assert np.array_equal(schema.assign(SIGNALS, stored)[0], before)
    assert not np.array_equal(schema.assign(SIGNALS, Thresholds.observed(SIGNALS, schema))[0], before)


def test_a_quantile_among_nobody_is_left_out_only_where_asked():
    all_right = Signals(
        is_correct=np.ones(4), repeated_pattern=np.zeros(4), completion_bpt=[0.1, 0.2, 0.3, 0.4]
    )
    schema = get_schema("conf-wrong-penalty")
    with pytest.raises(
        ValueError, match=r"needs a value of tau_low_wrong .*0.6 quantile of completion_bpt among wrong"
    ):
        Thresholds.observed(all_right, schema)
    assert dict(Thresholds.observed(all_right, schema, partial=True)) == {}
    assert Thresholds.observed(all_right, schema, {"tau_low_wrong": 1.0}) == {"tau_low_wrong": 1.0}


def test_rules_among_may_use_fixed_thresholds():
    schema = Schema.from_dict(
        {
            "name": "mine",
            "thresholds": {
                "cut": 0.5,
                "long": {"signal": "x", "quantile": 0.5, "among": {"signal": "y", "above": "cut"}},
            },
            "categories": [
                {"name": "long", "when": {"signal": "x", "above": "long"}},
                {"name": "short", "when": "otherwise"},
            ],
        }
    )
    signals = Signals(x=[1, 2, 3, 40], y=[0, 1, 1, 1])
    assert Thresholds.observed(signals, schema) == {"cut": 0.5, "long": 3.0}
    assert Thresholds.observed(signals, schema, {"cut": -1.0}) == {"cut": -1.0, "long": 2.5}
    assert schema.signals == {"x", "y"}
