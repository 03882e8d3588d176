"""Scorers on anything a model may say: always a score, and the number or option that is written."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from drawn import drawn
from hypothesis import assume, given
from hypothesis import strategies as st

from adaptive_eval.scoring.choice import ChoiceOptions, ChoiceScorer
from adaptive_eval.scoring.match import NumericScorer
from adaptive_eval.scoring.numeric import WrittenNumber, find_numbers, is_same_number, read_number
from adaptive_eval.scoring.registry import build_scorer
from adaptive_eval.scoring.structured import JsonScorer
from adaptive_eval.scoring.text import answer_part, last_boxed, last_stated, storable, unwrapped
from adaptive_eval.trial import Completion, Question

# Always a score, bounded, storable, in linear time.


QUESTIONS = {
    "exact": Question("t", "q", "Paris"),
    "numeric": Question("t", "q", "42"),
    "choice": Question("t", "q", "B", choices=("red", "blue", r"$\frac{1}{2}$")),
    "math": Question("t", "q", r"\frac{4}{3}"),
    "regex": Question("t", "q", r"Par(is)?\b"),
    "contains": Question("t", "q", "Paris"),
    "json": Question("t", "q", '{"city": "Paris"}'),
    "f1": Question("t", "q", "Paris in France"),
    "rouge": Question("t", "q", "Paris in France"),
    "python": Question("t", "q", "Paris"),
}
KINDS = sorted(QUESTIONS)  # the others ask a server or run what they are given: see their own tests
RIGHT = {
    "exact": r"\boxed{Paris}", "numeric": "so 42", "choice": "The answer is (B).",
    "math": r"\boxed{1+\frac13}", "regex": "so Paris", "contains": "so Paris", "json": '{"city": "Paris"}',
    "python": "so Paris",
}  # fmt: skip
OPTIONS = {
    "math": {"time_limit": 2.0},
    "python": {"function": "own_scorer:last_word_is_target", "time_limit": 5.0},
}


LIBRARIES = {
    "math": ("math_verify", "pebble"),
    "regex": ("regex",),
    "json": ("jsonschema", "pebble"),
    "f1": ("rouge_score",),
    "rouge": ("rouge_score", "pebble"),
    "python": ("pebble",),
}


def scorer_of(kind, **more):
    for library in LIBRARIES.get(kind, ()):
        pytest.importorskip(library)
    return build_scorer(kind, {**OPTIONS.get(kind, {}), **more})


# Pieces that the extractors look for, so that random answers reach their inner parts.
PIECES = st.sampled_from(
    [
        r"\boxed{", r"\boxed ", "{", "}", r"\{", "\\", r"\frac{", r"\text{", "1", "42", "1,234", "e5", "×10",
        "½", "²", "٣", ",", ".", "-", "/", "^", "_", "%", "$", "US$", "=", " ", "\n", "**", "(", ")", "A",
        "B", "a", "red", "blue", " is ", " or ", "not", "million", "The answer is ", "Answer:", "#### ",
        "答案是", "<think>", "</think>", "\u202f", "\x00", "\ud800", "\u202e",
    ]
)  # fmt: skip
ANSWERS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=60).map("".join))


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANSWERS, finish_reason=st.sampled_from(["stop", "length", "abort", ""]))
def test_every_answer_gets_a_score_that_can_be_stored(kind, text, finish_reason):
    score = scorer_of(kind).score(Completion(text, finish_reason), QUESTIONS[kind])
    assert score.category in (0, 1)
    assert score.signals["is_correct"] is (score.category == 1)
    assert score.signals["truncated"] is (finish_reason == "length")
    assert score.reason
    if score.extracted is not None:
        score.extracted.encode("utf-8")
        assert len(score.extracted) <= 501
    if score.category == 1:
        assert score.extracted is not None


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANSWERS, target=ANSWERS)
def test_every_target_is_checked_without_an_exception(kind, text, target):
    scorer = scorer_of(kind)
    question = Question("t", "q", target, choices=QUESTIONS[kind].choices)
    if scorer.check_target(question) is None:
        assert scorer.score(Completion(text, "stop"), question).category in (0, 1)


@given(text=ANSWERS)
def test_what_is_found_lies_in_the_text(text):
    box, stated = last_boxed(text), last_stated(text)
    assert box is None or (box.text in text and 0 < box.end <= len(text))
    assert stated is None or text[stated.end - len(stated.text) : stated.end] == stated.text


@given(text=ANSWERS)
def test_a_found_number_reads_the_same_alone(text):
    for found in find_numbers(text):
        assert read_number(found.text) == found.number


@given(text=ANSWERS, padding=st.integers(0, 500))
def test_the_last_number_is_that_of_the_whole_text(text, padding):
    text = (text + " word" * (padding // 5)).strip()
    score = build_scorer("numeric", {"extract": "last-number"}).score(
        Completion(text, "stop"), QUESTIONS["numeric"]
    )
    numbers = list(find_numbers(answer_part(text)))
    assert score.extracted == (storable(numbers[-1].text) if numbers else None)


MILLION = 1_000_000
DATA = Path(__file__).parents[1] / "data" / "hostile_answers.json"
HOSTILE = {
    name: "".join(piece * times for piece, times in pieces)
    for name, pieces in json.loads(DATA.read_text("utf-8")).items()
}
"""Each is the worst case of some pattern; anything worse than linear in it would run for hours."""


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
def test_extractors_are_linear_even_without_the_cut(name):
    text = HOSTILE[name][: MILLION // 5]
    last_boxed(text)
    last_stated(text)
    for _ in find_numbers(text):
        pass
    unwrapped(text)
    storable(text)


@pytest.mark.timeout(60)
def test_a_hundred_thousand_fences_are_read_in_one_pass():
    fences = HOSTILE["open fences"]
    assert JsonScorer().find(fences, None, QUESTIONS["json"]) is None
    closed = fences + '```json\n{"a": 1}\n```'
    assert JsonScorer().find(closed, None, QUESTIONS["json"]).text == '{"a": 1}'


@pytest.mark.slow
def test_a_million_nested_boxes_are_read_in_one_pass():
    assert last_boxed(r"\boxed{" * MILLION) is None
    assert last_boxed(r"\boxed{" * MILLION + "7" + "}" * MILLION).text == "7"


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_scorers_survive_hostile_answers(kind, name):
    scorer = scorer_of(kind, **({"time_limit": 0.5} if kind == "math" else {}))
    question = QUESTIONS[kind]
    for finish_reason in ("stop", "length"):
        assert scorer.score(Completion(HOSTILE[name], finish_reason), question).category == 0


@pytest.mark.parametrize("kind", RIGHT)
def test_an_answer_of_ten_megabytes_is_scored_by_its_end(kind):
    right = RIGHT[kind]
    reasoning = "<think>" + "é{1} the answer is A. " * 450_000 + "</think>"
    assert len(reasoning.encode()) > 10_000_000
    assert scorer_of(kind).score(Completion(reasoning + right, "stop"), QUESTIONS[kind]).category == 1
    essay = "word {1} " * 1_200_000 + "\n"
    assert scorer_of(kind).score(Completion(essay + right, "stop"), QUESTIONS[kind]).category == 1


@drawn(50)
@given(letters=st.integers(2, 26), text=ANSWERS)
def test_options_of_any_number_are_read(letters, text):
    options = ChoiceOptions("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:letters])
    assert options.letter_of(text) in (None, *options.letters)
    assert options.in_last_line(text) in (None, *options.letters)


@given(text=st.text(max_size=200))
def test_the_answer_part_ends_as_the_text_does(text):
    assert text.strip().endswith(answer_part(text, strip_reasoning=False))


# Numbers survive the ways of writing them.


INTEGERS = st.integers(-(10**30), 10**30)
DECIMALS = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, places=4)
NUMBERS = st.fractions(max_denominator=10**6).map(WrittenNumber)


@given(INTEGERS)
def test_whole_numbers(n):
    ways = [str(n), f"{n:,}", f"{n}.0", f"${n}$", f"{n} cm", f"**{n}**", f"x = {n}", f"{n:,} dollars"]
    ways += [f"{n:,}".replace(",", "{,}"), f"{n:,}".replace(",", "\u202f"), f"{n:,}".replace(",", " ")]
    assert all(read_number(way) == WrittenNumber(Fraction(n)) for way in ways)


@given(DECIMALS)
def test_decimals(d):
    ways = [str(d) if "E" not in str(d) else f"{d:f}", f"{d:,f}", f"{d:e}", f"{d:f} km/h", f"\\({d:f}\\)"]
    assert all(read_number(way) == WrittenNumber(Fraction(d)) for way in ways)


@given(st.integers(-999, 999), st.integers(1, 999))
def test_fractions(top, bottom):
    ways = [
        f"{top}/{bottom}",
        f"{top} / {bottom}",
        rf"\frac{{{top}}}{{{bottom}}}",
        rf"\dfrac{{{top}}}{{{bottom}}}",
    ]
    assert all(read_number(way) == WrittenNumber(Fraction(top, bottom)) for way in ways)


@given(st.integers(0, 99), st.integers(1, 99), st.integers(1, 99))
def test_mixed_numbers(whole, top, bottom):
    value = WrittenNumber(whole + Fraction(top, bottom))
    assert read_number(f"{whole} {top}/{bottom}") == value
    assert read_number(rf"{whole}\frac{{{top}}}{{{bottom}}}") == value


@given(st.integers(1, 9999), st.integers(-300, 300))
def test_powers_of_ten(digits, exponent):
    value = WrittenNumber(digits * Fraction(10) ** exponent)
    for way in (f"{digits}e{exponent}", f"{digits} × 10^{exponent}", rf"{digits} \times 10^{{{exponent}}}"):
        assert read_number(way) == value


@given(NUMBERS, NUMBERS, st.floats(0, 10), st.floats(0, 0.5))
def test_a_wider_tolerance_never_turns_right_into_wrong(answer, target, tolerance, relative):
    if is_same_number(answer, target, tolerance, relative):
        assert is_same_number(answer, target, 2 * tolerance, 2 * relative)
    assert is_same_number(answer, target) is (answer == target)
    assert is_same_number(target, target, tolerance, relative)


@given(
    INTEGERS,
    st.sampled_from(["{}", "So {}.", "The answer is {}.", r"\boxed{{{}}}", "#### {}", "It is {} kg"]),
)
def test_the_answer_is_found_in_any_wording(n, wording):
    score = NumericScorer().score(Completion(wording.format(n), "stop"), Question("t", "q", str(n)))
    assert score.category == 1


@given(DECIMALS, DECIMALS)
def test_different_numbers_are_different(a, b):
    assume(a != b and Decimal(100) not in (a / b if b else 0, b / a if a else 0))
    score = NumericScorer().score(Completion(f"{a:f}", "stop"), Question("t", "q", f"{b:f}"))
    assert score.category == 0


# A clearly given option is found in every style and for every option.


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
