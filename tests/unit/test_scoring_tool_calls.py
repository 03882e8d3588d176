"""The scorer ``tool_calls``: which calls fit a target."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.trial import Completion, Question

A, A1, B = ("a", {"n": 1}), ("a", {"n": 1, "m": {"k": 2, "l": 3}}), ("b", {})


def calls(*made):
    return tuple(
        {"id": str(number), "name": name, "arguments": given if isinstance(given, str) else json.dumps(given)}
        for number, (name, given) in enumerate(made)
    )


def category(target, made, **options):
    target = json.dumps([{"name": name, "arguments": given} for name, given in target])
    scorer = build_scorer("tool_calls", options)
    question = Question("t", "q", target)
    assert scorer.check_target(question) is None
    return scorer.score(Completion("", "tool_calls", tool_calls=calls(*made)), question).category


@pytest.mark.parametrize(
    ("target", "made", "options", "right"),
    [
        ([A, B], [B, A], {}, 1),
        ([A, B], [B, A], {"ordered": True}, 0),
        ([A, B], [A, A, B], {"ordered": True, "calls": "subset"}, 1),
        ([A], [("a", {"n": 1.0})], {}, 1),
        ([A], [("a", {"n": True})], {}, 0),
        ([A], [("a", {"n": "1"})], {}, 0),
        ([A], [A1], {}, 0),
        ([A], [A1], {"arguments": "subset"}, 1),
        ([("a", {"m": {"k": 2}})], [A1], {"arguments": "subset"}, 1),
        ([A1], [A], {"arguments": "subset"}, 0),
        ([A], [("a", "{broken")], {}, 0),
        ([A], [("a", "{broken")], {"arguments": "ignore"}, 1),
        ([A], [A, B], {}, 0),
        ([A], [A, B], {"calls": "subset"}, 1),
        ([A, A], [A], {"calls": "subset"}, 0),
        # The second target fits only the first call, so the first has to take the other.
        ([A, A1], [A1, A], {"arguments": "subset"}, 1),
        ([], [], {}, 1),
        ([], [A], {}, 0),
        ([A], [], {}, 0),
        ([("b", {})], [("b", "")], {}, 1),
    ],
)
def test_calls_are_compared_as_the_options_say(target, made, options, right):
    assert category(target, made, **options) == right


@given(st.text(), st.text(), st.sampled_from(["equal", "subset", "ignore"]))
def test_every_call_gets_a_score_that_can_be_stored(name, arguments, compared):
    target = Question("t", "q", '[{"name": "a", "arguments": {"n": [1]}}]')
    scorer = build_scorer("tool_calls", {"arguments": compared})
    score = scorer.score(Completion("", "stop", tool_calls=calls((name, arguments))), target)
    assert score.category in (0, 1)
    (score.extracted or "").encode()
