"""The scorer `choice`: letters and option texts in answers of every style."""

from __future__ import annotations

import pytest

from adaptive_eval.scoring.choice import ChoiceScorer
from adaptive_eval.trial import Completion, Question

COLOURS = ("red", "blue", "dark blue", "A4 paper")

LETTER_FOUND = [
    ("B", "B"),
    ("b", "B"),
    ("(B)", "B"),
    ("[B]", "B"),
    ("B.", "B"),
    ("B)", "B"),
    ("**B**", "B"),
    ("**B.** blue", "B"),
    ("`B`", "B"),
    ('"B"', "B"),
    ("$B$", "B"),
    ("Option B", "B"),
    ("Answer: B", "B"),
    ("Answer: (B)", "B"),
    ("Answer: **B**", "B"),
    ("**Answer: B**", "B"),
    ("**Answer:** B. blue", "B"),
    ("Final Answer\nB", "B"),
    ("**Final Answer:**\n\n(B) blue", "B"),
    ("B. blue", "B"),
    ("B) blue", "B"),
    ("(B) blue", "B"),
    ("B: blue", "B"),
    ("(c) dark blue", "C"),
    ("blue", "B"),
    ("Blue.", "B"),
    ("dark blue", "C"),
    ("\n\nB\n", "B"),
    (r"\boxed{B}", "B"),
    (r"\boxed{\text{B}}", "B"),
    (r"\boxed{(B)}", "B"),
    (r"\boxed{\textbf{(B) }\text{blue}}", "B"),
    (r"\boxed{B. blue}", "B"),
    (r"\boxed{blue}", "B"),
    (r"The answer is A, or rather \boxed{C}", "C"),
    ("The answer is B", "B"),
    ("The answer is B.", "B"),
    ("The answer is (B).", "B"),
    ("The answer is **(B)**, since the sky is blue.", "B"),
    ("The answer is $\\text{B}$.", "B"),
    ("The correct answer is option C.", "C"),
    ("The correct option is B because it is.", "B"),
    ("The answer is A because of this.", "A"),
    ("The answer is A, a good one.", "A"),
    ("The answer is a.", "A"),
    ("the answer is b", "B"),
    ("The answer is: blue.", "B"),
    ("The answer is dark blue, I think.", "C"),
    ("I would go with B here.", "B"),
    ("I choose C.", "C"),
    ("Looking at it, (C) is correct.", "C"),
    ("B is the correct answer. A is incorrect.", "B"),
    ("A is wrong. So the answer is C. B is incorrect.", "C"),
    ("The answer is A. Wait, no. The answer is D.", "D"),
    ("A. red is wrong\nB. blue is wrong\nThe answer is C", "C"),
    ("Let me think.\nIt must be blue, so\nB", "B"),
    ("B. blue\n\nThe sky has this colour.", "B"),
    ("It is the colour of the sky, hence B.", "B"),
    ("It is the colour of the sky, so (B).", "B"),
    ("The sky is blue.", "B"),
    ("It is dark blue.", "C"),
    ("<think>A? No, C.</think>B", "B"),
    ("B\n\nExplanation: A is wrong because the sky is no rose.", "B"),
    ("**B**\n\n- A is wrong.\n- C is not right either.", "B"),
    ("<answer>B</answer>", "B"),
    (r"\boxed{\textbf{(B)}\ \text{blue}}", "B"),
    (r"\boxed{\textbf{(B)}~blue}", "B"),
]

NOTHING_FOUND = [
    "", "A guess would be wrong.", "A good approach is to compare the options.",
    "The answer is a bit unclear.", "The answer is A good question.", "I cannot help with that.",
    "Neither red nor blue is right.", "It is not blue.", "E", "red or blue", "(A) or (B), hard to say",
    "<think>The answer is B.", "Because of the sky", "A dog barks at Dawn",
]  # fmt: skip


@pytest.mark.parametrize(("text", "letter"), LETTER_FOUND)
def test_the_option_meant_is_found(text, letter):
    question = Question("t", "q", letter, choices=COLOURS)
    score = ChoiceScorer().score(Completion(text, "stop"), question)
    assert (score.extracted, score.category) == (letter, 1)
    other = "A" if letter != "A" else "B"
    wrong = ChoiceScorer().score(Completion(text, "stop"), Question("t", "q", other, choices=COLOURS))
    assert wrong.category == 0


@pytest.mark.parametrize("text", NOTHING_FOUND)
def test_prose_is_not_taken_for_an_option(text):
    for letter in "ABCD":
        score = ChoiceScorer().score(Completion(text, "stop"), Question("t", "q", letter, choices=COLOURS))
        assert score.category == 0
        assert score.reason == "no answer found"


@pytest.mark.parametrize(
    "text", ["The answer is A or B.", "The answer is (A) and (B).", "Answer: A, B", "Answer: A/B"]
)
def test_an_answer_that_names_several_options_is_wrong(text):
    for letter in "AB":
        score = ChoiceScorer().score(Completion(text, "stop"), Question("t", "q", letter, choices=COLOURS))
        assert (score.category, score.reason) == (0, "wrong (stated)")
        assert "A" in score.extracted
        assert "B" in score.extracted


@pytest.mark.parametrize(
    ("text", "category", "reason"),
    [
        ("B", 1, "right (whole text)"),
        (r"\boxed{B} since", 1, "right (boxed)"),
        ("The answer is B because", 1, "right (stated)"),
        ("The answer is B", 0, "truncated"),
        ("It could be B", 0, "truncated"),
        (r"\boxed{B", 0, "truncated"),
        ("<think>B", 0, "truncated"),
    ],
)
def test_a_cut_off_answer_counts_only_when_its_result_was_out(text, category, reason):
    score = ChoiceScorer().score(Completion(text, "length"), Question("t", "q", "B", choices=COLOURS))
    assert (score.category, score.reason) == (category, reason)


@pytest.mark.parametrize("target", ["B", "b", "(B)", "B.", "B. blue", "blue", "Blue"])
def test_a_target_is_a_letter_or_a_text(target):
    question = Question("t", "q", target, choices=COLOURS)
    assert ChoiceScorer().check_target(question) is None
    assert ChoiceScorer().score(Completion("The answer is blue.", "stop"), question).category == 1
    assert ChoiceScorer().score(Completion("The answer is red.", "stop"), question).category == 0


@pytest.mark.parametrize(("index_from", "letter"), [(0, "C"), (1, "B")])
def test_a_target_may_count_options(index_from, letter):
    scorer, question = ChoiceScorer(index_from=index_from), Question("t", "q", "2", choices=COLOURS)
    assert scorer.check_target(question) is None
    assert scorer.score(Completion(letter, "stop"), question).category == 1


def test_options_with_latex_and_long_texts_are_recognised():
    long_text = "the derivative of the integral " * 40
    question = Question("t", "q", "A", choices=(long_text, r"$\frac{1}{2}$"))
    assert ChoiceScorer().score(Completion(long_text.upper(), "stop"), question).category == 1
    boxed = ChoiceScorer().score(Completion(r"\boxed{\frac{1}{2}}", "stop"), question)
    assert (boxed.extracted, boxed.category) == ("B", 0)
