"""What judge and verifier are shown of a question."""

from __future__ import annotations

import json

import pytest
from task_files import load_task

from adaptive_eval.scoring.judge import JudgeScorer
from adaptive_eval.scoring.verifier import VerifierScorer
from adaptive_eval.trial import Completion

SERVER = {"endpoint": "http://nowhere.invalid/v1", "model": "any"}
SCORERS = [JudgeScorer(**SERVER), JudgeScorer(**SERVER, compare="pairwise"), VerifierScorer(**SERVER)]


def shown(scorer, tmp_path, row, **options):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    task = load_task("t", file, **options)
    question = task.asked(task.questions[0], seed=0)
    return scorer.messages("It is 4.", question)[-1].content


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_conversation_is_the_question_that_is_judged(tmp_path, scorer):
    talk = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 2?"}]
    content = shown(scorer, tmp_path, {"talk": talk, "target": "4"}, fields={"messages": "talk"})
    assert "Question:\nsystem: Add.\nuser: 2 + 2?\n" in content


@pytest.mark.parametrize("scorer", SCORERS)
def test_the_options_are_shown_as_the_model_was_asked(tmp_path, scorer):
    row = {"id": "sky", "input": "The sky?", "choices": ["red", "blue", "green"], "target": "B"}
    content = shown(scorer, tmp_path, row)
    assert "Question:\nThe sky?\nA. red\nB. blue\nC. green\n" in content
    content = shown(scorer, tmp_path, row, shuffle_options=True)
    letter = next(line[0] for line in content.splitlines() if line.endswith(". blue"))
    assert letter != "B"
    assert f"\n{letter}\n" in content


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_question_without_options_is_shown_as_it_is(tmp_path, scorer):
    assert "Question:\n2 + 2?\n\n" in shown(scorer, tmp_path, {"input": "2 + 2?", "target": "4"})


@pytest.mark.parametrize("kind", [JudgeScorer, VerifierScorer])
def test_reasoning_kept_apart_is_shown_on_request_only(kind):
    answer = Completion("It is 4.", "stop", reasoning="2 and 2")
    assert kind(**SERVER).shown(answer) == "It is 4."
    assert kind(**SERVER, with_reasoning=True).shown(answer) == "<think>\n2 and 2\n</think>\n\nIt is 4."
