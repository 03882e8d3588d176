"""How answers are read, what is shown of them, and rubrics over their signals."""

import json
import math
import os
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_files import load_task

from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.scoring.judge import JudgeScorer
from adaptive_eval.scoring.match import NumericScorer
from adaptive_eval.scoring.numeric import find_numbers, read_number
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.rubric import TOKEN_RATIO_UNIT, Rubric, TaskScoring, attempt_signals
from adaptive_eval.scoring.scorer import score_or_failure
from adaptive_eval.scoring.text import TAIL, answer_part, last_boxed, last_stated, unwrapped
from adaptive_eval.scoring.verifier import VerifierScorer
from adaptive_eval.trial import Completion, Question, Usage
from scorio.categorical import TOKEN_RATIO_UNIT as PAPERS_UNIT
from scorio.categorical import Schema, bits_per_token, get_schema, schema_names

# The scorer `numeric`: what is read as a number, where it is found, and what counts as the same.


DATA = Path(__file__).parents[1] / "data"
TEXTS = json.loads((DATA / "read_texts.json").read_text())
READABLE, UNREADABLE, FOUND = (TEXTS[name] for name in ("numbers", "no_numbers", "numbers_in_prose"))


@pytest.mark.parametrize(("text", "value"), READABLE)
def test_one_number_is_read_exactly_in_any_notation(text, value):
    number = read_number(text)
    assert number is not None
    assert number.value == Fraction(value)
    assert not number.is_percent


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_not_one_number_is_not_read(text):
    assert read_number(text) is None


READ_THERE = """
import json, sys
from adaptive_eval.scoring.numeric import find_numbers, read_number
texts = json.load(sys.stdin)
print(json.dumps([[str(getattr(read_number(text), "value", None)) for text in texts],
                  [[found.text for found in find_numbers(f"It is {text}.")] for text in texts]]))
"""


def test_the_systems_own_python_reads_the_same_numbers():
    # Debian's 3.11.2 has faults in possessive quantifiers, which later patch versions mended. The others are
    # tested by ./scripts/interpreters.
    known = "/usr/bin/python3"
    if not Path(known).exists():
        pytest.skip("the system has no Python of its own")
    texts = [
        *(text for text, _ in READABLE),
        *UNREADABLE,
        *(text for text, _ in FOUND),
        "1,23,45,678",
        "1,234,56",
    ]
    root = Path(__file__).parents[2]
    there = subprocess.run(
        [known, "-c", READ_THERE],
        input=json.dumps(texts),
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    here = [str(getattr(read_number(text), "value", None)) for text in texts]
    found = [[found.text for found in find_numbers(f"It is {text}.")] for text in texts]
    assert json.loads(there.stdout) == [here, found], there.stderr


@pytest.mark.parametrize("text", ["50%", r"50\%", "50 %", "50 percent", "$50\\%$"])
def test_percent_is_read_and_remembered(text):
    number = read_number(text)
    assert (number.value, number.is_percent) == (50, True)


# The extractors and text forms that all scorers share; answers are in ``test_scoring_numeric``.


def text_of(found):
    return found and found.text


READERS = {
    "numbers_in_prose": lambda text: [found.text for found in find_numbers(text)],
    "boxed": lambda text: text_of(last_boxed(text)),
    "stated": lambda text: text_of(last_stated(text)),
    "after_reasoning": answer_part,
    "plain": unwrapped,
}


@pytest.mark.parametrize(
    ("reader", "text", "read"), [(reader, *case) for reader in READERS for case in TEXTS[reader]]
)
def test_a_reader_finds_its_part_of_a_text(reader, text, read):
    assert READERS[reader](text) == read


def test_of_a_long_text_the_end_is_read():
    assert answer_part("x" * (TAIL + 5) + "y") == "x" * (TAIL - 1) + "y"


# What judge and verifier are shown of a question.


SERVER = {"endpoint": "http://nowhere.invalid/v1", "model": "any"}
SCORERS = [JudgeScorer(**SERVER), JudgeScorer(**SERVER, compare="pairwise"), VerifierScorer(**SERVER)]


def shown(scorer, tmp_path, row, **options):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(row), encoding="utf-8")
    task = load_task("t", file, **options)
    question = task.asked(task.questions[0], seed=0)
    return scorer.messages("It is 4.", question)[-1].content


