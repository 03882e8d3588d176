"""The scorers ``choice`` (right when the answer is the target's option) and ``choice_probability``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from math import exp, fsum
from string import ascii_uppercase

from adaptive_eval.options.scorers import (
    ChoiceProbabilityScorerConfig,
    ChoiceScorerConfig,
    ChoosingScorerConfig,
)
from adaptive_eval.scoring.scorer import Answer, AnswerScorer, ScorerFailed, graded, likeliest_tokens
from adaptive_eval.scoring.text import REASON, Extract, last_stated, normalised, unwrapped
from adaptive_eval.trial import Completion, Question, Score

LEAST_CHANCE = 0.1
"""Of the letters together: with less, the answer begins with something else."""

_WHOLE_NUMBER = re.compile(r"\d{1,3}")
_LONGEST_LINE = 500
_CHOSEN = re.compile(
    r"""
    \b(?: (?:correct|right|best|final)[ ](?:option|choice|letter)[ ]?(?:is\b|:)
        | (?:choose|chose|select|pick|go[ ]with|going[ ]with)\b(?:[ ](?:option|choice|answer|letter)\b)? )
    [ *:]{0,6}
    """,
    re.IGNORECASE | re.VERBOSE,
)
# What follows an article: "The answer is A because …" has none.
_ARTICLE = (
    r"(?=[ ](?!(?:because|since|as|and|or|is|which|with|for|due|based|so|here|in\b(?=[ ]this)|although|while"
    r"|not)\b)[a-z])"
)
_LEADING_WORDS = r"(?:(?i:the |correct |right ){0,2}(?i:option|choice|letter|answer)[ :]{1,3})?"
_JOINT = r"[)\]*}\"'`]{0,3}\s{0,2}(?:,|/|&|\bor\b|\band\b|,\s{0,2}or\b)\s{0,2}(?i:option |choice )?"
_PATTERNS = {
    "alone": r"[ (\[*\"'{]{0,6}(?:(?i:the )?(?i:option|choice|answer|letter)[ :]{1,3})?[(\[\"'*]{0,3}"
    r"([EITHER])[ )\].,:;!*\"'}]{0,8}",
    "labelled": r"[ (\[*]{0,4}([EITHER])[*]{0,2}[)\].:][)\].:*]{0,3}[ ]+\S",
    "line_label": r"(?m)^[ (\[*-]{0,6}([EITHER])[*]{0,2}[)\].:]",
    "lead": rf"[\s(\[{{*_\"'`$:]{{0,12}}{_LEADING_WORDS}[(\[*\"'`{{]{{0,4}}("
    rf"(?!A{_ARTICLE}|I{_ARTICLE})[UPPER](?![\w'’-])"
    r"|[LOWER](?=[)\]}*\"'`]{0,3}(?:[.,;:!)]|\s*$))(?![\w'’-]))",
    "hedge": rf"(?:{_JOINT}[(\[*\"'`]{{0,3}}[UPPER](?![\w'’]))+",
    "is_correct": r"(?<![\w'’(\[*])(?<![UPPER)\]*] or )(?<![UPPER)\]*] and )(?<![UPPER)\]*] nor )"
    r"[(\[*]{0,3}([UPPER])[)\]*]{0,3}[ ]is[ ](?:the[ ])?(?i:correct|right|best|true)"
    r"\b(?![ ](?i:about|that|for))",
    "ruled_out": r"\b(?i:rul(?:e[sd]?|ing) out|(?:eliminat|exclud)(?:e[sd]?|ing)|"
    r"(?:reject|discard)(?:s|ed|ing)?)\s(?i:options? |choices? |answers? )?"
    r"\W{0,3}(?:[UPPER]\W{1,4}(?:(?:and|or)\W{1,3})?)*$",
    "marked": r"\(([UPPER])\)|\*\*[(]?([UPPER])[).]{0,2}\*\*|(?<![\w'’-])([UPPER])[ .!)*]{0,4}$",
}
"""Where an answer names an option, for the letters of its question."""
_NEGATION = re.compile(r"\b(?:not|neither|nor|incorrect|wrong|false|cannot|except)\b|n['’]t\b", re.IGNORECASE)


class _Choosing(ChoosingScorerConfig):
    """What scorers of multiple choice know of a question."""

    def check_target(self, question: Question) -> str | None:
        """Return what makes the question's target unusable, or None."""
        options = self._options(question)
        by_letter = self._by_letter(question, options)
        by_text = options.by_text(question.target)
        if by_letter and by_text and by_letter != by_text:
            return f"the target {question.target!r} is the letter of one option and the text of another"
        if by_letter or by_text:
            return None
        known = f"{', '.join(options.letters)}, or the text of an option"
        hint = ""
        if _WHOLE_NUMBER.fullmatch(question.target):
            hint = "; set the scorer's index_from to 0 or 1"
        return f"the target {question.target[:60]!r} is none of {known}{hint}"

    def _options(self, question: Question) -> ChoiceOptions:
        return _cached_options(ascii_uppercase[: len(question.choices)] or self.letters, question.choices)

    def _target(self, question: Question, options: ChoiceOptions) -> str | None:
        return self._by_letter(question, options) or options.by_text(question.target)

    def _by_letter(self, question: Question, options: ChoiceOptions) -> str | None:
        target = question.target.strip()
        if self.index_from is not None and _WHOLE_NUMBER.fullmatch(target):
            place = int(target) - self.index_from
            if 0 <= place < len(options.letters):
                return options.letters[place]
            return None
        return options.by_label(target)


