"""Rubrics over the signals of answers, one by one and many at once."""

import json
import math
from pathlib import Path

import pytest

from adaptive_eval.errors import TransientEndpointError
from adaptive_eval.scoring.match import NumericScorer
from adaptive_eval.scoring.rubric import TOKEN_RATIO_UNIT, Rubric, TaskScoring, attempt_signals
from adaptive_eval.trial import Completion, Question, Usage
from scorio.categorical import TOKEN_RATIO_UNIT as PAPERS_UNIT
from scorio.categorical import Schema, bits_per_token, get_schema, schema_names

QUESTION = Question("t", "q", "4")
TEXTS = json.loads((Path(__file__).parents[1] / "data" / "read_texts.json").read_text("utf-8"))


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


def test_open_thresholds_are_known_and_frozen():
    rubric = Rubric(get_schema("efficiency-adjusted"), {"len_p33": 0.1})
    assert rubric.open_thresholds == ("len_p66",)
    records = [{"is_correct": 1, "repeated_pattern": 0, "token_ratio": ratio} for ratio in (0.2, 0.4, 0.6)]
    found = rubric.observed(records)
    assert found["len_p33"] == 0.1
    assert rubric.with_thresholds(found).open_thresholds == ()
    with pytest.raises(ValueError, match="len_p66"):
        rubric.with_thresholds({"len_p33": 0.1})
