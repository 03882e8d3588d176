"""An answer that is overdue: the session plans without it, and decides as if nobody had said so."""

from dataclasses import replace

import pytest
import run_examples as runs
from session_scripts import calls, coin, make_spec

from adaptive_eval.build.replay import replay
from adaptive_eval.build.rescored_results import rescored_results
from adaptive_eval.core.overdue_plan import OverduePlan
from adaptive_eval.core.session import Session
from adaptive_eval.errors import SessionError
from adaptive_eval.store.reader import RunReader
from adaptive_eval.store.writer import salvage
from adaptive_eval.trial import LAID_OUT, Missing, TrialKey, TrialOutcome
from adaptive_eval.views.decision_sentences import describe
from adaptive_eval.views.reading import layouts

MEANS = (0.25, 0.45, 0.55, 0.85)
SCHEDULE = make_spec(4, 60, equivalence=0.06, max_passes=60, seed=2)
ROUNDS = make_spec(4, 30, equivalence=0.06, max_passes=60, rounds="rounds", seed=2)
HUNG = TrialKey("m0", 37)


class Hung:
    """A session of which one answer hangs, until everything else is answered and nothing more is asked."""

    def __init__(self, spec, *, key=HUNG, lost=None, overdue_after=60, slots=12):
        self.session, self.key, self.lost, self.slots = Session(spec), key, lost, slots
        self.overdue_after = overdue_after  # answers of the model after which it is said to be overdue
        self.answer = coin(MEANS, seed=4)
        self.asked, self.log, self.flying = [], [], []

    def go(self, most=10**6):
        """Answer trials in the order in which they were asked, until only the one that hangs is left."""
        session = self.session
        while len(self.log) < most:
            self.ask()
            ready = [one for one in self.flying if one.key != self.key]
            if session.stopped is not None or not ready:
                return self
            self.flying.remove(ready[0])
            outcome = TrialOutcome(ready[0].key, self.answer(ready[0]))
            if ready[0].key == self.lost:
                outcome = Missing(ready[0].key, "timeout")
            self.tell(outcome)
            told = sum(one.key.model == HUNG.model for one in self.log)
            if told == self.overdue_after and self.key is not None:
                session.overdue([self.key])
        return self

    def ask(self):
        new = self.session.ask(self.slots - len(self.flying))
        self.flying += new
        self.asked += new

    def tell(self, outcome):
        self.session.tell([outcome])
        self.log.append(outcome)

    def end(self, *, lost):
        """Tell the answer that hung, or its loss, and go on to the end."""
        (request,) = (one for one in self.flying if one.key == self.key)
        self.flying.remove(request)
        answer = TrialOutcome(self.key, self.answer(request))
        self.tell(Missing(self.key, "timeout") if lost else answer)
        self.key = None
        return self.go()

    @property
    def issued(self):
        return self.session.states.issued


def again(driven, log=None, decisions=None):
    """Return a fresh session to which the log was replayed."""
    session = Session(driven.session.spec)
    laid_out = driven.session.decisions if decisions is None else decisions
    session.replay([[one] for one in (driven.log if log is None else log)], decisions=laid_out)
    return session


@pytest.mark.slow
@pytest.mark.parametrize("spec", [SCHEDULE, ROUNDS], ids=["schedule", "rounds"])
def test_while_an_answer_hangs_models_are_asked_what_they_need_without_it_and_no_further(spec):
    """Without a plan the others ask more."""
    free, hung = Hung(spec, key=None).go(), Hung(spec).go()
    assert free.session.stopped.reason == "resolved"
    assert hung.session.stopped is None
    for mine, theirs in zip(hung.issued, free.issued, strict=True):
        assert 0.85 * theirs <= mine <= 1.1 * theirs, (hung.issued, free.issued)
    unplanned = Hung(spec, overdue_after=0).go()
    assert sum(unplanned.issued[1:]) > 1.05 * sum(hung.issued[1:])


