"""References in a session: asked nothing, compared with every model, decided as any pair."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, coin, counts_of, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec
from adaptive_eval.simulate import GivenChances, simulate
from adaptive_eval.trial import COPY_REASON, Missing, TrialKey, TrialOutcome
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.verdicts import rank_column
from scorio.sequential.foresight import Foresight


def against(spec, **chances):
    """Add one reference a keyword to the spec, with the given chance of a right answer."""
    references = []
    for number, (name, chance) in enumerate(chances.items()):
        sizes = {task.name: (len(task.questions), 20, len(task.weights)) for task in spec.tasks}
        counts = {task: counts_of(chance, *size, seed=number) for task, size in sizes.items()}
        references.append(ReferenceSpec(name, counts, "an earlier run"))
    return replace(spec, references=tuple(references))


ONES, MORE, SOME = [[1, 0], [0, 1], [1, 0]], [[1, 0], [2, 0], [0, 1]], [[1, 0], [0, 0], [1, 0]]


@pytest.mark.parametrize(
    ("counts", "lost", "words"),
    [
        (ONES, 0, ["one trial a question"]),
        (MORE, 0, []),  # the noise of one question says something of all
        (SOME, 0, ["on 2 of 3 questions"]),
        (MORE, 2, ["trials without an answer of reference old: 2;"]),
        (ONES, 1, ["trials without an answer of reference old: 1;", "one trial a question"]),
    ],
)
def test_what_a_reference_lacks_is_said(counts, lost, words):
    stored = ReferenceSpec("old", {"t": np.array(counts)}, lost={"t": np.array([lost, 0, 0])})
    told = [one for one in Session(replace(make_spec(1, 3), references=(stored,))).results().warnings
            if one.code == "warning/reference"]  # fmt: skip
    assert len(told) == len(words)
    assert all(part in one for part, one in zip(words, told, strict=True))


@pytest.mark.parametrize("policy", ["round-robin", "uniform"])
def test_every_policy_leaves_references_alone(policy):
    spec = against(make_spec(2, 30, max_passes=4, policy=policy), good=0.95, bad=0.05)
    session = drive(Session(spec), coin([0.5, 0.5]))
    assert session.stopped.reason == "max_passes"
    assert {call[0] for call in calls(session)} >= {("m0", "good"), ("m1", "bad")}


class TestBoard:
    def test_its_results_never_change(self):
        session = Session(against(make_spec(2, 30, max_passes=2), old=0.6))
        before = replace(session.results().models[2], rank=1, rank_low=1, rank_high=1)
        assert (before.model, before.state, before.note) == ("old", "reference", "an earlier run")
        drive(session, coin([0.7, 0.6]))
        assert replace(session.results().models[2], rank=1, rank_low=1, rank_high=1) == before

    def test_rank_intervals_follow_the_calls_and_two_references_are_not_compared(self):
        session = drive(Session(against(make_spec(1, 60), good=0.95, bad=0.05)), coin([0.5]))
        lines = {line.model: (line.rank_low, line.rank_high) for line in session.results().models}
        assert lines == {"m0": (2, 2), "good": (1, 2), "bad": (2, 3)}
        pairs = {(pair.first, pair.second) for pair in session.results().pairs}
        assert pairs == {("m0", "good"), ("m0", "bad")}
        assert "references are not compared with each other (good, bad): their trials are all in" in (
            session.results().warnings
        )

    def test_lost_answers_of_a_reference_end_a_run_that_they_leave_open(self):
        lost = {"t": np.full(60, 8)}
        reference = ReferenceSpec("old", {"t": counts_of(0.6, 60, 12)}, lost=lost)
        spec = replace(make_spec(1, 60, equivalence=0.05), references=(reference,))
        stopped = drive(Session(spec), coin([0.6])).stopped
        assert (stopped.reason, stopped.evidence) == (
            "lost",
            {
                "open": 1,
                "open_models": 0,
                "lost": {"old": 480},
                "discarded": {},
                "discarded_trials": {},
                "redrawn": [],
            },
        )

    def test_questions_of_which_it_lost_all_answers_may_have_any_score(self):
        counts = counts_of(1.0, 40, 3)
        counts[20:] = 0
        reference = ReferenceSpec("old", {"t": counts}, lost={"t": np.repeat([0, 3], 20)})
        session = Session(replace(make_spec(1, 40), references=(reference,)))
        line = session.results().models[1]
        assert (line.score_if_missing_wrong, line.score_if_missing_right) == (0.5, 1.0)
        assert session.board.scores().slack[1, 0] == line.score - line.score_if_missing_wrong

    def test_its_interval_holds_what_its_lost_answers_allow(self):
        counts, lost = counts_of(0.75, 40, 8), {"u": np.repeat([0, 2], 20)}
        reference = ReferenceSpec("old", {"t": counts, "u": counts}, lost=lost)
        spec = make_spec(1, 40)
        tasks = (spec.tasks[0], replace(spec.tasks[0], name="u"))
        session = Session(replace(spec, tasks=tasks, references=(reference,)))
        line = session.results().models[1]
        ends = line.score - line.score_if_missing_wrong, line.score_if_missing_right - line.score
        assert session.board.scores().slack[1, 0] == pytest.approx(max(ends))
        assert ends[0] > 2 * ends[1] > 0.0

    def test_a_first_answer_that_is_a_copy_is_one_that_is_missing(self):
        spec, ends = against(make_spec(1, 40, max_passes=6), old=0.1), []
        for reason in ("lost", COPY_REASON):
            session = Session(spec)
            session.replay([[Missing(TrialKey("m0", 2), reason)]])
            drive(session, coin([1.0]), slots=4)
            ends.append((session.stopped.reason, session.decisions[0].verdict))
            assert session.results().models[0].copies == (reason == COPY_REASON)
        assert ends[0] == ends[1] == ("resolved", "better")

    @pytest.mark.parametrize("rounds", ["schedule", "rounds"])
    def test_what_it_was_not_asked_is_no_lost_answer(self, rounds):
        counts = counts_of(0.4, 60, 40)
        counts[30:] = 0
        reference = ReferenceSpec("old", {"t": counts})
        spec = replace(make_spec(1, 60, rounds=rounds, max_passes=40), references=(reference,))
        session = drive(Session(spec), coin([0.6]))
        (pair,) = session.results().pairs
        assert (session.stopped.reason, pair.verdict, pair.questions) == ("resolved", "better", 30)
        assert pair.trials_each > 2 * 60

    def test_without_a_common_question_nothing_is_known(self):
        spec = make_spec(1, 60, target="population", equivalence=0.3)
        task = replace(spec.tasks[0], clusters=tuple(f"c{place // 2}" for place in range(60)))
        counts = counts_of(0.5, 60, 4)
        reference = ReferenceSpec("old", {"t": counts})
        spec = replace(spec, tasks=(task,), references=(reference,))
        for request in Session(spec).ask(12):
            counts[task.questions.index(request.question)] = 0
        session = Session(spec)
        session.tell([TrialOutcome(request.key, 1) for request in session.ask(12)])
        (pair,) = session.results().pairs
        assert (pair.trials_each, pair.questions, pair.verdict, pair.exact) == (12, 0, "open", False)

    def test_says_where_a_reference_covers_a_part_only(self):
        spec = make_spec(1, 30, max_passes=9)
        counts = counts_of(0.5)
        counts[10:] = 0
        session = Session(replace(spec, references=(ReferenceSpec("old", {"t": counts}),)))
        assert session.results().warnings == (
            "reference old has results on 10 of 30 questions: only these are compared",
        )


def test_a_reference_can_be_the_baseline():
    spec = against(make_spec(2, 60, goal="baseline", model="old"), old=0.5, other=0.9)
    session = drive(Session(spec), coin([0.95, 0.05]))
    found = {(call[0], call[1]) for call in calls(session)}
    assert found == {(("old", "m0"), "worse"), (("old", "m1"), "better")}
    named = {decision.evidence.get("reference") for decision in session.decisions if decision.kind == "pair"}
    assert named == {"old"}
    assert session.stopped.reason == "resolved"


@pytest.mark.parametrize(("models", "baseline", "said"), [(1, "m0", "compared"), (2, "old", "baseline")])
def test_a_new_model_is_compared_with_references_and_they_have_a_verdict_each(models, baseline, said):
    stored = {"old": 0.5} if models == 2 else {"old": 0.5, "other": 0.05}
    spec = against(make_spec(models, 60, goal="baseline", model=baseline), **stored)
    results = drive(Session(spec), coin([0.95, 0.05])).results()
    others = {"m0": "better", "m1": "worse", "old": "worse", "other": "worse"}
    assert dict(rank_column(results).of) == {name: others[name] for name in spec.names} | {baseline: said}


def test_goals_about_single_models_leave_references_out():
    spec = against(make_spec(2, 60, goal="threshold", value=0.5), old=0.5)
    session = drive(Session(spec), coin([0.95, 0.05]))
    assert [pair.first for pair in session.results().pairs] == ["m0", "m1"]


@pytest.mark.parametrize("rounds", ["schedule", "rounds"])
def test_models_are_decided_and_their_rounds_are_laid_out_as_without_references(rounds):
    plain = make_spec(3, 40, family="pair", equivalence=0.2, rounds=rounds)
    answer = coin([0.9, 0.5, 0.45], spread=0.1)
    alone = drive(Session(plain), answer)
    beside = drive(Session(against(plain, old=0.7)), answer)
    assert [call for call in calls(beside) if "old" not in call[0]] == calls(alone)


def test_a_pair_that_is_too_noisy_is_open_as_those_of_a_lost_model_are():
    reference = ReferenceSpec("old", {"t": counts_of(0.5, 30, 1, seed=3)})
    session = Session(replace(make_spec(2, 30, equivalence=0.02), references=(reference,)))
    session.stop_model("m1", "gone")
    drive(session, coin([0.5, 0.5], spread=0.2), most=5_000)
    assert session.stopped.evidence == {
        "open": 3,
        "open_models": 0,
        "silent": ["m1"],
        "spent": [],
        "noisy": ["old"],
    }


@pytest.mark.parametrize(
    ("trials", "mean", "reason", "most"),
    [(1, 0.6, "partial", 100), (4, 0.6, "partial", 500), (2, 0.7, "max_passes", 1200)],
)
def test_on_two_tasks_it_ends_after_two_passes_and_only_where_nothing_can_be_decided(
    trials, mean, reason, most
):
    right = np.random.default_rng(trials).binomial(trials, 0.5, (2, 20))
    spec = make_spec(1, 20, equivalence=0.1, max_passes=30)
    tables = zip("tu", np.stack([trials - right, right], axis=2), strict=True)
    reference = ReferenceSpec("old", dict(tables))
    tasks = (spec.tasks[0], replace(spec.tasks[0], name="u"))
    session = drive(Session(replace(spec, tasks=tasks, references=(reference,))), coin([mean]), slots=4)
    assert session.stopped.reason == reason
    assert 2 * 40 <= session.budget.completed <= most


@pytest.mark.parametrize(("questions", "trials"), [(30, 1), (100, 1), (30, 20)])
def test_a_reference_too_noisy_for_any_verdict_ends_the_run(questions, trials):
    spec = make_spec(1, questions, equivalence=0.02)
    reference = ReferenceSpec("old", {"t": counts_of(0.5, questions, trials, seed=3)})
    session = Session(replace(spec, references=(reference,)))
    drive(session, coin([0.5], spread=0.2), most=5_000)
    assert session.stopped is not None
    assert session.stopped.reason == "partial"
    assert session.stopped.evidence == {
        "open": 1,
        "open_models": 0,
        "silent": [],
        "spent": [],
        "noisy": ["old"],
    }
    assert "old are too noisy" in describe(session.stopped)


@pytest.mark.slow
@pytest.mark.parametrize("in_flight", [1, 2])
def test_a_simulation_ends_there_as_well(in_flight):
    reference = ReferenceSpec("old", {"t": counts_of(0.5, 40, 1, seed=3)})
    spec = replace(make_spec(1, 40, equivalence=0.02, max_passes=40), references=(reference,))
    result = simulate(spec, GivenChances([[0.5] * 40]), 5, 1, in_flight)
    assert result.reasons == {"partial": 5}


def test_a_reference_with_noise_does_not_end_a_run_that_can_still_decide():
    for seed in range(10):
        reference = ReferenceSpec("old", {"t": counts_of(0.5, 60, 1, seed=seed)})
        session = Session(replace(make_spec(1, 60), references=(reference,)))
        assert drive(session, coin([0.95], seed=seed)).stopped.reason == "resolved"


def test_what_its_noise_leaves_is_foreseen_from_two_trials_a_question():
    reference = ReferenceSpec("old", {"t": counts_of(0.5, 60, 1, seed=0)})
    spec = replace(make_spec(1, 60), references=(reference,), goal=GoalSpec("budget"))
    session, left = Session(spec), []
    for most in (120, 1_800):
        drive(session, coin([0.6], spread=0.2), most=most)
        left.append(Foresight(session.board, session.board.guard).without_noise(0, 1)[0])
    assert left[0] == pytest.approx(left[1], rel=0.25)


def test_a_reference_that_always_gave_the_same_answer_divides_by_no_zero():
    with np.errstate(all="raise", under="ignore"):
        same = drive(Session(against(make_spec(1, 200, equivalence=0.05), old=1.0)), coin([1.0]))
        other = drive(Session(against(make_spec(1, 200), old=0.0)), coin([1.0]))
    assert calls(same)[0][1] == "tie"
    assert calls(other)[0][1] == "better"


class TestThreshold:
    """Answers of references to the same questions predict those of a model that is held against a number."""

    EASY = np.repeat([0.95, 0.05], 50)

    def spec(self, easy, **settings):
        tables = [
            np.stack([8 - right, right], axis=1)
            for right in np.random.default_rng(1).binomial(8, easy, (3, 100))
        ]
        references = tuple(ReferenceSpec(f"old{number}", {"t": table}) for number, table in enumerate(tables))
        spec = make_spec(1, 100, goal="threshold", value=0.4, max_passes=20, **settings)
        return replace(spec, references=references)

    def called_at(self, spec):
        """Return the trials of runs of a model that scores .5 to its call, −1 without one."""
        return simulate(spec, GivenChances(self.EASY[None, :]), 20, seed=2, in_flight=1, workers=1).decided_at

    def test_a_call_takes_fewer_trials_if_they_find_the_same_questions_easy(self):
        without = self.called_at(replace(self.spec(self.EASY), references=()))
        alike, opposed = (self.called_at(self.spec(easy)) for easy in (self.EASY, self.EASY[::-1]))
        assert min(without.min(), alike.min(), opposed.min()) > 0
        assert alike.mean() < 0.7 * without.mean()
        assert opposed.mean() < 1.6 * without.mean()

    def test_no_call_is_for_the_side_that_the_score_is_not_on(self):
        """The model solves most of the first questions, fewer than is predicted, and none of the others."""
        sequence = Session(self.spec(self.EASY)).board.run_sequence.sequences[0]
        easy = np.full(100, 0.01)
        easy[sequence.question(0, 50)] = 0.99
        session = Session(replace(self.spec(easy), goal=GoalSpec("threshold", value=0.55)))
        drive(session, lambda request: int(request.key.index < 53 and request.key.index % 10 < 7))
        called = [one for one in session.decisions if one.verdict in ("better", "worse")]
        assert [(one.verdict, one.step > 53) for one in called] == [("worse", True)]

    @pytest.mark.slow
    def test_of_a_population_of_questions_nothing_is_predicted(self):
        spec = self.spec(self.EASY, target="population")
        without = self.called_at(replace(spec, references=()))
        assert np.array_equal(self.called_at(spec), without)
        assert (without > 0).any()
