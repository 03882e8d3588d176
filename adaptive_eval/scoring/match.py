"""The scorers ``exact``, ``regex``, ``contains`` and ``numeric``: against a text, a pattern or a number."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from adaptive_eval.options.scorers import (
    ContainsScorerConfig,
    ExactScorerConfig,
    NumericScorerConfig,
    RegexScorerConfig,
)
from adaptive_eval.scoring.numeric import FoundNumber, find_numbers, is_same_number, read_number
from adaptive_eval.scoring.scorer import Ambiguous, Answer, AnswerScorer, Undecided
from adaptive_eval.scoring.text import REASON, Extract, is_spaceless, last_stated, normalised, unwrapped
from adaptive_eval.trial import Question

LONGEST_TARGET = 10_000
"""Characters that a target compared exactly may have."""

_SENTENCE_END = re.compile(r"[.!?]\s")


class ExactScorer(ExactScorerConfig, AnswerScorer):
    r"""Compares texts after normalising Unicode, white space punctuation and, by default, case.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("capitals", "fr", "Paris")
    >>> ExactScorer().score(Completion("The answer is **paris**.", "stop"), question).reason
    'right (stated)'
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        if len(question.target) > LONGEST_TARGET:
            return (
                f"the target has {len(question.target)} characters; exact compares at most {LONGEST_TARGET}"
            )
        if self._form(question.target):
            return None
        return "the target is empty"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None."""
        if self.extract in ("auto", "boxed") and box is not None:
            return Answer(unwrapped(box.text), "boxed", is_final=True)
        stated = None
        if self.extract in ("auto", "stated"):
            stated = last_stated(text)
        if stated is not None:
            answer = unwrapped(stated.text)
            return Answer(answer, "stated", stated.end < len(text) or self._is_target(answer, question))
        if self.extract in ("auto", "whole") and text:
            return Answer(text, "whole text", self._is_target(text, question))
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer`, or for a stated one its first sentence, is the target."""
        if answer.how == "stated" and self._is_target(_SENTENCE_END.split(answer.text, 1)[0], question):
            return True
        return self._is_target(answer.text, question)

    def _is_target(self, text: str, question: Question) -> bool:
        # A far longer text cannot be the target; an essay is not normalised.
        far_longer = len(text) > 4 * LONGEST_TARGET
        return not far_longer and self._form(text) == self._form(question.target)

    def _form(self, text: str) -> str:
        return normalised(unwrapped(text), ignore_case=self.ignore_case)


LIMIT = 1.0
"""Seconds that one match may take."""


class RegexScorer(RegexScorerConfig, AnswerScorer):
    r"""Matches a regular expression, by an engine with a time limit.

    With a `pattern`, its last match in the answer (group 1, if it has groups) must be the target up to
    layout. Without one, the target is the pattern, and an answer with a match is right.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> scorer = RegexScorer(pattern=r"ANSWER=(\w+)")
    >>> answer = Completion("ANSWER=one … ANSWER=two", "stop")
    >>> scorer.score(answer, Question("t", "q", "two")).extracted
    'two'
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target, or the pattern, unusable, or None."""
        from regex import error as not_a_pattern

        if self.pattern is None:
            pattern = question.target
        else:
            pattern = self.pattern
        try:
            _compiled(pattern, self.ignore_case)
        except not_a_pattern as error:
            return f"{pattern[:60]!r} is not a regular expression: {error}"
        except RecursionError:
            return f"{pattern[:60]!r} is a regular expression that is nested too deeply"
        if question.target.strip():
            return None
        return "the target is empty"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the last match in `text`, or None."""
        if self.pattern is None:
            pattern = question.target
        else:
            pattern = self.pattern
        compiled = _compiled(pattern, self.ignore_case)
        try:
            found = None
            for found in compiled.finditer(text, timeout=LIMIT):  # noqa: B007 - the last one counts
                pass
        except TimeoutError:
            return Answer("", _TOO_LONG, is_final=True)
        if found is None:
            return None
        return Answer((found[1] if compiled.groups else found[0]) or "", "match", found.end() < len(text))

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether the match is the target; Undecided if the engine took too long."""
        if answer.how == _TOO_LONG:
            raise Undecided(f"matching took longer than {LIMIT:g} s")
        if self.pattern is None:
            return True
        forms = (
            normalised(unwrapped(text), ignore_case=self.ignore_case)
            for text in (answer.text, question.target)
        )
        return len(set(forms)) == 1