class ChoiceProbabilityScorer(ChoiceProbabilityScorerConfig, _Choosing):
    """Reads the chance of each letter, among the letters, off the first token of an answer.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> likely = [{"token": " B", "logprob": -0.1}, {"token": "A", "logprob": -2.4}]
    >>> answer = Completion("B", "length", logprobs={"content": [{"top_logprobs": likely}]})
    >>> found = ChoiceProbabilityScorer().score(answer, Question("t", "q", "B"))
    >>> found.extracted, round(found.signals["score"], 2)
    ('B', 0.91)
    """

    def score(self, completion: Completion, question: Question) -> Score:
        """Score one answer; ScorerFailed if its first token has no log-probabilities, or no letter."""
        options = self._options(question)
        tokens = likeliest_tokens(completion.logprobs)
        if not tokens:
            raise ScorerFailed("the server gave no log-probabilities of the likeliest first tokens")
        letters = {letter: _chance(letter, tokens) for letter in options.letters}
        total = fsum(letters.values())
        target = self._target(question, options)
        if total < LEAST_CHANCE:
            raise ScorerFailed(
                f"the first token is a letter with a chance of {total:.2g}, and may be {tokens[0][0]!r}: ask "
                "for the letter alone"
            )
        likeliest = max(letters, key=letters.__getitem__)
        chance = letters.get(target or "", 0.0) / total
        score = graded(self, chance, likeliest, f"{target} has {chance:.3f}")
        if self.by == "likeliest":
            right = likeliest == target
            score = replace(score, category=int(right), signals={**score.signals, "is_correct": right})
        # one token is the whole answer
        return replace(score, signals={**score.signals, "truncated": False, "repeated_pattern": 0})


def _chance(letter: str, tokens: Sequence[tuple[str, float]]) -> float:
    return fsum(exp(min(value, 0.0)) for token, value in tokens if token.strip(" \n(*▁Ġ") == letter)


class ChoiceScorer(ChoiceScorerConfig, _Choosing, AnswerScorer):
    """Compares options. The article "A" is no option, and an answer that names several options is wrong.

    An answer names an option as ``B``, ``(B)``, ``B.``, ``**B**``, ``B. the text`` or by its text; in prose
    after "the answer is", "I choose", before "is correct", or alone at the end.

    Examples
    --------
    >>> from adaptive_eval.trial import Completion
    >>> question = Question("colours", "q1", "B", choices=("red", "blue"))
    >>> scorer = ChoiceScorer()
    >>> answers = [Completion(text, "stop") for text in ("(B)", "It is blue.", "A guess.")]
    >>> [scorer.score(answer, question).extracted for answer in answers]
    ['B', 'B', None]
    """

    def find(self, text: str, box: Extract | None, question: Question) -> Answer | None:
        """Return the letter of the answer in `text`, whose last box is `box`, or None."""
        options = self._options(question)
        if box is not None:
            stated = options.stated(unwrapped(box.text))
            named = box.text if stated is None else stated.text
            return Answer(options.letter_of(box.text) or named, "boxed", is_final=True)
        whole = options.letter_of(text)
        if whole is not None:
            return Answer(whole, "whole text", is_final=True)
        stated = options.stated(text)
        if stated is not None:
            return Answer(stated.text, "stated", is_final=stated.end < len(text))
        last = options.in_last_line(text)
        if last is not None:
            return Answer(last, "last line", is_final=False)
        return None

    def is_right(self, answer: Answer, question: Question) -> bool:
        """Tell whether `answer` is the letter of the target."""
        options = self._options(question)
        target = self._target(question, options)
        return target is not None and answer.text == target


