"""What scorio.eval takes and refuses, unequal trial counts, and its kernels for many matrices at once."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy

from scorio import eval as metrics
from scorio.eval._kernels import _bank_metrics, _categories, _posteriors
from scorio.eval._kernels._aggregate import Counted

# What `scorio.eval` takes and refuses: signatures, forms of input, errors that name argument and value.


R = np.array([[0, 1, 1, 0, 1], [1, 1, 0, 1, 1]])

NAMES = [name for name in metrics.__all__ if name.islower() and "tailpass" not in name]
BEYOND_N = ("geom_at_k_ci", "geom_ds_at_k_ci", "geo_spectrum_at_k_ci", "geo_spectrum_star_at_k_ci")
BEYOND_N += ("threshold_spectrum_at_k_ci", "max_at_k_ci")


def call(name: str, outcomes: Any, k: Any = 2, **keywords: Any) -> Any:
    """Call a metric with the arguments it cannot do without."""
    function = getattr(metrics, name)
    if name.startswith(("bayes", "avg")):
        return function(outcomes, **keywords)
    if "tau" in name:
        keywords.setdefault("tau", 0.5)
    if name.startswith("threshold") and "weights" not in keywords:
        keywords["weights"] = np.full(k, 1.0 / k)
    return function(outcomes, k, **keywords)


def refused(function: Callable[[], Any], *words: str) -> None:
    with pytest.raises(ValueError) as caught:
        function()
    for word in words:
        assert word in str(caught.value)


def test_aliases():
    assert metrics.unanimous_at_k is metrics.pass_hat_k
    assert metrics.unanimous_at_k_ci is metrics.pass_hat_k_ci
    assert metrics.geo_spectrum_at_k(R, 3, lambda_=0.2) == metrics.geo_spectrum_at_k(R, 3, 0.2)
    assert metrics.geo_spectrum_at_k_ci(R, 3, lambda_=0.2) == metrics.geo_spectrum_at_k_ci(R, 3, 0.2)
    with pytest.raises(TypeError, match=r"lam=0\.3 and lambda_=0\.2"):
        metrics.geo_spectrum_at_k(R, 3, 0.3, lambda_=0.2)


FORMS = {
    "list": R.tolist(), "bool": R.astype(bool), "int8": R.astype(np.int8), "uint64": R.astype(np.uint64),
    "float": R.astype(float), "fortran": np.asfortranarray(R), "reversed": R[:, ::-1], "rows": R[::-1],
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_array_of_whole_numbers_will_do(name):
    found = {form: call(name, outcomes) for form, outcomes in FORMS.items()}
    assert found == dict.fromkeys(FORMS, call(name, R))
    assert call(name, R[0]) == call(name, R[:1]), "one dimension is one question"


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_never_modified(name):
    outcomes, mask = R.copy(), np.array([[False] * 5, [False, True, False, False, False]])
    inputs: dict[str, Any] = {"missing": mask, "question_weights": np.array([0.25, 0.75])}
    if name in ("bayes", "bayes_ci", "max_at_k_ci"):
        inputs["R0"] = np.array([[1], [0]])
    if name.startswith(("bayes", "avg", "max")):
        inputs["w"] = np.array([3.0, -1.0])
    if name.startswith(("threshold", "geo_spectrum_at_k")):
        inputs["weights"] = np.array([0.25, 0.5])
    arrays = [outcomes, *(value for value in inputs.values() if isinstance(value, np.ndarray))]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    call(name, outcomes, **inputs)
    table = np.array([[2, 3], [1, 4]])
    table.flags.writeable = False
    call(name, None, counts=table)
    assert all(np.array_equal(array, old) for array, old in zip(arrays, before, strict=True))
    assert np.array_equal(table, [[2, 3], [1, 4]])


@pytest.mark.parametrize("marker", [-1, np.nan, 7.0])
@pytest.mark.parametrize("name", ["bayes", "bayes_ci", "max_at_k_ci"])
def test_a_marker_of_missing_trials_holds_for_earlier_ones_and_a_mask_does_not(name, marker):
    gone = np.array([[False, False, True, False, False], [True, False, False, False, False]])
    earlier = np.array([[1, marker, 1], [marker, 0, marker]])
    w, table = [0.0, 0.5, 1.0], [[0, 2, 0], [1, 0, 0]]
    expected = call(name, R, w=w, missing=gone, prior_counts=table)
    assert call(name, np.where(gone, marker, R), w=w, missing=marker, R0=earlier) == expected
    with pytest.raises(ValueError, match="R0 must"):
        call(name, R, w=w, missing=gone, R0=earlier)
    shared = np.array([[1, 1], [0, 2]])
    told = call(name, R, w=w, missing=gone, prior_counts=[[0, 2, 0], [1, 0, 1]])
    assert call(name, R, w=w, missing=gone, R0=shared) == told


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith(("bayes", "avg"))])
def test_k_is_a_number_of_draws(name):
    assert call(name, R, np.int64(2)) == call(name, R, 2)
    if name in BEYOND_N:
        assert all(map(math.isfinite, call(name, R, 6)))


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("_ci")])
def test_intervals_have_a_level_and_ordered_bounds(name):
    mu, sigma, lo, hi = call(name, R, bounds=None)
    assert call(name, R, bounds=(0.5, 0.55))[2:] == (min(max(lo, 0.5), 0.55), min(max(hi, 0.5), 0.55))
    narrow = call(name, R, confidence=1e-9, bounds=None)
    assert narrow[2:] == pytest.approx((mu, mu), abs=1e-8)
    wide = call(name, R, confidence=math.nextafter(1.0, 0.0), bounds=(-9.0, 9.0))
    assert wide[3] == pytest.approx(mu + 8.3 * sigma, abs=0.1 * sigma)


@pytest.mark.parametrize("name", ["geom_at_k", "geom_ds_at_k"])
def test_a_negative_power_of_pass_at_k_0_is_0_where_the_other_is_positive(name):
    assert call(name, R * 0, pass_power=-2.0, unanimous_power=1.0) == 0.0


@pytest.mark.parametrize("scale", [1e-200, 1e155, 1e300])
@pytest.mark.parametrize("name", ["bayes", "avg", "max_at_k_ci"])
def test_rewards_of_any_size_have_a_finite_deviation(name, scale):
    expected = np.array(call(name, R))
    assert np.array(call(name, R, w=[0.0, scale])) / scale == pytest.approx(expected, rel=1e-14)


class OnAccelerator:
    """Stands for a torch tensor: it becomes an array only once it is detached and moved."""

    def detach(self) -> Any:
        return self

    def cpu(self) -> Any:
        return R


class Array:
    """Stands for a JAX array: NumPy asks it for its values."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return R.astype(dtype) if dtype is not None else R


