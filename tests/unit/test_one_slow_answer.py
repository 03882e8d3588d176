"""One answer that does not come delays its own model's contrasts, and no others."""

import numpy as np
import pytest
from session_scripts import coin, make_spec

from adaptive_eval.core.session import Session
from adaptive_eval.trial import TrialOutcome

MEANS = np.linspace(0.2, 0.9, 8)


def drive_without(session, withheld, slots=64, rounds=20_000):
    """Answer everything but one trial until the session asks for nothing; return how often it was told."""
    answer, rng, waiting = coin(MEANS), np.random.default_rng(5), []
    for told in range(rounds):
        waiting += session.ask(slots - len(waiting))
        ready = [one for one in waiting if (one.key.model, one.key.index) != withheld]
        if session.stopped is not None or not ready:
            return told
        one = ready[rng.integers(len(ready))]
        waiting.remove(one)
        session.tell([TrialOutcome(one.key, answer(one))])
    raise AssertionError("the session goes on for ever")


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 37])
@pytest.mark.parametrize("goal", ["ranking", "top-k"])
def test_with_one_answer_withheld_for_good_all_pairs_of_others_are_decided(index, goal):
    session = Session(make_spec(8, 200, goal=goal, k=2, equivalence=0.1, max_passes=20))
    told = drive_without(session, ("m3", index))
    results = session.results()
    others = [pair for pair in results.pairs if "m3" not in (pair.first, pair.second)]
    if goal == "ranking":
        assert all(pair.verdict != "open" for pair in others)
        assert told < 6_000
    else:
        assert not [pair for pair in others if pair.verdict == "open" and pair.needed]
    assert {(one.model, one.trials) for one in results.models if one.model == "m3"} == {("m3", index)}