class ContainsScorer(ContainsScorerConfig, AnswerScorer):
    """Right when the target is somewhere in the answer, and not inside a longer word or number.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("capitals", "fr", "Paris")
    >>> [ContainsScorer().score(Completion(text, "stop"), question).category
    ...  for text in ("I think it is paris, France.", "Comparison")]
    [1, 0]
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        if self._form(question.target):
            return None
        return "the target is empty"

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return where the target is in `text`, or None."""
        form = self._form(text)
        target = self._form(question.target)
        place = form.find(target)
        while place >= 0:
            if _stands_alone(form, place, place + len(target)):
                return Answer(form[max(0, place - 40) : place + len(target) + 40], "found", is_final=True)
            place = form.find(target, place + 1)
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Return True: an answer is a place where the target was found."""
        return True

    def _form(self, text: str) -> str:
        return normalised(text, ignore_case=self.ignore_case, ignore_punctuation=False)


_TOO_LONG = "no end"


def _stands_alone(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    inside_left = _is_one_word(before[-1:], text[start]) or (
        text[start].isdigit() and re.fullmatch(r"\d[.,]|[\s(]?[.-]", before) is not None
    )
    inside_right = _is_one_word(text[end - 1], after[:1]) or (
        text[end - 1].isdigit() and re.fullmatch(r"[.,]\d", after) is not None
    )
    return not inside_left and not inside_right


def _is_one_word(left: str, right: str) -> bool:
    """Tell whether two neighbours belong to one word; scripts without spaces do not mark words."""
    return left.isalnum() and right.isalnum() and not (is_spaceless(left) or is_spaceless(right))


@lru_cache(maxsize=4096)
def _compiled(pattern: str, ignore_case: bool) -> Any:
    import regex

    flags = 0
    if ignore_case:
        flags = regex.IGNORECASE
    return regex.compile(pattern, flags)


_USUALLY_ENOUGH = 400
"""Characters at the end of a text that are searched first for its last number."""


class NumericScorer(NumericScorerConfig, AnswerScorer):
    r"""Compares numbers, whatever their notation (:mod:`adaptive_eval.scoring.numeric`).

    A box that holds no number is a wrong answer. Of two tolerances the larger bound holds.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("sums", "q1", "1200")
    >>> NumericScorer().score(Completion(r"So it costs \boxed{\$1,200.00}.", "stop"), question).category
    1
    """

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        if read_number(question.target) is None:
            return f"the target {question.target[:60]!r} is not a number; use the scorer exact, or correct it"
        return None

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the answer in `text`, whose last box is `box`, or None; Ambiguous if it names several."""
        if self.extract in ("auto", "boxed") and box is not None:
            if read_number(box.text) is None:
                _require_one(_alternatives(box.text))
            _require_one(_alternatives(_last_boxes(text)))
            return Answer(_without_precision(box.text), "boxed", is_final=True)
        stated = None
        if self.extract in ("auto", "stated"):
            stated = last_stated(text)
        if stated is not None:
            _require_one(_alternatives(stated.text))
            answer = _stated_number(stated, len(text))
            if answer is not None:
                return answer
        if self.extract in ("auto", "last-number"):
            last = _last_number(text)
            _require_one(_either_of_the_last(text))
            if last is not None:
                line = text.rpartition("\n")[2]
                alone = read_number(line)
                found = last.text
                if alone is not None and abs(alone.value) != abs(last.number.value):
                    found = line  # 1 234 is one number; "- 3" may be an item of a list
                # In a text that was cut off, a later number may be missing.
                return Answer(found, "last number", is_final=False)
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is the target's number."""
        number = read_number(answer.text)
        target = read_number(question.target)
        if number is None or target is None:
            return False
        return is_same_number(number, target, self.tolerance, self.relative_tolerance)


_MAYBE = r"(?:but\s+)?(?:alternatively|maybe|perhaps|possibly)\b,?"
_OR_ELSE = r"(?:or|ou|oder|o|или)"
_MIGHT_BE = r",?\s+but\s+(?:it\s+)?(?:could|may|might)\s+(?:also\s+)?be\b"

