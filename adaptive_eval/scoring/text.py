r"""The part of an answer that holds its result, and texts made comparable and safe to store.

Model output is data of any size and content. Every function here takes time linear in its length: patterns
have bounded repetitions and run over the last :data:`TAIL` characters only.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

TAIL = 50_000
"""Characters at the end of an answer (without its reasoning) in which the result is searched."""

LONGEST_EXTRACT = 500
"""Characters of an extracted answer that are stored."""

_REASONING = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
)
_WRAPPER = re.compile(
    r"\\(?:text|textbf|textit|textrm|mathrm|mathbf|mathit|mathsf|mathtt|operatorname|mbox|boldsymbol|underline)"
    r"[ ]?\{([^{}]*)\}"
)
_SPACE = re.compile(r"\\ |(?<=\S)~(?=\S)|(?<=[ ])~(?=[A-Za-z\\])|\\q?quad(?![a-z])")
_DELIMITERS = re.compile(
    r"\\[()\[\]]|\\left(?![a-z])|\\right(?![a-z])|\\displaystyle|\\[,;!:]|[$`]"
    r"|(?<![\w)])\*\*|\*\*(?![\w(])|__"  # the stars of 2**3 are no layout
)
_SPACELESS = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_AROUND = " \t\n\r.,;:!?\"'`“”‘’«»*_()[]{}$。，！？：；"


def answer_part(text: str, *, strip_reasoning: bool = True) -> str:
    r"""Return the part of an answer that may hold its result: after the reasoning, at most :data:`TAIL` long.

    Examples
    --------
    >>> answer_part("<think>Is it 5? No.</think>\n\nIt is 7.")
    'It is 7.'
    >>> answer_part("<think>Is it 5? Maybe")
    ''
    """
    if strip_reasoning:
        for _, closing in _REASONING:
            text = text.rpartition(closing)[2]
        for opening, _ in _REASONING:
            text = text.partition(opening)[0]
    return text.strip()[-TAIL:]


def unwrapped(text: str) -> str:
    r"""Return a short text without the LaTeX and Markdown around its words: ``$\text{Paris}$`` is Paris.

    Examples
    --------
    >>> unwrapped(r"$\text{New York}$"), unwrapped("**B**"), unwrapped(r"\textbf{\mathrm{x}}")
    ('New York', 'B', 'x')
    """
    for _ in range(3):  # fonts are hardly nested deeper
        text, changed = _WRAPPER.subn(r"\1", text)
        if not changed:
            break
    return _DELIMITERS.sub("", _SPACE.sub(" ", text)).strip()


def normalised(text: str, *, ignore_case: bool = True, ignore_punctuation: bool = True) -> str:
    """Return the form of a text in which it is compared: NFKC, white space collapsed.

    Letter case is folded; punctuation, quotes and brackets around the text are dropped.

    Examples
    --------
    >>> normalised("  “New\u00a0 York”. ")
    'new york'
    """
    text = " ".join(unicodedata.normalize("NFKC", text).split())
    if ignore_case:
        text = unicodedata.normalize("NFKC", text.casefold())
    if ignore_punctuation:
        text = text.strip(_AROUND) or text
    return text


def is_spaceless(char: str) -> bool:
    """Tell whether a character belongs to a script without spaces between words.

    Examples
    --------
    >>> is_spaceless("京"), is_spaceless("k")
    (True, False)
    """
    return _SPACELESS.match(char) is not None


def storable(text: str) -> str:
    r"""Return a text that any database, terminal or page can hold: bounded, without control characters.

    Examples
    --------
    >>> storable("a\x00b\ud800c\nd")
    'a�b�c\nd'
    """
    cut = text[:LONGEST_EXTRACT]
    safe = cut
    if not cut.isprintable():
        safe = "".join(map(_safe, cut))
    if len(text) <= LONGEST_EXTRACT:
        return safe
    return f"{safe}…"


def sendable(text: str) -> str:
    """Return a text without lone surrogates, which UTF-8 cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _safe(char: str) -> str:
    is_safe = char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
    if is_safe:
        return char
    return "\N{REPLACEMENT CHARACTER}"


REASON = re.compile(r",?[ ]\(?(?:because|since)\b|,[ ](?:as|where|given|which)\b", re.IGNORECASE)
"""Separators between a stated answer and its explanation, which may name other answers."""

LONGEST_STATEMENT = 300
"""Characters of a stated answer's line that are read."""

