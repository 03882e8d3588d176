"""One fold behind all faces: session, board, monitor and compare call the same of the same answers.

Crossed: scales, graded answers, lost answers, several tasks, arrival orders, several answers a request.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from drawn import drawn
from hypothesis import Phase, given
from hypothesis import strategies as st
from session_scripts import drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec, TaskSpec
from adaptive_eval.simulate.result import scores_until
from scorio.eval import bayes
from scorio.sequential import Monitor, board, compare, score
from scorio.sequential.fixed import fixed_passes

FEW = drawn(2, phases=(Phase.explicit, Phase.generate))
SEEDS = st.integers(0, 2**31)
MODELS, QUESTIONS, REPEATS = 3, 20, 6
CHANCES = (0.55, 0.95, 0.55)
SCALES = {
    "right or wrong": (0.0, 1.0),
    "from -1 to 3": (-1.0, 3.0),
    "graded": (0.0, 0.3, 1.0),
    "points": (1, 2, 5),
}
EACH_SCALE = pytest.mark.parametrize("scale", SCALES)
EACH_LOSS = pytest.mark.parametrize("share", [0.0, 0.08])


def answers(seed, weights, share, tasks=1, chances=CHANCES):
    """Return categories by task, model, question and repeat; -1 where the answer is lost."""
    rng = np.random.default_rng(seed)
    shape = (tasks, MODELS, QUESTIONS, REPEATS)
    found = rng.binomial(len(weights) - 1, np.array(chances)[None, :, None, None], shape)
    found[rng.random(shape) < share] = -1
    return found


def told(found):
    """Return what answers a request from `found`, and what is lost of it."""

    def at(request):
        place = int(request.task[1:]), int(request.key.model[1:]), int(request.question[1:])
        return int(found[place][request.repeat])

    return at, lambda request: at(request) < 0


def spec_of(weights, tasks=1, each=1, **parts):
    """Return a spec that asks `REPEATS` passes at most; margins and values are parts of the scale's range."""
    origin, unit = min(weights), max(weights) - min(weights)
    scaled = {name: parts[name] * unit for name in ("equivalence", "width") if parts.get(name) is not None}
    if parts.get("value") is not None:
        scaled["value"] = origin + unit * parts["value"]
    spec = make_spec(MODELS, QUESTIONS, max_passes=REPEATS, **parts | scaled)
    questions = tuple(f"q{number}" for number in range(QUESTIONS))
    all_tasks = tuple(TaskSpec(f"t{number}", questions, weights) for number in range(tasks))
    return replace(spec, tasks=all_tasks, samples_per_prompt=each)


def run(spec, found, seed):
    answer, lost = told(found)
    return drive(Session(spec), answer, slots=6, rng=np.random.default_rng(seed), missing=lost)


def verdicts(session):
    """Return what is called of each pair, and at which step."""
    pairs = [one for one in session.decisions if one.kind == "pair"]
    return {one.models: (one.verdict, one.step) for one in pairs}


def retired(session):
    """Return what is told of the models that need no more trials, but for the margin."""
    told = [one for one in session.decisions if one.kind == "retired"]
    return [(one.models, one.step, {**one.evidence, "within": None}) for one in told]


def of_board(names, result):
    """Return the verdicts of a board or a monitor, by pair as a session names them."""
    found = {}
    for text, step in result.verdicts.items():
        first, sign, second = text.split()
        pair = (first, second) if names.index(first) < names.index(second) else (second, first)
        better = "better" if pair == (first, second) else "worse"
        found[pair] = "tie" if sign == "=" else better, step
    return found


