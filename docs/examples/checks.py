"""One of several checks of an answer: it is short."""


def brief(answer):
    """Return whether the answer has at most 60 words."""
    return len(answer.split()) <= 60
