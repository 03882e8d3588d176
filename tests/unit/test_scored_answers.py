"""Answers of every style, each with what a scorer makes of it: ``tests/data/scored_answers.jsonl``.

A line has the scorer, its options, the answer with its calls of tools, the target, and what is found:
category, reason, what is extracted, the score; ``not`` is another target for which the answer is wrong.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.scorer import score_or_failure
from adaptive_eval.trial import Completion, Question

FILE = Path(__file__).parents[1] / "data" / "scored_answers.jsonl"
CASES = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
PACKAGES = {"math": "math_verify", "regex": "regex", "json": "jsonschema", "rouge": "rouge_score"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['scorer']}-{case['answer'][:40]}")
def test_an_answer_is_judged_as_written(case):
    pytest.importorskip(PACKAGES.get(case["scorer"], "json"))
    scorer, finish = build_scorer(case["scorer"], case.get("options")), case.get("finish", "stop")

    calls = tuple({"id": "1", "name": name, "arguments": given} for name, given in case.get("tool_calls", ()))

    def scored(target):
        question = Question("t", "q", target, choices=tuple(case.get("choices", ())))
        assert scorer.check_target(question) is None
        return score_or_failure(scorer, Completion(case["answer"], finish, tool_calls=calls), question)

    found = scored(case["target"])
    assert found.category == case["category"]
    assert found.reason == case.get("reason", found.reason)
    assert found.extracted == case.get("extracted", found.extracted)
    if "score" in case:
        assert found.signals["score"] == pytest.approx(case["score"], abs=1e-6)
    if case["scorer"] in ("choice", "exact", "numeric"):
        assert found.signals["is_correct"] is bool(found.category)
        assert found.signals["truncated"] is (finish != "stop")
        assert found.signals["has_box"] is found.reason.endswith("(boxed)")
        assert found.extracted is None or found.reason not in ("truncated", "no answer found")
    if "not" in case:
        assert scored(case["not"]).category == 0