@EACH_SCALE
@EACH_LOSS
@FEW
@given(seed=SEEDS)
def test_all_faces_call_the_same_at_the_same_steps(scale, share, seed):
    weights, margin = SCALES[scale], 0.3
    found, names = answers(seed, weights, share), ("m0", "m1", "m2")
    session = run(spec_of(weights, equivalence=margin, family="pair"), found, seed)
    order, equivalence = session.board.cells[0].sequence.order, margin * np.ptp(weights)
    options = {"order": order, "equivalence": equivalence, "weights": weights}
    expected = verdicts(session)
    whole = board(dict(zip(names, found[0], strict=True)), family="pair", missing=-1, **options)
    assert of_board(names, whole) == expected
    monitor, used = Monitor(names, QUESTIONS, family="pair", **options), np.zeros((MODELS, QUESTIONS), int)
    told_to = np.repeat([(m, q) for m in range(MODELS) for q in range(QUESTIONS)], REPEATS, axis=0)
    for model, question in np.random.default_rng(seed).permutation(told_to).tolist():
        category = int(found[0, model, question, used[model, question]])
        monitor.update(names[model], question, None if category < 0 else category)
        used[model, question] += 1
    assert of_board(names, monitor.state) == expected
    for pair, (verdict, step) in expected.items():
        first, second = (found[0, int(name[1:])] for name in pair)
        alone = compare(first, second, missing=-1, **options)
        assert alone.trials == step
        assert {"first": "better", "second": "worse"}.get(alone.verdict, alone.verdict) == verdict


