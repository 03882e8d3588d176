"""Values of `scorio.eval`: the reference's worked examples and golden numbers of 80-digit arithmetic."""

import importlib.util
import json
import math
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from scorio import eval as metrics

TESTS = Path(__file__).resolve().parent.parent
EXAMPLES = json.loads((TESTS / "data" / "eval_examples.json").read_text())
GOLDEN = json.loads((TESTS / "data" / "eval_reference.json").read_text())
GENERATOR = TESTS / "generation" / "eval_reference.py"


def by_function(cases: list[dict[str, Any]]) -> list[Any]:
    ordered = sorted(cases, key=lambda case: case["function"])
    return [
        pytest.param(list(group), id=name) for name, group in groupby(ordered, lambda case: case["function"])
    ]


@pytest.mark.parametrize("examples", by_function(EXAMPLES))
def test_the_reference_documentation_s_examples_hold(examples: list[dict[str, Any]]) -> None:
    for example in examples:
        result = getattr(metrics, example["function"])(*example["args"], **example["kwargs"])
        expected, decimals = example["expected"], example["decimals"]
        if isinstance(expected, list):
            assert [round(x, d) for x, d in zip(result, decimals, strict=True)] == expected
        else:
            assert round(result, decimals) == expected


def arguments_of(case: dict[str, Any]) -> dict[str, Any]:
    """Keywords that the golden case needs beside the outcomes."""
    name, arguments = case["function"], {}
    for key in ("k", "w", "alpha0", "beta0"):
        if key in case:
            arguments[key] = case[key]
    if name.endswith("_ci"):
        arguments["confidence"] = 0.9
    if "tau" in name:
        arguments["tau"] = 0.55
    if name.startswith("geom"):
        arguments |= {"pass_power": 0.3, "unanimous_power": 0.7}
    if name.startswith("geo_spectrum_at_k"):
        arguments["lam"] = 0.25
    if name.startswith(("geo_spectrum_at_k", "threshold")):
        k = case["k"]
        arguments["weights"] = [1.0] if k == 1 else [0.5, *[0.0] * (k - 2), 0.5]
    if case.get("prior") is not None:
        arguments["prior_counts"] = case["prior"]
    return arguments


def table_of(case: dict[str, Any]) -> np.ndarray:
    """Counts of the golden case, shape (M, C + 1)."""
    if "counts" in case:
        return np.array(case["counts"])
    return np.array([[n - c, c] for c, n in zip(case["correct"], case["n"], strict=True)])


def padded(table: np.ndarray, filler: int) -> np.ndarray:
    """A matrix of outcomes with the counts of `table`, in mixed order, short rows padded with `filler`."""
    rng = np.random.default_rng(7)
    width = table.sum(axis=1).max()
    rows = [
        rng.permutation(np.r_[np.repeat(np.arange(row.size), row), np.full(width - row.sum(), filler)])
        for row in table
    ]
    return np.array(rows, dtype=int)


def assert_close(result: Any, expected: list[float], what: str) -> None:
    values = result if isinstance(result, tuple) else (result,)
    assert len(values) == len(expected)
    for value, target in zip(values, expected, strict=True):
        assert type(value) is float
        assert math.isclose(value, target, rel_tol=1e-10, abs_tol=1e-10), f"{what}: {values} != {expected}"


@pytest.mark.parametrize("cases", by_function(GOLDEN))
def test_values_agree_with_high_precision_to_ten_digits(cases: list[dict[str, Any]]) -> None:
    for case in cases:
        table, function, arguments = table_of(case), getattr(metrics, case["function"]), arguments_of(case)
        what = json.dumps({key: case[key] for key in case if key != "expected"})
        assert_close(function(None, counts=table, **arguments), case["expected"], what)
        if np.ptp(table.sum(axis=1)) == 0:
            assert_close(function(padded(table, 0), **arguments), case["expected"], what)
        else:
            assert_close(function(padded(table, -1), missing=-1, **arguments), case["expected"], what)


def test_golden_cases_reach_a_thousand_trials_and_every_function() -> None:
    assert {case["function"] for case in GOLDEN} | {
        "unanimous_at_k",
        "unanimous_at_k_ci",
        "g_pass_at_k",
        "g_pass_at_k_ci",
    } == {name for name in metrics.__all__ if name.islower() and "tailpass" not in name}
    assert max(case["k"] for case in GOLDEN if "k" in case and max(case.get("n", [0])) == 1000) == 1000


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("eval_reference_generator", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_golden_numbers_are_the_generator_s(generator: ModuleType) -> None:
    requests = list(generator.requests())
    assert [{key: case[key] for key in case if key != "expected"} for case in GOLDEN] == requests
    small = [case for case in GOLDEN if sum(map(sum, case.get("counts", [case.get("n", [])]))) < 40]
    for case in small[::11]:
        assert generator.evaluate(case) == case["expected"]
