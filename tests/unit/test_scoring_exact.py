"""The scorer `exact`, and the extractors and text forms that all scorers share."""

from __future__ import annotations

import pytest

from adaptive_eval.scoring.match import ExactScorer
from adaptive_eval.scoring.text import TAIL, answer_part, last_boxed, last_stated, unwrapped
from adaptive_eval.trial import Completion, Question

RIGHT = [
    ("Paris", "whole text"), ("paris", "whole text"), (" “Paris”.\n", "whole text"),
    ("**Paris**", "whole text"), ("P\u0061\u200aris".replace("\u200a", ""), "whole text"),
    ("Ｐａｒｉｓ", "whole text"), ("The answer is Paris.", "stated"), ("The answer is **Paris**", "stated"),
    ("The answer is Paris. It is the capital.", "stated"), ("Answer:\nParis", "stated"),
    ("The capital is Lyon.\n\nFinal answer: Paris", "stated"), (r"\boxed{Paris}", "boxed"),
    (r"\boxed{\text{Paris}}", "boxed"), (r"The answer is \boxed{Paris}.", "boxed"),
    ("<think>Lyon?</think>Paris", "whole text"), ("<think>Lyon?</think> <answer> Paris </answer>", "stated"),
    ("**Answer:**\n\\[\n\\text{Paris}\n\\]", "stated"), ("Answer:\n```text\nParis\n```", "stated"),
]  # fmt: skip
WRONG = [
    ("Lyon", "wrong (whole text)"),
    ("Paris, France", "wrong (whole text)"),
    ("Paris. Or Lyon.", "wrong (whole text)"),
    ("I think that it is Paris", "wrong (whole text)"),
    ("The answer is Paris or Lyon.", "wrong (stated)"),
    (r"Paris \boxed{Lyon}", "wrong (boxed)"),
    ("", "no answer found"),
    ("<think>Paris", "no answer found"),
]


@pytest.mark.parametrize(("text", "how"), RIGHT)
def test_layout_does_not_matter(text, how):
    score = ExactScorer().score(Completion(text, "stop"), Question("t", "q", "Paris"))
    assert (score.category, score.reason) == (1, f"right ({how})")
    assert score.signals == {"is_correct": True, "has_box": how == "boxed", "truncated": False}


@pytest.mark.parametrize(("text", "reason"), WRONG)
def test_anything_else_is_wrong(text, reason):
    score = ExactScorer().score(Completion(text, "stop"), Question("t", "q", "Paris"))
    assert (score.category, score.reason) == (0, reason)


@pytest.mark.parametrize(
    ("options", "text", "category"),
    [
        ({}, "PARIS!", 1), ({"ignore_case": False}, "PARIS", 0), ({"ignore_case": False}, "Paris.", 1),
        ({"extract": "boxed"}, "Paris", 0),
        ({"extract": "stated"}, "Paris", 0), ({"extract": "whole"}, "The answer is Paris", 0),
        ({"extract": "whole"}, "Paris", 1), ({"strip_reasoning": False}, "<think>x</think>Paris", 0),
    ],
)  # fmt: skip
def test_options(options, text, category):
    scorer = ExactScorer(**options)
    assert scorer.score(Completion(text, "stop"), Question("t", "q", "Paris")).category == category


@pytest.mark.parametrize(
    ("text", "category", "reason"),
    [
        ("Paris", 1, "right (whole text)"),
        ("Pari", 0, "truncated"),
        ("The answer is Paris", 1, "right (stated)"),
        ("The answer is Par", 0, "truncated"),
        ("The answer is Lyon.\nBecause", 0, "wrong (stated)"),
        (r"\boxed{Paris} beca", 1, "right (boxed)"),
        (r"\boxed{Par", 0, "truncated"),
    ],
)
@pytest.mark.parametrize("finish_reason", ["length", "max_tokens"])
def test_a_cut_off_answer_counts_only_when_its_result_was_out(text, category, reason, finish_reason):
    score = ExactScorer().score(Completion(text, finish_reason), Question("t", "q", "Paris"))
    assert (score.category, score.reason) == (category, reason)
    assert (score.extracted is None) is (reason == "truncated")


BOXES = [
    (r"\boxed{7}", "7"), (r"\boxed {7}", "7"), (r"\fbox{7}", "7"), (r"\\boxed{7}", "7"),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"), (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    (r"\boxed{a}\boxed{b}", "b"), (r"\boxed{\boxed{b}}", "b"), (r"{ { \boxed{7}", "7"), (r"} \boxed{7}", "7"),
    (r"\boxed{7} \boxed{", "7"), (r"\boxed{7} \boxed{}", "7"), (r"\boxed{7} \boxed{ }", "7"),
    (r"\boxed 7", "7"), ("\\boxed{\n7\n}", "7"), (r"\boxed{\}", None), (r"\boxed{7", None),
    (r"\boxed{}", None), (r"\unboxed{7}", None), ("boxed{7}", None), ("", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "content"), BOXES)
def test_the_last_complete_box_wins(text, content):
    found = last_boxed(text)
    assert (found.text if found else None) == content


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Answer: 7", "7"),
        ("The answer is 7.", "7."),
        ("The correct answer would be 7", "7"),
        ("The answer is, of course, 7", ", of course, 7"),
        ("the answers are 7 and 8", "7 and 8"),
        ("ANSWER = 7", "7"),
        ("Answer：7", "7"),
        ("答案是7", "7"),
        ("答案：7", "7"),
        ("#### 7", "7"),
        ("##### Heading", None),
        ("#### Step 3: add 4\nso 7", None),
        ("**Answer**\n\n7", "7"),
        ("Answer:\n\n  7\nmore", "7"),
        ("Answer: 7\nAnswer:", "7"),
        ("**Final Answer**\n$$\n7\n$$", "7"),
        ("Answer: $$7$$", "$$7$$"),
        ("Write <answer>6</answer>, no: <Answer>\n7\n</Answer>", "7"),
        ("The answer is <answer>7</answer>.", "7"),
        ("It belongs in <answer></answer>.", None),
        ("I answered 7", None),
        ("no statement", None),
    ],
)
def test_the_last_statement_wins(text, line):
    found = last_stated(text)
    assert (found.text if found else None) == line
    if found:
        assert text[found.end - len(found.text) : found.end] == found.text


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("<think>a</think>b", "b"), ("<think>a</think>b<think>c</think>d", "d"), ("a</think>b", "b"),
        ("a<think>b", "a"), ("<thinking>a</thinking>\nb", "b"), ("[THINK]a[/THINK]b", "b"),
        ("◁think▷a◁/think▷b", "b"), ("1 < 2 <b>x</b>", "1 < 2 <b>x</b>"),
        ("x" * (TAIL + 5) + "y", "x" * (TAIL - 1) + "y"),
    ],
)  # fmt: skip
def test_reasoning_is_left_out(text, part):
    assert answer_part(text) == part


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"\text{New}\ \text{York}", "New York"),
        (r"\text{New~York}", "New York"),
        (r"New \quad York", "New   York"),
        (r"1\,234\!", "1234"),
        ("**New** **York**", "New York"),
        ("2**3", "2**3"),
        ("(a)**b", "(a)**b"),
    ],
)
def test_spaces_and_powers_are_no_layout(text, plain):
    assert unwrapped(text) == plain