def test_containers_of_other_packages_are_taken():
    pandas = pytest.importorskip("pandas")
    expected = metrics.pass_at_k(R, 2)
    forms = [
        pandas.DataFrame(R),
        pandas.DataFrame(R).astype("Int64"),
        pandas.DataFrame(R.astype(bool)).astype("boolean"),
        scipy.sparse.csr_array(R),
        OnAccelerator(),
        Array(),
    ]
    assert [metrics.pass_at_k(form, 2) for form in forms] == [expected] * len(forms)
    with_gap = pandas.DataFrame(R).astype("Int64")
    with_gap.iloc[1, 4] = pandas.NA
    unmade = np.where(np.arange(10).reshape(2, 5) == 9, -1, R)
    assert metrics.pass_at_k(with_gap, 2, missing=math.nan) == metrics.pass_at_k(unmade, 2, missing=-1)
    refused(lambda: metrics.pass_at_k(with_gap, 2), "R[1, 4] = nan")
    refused(lambda: metrics.avg(pandas.DataFrame([["a", 1]])), "R must hold integers")


# Unequal trial counts: what they mean, and in which forms they are taken.


# Question 0: 1 of 2 right, question 1: 4 of 5, question 2: 3 of 3.
PADDED = np.array([[1, 0, -1, -1, -1], [1, 1, 0, 1, 1], [-1, 1, -1, 1, 1]])
COUNTS = np.array([[1, 1], [1, 4], [0, 3]])
DRAWING = [name for name in NAMES if not name.endswith("_ci") and not name.startswith(("bayes", "avg"))]
TWO_DRAWS: dict[str, dict[str, Any]] = {name: {"k": 2} for name in DRAWING}
TWO_DRAWS["g_pass_at_k_tau"]["tau"] = 0.7
TWO_DRAWS["threshold_spectrum_at_k"]["weights"] = [0.25, 0.5]
EVERY = {name: TWO_DRAWS.get(name.removesuffix("_ci"), {}) for name in NAMES}


