"""What a mimic answers: its spec, its key, its coins, its faults."""

import itertools
import json
import math
import runpy
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import example, given
from hypothesis import strategies as st

from adaptive_eval.errors import UsageError
from adaptive_eval.mimic.answer_key import Answerable, Recogniser, load_answer_key
from adaptive_eval.mimic.delivery import FaultPlan
from adaptive_eval.mimic.examinee import Examinee, Reply, Tosses, count_tokens, question_accuracies, tokenize
from adaptive_eval.mimic.mimic_spec import (
    DatasetSpec,
    FaultSpec,
    KnownQuestion,
    MimicModelSpec,
    MimicSpec,
    spec_from_data,
    spec_from_json,
    spec_to_json,
)
from adaptive_eval.mimic.requests import token_logprobs

ROOT = Path(__file__).parents[2]
# A mimic's spec: checks of every field, and JSON there and back.


def test_a_spec_survives_json_and_does_not_show_its_key():
    """Every setting of the server, and those of its models, differs from its default."""
    spec = spec_from_json((ROOT / "tests" / "data" / "full_mimic.json").read_text("utf-8"))
    assert all(getattr(spec, name) != field.default for name, field in MimicSpec.model_fields.items())
    told = spec_to_json(spec)
    assert "\n" not in told
    assert spec_from_json(told) == spec
    assert "'k'" not in repr(spec)


def test_a_wrong_key_is_not_repeated():
    with pytest.raises(UsageError) as caught:
        spec_from_data({"models": [{"name": "a", "mean": 0.5}], "api_key": ["sk-secret"]})
    assert "sk-secret" not in str(caught.value)


# Answer keys from files: what is right, and what is plausibly wrong.


MODELS = (MimicModelSpec(name="a", mean=0.5),)


def outright(*questions: KnownQuestion) -> list[Answerable]:
    return load_answer_key(MimicSpec(models=MODELS, questions=questions))[0]


@given(st.decimals(-(10**9), 10**9, places=3) | st.integers(-(10**12), 10**12).map(Decimal))
def test_wrong_numbers_are_never_right_and_keep_their_sign(number):
    (question,) = outright(KnownQuestion(id="q", question="How many?", target=str(number), kind="numeric"))
    wrong = [Decimal(text) for text in question.wrong]
    assert wrong
    assert number not in wrong
    assert len(set(wrong)) == len(wrong)
    assert number < 0 or min(wrong) >= 0


# Per-question probabilities: their mean, their distribution, and how models share difficulties.


def names(count: int, prefix: str = "question") -> list[str]:
    return [f"{prefix} {index}" for index in range(count)]


@example(mean=5e-324, spread=0.5, sizes=[1], seed=0)
@given(
    mean=st.floats(0, 1),
    spread=st.floats(0.01, 500),
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=3),
    seed=st.integers(0, 10),
)
def test_each_dataset_has_exactly_the_stated_mean(mean, spread, sizes, seed):
    spec = MimicSpec(models=(MimicModelSpec(name="a", mean=mean, spread=spread),), seed=seed)
    datasets = [names(size, f"set {number}") for number, size in enumerate(sizes)]
    chances = list(question_accuracies(spec, datasets)["a"])
    assert len(chances) == sum(sizes)
    assert all(0 <= chance <= 1 for chance in chances)
    for size in sizes:
        part, chances = chances[:size], chances[size:]
        if part:
            assert math.fsum(part) / size == pytest.approx(mean, abs=1e-11)


def test_difficulties_are_shared_as_far_as_the_correlation_says():
    models = (
        MimicModelSpec(name="a", mean=0.5),
        MimicModelSpec(name="b", mean=0.7),
        MimicModelSpec(name="c", mean=0.3, like="a"),
    )
    found = {}
    for correlation in (0.0, 0.5, 1.0):
        spec = MimicSpec(models=models, correlation=correlation, seed=2)
        p = question_accuracies(spec, [names(3000)])
        found[correlation] = scipy.stats.spearmanr(p["a"], p["b"]).statistic
        assert scipy.stats.spearmanr(p["a"], p["c"]).statistic > 0.999
    # Spearman's correlation under a Gaussian copula: 6/π·asin(ρ/2) (Kruskal 1958).
    assert found[0.0] == pytest.approx(0.0, abs=0.06)
    assert found[0.5] == pytest.approx(6 / math.pi * math.asin(0.25), abs=0.06)
    assert found[1.0] > 0.999


def test_the_sample_is_pinned():
    """The quickstart's run is shown in the README: these numbers must not move between versions."""
    spec = MimicSpec(models=(MimicModelSpec(name="a", mean=0.5),), seed=7)
    chances = question_accuracies(spec, [names(4)])["a"]
    pinned = [0.3879293171350619, 0.5200265646454123, 0.482672872238096, 0.6093712459814296]
    np.testing.assert_allclose(chances, pinned, rtol=0, atol=1e-12)


# What models answer: tokens, prose, recognition of questions, coins.


QUESTION = KnownQuestion(id="q", question="What is six times seven?", target="42")


def examinee(*models: MimicModelSpec, seed: int = 0) -> Examinee:
    return Examinee(MimicSpec(models=models, questions=(QUESTION,), seed=seed))


def replies(exam: Examinee, count: int, prompt: str = QUESTION.question) -> list[Reply]:
    asked = exam.asked(next(iter(exam.models)), prompt)
    return [exam.reply(asked, seed) for seed in range(count)]


