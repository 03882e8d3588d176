"""The audit of repeated answers: copies are found, and what comes again by nature is not cried over."""

from __future__ import annotations

import asyncio
import random

import pytest

from adaptive_eval.engine.independence import AuditedExecutor, IndependenceAudit, temperature_of
from adaptive_eval.errors import ScorerUnavailable, TransientEndpointError
from adaptive_eval.trial import Completion, Score, TrialKey, TrialRequest

QUESTIONS = [f"q{number}" for number in range(40)]
WORDS = [f"word{number}" for number in range(500)]


def essay(seed, words=150):
    """Return some 1,000 bytes that hardly two seeds share."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def varying(text, question, repeat):
    """Return `text`, and one time in 50 another one."""
    return text if (QUESTIONS.index(question) + 7 * repeat) % 50 else f"{text} or not"


def audited(
    answer, *, temperature=0.7, passes=4, response_id=lambda question, repeat: f"cmpl-{question}-{repeat}"
):
    """Return the warnings after `passes`; `answer` gives the text from question and repeat."""
    audit = IndependenceAudit({"m": temperature})
    for repeat in range(passes):
        for question in QUESTIONS:
            audit.observe(
                "m",
                ("t", question),
                Completion(answer(question, repeat), "stop", response_id=response_id(question, repeat)),
            )
    return audit.warnings()


def test_a_cache_is_found_and_described():
    (warning,) = audited(lambda question, repeat: essay(question))
    assert warning.startswith("m: 120 of 120 answers to a question asked again are the same text")
    assert "at temperature 0.7" in warning
    assert "response id" not in warning


def test_a_cache_is_found_within_the_second_pass():
    (warning,) = audited(lambda question, repeat: essay(question), passes=2)
    assert warning.startswith("m: 40 of 40 ")


def test_a_proxy_that_caches_half_of_the_time_is_found():
    def answer(question, repeat):
        return essay(
            (question, repeat if random.Random(f"{question}{repeat}").random() < 0.5 else 0).__repr__()
        )

    assert audited(answer, passes=8)


@pytest.mark.parametrize(
    "answer",
    [
        lambda question, repeat: essay(f"{question}/{repeat}"),
        lambda question, repeat: varying("B", question, repeat),
        lambda question, repeat: varying("", question, repeat),
        lambda question, repeat: varying(f"\\boxed{{{QUESTIONS.index(question)}}}.", question, repeat),
        lambda question, repeat: varying("I'm sorry, but I cannot help with that. " * 4, question, repeat),
        # The same page for all: it tells nothing about repeats.
        lambda question, repeat: varying(essay("one"), question, repeat),
        # A long template around a short answer.
        lambda question, repeat: (
            f'{essay("head")} {{"answer": "{varying(question, question, repeat)}"}} {essay("tail")}'
        ),
        # One in ten short explanations comes again word for word.
        lambda question, repeat: essay(f"{question}/{repeat if repeat % 10 else 0}", words=60),
    ],
    ids=["essays", "letters", "nothing", "boxes", "refusals", "one page", "template", "explanations"],
)
def test_what_is_natural_is_no_alarm(answer):
    assert audited(answer, passes=20) == ()


def test_short_answers_under_the_same_id_come_from_a_cache():
    (warning,) = audited(
        lambda question, repeat: "B", response_id=lambda question, repeat: f"chatcmpl-{question}-x"
    )
    assert "120 of them under the same response id" in warning


@pytest.mark.parametrize("name", ["", "chatcmpl-of-this-server", "7"])
def test_a_server_that_calls_all_responses_the_same_proves_nothing(name):
    letters = audited(lambda question, repeat: varying("B", question, repeat), response_id=lambda *_: name)
    assert letters == ()


@pytest.mark.parametrize("answer", ["B", "", "refused " * 20, essay("one")])
def test_answers_that_never_vary_are_told_of(answer):
    (warning,) = audited(lambda question, repeat: answer)
    assert warning.startswith("m: all 120 answers to a question asked again are the same text")
    assert "They do not count until one differs" in warning
    assert "deterministic: true" in warning


def copies_among(answer, passes, audit=None):
    """Return which repeats are copies, in the order of asking."""
    audit = audit or IndependenceAudit({"m": 0.7})
    return [
        audit.observe("m", ("t", question), Completion(answer(question, repeat), "stop"))
        for repeat in range(passes)
        for question in QUESTIONS
    ]


def test_long_copies_never_count():
    def half(question, repeat):
        return essay(question if QUESTIONS.index(question) % 2 else f"{question}/{repeat}")

    found = copies_among(half, 3)
    assert sum(found[40:]) == 40, "those of every other question, in both later passes"
    assert not any(found[:40])


def test_a_model_of_nothing_but_copies_is_asked_no_more():
    audit = IndependenceAudit({"m": 0.7})
    copies_among(lambda question, repeat: essay(question), 8, audit)
    assert audit.pointless("m") is None
    copies_among(lambda question, repeat: essay(question), 1, audit)
    assert "the last 320 answers" in audit.pointless("m")
    copies_among(lambda question, repeat: essay(f"{question} once more"), 1, audit)
    assert audit.pointless("m") is None


def test_answers_of_one_question_after_the_other_are_told_from_its_template():
    """As with several answers of one request: the latest answer is to the same question."""
    audit = IndependenceAudit({"m": 0.7})
    for question in QUESTIONS:
        for repeat in range(8):
            text = f"{essay('head')} {varying(question, question, repeat)} {essay('tail')}"
            audit.observe("m", ("t", question), Completion(text, "stop"))
    assert audit.warnings() == ()


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"temperature": 0.8}, 0.8), ({"temperature": 1}, 1.0), ({}, 0.6), ({"temperature": None}, 0.6),
        ({"temperature": 0}, None), ({"temperature": 0.0}, None), ({"temperature": 1.0, "top_k": 1}, None),
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
        for step, question in enumerate(QUESTIONS):
            request = TrialRequest(TrialKey("m", step), "t", question, 0, seed=step)
            completion = Completion(essay(question), "stop", response_id=f"chatcmpl-{question}-{step}")
            for _ in range(2):
                with pytest.raises(type(failure)):
                    await executor.score(request, completion)
            assert (await executor.score(request, completion)).category == 1

    audit = IndependenceAudit({"m": 0.7})
    executor = AuditedExecutor(Executor(), audit)
    asyncio.run(main())
    assert audit.warnings() == ()
