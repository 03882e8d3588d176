"""The extractors and text forms that all scorers share; answers are in ``test_scored_answers``."""

from __future__ import annotations

import pytest

from adaptive_eval.scoring.text import TAIL, answer_part, last_boxed, last_stated, unwrapped

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
