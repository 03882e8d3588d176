"""The public functions of scorio.sequential: comparisons, the monitor, planning and fixed-length tests."""

import json
from dataclasses import replace

import numpy as np
import pytest
import scipy
from session_scripts import drive, make_spec

from adaptive_eval.core.session import Session
from scorio import eval as metrics
from scorio import sequential
from scorio._named import close_plot
from scorio.sequential import Monitor, ScoreMonitor, board, compare, forecast, score

RNG = np.random.default_rng(7)
CHANCES = np.array([0.85, 0.6, 0.55, 0.2])
R = (RNG.random((4, 80, 6)) < CHANCES[:, None, None]).astype(int)
NAMES = ("a", "b", "c", "d")


def test_compare_finds_the_better_model_whichever_comes_first():
    there, back = compare(R[0], R[3]), compare(R[3], R[0])
    assert (there.verdict, back.verdict) == ("first", "second")
    assert there.trials == back.trials == int(np.argmax(there.course_log_e >= np.log(20))) + 1
    assert there.difference == -back.difference == pytest.approx((R[0] - R[3]).mean())
    assert (there.low, there.high) == (-back.high, -back.low)
    assert there.low <= CHANCES[0] - CHANCES[3] <= there.high
    assert there.course_difference.size == 480
    assert there.p_value == pytest.approx(1.0 / there.e_value)
    assert not np.isfinite(there.course_low[:9]).any()
    assert np.isfinite(there.course_low[9:]).all()


def test_two_equal_models_tie_within_a_margin_and_are_open_without():
    same = (np.arange(80)[:, None] % 2).repeat(12, axis=1)
    assert (compare(same, same).verdict, compare(same, same).p_value) == ("open", 1.0)
    tie = compare(same, same, equivalence=0.1)
    assert tie.verdict == "tie"
    assert tie.trials < 480


@pytest.mark.parametrize("equivalence", [None, 0.1, 0.3])
def test_scores_of_another_unit_are_compared_alike(equivalence):
    """A margin is in the unit of the scores: ten times it for scores that are ten times as far apart."""
    plain = compare(R[1] * 1.0, R[2] * 1.0, range=(0, 1), equivalence=equivalence)
    wide = compare(
        10.0 * R[1] + 3, 10.0 * R[2] + 3, range=(3, 13), equivalence=equivalence and 10 * equivalence
    )
    assert (wide.verdict, wide.trials) == (plain.verdict, plain.trials)
    assert wide.course_log_e == pytest.approx(plain.course_log_e)
    ends = [wide.difference, wide.low, wide.high]
    assert ends == pytest.approx([10.0 * plain.difference, 10.0 * plain.low, 10.0 * plain.high])


def test_the_order_of_the_questions_is_drawn_given_or_explicit():
    drawn = np.random.default_rng(5).permutation(80)
    by_seed, explicit = compare(R[0], R[1], order=5), compare(R[0], R[1], order=drawn)
    given = compare(R[0][drawn], R[1][drawn], order=None)
    assert by_seed.course_log_e.tolist() == explicit.course_log_e.tolist()
    assert given.course_log_e == pytest.approx(explicit.course_log_e, rel=1e-9)


def test_a_board_keeps_names_and_bounds_ranks():
    result = board(dict(zip(NAMES, R, strict=True)))
    assert result.names == NAMES
    assert result.ranks[0] == (1, 1)
    assert result.ranks[3] == (4, 4)
    assert {*result.ranks[1], *result.ranks[2]} <= {2, 3}
    assert len(result.verdicts) + len(result.open) == 6
    assert list(result.verdicts.values()) == sorted(result.verdicts.values())
    assert np.array_equal(result.p_values, result.p_values.T)
    assert result.scores == pytest.approx(R.mean(axis=(1, 2)))
    assert np.all(result.low < CHANCES)
    assert np.all(result.high > CHANCES)
    per_pair = board(R, family="pair")
    assert (np.diag(per_pair.p_values) == 1.0).all()
    assert np.array_equal(per_pair.p_values, per_pair.p_values.T)
    assert per_pair.p_values[0, 3] <= 0.05
    assert per_pair.names[1] == "model 1"
    assert all(per_pair.verdicts[f"model {n[0]} > model {n[1]}"] <= step for n, step in (
        ((NAMES.index(key[0]), NAMES.index(key[-1])), step) for key, step in result.verdicts.items()
    ))  # fmt: skip


