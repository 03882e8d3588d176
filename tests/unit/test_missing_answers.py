"""Answers that are lost because they are wrong: the views name the verdict that they could undo."""

from __future__ import annotations

import standings_examples as examples
from session_scripts import coin, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.monitor.snapshot import RunHeader, run_view
from adaptive_eval.text.missing_words import missing_warnings, undone_by_missing
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
    return session.results()


def test_the_verdict_that_losses_made_is_named_and_no_other():
    results = finished((0.7, 0.8, 0.05), "m0")
    (undone,) = undone_by_missing(results)
    assert (undone.first, undone.second, undone.verdict) == ("m0", "m1", "better")
    (warning,) = missing_warnings(results)
    assert "m0 ahead of m1" in warning
    assert "m2" not in warning
    assert warning in run_view(RunHeader("losses"), examples.snapshot_of(results)).warnings


def test_nothing_is_said_where_nothing_is_lost():
    assert missing_warnings(finished((0.7, 0.4), None)) == ()
