"""Answers that are lost because they are wrong: no verdict is called that they could turn."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from session_scripts import coin, make_spec

from adaptive_eval.core.results import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.errors import Coded
from adaptive_eval.trial import Missing, TrialOutcome


def finished(means, shy):
    """Run models of these means; the `shy` one gives no answer where it would be wrong."""
    session, answer = Session(make_spec(len(means), 60, equivalence=0.05)), coin(means)
    while session.stopped is None:
        outcomes = []
        for request in session.ask(8):
            right = answer(request)
            lost = request.key.model == shy and not right
            outcomes.append(Missing(request.key, "lost") if lost else TrialOutcome(request.key, right))
        session.tell(outcomes)
    return session.results(), session.stopped


def test_losses_that_could_turn_a_verdict_leave_its_pair_open_and_end_the_run():
    results, stopped = finished((0.7, 0.8, 0.05), "m0")
    assert stopped.reason == "lost"
    assert stopped.evidence["lost"].keys() == {"m0"}
    verdicts = {(pair.first, pair.second): pair.verdict for pair in results.pairs}
    assert verdicts["m0", "m1"] == "open"
    assert verdicts["m0", "m2"] == verdicts["m1", "m2"] == "better"
    shy = results.models[0]
    assert shy.low <= shy.worst < shy.best <= shy.high, "its interval holds what its lost answers allow"


def test_a_width_is_reached_with_all_that_lost_answers_allow():
    session, answer = Session(make_spec(1, 60, goal="width", width=0.25, max_passes=60)), coin((0.6,))
    while session.stopped is None:
        (request,) = session.ask(1)
        lost = request.key.index % 20 == 0
        session.tell([Missing(request.key, "lost") if lost else TrialOutcome(request.key, answer(request))])
    assert session.stopped.reason == "resolved"
    (line,) = session.results().models
    assert 0.1 < line.best - line.worst + 0.1 < line.high - line.low <= 0.25


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("margin", [0.05, 0.1, 0.15])
def test_a_run_without_a_budget_ends_whatever_share_of_its_answers_is_lost(share, margin):
    session, draw = Session(make_spec(2, 30, equivalence=margin)), np.random.default_rng(7)
    while session.stopped is None and session.budget.completed < 30_000:
        outcomes = []
        for request in session.ask(40):
            lost = draw.random() < share
            right = int(draw.random() < 0.7)
            outcomes.append(Missing(request.key, "lost") if lost else TrialOutcome(request.key, right))
        session.tell(outcomes)
    assert session.stopped is not None
    assert session.stopped.reason in ("lost", "resolved")


def test_a_warning_keeps_its_code_in_the_run_file():
    warnings = (Coded("warning/copies", "alike"), "a warning of an earlier version")
    data = json.loads(json.dumps(to_json(replace(finished((0.7, 0.4), None)[0], warnings=warnings))))
    assert [getattr(text, "code", None) for text in from_json(data).warnings] == ["warning/copies", None]
    del data["warning_codes"]
    assert from_json(data).warnings == warnings
