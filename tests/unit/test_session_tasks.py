"""Tasks, bounds, ties and composed goals in a session, and a best model within the margin."""

import json
from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ModelSpec, ReferenceSpec, SessionSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialOutcome
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.promises import promises
from scorio.sequential.evidence import log_evidence, log_evidence_above, measured_radius
from scorio.sequential.fold import VerdictCode

# Several tasks in one run: one trial sequence, each task's own sums, one verdict with the tasks' weights.


def two_tasks(overall="macro", **parts):
    spec = make_spec(3, 1, **parts)
    tasks = (
        TaskSpec("easy", tuple(f"e{number}" for number in range(40))),
        TaskSpec("hard", tuple(f"h{number}" for number in range(20)), (0.0, 0.5, 1.0)),
    )
    return replace(spec, tasks=tasks, overall=overall)


def answer(request):
    model = int(request.key.model[1:])
    rng = np.random.default_rng([3, model, request.key.index])
    chance = {"e": [0.9, 0.8, 0.5], "h": [0.7, 0.4, 0.1]}[request.question[0]][model]
    right = int(rng.random() < chance)
    return right if request.question[0] == "e" else 2 * right


def test_tasks_are_walked_in_proportion_to_their_sizes():
    run_sequence = Session(two_tasks()).board.run_sequence
    assert run_sequence.local(30) == (20, 10)
    assert run_sequence.local(300) == (200, 100)


@pytest.mark.parametrize(
    ("overall", "weights", "expected"),
    [
        ("macro", (1.0, 1.0), (0.5, 0.5)),
        ("macro", (1.0, 3.0), (0.25, 0.75)),
        ("pooled", (1.0, 1.0), (2 / 3, 1 / 3)),
        ("pooled", (1.0, 2.0), (0.5, 0.5)),
    ],
)
def test_a_tasks_own_weight_comes_on_top(overall, weights, expected):
    spec = two_tasks(overall)
    tasks = tuple(replace(task, weight=weight) for task, weight in zip(spec.tasks, weights, strict=True))
    assert replace(spec, tasks=tasks).task_weights == pytest.approx(expected)


def test_every_task_is_shown_in_its_own_units():
    spec = two_tasks(goal="budget", trials=3 * 300)
    graded = replace(spec.tasks[1], weights=(-1.0, 0.0, 3.0))
    session = drive(Session(replace(spec, tasks=(spec.tasks[0], graded))), answer, slots=3)
    results = session.results()
    easy, hard = results.tasks
    assert (easy.task, easy.questions, easy.weight) == ("easy", 40, 0.5)
    assert hard.scores[0].score == pytest.approx(-1.0 + 4.0 * 0.7, abs=0.5)
    assert all(one.score_low >= -1.0 and one.score_high <= 3.0 for one in hard.scores)
    assert from_json(json.loads(json.dumps(to_json(results)))) == results


def test_a_task_of_few_questions_keeps_no_pair_open():
    """40 questions of one task and 8 of another: decided, and never before ten trials."""
    sizes = (("e", 40), ("h", 8))
    tasks = tuple(TaskSpec(name, tuple(f"{name}{n}" for n in range(size))) for name, size in sizes)
    spec = replace(two_tasks(max_passes=30), tasks=tasks)
    rng, right = np.random.default_rng(8), {"m0": 0.95, "m1": 0.1, "m2": 0.5}
    session = drive(Session(spec), lambda one: int(rng.random() < right[one.key.model]))
    steps = [call[2] for call in calls(session)]
    assert session.stopped.reason == "resolved"
    assert 10 <= min(steps) <= max(steps) < 200


# Best and worst case of a score with missing trials: what the missing answers could have made of it.


def played(spec: SessionSpec, answers: dict[tuple[str, int], int | None], steps: int) -> Session:
    """Return a session in which every model has walked `steps` steps; None is a missing answer."""
    session = Session(spec)
    while any(issued < steps for issued in session.states.issued):
        for request in session.ask(1):
            category = answers[request.key.model, request.key.index]
            session.tell(
                [Missing(request.key, "gone") if category is None else TrialOutcome(request.key, category)]
            )
    return session


