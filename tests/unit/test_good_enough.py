"""A best model within the margin: no other is better by more, whatever the tasks, scores and rivals are."""

from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec, TaskSpec
from adaptive_eval.trial import TrialOutcome
from adaptive_eval.views.sentences import describe, promises
from scorio.sequential.evidence import log_evidence, log_evidence_above

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
    """Of four models, three pairs could make the best one wrong, and four the best two."""
    sizes = [GoalSpec("top-k", k=k) for k in (1, 2, 2)]
    spec = replace(make_spec(4, 60, equivalence=0.12), goal=GoalSpec("all", goals=tuple(sizes)))
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
