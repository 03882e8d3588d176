r"""Numbers as people and models write them, read as exact fractions; needs no package.

Examples: ``1,234.5``, ``-$5``, ``1.2e-3``, ``3 × 10^5``, ``\frac{3}{4}``, ``3 1/2``, ``12 cm^2``, ``50\%``,
``5 million``. A list, a range or a formula (``2\pi``) is not a number.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from adaptive_eval.scoring.text import unwrapped

MOST_DIGITS = 400
"""Longest number read, in digits; also the largest power of ten."""

_LONGEST_ANSWER = 2_000
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_SUPERSCRIPTS = re.compile("[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4}")
_VULGAR = re.compile("(?=[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])")
_DIGIT_GAP = re.compile(r"(?<=\d)(?:[\u00a0\u202f\u2009\u2007'’]|\\[,!;: ]|\{,\})(?=\d{3}(?!\d))")
_REWRITE = (
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\bUS\\?\$"), "$"),
    (re.compile("[−‒–﹣－](?=[ ]?[\\d.$€£¥])"), "-"),
    (re.compile(r"[×⋅·∙✕]|\\times(?![a-z])|\\cdot(?![a-z])"), "*"),
    (re.compile(r"\\[dtc]frac"), r"\\frac"),
    (re.compile(r"\\frac[ ]?(\d)[ ]?(\d)(?!\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\^[ ]?\{[ ]?\\circ[ ]?\}|\^[ ]?\\circ|°|\\degree"), " deg "),
    (re.compile(r"\^[ ]?\{[ ]?([-+]?\d{1,6})[ ]?\}"), r"^\1"),
    (re.compile(r"_[ ]?\{[^{}]{0,40}\}"), "_x"),
    (re.compile(r"\\([$%#&])"), r"\1"),
    (re.compile("⁄"), "/"),
    (re.compile(r"\\pounds(?![a-z])"), "£"),
    (re.compile(r"\\Omega(?![a-z])"), "Ω"),
    (re.compile(r"\\mu(?![a-z])"), "µ"),
    (re.compile(r"(?<=[\d)])\*\*(?=[-+]?\d)"), "^"),
    (re.compile(r"(?:\bnegative|(?:(?<=is )|(?<=[:=] )|^)minus) (?=[$€£¥₹]?[\d.])", re.IGNORECASE), "-"),
)

# Groups of digits are bounded, and what follows them leaves one way to read them: a search hardly backtracks.
_GROUPS = r"\d{1,3}(?:,\d{3}){1,40}(?![\d,]\d)|\d{1,2}(?:,\d{2}){1,40},\d{3}(?!\d)"
_PLAIN = rf"(?:{_GROUPS}|\d+)(?:\.\d+)?|\.\d+"
_BODY = rf"""
    (?: (?P<whole>\d{{1,9}})
        (?: [ ]?\\frac[ ]?\{{[ ]?(?P<mixed_top>\d+)[ ]?\}}[ ]?\{{[ ]?(?P<mixed_bottom>\d+)[ ]?\}}
          | [ ]{{1,2}}(?P<over_top>\d{{1,9}})[ ]?/[ ]?(?P<over_bottom>\d{{1,9}}) )
      | \\frac[ ]?\{{[ ]?(?P<latex_top>[-+]?(?:{_PLAIN}))[ ]?\}}[ ]?\{{[ ]?(?P<latex_bottom>{_PLAIN})[ ]?\}}
      | (?P<top>{_PLAIN})[ ]?/[ ]?(?P<bottom>{_PLAIN})(?![ ]?/[ ]?\d)
      | (?P<base>{_PLAIN})
        (?: [eE](?P<exponent>[-+]?\d{{1,6}})(?!\w)
          | [ ]?(?:\*|[xX])[ ]?10[ ]?\^[ ]?(?P<ten_exponent>[-+]?\d{{1,6}})
          | \^(?P<power>[-+]?\d{{1,6}}) )?
    )
