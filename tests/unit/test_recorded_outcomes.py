"""How outcomes are read by their form and on their scale, and the tests of one look that follow."""

import dataclasses

import numpy as np
import pytest
import scipy.stats

from scorio import sequential
from scorio.sequential import board, compare, forecast, score
from scorio.sequential._recorded import read_each, read_models

RNG = np.random.default_rng(11)
SMALL = RNG.random((2, 60, 4)) * 1e-4 + np.array([3e-4, 1e-4])[:, None, None]
STREAMS = RNG.random((2, 300)) < np.array([0.85, 0.6])[:, None]


# ---------------------------------------------------------------------- the scale


def test_scores_are_read_as_given():
    means = SMALL.mean(axis=2)
    paired = sequential.paired_difference(*SMALL)
    assert paired.p_value == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)
    assert paired.p_value < 1e-20
    assert sequential.permutation_test(*SMALL).p_value == pytest.approx(1e-4)
    found = compare(*SMALL)
    assert found.difference == pytest.approx(means[0].mean() - means[1].mean(), rel=1e-6)
    assert score(SMALL[0]).score == pytest.approx(means[0].mean(), rel=1e-6)
    assert board(SMALL).scores == pytest.approx(means.mean(axis=1), rel=1e-6)


def of_two(name):
    """Return a function of two models' outcomes."""
    return lambda R, **options: getattr(sequential, name)(*R, **options)


def of_one(name):
    """Return a function of the first model's outcomes."""
    return lambda R, **options: getattr(sequential, name)(R[0], **options)


PAIRED = {name: of_two(name) for name in ("compare", "paired_difference", "permutation_test", "forecast")}
APART = {
    "bootstrap of two": of_two("bootstrap"),
    "unpaired_difference": of_two("unpaired_difference"),
    **PAIRED,
}
ALONE = {name: of_one(name) for name in ("score", "mean_score", "bootstrap")}
DOORS = {"board": board, **ALONE, **APART}
SCORES = {"score", "scores", "against", "low", "high", "estimate"}
SCORES |= {"course_score", "course_low", "course_high"}
"""Figures that are scores in functions of single models; in those of two they are differences."""
DIFFERENCES = {"difference", "course_difference", "standard_error", "equivalence"}
CROSSED = {
    "confidence": DOORS.keys() - {"permutation_test"},
    "missing": DOORS.keys(),
    "equivalence": {"board", "compare", "forecast"},
    "against": {"score"},
    "target": {"board", "compare", "score"},
    "clusters": {"mean_score", "bootstrap", "paired_difference", "permutation_test"},
}
"""Options, and the functions that know them."""


@pytest.mark.parametrize("option", CROSSED)
@pytest.mark.parametrize("limits", [(0.0, 1e-3), (-3.0, 7.0), (2.0, 5.0)])
def test_any_range_is_the_unit_range_in_other_units(limits, option):
    """Every figure of every function: differences and margins are wider, scores are moved as well."""
    rng = np.random.default_rng(4)
    unit = rng.random((2, 120, 4)) ** np.array([1.0, 3.0])[:, None, None]
    low, width = limits[0], limits[1] - limits[0]
    if option == "missing":
        unit[rng.random(unit.shape) < 0.2] = np.nan
    given = {
        "confidence": 0.8,
        "missing": np.nan,
        "target": "population",
        "clusters": np.arange(120) // 2,
        "equivalence": 0.1,
        "against": 0.2,
    }[option]
    other = {"equivalence": 0.1 * width, "against": low + 0.2 * width}.get(option, given)
    for name in CROSSED[option]:
        plain = figures(DOORS[name](unit, range=(0.0, 1.0), **{option: given}))
        scaled = figures(DOORS[name](low + width * unit, range=limits, **{option: other}))
        for field, value in plain.items():
            expected = value
            if name == "forecast":
                expected = value  # they are trials
            elif field in DIFFERENCES or (field in SCORES and name in APART):
                expected = width * value
            elif field in SCORES:
                expected = low + width * value
            assert scaled[field] == pytest.approx(expected, rel=1e-7, nan_ok=True), (name, field)


def figures(result):
    """Return what a result says in numbers."""
    found = {one.name: getattr(result, one.name) for one in dataclasses.fields(result)}
    return {name: value for name, value in found.items() if isinstance(value, int | float | np.ndarray)}


