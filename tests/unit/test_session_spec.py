"""Specifications made by hand, and rules and policies of packages: mistakes are refused by name."""

from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core import plugins
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, GoalSpec, ModelSpec, Price, StoppingSpec, TaskSpec
from adaptive_eval.errors import SessionError, UsageError, UserCodeError
from adaptive_eval.options import decisions
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.promises import explain, promises
from adaptive_eval.views.sentences import repeat_notices
from scorio.sequential.rules import Anytime

# Specifications made by hand: mistakes are refused by name, and what can never be decided is said.


TASK = TaskSpec("t", tuple(f"q{n}" for n in range(30)))
SPEC = make_spec(3, 30, max_passes=3)


def inner(**parts):
    return GoalSpec("all", goals=(GoalSpec("ranking"), GoalSpec(**parts)))


def test_a_margin_is_in_units_of_the_score():
    points = (replace(TASK, weights=(0.0, 100.0)),)
    Session(replace(SPEC, tasks=points, stopping=StoppingSpec(equivalence=5.0)))


@pytest.mark.parametrize(
    ("spend", "size", "said"), [("usd", 101, 1), ("tokens", 101, 1), ("usd", 100, 0), ("trials", 101, 0)]
)
def test_costs_that_only_rounds_could_save_are_named(spend, size, said):
    spec = replace(make_spec(2, size), spend=spend)
    spec = replace(spec, allocation=replace(spec.allocation, questions="auto"))
    assert len(repeat_notices(spec)) == said
    rounds = replace(spec.allocation, questions="rounds")
    assert repeat_notices(replace(spec, allocation=rounds)) == []
    exact = replace(spec, stopping=replace(spec.stopping, rule="exact"))
    advised = [notice for notice in repeat_notices(exact) if "questions: rounds" in notice]
    assert advised == []  # they would be refused


@pytest.mark.parametrize("rule", ["anytime", "exact"])
@pytest.mark.parametrize("questions", [1, 2, 3, 9])
def test_few_questions_are_decided_after_ten_trials_of_each_model_at_the_earliest(rule, questions):
    session = drive(Session(make_spec(2, questions, rule=rule, max_passes=50)), coin((1.0, 0.0)))
    results = session.results()
    assert (session.stopped.reason, results.warnings) == ("resolved", ())
    if rule == "anytime":
        assert [call[2] for call in calls(session)] == [10]


@pytest.mark.parametrize(
    ("goal", "k", "family"),
    [
        (GoalSpec("top-k", k=2), 2, "top-set"),
        (GoalSpec("ranking"), None, "holm"),
        (GoalSpec("all", goals=(GoalSpec("width", width=0.2), GoalSpec("top-k", k=1))), 1, "holm"),
        (GoalSpec("all", goals=(GoalSpec("ranking"), GoalSpec("top-k", k=1))), None, "holm"),
    ],
)
def test_results_say_what_was_asked_and_by_which_rule(goal, k, family):
    spec = make_spec(3, 20, confidence=0.9, equivalence=0.07, ties="family", target="population")
    task = replace(spec.tasks[0], weights=(1.0, 4.0))
    tasks = (task, replace(task, name="u"))
    results = Session(replace(spec, goal=goal, tasks=tasks, spend="tokens")).results()
    assert (results.goal, results.top_k, results.family) == (goal.text, k, family)
    assert (results.rule, results.confidence, results.equivalence) == ("anytime", 0.9, 0.07)
    assert (results.ties, results.target, results.spend) == ("family", "population", "tokens")
    assert (results.questions, results.scale, results.in_rounds) == (40, (1.0, 4.0), ())
    assert [line.task for line in results.tasks] == ["t", "u"]
    assert (results.trials, results.stop, results.prior, results.fixed_passes) == (0, None, None, None)


def test_a_sample_of_twelve_questions_is_decided():
    spec = replace(make_spec(2, 12), stopping=StoppingSpec(target="population", max_passes=80))
    session = drive(Session(spec), coin((0.95, 0.2), spread=0.0))
    assert session.stopped.reason == "resolved"
    assert 10 <= calls(session)[0][2] <= 52


def sampled(clusters, **parts):
    tasks = (replace(TASK, questions=tuple(map(str, range(len(clusters)))), clusters=tuple(clusters)),)
    stopping = StoppingSpec(target="population", max_passes=50)
    return Session(replace(make_spec(2, 1), tasks=tasks, stopping=stopping, **parts))


