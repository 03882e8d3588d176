"""Sentences about labels: of people, or of a dearer judge, that a run's judge is held against."""

from collections.abc import Iterator
from shlex import quote

from adaptive_eval.views.numbers import count


def how_to_label(rows: int) -> str:
    """Say on the page what is to be done."""
    return (
        f"{count(rows, 'answer')} of models whose names are not shown. Give each answer the label that it "
        "deserves by your own judgement, leave none out because it is hard, and save the file: an answer "
        "that was chosen and has no label counts as the worst for every verdict."
    )


def offered(run: str, rows: int, new: int, filled: int, chance: float) -> Iterator[str]:
    """Say what was chosen, and how to label it.

    Examples
    --------
    >>> for line in offered("runs/aime", 24, 24, 0, 0.1):
    ...     print(line)
    runs/aime/labels.jsonl: 24 answers, 24 of them new, 0 with a label; each was chosen with a chance of 0.1.
    Open runs/aime/labels.html in a browser, label every answer and save the file, or fill in "score" by hand.
    Then: adaptive-eval rescore runs/aime --labels runs/aime/labels.jsonl
    """
    yield (
        f"{run}/labels.jsonl: {count(rows, 'answer')}, {new:,} of them new, {filled:,} with a label; each "
        f"was chosen with a chance of {chance:.3g}."
    )
    yield (
        f'Open {run}/labels.html in a browser, label every answer and save the file, or fill in "score" by '
        "hand."
    )
    yield f"Then: adaptive-eval rescore {quote(run)} --labels {quote(run)}/labels.jsonl"