TALK = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2 + 2?"}]
SKY = {"id": "sky", "input": "The sky?", "choices": ["red", "blue", "green"], "target": "B"}


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize(
    ("row", "options", "words"),
    [
        ({"talk": TALK, "target": "4"}, {"fields": {"messages": "talk"}}, "system: Add.\nuser: 2 + 2?\n"),
        (SKY, {}, "The sky?\nA. red\nB. blue\nC. green\n"),
        ({"input": "2 + 2?", "target": "4"}, {}, "2 + 2?\n\n"),
    ],
    ids=["conversation", "options", "plain"],
)
def test_a_question_is_judged_as_the_model_was_asked(tmp_path, scorer, row, options, words):
    assert f"Question:\n{words}" in shown(scorer, tmp_path, row, **options)


@pytest.mark.parametrize("scorer", SCORERS)
def test_shuffled_options_are_shown_as_the_model_was_asked(tmp_path, scorer):
    content = shown(scorer, tmp_path, SKY, shuffle_options=True)
    letter = next(line[0] for line in content.splitlines() if line.endswith(". blue"))
    assert letter != "B"
    assert f"\n{letter}\n" in content


@pytest.mark.parametrize("kind", [JudgeScorer, VerifierScorer])
def test_reasoning_kept_apart_is_shown_on_request_only(kind):
    answer = Completion("It is 4.", "stop", reasoning="2 and 2")
    assert kind(**SERVER).shown(answer) == "It is 4."
    assert kind(**SERVER, with_reasoning=True).shown(answer) == "<think>\n2 and 2\n</think>\n\nIt is 4."


# The scorer ``tool_calls`` on any call; ``test_scoring_numeric`` has which calls fit a target.


@given(st.text(), st.text(), st.sampled_from(["equal", "subset", "ignore"]))
def test_every_call_gets_a_score_that_can_be_stored(name, arguments, compared):
    target = Question("t", "q", '[{"name": "a", "arguments": {"n": [1]}}]')
    scorer = build_scorer("tool_calls", {"arguments": compared})
    call = {"id": "1", "name": name, "arguments": arguments}
    score = scorer.score(Completion("", "stop", tool_calls=(call,)), target)
    assert score.category in (0, 1)
    (score.extracted or "").encode()


# Answers of every style, each with what a scorer makes of it: ``tests/data/scored_answers.jsonl``.


CASES = [json.loads(line) for line in (DATA / "scored_answers.jsonl").read_text("utf-8").splitlines()]
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
        if "several" not in found.reason:
            assert found.signals["has_box"] is found.reason.endswith("(boxed)")
        assert found.extracted is None or found.reason not in ("truncated", "no answer found")
    if "not" in case:
        assert scored(case["not"]).category == 0


QUESTION = Question("t", "q", "4")


def logprobs(*values):
    return {"content": [{"token": "x", "logprob": value} for value in values]}


def test_signals_follow_the_papers_definitions():
    assert TOKEN_RATIO_UNIT == PAPERS_UNIT
    answer = Completion("4", "stop", Usage(9, 512), 0.25, logprobs=logprobs(-0.5, -1.5))
    signals = attempt_signals(answer)
    assert signals == {
        "latency": 0.25,
        "truncated": False,
        "repeated_pattern": 0,
        "token_ratio": 512 / 32768,
        "prompt_tokens": 9,
        "completion_tokens": 512,
        "completion_bpt": pytest.approx(float(bits_per_token(-2.0, 2))),
    }


def test_the_prompts_bits_come_from_vllms_prompt_logprobs():
    prompt = [None, {"15": {"logprob": -math.log(2)}}, {"7": {"logprob": -math.log(8)}, "9": {"logprob": -9}}]
    assert attempt_signals(Completion("4", "stop", logprobs={"prompt": prompt}))[
        "prompt_bpt"
    ] == pytest.approx(2)