class ChoiceOptions:
    """The options of one question: their letters, and their texts if they are known.

    Examples
    --------
    >>> options = ChoiceOptions("ABC", ("red", "blue", "green"))
    >>> [options.letter_of(text) for text in ("(b)", "C. green", "Blue.", "a colour")]
    ['B', 'C', 'B', None]
    """

    def __init__(self, letters: str, texts: tuple[str, ...] = ()) -> None:
        self.letters = letters
        self.texts = texts
        self._patterns = _compiled(letters)

    def by_label(self, text: str) -> str | None:
        """Return the letter that `text` gives, with or without brackets and the option's text."""
        plain = unwrapped(text)
        alone = self._patterns["alone"].fullmatch(plain)
        if alone:
            return alone[1].upper()
        labelled = None
        if "\n" not in plain:
            labelled = self._patterns["labelled"].match(plain)
        hedged = labelled and self._patterns["hedge"].match(plain, labelled.end(1))
        if labelled and not hedged:
            return labelled[1].upper()
        return None

    def by_text(self, text: str) -> str | None:
        """Return the letter of the only option whose text is `text`."""
        form = normalised(unwrapped(text[: 2 * _LONGEST_LINE + max(map(len, self.texts), default=0)]))
        found = [letter for letter, known in zip(self.letters, self._forms, strict=False) if known == form]
        if len(found) == 1:
            return found[0]
        return None

    def letter_of(self, text: str) -> str | None:
        """Return the letter of the option that `text` is, or None."""
        if len(text) > 2 * _LONGEST_LINE + max(map(len, self.texts), default=0):
            return None
        return self.by_label(text) or self.by_text(text)

    def stated(self, text: str) -> Extract | None:
        """Return the letter that the last statement in `text` gives; several, as written, if it hedges."""
        best = self._after_answer(text)
        start = best.end if best is not None else 0  # only a later statement can replace it
        for match in _CHOSEN.finditer(text, start):
            letter = self._leading(text[match.end() : match.end() + _LONGEST_LINE])
            if letter is not None:
                best = Extract(letter[0], match.end() + letter[1])
        for match in self._patterns["is_correct"].finditer(text, best.end if best is not None else 0):
            best = Extract(match[1], match.end())
        return best

    def in_last_line(self, text: str) -> str | None:
        """Return the only option that the last line names, by letter or text, unless it denies one."""
        line = text.rsplit("\n", 1)[-1][-_LONGEST_LINE:]
        as_a_whole = self.letter_of(line)
        if as_a_whole is not None:
            return as_a_whole
        first = text.split("\n", 1)[0][:_LONGEST_LINE]
        plain = unwrapped(first)
        is_label = self._patterns["labelled"].match(plain) or self._patterns["alone"].fullmatch(plain)
        if "\n" in text and is_label and not self._lists_options(text):
            return self.by_label(first)
        found = self._patterns["marked"].finditer(line)
        marked = {match[1] or match[2] or match[3]: match for match in found}
        if marked:
            letter, match = marked.popitem()
            ruled_out = self._patterns["ruled_out"].search(line[: match.start()])
            if marked or ruled_out or _NEGATION.search(line):
                return None
            return letter
        return self._one_text_in(line)

    def _after_answer(self, text: str) -> Extract | None:
        """Return the letter after the last "the answer is" or a similar phrase."""
        stated = last_stated(text)
        if stated is None:
            return None
        letter = self._leading(stated.text)
        if letter is not None:
            return Extract(letter[0], stated.end - len(stated.text) + letter[1])
        sentence = re.split(r"[.!?](?:\s|$)", stated.text, maxsplit=1)[0]
        claim = REASON.split(sentence, maxsplit=1)[0]
        by_text = next(filter(None, map(self.by_text, (stated.text, sentence, claim))), None)
        by_text = by_text or self._one_text_in(sentence)
        if by_text is not None:
            return Extract(by_text, stated.end)
        return None

    def _leading(self, text: str) -> tuple[str, int] | None:
        """Return the letter (all of them if it names several) at the start of `text`, and where it ends."""
        plain = text.replace("\\text{", "").replace("\\mathbf{", "").replace("\\textbf{", "")
        match = self._patterns["lead"].match(plain)
        if match is None:
            return None
        end = len(text) - len(plain) + match.end()
        hedge = self._patterns["hedge"].match(plain, match.end())
        if hedge:
            return plain[match.start(1) : hedge.end()], end + hedge.end() - match.end()
        return match[1].upper(), end

    def _lists_options(self, text: str) -> bool:
        """Tell whether several lines begin with different letters, as in a list of the options."""
        return len({match[1].upper() for match in self._patterns["line_label"].finditer(text)}) > 1

    def _one_text_in(self, line: str) -> str | None:
        """Return the letter of the only option whose text is in `line`, unless the line denies something."""
        form = f" {normalised(unwrapped(line))} "
        inside = [
            (letter, known)
            for letter, known in zip(self.letters, self._forms, strict=False)
            if (len(known) > 1 or known.isdigit()) and re.search(rf"(?<!\w){re.escape(known)}(?!\w)", form)
        ]
        _, known = max(inside, key=lambda one: len(one[1]), default=("", ""))
        letters = [letter for letter, other in inside if other not in known or other == known]
        if len(letters) != 1:
            return None
        if _NEGATION.search(form.replace(known, "")):
            return None
        return letters[0]

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        return tuple(normalised(unwrapped(text)) for text in self.texts)


@lru_cache
def _compiled(letters: str) -> dict[str, re.Pattern[str]]:
    kinds = {"EITHER": letters + letters.lower(), "UPPER": letters, "LOWER": letters.lower()}
    fill = partial(re.sub, "EITHER|UPPER|LOWER", lambda kind: kinds[kind[0]])
    return {name: re.compile(fill(pattern)) for name, pattern in _PATTERNS.items()}


@lru_cache(maxsize=1024)
def _cached_options(letters: str, texts: tuple[str, ...]) -> ChoiceOptions:
    return ChoiceOptions(letters, texts)
