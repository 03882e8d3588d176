"""The kernels that `scorio.rank` and `scorio.study` build on: many matrices at once, exact ties."""

import itertools
from typing import Any

import numpy as np
import pytest

from scorio.eval._kernels import _bank_metrics, _categories, _posteriors
from scorio.eval._kernels._aggregate import Counted

K = 5
BINARY: dict[str, tuple[Any, ...]] = {
    "pass_at_k": (K,),
    "pass_hat_k": (K,),
    "auc_at_k": (K,),
    "maj_at_k": (K,),
    "g_pass_at_k_tau": (K, 0.7),
    "mg_pass_at_k": (K,),
    "threshold_spectrum_at_k": (K, np.array([0.1, 0.2, 0.3, 0.2, 0.1])),
    "geom_at_k": (K, 0.3, 0.9),
    "geom_ds_at_k": (K, 0.3, 0.9),
    "geo_spectrum_at_k": (K, 0.4),
}
BINARY |= {f"{name}_posterior": arguments for name, arguments in BINARY.items()}
W = np.array([0.3, -1.0, 0.3, 2.5])


def kernel_of(name: str) -> Any:
    return getattr(_posteriors if name.endswith("_posterior") else _bank_metrics, name)


def scores(result: Any) -> list[np.ndarray]:
    return list(result) if isinstance(result, tuple) else [result]


@pytest.mark.parametrize("name", BINARY)
def test_many_matrices_are_each_of_them(name):
    for questions, ragged in itertools.product((1, 3, 60), (False, True)):
        compare_with_each_alone(name, questions, ragged)


def compare_with_each_alone(name: str, questions: int, ragged: bool) -> None:
    rng = np.random.default_rng(5)
    n: Any = rng.integers(K, 20, (4, 2, questions)) if ragged else 20
    correct = rng.binomial(n, 0.6, (4, 2, questions))
    kernel, arguments = kernel_of(name), BINARY[name]
    together = scores(kernel(Counted(correct, n), *arguments))
    assert all(part.shape == (4, 2) for part in together)
    for index in np.ndindex(4, 2):
        alone = scores(kernel(Counted(correct[index], n[index] if ragged else n), *arguments))
        for part, single in zip(together, alone, strict=True):
            if ragged and name.endswith("_posterior"):  # nodes follow the most trials of the batch
                assert part[index] == pytest.approx(float(single), abs=1e-14)
            else:
                assert part[index] == single


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("ragged", [False, True])
def test_order_does_not_change_a_digit(name, ragged):
    rng = np.random.default_rng(6)
    n: Any = rng.integers(K, 20, 200) if ragged else 20
    correct = rng.binomial(n, rng.random(200))
    order = rng.permutation(200)
    kernel, arguments = kernel_of(name), BINARY[name]
    before = scores(kernel(Counted(correct, n), *arguments))
    after = scores(kernel(Counted(correct[order], n[order] if ragged else n), *arguments))
    assert before == after


@pytest.mark.parametrize("name", ["bayes", "avg", "max_at_k", "max_at_k_posterior"])
@pytest.mark.parametrize("ragged", [False, True])
def test_categorical_kernels_take_many_matrices_in_any_order(name, ragged):
    rng = np.random.default_rng(8)
    R = rng.integers(0, 4, (3, 2, 40, 12))
    if ragged:
        R[..., 7:] = np.where(rng.random((3, 2, 40, 5)) < 0.5, -1, R[..., 7:])
    counts = _categories.category_counts(R, 4)
    kernel = getattr(_categories, name)
    arguments = (W,) if name in ("bayes", "avg") else (4, W)
    together = scores(kernel(counts, *arguments))
    for index in np.ndindex(3, 2):
        shuffled = counts[index][rng.permutation(40)]
        for part, single in zip(together, scores(kernel(shuffled, *arguments)), strict=True):
            assert part.shape == (3, 2)
            assert part[index] == single


def test_equal_category_sums_tie_exactly_whatever_the_questions():
    one = np.array([[3, 1, 1, 0], [0, 2, 0, 3]])
    other = np.array([[1, 2, 0, 2], [2, 1, 1, 1]])
    for kernel in (_categories.bayes, _categories.avg):
        assert kernel(one, W)[0] == kernel(other, W)[0]


@pytest.mark.parametrize("name", ["bayes", "avg"])
@pytest.mark.parametrize("size", [2, 4])
def test_many_questions_are_weighed_by_how_often_their_counts_come_up(name, size, monkeypatch):
    counts = _categories.category_counts(np.random.default_rng(3).integers(0, size, (3, 5000, 4)), size)
    kernel, w = getattr(_categories, name), np.array([-1.0, 2.5, 0.0, 1.0])[:size]
    fast = kernel(counts, w)
    assert [part[1] for part in fast] == [float(part) for part in kernel(counts[1], w)]
    monkeypatch.setattr(_categories, "_MANY", 1 << 30)
    np.testing.assert_allclose(fast, kernel(counts, w), rtol=1e-12)


@pytest.mark.parametrize("shape", [(2, 300, 4), (2, 300, 400), (3, 5, 400), (1, 1, 1)])
@pytest.mark.parametrize("size", [1, 3, 4, 6])
def test_trials_are_counted_whatever_the_shape(shape, size):
    R = np.random.default_rng(4).integers(-1, size, shape).astype(np.int16)
    R[0, 0] = size - 1  # as many of one category as there can be
    expected = np.stack([np.count_nonzero(np.equal(R, kind), axis=-1) for kind in range(size)], axis=-1)
    assert np.array_equal(_categories.category_counts(R, size), expected)