def test_a_monitor_says_what_to_ask_and_counts_what_waits():
    monitor = Monitor(["a", "b"], list("xyzabcdefg"), order=None)
    assert [monitor.next("a") for _ in range(11)] == list("xyzabcdefgx")
    assert (monitor.update("a", "y", 1).trials, monitor.waiting) == ((0, 0), (1, 0))
    state = monitor.update("a", "x", None)
    assert (state.trials, monitor.waiting) == ((2, 0), (0, 0))
    assert state.active == ("a", "b")
    assert not state.done
    assert monitor.next("b") == "x"


@pytest.mark.parametrize("limits", [None, (1.0, 5.0)], ids=["right or wrong", "numbers"])
def test_a_stream_is_followed_as_its_recorded_score_says_beyond_the_room_that_it_has(limits, monkeypatch):
    monkeypatch.setattr("scorio.sequential.monitor.ROOM", 4)
    rng = np.random.default_rng(11)
    stream = (rng.random(100) < 0.8).astype(float) if limits is None else rng.uniform(2.5, 5.0, 100)
    stream[[3, 40]] = np.nan
    options = {"against": 0.5 if limits is None else 3.0, "range": limits, "missing": np.nan}
    monitor, whole = ScoreMonitor(**options), score(stream, **options)
    assert np.isnan(monitor.state.score)
    states = [monitor.update(None if number == 40 else outcome) for number, outcome in enumerate(stream)]
    last = states[-1].to_dict()
    assert (last.pop("reading"), whole.verdict) == (whole.reading, "above")
    assert last == {name: pytest.approx(value) for name, value in whole.to_dict().items() if name in last}
    called = [state.verdict for state in states].index("above") + 1
    assert called == whole.trials == states[called - 1].trials
    assert [state.low for state in states[9:]] == pytest.approx(whole.course_low[9:])


@pytest.mark.parametrize("limits", [None, (-1.0, 1.0)], ids=["right or wrong", "numbers"])
def test_monitors_read_outcomes_in_any_order_as_they_read_recorded_ones(limits):
    rng = np.random.default_rng(12)
    found = R[:3, :30].astype(float) if limits is None else rng.uniform(-1.0, 1.0, (3, 30, 6)) ** 3
    found[0, 4, 2] = np.nan
    options = {"range": limits, "missing": np.nan}
    monitor, own = Monitor(NAMES[:3], 30, **options), ScoreMonitor(30, against=0.3, **options)
    used = np.zeros((3, 30), dtype=int)
    trials = np.repeat(np.argwhere(used == 0), 6, axis=0)
    for model, question in rng.permutation(trials).tolist():
        outcome = found[model, question, used[model, question]]
        monitor.update(NAMES[model], question, outcome)
        used[model, question] += 1
        if model == 0:
            own.update(outcome, question)
    whole, alone = board(found, names=NAMES[:3], **options), score(found[0], against=0.3, **options)
    assert monitor.state.verdicts == whole.verdicts
    for name in ("trials", "scores", "low", "high", "p_values"):
        assert getattr(monitor.state, name) == pytest.approx(getattr(whole, name))
    for name in ("verdict", "trials", "e_value", "score", "low", "high"):
        assert getattr(own.state, name) == pytest.approx(getattr(alone, name))
    assert own.state.reading == "30 questions"


def test_a_score_monitor_says_what_to_ask():
    monitor = ScoreMonitor(list("xyz"), order=None)
    assert [monitor.next() for _ in range(4)] == list("xyzx")
    assert monitor.update(1, "y").course_score.size == 0
    assert monitor.update(0, "x").score == 0.5
    assert [ScoreMonitor().next(), monitor.state.verdict] == [0, None]


def test_a_score_against_a_number():
    high = score(R[0], against=0.5)
    assert high.verdict == "above"
    assert high.low > 0.5
    assert score(R[3], against=0.5).verdict == "below"
    assert score(R[1], against=0.6).verdict == "open"
    assert score(R[1]).verdict is None
    assert score(np.zeros((40, 2), dtype=int)).low == 0.0