"""
_NUMBER = re.compile(
    rf"""
    (?<![\w^\\/]) (?<!\d\.) (?<!\^[-+])
    (?P<sign>(?<![)\]}}%])[-+])? (?:(?:USD|EUR|GBP)[ ]?|[$€£¥₹](?=[ ]?[-.\d])[ ]?)? (?P<inner_sign>-)?
    {_BODY}
    (?!\d|\.\d)
    (?P<scale>[ ](?:thousand|million|billion|trillion)\b)?
    (?P<percent>[ ]?(?:%|percent\b))?
    (?![ ]?(?:π|√|\\pi\b|\\sqrt\b|\^)|(?-i:i\b))
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_EQUALS = re.compile(r"=|≈|\\approx(?![a-z])|\\simeq(?![a-z])")
_ABOUT = re.compile(r"^(?:approximately|approx\.?|about|roughly|around|~|≈|\\approx)[ ]{0,2}", re.IGNORECASE)
_UNIT = re.compile(r"(?:\^[-+]?\d|[^\W\d][23](?!\d)|[^\W\d]|[ /*.()\[\]°€£¥₹\"'-]){0,80}")
_DENIED = re.compile(
    r"(?:\b(?:not|instead of|rather than|(?:more|less|greater|smaller|fewer|larger|higher|lower) than)"
    r"|n['\u2019]t be|≠|\\neq?|!=|[\w)}] [<>]|\\[lg]t"
    r"|\d[ ]?[^\W\d]{0,3}[%)$]?[ ]?(?:±|\\pm(?![a-z])|\+/-))[ ]{0,2}[$*]{0,3}$",
    re.IGNORECASE,
)
"""What stands before a number that is not the answer: not 5, instead of 5, x > 5, more than 5, 7 ± 5."""
_NO_UNIT = re.compile(r"\b(?:or|to|and|than|not|pi|sqrt|plus|minus|times)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number: its value as written (50 for ``50 %``), and whether it has a percent sign."""

    value: Fraction
    is_percent: bool = False


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """A number in prose, its text, and whether the prose ends with it: then digits may be cut off."""

    number: WrittenNumber
    text: str
    reaches_end: bool


@lru_cache(maxsize=4096)  # every trial repeats its target, and many an answer
def read_number(text: str) -> WrittenNumber | None:
    r"""Read a text that is one number, with a unit, currency or percent sign, or after ``x =``.

    Examples
    --------
    >>> read_number("$1,234.50")
    WrittenNumber(value=Fraction(2469, 2), is_percent=False)
    >>> read_number(r"x = \frac{3}{4}\text{ cm}^2")
    WrittenNumber(value=Fraction(3, 4), is_percent=False)
    >>> read_number("3, 5") is None, read_number(r"2\pi") is None
    (True, True)
    """
    if len(text) > _LONGEST_ANSWER:
        return None
    plain = " ".join(unwrapped(_rewritten(text.rsplit("####", 1)[-1])).split())
    sides = (_read_side(side) for side in reversed(_EQUALS.split(plain)))
    return next((number for number in sides if number is not None), None)


def _read_side(text: str) -> WrittenNumber | None:
    """Read one side of an equation."""
    text = text.lstrip(" ,;:!\"'*").rstrip(" .,;:!\"'*")
    if (text[:1], text[-1:]) in (("(", ")"), ("{", "}")):
        text = text[1:-1].strip()
    text = _ABOUT.sub("", text, count=1)
    match = _NUMBER.match(_joined(re.sub(r"^([-+]) ", r"\1", text)))
    if match is None:
        return None
    rest = match.string[match.end() :]
    if _UNIT.fullmatch(rest) and not _NO_UNIT.search(rest):
        return _number(match)
    return None


def find_numbers(text: str) -> Iterator[FoundNumber]:
    """Yield the numbers in a text, in order, without those that it denies or sets as a strict bound.

    Examples
    --------
    >>> [found.text for found in find_numbers("Not 4 but 5, so x > 3, which is more than 2.")]
    ['5']
    >>> [found.text for found in find_numbers("Of 1,200 boxes 3/4 are left: 10-5=5 more, -2.5 kg, 7 cm^2.")]
    ['1,200', '3/4', '10', '5', '5', '-2.5', '7']
    """
    plain = _rewritten(text)
    for match in _NUMBER.finditer(plain):
        number = _number(match)
        if number is not None and not _DENIED.search(plain, max(0, match.start() - 20), match.start()):
            yield FoundNumber(number, match[0].strip(), match.end() == len(plain))


def is_same_number(
    answer: WrittenNumber, target: WrittenNumber, tolerance: float = 0.0, relative: float = 0.0
) -> bool:
    """Tell whether two numbers differ by at most the larger of an absolute and a relative tolerance.

    If only one has a percent sign, both 50 and 0.5 are 50 %.

    Examples
    --------
    >>> is_same_number(WrittenNumber(Fraction(1, 3)), WrittenNumber(Fraction("0.333")), tolerance=0.001)
    True
    """
    if answer == target:
        return True
    bound = max(Fraction(str(tolerance)), Fraction(str(relative)) * abs(target.value))
    answers = [answer.value]
    targets = [target.value]
    if answer.is_percent and not target.is_percent:
        answers.append(answer.value / 100)
    if target.is_percent and not answer.is_percent:
        targets.append(target.value / 100)
    return any(abs(a - t) <= bound for a in answers for t in targets)


def _rewritten(text: str) -> str:
    """Return a text with one notation for each thing that has several."""
    text = _SUPERSCRIPTS.sub(lambda match: "^" + match[0].translate(_SUPERSCRIPT), text)
    text = _VULGAR.sub(" ", _DIGIT_GAP.sub("", text))
    text = unicodedata.normalize("NFKC", text)
    for pattern, instead in _REWRITE:
        text = pattern.sub(instead, text)
    return text


def _joined(text: str) -> str:
    """Return a text without the spaces between groups of three digits, as in ``1 234 567``."""
    is_grouped = re.match(r"\D{0,3}\d{1,3}(?: \d{3}){1,40}(?!\d)", text)
    if is_grouped:
        return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "", text)
    return text


