"""Ties: over what their error rate holds, and under which edition of the formulas a run ends."""

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
