"""What models answer: tokens, prose, recognition of questions, coins."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptive_eval.mimic.answer_key import Answerable, Recogniser
from adaptive_eval.mimic.examinee import Examinee, Reply, Stream, count_tokens, tokenize
from adaptive_eval.mimic.mimic_spec import KnownQuestion, MimicSpec, ModelSpec
from adaptive_eval.mimic.requests import Sample, token_logprobs

QUESTION = KnownQuestion(id="q", question="What is six times seven?", target="42")


def examinee(*models: ModelSpec, seed: int = 0) -> Examinee:
    return Examinee(MimicSpec(models=models, questions=(QUESTION,), seed=seed))


def replies(exam: Examinee, count: int, prompt: str = QUESTION.question) -> list[Reply]:
    asked = exam.asked(next(iter(exam.models)), prompt)
    return [exam.reply(asked, seed) for seed in range(count)]


@given(st.text())
def test_tokens_joined_are_the_text(text: str) -> None:
    assert "".join(tokenize(text)) == text
    assert count_tokens(text) == len(tokenize(text))


def test_coins_fall_right_as_often_as_they_should() -> None:
    for chance in (0.03, 0.5, 0.9):
        answers = replies(examinee(ModelSpec(name="a", accuracies=(chance,))), 4000)
        right = sum(reply.answer == "42" for reply in answers)
        assert abs(right - 4000 * chance) < 4.5 * math.sqrt(4000 * chance * (1 - chance))
        assert all(reply.right == (reply.answer == "42") for reply in answers)


def test_coins_of_models_prompts_seeds_and_servers_are_independent() -> None:
    """Agreement of any two fair coins is a fair coin: a shared hash would agree always."""
    models = (ModelSpec(name="a", accuracies=(0.5,)), ModelSpec(name="b", accuracies=(0.5,)))
    first, other_server = examinee(*models), examinee(*models, seed=1)
    runs = {
        (server, model, prompt): [exam.reply(exam.asked(model, prompt), seed).right for seed in range(2000)]
        for server, exam in (("first", first), ("second", other_server))
        for model in ("a", "b")
        for prompt in (QUESTION.question, QUESTION.question + " Think.")
    }
    for one, other in itertools.combinations(runs.values(), 2):
        agreed = sum(x == y for x, y in zip(one, other, strict=True))
        assert abs(agreed - 1000) < 5 * math.sqrt(500)


def test_tosses_are_pinned() -> None:
    """A run file stores answers; asking again in a later version must give the same ones."""
    toss = Stream(7, "model", "prompt").toss(3)
    assert (toss.coin, toss.pick, toss.tail) == PINNED_TOSS


PINNED_TOSS = (0.8326252692084852, 0.16304321848938663, 6477604686341797171)


def key(*texts: str) -> Recogniser:
    return Recogniser([Answerable(str(index), text, "1", ("2",)) for index, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("prompt", "index"),
    [
        ("Ann has 3 apples.", 0),
        ("Q: Ann  has\n3\tapples. A:", 0),
        ("Ann has 3 apples. Ben takes one.", 1),
        ("Example: Ann has 3 apples. Ben takes one. Now: Ann has 9 apples.", 1),
        ("2 + 2", 2),
        ("Compute 2 + 2.", 2),
        ("Compute 12 + 2", None),
        ("Compute 2 + 21", None),
        ("Ann has 3 pears.", None),
        ("ann has 3 apples.", None),
        ("", None),
    ],
)
def test_a_question_is_recognised_by_its_text(prompt: str, index: int | None) -> None:
    known = key("Ann has 3 apples.", "Ann has 3 apples. Ben takes one.", "2 + 2")
    assert known.find(prompt) == index


def test_questions_of_the_same_text_differ_by_their_choices() -> None:
    text = "Which of these is a fruit?"
    known = Recogniser(
        [
            Answerable("a", text, "A", ("B",), ("apple", "chair")),
            Answerable("b", text, "B", ("A",), ("table", "plum")),
        ]
    )
    assert known.find(f"{text}\nA. table\nB. plum") == 1
    assert known.find(f"{text}\nA. apple\nB. chair") == 0
    assert known.find(text) == 0


@given(
    text=st.text(max_size=60), top=st.integers(0, 20), noise=st.integers(0, 2**64 - 1), right=st.booleans()
)
def test_log_probabilities_are_proper(text: str, top: int, noise: int, right: bool) -> None:
    entries = token_logprobs(Sample(text, 1, "stop", None, right, 0.0, noise), top)
    assert [entry["token"] for entry in entries] == tokenize(text)
    for entry in entries:
        likely = [(one["token"], one["logprob"]) for one in entry["top_logprobs"]]
        assert entry["logprob"] <= 0
        assert len(dict(likely)) == len(likely) == top
        assert sum(math.exp(value) for _, value in likely) <= 1 + 1e-9
        assert likely == sorted(likely, key=lambda one: -one[1])
        assert top == 0 or (entry["token"], entry["logprob"]) in likely
