"""The causes of discarded draws in words."""

from collections import Counter
from collections.abc import Mapping

from adaptive_eval.trial import DiscardCause

CAUSE_WORDS: Mapping[str, str] = {
    "timeout": "took longer than the timeout",
    "server": "failed at the server after it may have begun",
    "connection": "lost with their connection",
    "killed": "lost with the process or cancelled",
}
"""What each cause is, in words."""


def causes_words(causes: Mapping[DiscardCause, int]) -> str:
    """Return the causes with their numbers, the most frequent first.

    Examples
    --------
    >>> causes_words({"connection": 2, "timeout": 7})
    '7 took longer than the timeout, 2 lost with their connection'
    """
    ordered = Counter(causes).most_common()
    return ", ".join(f"{number:,} {CAUSE_WORDS[cause]}" for cause, number in ordered)
