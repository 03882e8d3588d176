"""The audit of repeated answers: copies are found, and what comes again by nature is not cried over."""

import asyncio
import random
from itertools import product

import pytest

from adaptive_eval.engine.independence import AuditedExecutor, IndependenceAudit, temperature_of
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest

QUESTIONS = [f"q{number}" for number in range(40)]
WORDS = [f"word{number}" for number in range(500)]


def essay(seed, words=150):
    """Return some 1,000 bytes that hardly two seeds share."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def audited(
    answer, *, temperature=0.7, passes=4, response_id=lambda question, repeat: f"cmpl-{question}-{repeat}"
):
    """Return which repeats are copies and the warnings; `answer` gives the text from question and repeat."""
    audit = IndependenceAudit({"m": temperature})
    copies = []
    for repeat in range(passes):
        for question in QUESTIONS:
            answered = Completion(answer(question, repeat), "stop", response_id=response_id(question, repeat))
            copies.append(audit.observe("m", ("t", question), answered))
    return copies, audit.warnings()


def every_other(question, repeat):
    """Answer every other question with a copy."""
    return essay(question if QUESTIONS.index(question) % 2 else f"{question}/{repeat}")


def same_id(question, repeat):
    return f"chatcmpl-{question}-x"


def by_question(question, repeat):
    return essay(question)


def letter(question, repeat):
    return "B"


COPIES = {
    "a cache": (by_question, {}, 1.0),
    "hot": (by_question, {"temperature": 1.5}, 1.0),
    "half of it": (every_other, {}, 0.5),
    "short under one id": (letter, {"response_id": same_id}, 1.0),
    "at temperature 0 under one id": (letter, {"response_id": same_id, "temperature": 0.0}, 1.0),
}


@pytest.mark.parametrize("kind", COPIES)
def test_copies_are_found_at_once_and_told(monkeypatch, kind):
    monkeypatch.setattr(IndependenceAudit, "questions", len(QUESTIONS))
    answer, parts, share = COPIES[kind]
    copies, (warning,) = audited(answer, **parts)
    assert sum(copies) == 120 * share
    assert not any(copies[:40])
    assert warning.startswith(f"m: {120 * share:g} of 120 answers to a question asked again are copies")


NATURAL = {
    "essays": lambda question, repeat: essay(f"{question}/{repeat}"),
    "letters": letter,
    "nothing": lambda question, repeat: "",
    "boxes": lambda question, repeat: f"\\boxed{{{QUESTIONS.index(question)}}}.",
    "refusals": lambda question, repeat: "I'm sorry, but I cannot help with that. " * 8,
    "the same page for all": lambda question, repeat: essay("one"),
    "a template": lambda question, repeat: f'{essay("head")} {{"answer": "{question}"}} {essay("tail")}',
    "explanations": lambda question, repeat: essay(question, words=60),
}


@pytest.mark.parametrize("kind", NATURAL)
def test_what_comes_again_by_nature_counts(kind):
    for ids, temperature in (("cmpl-of-this-server", 0.7), ("{}", 1.5), ("", 0.7)):
        options = {"response_id": lambda question, repeat, ids=ids: ids.format(question)}
        copies, warnings = audited(NATURAL[kind], temperature=temperature, **options)
        assert not any(copies)
        assert all("They count" in warning for warning in warnings)


def test_equal_answers_at_temperature_0_are_no_copies():
    assert audited(by_question, temperature=0.0) == ([False] * 160, ())


def test_short_answers_that_never_vary_are_told_of_and_one_that_differs_ends_that():
    _, (warning,) = audited(letter)
    assert warning.startswith("m: all 120 answers to a question asked again are the same text")
    assert "deterministic: true" in warning
    varied = audited(lambda question, repeat: "C" if (question, repeat) == ("q7", 2) else "B")
    assert varied == ([False] * 160, ())


def test_a_model_of_nothing_but_copies_is_asked_no_more():
    audit = IndependenceAudit({"m": 0.7})

    def ask(answer, passes):
        for repeat in range(passes):
            for question in QUESTIONS:
                audit.observe("m", ("t", question), Completion(answer(question, repeat), "stop"))

    ask(by_question, 8)
    assert audit.pointless("m") is None
    ask(by_question, 1)
    assert "the last 320 answers" in audit.pointless("m")
    ask(lambda question, repeat: essay(f"{question} once more"), 1)
    assert audit.pointless("m") is None


def test_answers_of_one_question_after_the_other_are_told_from_its_template():
    """As with several answers of one request: the latest answer is to the same question."""
    audit = IndependenceAudit({"m": 0.7})
    text = f"{essay('head')} B {essay('tail')}"
    asked = [("t", question) for question in QUESTIONS for _ in range(8)]
    assert not any(audit.observe("m", question, Completion(text, "stop")) for question in asked)


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"temperature": 0.8}, 0.8), ({"temperature": 1}, 1.0), ({}, 0.6), ({"temperature": None}, 0.6),
        ({"temperature": 0}, 0.0), ({"temperature": 0.0}, 0.0), ({"temperature": 1.0, "top_k": 1}, 0.0),
        ({"temperature": 1.0, "top_k": 20}, 1.0),
    ],
)  # fmt: skip
def test_the_temperature_of_a_model(parameters, expected):
    assert temperature_of(parameters) == expected


@pytest.mark.parametrize(
    "failure",
    [
        ScorerUnavailable("the judge wise did not answer", kind="judge"),
        TransientEndpointError("the answer cannot be scored", kind="malformed"),
    ],
)
def test_an_answer_that_waits_for_its_scorer_is_no_copy_of_itself(failure):
    """Nor is one that is asked for again, with its seed, because it lacked something."""

    class Executor:
        def __init__(self):
            self.asked = 0

        async def score(self, request, completion):
            self.asked += 1
            if self.asked % 3:
                raise failure
            return Score(1, completion.text)

    async def main():
        for step, (task, question) in enumerate(product("tu", QUESTIONS)):
            request = TrialRequest(TrialKey("m", step), task, question, 0, seed=step)
            completion = Completion(essay(question), "stop", response_id=f"chatcmpl-{question}-{step}")
            for _ in range(2):
                with pytest.raises(type(failure)):
                    await executor.score(request, completion)
            assert (await executor.score(request, completion)).category == 1

    audit = IndependenceAudit({"m": 0.7})
    executor = AuditedExecutor(Executor(), audit)
    asyncio.run(main())
    assert audit.warnings() == ()