@pytest.mark.slow
@settings(max_examples=15)
@given(
    st.lists(st.none() | st.integers(0, 2), min_size=24, max_size=24),
    st.sampled_from(["macro", "pooled"]),
    st.sampled_from([(0.0, 1.0, 3.0), (2.0, -1.0, 0.5), (0.0, 0.5, 1.0)]),
)
@example([1] * 24, "macro", (0.0, 1.0, 3.0))
def test_they_are_the_scores_of_the_run_with_the_holes_filled(categories, overall, weights):
    tasks = (
        TaskSpec("s", tuple(f"s{n}" for n in range(5)), weights),
        TaskSpec("t", tuple(f"t{n}" for n in range(3)), weights),
    )
    spec = SessionSpec((ModelSpec("m"), ModelSpec("n")), tasks, goal=GoalSpec("budget"), overall=overall)
    answers = {("m", step): category for step, category in enumerate(categories)}
    answers |= {("n", step): 0 for step in range(len(categories))}
    line = played(spec, answers, 24).results().models[0]
    if None not in categories:
        assert (line.score_if_missing_wrong, line.score_if_missing_right) == (None, None)
        return
    for bound, filler in (
        (line.score_if_missing_wrong, np.argmin(weights)),
        (line.score_if_missing_right, np.argmax(weights)),
    ):
        filled = {key: int(filler) if category is None else category for key, category in answers.items()}
        assert bound == pytest.approx(played(spec, filled, 24).results().models[0].score)
    if line.score is not None:
        assert line.score_if_missing_wrong - 1e-9 <= line.score <= line.score_if_missing_right + 1e-9


def test_a_model_without_any_answer_may_be_anything():
    session = Session(make_spec(2, 4))
    session.tell([Missing(request.key, "gone") for request in session.ask(8)])
    line = session.results().models[0]
    assert (line.score, line.score_if_missing_wrong, line.score_if_missing_right) == (None, 0.0, 1.0)


@pytest.mark.parametrize("seed", range(6))
def test_a_score_of_own_rounds_lies_between_them(seed):
    """One lost answer moves the mean by less than rounds move the score from it."""
    spec = make_spec(2, 30, goal="budget", max_passes=6, rounds="rounds", seed=seed)
    lost = {("m0", 3 * 30 + 7), ("m1", 20)}

    def missing(request):
        return (request.key.model, request.key.index) in lost

    session = drive(Session(spec), coin([0.15, 0.8]), missing=missing)
    for line in session.results().models:
        assert line.missing == 1
        assert line.score_if_missing_wrong < line.score < line.score_if_missing_right


# Ties: over what their error rate holds.


EQUAL = coin((0.5,) * 4)


def run_of_equals(spec, answer=EQUAL, **options):
    """Return a session that was driven to its end, and what it was told."""
    log = []
    return drive(Session(spec), answer, slots=4, log=log, **options), log


def steps(session, *verdicts):
    """Return at which step each pair was called, by any or by these verdicts."""
    return {call[0]: call[2] for call in calls(session) if not verdicts or call[1] in verdicts}


def test_ties_of_a_family_take_more_evidence():
    found = {}
    for ties in ("pair", "family"):
        session, _ = run_of_equals(make_spec(4, equivalence=0.15, ties=ties))
        assert session.results().ties == ties
        found[ties] = steps(session, "tie")
    assert found["pair"].keys() == found["family"].keys() != set()
    assert all(found["family"][models] >= step for models, step in found["pair"].items())
    assert min(found["family"].values()) > min(found["pair"].values())


def test_a_top_set_has_the_level_of_the_pairs_across_its_cut():
    """With 6 models and a set of 2: 8 pairs of 15, however many are called."""
    spec = make_spec(6, goal="top-k", k=2, max_passes=40)
    session, _ = run_of_equals(spec, coin([0.1 + 0.15 * model for model in range(6)]))
    won = [one for one in session.decisions if one.kind == "pair"]
    assert len(won) >= 4
    assert [one.evidence["threshold"] for one in won] == pytest.approx([np.log(8 / 0.05)] * len(won))
    assert session.stopped.reason == "resolved"


# Goals composed with all and any: when they are reached, what they share, what they say.


MEANS = (0.85, 0.6, 0.55, 0.2)
RANKING = GoalSpec("ranking")
BEST = GoalSpec("top-k")
NARROW = GoalSpec("width", width=0.12)
WIDE = GoalSpec("width", width=0.5)
ABOVE = GoalSpec("threshold", value=0.4)
BELOW = GoalSpec("threshold", value=0.7)


def composed(kind, *goals, **parts):
    settings = {"equivalence": 0.15, "max_passes": 100} | parts
    return make_spec(4, 30, goal=kind, goals=goals, **settings)