_BETWEEN = re.compile(
    rf"\s*(?:[,;]?\s*\b(?:{_OR_ELSE}|and|to|through)\b(?:,?\s+(?:{_MAYBE}|even\b|also\b))?|或者?|または"
    rf"|{_MIGHT_BE}|[,;]\s(?:\s*{_MAYBE})?|[–—&])\s*"
)
"""What stands between several numbers that are all given as the answer."""

_BEFORE_SEVERAL = re.compile(r"\W*(?:either|between|from|maybe|perhaps|possibly)\s+", re.IGNORECASE)

_REASONING = re.compile(
    r"=|^\W*(?:as|because|but|for|if|not|since|so|that|then|where|which|while)\b", re.IGNORECASE
)
"""What tells a reason or a calculation after the answer from one more number."""

_OR = re.compile(
    rf"[.,;]?\s+{_OR_ELSE}\b,?\s+(?:(?:{_MAYBE}|even|also)\s+)?|\s*(?:或者?|または)\s*"
    rf"|[,;]\s+{_MAYBE}\s+|{_MIGHT_BE}\s+",
    re.IGNORECASE,
)
"""What stands between the last two numbers of a text, if each may be the answer."""

_ONE = r"[$€£]?(\d[\d,]*(?:\.\d+)?)%?"
_REST = r"(?![\d.,]*\d)(?!\s*(?:decimal|significant))[^\d=]*$"
_RANGE = re.compile(
    rf"^\W*(?:from\s+)?{_ONE}\s*(?:\b(?:to|through)\b|[-−–—~])\s*{_ONE}{_REST}", re.IGNORECASE
)
"""A line that is a range: 5-6, or 5 to 6 apples; without a further number or an equation."""
_LAST_RANGE = re.compile(
    rf"(?:\bbetween\s+{_ONE}\s+and\s+"
    rf"|\b(?:is|are|be|about|around|approximately|roughly)\s+{_ONE}\s+(?:to|through)\s+"
    rf"|(?<![\w.,:/^$€£-]){_ONE}[-–]){_ONE}{_REST}",
    re.IGNORECASE,
)
"""A range at the end of a text; "-" with spaces is a minus sign there, and so are other dashes and dates."""

_SIGNS = re.compile(r"±|\\pm(?![a-z])|\+/-")
_PLUS_OR_MINUS = re.compile(rf"(?:^|[=:(]|\b(?:is|are|be))[\s$]*(?:{_SIGNS.pattern})[\s{{]*{_ONE}{_REST}")
"""Both signs of a number, without another one before; with one they are its precision."""
_ROOT = r"(?:_?\{?\d\}?)?\s*=\s*"
_ROOTS = re.compile(rf"(?<![\w\\])([A-Za-z]){_ROOT}[^=\n]{{1,40}}(?<!\w)\1{_ROOT}[^=\n]{{1,40}}$")
"""A variable that has several values: x = 5 or x = -5, x_1 = 5, x_2 = -5."""

_PRECISION = re.compile(r"\b(?:decimal|significant)\b", re.IGNORECASE)

_BOXES = re.compile(r"(?:\\(?:boxed|fbox)\{[^{}]{1,60}\}\W{0,8}(?:\b(?:or|and)\b\W{0,8})?){2,8}$")


def _last_boxes(text: str) -> str:
    r"""Return what the boxes at the end of a text hold, if there are several in a row.

    >>> _last_boxes(r"So it is $\boxed{5}$ or $\boxed{6}$.")
    '5 or 6'
    """
    boxes = _BOXES.search(text[-_USUALLY_ENOUGH:])
    if boxes is None:
        return ""
    return " or ".join(re.findall(r"\{([^{}]*)\}", boxes[0]))


def _alternatives(line: str) -> list[str]:
    """Return the numbers that a statement begins with, if it is several: 5 or 6.

    >>> _alternatives("5, 6 or even 7 apples."), _alternatives("1,200 and it is final")
    (['5', '6', '7 apples.'], ['1,200'])
    """
    line = REASON.split(line.replace("**", ""), maxsplit=1)[0]
    found = _ends_of(_RANGE.search(line)) or _both_signs(line)
    if found:
        return found
    roots = _ROOTS.match(line.lstrip(" $"))
    if roots is not None:
        line = re.sub(rf"(?<!\w){roots[1]}{_ROOT}", "", roots[0].replace("$", ""))
    before = _BEFORE_SEVERAL.match(line)
    start = 0
    if before is not None:
        start = before.end()
    for part in _BETWEEN.split(line[start:]):
        if read_number(part) is None or _REASONING.search(part) or _PRECISION.search(part):
            break
        found.append(part)
    return found


