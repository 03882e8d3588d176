"""The text of an answer: reasoning of a given length, a last sentence with the answer, and its tokens.

A token is a word piece of at most six letters, digits or underscores with the space before it, one other
visible character with the space before it, or one character of white space. Joined, the tokens are the
text. English prose has about 1.2 tokens a word, as with the tokenizers of real models.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache
from itertools import accumulate
from typing import Final

_TOKEN = re.compile(r" ?\w{1,6}| ?[^\w\s]|\s")


def tokenize(text: str) -> list[str]:
    r"""Split `text` into tokens; ``"".join(tokenize(text)) == text``.

    Examples
    --------
    >>> tokenize("Seventeen apples, 3.5 kg")
    ['Sevent', 'een', ' apples', ',', ' 3', '.', '5', ' kg']
    """
    return _TOKEN.findall(text)


def count_tokens(text: str) -> int:
    """Return the number of tokens of `text`.

    Additive where the second text begins with white space and the first does not end with it.

    Examples
    --------
    >>> count_tokens("The answer") + count_tokens(" is 42.") == count_tokens("The answer is 42.")
    True
    """
    return len(_TOKEN.findall(text))


# Neither digits nor single letters: no extractor may take a step of the reasoning for the answer.
_STEPS: Final = (
    " Start from what the question gives and note what it asks for.",
    " Write the known quantities down in the order in which they are mentioned.",
    " Put every quantity into the same unit before combining any of them.",
    " The first relation follows directly from the wording.",
    " Substitute the known values and simplify.",
    " Keep the intermediate result, because the next step needs it.",
    " The second relation connects that result with what is asked.",
    " Carry the calculation through without rounding.",
    " Compare the size of the result with an estimate.",
    " The estimate agrees with the calculation.",
    " Check once more that no condition of the question was overlooked.",
    " Look at the other possible readings and rule them out.",
    " Work backwards from the result to see whether it fits the question.",
    " The units come out as they should.",
)
_SIZES: Final = tuple(count_tokens(step) for step in _STEPS)
_CYCLE: Final = sum(_SIZES)
_OPENING: Final = "Work through it step by step."
_OPENING_SIZE: Final = count_tokens(_OPENING)


@lru_cache(maxsize=len(_STEPS))
def _rotation(start: int) -> tuple[str, list[int], list[int]]:
    """Return the steps from number `start` round to it, and where they end in characters and tokens."""
    order = [(start + k) % len(_STEPS) for k in range(len(_STEPS))]
    text = "".join(_STEPS[k] for k in order)
    characters = list(accumulate((len(_STEPS[k]) for k in order), initial=0))
    return text, characters, list(accumulate((_SIZES[k] for k in order), initial=0))


@lru_cache(maxsize=16_384)
def _ending(template: str, answer: str) -> tuple[str, int]:
    sentence = "\n" + template.replace("{answer}", answer)
    return sentence, count_tokens(sentence)


def worked_answer(answer: str, template: str, length: float, start: int) -> tuple[str, int]:
    r"""Return a worked answer and its number of tokens.

    Examples
    --------
    >>> text, tokens = worked_answer("42", "The answer is \\boxed{{answer}}.", 30, start=0)
    >>> text.splitlines()[-1], tokens == count_tokens(text)
    ('The answer is \\boxed{42}.', True)
    """
    sentence, size = _ending(template, answer)
    wanted = length - size - _OPENING_SIZE
    if wanted <= 0:
        return _OPENING + sentence, _OPENING_SIZE + size
    steps, characters, tokens = _rotation(start % len(_STEPS))
    cycles, rest = divmod(wanted, _CYCLE)
    last = bisect_left(tokens, rest)
    body = steps * int(cycles) + steps[: characters[last]]
    return _OPENING + body + sentence, _OPENING_SIZE + int(cycles) * _CYCLE + tokens[last] + size


def clip(text: str, stop: tuple[str, ...]) -> tuple[str, str | None]:
    """Return `text` up to the first stop sequence in it, and that sequence.

    Examples
    --------
    >>> clip("one two three", ("three", "two"))
    ('one ', 'two')
    >>> clip("one", ("x",))
    ('one', None)
    """
    places = [(place, -len(word), word) for word in stop if (place := text.find(word)) >= 0]
    if not places:
        return text, None
    place, _, word = min(places)
    return text[:place], word