def run(kind, *goals, slots=4, rng=None, **parts):
    return drive(Session(composed(kind, *goals, **parts)), coin(MEANS), slots=slots, rng=rng)


def alone(goal, **parts):
    return run("all", goal, **parts)


def verdicts(session, kind):
    return {pair.verdict for pair in session.results().pairs if pair.kind == kind}


def test_goes_on_until_every_part_is_reached():
    session = run("all", RANKING, NARROW)
    assert session.stopped.reason == "resolved"
    assert "open" not in verdicts(session, "pair")
    assert verdicts(session, "width") == {"tie"}
    assert all(line.score_high - line.score_low <= 0.12 + 1e-9 for line in session.results().models)
    longest = max(alone(RANKING).budget.completed, alone(NARROW).budget.completed)
    assert session.budget.completed >= longest


def test_a_part_that_cannot_be_reached_any_more_makes_it_partial():
    session = Session(composed("all", RANKING, WIDE))
    session.stop_model("m3", "gone")
    drive(session, coin(MEANS), slots=4)
    assert session.stopped.reason == "partial"
    assert session.stopped.evidence["silent"] == ["m3"]


def test_parts_in_any_order_decide_the_same():
    """A number, a width and pairs, some of them with a reference; a width has no margin."""
    reference = ReferenceSpec("old", {"t": np.tile([60, 40], (30, 1))})
    found = []
    for goals in ((ABOVE, WIDE, RANKING), (RANKING, ABOVE, WIDE)):
        spec = replace(composed("all", *goals), references=(reference,))
        session = drive(Session(spec), coin(MEANS), slots=4)
        found.append(session.results().pairs)
    first, other = ({(one.first, one.second): one for one in pairs} for pairs in found)
    assert first == other
    widths = [one for one in found[0] if one.kind == "width"]
    assert all(one.verdict == "tie" for one in widths)
    radius = measured_radius(session.comparison.latest.variance[-4:], 0.05)
    low, middle, high = np.array(
        [[one.difference_low, one.difference, one.difference_high] for one in widths]
    ).T
    assert low == pytest.approx(np.maximum(middle - radius, 0.0))
    assert high == pytest.approx(np.minimum(middle + radius, 1.0))


@pytest.mark.parametrize(
    ("goals", "hypotheses"), [((RANKING, ABOVE, NARROW), 6 + 4), ((BEST, ABOVE, BELOW), 6 + 4 + 4)]
)
def test_what_can_get_a_winner_is_one_family(goals, hypotheses):
    session = Session(composed("all", *goals))
    assert session.comparison.fold.threshold == pytest.approx(log(hypotheses / 0.05))


def test_what_is_measured_is_no_tie_of_the_family():
    fold = run("all", RANKING, WIDE, ties="family").comparison.fold
    tied = np.count_nonzero((fold.verdict == VerdictCode.TIE)[:6])
    assert fold.tie_threshold == pytest.approx(log((6 - tied) / 0.05))


# A best model within the margin: no other is better by more, whatever tasks, scores and rivals are.


NAMES = ("m0", "m1", "m2")
NEAR = [0.62, 0.6, 0.25]
BASE = make_spec(3, 60, goal="top-k", equivalence=0.12, max_passes=40)
TWO_TASKS = tuple(TaskSpec(name, tuple(f"q{n}" for n in range(30))) for name in "tu")
STORED = ReferenceSpec("old", {"t": np.tile([4, 6], (60, 1))})
SPECS = {
    "one task": BASE,
    "two best": replace(BASE, goal=replace(BASE.goal, k=2)),
    "two tasks": replace(BASE, tasks=TWO_TASKS),
    "a reference": replace(BASE, models=BASE.models[::2], references=(STORED,)),
    "grades": make_spec(3, 60, goal="top-k", equivalence=12.0, max_passes=40, weights=(0.0, 40.0, 100.0)),
    "rounds": make_spec(3, 30, goal="top-k", equivalence=0.12, max_passes=80, rounds="rounds"),
    "exact": make_spec(3, 60, goal="top-k", equivalence=0.12, max_passes=40, rule="exact"),
}


