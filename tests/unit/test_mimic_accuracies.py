"""Per-question probabilities: their mean, their distribution, and how models share difficulties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from adaptive_eval.mimic.examinee import question_accuracies
from adaptive_eval.mimic.mimic_spec import MimicSpec, ModelSpec


def names(count: int, prefix: str = "question") -> list[str]:
    return [f"{prefix} {index}" for index in range(count)]


@example(mean=5e-324, spread=0.5, sizes=[1], seed=0)
@given(
    mean=st.floats(0, 1),
    spread=st.floats(0.01, 500),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    seed=st.integers(-5, 5),
)
def test_each_dataset_has_exactly_the_stated_mean(
    mean: float, spread: float, sizes: list[int], seed: int
) -> None:
    spec = MimicSpec(models=(ModelSpec(name="a", mean=mean, spread=spread),), seed=seed)
    datasets = [names(size, f"set {number}") for number, size in enumerate(sizes)]
    chances = list(question_accuracies(spec, datasets)["a"])
    assert len(chances) == sum(sizes)
    assert all(0 <= chance <= 1 for chance in chances)
    for size in sizes:
        part, chances = chances[:size], chances[size:]
        if part:
            assert math.fsum(part) / size == pytest.approx(mean, abs=1e-11)


def test_difficulties_are_shared_as_far_as_the_correlation_says() -> None:
    models = (
        ModelSpec(name="a", mean=0.5),
        ModelSpec(name="b", mean=0.7),
        ModelSpec(name="c", mean=0.3, like="a"),
    )
    found = {}
    for correlation in (0.0, 0.5, 1.0):
        spec = MimicSpec(models=models, correlation=correlation, seed=2)
        p = question_accuracies(spec, [names(3000)])
        found[correlation] = stats.spearmanr(p["a"], p["b"]).statistic
        assert stats.spearmanr(p["a"], p["c"]).statistic > 0.999
    # Spearman's correlation under a Gaussian copula: 6/π·asin(ρ/2) (Kruskal 1958).
    assert found[0.0] == pytest.approx(0.0, abs=0.06)
    assert found[0.5] == pytest.approx(6 / math.pi * math.asin(0.25), abs=0.06)
    assert found[1.0] > 0.999


def test_the_sample_is_pinned() -> None:
    """The quickstart's run is shown in the README: these numbers must not move between versions."""
    spec = MimicSpec(models=(ModelSpec(name="a", mean=0.5),), seed=7)
    chances = question_accuracies(spec, [names(4)])["a"]
    np.testing.assert_allclose(chances, PINNED, rtol=0, atol=1e-12)


PINNED = [0.3879293171350619, 0.5200265646454123, 0.482672872238096, 0.6093712459814296]
