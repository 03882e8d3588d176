"""Scorers of a user's own, for the scorer of kind python; imported by its worker processes."""

import time


def last_word_is_target(answer, question):
    word = answer.split()[-1] if answer.split() else ""
    return {
        "score": float(word == question["target"]),
        "extracted": word,
        "signals": {"words": len(answer.split())},
    }


def plain(answer, question):
    return question["target"] in answer


def half(answer, question):
    return 0.5


def nonsense(answer, question):
    return "yes"


def failing(answer, question):
    raise RuntimeError("no idea")


def hanging(answer, question):
    time.sleep(60)


def dying(answer, question):
    import os

    os._exit(3)
