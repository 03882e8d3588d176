"""The causes of discarded draws in words."""

from collections import Counter
from collections.abc import Mapping

from adaptive_eval.core.results import Results
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


def redrawn_words(trials: int, causes: Mapping[DiscardCause, int] | None = None) -> str:
    """Return what verdicts rest on where another draw than the first counts in so many trials.

    Examples
    --------
    >>> print(redrawn_words(1, {"killed": 1})[:57])
    verdicts rest on the config's word (on.discarded) that wh
    """
    those = "1 trial was"
    if trials != 1:
        those = f"{trials:,} trials were"
    why = ""
    if causes:
        why = f" ({causes_words(causes)})"
    return (
        "verdicts rest on the config's word (on.discarded) that what was lost does not depend on the answer: "
        f"{those} answered by another draw than the first{why}"
    )


def rest_on_words(results: Results) -> str:
    """Return in a sentence what verdicts rest on if draws other than the first count; else nothing."""
    redrawn = sum(line.redrawn_trials for line in results.models)
    if not redrawn:
        return ""
    words = redrawn_words(redrawn)
    return f"{words[0].upper()}{words[1:]}."
