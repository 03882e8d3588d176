"""Decisions depend on the log alone: not on batches, concurrency or interruptions.

Another order of arrival leaves every contrast's course as it is. What is called by a level of its own falls
at the same step then; Holm's levels fall with the calls of others, which may come earlier or later.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from drawn import drawn
from hypothesis import given
from hypothesis import strategies as st
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import ReferenceSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialKey, TrialOutcome

FEW = drawn(8)
PLAIN = make_spec(4, 20, equivalence=0.3, family="pair")
MEANS = [0.85, 0.6, 0.6, 0.2]


def with_references():
    """Return a board of three models and two references, of which one lacks answers to some questions."""
    right = np.random.default_rng(3).binomial(6, [[0.8], [0.35]], (2, 40))
    tables = np.stack([6 - right, right], axis=2)
    tables[1, ::4] = 0
    old, older = (ReferenceSpec(name, {"t": table}) for name, table in zip("ab", tables, strict=True))
    return replace(make_spec(3, 40, equivalence=0.3, family="pair", max_passes=10), references=(old, older))


BOARDS = {
    "models": (PLAIN, MEANS),
    "in a row": (replace(PLAIN, samples_per_prompt=4), MEANS),
    "references": (with_references(), [0.85, 0.6, 0.2]),
    "tasks": (replace(PLAIN, tasks=(*PLAIN.tasks, TaskSpec("u", PLAIN.tasks[0].questions[:12]))), MEANS),
}
EACH_BOARD = pytest.mark.parametrize("board", BOARDS)


def lost(request):
    return (request.key.index * 7 + int(request.key.model[1:])) % 11 == 0


@cache
def undisturbed(board, missing=False):
    """Return the session of a board whose answers come in the order in which they were asked for."""
    spec, means = BOARDS[board]
    return drive(Session(spec), coin(means), slots=4, missing=lost if missing else None)


@pytest.mark.slow
@EACH_BOARD
@pytest.mark.parametrize("missing", [False, True])
@FEW
@given(seed=st.integers(0, 2**32 - 1), slots=st.integers(1, 60))
def test_arrival_order_and_concurrency_change_no_decision(board, missing, seed, slots):
    (spec, means), plain = BOARDS[board], undisturbed(board, missing)
    rng = np.random.default_rng(seed)
    shuffled = drive(Session(spec), coin(means), slots=slots, rng=rng, missing=lost if missing else None)
    assert sorted(calls(shuffled)) == sorted(calls(plain))
    # What lost answers could turn is never called: the pair with an old reference stays open.
    bounded = missing and board == "references"
    assert shuffled.stopped.reason == plain.stopped.reason == ("max_passes" if bounded else "resolved")
    assert (sum(model.missing for model in plain.results().models) > 0) is missing
    if board == "references":
        assert {call[0] for call in calls(plain)} >= {("m0", "b"), ("m2", "a")}


@pytest.mark.slow
@EACH_BOARD
@FEW
@given(seed=st.integers(0, 2**32 - 1), cut=st.floats(0.0, 1.0), batch=st.integers(1, 500))
def test_a_session_replayed_from_its_log_goes_on_to_the_same_decisions(board, seed, cut, batch):
    (spec, means), whole = BOARDS[board], undisturbed(board)
    rng = np.random.default_rng(seed)
    first = drive(Session(spec), coin(means), slots=9, rng=rng, most=int(cut * whole.budget.completed))
    log = [
        TrialOutcome(TrialKey(f"m{model}", step), first.board.category(model, step))
        for model in range(len(means))
        for step in range(first.states.issued[model])
        if first.board.category(model, step) is not None
    ]
    rng.shuffle(log)
    second = Session(spec)
    second.replay([log[start : start + batch] for start in range(0, len(log), batch)])
    assert second.budget.completed == len(log)
    if second.stopped is None:
        drive(second, coin(means), slots=5, rng=rng)
    assert sorted(calls(second)) == sorted(calls(whole))
    assert second.stopped.reason == whole.stopped.reason


GOALS = {
    "ranking": {"equivalence": 0.3},
    "ties together": {"equivalence": 0.3, "ties": "family"},
    "top-k": {"goal": "top-k", "k": 2, "equivalence": 0.2},
    "rounds": {"equivalence": 0.25, "rounds": "rounds"},
    "width": {"goal": "width", "width": 0.3},
}


def places(session):
    """Return where in the log each contrast was called."""
    pairs = [one for one in session.decisions if one.kind == "pair"]
    return [(one.models, one.verdict, one.step, one.trials) for one in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("goal", GOALS)
@drawn(3)
@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(1, 300))
def test_one_log_has_the_same_verdicts_however_it_is_batched(goal, seed, batch):
    """Told one by one, in batches, and again after a crash: the same calls, at the same places of the log."""
    spec = replace(make_spec(4, 20, max_passes=30, **GOALS[goal]), seed=seed)
    batches = []
    live = drive(Session(spec), coin(MEANS), slots=9, rng=np.random.default_rng(seed), log=batches)
    log = [outcome for told in batches for outcome in told]
    plain = places(live)
    assert plain
    for size in (1, batch, len(log)):
        again = Session(spec)
        again.replay([log[start : start + size] for start in range(0, len(log), size)])
        assert places(again) == plain
        assert calls(again) == calls(live)


def open_pairs(session):
    """Return how far the pairs without a verdict were read."""
    pairs = [one for one in session.results().pairs if one.verdict == "open"]
    return [(one.first, one.second, one.trials_each, one.questions, one.evidence) for one in pairs]


def retired(session):
    """Return when and why each model was last found to need no trial."""
    return {one.models: (one.step, one.evidence) for one in session.decisions if one.kind == "retired"}


ALIKE = [0.6, 0.5, 0.5, 0.45]


@pytest.mark.parametrize(
    ("goal", "seed", "share", "reason", "means"),
    [
        ("top-k", 12, None, "resolved", MEANS),
        ("top-k", 16, None, "resolved", MEANS),
        ("top-k", 10, None, "resolved", ALIKE),
        ("top-k", 11, None, "resolved", ALIKE),
        ("ranking", 9, 3, "lost", MEANS),
    ],
)
def test_pairs_that_stay_open_are_read_to_one_step_however_the_log_is_batched(
    goal, seed, share, reason, means
):
    """Of what comes with the last call, or after it, nothing is read; a stop is made where it was.

    Of models that are alike some are not needed for a while, and again later.
    """
    margin = 0.2 if means is MEANS else 0.3
    spec = replace(make_spec(4, 20, max_passes=30, k=2, equivalence=margin, goal=goal), seed=seed)
    batches = []
    live = drive(
        Session(spec),
        coin(means),
        slots=9,
        rng=np.random.default_rng(seed),
        log=batches,
        missing=share and (lambda request: request.key.model != "m3" and request.key.index % share == 0),
    )
    assert live.stopped.reason == reason
    found = open_pairs(live)
    assert found
    log = [outcome for told in batches for outcome in told]
    for size in (1, 7, len(log)):
        again = Session(spec)
        again.replay(log[start : start + size] for start in range(0, len(log), size))
        assert open_pairs(again) == found
        assert retired(again) == retired(live)
        assert again.stopped.reason == reason


@pytest.mark.parametrize("seed", [2, 6, 8, 14])
@pytest.mark.parametrize("goal", ["ties together", "top-k"])
def test_models_that_are_no_longer_needed_and_ties_decide_the_same_in_a_batch(goal, seed):
    """All models made all steps, as in a table: told one by one, or in one batch."""
    margin, means = (0.1, MEANS) if goal == "top-k" else (0.25, [0.5] * 4)
    spec = make_spec(4, 20, max_passes=15, seed=seed, **GOALS[goal] | {"equivalence": margin})
    right = np.random.default_rng(seed).random((300, 4)) < means
    keys = [TrialKey(f"m{model}", step) for step in range(300) for model in range(4)]
    log = [TrialOutcome(key, int(one)) for key, one in zip(keys, right.flat, strict=True)]
    at_once, singly = Session(spec), Session(spec)
    at_once.replay([log])
    singly.replay([outcome] for outcome in log)
    assert calls(at_once) == calls(singly)
    assert goal == "top-k" or len(calls(singly)) == 6


@EACH_BOARD
@given(
    outcomes=st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.booleans()), min_size=1, max_size=120)
)
def test_no_history_breaks_the_results(board, outcomes):
    small = replace(make_spec(3, 7, equivalence=0.1), samples_per_prompt=BOARDS[board][0].samples_per_prompt)
    session = Session(BOARDS[board][0] if board == "references" else small)
    waiting = {f"m{number}": [] for number in range(3)}
    for model, right, gone in outcomes:
        name = f"m{model}"
        if not waiting[name]:
            waiting[name] = session.ask({name: 3})
        if waiting[name]:
            request = waiting[name].pop()
            session.tell([Missing(request.key, "x") if gone else TrialOutcome(request.key, int(right))])
    results = session.results()
    for line in results.models:
        if line.score is not None:
            assert 0.0 <= line.score_low <= line.score <= line.score_high <= 1.0
            assert 0.0 < line.bayes_sigma < 1.0
        assert 1 <= line.rank_low <= line.rank_high <= len(results.models)
    for pair in results.pairs:
        assert np.isfinite(pair.evidence)
        if pair.difference is not None:
            assert pair.difference_low <= pair.difference <= pair.difference_high