def test_scores_beyond_their_range_are_counted():
    for outcomes, options, count in (
        ([[0.5, 2.0], [0.1, -1.0]], {}, "4 of 8 beyond"),
        ([[0, 3], [1, 2]], {}, "4 of 8 beyond"),
        ([[0.5, 9.0], [0.1, 1.0]], {"range": (0.0, 8.0)}, "2 of 8 beyond"),
    ):
        for call in (sequential.paired_difference, sequential.permutation_test, compare):
            with pytest.raises(ValueError, match=count):
                call(outcomes, outcomes, **options)


@pytest.mark.parametrize("limits", [(1.0, 1.0), (1.0, 0.0), (0.0, np.inf), 1.0])
def test_a_range_is_two_numbers(limits):
    with pytest.raises(ValueError, match="range must"):
        score(SMALL[0], range=limits)


def test_nan_is_missing_where_missing_says_so_and_else_counted():
    lost = np.array(SMALL)
    lost[0, :2, 0] = lost[1, 5, 3] = np.nan
    for call in (compare, sequential.paired_difference, sequential.permutation_test, forecast):
        with pytest.raises(ValueError, match="2 of 240 in A, 1 of 240 in B"):
            call(*lost)
        call(*lost, missing=np.nan)
    with pytest.raises(ValueError, match=r"2 of 240 in R\[0\], 1 of 240 in R\[1\]"):
        board(lost)
    with pytest.raises(ValueError, match="2 of 240 in A"):
        score(lost[0], missing=-1)
    means = np.nanmean(lost, axis=2)
    found = sequential.paired_difference(*lost, missing=np.nan)
    assert found.p_value == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)
    assert sequential.paired_difference(*lost, missing=np.isnan(lost[0]) | np.isnan(lost[1]))


def test_ends_of_the_range_alone_are_right_and_wrong_unless_a_range_is_given():
    whole = STREAMS.astype(float)
    assert not read_each({"A": whole[0]}).scale.numbers
    assert read_each({"A": whole[0]}, limits=(0.0, 1.0)).scale.numbers
    assert np.array_equal(compare(*whole).course_log_e, compare(*STREAMS).course_log_e)


# ---------------------------------------------------------------------- the form


def test_streams_are_one_analysis_however_they_come():
    pair = compare(*STREAMS)
    by_name = compare({"new": STREAMS[0], "old": STREAMS[1]})
    both = board({"new": STREAMS[0], "old": list(STREAMS[1])}, family="pair")
    assert pair.course_log_e.tolist() == by_name.course_log_e.tolist()
    assert both.verdicts == {"new > old": pair.trials}
    assert pair.reading == by_name.reading == both.reading
    assert "300 trials in their order" in pair.reading
    assert pair.reading in str(pair)
    assert both.reading in str(both)
    uneven = compare({"new": STREAMS[0], "old": STREAMS[1, :250]})
    assert uneven.course_log_e.tolist() == pair.course_log_e[:250].tolist()
    assert board({"new": STREAMS[0], "old": STREAMS[1, :250]}).trials == (300, 250)


@pytest.mark.parametrize("call", [compare, board])
def test_two_dimensions_are_one_model(call):
    with pytest.raises(ValueError, match="2 questions x 300 trials of one model"):
        call(STREAMS)
    with pytest.raises(ValueError, match="300 trials of one model"):
        call(STREAMS[0])


def test_a_frame_is_a_benchmark_with_a_model_a_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"new": STREAMS[0], "old": STREAMS[1]}, index=[f"q{n}" for n in range(300)])
    found = compare(frame)
    matrices = compare(STREAMS[0][:, None], STREAMS[1][:, None])
    assert (found.names, found.reading) == (("new", "old"), "300 questions x 1 trial")
    assert found.course_log_e.tolist() == matrices.course_log_e.tolist()
    assert board(frame, family="pair").verdicts == {"new > old": found.trials}
    with pytest.raises(ValueError, match="A is a frame"):
        compare(frame, frame)
    lost = frame.astype(float)
    lost.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="1 of 300"):
        board(lost)
    assert board(lost, missing=np.nan).low[1] < board(frame).low[1]
    assert (
        board(lost, missing=lost.isna().to_numpy()).low.tolist() == board(lost, missing=np.nan).low.tolist()
    )