def test_streams_are_read_as_far_as_both_go_and_scores_as_they_are():
    rng = np.random.default_rng(8)
    long, short = rng.random(400) < 0.8, rng.random(250) < 0.5
    found = compare(long, short)
    same = compare(long[:250, None], short[:, None], order=None, target="population")
    assert found.verdict == "first"
    assert np.array_equal(found.course_log_e, same.course_log_e)
    graded = np.where(rng.random((2, 300)) < 0.5, 0.25, 1.0)
    by_weights = compare(*((graded == 1.0).astype(int) + 1), weights=[0.0, 0.25, 1.0])
    assert np.array_equal(compare(*graded).course_low, by_weights.course_low)
    lost = np.where(rng.random(graded.shape) < 0.1, np.nan, graded)
    assert compare(*lost, missing=np.nan).low < compare(*graded).low
    with pytest.raises(ValueError, match=r"\d+ of 300 in A, \d+ of 300 in B"):
        compare(*lost)
    single = score(graded[0], against=0.5)
    assert (single.verdict, single.course_score[-1]) == ("above", pytest.approx(graded[0].mean()))
    assert single.p_value == pytest.approx(1.0 / single.e_value)
    assert np.all(single.course_low <= single.course_score)


def test_trials_that_are_missing_at_a_models_end_were_not_made():
    padded = R[:2].copy()
    padded[1, :, 3:] = -1
    found, cut = compare(*padded, missing=-1), compare(R[0, :, :3], R[1, :, :3])
    assert (found.low, found.high, found.trials) == (cut.low, cut.high, cut.trials)
    assert score(padded[1], missing=-1).low == score(R[1, :, :3]).low
    whole = board(padded, missing=-1)
    assert whole.trials == (480, 240)
    long, short = board(R[:2]), board(R[:2, :, :3])
    assert whole.low.tolist() == [long.low[0], short.low[1]]
    assert whole.high.tolist() == [long.high[0], short.high[1]]


def test_scores_between_0_and_1_are_read_everywhere():
    rng = np.random.default_rng(8)
    graded = {"new": rng.beta(8, 2, (60, 3)).round(3), "old": rng.beta(4, 4, (60, 3)).round(3)}
    pair = compare(*graded.values())
    assert compare(graded).course_log_e == pytest.approx(pair.course_log_e)
    assert board(graded).verdicts == {"new > old": pair.trials}
    assert forecast(*graded.values()).trials == 180
    means = [one.mean(axis=1) for one in graded.values()]
    for test in (sequential.paired_difference, sequential.permutation_test, sequential.bootstrap):
        assert test(*graded.values()).estimate == pytest.approx(means[0].mean() - means[1].mean())
    paired = sequential.paired_difference(*graded.values())
    assert paired.p_value == pytest.approx(scipy.stats.ttest_rel(*means).pvalue)


def test_vectors_have_one_trial_of_each_question_in_the_tests_for_one_look():
    a, b = R[1][:, 0], R[2][:, 0]
    for test in (sequential.paired_difference, sequential.permutation_test, sequential.bootstrap):
        found, same = test(a, b), test(a[:, None], b[:, None])
        assert replace(found, reading=same.reading) == same


def test_results_become_dicts_frames_and_text():
    pandas = pytest.importorskip("pandas")
    results = [
        compare(R[0], R[1]),
        board(R),
        score(R[0], against=0.5),
        forecast(R[1], R[2]),
        sequential.paired_difference(R[0], R[1]),
        Monitor(["a", "b"], 10).state,
        ScoreMonitor().state,
    ]
    for result in results:
        assert json.loads(json.dumps(result.to_dict())).keys() == result.to_dict().keys()
        assert isinstance(result.to_frame(), pandas.DataFrame)
        assert str(result)
        assert "\n" not in repr(result)
        assert len(repr(result)) < 300
        assert result._repr_html_().startswith("<pre>")
    assert results[0].to_frame().shape == (480, 5)
    assert results[1].to_frame()["model"].tolist()[0] == "model 0"