@pytest.mark.parametrize(("clusters", "ends"), [("abcd" * 10, True), ("abcdefghijklmnop" * 2, False)])
def test_a_sample_that_no_answers_could_decide_is_told_and_ends_after_one_pass(clusters, ends):
    session = drive(sampled(clusters), coin((1.0, 0.0)))
    codes = [text.code for text in session.results().warnings]
    assert (session.stopped.reason, "warning/undecidable" in codes) == (
        ("partial", True) if ends else ("resolved", False)
    )
    assert not ends or session.stopped.evidence == {
        "open": 1,
        "open_models": 0,
        "silent": [],
        "spent": [],
        "sample": True,
    }
    if ends:
        assert sum(session.states.issued) <= 2 * len(clusters) + 8
        assert "too few for any verdict" in describe(session.stopped)


def test_what_a_sample_can_decide_is_asked_for_although_no_answers_give_such_a_width():
    clusters = "abcdefgh" * 4
    session = drive(sampled(clusters, goal=inner(kind="width", width=0.9)), coin((0.95, 0.05), spread=0.0))
    assert [call[0] for call in calls(session)] == [("m0", "m1")]
    assert session.stopped.reason == "partial"
    assert session.stopped.evidence["sample"]
    assert min(session.states.issued) > len(clusters)


EVEN, BOUNDED, ENDLESS = "abcdefghij" * 3, StoppingSpec(max_passes=2), StoppingSpec()
SCALES = (replace(TASK, name="a"), replace(TASK, name="b", weights=(0.0, 9.0)))
PRICED = (ModelSpec("a", 9, Price(1.0, 1.0)), ModelSpec("b", 9))
WARNED = [
    ({"clusters": "a" * 30}, "undecidable"),
    ({"clusters": "abcde" * 6}, "undecidable"),
    ({"clusters": EVEN}, ""),
    ({"clusters": EVEN[:27] + "abc", "confidence": 0.99}, "undecidable"),
    ({"clusters": "a" * 21 + "bcdefghij"}, "undecidable"),  # worth two of equal sizes
    ({"clusters": "aaa" + "b" * 9 + "cddeeeffgghhiijjkk", "goal": GoalSpec("budget")}, "few-clusters"),
    ({"clusters": EVEN + "k", "goal": GoalSpec("budget")}, ""),
    ({"stopping": ENDLESS}, "unbounded"),
    ({"stopping": BOUNDED}, ""),
    ({"stopping": StoppingSpec(equivalence=0.1)}, ""),
    ({"stopping": ENDLESS, "budget": BudgetSpec(trials=9)}, ""),
    ({"goal": GoalSpec("budget"), "stopping": StoppingSpec(equivalence=0.1)}, "unbounded"),
    ({"models": PRICED, "budget": BudgetSpec(usd=1.0)}, "no-price"),
    ({"tasks": SCALES}, "scales"),
    ({"tasks": SCALES[:1]}, ""),
]


@pytest.mark.parametrize(("parts", "code"), WARNED)
def test_what_can_never_be_decided_is_warned_of(parts, code):
    parts = dict(parts)
    if "clusters" in parts:
        population = replace(BOUNDED, target="population", confidence=parts.get("confidence", 0.95))
        clusters = tuple(parts.pop("clusters"))
        task = replace(TASK, questions=tuple(map(str, range(len(clusters)))), clusters=clusters)
        parts = {**parts, "tasks": (task,), "stopping": population}
        parts.pop("confidence", None)
    found = Session(replace(SPEC, **parts)).results().warnings
    assert [text.code for text in found] == [f"warning/{code}"] * bool(code)


def test_margin_width_and_threshold_keep_their_share_of_other_scores():
    points = replace(TASK, weights=(-20.0, 80.0))
    claim = GoalSpec("not-worse", model="m0", margin=85.0)
    goals = (GoalSpec("width", width=90.0), GoalSpec("threshold", value=55.0), claim)
    goal = inner(kind="all", goals=goals)
    spec = replace(SPEC, tasks=(points,), goal=goal, stopping=StoppingSpec(equivalence=8.0))
    graded = spec.rescored({"t": (4.0, 0.0, 1.0)})
    assert graded.tasks[0].weights == (4.0, 0.0, 1.0)
    assert graded.stopping.equivalence == pytest.approx(0.32)
    width, threshold, claim = graded.goal.goals[1].goals
    assert (width.width, threshold.value, claim.margin) == pytest.approx((3.6, 3.0, 3.4))
    assert spec.rescored({"t": (-20.0, 0.0, 80.0)}).stopping == spec.stopping
    Session(graded)
    Session(spec)


