"""Scorers of a user's own, for the scorer of kind python; imported by its worker processes."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path


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


async def awaited(answer, target, row):
    await asyncio.sleep(0)
    return target in answer and row == {}


def leaving(answer):
    sys.exit(3)


def nonsense(answer, question):
    return "yes"


def failing(answer, question):
    raise RuntimeError("no idea")


def hanging(answer, question):
    time.sleep(60)


def dying(answer, question):
    os._exit(3)


def killed_once(answer, question):
    mark = Path(question["fields"]["mark"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def hanging_once(answer, question):
    hanging, again = (Path(question["fields"][name]) for name in ("hanging", "again"))
    if hanging.exists():
        again.touch()
        return True
    hanging.touch()
    time.sleep(600)
    return False


def by_environment(answer, question):
    return os.environ["OWN_SCORER_KEY"] == answer


def by_file(answer, question):
    return Path("key.txt").read_text(encoding="utf-8") == answer
