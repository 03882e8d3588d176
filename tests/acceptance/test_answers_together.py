"""Several answers of a trial, scored together: pass^k, pass@k, maj@k."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from answering_server import number_in, run_two, said
from command_line import in_process, report, trials

from adaptive_eval.scoring.match import NumericScorer
from adaptive_eval.scoring.scorer import TogetherScorer, asked_times
from adaptive_eval.trial import Completion, Question

K = 3
NAMES = {"all": "pass^", "any": "pass@", "majority": "maj@"}


def answer(model: str, prompt: str, number: int) -> dict[str, Any]:
    """Answer right four times in five (good), or once in seven (bad)."""
    right = number % 5 if model == "good" else number % 7 == 0
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return {"message": said(f"It is {number_in(prompt) if right else 90 + number % 2}"), "usage": usage}


def counted(texts: list[str], target: str, by: str) -> bool:
    """Return whether a trial with these answers is right, by the definitions."""
    found = [text.removeprefix("It is ") for text in texts]
    if by == "majority":
        most = max(Counter(found).values())
        return next(one for one in found if found.count(one) == most) == target
    return (all if by == "all" else any)(one == target for one in found)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["all", "any", "majority"])
def test_a_trial_is_right_as_its_answers_are_together(tmp_path, by):
    asked: list[Any] = []
    budget = {"trials": 24, "completion_tokens": 24 * K * 64}
    run_two(tmp_path, answer, asked, task={"answers": {"k": K, "by": by}}, goal="budget", budget=budget)
    records = trials(tmp_path / "run")
    assert len(records) == 24
    assert len(asked) == 24 * K == len({body["seed"] for body in asked})
    right = set()
    for record in records:
        assert record.completion is not None
        texts = [call["text"] for call in record.completion.calls]
        assert (len(texts), record.usage.total_tokens) == (K, 25 * K)
        expected = counted(texts, record.request.question, by)
        assert (record.score.category, bool(record.score.signals["is_correct"])) == (expected, expected)
        right.add(expected)
    assert right == {True, False}
    line = in_process("samples", "run", "--json", cwd=tmp_path).out
    assert f"of {K} answers right" in line
    found = report(tmp_path / "run")
    assert sum(model["trials"] for model in found["models"]) == 24
    text = (tmp_path / "run" / "report.md").read_text("utf-8").replace("\\@", "@")
    assert f"({NAMES[by]}{K})" in text
    in_process("rescore", "run", "--scorer", "contains", cwd=tmp_path, code=0)


def test_a_trial_without_one_of_its_answers_does_not_count(tmp_path):
    def mute(model: str, prompt: str, number: int) -> dict[str, Any]:
        silent = model == "bad" and int(number_in(prompt)) % 2
        return {"message": said("" if silent else f"It is {number_in(prompt)}")}

    more = {"goal": "budget", "budget": {"trials": 24}, "on": {"empty": "missing"}}
    run_two(tmp_path, mute, task={"answers": {"k": 2}}, code=0, **more)
    for record in trials(tmp_path / "run"):
        silent = record.request.key.model == "bad" and int(record.request.question) % 2
        assert (record.score.category if record.score else None) == (None if silent else 1)


EMPTY, CUT, FULL = Completion("", "stop"), Completion("4", "length"), Completion("4", "stop")


@pytest.mark.parametrize(
    ("by", "answers", "none", "cut"),
    [
        ("all", (FULL, EMPTY, FULL), True, False),
        ("all", (FULL, CUT, FULL), False, True),
        ("majority", (EMPTY, FULL, FULL), False, False),
        ("majority", (EMPTY, FULL, EMPTY), True, False),
        ("majority", (CUT, FULL, FULL), False, False),
        ("majority", (FULL, CUT, CUT), False, True),
        ("any", (EMPTY, EMPTY, FULL), False, False),
        ("any", (EMPTY, EMPTY, EMPTY), True, False),
        ("any", (CUT, FULL, CUT), False, False),
    ],
)
def test_a_trial_is_none_or_cut_off_where_its_other_answers_could_not_make_it_right(by, answers, none, cut):
    async def asked(missing):
        left = list(answers)

        async def model(_):
            return left.pop(0)

        return await asked_times(len(answers), by, missing)(model, [])

    trial = asyncio.run(asked(()))
    assert (trial.no_answer == "empty", trial.finish_reason == "length") == (none, cut)
    assert (asyncio.run(asked(["empty"])).no_answer == "empty") == (EMPTY in answers)


class Failing(NumericScorer):
    def score(self, completion, question):
        if completion.text == "?":
            raise ValueError("no idea")
        return super().score(completion, question)


@pytest.mark.parametrize("by", NAMES)
def test_a_cut_off_answer_is_not_right_and_a_scorer_that_fails_gives_no_category(by):
    calls = ({"text": "So \\boxed{4}.", "finish_reason": "length"},)
    trial, question = Completion("4", "length", calls=calls), Question("t", "q", "4")
    assert TogetherScorer(NumericScorer(), by).score(trial, question).category == 0
    for texts in ("?", "4?", "?4"):
        trial = replace(trial, calls=tuple({"text": text, "finish_reason": "stop"} for text in texts))
        assert TogetherScorer(Failing(), by).score(trial, question).category is None
