"""The scorer ``tool_calls`` on any call; ``test_scored_answers`` has which calls fit a target."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.trial import Completion, Question


@given(st.text(), st.text(), st.sampled_from(["equal", "subset", "ignore"]))
def test_every_call_gets_a_score_that_can_be_stored(name, arguments, compared):
    target = Question("t", "q", '[{"name": "a", "arguments": {"n": [1]}}]')
    scorer = build_scorer("tool_calls", {"arguments": compared})
    call = {"id": "1", "name": name, "arguments": arguments}
    score = scorer.score(Completion("", "stop", tool_calls=(call,)), target)
    assert score.category in (0, 1)
    (score.extracted or "").encode()