def test_results_are_drawn():
    pytest.importorskip("matplotlib").use("agg")
    for result in (score(R[0], against=0.5, name="new"), compare(R[0], R[3]), board(R)):
        axes = result.plot()
        assert axes.get_xlabel()
        close_plot(axes)


def test_paired_difference_is_the_paired_t_test():
    d = R[1].mean(axis=1) - R[2].mean(axis=1)
    result = sequential.paired_difference(R[1], R[2], confidence=0.9)
    assert result.standard_error == pytest.approx(scipy.stats.sem(d))
    assert result.p_value == pytest.approx(scipy.stats.ttest_1samp(d, 0.0).pvalue)
    student = scipy.stats.t(79, d.mean(), scipy.stats.sem(d))
    assert (result.low, result.high) == pytest.approx(student.interval(0.9))
    # Copies of questions say nothing new once they are known to be copies.
    copies = [np.repeat(matrix, 3, axis=0) for matrix in (R[1], R[2])]
    clustered = sequential.paired_difference(*copies, clusters=np.arange(240) // 3)
    assert clustered.standard_error == pytest.approx(scipy.stats.sem(d))
    assert clustered.p_value == pytest.approx(scipy.stats.ttest_1samp(d, 0.0).pvalue)
    assert clustered.units == 80


@pytest.mark.parametrize("question", range(12))
def test_a_lost_first_answer_is_no_answer_that_is_known(question):
    missing = np.zeros((12, 6), dtype=bool)
    missing[question] = True
    of_sets = {"target": "population", "clusters": np.arange(12) // 3}
    found = compare(R[0, :12], R[1, :12], equivalence=0.15, missing=missing, **of_sets)
    assert (found.verdict, found.trials > 1) == ("open", True)


def test_paired_difference_of_a_few_questions():
    rng = np.random.default_rng(4)
    for questions, most in ((3, 0), (5, 20), (8, 35)):
        right = rng.random((2, 500, questions, 1)) < 0.5
        low = [sequential.paired_difference(a, b).p_value < 0.05 for a, b in zip(*right, strict=True)]
        assert sum(low) <= most
    alike = sequential.paired_difference([[1], [1], [1]], [[0], [0], [0]])
    assert (alike.estimate, alike.p_value, alike.low) == (1.0, 0.25, None)
    assert sequential.paired_difference([[1], [0]], [[1], [0]]).p_value == 1.0
    # One cluster of ten questions and two of one are worth 1.4 clusters.
    A, B = rng.random((2, 12, 1)) < 0.5
    uneven = sequential.paired_difference(A, B, clusters=[0] * 10 + [1, 2])
    even = sequential.paired_difference(A, B, clusters=np.repeat([0, 1, 2], 4))
    assert uneven.high - uneven.low > 2 * (even.high - even.low)


def test_a_planned_comparison_takes_the_variance_of_one_difference_over_the_gap():
    """Chances of concentration 8 have a ninth of it between questions, which ends with the first pass."""
    both, wanted = 0.5 * 0.5 + 0.6 * 0.4, (0.1 / scipy.stats.norm.ppf([0.975, 0.8]).sum()) ** 2
    for questions, expected in ((500, both / (wanted + both / 9 / 500)), (100, both * 8 / 9 / wanted)):
        found = sequential.sample_size(0.1, questions=questions, passes=1, replicates=2, correlation=0.0)
        assert found.fixed_trials == pytest.approx(expected, rel=0.03)
    near = sequential.sample_size(0.01, questions=60, equivalence=0.3, replicates=20)
    assert near.power >= 0.9  # a tie is right for models that differ by less than the margin
    apart = sequential.sample_size(0.1, questions=60, equivalence=0.1, confidence=0.5, replicates=60)
    assert apart.wrong > 0.1  # and wrong for models that differ by the margin


def test_permutation_test_counts_all_patterns_or_draws_them():
    a, b = R[0][:9], R[2][:9]
    null = "exchangeable on every question"
    exact = sequential.permutation_test(a, b, draws=1000, null=null).p_value
    d = a.mean(axis=1) - b.mean(axis=1)
    reference = scipy.stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert exact == pytest.approx(reference.pvalue)
    drawn = sequential.permutation_test(R[1], R[2], draws=20_000, seed=3).p_value
    assert drawn == pytest.approx(sequential.paired_difference(R[1], R[2]).p_value, abs=0.03)
    assert sequential.permutation_test(a, a).p_value == 1.0
    assert sequential.permutation_test(R[0], R[3], draws=99).p_value == 0.01


def test_mcnemar_bootstrap_and_posterior_quantiles():
    a, b = R[1][:, 0], R[2][:, 0]
    result = sequential.mcnemar(a, b)
    discordant = int((a != b).sum())
    assert result.units == discordant
    assert result.p_value == pytest.approx(scipy.stats.binomtest(int((a > b).sum()), discordant).pvalue)
    z = sequential.paired_difference(R[1], R[2])
    resampled = sequential.bootstrap(R[1], R[2])
    assert (resampled.low, resampled.high) == pytest.approx((z.low, z.high), abs=0.01)
    alike = sequential.bootstrap(np.ones((70, 1), dtype=int), clusters=[0] * 10 + list(range(60)))
    assert (alike.low, alike.high) == (1.0, 1.0)
    quantiles = sequential.posterior_interval(R[1])
    mu, _, low, high = metrics.bayes_ci(R[1])
    assert (quantiles.estimate, quantiles.low, quantiles.high) == pytest.approx((mu, low, high), abs=0.003)
    one = sequential.posterior_interval([[1, 1, 1, 1, 0]], confidence=0.8)
    assert (one.low, one.high) == pytest.approx(scipy.stats.beta(5, 2).interval(0.8))
    scaled = sequential.posterior_interval([[1, 1, 1, 1, 0]], confidence=0.8, weights=[-1, 3])
    assert (scaled.low, scaled.high) == pytest.approx((4 * one.low - 1, 4 * one.high - 1))


def test_a_verdict_bounds_its_interval_from_its_step_on_and_never_empties_it():
    """The winner is called by V, the interval is of V2. Later the worse one is right for 40 passes."""
    first, second = R[0][:, :1], R[1][:, :1]
    for pair, bound, options in (
        ((first, second), 0.0, {"confidence": 0.8}),
        ((second, first), 0.0, {"confidence": 0.8}),
        ((R[1], R[1]), 0.12, {"equivalence": 0.12}),
    ):
        found = compare(*pair, **options)
        at, low, high = found.trials - 1, found.course_low, -found.course_high
        for end in {"first": [low], "second": [high], "tie": [low, high]}[found.verdict]:
            assert end[at - 1] < -bound == end[at]
            assert (end[at:] >= -bound).all()
        for right in (0, 1):
            late = [np.full((80, 40), one) for one in (right, 1 - right)]
            turned = compare(*(np.hstack(both) for both in zip(pair, late, strict=True)), **options)
            assert (turned.course_low <= turned.course_high).all()


def test_a_score_is_held_against_a_number_as_the_goal_threshold_does():
    spec = make_spec("ab", 80, goal="threshold", value=0.45, max_passes=6, family="pair")
    outcomes = {"a": R[0], "b": R[3]}
    session = drive(Session(spec), lambda one: outcomes[one.key.model][int(one.question[1:]), one.repeat])
    called = {one.models[0]: (one.verdict, one.step) for one in session.decisions if one.kind == "pair"}
    order = session.board.run_sequence.sequences[0].order
    for model, verdict in (("a", "better"), ("b", "worse")):
        own = score(outcomes[model], against=0.45, order=order)
        assert called[model] == (verdict, own.trials)
        assert own.e_value >= 20.0


def test_names_come_with_the_outcomes():
    pandas = pytest.importorskip("pandas")
    by_name = compare({"new": R[0], "old": R[3]})
    assert by_name.names == ("new", "old")
    assert by_name.trials == compare(R[0], R[3]).trials
    assert compare({"new": R[0], "old": R[3]}, names=("x", "y")).names == ("x", "y")
    frame = pandas.DataFrame(R[:, :, 0].T, columns=NAMES)
    assert board(frame).names == NAMES
    assert compare(frame[["a", "b"]]).names == ("a", "b")
    assert board(pandas.DataFrame(R[:, :, 0].T)).names[0] == "model 0"
    assert str(score(R[0], name="new")).startswith("new: 0.8")