def test_the_logprobs_of_a_plain_completion_count_like_those_of_a_chat():
    given = {"tokens": ["a", "b"], "token_logprobs": [-math.log(2), -3 * math.log(2)]}
    assert attempt_signals(Completion("ab", "stop", logprobs=given))["completion_bpt"] == pytest.approx(2.0)


@pytest.mark.parametrize("given", TEXTS["no_logprobs"])
def test_nonsense_in_place_of_logprobs_gives_no_signal(given):
    signals = attempt_signals(Completion("4", "", logprobs=given))
    assert signals.keys() == {"latency", "truncated"}


@pytest.mark.parametrize("name", schema_names())
def test_one_answer_and_many_get_the_same_categories(name):
    schema = get_schema(name)
    thresholds = {rule.name: rule.quantile for rule in schema.threshold_rules}
    records = [
        {
            "is_correct": right, "has_box": box, "repeated_pattern": cut, "token_ratio": ratio,
            "completion_bpt": bits, "prompt_bpt": bits, "verifier_a": bits, "verifier_b": 0.0,
            "verifier_c": 1 - bits,
        }
        for right in (0, 1)
        for box in (0, 1)
        for cut in (0, 1)
        for ratio in (0.1, 0.5, 0.9)
        for bits in (0.2, 0.7)
    ]  # fmt: skip
    rubric = Rubric(schema, thresholds)
    assert rubric.assign(records) == [rubric.category(record) for record in records]
    assert len(rubric.categories) == len(schema.categories)


def test_truncation_is_category_0_in_an_own_schema_too_unless_it_is_judged():
    categories = [{"name": "wrong", "when": "wrong"}, {"name": "right", "when": "otherwise"}]
    own = Schema.from_dict({"name": "mine", "categories": categories, "weights": [0, 1]})
    cut = {"is_correct": True, "has_box": True, "truncated": True, "repeated_pattern": 1}
    for schema, judged in ((own, 1), (get_schema("format-aware"), 4)):
        assert Rubric(schema).category(cut) == 0
        assert Rubric(schema, truncated="judged").category(cut) == judged


def test_an_answer_without_what_was_asked_for_is_not_scored():
    scoring = TaskScoring(NumericScorer(), Rubric(get_schema("conf-calibrated"), {"tau_high": 0.3}))
    with pytest.raises(TransientEndpointError, match=r"cannot be scored.*completion_bpt"):
        scoring.score(Completion("4", "stop", Usage(3, 1)), QUESTION)
    scoring = TaskScoring(NumericScorer(), Rubric(), missing=("content_filter",))
    causes = ("content_filter", "length")
    assert [scoring.score(Completion("", cause), QUESTION).category for cause in causes] == [None, 0]
    assert [Rubric().category({"is_correct": share}) for share in (0.49, 0.5)] == [0, 1]


def test_open_thresholds_are_known_and_frozen():
    rubric = Rubric(get_schema("efficiency-adjusted"), {"len_p33": 0.1})
    assert rubric.open_thresholds == ("len_p66",)
    records = [{"is_correct": 1, "repeated_pattern": 0, "token_ratio": ratio} for ratio in (0.2, 0.4, 0.6)]
    found = rubric.observed(records)
    assert found["len_p33"] == 0.1
    assert rubric.with_thresholds(found).open_thresholds == ()
    with pytest.raises(ValueError, match="len_p66"):
        rubric.with_thresholds({"len_p33": 0.1})


def test_the_chance_of_a_letter_is_that_among_the_letters_over_all_ways_to_write_it():
    tokens = [("B", 0.3), (" B", 0.1), ("A", 0.05), ("(A", 0.05), ("The", 0.5)]
    likely = [{"token": token, "logprob": math.log(chance)} for token, chance in tokens]
    answer = Completion("B", "length", logprobs={"content": [{"top_logprobs": likely}]})
    scorer = build_scorer("choice_probability", {})
    found = [scorer.score(answer, Question("t", "q", letter)).signals["score"] for letter in "ABC"]
    assert found == pytest.approx([0.2, 0.8, 0.0])
