"""What results say of a contrast agrees, whatever is crossed: verdict, evidence, interval, decisions."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import calls, make_spec

from adaptive_eval.core.one_look import AnswerCounts, OneLook
from adaptive_eval.core.session import Session
from adaptive_eval.core.spec import GoalSpec, ReferenceSpec, TaskSpec
from adaptive_eval.trial import Missing, TrialOutcome

GOALS = {
    "ranking": GoalSpec("ranking"),
    "best": GoalSpec("top-k", k=2),
    "baseline": GoalSpec("baseline", model="m1"),
    "not worse": GoalSpec("not-worse", model="m0", margin=0.02),
    "threshold": GoalSpec("threshold", value=0.6),
    "width": GoalSpec("width", width=0.25),
    "several": GoalSpec("all", goals=(
        GoalSpec("not-worse", model="m1", margin=0.02), GoalSpec("threshold", value=0.6),
        GoalSpec("width", width=0.4), GoalSpec("ranking"))),
}  # fmt: skip
LOST = {"none": (), "some": (0.1, 0.1, 0.1, 0.1), "of one": (0.0, 0.4, 0.0, 0.0)}
SCALES = {"right or wrong": (0.0, 1.0), "graded": (-2.0, 0.0, 2.0)}
LAYOUTS = {
    "one task": {}, "two tasks": {"more": True}, "rounds": {"rounds": "rounds"},
    "in a row": {"samples": 3}, "references": {"stored": True}, "a sample": {"target": "population"},
}  # fmt: skip
CASES = [
    (goal, lost, scale, layout)
    for place, goal in enumerate(GOALS)
    for turn, layout in enumerate(LAYOUTS)
    for lost in [list(LOST)[(place + turn) % 3]]
    for scale in [list(SCALES)[(place + turn // 2) % 2]]
    if layout != "rounds" or goal not in ("threshold", "several")  # which rounds cannot read
]
MEANS = (0.95, 0.6, 0.6, 0.15)


def scaled(goal, low, unit):
    """Return a goal of shares as one of scores."""
    parts = tuple(scaled(one, low, unit) for one in goal.goals)
    margin = None if goal.margin is None else unit * goal.margin
    return replace(goal, goals=parts, margin=margin, value=low + unit * goal.value, width=unit * goal.width)


def session_of(goal, scale, layout):
    weights, options = SCALES[scale], LAYOUTS[layout]
    low, unit = min(weights), max(weights) - min(weights)
    known = {name: options[name] for name in ("rounds", "target") if name in options}
    spec = make_spec(4, 12, weights=weights, equivalence=0.2 * unit, max_passes=6, **known)
    tasks = spec.tasks
    if "more" in options:
        tasks = (*tasks, TaskSpec("u", tuple("abcdefg"), weights, weight=3.0))
    stored = ()
    if "stored" in options:
        right = np.random.default_rng(4).binomial(5, 0.6, 12)
        table = np.zeros((12, len(weights)), dtype=int)
        table[:, 0], table[:, -1] = 5 - right, right
        stored = (ReferenceSpec("old", {"t": table}, lost={"t": np.arange(12) % 3 == 0}),)
    spec = replace(
        spec, tasks=tasks, references=stored, goal=scaled(GOALS[goal], low, unit),
        samples_per_prompt=options.get("samples", 1),
    )  # fmt: skip
    return Session(spec)


def moments(session, shares, rng, log):
    """Yield the results of a session now and then, and at its end; what it is told is added to the log."""
    worth, rounds = session.spec.tasks[0].weights, 0
    while session.stopped is None:
        outcomes = []
        for request in session.ask(8):
            model, (fate, right, part) = int(request.key.model[1:]), rng.random(3)
            category = worth.index(max(worth) if right < MEANS[model] else min(worth))
            if len(worth) > 2 and part < 0.3:
                category = 1
            lost = bool(shares) and fate < shares[model]
            outcomes.append(Missing(request.key, "x") if lost else TrialOutcome(request.key, category))
        session.tell(outcomes)
        log += outcomes
        rounds += 1
        if rounds % 15 == 0:
            yield session.results()
    yield session.results()


SMALL = 1e-9


def contrasts_agree(results, about):
    """Compare verdict, evidence and interval of each contrast of some results."""
    for pair in results.pairs:
        if pair.difference is None:
            continue
        low, high, near = pair.difference_low, pair.difference_high, pair.tie_margin
        assert low - SMALL <= pair.difference <= high + SMALL, (pair, about)
        assert (pair.margin is not None) == (pair.kind == "not-worse")
        assert pair.decided_at in (None, pair.trials_each), (pair, about)
        edge = 0.0
        if pair.kind == "not-worse":
            edge = -pair.margin
            assert near is None, (pair, about)
            assert pair.verdict != "tie", (pair, about)
        if pair.kind == "width":
            width = np.inf if pair.verdict == "open" else float(pair.second.split()[1])
            assert high - low <= width + SMALL, (pair, about)
            assert near is None or (near >= 1.0 - SMALL) == (pair.verdict == "tie"), (pair, about)
        elif pair.verdict == "open" and pair.needed and results.stop is None and not pair.test:
            assert pair.evidence < pair.threshold, (pair, about)
            assert near is None or near < 1.0, (pair, about)
        elif pair.verdict == "tie":
            assert near in (None, pytest.approx(1.0)), (pair, about)
            assert -results.equivalence - SMALL <= low <= high <= results.equivalence + SMALL, (pair, about)
        elif pair.verdict != "open":
            sign = 1 if pair.verdict == "better" else -1
            assert pair.evidence >= pair.threshold - SMALL, (pair, about)
            assert sign * pair.difference > sign * edge, (pair, about)
            end = low if sign > 0 else -high
            assert bool(pair.test and edge) or end >= sign * edge - SMALL, (pair, about)
    for line in results.models:
        if line.score is not None:
            assert line.score_low - SMALL <= line.score <= line.score_high + SMALL, about


@pytest.mark.slow
@pytest.mark.parametrize(("goal", "lost", "scale", "layout"), CASES)
def test_verdict_evidence_and_interval_of_a_contrast_agree(goal, lost, scale, layout):
    session, log = session_of(goal, scale, layout), []
    rng = np.random.default_rng([3, len(goal), len(layout)])
    for results in moments(session, LOST[lost], rng, log):
        contrasts_agree(results, lost)
    decisions_agree(session, results)
    at_once = Session(session.spec)
    at_once.replay([log])
    assert calls(at_once) == calls(session)


@pytest.mark.parametrize("family", ["holm", "pair"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("goal", GOALS)
def test_they_agree_of_one_look_too(goal, scale, family):
    spec, rng, verdicts = session_of(goal, scale, "two tasks").spec, np.random.default_rng(8), Counter()
    spec = replace(spec, stopping=replace(spec.stopping, family=family))
    for share in (0.0, 0.15):
        shape, each = (4, spec.questions), 60
        lost = rng.binomial(each, share * (rng.random(shape) < 0.5))
        right = rng.binomial(each - lost, np.array(MEANS)[:, None])
        results = OneLook(spec, AnswerCounts(each - lost, right * 1.0, lost)).results()
        contrasts_agree(results, share)
        verdicts.update(pair.verdict for pair in results.pairs)
    assert verdicts["open"] < verdicts.total()


def test_a_model_without_an_answer_is_the_last_also_behind_one_with_none_right():
    session = Session(make_spec(3, 6, max_passes=2))
    while session.stopped is None:
        keys = [one.key for one in session.ask(6)]
        answered = [TrialOutcome(key, int(key.model == "m2")) for key in keys if key.model != "m0"]
        session.tell([*answered, *(Missing(key, "x") for key in keys if key.model == "m0")])
    assert [(line.model, line.rank) for line in session.results().models] == [("m0", 3), ("m1", 2), ("m2", 1)]


SAID = {
    ("pair", "better"): ("separated", "separated"), ("pair", "worse"): ("separated", "separated"),
    ("pair", "tie"): ("tied", "tied"), ("not-worse", "better"): ("not_worse", "not_better"),
    ("not-worse", "worse"): ("worse", "better"),
}  # fmt: skip
"""What is said of the first model of a contrast, and of the second, once neither is needed any more."""


def decisions_agree(session, results):
    """Compare what was said at each call, and of each model that was needed no more, with the contrasts."""
    called = {}
    for one in session.decisions:
        if one.kind == "pair":
            called[one.models, one.evidence["kind"], one.evidence.get("against", "")] = one
    lists = {}
    for pair in results.pairs:
        single = pair.kind in ("threshold", "width")
        names = (pair.first,) if single else (pair.first, pair.second)
        one = called.pop((names, pair.kind, pair.second if single else ""), None)
        assert (one is None) == (pair.verdict == "open")
        if one is not None:
            evidence = max(one.evidence["statistic"], 0.0)
            at_call = [evidence, *(one.evidence[name] for name in ("low", "high", "questions"))]
            shown = [pair.evidence, pair.difference_low, pair.difference_high, pair.questions]
            assert at_call == pytest.approx(shown), pair
            assert one.evidence["threshold"] >= pair.threshold, "it falls with every call"
            assert (one.verdict, one.step) == (pair.verdict, pair.decided_at)
            of = one.evidence["score" if pair.kind == "width" else "difference"]
            assert of == pytest.approx(pair.difference)
        if not single and pair.verdict != "open":
            for name, other, kind in zip(names, names[::-1], SAID[pair.kind, pair.verdict], strict=True):
                lists.setdefault((name, kind), set()).add(other)
    assert not called
    for one in session.decisions:
        for kind in {kind for both in SAID.values() for kind in both} & one.evidence.keys():
            if one.kind == "retired" and results.top_k is None:
                found = set(one.evidence[kind])
                assert found <= lists.get((*one.models, kind), set()), (one, kind)