def test_verdicts_and_the_limits_of_noise_at_temperature_0_share_the_error_rate():
    spec = make_spec(3, 20, greedy=True)
    spec = replace(spec, tasks=(*spec.tasks, TaskSpec("u", ("a", "b"))))
    levels = spec.levels(spec.rule(), 3)
    assert levels.level == levels.alpha == pytest.approx(0.05 - 3 * 2 * spec.flip_level)
    assert spec.flip_level > 0.0


# Rules and policies of packages: what they hand back is checked before it decides anything.


class Own(Anytime):
    """A rule whose statistic and ties a test can spoil."""

    promise = "as anytime."
    spoil_statistic = staticmethod(lambda found: found)
    spoil_tie = staticmethod(lambda found: found)

    def statistic(self, block, complete):
        return self.spoil_statistic(super().statistic(block, complete))

    def tied(self, block):
        return self.spoil_tie(super().tied(block))


class OwnThreshold(Own):
    fixed_threshold = 4.0


class Idle:
    def choose(self, view, free):
        return iter(())


class Elsewhere:
    def choose(self, view, free):
        return iter([7])


@pytest.fixture
def offer(monkeypatch):
    """Return a function that lets a package offer names of this module."""

    def add(group, **names):
        points = [EntryPoint(name, f"{__name__}:{target}", group) for name, target in names.items()]
        for module in (plugins, decisions):
            monkeypatch.setattr(module, "entry_points", lambda group: [p for p in points if p.group == group])

    return add


def run(**parts):
    settings = {"equivalence": 0.15, "max_passes": 60} | parts
    return drive(Session(make_spec(3, 30, **settings)), coin((0.9, 0.5, 0.45)))


def test_a_packages_rule_decides_like_ours(offer):
    offer(decisions.RULE_GROUP, own="Own")
    session = run(rule="own")
    assert [call[:3] for call in calls(session)] == [call[:3] for call in calls(run())]
    assert "says of itself: as anytime." in explain(session.results(), "m0", "m1")
    assert session.forecast() is None


@pytest.mark.parametrize(("offered", "words"), [({"own": "Own", "more": "Own"}, "more, own"), ({}, "none")])
def test_a_rule_that_no_package_offers_is_refused_with_those_that_are(offer, offered, words):
    offer(decisions.RULE_GROUP, **offered)
    with pytest.raises(UserCodeError, match=f"offers 'other' .* installed: {words}$"):
        plugins.load_rule("other", 0.05, None)


@pytest.mark.parametrize(
    ("name", "words", "spoil"),
    [
        ("statistic", "return a number for each of", lambda found: found * np.nan),
        ("statistic", "return a number for each of", lambda found: found[:, :0]),
        ("statistic", "return a number for each of", lambda found: np.where(found > 0, np.nan, found)),
        ("tie", "say of each of", lambda found: found[:1, :1]),
        ("tie", "say of each of", lambda found: found.astype(float)),
    ],
)
def test_no_verdict_comes_from_what_is_no_number_or_truth_value(offer, monkeypatch, name, words, spoil):
    offer(decisions.RULE_GROUP, own="Own")
    monkeypatch.setattr(Own, f"spoil_{name}", staticmethod(spoil))
    with pytest.raises(SessionError, match=f"rule 'own' must {words}"):
        run(rule="own")


def test_a_rule_with_a_threshold_of_its_own_claims_no_family(offer):
    offer(decisions.RULE_GROUP, own="OwnThreshold")
    results = run(rule="own").results()
    said = promises(results)
    assert not any("All pairs together" in text for text in said.holds)
    assert "the family does not apply" in said.limits[0]
    assert results.pairs[0].threshold == 4.0


def test_what_is_no_rule_is_refused(offer):
    offer(decisions.RULE_GROUP, own="dict_of_nothing")
    with pytest.raises(UsageError, match="rule 'own' of an unnamed package lacks promise, warning, level"):
        run(rule="own")


def dict_of_nothing(alpha, equivalence):
    return {}


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("Elsewhere", SessionError, "policy 'own' chose model 7, which has no free slot"),
        ("Idle", SessionError, "policy 'own' asks for nothing although nothing is in flight"),
        ("NoSuchPolicy", UsageError, "cannot be loaded"),
    ],
)
def test_what_no_policy_does_is_refused(offer, name, error, words):
    offer(decisions.POLICY_GROUP, own=name)
    with pytest.raises(error, match=words):
        run(policy="own")
