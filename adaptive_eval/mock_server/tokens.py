"""The mimic's tokenisation: simple, lossless, and the same for prompts and answers.

A token is a word piece of at most six letters, digits or underscores with the space before it, or one
other visible character with the space before it, or one character of white space. Joined, the tokens are
the text. English prose comes to about 1.2 tokens a word, as with the tokenizers of real models.
"""

from __future__ import annotations

import re

__all__ = ["count_tokens", "tokenize"]

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
