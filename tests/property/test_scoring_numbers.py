"""Numbers survive the ways of writing them."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import assume, given
from hypothesis import strategies as st

from adaptive_eval.scoring.match import NumericScorer
from adaptive_eval.scoring.numeric import Number, is_same_number, read_number
from adaptive_eval.trial import Completion, Question

INTEGERS = st.integers(-(10**30), 10**30)
DECIMALS = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, places=4)
NUMBERS = st.fractions(max_denominator=10**6).map(Number)


@given(INTEGERS)
def test_whole_numbers(n):
    ways = [str(n), f"{n:,}", f"{n}.0", f"${n}$", f"{n} cm", f"**{n}**", f"x = {n}", f"{n:,} dollars"]
    ways += [f"{n:,}".replace(",", "{,}"), f"{n:,}".replace(",", "\u202f"), f"{n:,}".replace(",", " ")]
    assert all(read_number(way) == Number(Fraction(n)) for way in ways)


@given(DECIMALS)
def test_decimals(d):
    ways = [str(d) if "E" not in str(d) else f"{d:f}", f"{d:,f}", f"{d:e}", f"{d:f} km/h", f"\\({d:f}\\)"]
    assert all(read_number(way) == Number(Fraction(d)) for way in ways)


@given(st.integers(-999, 999), st.integers(1, 999))
def test_fractions(top, bottom):
    ways = [
        f"{top}/{bottom}",
        f"{top} / {bottom}",
        rf"\frac{{{top}}}{{{bottom}}}",
        rf"\dfrac{{{top}}}{{{bottom}}}",
    ]
    assert all(read_number(way) == Number(Fraction(top, bottom)) for way in ways)


@given(st.integers(0, 99), st.integers(1, 99), st.integers(1, 99))
def test_mixed_numbers(whole, top, bottom):
    value = Number(whole + Fraction(top, bottom))
    assert read_number(f"{whole} {top}/{bottom}") == value
    assert read_number(rf"{whole}\frac{{{top}}}{{{bottom}}}") == value


@given(st.integers(1, 9999), st.integers(-300, 300))
def test_powers_of_ten(digits, exponent):
    value = Number(digits * Fraction(10) ** exponent)
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
