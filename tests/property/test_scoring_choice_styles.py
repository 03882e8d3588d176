"""A clearly given option is found in every style and for every option."""

from hypothesis import assume, given
from hypothesis import strategies as st

from adaptive_eval.scoring.choice import ChoiceScorer
from adaptive_eval.trial import Completion, Question

CHOICES = ("a red house", "a blue house", "no house", "two houses", "a house boat", "I do not know")
LETTERS = st.sampled_from("ABCDEF")
STYLES = st.sampled_from(
    [
        "{letter}", "({letter})", "{letter}.", "{letter}) {text}", "{letter}. {text}", "**{letter}**",
        "Answer: {letter}", "Answer: ({letter}) {text}", "The answer is {letter}.",
        "The answer is **{letter}. {text}**", "The correct answer is ({letter}), because of the roof.",
        r"Therefore \boxed{{{letter}}}.", r"Therefore $\boxed{{\text{{{letter}}}}}$", "{text}",
        "The answer is {text}.", "Option {letter}", "I choose {letter}.",
    ]
)  # fmt: skip
LEADS = st.sampled_from(
    [
        "",
        "A careful look at the options (A to F) helps. I weighed A and B.\n\n",
        "Let me see.\nA. is too small\nB. is too large\n\n",
        "<think>The answer is F? No, (A)!</think>\n",
        "The answer is D. Wait, let me check again.\n\n",
    ]
)


@given(LETTERS, STYLES, LEADS)
def test_the_option_is_found(letter, style, lead):
    text = lead + style.format(letter=letter, text=CHOICES["ABCDEF".index(letter)])
    # An earlier statement against a bare letter: either reading can be defended.
    is_stated = any(word in style for word in ("answer", "Answer", "boxed", "choose"))
    assume(is_stated or "The answer is D" not in lead)
    score = ChoiceScorer().score(Completion(text, "stop"), Question("t", "q", letter, choices=CHOICES))
    assert (score.extracted, score.category) == (letter, 1)


@given(st.text("abcdefghijklmnopqrstuvwxyz ,\n", max_size=200), LETTERS)
def test_lower_case_prose_without_a_statement_has_no_letter(prose, letter):
    question = Question(
        "t", "q", letter, choices=("roof", "tiles", "bricks", "stones", "windows", "chimneys")
    )
    score = ChoiceScorer().score(Completion(f"well {prose} so", "stop"), question)
    named = [option for option in question.choices if option in prose]
    assert score.extracted is None or named
