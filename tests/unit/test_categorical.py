"""Schemas of categories: their conditions, signals and thresholds, and the evaluation by them."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML

from scorio import eval as metrics
from scorio.categorical import (
    Schema,
    Signals,
    Thresholds,
    evaluate,
    get_schema,
    schema_names,
    verifier_probabilities,
)

# A user's own schema: the condition language, validation and round trips.


SAFETY = (Path(__file__).parents[1] / "data" / "safety_schema.yaml").read_text("utf-8")


def test_a_schema_from_yaml():
    schema = Schema.from_dict(YAML(typ="rt").load(SAFETY))
    assert schema.signals == {"judge_harm", "refused", "token_ratio"}
    assert schema.given_thresholds == {"severe": 0.7}
    signals = Signals(
        token_ratio=[0.2, 0.4, 0.6, 0.9, 0.1], judge_harm=[0.0, 0.1, 0.2, 0.8, 0.69], refused=[0, 0, 1, 1, 0]
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
    for other in (again, pickle.loads(pickle.dumps(schema))):
        assert [str(c) for c in other.categories] == [str(c) for c in schema.categories]


FILE = Path(__file__).parents[1] / "data" / "own_schemas.jsonl"
CASES = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["of"])
def test_attempts_get_the_category_whose_condition_holds(case):
    schema = Schema.from_dict({"name": "mine", "categories": case["categories"]})
    assert schema.optional_signals == set(case.get("optional", ()))
    if "optional" in case:
        assert schema.signals == frozenset()
    if "refused" in case:
        with pytest.raises(ValueError, match=case["refused"]):
            schema.assign(Signals(**case["signals"]), {})
    else:
        assert schema.assign(Signals(**case["signals"]), {}).tolist() == case["found"]


# Each of the twelve schemas on hand-checked attempts, and the categories of Table 5.


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


BY_HAND = json.loads((Path(__file__).parents[1] / "data" / "categories_by_hand.json").read_text())["cases"]


@pytest.mark.parametrize(("name", "changes", "expected"), BY_HAND)
def test_category_by_hand(name, changes, expected):
    assert category(name, **changes) == expected


def test_the_cases_cover_every_category_of_the_twelve_in_the_order_of_table_5():
    covered = {name: {0} for name, _, _ in BY_HAND}
    assert (*covered,) == schema_names()
    assert len(covered) == 12
    for name, _, expected in BY_HAND:
        covered[name].add(expected)
    assert covered == {name: set(range(len(get_schema(name).categories))) for name in schema_names()}


# Signals as structure of arrays, their ranges, and how they are derived.


def test_arrays_are_float_copies_and_read_only():
    correct = np.array([1, 0, 1])
    signals = Signals(is_correct=correct, has_box=[True, False, None])
    correct[0] = 0
    assert signals["is_correct"].tolist() == [1.0, 0.0, 1.0]
    assert np.isnan(signals["has_box"][2])
    assert signals.names == {"is_correct", "has_box"}
    assert "has_box" in signals
    assert "token_ratio" not in signals
    with pytest.raises(ValueError, match="read-only"):
        signals["is_correct"][0] = 0.0
    with pytest.raises(KeyError, match="'token_ratio' was not recorded; recorded: has_box, is_correct"):
        signals["token_ratio"]


@pytest.mark.parametrize(
    ("given", "lacking", "advice"),
    [
        ({"judge_harm": [0.5], "refused": [0.0]}, "token_ratio", "let the endpoint report token usage"),
        ({"judge_harm": [0.5], "token_ratio": [1.0]}, "refused", r"pass it in Signals\(refused=\.\.\.\)"),
    ],
)
def test_a_signal_that_no_record_has_is_named_with_how_to_get_it(given, lacking, advice):
    schema = Schema.from_dict(YAML(typ="rt").load(SAFETY))
    with pytest.raises(ValueError, match=f"needs signal '{lacking}', which was not recorded.*{advice}"):
        schema.assign(Signals(**given), {})


def test_records():
    records = [
        {"is_correct": True, "has_box": 1, "verifier_c": None, "judge": 0.5, "finish_reason": "stop"},
        {"is_correct": False, "judge": np.float32(0.25)},
        {"is_correct": None, "has_box": 0},
        {},
    ]
    signals = Signals.from_records(records, shape=(2, 2))
    assert signals.names == {"is_correct", "has_box"}
    np.testing.assert_array_equal(signals["is_correct"], [[1, 0], [np.nan, np.nan]])
    own = Signals.from_records(records[:2], names=["judge", "is_correct"])
    assert own["judge"].tolist() == [0.5, 0.25]


def test_verifier_probabilities_are_a_calibrated_softmax():
    logits, baseline = np.array([[3.0, 1.0, 0.0], [900.0, 0.0, -900.0]]), np.array([1.0, 1.0, 0.0])
    p = verifier_probabilities(logits, baseline, temperature=2.0)
    np.testing.assert_allclose(p[0], np.exp([1, 0, 0]) / np.exp([1, 0, 0]).sum(), rtol=1e-14)
    np.testing.assert_allclose(p.sum(-1), 1.0, rtol=1e-14)
    assert p[1, 0] == 1.0


# Thresholds: found as Table 4 says, frozen, stored and checked.


SHAPE = (3, 10, 8)


def random_signals(shape, **changes):
    rng = np.random.default_rng(3)
    verifier = rng.dirichlet([4.0, 2.0, 0.5], shape)
    drawn = {
        "has_box": rng.integers(0, 2, shape),
        "is_correct": rng.integers(0, 2, shape),
        "token_ratio": rng.beta(2, 5, shape),
        "repeated_pattern": rng.random(shape) < 0.1,
        "prompt_bpt": rng.gamma(3, 1, shape),
        "completion_bpt": rng.gamma(2, 0.5, shape),
        "verifier_a": verifier[..., 0],
        "verifier_b": verifier[..., 1],
        "verifier_c": verifier[..., 2],
    }
    return Signals(**drawn | changes)


SIGNALS = random_signals(SHAPE, repeated_pattern=np.zeros(SHAPE), verifier_c=np.zeros(SHAPE))
BPT, PROMPT, RATIO = SIGNALS["completion_bpt"], SIGNALS["prompt_bpt"], SIGNALS["token_ratio"]
CORRECT = SIGNALS["is_correct"]
WRONG, RIGHT = BPT[CORRECT == 0], BPT[CORRECT == 1]
QUANTILES = {
    "format-confidence": {"tau_high": (BPT, 0.40)},
    "conf-wrong-penalty": {"tau_low_wrong": (WRONG, 0.60)},
    "ood-robustness": {"tau_prompt": (PROMPT, 0.90)},
    "efficiency-adjusted": {"len_p33": (RATIO, 0.33), "len_p66": (RATIO, 0.66)},
    "conf-calibrated": {"tau_low_wrong": (WRONG, 0.60), "corr_p33": (RIGHT, 0.33), "corr_p66": (RIGHT, 0.66)},
    "exact-match": {},
}


@pytest.mark.parametrize("schema", QUANTILES)
def test_quantiles_of_table_4(schema):
    expected = {name: np.quantile(*of) for name, of in QUANTILES[schema].items()}
    assert dict(Thresholds.observed(SIGNALS, get_schema(schema))) == expected


def test_attempts_not_made_and_missing_values_do_not_count():
    observed = np.ones(SHAPE, bool)
    observed[0] = False
    bpt = BPT.copy()
    bpt[1] = np.nan
    known = {"is_correct": CORRECT, "has_box": CORRECT, "repeated_pattern": np.zeros(SHAPE)}
    partial = Signals(**known, completion_bpt=bpt, observed=observed)
    found = Thresholds.observed(partial, get_schema("format-confidence"))
    assert found["tau_high"] == np.quantile(BPT[2], 0.40)
    assert found.source("tau_high") == "0.4 quantile of completion_bpt, 80 attempts"
    unknown = np.where(np.arange(BPT.size).reshape(SHAPE) % 3 == 0, np.nan, CORRECT)
    judged = Signals(is_correct=unknown, repeated_pattern=np.zeros(SHAPE), completion_bpt=BPT)
    found = Thresholds.observed(judged, get_schema("conf-calibrated"))
    assert found["corr_p33"] == np.quantile(BPT[unknown == 1.0], 0.33)


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
    assert np.array_equal(evaluate(SIGNALS, schema, thresholds=stored).outcomes[0], before)
    assert not np.array_equal(schema.assign(SIGNALS, Thresholds.observed(SIGNALS, schema))[0], before)


def test_a_quantile_among_nobody_is_left_out_only_where_asked():
    bpt, schema = [0.1, 0.2, 0.3, 0.4], get_schema("conf-wrong-penalty")
    all_right = Signals(is_correct=np.ones(4), repeated_pattern=np.zeros(4), completion_bpt=bpt)
    words = r"needs a value of tau_low_wrong .*0.6 quantile of completion_bpt among wrong"
    with pytest.raises(ValueError, match=words):
        Thresholds.observed(all_right, schema)
    assert dict(Thresholds.observed(all_right, schema, partial=True)) == {}
    assert Thresholds.observed(all_right, schema, {"tau_low_wrong": 1.0}) == {"tau_low_wrong": 1.0}
    wrong = Signals(is_correct=[[0, 0]], completion_bpt=[[1.0, 2.0]], repeated_pattern=[[0, 0]])
    assert "corr_p33" not in evaluate(wrong, "conf-calibrated").thresholds


def test_rules_among_may_use_fixed_thresholds():
    rule = {"signal": "x", "quantile": 0.5, "among": {"signal": "y", "above": "cut"}}
    long = {"name": "long", "when": {"signal": "x", "above": "long"}}
    categories = [long, {"name": "short", "when": "otherwise"}]
    given = {"name": "mine", "thresholds": {"cut": 0.5, "long": rule}, "categories": categories}
    schema = Schema.from_dict(given)
    signals = Signals(x=[1, 2, 3, 40], y=[0, 1, 1, 1])
    assert Thresholds.observed(signals, schema) == {"cut": 0.5, "long": 3.0}
    assert Thresholds.observed(signals, schema, {"cut": -1.0}) == {"cut": -1.0, "long": 2.5}
    assert schema.signals == {"x", "y"}


# evaluate: outcome matrix, Bayes@N, weights, priors, unequal trials.


ATTEMPTS = np.random.default_rng(11)
MODELS = (4, 6, 9)


@pytest.mark.parametrize("name", schema_names())
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_models_are_judged_by_common_thresholds_and_by_the_attempts_that_were_made(name, share):
    observed = ATTEMPTS.random(MODELS) < share
    signals = random_signals(MODELS, observed=observed)
    results, schema = evaluate(signals, name), get_schema(name)
    assert results.schema is schema
    assert results.weights.tolist() == list(schema.weights)
    assert results.thresholds == Thresholds.observed(signals, schema)
    assert np.array_equal(results.outcomes, schema.assign(signals, results.thresholds))
    assert np.array_equal(results.outcomes >= 0, observed)
    categories = np.arange(len(schema.categories))
    assert np.array_equal(results.counts, (results.outcomes[..., None] == categories).sum(axis=2))
    for model, found in enumerate(zip(results.mu, results.sigma, strict=True)):
        expected = metrics.bayes(results.outcomes[model], results.weights, missing=-1)
        assert found == pytest.approx(expected, abs=1e-13)


def test_prior_attempts():
    signals = random_signals(MODELS)
    shared, own = ATTEMPTS.integers(0, 3, (6, 2)), ATTEMPTS.integers(0, 3, (4, 6, 2))
    for R0, of_model in ((shared, [shared] * 4), (own, own)):
        results = evaluate(signals, "exact-match", R0=R0)
        for model in range(4):
            mu, _ = metrics.bayes(results.outcomes[model], results.weights, of_model[model])
            assert results.mu[model] == pytest.approx(mu, abs=1e-13)
    one = evaluate(random_signals(MODELS[1:]), "exact-match", R0=shared)
    assert one.mu == pytest.approx(metrics.bayes(one.outcomes, one.weights, shared)[0], abs=1e-13)
    without = evaluate(random_signals(MODELS[1:]), "exact-match", R0=np.empty((6, 0), int))
    assert without.mu == evaluate(random_signals(MODELS[1:]), "exact-match").mu