_BOX_OR_BRACE = re.compile(
    r"\\{1,2}f?box(?:ed)?[ \t\n]{0,3}\{|\\{1,2}boxed[ ]([^\s{}\\$]{1,40})|\\.|[{}]", re.DOTALL
)
_BEFORE_BOX = len(r"\\f")
_ANCHORS = ("answer", "Answer", "ANSWER", "####", "答案")
_STATED = re.compile(
    r"""
    (?<=<) answer [ ]? >
    | (?<!\w) answers?\b
    (?: [ ](?:to|for|of)\b [^\n.:]{0,80}? )?
    (?: [ ]{1,3}(?: is | are | was | (?:would|will|must|should)[ ]be | = )(?:[ ](?:therefore|thus|indeed))?\b
      | [ *_)]{0,6} [:：=] )
    | (?<!\#) \#{4} (?=[ ]?\S{1,40}[ ]{0,3}$)
    | 答案 [是为：:]
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_HEADING = re.compile(r"^[#* \t]{0,8}(?:final )?answer[*: \t]{0,6}$", re.IGNORECASE | re.MULTILINE)
_LONGEST_HEADING_LEAD = 14  # characters of a heading before its "answer"
_LEAD = re.compile(r"(?:[ \t\r\n:：*_]|(?:\\\[|\$\$|```\w{0,12})(?=[ \t]{0,3}\n))*")
_TAG_END = re.compile("</answer", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Extract:
    """A piece of an answer."""

    text: str  # the piece
    end: int  # where it ends in the text it was found in


def last_boxed(text: str) -> Extract | None:
    r"""Return the content of the last ``\boxed{…}`` (or ``\fbox``).

    Examples
    --------
    >>> last_boxed(r"First \boxed{1}, then \boxed{\frac{1}{2}}.").text
    '\\frac{1}{2}'
    >>> last_boxed(r"\boxed{\boxed{7}}").text
    '7'
    """
    first_box = text.find("box")
    if first_box < 0:
        return None
    found: tuple[int, int, int] | None = None
    open_boxes: list[int] = []  # where the content begins; -1 for a brace that is no box
    # Braces before the first box cannot change what any box holds.
    for token in _BOX_OR_BRACE.finditer(text, max(0, first_box - _BEFORE_BOX)):
        first = token[0][0]
        last = token[0][-1]
        if token[1]:
            span = (token.start(1), token.end(1), token.end(1))
        elif last == "{" and (first == "{" or len(token[0]) > 2):
            if first == "\\":
                open_boxes.append(token.end())
            else:
                open_boxes.append(-1)
            continue
        elif token[0] == "}" and open_boxes:
            span = (open_boxes.pop(), token.start(), token.end())
        else:
            continue
        is_last = span[0] >= 0 and (found is None or span[0] > found[0])
        if is_last and text[span[0] : span[0] + 200].strip()[:1] not in ("", "}"):
            found = span
    if found:
        return Extract(text[found[0] : found[1]].strip(), found[2])
    return None


def last_stated(text: str) -> Extract | None:
    r"""Return the line that follows the last "the answer is", "Answer:", "<answer>" or "####".

    Examples
    --------
    >>> last_stated("The answer is 5, no: the answer is 7.").text
    '7.'
    >>> last_stated("**Final Answer**\n\nParis").text
    'Paris'
    """
    for position in _anchors_from_the_end(text):
        match = _STATED.match(text, position) or _heading(text, position)
        if match is None:
            continue
        start = match.end()
        ahead = text[start : start + LONGEST_STATEMENT]
        begins = _LEAD.match(ahead)
        lead = begins.end() if begins else 0
        line = _TAG_END.split(ahead[lead:].split("\n", 1)[0], 1)[0].rstrip()
        if line:
            return Extract(line, start + lead + len(line))
    return None


def _anchors_from_the_end(text: str) -> Iterator[int]:
    """Yield the places where a statement may begin, the last first."""
    last = {anchor: text.rfind(anchor) for anchor in _ANCHORS}
    while (position := max(last.values())) >= 0:
        yield position
        for anchor, found in last.items():
            if found == position:
                last[anchor] = text.rfind(anchor, 0, position + len(anchor) - 1)


def _heading(text: str, position: int) -> re.Match[str] | None:
    """Return the heading that consists of the word at `position`."""
    start = text.rfind("\n", max(0, position - _LONGEST_HEADING_LEAD), position) + 1
    is_near = start > 0 or position <= _LONGEST_HEADING_LEAD
    if is_near:
        return _HEADING.match(text, start)
    return None