def _number(match: re.Match[str]) -> WrittenNumber | None:
    if len(match[0]) > MOST_DIGITS:
        return None
    value = _magnitude(match)
    if value is None:
        return None
    if (match["sign"] or "").strip() == "-":
        value = -value
    if match["inner_sign"]:
        value = -value
    scale = 1
    if match["scale"]:
        scale = _SCALE[match["scale"].strip().lower()]
    return WrittenNumber(value * scale, match["percent"] is not None)


def _magnitude(match: re.Match[str]) -> Fraction | None:
    if match["whole"]:
        top = match["mixed_top"] or match["over_top"]
        bottom = match["mixed_bottom"] or match["over_bottom"]
        part = _ratio(top, bottom)
        if part is None:
            return None
        return _fraction(match["whole"]) + part
    if match["latex_top"]:
        return _ratio(match["latex_top"], match["latex_bottom"])
    if match["top"]:
        return _ratio(match["top"], match["bottom"])
    base = _fraction(match["base"])
    exponent = match["exponent"] or match["ten_exponent"]
    if exponent is not None:
        if abs(int(exponent)) <= MOST_DIGITS:
            return base * Fraction(10) ** int(exponent)
        return None
    if match["power"] is None:
        return base
    return _power(base, int(match["power"]))


def _fraction(text: str) -> Fraction:
    return Fraction(Decimal(text.replace(",", "")))


def _ratio(top: str, bottom: str) -> Fraction | None:
    denominator = _fraction(bottom)
    if denominator:
        return _fraction(top) / denominator
    return None


def _power(base: Fraction, exponent: int) -> Fraction | None:
    size = max(base.numerator.bit_length(), base.denominator.bit_length()) * abs(exponent)
    if size > 4 * MOST_DIGITS or (base == 0 and exponent < 0):
        return None
    return base**exponent
