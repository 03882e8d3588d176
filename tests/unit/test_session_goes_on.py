"""Sessions that go on: models that stop and return, and histories of any kind."""

import itertools
import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, coin, counts_of, drive, make_spec

from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import BudgetSpec, PriorSpec, ReferenceSpec, TaskSpec
from adaptive_eval.errors import SessionError
from adaptive_eval.trial import TrialKey, TrialOutcome
from scorio.eval import bayes

# Every combination of goal, policy and question order goes on until it can say why it stops.


MEANS = (0.9, 0.7, 0.5, 0.1)
POLICIES = ("round-robin", "uniform")


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("order", ["schedule", "rounds"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("own", [None, 60])
def test_a_budget_is_spent_though_every_pair_is_decided(policy, order, own):
    """To its last trial, by the others where one model has spent its own."""
    spec = make_spec(3, 12, goal="budget", equivalence=0.5, policy=policy, rounds=order, trials=700)
    first, *others = spec.models
    spec = replace(spec, models=(replace(first, budget=BudgetSpec(trials=own)), *others))
    session = drive(Session(spec), coin(MEANS), slots=3)
    assert (session.budget.completed, session.stopped.reason) == (700, "budget")
    assert own is None or session.states.issued[0] == own
    verdicts = {pair.verdict for pair in session.results().pairs}
    assert ("open" in verdicts) == (own is not None)


def test_rounds_after_the_last_verdict_do_not_depend_on_the_order_of_arrival():
    spec = make_spec(3, 12, goal="budget", equivalence=0.5, trials=600, rounds="rounds")
    counts = []
    for slots in (1, 5, 16):
        session = drive(Session(spec), coin(MEANS), slots=slots, rng=np.random.default_rng(slots))
        sequence = session.board.cells[0].sequence
        counts.append(sequence.question(0, 150).tolist())
    assert counts[0] == counts[1] == counts[2]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("slots", [1, 7])
def test_a_model_by_itself_waits_for_no_other(policy, slots):
    """The last model is decided first; it must not hold the others back."""
    spec = make_spec(4, 60, goal="threshold", value=0.5, equivalence=0.2, max_passes=40, policy=policy)
    session = drive(Session(spec), coin((0.5, 0.5, 0.5, 1.0)), slots=slots)
    assert session.stopped.reason == "resolved"
    if policy != "uniform":
        assert session.states.issued[3] < min(session.states.issued[:3])


def test_scores_of_several_tasks_can_be_reviewed_at_every_step_that_is_not_forgotten():
    """At most steps one task is asked, and the others stand where they were asked last."""
    sizes = {"s": 30, "t": 5}
    tasks = tuple(TaskSpec(name, tuple(f"q{n}" for n in range(size))) for name, size in sizes.items())
    board = Session(replace(make_spec(2), tasks=tasks)).board
    for model, step in itertools.product(range(2), range(4000)):
        board.add(model, step, step % 2)
    board.absorb()
    for before in range(4000):
        board.forget(before)
        for cells, local in zip(board.cells, board.run_sequence.local(before + 1), strict=True):
            assert local == 0 or cells.path(np.arange(2), local - 1, local).seen.shape == (2, 1)


# A model that was not needed for a while and is needed again (best k of close models).


CLOSE = [0.8, 0.68, 0.53, 0.5]


@pytest.mark.parametrize(
    ("seed", "model", "most", "retired"), [(0, "m0", 1, 1), (2, "m0", 3, 1), (41, "m3", 3, 2)]
)
def test_it_catches_up_while_nothing_is_asked_of_the_others_and_the_run_ends_resolved(
    seed, model, most, retired
):
    spec = make_spec(4, 30, goal="top-k", k=2, max_passes=60, seed=seed)
    answer = coin(CLOSE, seed=seed)
    wide = drive(Session(spec), answer, slots=16)
    narrow = drive_in_all(Session(spec), answer, most)
    assert wide.stopped.reason == narrow.stopped.reason == "resolved"
    said, other = ({call[0]: call[1] for call in calls(one)} for one in (narrow, wide))
    assert said.keys() & other.keys()
    assert all(said[pair] == other[pair] for pair in said.keys() & other.keys())
    assert [one.models for one in narrow.decisions if one.kind == "retired"].count((model,)) == retired
    last = max(decision.step for decision in narrow.decisions if decision.kind == "pair")
    assert max(narrow.states.issued) <= last + 1


def test_without_free_slots_the_run_waits_instead_of_ending():
    session = Session(make_spec(2, 30, max_passes=60))
    assert session.ask({"m0": 0, "m1": 0}) == []
    assert session.stopped is None


def drive_in_all(session, answer, most):
    """Run a session with at most so many trials in flight over all models."""
    while session.stopped is None:
        requests = session.ask(most)
        session.tell([TrialOutcome(request.key, answer(request)) for request in requests])
    return session


# Degenerate outcomes, weights, targets and logs: never a warning, a NaN, or a silent stop.


MILLION = 1_000_000


def assert_finite(session):
    """Check that no figure that is shown is NaN or infinite."""
    results = session.results()
    for line in (*results.models, *results.pairs):
        values = (getattr(line, name) for name in line.__slots__)
        assert all(math.isfinite(value) for value in values if isinstance(value, float)), line


# Every answer of a model is the same: the estimated standard deviation of its trials is 0.


@pytest.mark.parametrize("rule", ["anytime", "exact", "zscore"])
@pytest.mark.parametrize(("answers", "verdicts"), [((0, 0), []), ((1, 1), []), ((1, 0), ["better"])])
def test_only_different_models_get_a_winner_under_any_rule(rule, answers, verdicts):
    session = Session(make_spec(2, 30, rule=rule, max_passes=3))
    drive(session, lambda request: answers[int(request.key.model[1:])])
    assert session.stopped.reason == ("resolved" if verdicts else "max_passes")
    assert [call[1] for call in calls(session)] == verdicts
    assert_finite(session)


@pytest.mark.parametrize(("value", "verdict"), [(0.0, "better"), (1.0, "open")])
def test_a_number_at_the_end_of_the_scale(value, verdict):
    spec = make_spec(2, 30, goal="threshold", value=value, max_passes=3)
    session = drive(Session(spec), lambda request: 1)
    assert {pair.verdict for pair in session.results().pairs} == {verdict}
    assert_finite(session)


def test_a_reference_with_a_million_trials_of_one_question():
    counts = np.zeros((30, 2), dtype=np.int64)
    counts[0] = MILLION // 4, 3 * MILLION // 4
    counts[1:, 1] = 2
    spec = make_spec(2, 30, equivalence=0.1, max_passes=30)
    session = Session(replace(spec, references=(ReferenceSpec("old", {"t": counts}),)))
    drive(session, coin((0.9, 0.4)))
    line = session.results().models[2]
    assert line.trials == MILLION + 58
    assert line.score == pytest.approx((0.75 + 29) / 30)
    assert_finite(session)


def test_one_model_has_nothing_to_rank():
    session = Session(make_spec(1, 10))
    assert session.ask(5) == []
    assert session.stopped.reason == "resolved"


def test_a_model_without_a_single_answer():
    session = Session(make_spec(3, 30, max_passes=2))
    drive(session, coin([1.0, 0.0, 0.0]), missing=lambda request: request.key.model == "m2")
    line = session.results().models[2]
    assert (line.score, line.missing) == (None, 60)
    assert [(call[0], call[1]) for call in calls(session)] == [(("m0", "m1"), "better")]


@pytest.mark.parametrize("why", ["noisy", "spent", "refused", "unusable"])
def test_what_ended_a_run_or_a_model_does_so_at_the_same_trial_when_it_is_replayed_one_by_one(why):
    spec, log = make_spec(3, 100, equivalence=0.02, max_passes=3), []
    if why == "noisy":
        reference = ReferenceSpec("old", {"t": counts_of(0.5, 100, 1, seed=3)})
        spec = replace(make_spec(1, 100, equivalence=0.02), references=(reference,))
    session = drive(Session(spec), coin([0.5, 0.5, 0.4], spread=0.2), slots=64, most=300, log=log)
    if why != "noisy":
        session.stop_model("m1", why, spent=why == "spent", unusable=why == "unusable")
        session.end("interrupted", "by hand")
    again = Session(spec)
    again.replay([[outcome] for batch in log for outcome in batch])
    for decision in session.decisions:
        if decision.kind in ("stop", "model_stopped"):
            again.repeat(decision)
    assert again.decisions == session.decisions
    assert again.stopped == session.stopped is not None


def test_replay_of_a_log_with_holes_asks_for_them_first():
    session = Session(make_spec(2, 30))
    session.replay([[TrialOutcome(TrialKey("m0", step), 1) for step in (0, 1, 4)]])
    requests = session.ask({"m0": 3, "m1": 0})
    assert [request.key.index for request in requests][:2] == [2, 3]


@pytest.mark.parametrize(("rounds", "index"), [("rounds", 999), (None, 2_000_000)])
def test_a_log_with_a_trial_that_nothing_leads_to_is_refused(rounds, index):
    chosen = {} if rounds is None else {"rounds": rounds}
    session = Session(make_spec(2, 20, **chosen))
    with pytest.raises(SessionError, match=f"trial {index:,} of"):
        session.replay([[TrialOutcome(TrialKey("m0", index), 1)]])


# Earlier trials in a session: in Bayes@N, and in no decision.


SOURCE = "2 earlier trials a question from runs/previous"


def prior(*chances, trials=2):
    """Prior of models m0, m1, …; None for one without earlier trials."""
    known = {model: chance for model, chance in enumerate(chances) if chance is not None}
    counts = {f"m{model}": counts_of(chance, 30, trials, seed=model) for model, chance in known.items()}
    tables = {model: {"t": table} for model, table in counts.items()}
    return PriorSpec(tables, SOURCE)


def line_of(session, model):
    return {line.model: line for line in session.results().models}[model]


@pytest.mark.parametrize(
    "settings",
    [{"rule": "anytime"}, {"rule": "zscore"}, {"goal": "threshold", "value": 0.4}],
    ids=["anytime", "zscore", "threshold"],
)
def test_a_prior_enters_no_decision_nor_any_figure_but_bayes(settings):
    spec, answer = make_spec(3, 30, max_passes=3, **settings), coin([0.9, 0.5, 0.2])
    without = drive(Session(spec), answer)
    session = drive(Session(replace(spec, prior=prior(0.9, 0.1, 0.6))), answer)
    assert session.decisions == without.decisions
    assert session.results().pairs == without.results().pairs
    for line, other in zip(session.results().models, without.results().models, strict=True):
        assert line.bayes_mu != other.bayes_mu
        assert replace(line, bayes_mu=other.bayes_mu, bayes_sigma=other.bayes_sigma) == other


class TestBayes:
    @pytest.mark.parametrize("earlier", [0, 1])
    def test_each_task_starts_from_the_earlier_trials_of_its_own(self, earlier):
        tables = {f"m{earlier}": {"t": counts_of(0.9), "u": counts_of(0.2, trials=10)}}
        spec = make_spec(2, 30, goal="budget", trials=240)
        tasks = (spec.tasks[0], replace(spec.tasks[0], name="u", weight=3.0))
        spec = replace(spec, tasks=tasks, prior=PriorSpec(tables, SOURCE))
        session, shares = drive(Session(spec), coin([0.6, 0.5])), np.array([0.25, 0.75])
        for model in range(2):
            own = tables.get(f"m{model}", {"t": None, "u": None})
            counts = zip((cells.counts[model] for cells in session.board.cells), own.values(), strict=True)
            mu, sigma = np.transpose([bayes(None, counts=now, prior_counts=old) for now, old in counts])
            line = session.results().models[model]
            assert (line.bayes_mu, line.bayes_sigma) == pytest.approx(
                (shares @ mu, np.linalg.norm(shares * sigma))
            )

    def test_says_what_is_in_it_also_after_a_trip_through_the_run_file(self):
        results = Session(replace(make_spec(2, 30), prior=prior(0.8, 0.2))).results()
        assert results.prior == SOURCE
        assert from_json(json.loads(json.dumps(to_json(results)))) == results
        assert Session(make_spec(2, 30)).results().prior is None