def test_rows_and_columns_say_what_they_mean():
    row, column = STREAMS[:1], STREAMS[1][:, None]
    with pytest.raises(ValueError, match=r"1 question x 300 trials.*300 questions x 1 trial"):
        compare(row, column)
    with pytest.raises(ValueError, match="one form; A is a stream of 300 trials"):
        compare(STREAMS[0], column)
    assert sequential.permutation_test(row, STREAMS[1:]).reading == "1 question x 300 trials"


def test_a_mask_of_all_models_is_cut_along_its_first_axis():
    mask = RNG.random((2, 60, 4)) < 0.1
    given = read_models(dict(zip("ab", SMALL, strict=True)), missing=mask)
    assert np.array_equal(given.trials() < 0, mask)
    assert np.array_equal(read_models(SMALL, missing=mask).trials() < 0, mask)


# ---------------------------------------------------------------------- one look


def test_trials_of_one_task_are_exchanged_between_models_that_are_equal_on_it():
    A, B = RNG.random((2, 1, 1000)) < np.array([0.9, 0.1])[:, None, None]
    found = sequential.permutation_test(A, B)
    assert (found.null, found.units) == ("equal on every question", 1)
    assert found.p_value < 1e-100
    near = RNG.random((2, 1, 40)) < 0.5
    table = [[int(one.sum()), int((~one).sum())] for one in near]
    assert sequential.permutation_test(*near).p_value == pytest.approx(scipy.stats.fisher_exact(table).pvalue)
    assert sequential.permutation_test(*near, null="exchangeable on every question").p_value == 1.0


def test_counted_and_drawn_permutations_within_questions_agree():
    A, B = RNG.random((2, 4, 30)) < np.array([0.7, 0.5])[:, None, None]
    exact = sequential.permutation_test(A, B).p_value
    longer = np.pad(A.astype(int), ((0, 0), (0, 1)), constant_values=-1)
    longer[0, -1] = 1  # unequal numbers of trials: the right answers are drawn
    drawn = sequential.permutation_test(longer, B, missing=-1, draws=20_000).p_value
    assert drawn == pytest.approx(exact, abs=0.03)
    graded = np.where(A, 1.0, 0.0), np.where(B, 1.0, 1e-9)  # three kinds of answers: trials are drawn
    assert sequential.permutation_test(*graded, draws=4_000).p_value == pytest.approx(exact, abs=0.02)


def test_permutations_within_questions_hold_their_level():
    """Of 400 equal pairs on questions of .05, .5 and .9 at most 32 (8 %; chance 1 %) are below 5 %."""
    rng = np.random.default_rng(5)
    chances = np.array([0.05, 0.5, 0.9])[:, None]
    low = [sequential.permutation_test(*(rng.random((2, 3, 25)) < chances)).p_value for _ in range(400)]
    assert sum(p <= 0.05 for p in low) <= 32


def test_a_mean_score_has_students_interval_and_clusters():
    A = RNG.random((60, 3)) < 0.7
    means, found = A.mean(axis=1), sequential.mean_score(A)
    assert found.standard_error == pytest.approx(scipy.stats.sem(means))
    student = scipy.stats.t(59, means.mean(), scipy.stats.sem(means)).interval(0.95)
    assert (found.low, found.high, found.p_value) == (*map(pytest.approx, student), None)
    copies = sequential.mean_score(np.repeat(A, 4, axis=0), clusters=np.arange(240) // 4)
    assert copies.standard_error == pytest.approx(found.standard_error)
    assert copies.units == 60


def test_an_unpaired_difference_is_welchs_test():
    A, B = RNG.random((60, 3)) < 0.7, RNG.random((45, 5)) < 0.5
    found = sequential.unpaired_difference(A, B)
    welch = scipy.stats.ttest_ind(A.mean(axis=1), B.mean(axis=1), equal_var=False)
    assert found.p_value == pytest.approx(welch.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval(0.95)))
    assert found.units == 105
    one = sequential.unpaired_difference(A[:1].repeat(20, axis=1), B[:1].repeat(20, axis=1))
    assert one.units == 160
    assert sequential.unpaired_difference([[1, 1]], [[0, 0]]).p_value is None


def test_a_bootstrap_of_few_questions_is_refused():
    A = RNG.random((49, 3)) < 0.7
    with pytest.raises(ValueError, match="at least 50 questions"):
        sequential.bootstrap(A)
    with pytest.raises(ValueError, match="at least 50 clusters"):
        sequential.bootstrap(np.repeat(A, 2, axis=0), clusters=np.arange(98) // 2)
    assert sequential.bootstrap(np.vstack([A, A])).units == 98