def graded(request):
    return 2 * coin(NEAR)(request)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_the_best_is_known_within_the_margin_before_its_pairs_are_decided(name):
    spec, log = SPECS[name], []
    session = drive(Session(spec), graded if name == "grades" else coin(NEAR), slots=4, log=log)
    evidence = session.stopped.evidence
    assert session.stopped.reason == "resolved"
    assert len(evidence["good_enough"]) == spec.goal.k
    assert {*evidence["good_enough"]} <= {"m0", "m1", "old"}
    assert evidence["within"] == spec.stopping.equivalence
    assert "is better than" in describe(session.stopped)
    retired = [describe(one) for one in session.decisions if one.kind == "retired"]
    assert any(f"by more than {spec.stopping.equivalence:g}" in words for words in retired)
    assert not any("no open pair needs it" in words for words in retired)
    assert any("such claim is ever wrong" in words for words in promises(session.results()).holds)
    # Every batch of the log gives the same claims.
    again = Session(spec)
    again.replay([outcome] for batch in log for outcome in batch)
    assert again.stopped == session.stopped
    assert again.comparison.fold.enough_at.tolist() == session.comparison.fold.enough_at.tolist()


def test_a_run_without_a_margin_or_of_a_ranking_claims_nothing():
    for part in ({"goal": "top-k"}, {"equivalence": 0.1}):
        spec = make_spec(3, 60, max_passes=2, **part)
        fold = drive(Session(spec), coin(NEAR)).comparison.fold
        assert (fold.enough_at < 0).all()


def test_sets_of_several_sizes_share_the_error_rate():
    """Of three models and a reference, three pairs could make the best one wrong, and four the best two."""
    sizes = [GoalSpec("top-k", k=k) for k in (1, 2, 2)]
    reference = ReferenceSpec("old", {"t": np.ones((60, 2), dtype=int)})
    spec = replace(make_spec(3, 60, equivalence=0.12), references=(reference,))
    best_two = replace(spec, goal=sizes[1])
    assert best_two.levels(spec.rule(), 6).winner(0) == pytest.approx(np.log(4 / 0.05))
    spec = replace(spec, goal=GoalSpec("all", goals=tuple(sizes)))
    assert spec.levels(spec.rule(), 6).claims == 3 + 4
    alone = replace(spec, stopping=replace(spec.stopping, family="pair"))
    assert alone.levels(spec.rule(), 6).guard == pytest.approx(np.log(7 / 0.05))


def test_claims_without_a_verdict_are_part_of_the_result_when_the_other_models_stop():
    """The best model is good enough against one rival, and the other rival stops answering."""
    session = Session(BASE)
    answer = coin(NEAR)
    while session.stopped is None and not (session.comparison.fold.enough_at >= 0).any():
        session.tell([TrialOutcome(one.key, answer(one)) for one in session.ask(dict.fromkeys(NAMES, 4))])
    assert (session.comparison.fold.verdict == 0).all()
    for name in NAMES:
        session.stop_model(name, "HTTP 401")
    assert session.stopped.reason == "partial"
    assert session.stopped.evidence["open"] == 2
    assert describe(session.stopped).startswith("decided as far as possible: 2 pairs stay open")


def test_a_model_that_is_asked_about_alone_stays_open_as_a_model_not_as_a_pair():
    session = Session(replace(BASE, goal=GoalSpec("threshold", value=0.5)))
    first, *others = NAMES
    while session.comparison.fold.undecided.all():
        session.tell([TrialOutcome(one.key, 1) for one in session.ask({first: 4})])
    for name in others:
        session.stop_model(name, "HTTP 401")
    found = session.stopped.evidence
    assert (found["open"], found["open_models"]) == (0, len(others))
    assert f"{len(others)} models stay open" in describe(session.stopped)


def test_lost_answers_are_bounded():
    """Where half of the best model's answers are lost, they could all be wrong: nothing is claimed of it."""
    session = Session(BASE)
    drive(session, coin(NEAR), missing=lambda request: request.key.model == "m0" and request.key.index % 2)
    assert session.comparison.fold.enough_at[0, :2].tolist() == [-1, -1]


def test_the_one_sided_evidence_is_an_e_value_at_the_margin():
    """Its mean over normal estimates at −ε is at most 1, and beyond −ε less."""
    estimates = np.random.default_rng(5).standard_normal(200_000)
    for variance in (1e-4, 1e-3, 1e-2):
        for true in (-0.05, -0.08):
            drawn = true + np.sqrt(variance) * estimates
            mean = np.exp(log_evidence_above(drawn, variance, 0.05)).mean()
            assert mean <= 1.02
            assert mean > 0.95 or true < -0.05 or variance < 1e-2  # rare large values are not drawn there
    far = log_evidence_above(0.2, 1e-3, 0.05) - log_evidence(0.25, 1e-3, 0.05)
    assert 0.0 < far <= np.log(2.0) + 1e-9
