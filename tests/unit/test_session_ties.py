"""Ties: over what their error rate holds."""

import numpy as np
import pytest
from session_scripts import calls, coin, drive, make_spec

from adaptive_eval.core.session import Session

EQUAL = coin((0.5,) * 4)


def run(spec, answer=EQUAL, **options):
    """Return a session that was driven to its end, and what it was told."""
    log = []
    return drive(Session(spec), answer, slots=4, log=log, **options), log


def steps(session, *verdicts):
    """Return at which step each pair was called, by any or by these verdicts."""
    return {call[0]: call[2] for call in calls(session) if not verdicts or call[1] in verdicts}


def test_ties_of_a_family_take_more_evidence():
    found = {}
    for ties in ("pair", "family"):
        session, _ = run(make_spec(4, equivalence=0.15, ties=ties))
        assert session.results().ties == ties
        found[ties] = steps(session, "tie")
    assert found["pair"].keys() == found["family"].keys() != set()
    assert all(found["family"][models] >= step for models, step in found["pair"].items())
    assert min(found["family"].values()) > min(found["pair"].values())


def test_a_top_set_has_the_level_of_the_pairs_across_its_cut():
    """With 6 models and a set of 2: 8 pairs of 15, however many are called."""
    spec = make_spec(6, goal="top-k", k=2, max_passes=40)
    session, _ = run(spec, coin([0.1 + 0.15 * model for model in range(6)]))
    won = [one for one in session.decisions if one.kind == "pair"]
    assert len(won) >= 4
    assert [one.evidence["threshold"] for one in won] == pytest.approx([np.log(8 / 0.05)] * len(won))
    assert session.stopped.reason == "resolved"
