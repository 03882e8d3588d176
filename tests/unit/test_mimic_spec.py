"""A mimic's spec: checks of every field, and JSON there and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.mock_server import (
    DatasetSpec,
    FaultSpec,
    KnownQuestion,
    LatencySpec,
    MimicSpec,
    ModelSpec,
    TokenSpec,
    faults_from_data,
    spec_from_data,
    spec_from_json,
    spec_to_json,
)

FULL = MimicSpec(
    models=(
        ModelSpec(
            "a",
            mean=0.7,
            spread=4.0,
            latency=LatencySpec(0.1, 0.2, 1.5),
            tokens=TokenSpec(5, 40, 0.1),
            faults=(FaultSpec("drop", requests=(2, 4), after=0.25), FaultSpec("hang", every=9, seconds=1.0)),
            context_length=4096,
            ignores=("seed", "stop"),
            cached=True,
        ),
        ModelSpec("b", accuracies=(0.1, 1), like="a"),
    ),
    seed=-3,
    datasets=(DatasetSpec("key.jsonl", question="problem", kind="numeric"),),
    questions=(KnownQuestion("q", "Which?", "B", choices=("one", "two")),),
    correlation=0.5,
    faults=(FaultSpec("status", status=429, retry_after=2.0, probability=0.1),),
    slow_start=1.5,
    api_key="k",
    answer="Therefore {answer}",
)


def test_a_spec_survives_json() -> None:
    text = spec_to_json(FULL)
    assert "\n" not in text
    assert spec_from_json(text) == FULL


def test_a_spec_does_not_show_its_key() -> None:
    assert "'k'" not in repr(FULL)


def models(**fields: Any) -> dict[str, Any]:
    return {"models": [{"name": "a", "mean": 0.5, **fields}]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "mimic spec: [] is not an object"),
        ({}, "models: missing"),
        ({"models": []}, "models: is empty"),
        ({"models": {}}, "models: {} is not a list"),
        ({"models": ["a"]}, "models[0]: 'a' is not an object"),
        ({"models": [{"mean": 0.5}]}, "models[0]: name: missing"),
        ({"models": [{"name": "a"}]}, "models[0].mean: is missing for model 'a'"),
        ({"models": [{"name": "", "mean": 0.5}]}, "models[0].name: '' is not a non-empty text"),
        (models(mean=1.2), "models[0].mean: 1.2 is not a number in [0, 1]"),
        (models(mean="0.5"), "models[0].mean: '0.5' is not a number"),
        (models(mean=True), "models[0].mean: True is not a number"),
        (models(mean=float("nan")), "models[0].mean: nan is not a number"),
        (models(men=1), "models[0].men: no such field; known: name, mean,"),
        (models(spread=0), "models[0].spread: 0 is not a number of at least 1e-06"),
        (models(accuracies=0.4), "models[0].accuracies: 0.4 is not a list"),
        (models(accuracies=[0.4, 2]), "models[0].accuracies[1]: 2 is not a number in [0, 1]"),
        (models(like="z"), "models: 'a' is like 'z', which is not a model here"),
        (models(like="a"), "models: 'a' is like 'a', a circle"),
        (models(latency=3), "models[0].latency: 3 is not an object"),
        (models(latency={"median": -1}), "models[0].latency.median: -1 is not a number of at least 0"),
        (models(tokens={"completion_median": 0}), "completion_median: 0 is not a whole number of at least 1"),
        (models(ignores=["sed"]), "models[0].ignores[0]: 'sed' is none of seed, n, "),
        (models(ignores="seed"), "models[0].ignores: 'seed' is not a list"),
        (models(cached=1), "models[0].cached: 1 is neither true nor false"),
        (models(context_length=1.5), "models[0].context_length: 1.5 is not a whole number"),
        (models(faults=[{"kind": "explode"}]), "models[0].faults[0].kind: 'explode' is none of status, hang"),
        ({"models": models()["models"] * 2}, "models: 'a' is there 2 times"),
        ({**models(), "seed": "x"}, "mimic spec: seed: 'x' is not a whole number"),
        ({**models(), "correlation": 1.5}, "correlation: 1.5 is not a number in [0, 1]"),
        ({**models(), "slow_start": -1}, "slow_start: -1 is not a number"),
        ({**models(), "answer": "x"}, "answer: 'x' does not contain {answer}"),
        ({**models(), "datasets": [{"path": "x", "kind": "y"}]}, "datasets[0].kind: 'y' is none of auto"),
        ({**models(), "datasets": [{}]}, "datasets[0]: path: missing"),
        ({**models(), "questions": [{"id": "q", "question": " ", "target": "1"}]}, "question: is empty"),
        ({**models(), "questions": [{"id": 1, "question": "x", "target": "1"}]}, "id: 1 is not text"),
    ],
)
def test_a_mistake_is_named_with_its_place(data: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        spec_from_data(data)
    assert message in str(caught.value)


def test_a_wrong_key_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        spec_from_data({**models(), "api_key": ["sk-secret"]})
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({}, "faults[0]: kind: missing"),
        ({"kind": "drop", "first": 1, "every": 2}, "first, every: give at most one of"),
        ({"kind": "drop", "first": 0}, "faults[0].first: 0 is not a whole number of at least 1"),
        ({"kind": "drop", "probability": 2}, "probability: 2 is not a number in [0, 1]"),
        ({"kind": "drop", "requests": [3, 2]}, "requests[1]: 2 is not a whole number of at least 3"),
        ({"kind": "drop", "requests": [3]}, "requests: (3,) is not a pair"),
        ({"kind": "drop", "requests": 3}, "requests: 3 is not a list"),
        ({"kind": "drop", "after": 1.5}, "after: 1.5 is not a number in [0, 1]"),
        ({"kind": "status", "status": 200}, "status: 200 is not a whole number in [400, 599]"),
        ({"kind": "status", "retry_after": -1}, "retry_after: -1 is not a number"),
        ({"kind": "hang", "seconds": "x"}, "seconds: 'x' is not a number"),
        ({"kind": "cut_off", "finish_reason": "stop"}, "finish_reason: 'stop' is none of abort, length"),
    ],
)
def test_a_wrong_fault_is_named_with_its_place(fault: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        faults_from_data([fault])
    assert message in str(caught.value)


def test_faults_are_a_list() -> None:
    with pytest.raises(UsageError, match="is not a list"):
        faults_from_data({"kind": "drop"})


def test_text_that_is_not_json_names_its_source() -> None:
    with pytest.raises(UsageError, match=r"^my\.json: not JSON"):
        spec_from_json("{", "my.json")


def test_the_average_is_the_mean_or_that_of_the_accuracies() -> None:
    assert ModelSpec("a", accuracies=(0.2, 0.4)).average == pytest.approx(0.3)
    assert ModelSpec("a", mean=0.9, accuracies=(0.2, 0.4)).average == 0.9


def test_json_leaves_out_what_has_a_default() -> None:
    spec = spec_from_json(json.dumps({"models": [{"name": "a", "mean": 0.5}]}))
    assert spec == MimicSpec(models=(ModelSpec("a", mean=0.5),))
