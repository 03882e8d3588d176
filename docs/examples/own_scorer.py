"""A scorer of your own: an answer is right if its last number is the target; its words are counted."""

import re


def score(answer, target):
    """Return whether the answer is right, with what a rubric or a reader may want to know."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", answer.replace(",", ""))
    if not numbers:
        return {"score": 0.0, "reason": "there is no number in the answer"}
    right = float(numbers[-1]) == float(target)
    return {"score": float(right), "extracted": numbers[-1], "signals": {"words": len(answer.split())}}
