"""A mimic's spec: checks of every field, and JSON there and back."""

from __future__ import annotations

from typing import Any

import pytest

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.mimic_spec import (
    DatasetSpec,
    FaultSpec,
    KnownQuestion,
    LatencySpec,
    MimicSpec,
    ModelSpec,
    TokenSpec,
    spec_from_data,
    spec_from_json,
    spec_to_json,
)

FULL = MimicSpec(
    models=(
        ModelSpec(
            name="a",
            mean=0.7,
            spread=4.0,
            latency=LatencySpec(median=0.1, sigma=0.2, correct_factor=1.5),
            tokens=TokenSpec(prompt_overhead=5, completion_median=40, completion_sigma=0.1),
            faults=(
                FaultSpec(kind="drop", requests=(2, 4), after=0.25),
                FaultSpec(kind="hang", every=9, seconds=1.0),
            ),
            context_length=4096,
            ignores=("seed", "stop"),
            cached=True,
        ),
        ModelSpec(name="b", accuracies=(0.1, 1), like="a"),
    ),
    seed=-3,
    datasets=(DatasetSpec(path="key.jsonl", question="problem", kind="numeric"),),
    questions=(KnownQuestion(id="q", question="Which?", target="B", choices=("one", "two")),),
    correlation=0.5,
    faults=(FaultSpec(kind="status", status=429, retry_after=2.0, probability=0.1),),
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


def test_a_wrong_key_is_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        spec_from_data({**models(), "api_key": ["sk-secret"]})
    assert "sk-secret" not in str(caught.value)