def _either_of_the_last(text: str) -> list[str]:
    """Return the last two numbers of a text, if they are a range or have nothing but "or" between them.

    >>> _either_of_the_last("It is 5, or maybe 6."), _either_of_the_last("She needs 5-6 eggs.")
    (['5', '6'], ['5', '6'])
    >>> _either_of_the_last("Then 18-5=13"), _either_of_the_last("on 2024-05-06")
    ([], [])
    """
    end = text[-_USUALLY_ENOUGH:].replace("**", "").rstrip()
    found = _ends_of(_RANGE.search(end.rpartition("\n")[2])) or _ends_of(_LAST_RANGE.search(end))
    found = found or _both_signs(end)
    roots = _ROOTS.search(end)
    if roots is not None and not found:
        found = _alternatives(roots[0])
    separators = list(_OR.finditer(end))
    if found or not separators:
        return found
    before, after = end[: separators[-1].start()], end[separators[-1].end() :]
    earlier = list(find_numbers(before.rstrip(" $*")))
    later = list(find_numbers(after))
    if not earlier or len(later) != 1 or not earlier[-1].reaches_end:
        return []
    is_next = after.lstrip(" $*").startswith(later[0].text)
    if is_next:
        return [earlier[-1].text, later[0].text]
    return []


def _both_signs(text: str) -> list[str]:
    r"""Return a number with either sign, if a text ends with it so.

    >>> _both_signs(r"So x = \pm 5."), _both_signs("It is 5 ± 1")
    (['5', '-5'], [])
    """
    found = _PLUS_OR_MINUS.search(text)
    if found is None:
        return []
    return [found[1], f"-{found[1]}"]


def _without_precision(text: str) -> str:
    r"""Return the first of two numbers that have a plus-minus sign between them, any other text as it is.

    >>> _without_precision(r"5 cm \pm 1 cm"), _without_precision(r"2 \pm \sqrt{3}"), _without_precision("±5")
    ('5 cm', '2 \\pm \\sqrt{3}', '±5')
    """
    parts = _SIGNS.split(text)
    if len(parts) == 2 and None not in map(read_number, parts):
        return parts[0].strip()
    return text


def _ends_of(span: re.Match[str] | None) -> list[str]:
    """Return both ends of a range; none of what descends, which is a difference."""
    if span is None:
        return []
    ends = [end for end in span.groups() if end is not None]
    first, last = map(read_number, ends)
    rises = first is not None and last is not None and first.value < last.value
    if rises:
        return ends
    return []


def _require_one(numbers: Sequence[str]) -> None:
    """Raise Ambiguous if these are different numbers."""
    values = list(map(read_number, numbers))
    first = values[0] if values else None
    if first is not None and any(one is not None and not is_same_number(one, first) for one in values):
        raise Ambiguous(f"several different numbers ({', '.join(numbers).rstrip('.')})")


def _last_number(text: str) -> FoundNumber | None:
    """Return the last number of a text, looking at its end first."""
    for length in (_USUALLY_ENOUGH, len(text)):
        numbers = list(find_numbers(text[-length:]))
        # The start of the piece may cut a number; the rest of it reads as two numbers at most, as {1}{2}.
        if len(numbers) > 2 or length == len(text):
            break
    if numbers:
        return numbers[-1]
    return None


def _stated_number(stated: Extract, length: int) -> Answer | None:
    """Return the number of a statement: all of it, the result of its equation, or its first number."""
    line = stated.text
    reason = REASON.search(line)
    if reason is not None and read_number(line[: reason.start()]) is not None:
        return Answer(line[: reason.start()], "stated", is_final=True)
    if read_number(line) is not None:
        return Answer(line, "stated", is_final=stated.end < length or not line[-1:].isdigit())
    found: FoundNumber | None = None
    for part in reversed(line.split("=")):
        found = next(find_numbers(part), None)
        if found is not None:
            break
    if found is None:
        return None
    return Answer(found.text, "stated", is_final=stated.end < length or not found.reaches_end)
