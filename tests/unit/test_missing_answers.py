"""Answers that are lost because they are wrong: the views name the verdict that they could undo."""

from __future__ import annotations

import json
from dataclasses import replace

import standings_examples as examples
from session_scripts import coin, make_spec

from adaptive_eval.core.results_json import from_json, to_json
from adaptive_eval.core.session import Session
from adaptive_eval.errors import Coded
from adaptive_eval.trial import Missing, TrialOutcome
from adaptive_eval.views.json_lines import JsonLines
from adaptive_eval.views.missing import missing_warnings, undone_by_missing


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
    return session.results()


def test_the_verdict_that_losses_made_is_named_and_no_other():
    results = finished((0.7, 0.8, 0.05), "m0")
    (undone,) = undone_by_missing(results)
    assert (undone.first, undone.second, undone.verdict) == ("m0", "m1", "better")
    (warning,) = missing_warnings(results)
    assert "m0 ahead of m1" in warning
    assert "m2" not in warning
    view = examples.view_of(results)
    assert warning in view.warnings
    line = json.loads(JsonLines().line(view))
    assert (
        dict(zip(line["warnings"], line["warning_codes"], strict=True))[warning] == "warning/missing-answers"
    )


def test_nothing_is_said_where_nothing_is_lost():
    assert missing_warnings(finished((0.7, 0.4), None)) == ()


def test_a_warning_keeps_its_code_in_the_run_file():
    warnings = (Coded("warning/copies", "alike"), "a warning of an earlier version")
    data = json.loads(json.dumps(to_json(replace(finished((0.7, 0.4), None), warnings=warnings))))
    assert [getattr(text, "code", None) for text in from_json(data).warnings] == ["warning/copies", None]
    del data["warning_codes"]
    assert from_json(data).warnings == warnings