def only_before(session, key):
    """Return whether no pair of a model was called at or after the answer that hangs."""
    return all(step <= key.index for models, _, step, _ in calls(session) if key.model in models)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("spec", [SCHEDULE, ROUNDS], ids=["schedule", "rounds"])
def test_the_answer_that_hung_counts_in_its_place_and_decides_as_in_a_replay(spec, lost):
    """The replay knows of no plan; of rounds it is told how they were laid out."""
    hung = Hung(spec).go()
    first = {one.key.model for one in hung.asked}
    assert first == set(spec.names)
    assert only_before(hung.session, HUNG)
    waiting = {line.model: line.waits_for for line in hung.session.results().models if line.waits_for}
    assert waiting == dict.fromkeys(("m1", "m2", "m3"), ("m0",))
    most = 1.1 * sum(hung.issued)
    if lost:
        most = 1.1 * sum(Hung(spec, key=None, lost=HUNG).go().issued)
    hung.end(lost=lost)
    assert hung.session.stopped.reason == "resolved"
    assert sum(hung.issued) <= most
    replayed = again(hung)
    assert calls(replayed) == calls(hung.session)
    assert replayed.stopped.reason == "resolved"
    for mine, theirs in zip(replayed.results().models, hung.session.results().models, strict=True):
        assert replace(mine, issued=0) == replace(theirs, issued=0)
    replayed.board.require_asked((one.key, one.task, one.question) for one in hung.asked)


def laid_out(session):
    return [one for one in session.decisions if one.kind == LAID_OUT]


def test_a_round_that_is_laid_out_while_an_answer_is_awaited_is_told_and_stays():
    """The first round begins at 60 and is laid out at 45, the next at 90."""
    hung = Hung(ROUNDS).go()
    told = laid_out(hung.session)
    assert [one.models for one in told] == [("m0",)] * len(told)
    assert [one.evidence for one in told] == [{"awaited": [[37, 0]]}] * len(told)
    assert len(told) >= 2
    assert told[0].step >= 45
    assert [one.step for one in told] == sorted(one.step for one in told)
    assert describe(told[0]) == "the next round of m0 is laid out without what is awaited: trial 37"
    asked = {one.key: one.question for one in hung.asked}
    hung.end(lost=False)
    place = hung.session.board.run_sequence.at
    assert all(f"q{place(key.index, int(key.model[1:]))[1]}" == asked[key] for key in asked)
    assert laid_out(again(hung)) == []  # it is stored already


@pytest.mark.parametrize("told", [150, 400])
def test_a_session_that_was_killed_while_an_answer_hung_goes_on_with_the_rounds_that_it_had(told):
    """What was in flight is asked again, the answer that hung among it."""
    hung = Hung(ROUNDS).go(told)
    resumed = Hung(ROUNDS, key=None)
    resumed.session, resumed.log, resumed.asked = again(hung), list(hung.log), list(hung.asked)
    resumed.go()
    assert resumed.session.stopped.reason == "resolved"
    questions = {}
    for one in resumed.asked:
        assert questions.setdefault(one.key, one.question) == one.question
    twice = again(resumed, decisions=[*hung.session.decisions, *resumed.session.decisions])
    assert calls(twice) == calls(resumed.session)


@pytest.mark.parametrize(("index", "others"), [(37, 60), (44, 44)])
def test_a_round_is_laid_out_again_without_an_answer_that_came_right_after_it(index, others):
    """The answer is another one than that which stood for it, so that the round would be another one too.

    Answers that follow it may have come or not.
    """
    hung = Hung(ROUNDS, key=TrialKey("m0", index), overdue_after=others, slots=12 if others > index else 8)
    hung.answer = coin(MEANS[1:] + MEANS[:1], seed=4, spread=0.5)
    while not laid_out(hung.session):
        hung.go(len(hung.log) + 1)
    hung.flying = [one for one in hung.flying if one.key != hung.key]
    (stood,) = (category for _, category in laid_out(hung.session)[0].evidence["awaited"])
    hung.tell(TrialOutcome(hung.key, 1 - stood))
    hung.key = None
    hung.go()
    again(hung).board.require_asked((one.key, one.task, one.question) for one in hung.asked)