@pytest.mark.parametrize("name", ["bayes", "avg", "pass_at_k"])
def test_a_single_question_may_be_a_vector_with_a_mask_of_its_own_shape(name):
    function, keywords = getattr(metrics, name), EVERY[name]
    row, gone = np.array([1, 0, 1, 1]), np.array([False, True, False, False])
    assert function(row, missing=gone, **keywords) == function(row[None], missing=gone[None], **keywords)
    assert function(row, missing=gone, **keywords) == function(row[~gone], **keywords)


@pytest.mark.parametrize("name", EVERY)
def test_every_form_gives_the_same(name):
    function, keywords = getattr(metrics, name), EVERY[name]
    expected = function(None, counts=COUNTS, **keywords)
    assert function(PADDED, missing=-1, **keywords) == expected
    assert function(PADDED, missing=PADDED < 0, **keywords) == expected
    assert function(np.where(PADDED < 0, 77, PADDED), missing=(PADDED < 0).tolist(), **keywords) == expected
    assert function(np.where(PADDED < 0, np.nan, PADDED), missing=np.nan, **keywords) == expected
    assert function(np.where(PADDED < 0, 9, PADDED), missing=9, **keywords) == expected


@pytest.mark.parametrize("name", EVERY)
def test_question_weights_make_a_macro_average(name):
    function, keywords = getattr(metrics, name), EVERY[name]
    one = function(None, counts=COUNTS, **keywords)
    even = function(None, counts=COUNTS, question_weights=np.full(3, 1 / 3), **keywords)
    assert even == pytest.approx(one, abs=1e-15)
    # A question of weight 0 does not matter; one of weight 1 is all that matters.
    alone = function(None, counts=COUNTS[1:2], **keywords)
    assert function(None, counts=COUNTS, question_weights=[0, 1, 0], **keywords) == pytest.approx(
        alone, abs=1e-15
    )
    if name in ("avg", "bayes"):
        task_a, task_b = (function(None, counts=part) for part in (COUNTS[:1], COUNTS[1:]))
        macro = function(None, counts=COUNTS, question_weights=[1 / 2, 1 / 4, 1 / 4])
        assert macro[0] == pytest.approx((task_a[0] + task_b[0]) / 2, abs=1e-15)
        assert macro[1] == pytest.approx(math.hypot(task_a[1], task_b[1]) / 2, abs=1e-15)


# The kernels that `scorio.rank` and `scorio.study` build on: many matrices at once, exact ties.


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
@pytest.mark.parametrize("questions", [1, 3, 60])
@pytest.mark.parametrize("ragged", [False, True])
def test_many_matrices_are_each_of_them(name, questions, ragged):
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


@pytest.mark.parametrize("counts", [[[2**62, 2**62]], [[2**63, 1]], [[2.0**60, 0]]])
def test_counts_whose_sums_are_not_exact_are_refused(counts):
    for call in (lambda: metrics.avg(None, counts=counts), lambda: metrics.pass_at_k(None, 2, counts=counts)):
        with pytest.raises(ValueError, match="counts must be at most"):
            call()
    assert metrics.avg(None, counts=[[2**51, 2**51]]).mu == 0.5


@pytest.mark.parametrize("unasked", [0, 1])
def test_very_many_questions_of_unequal_trials_are_summed_as_a_few_are(unasked):
    """Counts of equally many trials are summed by how often they come up, and others are not."""
    answers = np.random.default_rng(2).integers(0, 2, (9_000, 4))
    answers[5_000:, 4 - unasked :] = -1
    mean, spread = metrics.bayes(answers, missing=-1)
    parts = [metrics.bayes(part, missing=-1) for part in np.array_split(answers, 9)]
    assert mean == pytest.approx(np.mean([part[0] for part in parts]))
    assert spread == pytest.approx(np.sqrt(sum(part[1] ** 2 for part in parts)) / 9)