@given(st.text())
def test_tokens_joined_are_the_text(text):
    assert "".join(tokenize(text)) == text
    assert count_tokens(text) == len(tokenize(text))


def test_coins_fall_right_as_often_as_they_should():
    for chance in (0.03, 0.5, 0.9):
        answers = replies(examinee(MimicModelSpec(name="a", accuracies=(chance,))), 4000)
        right = sum(reply.answer == "42" for reply in answers)
        assert abs(right - 4000 * chance) < 4.5 * math.sqrt(4000 * chance * (1 - chance))
        assert all(reply.right == (reply.answer == "42") for reply in answers)


def test_coins_of_models_prompts_seeds_and_servers_are_independent():
    """Agreement of any two fair coins is a fair coin: a shared hash would agree always."""
    models = (MimicModelSpec(name="a", accuracies=(0.5,)), MimicModelSpec(name="b", accuracies=(0.5,)))
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


def test_tosses_are_pinned():
    """A run file stores answers; asking again in a later version must give the same ones."""
    toss = Tosses(7, "model", "prompt").toss(3)
    assert (toss.coin, toss.pick, toss.tail) == PINNED_TOSS


PINNED_TOSS = (0.8326252692084852, 0.16304321848938663, 6477604686341797171)


def key(*texts: str) -> Recogniser:
    return Recogniser([Answerable(str(index), text, "1", ("2",)) for index, text in enumerate(texts)])


PROMPTS = {
    0: ["Ann has 3 apples.", "Q: Ann  has\n3\tapples. A:"],
    1: ["Ann has 3 apples. Ben takes one.", "As Ann has 3 apples. Ben takes one. Now: Ann has 9 apples."],
    2: ["2 + 2", "Compute 2 + 2."],
    None: ["Compute 12 + 2", "Compute 2 + 21", "Ann has 3 pears.", "ann has 3 apples.", ""],
}


@pytest.mark.parametrize("index", PROMPTS)
def test_a_question_is_recognised_by_its_text(index):
    known = key("Ann has 3 apples.", "Ann has 3 apples. Ben takes one.", "2 + 2")
    assert {known.find(prompt) for prompt in PROMPTS[index]} == {index}


def test_questions_of_the_same_text_differ_by_their_choices():
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
def test_log_probabilities_are_proper(text, top, noise, right):
    entries = token_logprobs(Reply(text, 1, right, noise=noise), top)
    assert [entry["token"] for entry in entries] == tokenize(text)
    for entry in entries:
        likely = [(one["token"], one["logprob"]) for one in entry["top_logprobs"]]
        assert entry["logprob"] <= 0
        assert len(dict(likely)) == len(likely) == top
        assert sum(math.exp(value) for _, value in likely) <= 1 + 1e-9
        assert likely == sorted(likely, key=lambda one: -one[1])
        assert top == 0 or (entry["token"], entry["logprob"]) in likely


# Which request meets which fault.


def struck(fault: FaultSpec, requests: str) -> str:
    """Return x for every struck request of `requests`, a dot for the others."""
    plan = FaultPlan([fault], seed=1)
    return "".join("x" if plan.strike(request) else "." for request in requests)


@pytest.mark.parametrize(
    ("trigger", "requests", "pattern"),
    [
        ({}, "abc", "xxx"), ({"first": 2}, "abcd", "xx.."), ({"requests": (2, 3)}, "abcde", ".xx.."),
        ({"every": 3}, "abcdefg", "..x..x."), ({"attempts": 1}, "abacab", "xx.x.."),
        ({"attempts": 2}, "aaabbb", "xx.xx."), ({"probability": 0.0}, "abc", "..."),
        ({"probability": 1.0}, "abc", "xxx"),
    ],
)  # fmt: skip
def test_each_trigger_strikes_where_it_says(trigger, requests, pattern):
    assert struck(FaultSpec(kind="drop", **trigger), requests) == pattern


def test_chance_depends_on_the_request_and_its_attempt_not_on_the_order():
    fault = FaultSpec(kind="drop", probability=0.5)
    names = [f"request {index}" for index in range(50)]

    def fates(order: list[str]) -> dict[tuple[str, int], bool]:
        plan, seen, result = FaultPlan([fault], seed=3), dict.fromkeys(order, 0), {}
        for name in order:
            seen[name] += 1
            result[name, seen[name]] = plan.strike(name) is not None
        return result

    forward, backward = fates(names * 2), fates([name for name in reversed(names) for _ in range(2)])
    assert forward == backward
    assert any(forward[name, 1] != forward[name, 2] for name in names)


# The questions that the project ships: as their scripts make them, and fit for their configs.


DATA = ROOT / "configs" / "data"


@pytest.mark.parametrize(
    ("script", "function"), [("arithmetic", "make_problems"), ("choice", "make_questions")]
)
def test_questions_are_what_their_script_makes(script, function):
    make = runpy.run_path(str(ROOT / "scripts" / f"make_{script}.py"))[function]
    assert [json.loads(line) for line in (DATA / f"{script}.jsonl").read_text("utf-8").splitlines()] == make()


@pytest.mark.parametrize("name", ["arithmetic.jsonl", "choice.jsonl"])
def test_a_mimic_recognises_every_question(name):
    spec = MimicSpec(
        models=(MimicModelSpec(name="a", mean=0.5),), datasets=(DatasetSpec(path=str(DATA / name)),)
    )
    (key,) = load_answer_key(spec)
    recogniser = Recogniser(key)
    for index, question in enumerate(key):
        assert recogniser.find(f"Answer this.\n\n{question.question}\n\nThink first.") == index