@pytest.mark.slow
def test_rounds_are_laid_out_again_where_answers_are_scored_in_fewer_categories():
    """What stood for the answer that hung was in the last of three; they are stored by two of them now."""
    hung = Hung(replace(ROUNDS, tasks=(replace(ROUNDS.tasks[0], weights=(0.0, 0.5, 1.0)),)))
    hung.answer = lambda one: 2 * coin(MEANS[::-1], seed=4)(one)
    hung.go()
    assert [one.evidence for one in laid_out(hung.session)] == [{"awaited": [[37, 2]]}]
    fewer, asked = Session(ROUNDS), [(one.key, one.task, one.question) for one in hung.asked]
    fewer.board.keep_questions(asked)
    log = [[replace(one, category=one.category // 2)] for one in hung.log]
    fewer.replay(log, decisions=hung.session.decisions)
    fewer.board.require_asked(asked)
    assert fewer.board.complete == hung.session.board.complete
    assert fewer.states.issued == hung.session.states.issued


def test_without_the_decision_a_log_beyond_what_is_laid_out_is_refused():
    hung = Hung(ROUNDS).go()
    with pytest.raises(SessionError, match="no question"):
        again(hung, decisions=[])


def test_answers_of_two_models_that_hang_are_left_out_one_by_one():
    keys = [HUNG, TrialKey("m2", 20)]
    session, answer = Session(SCHEDULE), coin(MEANS, seed=4)
    flying, held, told = [], {}, 0
    while True:
        for one in session.ask(12 - len(flying) - len(held)):
            if one.key in keys:
                held[one.key] = one
            else:
                flying.append(one)
        if not flying:
            break
        one = flying.pop(0)
        session.tell([TrialOutcome(one.key, answer(one))])
        told += 1
        if told in (200, 400):
            session.overdue(list(held)[: told // 200])
    free = Hung(SCHEDULE, key=None).go()
    assert sum(session.states.issued) <= 1.25 * sum(free.issued)
    assert only_before(session, keys[0])
    assert only_before(session, keys[1])
    for key in keys:
        session.tell([TrialOutcome(key, answer(held[key]))])
    assert not only_before(session, keys[0])
    assert not only_before(session, keys[1])


@pytest.mark.parametrize("spec", [SCHEDULE, ROUNDS], ids=["schedule", "rounds"])
@pytest.mark.parametrize("first", range(4))
def test_of_several_answers_that_hang_those_that_have_not_come_stay_left_out(spec, first):
    """Two are of one model; one comes, one is lost, one is given up, and of one the model is stopped."""
    session = Session(spec)
    requests = [request for _ in range(3) for request in session.ask(24)]
    hung = [requests[place] for place in (1, 6, 9, 15)]
    assert len({one.key.model for one in hung}) == 3
    session.tell([TrialOutcome(one.key, 1) for one in requests if one not in hung])
    session.overdue([one.key for one in hung])

    def left_out():
        plan = session._planner.plan
        names = session.spec.names
        return set() if plan is None else {TrialKey(names[model], index) for model, index in plan.overdue}

    ends = [
        lambda key: session.tell([TrialOutcome(key, 0)]),
        lambda key: session.tell([Missing(key, "timeout")]),
        lambda key: session.abandon(key, billed=True),
        lambda key: session.stop_model(key.model, "it refuses"),
    ]
    assert left_out() == {one.key for one in hung}
    while hung:
        key = hung.pop(first % len(hung)).key
        ends.pop(0)(key)
        assert left_out() == {
            one.key for one in hung if session.board.model(one.key.model) not in session.states.stopped
        }


def test_an_answer_to_the_same_task_stands_for_it():
    """More answers are to the other task, all of a category that this one does not have."""
    spec = make_spec(2, 30)
    other = replace(spec.tasks[0], name="other", weights=(0.0, 0.5, 1.0))
    session = Session(replace(spec, tasks=(*spec.tasks, other)))
    requests = session.ask(40)
    held = next(one for one in requests if one.task == "t" and one.key.index > 4)
    there = [one for one in requests if one is not held]
    session.tell([TrialOutcome(one.key, 2 if one.task == "other" else 1) for one in there])
    session.overdue([held.key])
    assert len(session.ask(10)) == 10
    assert session._planner.plan.overdue == {(0, held.key.index): 1}


def test_only_a_trial_in_flight_is_overdue():
    session = Session(SCHEDULE)
    with pytest.raises(SessionError, match="not in flight"):
        session.overdue([HUNG])


@pytest.mark.parametrize("end", ["abandon", "stop_model"])
def test_what_is_not_awaited_any_more_is_planned_for_again(end):
    hung = Hung(SCHEDULE).go()
    if end == "abandon":
        hung.session.abandon(HUNG, billed=False)
        hung.flying = [one for one in hung.flying if one.key != HUNG]
        hung.key = None
    else:
        hung.session.stop_model("m0", "gone")
    hung.go()
    reason = hung.session.stopped.reason
    assert reason == ("resolved" if end == "abandon" else "partial")


def test_a_session_in_which_nothing_is_overdue_makes_no_plan(monkeypatch):
    monkeypatch.setattr(OverduePlan, "__init__", None)
    assert Hung(ROUNDS, key=None).go().session.stopped.reason == "resolved"
    ends_at_budget = make_spec(2, 60, goal="budget", trials=300)
    session = Session(ends_at_budget)
    session.overdue([one.key for one in session.ask(2)])


class HungSession(Session):
    """Answers nothing of one trial before it asks for nothing else."""

    held = None

    def ask(self, capacity):
        requests = super().ask(capacity)
        for one in requests:
            if one.key == TrialKey("oak", 37):
                self.held = one
        asked = [one for one in requests if one is not self.held]
        if not asked and self.held is not None:
            return [self.held]
        return asked

    def tell(self, outcomes):
        decisions = super().tell(outcomes)
        if self.held is not None and self.held.key not in [one.key for one in outcomes]:
            decisions += self.overdue([self.held.key])
        return decisions


def test_a_run_in_which_an_answer_hung_is_made_again_as_it_is_stored(tmp_path):
    coins = runs.COINS | {"oak": 0.5}
    spec = runs.spec_of(coins, rounds="rounds", max_passes=80)
    text = runs.config_of(spec)
    about = {"name": "forest", "started_at": repr(runs.STARTED), "config": text, "seed": "7"}
    about |= runs.description_of(text, spec)
    session = HungSession(spec)
    runs.store_run(tmp_path / "run", about, session, runs.Coins(coins).answer)
    assert session.stopped.reason == "resolved"
    with RunReader(tmp_path / "run") as reader:
        assert layouts(reader) == laid_out(session) != []
        found = replay(reader)
        by_other_scores = rescored_results(reader, spec, {}, {}, reader.count())
    assert found.disagreements == ()
    assert found.results.pairs == session.results().pairs
    assert by_other_scores.pairs == found.results.pairs
    salvage(tmp_path / "run", tmp_path / "copy")
    with RunReader(tmp_path / "copy") as reader:
        assert layouts(reader) == laid_out(session)
        assert replay(reader).results.pairs == found.results.pairs


@pytest.mark.parametrize("rule", ["anytime", "exact"])
@pytest.mark.parametrize("seed", [0, 7])
def test_a_plan_that_has_found_the_best_waits_for_the_answer_that_hangs(rule, seed):
    """Then some pairs are open that nobody needs, and other answers still come."""
    options = {"goal": "top-k", "k": 2, "equivalence": 0.1, "max_passes": 60, "rule": rule}
    hung = Hung(make_spec(4, 30, seed=seed, **options), key=TrialKey("m1", 37))
    hung.answer = coin((0.2, 0.4, 0.6, 0.9), seed=seed)
    hung.go()
    assert hung.session.stopped is None
    assert hung.end(lost=False).session.stopped.reason == "resolved"
    assert calls(again(hung)) == calls(hung.session)