OPTIONS = {
    "none": {},
    "order": {"order": 3},
    "margin": {"equivalence": 0.15},
    "confidence": {"confidence": 0.99},
    "family": {"family": "holm"},
    "target": {"target": "population"},
    "clusters": {"target": "population", "clusters": np.arange(QUESTIONS) // 2},
}


@pytest.mark.parametrize("name", OPTIONS)
@EACH_LOSS
def test_every_option_reaches_every_face(name, share):
    found, names, options = answers(8, (0.0, 1.0), share)[0], ("m0", "m1", "m2"), {"family": "pair"}
    found[:, :, -1] = np.maximum(found[:, :, -1], 0)  # trials that lack at the end were not made
    plain = board(found, names=names, missing=-1, **options)
    options |= OPTIONS[name]
    whole = board(found, names=names, missing=-1, **options)
    is_other = whole.verdicts != plain.verdicts or not np.array_equal(whole.p_values, plain.p_values)
    assert is_other == (name != "none")
    monitor = Monitor(names, QUESTIONS, **options)
    used = np.zeros((MODELS, QUESTIONS), dtype=int)
    for _ in range(QUESTIONS * REPEATS):
        for model, label in enumerate(names):
            question = monitor.next(label)
            category = int(found[model, question, used[model, question]])
            monitor.update(label, question, None if category < 0 else category)
            used[model, question] += 1
    assert (monitor.state.verdicts, monitor.state.ranks) == (whole.verdicts, whole.ranks)
    assert (monitor.state.trials, monitor.waiting) == ((QUESTIONS * REPEATS,) * MODELS, (0,) * MODELS)
    assert monitor.state.scores == pytest.approx(whole.scores)
    assert np.array_equal(monitor.state.p_values, whole.p_values)
    assert np.array_equal([monitor.state.low, monitor.state.high], [whole.low, whole.high])
    called, family = of_board(names, whole), options.pop("family")
    for first, second in combinations(range(0 if family == "holm" else MODELS), 2):
        alone = compare(found[first], found[second], missing=-1, **options)
        assert alone.trials == called.get((names[first], names[second]), (None, QUESTIONS * REPEATS))[1]
    if "clusters" in options or "equivalence" in options:
        return
    for model in range(MODELS):
        own = score(found[model], missing=-1, **options)
        assert (own.low, own.high) == pytest.approx((whole.low[model], whole.high[model]))


OF_SCORES = ("score", "scores", "course_score", "low", "high", "course_low", "course_high")
DIFFERENCES = ("difference", "course_difference")
EQUAL = ("trials", "e_value", "p_value", "p_values", "course_log_e", "ranks")


@EACH_LOSS
@FEW
@given(seed=SEEDS)
def test_results_of_scorio_are_in_the_units_of_its_weights(share, seed):
    found = answers(seed, (0.0, 1.0), share)[0]

    def results(low, unit):
        options = {"weights": (low, low + unit), "missing": -1}
        margin = options | {"equivalence": 0.3 * unit}
        yield score(found[1], against=low + 0.6 * unit, **options), low
        yield board(found, **margin), low
        yield compare(*found[:2], **margin), 0.0

    for (plain, _), (scaled, shift) in zip(results(0.0, 1.0), results(-1.0, 4.0), strict=True):
        for names, factor, origin in ((OF_SCORES, 4, shift), (DIFFERENCES, 4, 0.0), (EQUAL, 1, 0.0)):
            for name in names:
                if hasattr(plain, name):
                    expected = factor * np.array(getattr(plain, name)) + origin
                    assert np.array(getattr(scaled, name)) == pytest.approx(expected), name


@EACH_SCALE
@EACH_LOSS
@pytest.mark.parametrize("names", [None, tuple("aabbcccddddeeffghijk")], ids=["questions", "clusters"])
def test_a_session_shows_the_scores_and_intervals_of_a_board(scale, share, names):
    weights, found = SCALES[scale], answers(4, SCALES[scale], share)
    found[..., -1] = np.maximum(found[..., -1], 0)  # trials that lack at the end were not made
    options = {"confidence": 0.6, "target": "population" if names else "benchmark"}
    goals = GoalSpec("ranking"), GoalSpec("width", width=0.01 * np.ptp(weights))
    specs = spec_of(weights, goal="budget", **options), spec_of(weights, goal="all", goals=goals, **options)
    plain, measuring = (replace(spec, tasks=(replace(spec.tasks[0], clusters=names),)) for spec in specs)
    session = run(plain, found, 4)
    order, results = session.board.cells[0].sequence.order, session.results()
    whole = board(found[0], missing=-1, weights=weights, clusters=names, order=order, **options)
    expected = np.stack([whole.scores, whole.low, whole.high], axis=1)
    assert np.array(
        [(line.score, line.score_low, line.score_high) for line in results.models]
    ) == pytest.approx(expected)
    results = run(measuring, found, 4).results()
    measured = [pair for pair in results.pairs if pair.kind == "width"]
    widths = [(pair.difference, pair.difference_low, pair.difference_high) for pair in measured]
    assert np.array(widths) == pytest.approx(  # read step by step
        np.array([(line.score, line.score_low, line.score_high) for line in results.models])
    )
    assert np.array(widths)[:, 0] == pytest.approx(expected[:, 0])


GOALS = {
    "ranking": {"goal": "ranking", "equivalence": 0.25},
    "threshold": {"goal": "threshold", "value": 0.5, "equivalence": 0.1},
    "width": {"goal": "width", "width": 0.4},
    "top-k": {"goal": "top-k", "k": 1, "equivalence": 0.25},
}
"""What a session is asked; values, margins and widths as parts of the scale's range."""


def crossed(weights, tasks, each, **parts):
    """Return the spec with a reference that has lost answers, and tasks that weigh 1, 3, …"""
    spec, counts = spec_of(weights, tasks, each, **parts), np.repeat([[2, 2], [1, 3]], QUESTIONS // 2, axis=0)
    weighted = tuple(replace(task, weight=1.0 + 2 * number) for number, task in enumerate(spec.tasks))
    lost = {"t0": np.ones(QUESTIONS, dtype=int)}
    reference = ReferenceSpec("old", {task.name: counts for task in spec.tasks}, lost=lost)
    return replace(spec, tasks=weighted, references=(reference,))


ALONE = [(1, 1, 0.0), (1, 1, 0.08), (2, 1, 0.0), (2, 1, 0.08), (2, REPEATS - 1, 0.0)]


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize(
    ("tasks", "each", "share"),
    [(2, REPEATS - 1, 0.08), *(pytest.param(*case, marks=pytest.mark.slow) for case in ALONE)],
)
@FEW
@given(seed=SEEDS)
def test_another_scale_changes_the_units_and_nothing_else(goal, tasks, each, share, seed):
    found = answers(seed, (0.0, 1.0), share, tasks)
    plain = run(crossed((0.0, 1.0), tasks, each, **GOALS[goal]), found, seed)
    scaled = run(crossed((-1.0, 3.0), tasks, each, **GOALS[goal]), found, seed)
    assert verdicts(scaled) == verdicts(plain)
    assert (scaled.stopped.reason, retired(scaled)) == (plain.stopped.reason, retired(plain))
    for here, there in zip(plain.results().models, scaled.results().models, strict=True):
        ends = np.array([here.score, here.score_low, here.score_high])
        assert np.array([there.score, there.score_low, there.score_high]) == pytest.approx(4 * ends - 1)
    called = (
        [one.evidence for one in session.decisions if one.kind == "pair"] for session in (plain, scaled)
    )
    for here, there in zip(*called, strict=True):
        assert there["difference"] == pytest.approx(4 * here["difference"])
        assert "score" not in here or there["score"] == pytest.approx(4 * here["score"] - 1)
    # What is held against no other model and no number is a score, not a difference.
    shift = -1.0 if goal == "width" else 0.0
    for here, there in zip(plain.results().pairs, scaled.results().pairs, strict=True):
        assert here.tie_margin is None or (here.tie_margin == 1.0) == (here.verdict == "tie")
        ends = np.array([here.difference, here.difference_low, here.difference_high])
        assert np.array([there.difference, there.difference_low, there.difference_high]) == pytest.approx(
            4 * ends + shift
        )


@pytest.mark.parametrize("weights", [(1.0, 1.0), (3.0, 1.0), (1.0, 4.0)])
@EACH_LOSS
@FEW
@given(seed=SEEDS)
def test_several_tasks_count_with_their_weights(weights, share, seed):
    """Scores and differences are the weighted means of what each task says by itself."""
    found = answers(seed, (0.0, 1.0), share, 2, chances=(0.6, 0.6, 0.55))
    worths = (2.0, -1.0)
    spec = spec_of(worths, 2, goal="budget", trials=MODELS * 2 * QUESTIONS * REPEATS)
    tasks = tuple(replace(task, weight=weight) for task, weight in zip(spec.tasks, weights, strict=True))
    spec = replace(spec, tasks=tasks)
    session = run(spec, found, seed)
    board, results = session.board, session.results()
    ends = [board.score_at(model, int(board.progress[model])) for model in range(MODELS)]
    assert ends == pytest.approx(board.scores().difference[:, 0])
    assert scores_until(spec, board, board.progress) == pytest.approx(ends)
    part = board.progress // 5  # where a few questions are asked twice, and others not yet
    expected = [board.score_at(model, int(step)) for model, step in enumerate(part)]
    assert scores_until(spec, board, part) == pytest.approx(expected)
    shares = np.array(weights) / sum(weights)
    counted = np.where(found < 0, np.nan, np.take(worths, found))
    expected = shares @ np.nanmean(counted, axis=3).mean(axis=2)
    assert [line.score for line in results.models] == pytest.approx(expected)
    of_tasks = np.array([[one.score for one in task.scores] for task in results.tasks])
    assert shares @ of_tasks == pytest.approx(expected)
    assert all(one.score_low < one.score < one.score_high for task in results.tasks for one in task.scores)
    for end, fill in (("score_if_missing_wrong", -1.0), ("score_if_missing_right", 2.0)):
        filled = shares @ np.where(found < 0, fill, counted).mean(axis=(2, 3))
        assert [getattr(line, end) for line in results.models] == (
            pytest.approx(filled) if share else [None] * 3
        )
    for model, line in enumerate(results.models):
        mu, sigma = np.transpose([bayes(of_task[model], worths, missing=-1) for of_task in found])
        assert (line.bayes_mu, line.bayes_sigma) == pytest.approx(
            (shares @ mu, np.linalg.norm(shares * sigma))
        )
    undecided = [pair for pair in results.pairs if pair.verdict == "open"]  # others stay as they were called
    assert undecided
    for pair in undecided:
        first, second = int(pair.first[1:]), int(pair.second[1:])
        assert pair.difference == pytest.approx(expected[first] - expected[second])


def test_a_fixed_run_of_the_same_error_and_power_takes_what_the_noise_of_all_tasks_takes():
    found = answers(3, (0.0, 1.0), 0.0, 2, chances=(0.2, 0.5, 0.8))
    spec = spec_of((0.0, 1.0), 2)
    heavy = replace(spec.tasks[1], weight=3.0)
    results = run(replace(spec, tasks=(spec.tasks[0], heavy)), found, 3).results()
    noise = np.array([0.25**2, 0.75**2]) @ (found.mean(axis=3) * (1 - found.mean(axis=3))).mean(axis=2)
    pairs = [pair for pair in results.pairs if pair.verdict != "open"]
    both = [noise[[int(pair.first[1:]), int(pair.second[1:])]].sum() / QUESTIONS for pair in pairs]
    to_find = [abs(pair.difference) if pair.verdict != "tie" else spec.stopping.equivalence for pair in pairs]
    expected = fixed_passes(both, to_find, 0.05, len(results.pairs), power=0.9).max()
    assert results.fixed_passes == pytest.approx(expected, rel=0.3)
    assert run(spec_of((0.0, 1.0), 2, target="population"), found, 3).results().fixed_passes is None


def two_tasks(heavy, value):
    """Return a spec of one model and two tasks; the first is twice as large, of `heavy` times the weight."""
    questions = tuple(f"q{number}" for number in range(QUESTIONS))
    tasks = (TaskSpec("t0", questions, weight=heavy), TaskSpec("t1", questions[::2]))
    return replace(make_spec(1, 1, goal="threshold", value=value, max_passes=60), tasks=tasks)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("heavy", "value", "verdict"),
    [(4.0, 0.6, "better"), (4.0, 0.9, "worse"), (4.0, 0.77, None), (0.25, 0.1, "better"), (0.25, 0.23, None)],
)
def test_a_threshold_holds_for_the_weighted_score(heavy, value, verdict):
    """A model that is nearly always right on one task and nearly never on the other."""

    def answer(request):
        key = (int(request.task[1:]), int(request.question[1:]), request.repeat)
        return int(np.random.default_rng(key).random() < (0.95, 0.05)[key[0]])

    session = drive(Session(two_tasks(heavy, value)), answer)
    # A model that is exactly as good as the number is called in 5 % of seeds at most; not in this one.
    assert session.stopped.reason == ("max_passes" if verdict is None else "resolved")
    assert [call[0] for call in verdicts(session).values()] == ([] if verdict is None else [verdict])


def holm(courses, alpha):
    """Return the step at which each pair is called by Holm's rule, read together step by step."""
    peaks = {pair: np.maximum.accumulate(course) for pair, course in courses.items()}
    steps = {}
    for step in range(next(iter(peaks.values())).size):
        while ready := [
            pair
            for pair, peak in peaks.items()
            if pair not in steps and peak[step] >= np.log((len(peaks) - len(steps)) / alpha)
        ]:
            steps[ready[0]] = step + 1
    return steps


@FEW
@given(seed=SEEDS)
def test_a_board_calls_by_the_levels_of_all_its_pairs(seed):
    found = np.random.default_rng(seed).random((4, 40, 6)) < np.array([0.2, 0.45, 0.7, 0.9])[:, None, None]
    names = "abcd"
    outcomes = dict(zip(names, found.astype(int), strict=True))
    pairs = list(combinations(names, 2))
    # The guard of a board is that of the strictest level that it reads.
    confidence = 1.0 - 0.05 / len(pairs)
    both = {pair: [outcomes[name] for name in pair] for pair in pairs}
    courses = {pair: compare(*both[pair], confidence=confidence).course_log_e for pair in pairs}
    expected = holm(courses, 0.05)
    assert len(expected) > 2
    called = of_board(tuple(names), board(outcomes))
    assert {pair: step for pair, (_, step) in called.items()} == expected


def test_a_monitor_calls_a_pair_though_a_third_model_is_silent_and_the_second_came_late():
    rng = np.random.default_rng(5)
    found = (rng.random((2, 60, 2)) < np.array([0.2, 0.9])[:, None, None]).astype(int)
    monitor = Monitor(["a", "b", "silent"], 60, order=0)
    for model in (0, 1):
        for question in rng.permutation(60):
            for repeat in range(2):
                monitor.update("ab"[model], int(question), int(found[model, question, repeat]))
    assert list(monitor.state.verdicts) == ["b > a"]


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_an_interval_holds_whatever_the_lost_answers_were(share):
    rng = np.random.default_rng(3)
    found = (rng.random((2, 200, 20)) < 0.5).astype(int)
    lost = rng.random(found.shape) < share
    interval = compare(*np.where(lost, -1, found), missing=-1)
    for first in (0, 1):
        extreme = np.where(lost, np.array([first, 1 - first])[:, None, None], found)
        assert interval.low <= extreme[0].mean() - extreme[1].mean() <= interval.high
